#!/usr/bin/env bash
# cross-arm64.sh [--all]: builds for arm64 with Debian's cross compiler and runs the result under qemu: the unit tests of the kernels
# (--all: of all modules), and the bundled example, whose calibration file, models and outputs must have the bytes that x86-64 gives
# (--all: also models of TARE_TEST_DATA). No time is measured: qemu says nothing of one. Needs a build for x86-64 in build/.
# scripts/arm64-root.sh gets compiler and libraries; where it cannot: one line, and exit 77, which scripts/stages.sh lists as skipped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/tests.sh"
. "$root/scripts/arm64-root.sh"
build=$root/build-arm64
all=no
[ "${1:-}" != --all ] || all=yes
[ -x "$root/build/tare" ] || { echo "cross-arm64.sh: build/tare is missing (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }

arm64_root

# ---- build ----

export TARE_EMULATOR="qemu-aarch64-static -L $libraries" # for tests that start themselves

configure build-arm64 -DCMAKE_BUILD_TYPE=Release -DTARE_MPI=OFF "${arm64_options[@]}"
if [ $all = yes ]; then
    modules=(base proto datasets graph interpreter calib quant tpu convert eval workflow)
    cmake --build "$build" --target tare "${modules[@]/#/test_}"
    ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -R "^($(IFS='|' && echo "${modules[*]}"))/"
else
    cmake --build "$build" --target tare test_interpreter
    ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -L quick -R '^interpreter/kernels/'
fi

# ---- the same bytes ----

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arm64() { qemu-aarch64-static -L "$libraries" "$build/tare" "$@"; }
x86_64() { "$root/build/tare" "$@"; }

# example TARE MODEL SAMPLES RECORDS: writes calibration, models and outputs into the current folder.
example() {
    local tare=$1 model=$2 samples=$3 records=$4 method
    run() { "$tare" run "$1" --data "$records" --limit 50 --output-dir "$2" --quiet >/dev/null; }
    "$tare" calibrate "$model" --data "$samples" --limit 100 -o ranges.calib --quiet
    run "$model" float.out
    for method in static dynamic weight_only; do # --allow-unquantized: a method may have no layer that is large enough
        "$tare" quantize "$model" $method --method $method --calibration ranges.calib --allow-unquantized --quiet 2>/dev/null
        run $method $method.out
    done
    if "$tare" convert static converted --tpu_functions auto --quiet >/dev/null 2>convert.txt; then
        run converted converted.out
        "$tare" convert "$model" bfloat16 --tpu_functions auto --quiet >/dev/null
        run bfloat16 bfloat16.out
    elif ! grep -q "does not support TensorFlow 1 models" convert.txt; then
        cat convert.txt >&2
        return 1
    fi
    rm -f convert.txt
}

compare() { # NAME MODEL SAMPLES RECORDS
    local side
    for side in arm64 x86_64; do
        mkdir -p "$work/$side/$1"
        (cd "$work/$side/$1" && example $side "$2" "$3" "$4")
    done
    diff -rq "$work/arm64/$1" "$work/x86_64/$1" || { echo "cross-arm64.sh: $1 differs between arm64 and x86-64" >&2; exit 1; }
    echo "$1: $(find "$work/arm64/$1" -type f | wc -l) files with the same bytes as x86-64's"
}

glyphs=$root/examples/glyphs
compare glyphs "$glyphs/saved_model" "$glyphs/calibration.tfrecord.gz" "$glyphs/eval.tfrecord.gz"
if [ $all = yes ] && [ -n "${TARE_TEST_DATA:-}" ]; then
    for task in heart-failure kws sms-spam rongo-lstm digits-mnist-conv-mlnet digits-vespa-mnist tfx-iris-keras; do
        folder=$TARE_TEST_DATA/tasks/$task model=$TARE_TEST_DATA/tasks/$task/saved_model
        [ -e "$model" ] || model=$(sed -n 's/.*\(models\/[a-z0-9_-]*\).*/\1/p' "$folder/README.md" | head -1)
        [ -e "$model" ] || model=$TARE_TEST_DATA/$model
        compare "$task" "$model" "$folder/calibration.tfrecord.gz" "$folder/eval.tfrecord.gz"
    done
fi
