#!/usr/bin/env bash
# Modules that JAX wrote have the values that JAX computes (tests/golden/jax), before and after they are converted.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/jax
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1
"$helper" array x.npy 'float[3] 1 2 3' || fail "array"
for values in "$modules"/*.values; do
    name=$(basename "$values" .values)
    "$tare" run "$modules/$name.jaxexport" --input arg0=x.npy --quiet >out 2>err || fail "run $name: $(cat err)"
    [ "$(sed 's/^[^]]*\] //' out)" = "$(cat "$values")" ] || fail "$name: $(cat out), expected $(cat "$values")"
done
# Of the branches for other platforms nothing is left: 3 calls with one product each.
"$tare" convert "$modules/platform_branches.jaxexport" tpu --quiet >out 2>err ||
    fail "convert: $(cat err)"
"$tare" inspect tpu --ops >ops || fail "inspect: $?"
! grep -q Case ops || fail "branches by the platform are left: $(cat ops)"
finish
