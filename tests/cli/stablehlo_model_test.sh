#!/usr/bin/env bash
# Networks exported from JAX (XlaCallModule): outputs equal the recorded ones, and calibration, quantization and conversion work
# as for the same network of TensorFlow ops.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
need_data stablehlo/models stablehlo/references/REFERENCES.tsv
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2>/dev/null && echo "$p" && break; done)
[ -n "$python" ] || skip "needs python3-numpy"
models=$test_data/stablehlo/models references=$test_data/stablehlo/references

checked=0
while IFS=$'\t' read -r model signature output file _ _ _ _ tolerance _; do
    case $model in jaxdata_cpu_svd_* | jaxdata_cpu_schur_* | jaxdata_tpu_stablehlo_dynamic_reduce_window_*) continue ;; esac # not determined
    "$tare" run "$models/$model" --data "$references/$model/$signature/inputs.tfrecord.gz" --signature "$signature" \
        --output-dir "$work/$model" --quiet >/dev/null 2>"$work/err" || { fail "run $model: $(cat "$work/err")"; continue; }
    "$python" - "$work/$model/$output.npy" "$references/$model/$signature/$file" "$tolerance" <<'PYTHON' || fail "$model: other outputs"
import sys
import numpy as np
got, expected = np.load(sys.argv[1]), np.load(sys.argv[2])
assert got.size == expected.size, (got.shape, expected.shape)
difference = np.abs(got.reshape(-1).astype(np.complex128) - expected.reshape(-1)).max()
assert difference <= float(sys.argv[3]), difference
PYTHON
    checked=$((checked + 1))
done <"$references/REFERENCES.tsv"
[ "$checked" -ge 29 ] || fail "only $checked outputs were checked"

model=$models/jax_resnet8_poly data=$references/jax_resnet8_poly/serving_default/inputs.tfrecord.gz
"$tare" calibrate "$model" --data "$data" -o "$work/c.calib" --quiet 2>"$work/err" || fail "calibrate: $(cat "$work/err")"
"$tare" quantize "$model" "$work/int8" --calibration "$work/c.calib" --quiet >/dev/null 2>"$work/err" || fail "quantize: $(cat "$work/err")"
"$tare" inspect "$work/int8" --ops >"$work/ops"
grep -q ' 9 XlaConvV2$' "$work/ops" && ! grep -q XlaCallModule "$work/ops" || fail "not every convolution is quantized: $(cat "$work/ops")"
"$tare" convert --input_model_dir="$model" --output_model_dir="$work/tpu" --quiet \
    --converter_options_string='tpu_functions { signature_name: "serving_default" }' >/dev/null 2>"$work/err" || fail "convert: $(cat "$work/err")"
for out in int8 tpu; do
    "$tare" validate "$work/$out" >/dev/null || fail "$out is not valid"
    "$tare" run "$work/$out" --data "$data" --output-dir "$work/$out.out" --quiet >/dev/null || fail "run $out"
done

# The layers, their scales and their errors are those of the same network of TensorFlow ops.
layers() { sed -n 's/ \(Conv2D\|MatMul\) .*static /&/; s/^[^ ]* *\(Conv2D\|MatMul\)/\1/p' "$1"; }
twin=$test_data/models/resnet8_cifar10 twin_data=$test_data/references/resnet8_cifar10/serving_default/inputs.tfrecord.gz
if [ -e "$twin" ]; then
    "$tare" calibrate "$twin" --data "$twin_data" -o "$work/twin.calib" --quiet || fail "calibrate the twin"
    "$tare" quantize "$twin" "$work/twin" --calibration "$work/twin.calib" >/dev/null 2>"$work/twin.report" || fail "quantize the twin"
    "$tare" quantize "$model" "$work/int8" --calibration "$work/c.calib" --overwrite >/dev/null 2>"$work/report" || fail "quantize: $(cat "$work/report")"
    [ "$(layers "$work/report" | wc -l)" -eq 10 ] || fail "not 10 layers: $(cat "$work/report")"
    cmp -s <(layers "$work/report") <(layers "$work/twin.report") || fail "other layers than the twin: $(diff "$work/report" "$work/twin.report")"
    "$tare" run "$work/twin" --data "$twin_data" --output-dir "$work/twin.out" --quiet >/dev/null || fail "run the twin"
    "$tare" run "$work/int8" --data "$data" --output-dir "$work/twin.got" --quiet >/dev/null || fail "run"
    cmp -s "$work/twin.out/dense.npy" "$work/twin.got/output_0.npy" || fail "the int8 model computes other bits than its twin"
