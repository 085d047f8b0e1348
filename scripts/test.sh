#!/usr/bin/env bash
# Installs what is missing, builds, runs every test, and lists the seconds of each stage. Options go to ctest:
# scripts/test.sh -R proto
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/stages.sh"
stage packages "$root/scripts/install-deps.sh"
cmake -S "$root" -B "$root/build" -G Ninja >/dev/null
stage build cmake --build "$root/build"
stage tests ctest --test-dir "$root/build" --output-on-failure -j "$(nproc)" "$@"
