#!/usr/bin/env bash
# What a new user meets first: other kinds of files in place of a SavedModel, empty data, wrong label keys, options that
# can be left out, and errors before any work.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
samples=$glyphs/calibration.tfrecord.gz
eval=$glyphs/eval.tfrecord.gz
cd "$work" || exit 1

# ---- paths that are not SavedModels ----
printf '\x89HDF\r\n\x1a\n........' >model.h5
printf '\x1c\0\0\0TFL3........' >model.tflite
printf '\x08\x08\x12\x07pytorch\x1a\x03' >model.onnx
printf '\x0a\x12\x0a\x01x\x12\x0bPlaceholder' >frozen.pb
printf 'PK\x03\x04..........archive/data.pkl' >model.pt
printf 'PK\x03\x04..........model.weights.h5' >model.keras
printf '\x80\x02}q\0' >old.pt
printf 'PK\x03\x04..........model/archive_format' >model.pt2
printf '\x10\0\0\0\0\0\0\0{"w":{"dtype":"F32"}}' >model.safetensors
printf 'GGUF\x03\0\0\0' >model.gguf
printf '{"format": "graph-model", "modelTopology": {}}' >model.json
printf '<?xml version="1.0"?>\n<net name="x" version="11">\n\t<layers>\n' >model.xml
printf 'PK\x03\x04..........other' >model.zip
printf 'nothing known' >model.txt
printf 'module @jit_f {\n  func.func public @main() {\n' >text.mlir
printf 'HloModule jit_f, is_scheduled=true' >text.hlo
printf '\x0a\x05jit_f\x12\x06main.4\x1a\x08\x0a\x06main.4' >module.hlo.pb
printf '\x0a\x19\x0a\x05jit_f\x12\x06main.4\x1a\x08\x0a\x06main.4' >program.hlo.pb
printf '\x80\x04\x95\0jax._src.interpreters.pxla' >compiled.bin
cp "$source_dir/tests/golden/jax/dialect_stablehlo.mlirbc" .
mkdir -p served/1 && cp -r "$model"/. served/1/ && mkdir empty checkpoint && touch checkpoint/checkpoint
cp "$model/saved_model.pb" renamed.pb
while IFS='|' read -r path text; do
    expect 1 "$text" "$tare" inspect "$path"
