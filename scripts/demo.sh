#!/usr/bin/env bash
# Installs what is missing, builds, and does the main job on the bundled example: calibrate, compare, convert, and run what
# came out. Leaves the model and HTML reports in build/demo.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
example=$root/examples/glyphs
out=$root/build/demo

step() { printf '\n\033[1m%s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }
show() { printf '$ %s\n' "$*"; }

"$root/scripts/install-deps.sh"
cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build" --target tare
tare=$root/build/tare
rm -rf "$out"
mkdir -p "$out"

step "1. What is in the model?"
show tare inspect examples/glyphs/saved_model
"$tare" inspect "$example/saved_model"

step "2. Count the values of its tensors over 300 samples, once for every method and algorithm"
show tare calibrate examples/glyphs/saved_model --data examples/glyphs/calibration.tfrecord.gz -o build/demo/glyphs.calib
"$tare" calibrate "$example/saved_model" --data "$example/calibration.tfrecord.gz" -o "$out/glyphs.calib"
"$tare" show "$out/glyphs.calib" --html "$out/calibration.html" >"$out/calibration.txt"

step "3. What does each method cost in accuracy? 1,000 labelled records"
show tare compare examples/glyphs/saved_model --calibration build/demo/glyphs.calib --data … --report build/demo/compare.html
"$tare" compare "$example/saved_model" --calibration "$out/glyphs.calib" --data "$example/eval.tfrecord.gz" --depthwise \
    --methods static,dynamic,weight_only,bfloat16 --algorithms min_max,percentile,mse --report "$out/compare.html"

step "4. Convert for the TPU: quantize, and put the function tpu_func on it"
show tare convert --input_model_dir=examples/glyphs/saved_model --output_model_dir=build/demo/tpu_model --converter_options_file=…
cat >"$out/options.textproto" <<OPTIONS
tpu_functions { function_alias: "tpu_func" }
external_feature_configs {
  quantization_options {
    signature_keys: "serving_default"
    representative_datasets: {
      key: "serving_default"
      value: { tfrecord_file_path: "$example/calibration.tfrecord.gz" }
    }
  }
}
OPTIONS
"$tare" convert --input_model_dir="$example/saved_model" --output_model_dir="$out/tpu_model" \
    --converter_options_file="$out/options.textproto"

step "5. Run the converted model, TPU ops and all, on this CPU"
show tare run build/demo/tpu_model --data examples/glyphs/eval.tfrecord.gz --limit 3
"$tare" run "$out/tpu_model" --data "$example/eval.tfrecord.gz" --limit 3

step "Done. Reports: $out/compare.html and calibration.html; the TPU model: $out/tpu_model"
cat <<NEXT
Your own model:
  tare=$tare
  \$tare inspect MY_MODEL
  \$tare compare MY_MODEL --calibration-data SAMPLES.tfrecord --data EVAL.tfrecord --report compare.html
  \$tare convert --input_model_dir=MY_MODEL --output_model_dir=MY_TPU_MODEL --converter_options_string='
    tpu_functions { function_alias: "tpu_func" }'
NEXT
