#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Options go to ctest: scripts/test.sh -R proto
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/install-deps.sh"
cmake -S "$root" -B "$root/build" -G Ninja >/dev/null
cmake --build "$root/build"
ctest --test-dir "$root/build" --output-on-failure -j "$(nproc)" "$@"
