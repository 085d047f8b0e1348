#!/usr/bin/env bash
# tare compare --with: converted and quantized models next to the float model on the same records, errors before the first
# record, and a model that fails in the middle.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model
data=(--data "$glyphs/eval.tfrecord.gz" --limit 200 --quiet)
"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o glyphs.calib --quiet || fail "calibrate: $?"
"$tare" convert "$model" int8_tpu --calibration glyphs.calib --quiet >/dev/null || fail "convert: $?"
"$tare" quantize "$model" weights --method weight_only --quiet || fail "quantize: $?"
"$tare" copy "$model" same >/dev/null || fail "copy: $?"

# ---- one command checks a converted model ----
"$tare" compare "$model" --with int8_tpu/ --with weights --with same "${data[@]}" --json --report page.html >given.json || fail "--with: $?"
"$tare" compare "$model" --with int8_tpu "${data[@]}" >table || fail "--with: $?"
"$tare" compare "$model" "${data[@]}" --methods weight_only,static --calibration glyphs.calib --json >method.json || fail "--methods: $?"
"$tare" compare weights "${data[@]}" --methods float --json >alone.json || fail "alone: $?"
python3 - given.json method.json alone.json page.html table <<'PY' || fail "given models: $(cat table)"
import json, sys
given, method, alone = (json.load(open(path)) for path in sys.argv[1:4])
page, table = open(sys.argv[4]).read(), open(sys.argv[5]).read()
float_row, tpu, weights, same = given["results"]
assert [tpu["path"], weights["path"], same["path"]] == ["int8_tpu/", "weights", "same"] and "path" not in float_row
assert [tpu["method"], weights["method"], same["method"]] == ["int8_tpu", "weights", "same"]
assert same["sqnr_db"] is None and same["answers_hash"] == float_row["answers_hash"], same
assert tpu["size_bytes"] < float_row["size_bytes"] / 2 and 20 < tpu["sqnr_db"] < 60, tpu
# Without its placement it has the ops of the quantized model, and bfloat16 between them.
assert abs(tpu["tpu_seconds"] / method["results"][2]["tpu_seconds"] - 1) < 0.1, (tpu["tpu_seconds"], method["results"][2]["tpu_seconds"])
# A written model has the figures of the method that wrote it.
assert weights["answers_hash"] == method["results"][1]["answers_hash"] == alone["results"][0]["answers_hash"]
assert weights["top1"] == method["results"][1]["top1"] and "gained" in weights
assert given["measure"]["margin"] == 1 and given["measure"]["results"][2]["difference_low"] <= 0, given["measure"]
assert weights["tpu_seconds"] > 0
assert len(given["measure"]["results"]) == 4 and given["manifest"]["model int8_tpu"] == "int8_tpu/"
assert "same: the outputs are those of float" in given["verdict"] and given["verdict"].count(" may lose more than ") == 2, given["verdict"]
for name in "int8_tpu", "weights", "same":
    assert name in page
assert "Recommended" not in table and "int8_tpu: may lose more than 1 percentage point of top-1 (" in " ".join(table.split())
PY
"$tare" compare "$model" --with int8_tpu "${data[@]}" --methods weight_only --dry-run >plan || fail "--dry-run: $?"
grep -q "would run 3 models over 200 records" plan && grep -q "^models: float, weight_only per_channel, int8_tpu" plan || fail "plan: $(cat plan)"

# inspect recognizes the converted model.
"$tare" inspect int8_tpu >log || fail "inspect: $?"
grep -q "^already converted for TPU: 1 TPUPartitionedCall$" log || fail "inspect of a converted model: $(cat log)"
grep -q "cannot compile" log && fail "TPU ops are listed as incompatible: $(cat log)"

# What was quantized before it was converted is not called float.
"$tare" convert weights weights_tpu 2>log >/dev/null || fail "convert: $(cat log)"
[ "$(tail -n 1 log)" = "tare: next: tare compare $(realpath --relative-to=. "$model") --with weights_tpu --eval EVAL.tfrecord" ] ||
    fail "the recorded float model is not named: $(cat log)"
