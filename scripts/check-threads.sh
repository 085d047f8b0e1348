#!/usr/bin/env bash
# check-threads.sh [MODEL…]: under ThreadSanitizer, all pairs of calls of libtare that may share a handle, its callbacks, the
# Python package, whose callbacks come from the library's threads, and calibrate, run, compare and batch with four workers, on the bundled example and on models of the test data ($TARE_TEST_DATA,
# ../shared/data) with recorded inputs. Prints a line per model and command; exit status 1 if a data race was found. Builds
# the preset "threads" first. --library: only libtare and the package.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
library=
[ "${1:-}" != --library ] || { library=1; shift; }
models=("$@")
[ $# -gt 0 ] || models=(mlperf-tiny-kws mobilenet_vww resnet8_cifar10 scisharp-lstm vespa-mnist)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root" && cmake --preset threads >/dev/null && cmake --build --preset threads >"$work/build" || { tail -5 "$work/build"; exit 1; }
tare=$root/build-threads/tare
export TSAN_OPTIONS="exitcode=66 log_path=$work/race"
failed=0

try() { # MODEL COMMAND…
    check "$1" "$2" "$tare" "${@:2}"
}

check() { # NAME WHAT PROGRAM ARGUMENT…
    local status=0 races
    rm -f "$work"/race.*
    "${@:3}" >"$work/out" 2>"$work/err" || status=$?
    races=$(cat "$work"/race.* 2>/dev/null | grep -c '^WARNING: ThreadSanitizer')
    printf '%-20s %-46s status %d, %d data races\n' "$1" "$2" "$status" "$races"
    [ "$races" -eq 0 ] && [ "$status" -eq 0 ] && return
    failed=1
    tail -2 "$work/err"
    cat "$work"/race.* 2>/dev/null | head -60
}

all() { # NAME MODEL SIGNATURE RECORDS
    local methods=static,dynamic,weight_only
    grep -q '"tf1": true' <<<"$("$tare" inspect "$2" --json)" || methods+=,bfloat16 # conversions need functions
    try "$1" calibrate "$2" --signature "$3" --data "$4" --threads 4 --channels -o "$work/$1.calib"
    try "$1" run "$2" --signature "$3" --data "$4" --threads 4 --output-dir "$work/$1-outputs"
    try "$1" run "$2" --signature "$3" --data "$4" --limit 1 --threads 4 --output-dir "$work/$1-one" # threads inside ops
    try "$1" compare "$2" --signature "$3" --data "$4" --calibration "$work/$1.calib" --threads 4 --limit 40 \
        --methods $methods
    mkdir -p "$work/$1-models"
    ln -sfn "$2" "$work/$1-models/$1"
    try "$1" batch "$work/$1-models" --jobs 4 --methods static,dynamic,weight_only --signature "$3" --data "$4" \
        --output-dir "$work/$1-batch" --state "$work/$1-state"
}

for pairs in $(grep -oP 'cmocka_unit_test\(\K\w+' tests/unit/api/thread_pairs_test.c); do
    check libtare "$pairs" "$root/build-threads/tests/test_api" api/thread_pairs "$pairs"
done
check libtare callbacks "$root/build-threads/tests/test_api" api/contract
python=$(sed -n 's/^TARE_PYTHON_PROGRAM:INTERNAL=//p' build-threads/CMakeCache.txt)
[ -n "$python" ] || echo "python: no headers of Python (skipped)"
[ -z "$python" ] || cmake --build build-threads --target tare_python >>"$work/build" || { tail -5 "$work/build"; exit 1; }
for tests in ${python:+calibration model}; do
    check python "$tests" env LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" PYTHONPATH="$root/build-threads/python" \
        "$python" -B "$root/python/tests/run.py" "test_$tests.py"
done
[ -z "$library" ] || exit $failed
all glyphs "$root/examples/glyphs/saved_model" serving_default "$root/examples/glyphs/calibration.tfrecord.gz"
for model in "${models[@]}"; do
    inputs=$(ls "$data/references/$model"/*/inputs.tfrecord.gz 2>/dev/null | head -1)
    [ -n "$inputs" ] || { echo "$model: no recorded inputs in $data (skipped)"; continue; }
    all "$model" "$data/models/$model" "$(basename "$(dirname "$inputs")")" "$inputs"
done
exit $failed