done <<'CASES'
model.h5|this is a Keras HDF5 file (export it with keras.models.load_model(FILE).export("DIR")
model.keras|this is a Keras model file (export it with
model.tflite|this is a TensorFlow Lite model, which cannot be converted back
model.onnx|this is an ONNX model (convert it to a SavedModel
model.pt|this is a PyTorch model (export it
model.pt2|this is a PyTorch model (export it
model.safetensors|this is a file of weights without a model (load it in its framework
model.gguf|this is a file of weights without a model
model.json|this is a TensorFlow.js model (give the SavedModel that it was made from
model.xml|this is an OpenVINO model (give the SavedModel
old.pt|this is a Python pickle, probably a PyTorch model
text.mlir|this is StableHLO text (write it as a portable artifact: python3 -c
text.hlo|this is HLO text, which XLA makes while it compiles (export the function
module.hlo.pb|this is a program of HLO, which XLA makes while it compiles (export the function
program.hlo.pb|this is a program of HLO, which XLA makes
compiled.bin|this is an executable that JAX compiled, without the program (export the function
dialect_stablehlo.mlirbc|this is bytecode of the dialect stablehlo (write it as a portable artifact: python3 -c
model.zip|this is a ZIP archive (unpack it
frozen.pb|this is a frozen GraphDef (wrap it with tf.compat.v1.wrap_function
renamed.pb|this is the file of a SavedModel (name it saved_model.pb
model.txt|this is a file (expected a folder with saved_model.pb)
served|no saved_model.pb in it (did you mean served/1?)
served/1/saved_model.pb|this is a file of a SavedModel (give its folder: served/1)
served/1/variables|this is a folder of a SavedModel (give the folder above it: served/1)
checkpoint|a checkpoint has no graph
empty|no saved_model.pb and no saved_model.pbtxt in it
missing|no such directory
gs://bucket/model|copy the model first: gcloud storage cp -r gs://bucket/model .
s3://bucket/model|copy the model first: aws s3 cp --recursive s3://bucket/model model
CASES

printf 'TARECAL\n.............' >some.calib
expect 1 "not a SavedModel: this is a calibration file (give the model, and this file after --calibration)" "$tare" inspect some.calib
expect 1 "some.calib: a calibration file (expected TFRecord, NPY, NPZ, CSV, JPEG, PNG or BMP; give it after --calibration" "$tare" run "$model" --data some.calib --quiet
expect 1 "this is a SavedModel (expected records)" "$tare" run "$model" --data "$model" --quiet
expect 1 "this is a folder (expected a calibration file of tare calibrate)" "$tare" show "$model"

# ---- no records, wrong labels, nothing quantized ----
"$tare" calibrate "$model" --data "$samples" -o glyphs.calib --quiet || fail "calibrate: $?"
touch none.tfrecord
expect 1 "none.tfrecord: no records for signature serving_default" "$tare" calibrate "$model" --data none.tfrecord -o x.calib --quiet
absent x.calib
expect 1 "none.tfrecord: no records to evaluate with" "$tare" compare "$model" --calibration glyphs.calib --data none.tfrecord --quiet
expect 1 "none.tfrecord: no records" "$tare" run "$model" --data none.tfrecord --quiet --output-dir outputs
absent outputs
expect 1 "no records for signature serving_default" "$tare" quantize "$model" out --data none.tfrecord --quiet
expect 1 "none.tfrecord: no records" "$tare" dataset info none.tfrecord --quiet
expect 1 "--label clas: no record has this key (integer keys of the first record: label)" \
    "$tare" compare "$model" --calibration glyphs.calib --data "$eval" --label clas --quiet
expect 1 "none of 12 quantizable ops was quantized; reason for 12 of them: the weight has too few elements" \
    "$tare" quantize "$model" out --method weight_only --min-elements 1000000 --quiet
absent out
"$tare" quantize "$model" out --method weight_only --min-elements 1000000 --quiet --allow-unquantized || fail "--allow-unquantized: $?"
[ -d out ] && rm -rf out || fail "--allow-unquantized wrote nothing"

# ---- layers that stay float for one reason are one line ----
"$tare" quantize "$model" grouped --calibration glyphs.calib 2>log || fail "quantize: $(cat log)"
grep -qxF "block1_depthwise, block2_depthwise, block3_depthwise and 2 more (DepthwiseConv2dNative): Quantization disabled on this op: DepthwiseConv2D doesn't get any benefit of quantization in XLA." log &&
    [ "$(grep -c "disabled on this op" log)" = 1 ] || fail "reasons are not grouped: $(cat log)"

# ---- evaluation records that were calibrated with ----
"$tare" compare "$model" --calibration-data "$samples" --data "$samples" --methods float,static --limit 20 --quiet >/dev/null 2>log || fail "compare: $(cat log)"
grep -q "warning: 20 of 20 evaluation records have the same inputs as calibration samples" log || fail "no leakage found: $(cat log)"
"$tare" compare "$model" --calibration-data "$samples" --data "$eval" --methods float,static --limit 20 --quiet >/dev/null 2>log || fail "compare: $(cat log)"
grep -q "same inputs" log && fail "leakage where there is none: $(cat log)"
# A label more, another file, another order: still the same records.
"$tare" dataset split "$eval" --count 5 --names shared -o part --quiet 2>/dev/null >/dev/null || "$tare" dataset split "$eval" --count 5 -o part --quiet >/dev/null
part=$(ls part-* | head -1)
"$tare" compare "$model" --calibration-data "$samples" --calibration-data "$part" --data "$eval" --methods float,static --limit 50 --quiet >/dev/null 2>log || fail "compare: $(cat log)"
grep -q "warning: 5 of 50 evaluation records" log || fail "5 shared records: $(cat log)"

# A calibration file knows its samples as well: compare (also in JSON and on the page), shards that were merged, quantize --eval.
"$tare" calibrate "$model" --data "$samples" --shard 0/2 -o first.calib --quiet 2>/dev/null || fail "shard: $?"
"$tare" calibrate "$model" --data "$samples" --shard 1/2 -o second.calib --quiet 2>/dev/null || fail "shard: $?"
"$tare" merge first.calib second.calib -o merged.calib 2>/dev/null || fail "merge: $?"
cmp -s merged.calib glyphs.calib || fail "the digests depend on the shards"
for calibration in glyphs.calib merged.calib; do
    "$tare" compare "$model" --calibration "$calibration" --data "$samples" --methods static --limit 20 --quiet --json --report leak.html >leak.json 2>log ||
        fail "compare: $(cat log)"
    grep -q "warning: 20 of 20 evaluation records have the same inputs" log || fail "$calibration: no leakage found: $(cat log)"
    python3 -c 'import json; l = json.load(open("leak.json"))["leakage"]; assert l == {"records": 20, "shared": 20}, l' || fail "JSON: no leakage"
    grep -q "20 of 20 evaluation records have the same inputs" leak.html || fail "page: no leakage"
done
"$tare" compare "$model" --calibration glyphs.calib --data "$eval" --methods static --limit 20 --quiet --json >leak.json 2>log || fail "compare: $(cat log)"
grep -q "same inputs" log && fail "leakage where there is none: $(cat log)"
python3 -c 'import json; l = json.load(open("leak.json"))["leakage"]; assert l == {"records": 20, "shared": 0}, l' || fail "JSON: leakage"
"$tare" quantize "$model" out --calibration glyphs.calib --eval "$samples" --min-sqnr 1 --quiet >/dev/null 2>log || fail "quantize --eval: $(cat log)"
grep -q "warning: 300 of 300 evaluation records" log || fail "quantize --eval: no leakage found: $(cat log)"
rm -rf out

# ---- convert with the fewest options ----
"$tare" convert "$model" converted 2>log >report || fail "convert MODEL OUT: $(cat log)"
grep -q "no tpu_functions are named: finding them automatically" log && grep -q "^tare: wrote converted$" log && grep -q "^tare: next: tare compare $model --with converted --eval EVAL.tfrecord$" log || fail "convert says: $(cat log)"
awk '$NF == "serving_default" && $1 > 50 { found = 1 } END { exit !found }' report || fail "nothing is on the TPU: $(cat report)"
"$tare" validate converted >log || fail "validate: $(cat log)"
[ "$(cat log)" = "converted: valid" ] || fail "validate prints $(cat log)"
"$tare" convert "$model" quantized --calibration glyphs.calib 2>log >report || fail "convert --calibration: $(cat log)"
grep -qE "^[1-9][0-9]* of 12 quantizable ops quantized" log || fail "--calibration does not quantize: $(cat log)"
"$tare" convert "$model" --dry-run --json --quiet >report.json || fail "convert --json: $?"
python3 -c 'import json, sys; json.load(open("report.json"))' || fail "convert --json prints no JSON"
expect 2 "missing option '--input_model_dir' (or argument MODEL)" "$tare" convert
expect 2 "--output_model_dir is missing (or give OUT, or --dry-run)" "$tare" convert "$model"
expect 2 "are mutually exclusive" "$tare" convert "$model" x --input_model_dir="$model"

# ---- errors before work: within a second, and with the user's path ----
expect 1 "Output directory already exists: converted" "$tare" quantize "$model" converted --data "$samples" --quiet
expect 1 "Output directory already exists: converted" "$tare" convert "$model" converted --quiet
expect 1 "cannot create 'nowhere/x.calib': folder 'nowhere' does not exist" "$tare" calibrate "$model" --data "$samples" -o nowhere/x.calib --quiet
expect 1 "cannot create 'nowhere/r.html': folder 'nowhere' does not exist" "$tare" compare "$model" --calibration glyphs.calib --data "$eval" --report nowhere/r.html --quiet
expect 1 "cannot create 'empty': it is a folder" "$tare" convert "$model" x --report empty --quiet
absent x

# ---- a quantized model that is estimated slower than float ----
"$tare" quantize "$model" slower --method dynamic --quiet 2>log || fail "quantize: $(cat log)"
slower="^tare: warning: the quantized model is estimated slower than the float model on a Cloud TPU v5e: [0-9.]+ µs per example instead of [0-9.]+ "
grep -qE "$slower" log || fail "no warning: $(cat log)"
"$tare" convert "$model" slower_tpu --quiet --converter_options_string='tpu_functions { function_alias: "tpu_func" } external_feature_configs {
    quantization_options { quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } } }' 2>log >/dev/null || fail "convert: $(cat log)"
grep -qE "$slower" log || fail "convert gives no warning: $(cat log)"
grep -q "^tare: " log && grep -vq "^tare: " log && fail "convert prints other prefixes than the other commands: $(cat log)"
"$tare" quantize "$model" faster --method weight_only --quiet 2>log || fail "quantize: $(cat log)"
grep -q "slower" log && fail "a faster model gives a warning: $(cat log)"
"$tare" convert "$model" faster_tpu --method weight_only --quiet >/dev/null 2>log || fail "convert: $(cat log)"
grep -q "slower" log && fail "a faster converted model gives a warning: $(cat log)"

# ---- missing variables ----
mkdir bare && cp "$model/saved_model.pb" bare/
expect 1 "variables/variables.index is missing (copy the folder variables/ as well, or give --allow-missing-variables)" "$tare" quantize bare out --method weight_only --quiet
expect 1 "variables/variables.index is missing" "$tare" convert bare out --quiet
absent out
"$tare" convert bare out --allow-missing-variables --quiet 2>log >/dev/null || fail "--allow-missing-variables: $(cat log)"
grep -qE "^tare: warning: bare has [0-9]+ variables but no checkpoint" log || fail "--allow-missing-variables says: $(cat log)"
rm -rf out
cat >jobs.textproto <<'JOBS'
jobs { name: "bare" input: "bare" output: "out" quantize { method: "weight_only" } }
JOBS
"$tare" batch jobs.textproto --quiet >log 2>&1 && fail "batch accepts a model without variables: $(cat log)"
absent out

# ---- run without input, what inspect suggests ----
expect 2 "signature serving_default needs input (give --input image=FILE.npy, or --data FILE.tfrecord with keys image" "$tare" run "$model"
"$tare" inspect "$model" --suggest >log || fail "inspect --suggest: $?"
grep -qF "tare convert $model saved_model_tpu --converter_options_string='tpu_functions { function_alias: \"tpu_func\" }'" log || fail "--suggest: $(cat log)"
rm -rf slower_tpu
"$tare" inspect slower --suggest >log || fail "inspect --suggest: $?"
eval "$(sed -n 's/^  \(tare convert .*\)$/\1/p' log | sed 's|^tare|"$tare"|') --quiet" >/dev/null 2>log || fail "the suggested command fails: $(cat log)"
"$tare" compare "$model" --data "$eval" --limit 20 --quiet >log 2>&1 || fail "compare without calibration: $(cat log)"
grep -q "^weight_only " log && grep -q "needs representative samples (give --data SAMPLES --eval FILE, or --calibration FILE.calib)" <<<"$(tr -s ' \n' ' ' <log)" ||
    fail "compare without calibration: $(cat log)"
expect 2 "option '--bits': invalid value (expected 4 or 8, got '3')" "$tare" quantize "$model" q --method weight_only --bits 3

# ---- the same warnings from every command that calibrates ----
"$tare" dataset split "$samples" --count 20 -o few --quiet >/dev/null || fail "split: $?"
few=$(ls few-* | head -1)
for command in "calibrate $model --data $few -o few.calib" "quantize $model q1 --data $few" "compare $model --calibration-data $few --data $eval --limit 5 --methods float,static"; do
    "$tare" $command --quiet >/dev/null 2>log || fail "$command: $(cat log)"
    grep -q "warning: .*20 records" log || fail "$command does not warn of few records: $(cat log)"
done
"$tare" convert "$model" q2 --quiet --converter_options_string="external_feature_configs { quantization_options { representative_datasets { key: \"serving_default\" value { tfrecord_file_path: \"$few\" } } } }" >/dev/null 2>log || fail "convert: $(cat log)"
grep -q "warning: .*20 records" log || fail "convert does not warn of few records: $(cat log)"
finish