"$tare" inspect weights_tpu >log || fail "inspect: $?"
grep -qxF "  made from   $(realpath --relative-to=. "$model")" log || fail "inspect: no float model: $(cat log)"
"$tare" compare weights --with weights_tpu "${data[@]}" --limit 5 >log 2>&1 || fail "compare with a quantized model: $?"
grep -q "^tare: warning: 'weights' is quantized: .* (made from $(realpath --relative-to=. "$model"))\$" log || fail "no warning: $(cat log)"
mkdir moved && cp -r weights moved/ && rm moved/weights/assets.extra/tare_made_from
"$tare" convert moved/weights moved_tpu 2>log >/dev/null || fail "convert: $(cat log)"
[ "$(tail -n 1 log)" = 'tare: next: tare compare FLOAT_MODEL --with moved_tpu --eval EVAL.tfrecord' ] ||
    fail "a quantized model without a record is taken for float: $(cat log)"
cp -r weights moved/again && echo ../nowhere >moved/again/assets.extra/tare_made_from
"$tare" inspect moved/again >log || fail "inspect: $?"
grep -q 'made from' log && fail "a model that is not there: $(cat log)"
"$tare" convert weights weights_tpu --float "$model" --overwrite 2>log >/dev/null || fail "convert --float: $(cat log)"
grep -qxF "tare: next: tare compare $model --with weights_tpu --eval EVAL.tfrecord" log || fail "the float model is not named: $(cat log)"

# The last part of the path is the name, or the path if that is ambiguous.
mkdir other && cp -r weights other/weights
"$tare" compare "$model" --with weights --with other/weights "${data[@]}" --limit 5 >log || fail "same names: $?"
grep -q '^weights ' log && grep -q '^other/weights ' log || fail "names: $(cat log)"

# ---- errors before the first record ----
cat >other/saved_model.pbtxt <<'MODEL'
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def { node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "y" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } } }
  signature_def { key: "serving_default" value {
    inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } }
    outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } } method_name: "tensorflow/serving/predict" } }
}
MODEL
python3 -c "
import struct
header = \"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\\n\"
open('nan.npy', 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(header)) + header.encode() + struct.pack('<6f', 1, 2, float('nan'), 4, 5, 6))
" || fail "nan.npy"
mkdir rows && sed 's/dim { size: 2 }/dim { size: -1 } dim { size: 2 }/g' other/saved_model.pbtxt >rows/saved_model.pbtxt
"$tare" compare rows --input x=nan.npy --methods float >/dev/null 2>log || fail "compare with NaN: $?"
grep -q "warning: output y of the float model has 1 elements that are NaN, which are not compared" log || fail "no warning of NaN: $(cat log)"
mkdir renamed && sed 's/key: "x" value { name/key: "image" value { name/' other/saved_model.pbtxt >renamed/saved_model.pbtxt
mkdir unsigned && sed 's/serving_default/another/' other/saved_model.pbtxt >unsigned/saved_model.pbtxt
expect 1 "missing: no such directory" "$tare" compare "$model" --with missing "${data[@]}"
expect 1 "other: signature serving_default has the input 'x', which the compared model does not have" "$tare" compare "$model" --with other "${data[@]}"
expect 1 "renamed: signature serving_default has no output 'probabilities', which the compared model has" "$tare" compare "$model" --with renamed "${data[@]}"
expect 1 "unsigned: there is no signature 'serving_default', which the compared model has" "$tare" compare "$model" --with unsigned "${data[@]}"

expect 2 "--data -: a pipe can be read only once, but each of 2 models reads the records" "$tare" compare "$model" --with int8_tpu --data - --quiet </dev/null
gzip -dc "$glyphs/eval.tfrecord.gz" | "$tare" compare "$model" --methods float --data - --quiet >log || fail "one model reads a pipe: $?"

# ---- a failure in the middle keeps the finished rows ----
cp -r same broken
printf 'damage' | dd of=broken/variables/variables.data-00000-of-00001 bs=1 seek=1000 conv=notrunc status=none
"$tare" compare "$model" --with int8_tpu --with broken --with weights "${data[@]}" --methods static,weight_only --calibration glyphs.calib \
    --report rest.json >rest.out 2>log && fail "a damaged model is not an error"
[ "$(wc -l <log)" = 1 ] && grep -q "^tare: broken: variable .*Checksum" log || fail "damaged model: $(cat log)"
python3 - rest.json rest.out <<'PY' || fail "rows that were finished: $(cat rest.out)"
import json, sys
rest, out = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
assert [x["method"] for x in rest["results"]] == ["float", "int8_tpu", "weights", "static", "weight_only"], rest["results"]
assert [x["method"] for x in rest["skipped"]] == ["broken"] and rest["skipped"][0]["reason"].startswith("variable ") and "Checksum" in rest["skipped"][0]["reason"]
assert "\nnot measured\nbroken: " in out and "\nweight_only " in out
PY
finish
