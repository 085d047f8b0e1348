#!/usr/bin/env bash
# Killed runs leave the old output or the new one, and the next run gives the same bytes and leaves nothing else: a sample of random
# kills and of system calls; which ones changes from day to day. In full: TARE_KILLS=300 TARE_KILL_EVERY=1 ctest -R cli/kills
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3"
random=4 every=9 least=32
# A sanitized program takes three times as long; the leak checker cannot run in a traced process.
sanitized && random=2 every=27 least=12 && export ASAN_OPTIONS=detect_leaks=0
day=$(date +%j | sed 's/^0*//')
echo "seed and offset: $day"
python3 "$source_dir/tests/faults/kills.py" --program "$tare" --helper "$TARE_TEST_HELPERS/kill_at_call" --random "${TARE_KILLS:-$random}" \
    --every "${TARE_KILL_EVERY:-$every}" --offset "$day" --seed "$day" >"$work/log" 2>&1 || fail "$(head -40 "$work/log")"
[ "$(grep -c ' 0 findings, ' "$work/log")" -eq 4 ] || fail "not four commands: $(cat "$work/log")"
kills=$(grep -oE '^[0-9]+ kills' "$work/log" | cut -d' ' -f1)
[ "${kills:-0}" -ge "$least" ] || fail "only ${kills:-0} kills: $(cat "$work/log")"
cat "$work/log"
finish
