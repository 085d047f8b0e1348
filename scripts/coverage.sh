#!/usr/bin/env bash
# coverage.sh [CTEST-OPTION…]: builds with coverage, runs the tests and prints the share of lines of each module that they
# ran, and of all. Needs gcov, which comes with gcc. Options choose tests: scripts/coverage.sh -R base
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-coverage
command -v gcov >/dev/null || { echo "coverage: gcov is not installed (it comes with gcc)" >&2; exit 2; }
(cd "$root" && cmake --preset coverage >/dev/null && cmake --build --preset coverage)
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" -j "$(nproc)" --output-on-failure "$@" || echo "coverage: tests failed; the figures are those of the run" >&2
"$root/scripts/coverage-sum.sh" "$build" "$root"
