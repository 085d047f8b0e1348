#!/usr/bin/env bash
# Killed runs leave the old output or the new one, and the next run gives the same bytes and leaves nothing else: a sample of random
# kills and of system calls; which ones changes from day to day. In full: TARE_KILLS=300 TARE_KILL_EVERY=1 ctest -R cli/kills
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3"
sanitized && export ASAN_OPTIONS=detect_leaks=0 # the leak checker cannot run in a traced process
day=$(date +%j | sed 's/^0*//')
python3 "$source_dir/tests/faults/kills.py" --program "$tare" --helper "$TARE_TEST_HELPERS/kill_at_call" --random "${TARE_KILLS:-4}" \
    --every "${TARE_KILL_EVERY:-9}" --offset "$day" --seed "$day" >"$work/log" 2>&1 || fail "$(head -40 "$work/log")"
[ "$(grep -c ' 0 findings, ' "$work/log")" -eq 4 ] || fail "not four commands: $(cat "$work/log")"
kills=$(grep -oE '^[0-9]+ kills' "$work/log" | cut -d' ' -f1)
[ "${kills:-0}" -ge 32 ] || fail "only ${kills:-0} kills: $(cat "$work/log")"
cat "$work/log"
finish
