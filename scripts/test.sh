#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests of the quick tier (about four minutes) and lists the seconds of each stage.
#   scripts/test.sh --since COMMIT    also the nightly tests of what has changed since COMMIT (tests/tiers.txt)
#   scripts/test.sh -R proto          options go to ctest; with -L or -R tests of all tiers
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/stages.sh"
. "$root/scripts/tests.sh"

# The nightly tests that examine what differs from commit $1, as an expression for ctest.
nightly_since() {
    local tier name paths expression=
    while read -r _ tier name paths; do
        [ "$tier" = nightly ] || continue
        # shellcheck disable=SC2086
        (set -f; git -C "$root" diff --quiet "$1" -- $paths) || expression+="|^$name\$"
    done < <(grep '^[0-9]' "$root/tests/tiers.txt")
    echo "${expression#|}"
}

since=
if [ "${1:-}" = --since ]; then
    since=$(git -C "$root" rev-parse --verify "$2^{commit}")
    shift 2
fi
case " $* " in *' -L '* | *' -R '*) chosen=("$@") ;; *) chosen=(-L quick "$@") ;; esac
stage packages "$root/scripts/install-deps.sh"
configure build -DTARE_BENCH=ON -DTARE_TESTS=ON # no other stage compiles the benchmarks
stage build cmake --build "$root/build"
stage tests run_tests "$root/build" "${chosen[@]}"
[ -z "$since" ] || changed=$(nightly_since "$since")
[ -z "${changed:-}" ] || stage "tests of what changed" run_tests "$root/build" -R "$changed"