fi
# Weights that stay variables are read where they are used: the same layers and bits as with constants.
encoder=$models/jax_encoder_poly encoder_data=$references/jax_encoder_poly/serving_default/inputs.tfrecord.gz
for kept in "" --keep-variables; do
    "$tare" quantize "$encoder" "$work/kept$kept" --method dynamic $kept --quiet >/dev/null 2>"$work/err" || fail "quantize $kept: $(cat "$work/err")"
    "$tare" validate "$work/kept$kept" >/dev/null || fail "quantize $kept: not valid"
    "$tare" run "$work/kept$kept" --data "$encoder_data" --output-dir "$work/kept$kept.out" --quiet >/dev/null || fail "run $kept"
done
cmp -s "$work/kept.out/output_0.npy" "$work/kept--keep-variables.out/output_0.npy" || fail "kept variables change the outputs"

"$tare" copy "$model" "$work/copy" --quiet 2>/dev/null || "$tare" copy "$model" "$work/copy" || fail "copy: $?"
cmp -s "$model/saved_model.pb" "$work/copy/saved_model.pb" || fail "a copy does not keep the module"

# Every method on a network of products and one of attention: NAME, least signal-to-noise ratio in dB (2 to 3 below what was measured),
# options.
sqnr() { "$tare" diff "$1" "$2" 2>/dev/null | awk '/[.]npy/ { print $5 == "exact" ? 999 : int($5); exit }'; }
while read -r name least settings; do
    source=$models/$name data=$references/$name/serving_default/inputs.tfrecord.gz
    case $settings in *gptq*) samples=(--data "$data") ;; *static*) samples=(--calibration "$work/$name.calib") ;; *) samples=() ;; esac
    [ -e "$work/$name.calib" ] || "$tare" calibrate "$source" --data "$data" -o "$work/$name.calib" --quiet 2>"$work/err" || fail "calibrate $name: $(cat "$work/err")"
    read -ra options <<<"$settings"
    "$tare" quantize "$source" "$work/method" "${options[@]}" "${samples[@]}" --quiet --overwrite >/dev/null 2>"$work/err" || fail "$name $settings: $(cat "$work/err")"
    "$tare" validate "$work/method" >/dev/null || fail "$name $settings: not valid"
    rm -rf "$work/method.out"
    "$tare" run "$work/method" --data "$data" --output-dir "$work/method.out" --quiet >/dev/null 2>"$work/err" || fail "run $name $settings: $(cat "$work/err")"
    got=$(sqnr "$work/$name" "$work/method.out")
    [ "${got:-0}" -ge "$least" ] || fail "$name $settings: $got dB (expected at least $least)"
done <<'METHODS'
jax_mlp_poly 34 --method static
jax_mlp_poly 34 --method dynamic
jax_mlp_poly 35 --method weight_only
jax_mlp_poly 10 --method weight_only --bits 4
jax_mlp_poly 40 --method static --passes gptq
jax_encoder_poly 43 --method static
jax_encoder_poly 47 --method dynamic
jax_encoder_poly 49 --method weight_only
jax_encoder_poly 25 --method weight_only --bits 4 --granularity per_block:32
jax_encoder_b2 45 --method static --passes gptq
METHODS
for name in jax_encoder_poly jax_mlp_b1; do
    "$tare" convert "$models/$name" "$work/tpu.$name" --quiet >/dev/null 2>"$work/err" || fail "convert $name: $(cat "$work/err")"
    "$tare" validate "$work/tpu.$name" >/dev/null || fail "convert $name: not valid"
    "$tare" unwrap "$models/$name" "$work/plain.$name" --quiet 2>"$work/err" || fail "unwrap $name: $(cat "$work/err")"
    "$tare" run "$work/plain.$name" --data "$references/$name/serving_default/inputs.tfrecord.gz" --output-dir "$work/plain.out.$name" --quiet >/dev/null &&
        "$tare" diff "$work/$name" "$work/plain.out.$name" >/dev/null || fail "unwrap $name: other outputs"
done
finish
