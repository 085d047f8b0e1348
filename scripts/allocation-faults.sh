#!/usr/bin/env bash
# Fails every heap allocation of every command, once and with all later ones, and checks that each run either gives the
# bytes of a run without faults or fails with a message and leaves nothing (tests/faults/allocation.py). Takes about half an hour
# on two idle cores; ctest takes a sample.
#
#   scripts/allocation-faults.sh [BUILD_DIR] [OPTION…]      --commands quantize,convert  --every 5 --offset 2  --stacks 12
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then build=$1; shift; fi
[ -f "$build/build.ninja" ] || cmake -S "$root" -B "$build" -G Ninja >/dev/null
ninja -C "$build" tare fault_allocation >/dev/null
exec python3 "$root/tests/faults/allocation.py" --program "$build/tare" --shim "$build/tests/faults/allocation.so" "$@"
