#!/usr/bin/env bash
# A few random networks through every conversion and quantization (tests/sweep/random_networks.sh). By hand, 500 of them, with an
# independent checker:  tests/sweep/random_networks.sh build/tare build/tests/helpers/random_network 1 500 "python3 CHECKER"
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
bash "$source_dir/tests/sweep/random_networks.sh" "$tare" "$TARE_TEST_HELPERS/random_network" 1 3 >"$work/text" || fail "$(cat "$work/text")"
grep -q '^3 networks, [1-9][0-9]* outputs, 0 failed$' "$work/text" || fail "no summary: $(cat "$work/text")"

# The check finds damage: a program that changes a byte of the checkpoint after each conversion.
cat >"$work/broken" <<'BROKEN'
#!/usr/bin/env bash
"$TARE_PROGRAM" "$@" || exit
[ "$1" = convert ] && printf 'x' | dd of="$3/variables/variables.data-00000-of-00001" bs=1 seek=9 conv=notrunc status=none
exit 0
BROKEN
chmod +x "$work/broken"
bash "$source_dir/tests/sweep/random_networks.sh" "$work/broken" "$TARE_TEST_HELPERS/random_network" 1 1 >"$work/text" && fail "damaged outputs pass"
grep -q '^seed 1, convert float: ' "$work/text" || fail "the failure is not reported: $(cat "$work/text")"
finish
