#!/usr/bin/env bash
# --format fp8_e4m3 and fp8_e5m2: models whose weights and activations are eight-bit floats, with their accuracy, their
# conversion for a TPU, and modules whose products have float8 operands.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model

python3 - <<'PY' || skip "no NumPy"
import numpy
numpy.save("image.npy", numpy.random.default_rng(5).random((3, 28, 28, 1), numpy.float32))
PY
"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o c.calib --quiet || fail "calibrate: $?"
"$tare" run "$model" --input image=image.npy --output-dir plain --quiet >/dev/null || fail "run: $?"

# outputs A B MOST: the probabilities in both folders differ by at most MOST.
outputs() {
    python3 - "$1" "$2" "$3" <<'PY' || fail "outputs of $1 and $2"
import sys, glob, numpy
a, b = (numpy.load(glob.glob(folder + "/*.npy")[0]) for folder in sys.argv[1:3])
assert a.shape == b.shape == (3, 10), (a.shape, b.shape)
assert abs(a - b).max() <= float(sys.argv[3]), abs(a - b).max()
PY
}

for options in "fp8" "fp8_dynamic" "fp8_weight_only" "static --format fp8_e5m2"; do
    rm -rf quantized converted found ours
    # shellcheck disable=SC2086
    "$tare" quantize "$model" quantized --method $options --calibration c.calib --json >report.json 2>/dev/null ||
        fail "quantize --method $options: $?"
    format=fp8_e4m3 element=f8E4M3FN
    [[ $options == *e5m2 ]] && format=fp8_e5m2 element=f8E5M2
    python3 - "$format" <<'PY' || fail "$options: report: $(cat report.json)"
import json, sys
text = open("report.json").read()
assert text.count('"format": "%s"' % sys.argv[1]) >= 5
json.loads(text)
PY
    "$tare" validate quantized >/dev/null || fail "$options: the model is not valid"
    "$tare" run quantized --input image=image.npy --output-dir found --quiet >/dev/null || fail "$options: run: $?"
    outputs plain found 0.25
    # weights of 1 byte, in the converted model as well
    "$tare" convert quantized converted --tpu_functions auto --quiet --converter_options_string 'bfloat16_optimization: DISABLED' \
        >/dev/null || fail "$options: convert: $?"
    "$tare" run converted --input image=image.npy --output-dir ours --quiet >/dev/null || fail "$options: run converted: $?"
    outputs found ours 0
    for folder in quantized converted; do
        [ "$(cat $folder/saved_model.pb $folder/variables/* 2>/dev/null | wc -c)" -lt 150000 ] || fail "$options: $folder is not smaller"
    done
    "$tare" export quantized module.mlirbc --batch 3 --quiet || fail "$options: export: $?"
    "$tare" inspect module.mlirbc --functions >text || fail "$options: inspect: $?"
    rm -rf exported
    "$tare" run module.mlirbc --input arg0=image.npy --output-dir exported --quiet >/dev/null || fail "$options: run the module: $?"
    outputs found exported 0
    products=$(grep -c "stablehlo.*x$element>, tensor.*x$element>) -> tensor.*xf32>" text)
    if [ "$options" = fp8_weight_only ]; then
        grep -q "stablehlo.convert.*x$element>) -> tensor.*xf32>" text || fail "$options: no weights in float8"
    else
        [ "$products" -ge 5 ] || fail "$options: $products products of float8: $(grep convolution text | head -3)"
    fi
done

# Rules of single layers, and settings that are those of integers.
"$tare" quantize "$model" mixed --method fp8 --rule 'op=MatMul -> static bits=8' --calibration c.calib --json >report.json 2>/dev/null ||
    fail "quantize with a rule: $?"
[ "$(grep -c '"format": "int8"' report.json)" -eq 1 ] || fail "the rule: $(cat report.json)"
expect 1 "format fp8_e4m3 with 4 bits (expected bits=8, or format=int4)" "$tare" quantize "$model" no --format fp8_e4m3 --bits 4 --calibration c.calib
expect 1 "format fp8_e5m2 exists in the op set xla only (omit --op-set)" "$tare" quantize "$model" no --format fp8_e5m2 --op-set tf --calibration c.calib
expect 1 "algorithm entropy compares integers, which format fp8_e4m3 has not" "$tare" quantize "$model" no --method fp8 --algorithm entropy --calibration c.calib
expect 2 "format is 'fp9' (expected int8, int4, fp8_e4m3 or fp8_e5m2)" "$tare" quantize "$model" no --format fp9 --calibration c.calib
absent no

# Rows of a comparison, with the accuracy passes that rest on statistics.
"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o channels.calib --channels --quiet || fail "calibrate --channels: $?"
"$tare" compare "$model" --calibration channels.calib --data "$glyphs/eval.tfrecord.gz" --limit 200 \
    --methods "static,fp8,fp8+bias_correction,fp8+weight_clipping" --algorithms min_max,mse --quiet >table 2>&1 || fail "compare: $? $(cat table)"
for row in "static:format=fp8_e4m3 min_max" "static:format=fp8_e4m3 mse" "static:format=fp8_e4m3+bias_correction min_max" \
    "static:format=fp8_e4m3+weight_clipping mse"; do
    grep -qF -- "$row" table || fail "no row $row: $(cat table)"
done

# Chips: TPU7x multiplies float8 twice as fast as bfloat16 and has no int8 units, v5e has no float8 units.
chip() { "$tare" compare "$model" --calibration c.calib --data "$glyphs/eval.tfrecord.gz" --limit 20 "$@" >table 2>err || fail "compare $*: $? $(cat err)"; }
chip --chip tpu7x
grep -q '^static:format=fp8_e4m3 ' table && ! grep -q '^static min_max' table || fail "the default rows of tpu7x: $(cat table)"
! grep -q ' units' err || fail "a warning of units: $(cat err)"
chip --chip tpu7x --methods static
grep -qF 'a Cloud TPU tpu7x has no int8 units: integers save memory only (it has float8 units: --format fp8_e4m3, in the module that tare export writes)' err || fail "no warning of int8: $(cat err)"
chip --methods fp8
grep -qF 'a Cloud TPU v5e has no float8 units: float8 saves memory only (it has int8 units: --format int8)' err || fail "no warning of float8: $(cat err)"
export TARE_TPU_COMPILER=none
"$tare" quantize "$model" for_chip --calibration c.calib --for tpu7x --write-recipe recipe >out 2>&1 || fail "quantize --for tpu7x: $? $(cat out)"
grep -qF 'a Cloud TPU tpu7x multiplies float8 fastest: --format fp8_e4m3 was chosen' out && grep -q 'format=fp8_e4m3' recipe || fail "--for tpu7x: $(cat out recipe)"
"$tare" quantize "$model" for_chip --calibration c.calib --for tpu7x --format int8 --overwrite >out 2>&1 || fail "quantize --format int8: $? $(cat out)"
grep -qF 'a Cloud TPU tpu7x has no int8 units' out && ! grep -qF 'was chosen' out || fail "--format int8 is kept: $(cat out)"
# The automatic choice tries no algorithm that compares integers.
"$tare" quantize "$model" chosen --data "$glyphs/calibration.tfrecord.gz" --auto --format fp8_e4m3 --write-recipe chosen.recipe --quiet \
    >out 2>err || fail "quantize --auto: $(cat err)"
! grep -q entropy chosen.recipe && "$tare" validate chosen >out || fail "the choice: $(cat chosen.recipe out)"
finish
