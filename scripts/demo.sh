#!/usr/bin/env bash
# Installs missing packages, builds, and runs the bundled example: calibrate, compare, convert, run the converted model and
# compare it with the float model. Every command is printed as it is run and can be pasted. Results are in build/demo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
example=examples/glyphs
out=build/demo

step() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

# Prints a command so that it can be pasted, then runs it. run_to FILE COMMAND… writes its output to a file.
show() {
    local word line='$'
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./=,:-]*) line+=" '${word//\'/\'\\\'\'}'" ;;
        *) line+=" $word" ;;
        esac
    done
    printf '%s' "$line"
}
run() {
    show "$@" && echo
    "$@"
}
run_to() {
    local file=$1
    shift
    show "$@" && printf ' > %s\n' "$file"
    "$@" >"$file"
}

scripts/install-deps.sh --program
tests=() # need packages that the program does not
pkg-config --exists cmocka || tests=(-DTARE_TESTS=OFF)
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "${tests[@]}" >/dev/null
targets=(tare)
! ninja -C build -t query tare_mpi >/dev/null 2>&1 || targets+=(tare_mpi)
cmake --build build --target "${targets[@]}"
tare=build/tare
rm -rf "$out"
mkdir -p "$out"

step "1. Inspect the model"
run $tare inspect $example/saved_model

step "2. Calibrate with 300 samples, once for all methods and algorithms"
run $tare calibrate $example/saved_model --data $example/calibration.tfrecord.gz -o $out/glyphs.calib
run_to $out/calibration.txt $tare show $out/glyphs.calib --html $out/calibration.html

step "3. Compare the accuracy of quantization methods on 1,000 labelled records"
run $tare compare $example/saved_model --calibration $out/glyphs.calib --eval $example/eval.tfrecord.gz \
    --methods static,dynamic,weight_only,bfloat16 --algorithms min_max,percentile,mse --depthwise --report $out/compare.html

step "4. Quantize and convert for the TPU: the function tpu_func runs there"
run $tare convert $example/saved_model $out/tpu_model --calibration $out/glyphs.calib \
    --converter_options_string='tpu_functions { function_alias: "tpu_func" }'

step "5. Run the converted model on this CPU, TPU ops included, and compare it with the float model"
run $tare run $example/saved_model --data $example/eval.tfrecord.gz --limit 3
run $tare run $out/tpu_model --data $example/eval.tfrecord.gz --limit 3
run $tare compare $example/saved_model --with $out/tpu_model --eval $example/eval.tfrecord.gz

step "Done: $out/compare.html, $out/calibration.html, and the TPU model $out/tpu_model"
cat <<NEXT
Your own model:
  $tare inspect MY_MODEL --suggest
  $tare calibrate MY_MODEL --data SAMPLES.tfrecord -o MY_MODEL.calib
  $tare compare MY_MODEL --calibration MY_MODEL.calib --eval EVAL.tfrecord --report compare.html
  $tare convert MY_MODEL MY_TPU_MODEL --calibration MY_MODEL.calib
  $tare compare MY_MODEL --with MY_TPU_MODEL --eval EVAL.tfrecord
NEXT
