#!/usr/bin/env bash
# Everything: the tests of all tiers in Release with gcc, under the sanitizers and, but for files and packages, with clang; data races,
# failing allocations, mutants, arm64, and all judges. Takes hours; goes on after a failure and ends with the seconds of each stage.
# --list prints the stages; scripts/nightly.sh STAGE… runs some.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/stages.sh"
. "$root/scripts/tests.sh"

# The nightly tests that look at packages, signals, memory and the models of the test data: what gcc made of the code is enough.
once=$(awk '$2 == "nightly" && $3 ~ "^(cli|python)/" { printf "%s^%s$", bar, $3; bar = "|" }' "$root/tests/tiers.txt")
own='^cli/wheel$' # builds a program of its own, with gcc

# name: command
release() { configure build && cmake --build "$root/build" && run_tests "$root/build"; }
clang() { configure build-clang -DCMAKE_C_COMPILER=clang && cmake --build "$root/build-clang" && run_tests "$root/build-clang" -E "$once"; }
sanitizers() { configure build-sanitize "${sanitized[@]}" && cmake --build "$root/build-sanitize" && run_tests "$root/build-sanitize" -E "$own"; }
threads() { "$root/scripts/check-threads.sh"; }
allocations() { "$root/scripts/allocation-faults.sh" --stacks 12; } # each place of the program
networks() {
    configure build-sanitize "${sanitized[@]}" && cmake --build "$root/build-sanitize" --target networks &&
        seq "$seed" 20 $((seed + 80)) | xargs -P "$(nproc)" -I SEED "$root/build-sanitize/tests/networks" --first SEED --count 20
}
mutants() { "$root/scripts/mutate.sh"; }
arm64() { "$root/scripts/cross-arm64.sh" --all; }
judges() { "$root/scripts/judges.sh" all; }

all=(release clang sanitizers threads allocations networks mutants arm64 judges)
[ "${1:-}" != --list ] || { printf '%s\n' "${all[@]}"; exit; }
seed=$((10#$(date +%j) * 1000))
echo "seed of the random networks: $seed"
"$root/scripts/install-deps.sh" --dev || exit
failed=
for name in "${@:-${all[@]}}"; do
    [[ " ${all[*]} " == *" $name "* ]] || { echo "nightly: no stage '$name' (expected ${all[*]})" >&2; exit 2; }
    stage "$name" "$name" || failed+=" $name"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
