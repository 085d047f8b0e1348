#!/usr/bin/env bash
# A sample of scripts/allocation-faults.sh: failed allocations lead to the same bytes or to an error, never to other bytes. Which ones
# are taken changes from day to day, so that all are taken in time; the last ones, of what is printed at the end, always.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3"
sanitized && skip "the sanitizers have an allocator of their own"
day=$(date +%j | sed 's/^0*//')
echo "offset: $day"
python3 "$source_dir/tests/faults/allocation.py" --program "$tare" --shim "$TARE_BUILD_DIR/tests/faults/allocation.so" \
    --first 12 --last 8 --every 401 --offset "$day" >"$work/log" 2>&1 || fail "$(head -40 "$work/log")"
[ "$(grep -c ' runs with a fault, 0 findings' "$work/log")" -eq 27 ] || fail "not 27 runs of commands: $(cat "$work/log")"
runs=$(grep -oE '^[0-9]+ runs' "$work/log" | cut -d' ' -f1)
[ "${runs:-0}" -ge 700 ] || fail "only ${runs:-0} runs"
finish
