#!/usr/bin/env bash
# Layer options, accuracy passes and op sets in compare and quantize.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
data=(--data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet)
samples=$glyphs/calibration.tfrecord.gz
"$tare" calibrate "$model" --data "$samples" -o "$work/c.calib" --quiet || fail "calibrate: $?"

# Accuracy passes: bias correction recovers some decibels of 4-bit weights; it needs statistics per channel.
sqnr() { "$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods "weight_only$1" --bits 4 --json | grep '"sqnr_db"' | tail -1 | grep -o '[0-9.]*'; }
plain=$(sqnr '') corrected=$(sqnr +bias_correction)
awk -v p="$plain" -v c="$corrected" 'BEGIN { exit !(c > p + 1) }' || fail "4 bits: $plain dB, corrected $corrected dB"
expect 1 "calibrate --channels" "$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --methods static+bias_correction
expect 1 "calibrate --channels" "$tare" quantize "$model" "$work/passes" --calibration "$work/c.calib" --passes bias_correction
"$tare" calibrate "$model" --data "$samples" --channels -o "$work/channels.calib" --quiet || fail "calibrate --channels: $?"
"$tare" quantize "$model" "$work/passes" --calibration "$work/channels.calib" --passes bias_correction,weight_clipping,equalization --quiet ||
    fail "quantize --passes: $?"
"$tare" run "$work/passes" --data "$glyphs/eval.tfrecord.gz" --limit 1 >/dev/null || fail "the corrected model does not run"
# GPTQ reads the samples a second time, with the same result for any number of workers and next to a calibration file.
compensated=$(sqnr +gptq)
awk -v a="$plain" -v b="$compensated" 'BEGIN { exit !(b > a + 1) }' || fail "4 bits give $plain dB, with gptq $compensated dB"
expect 1 "a calibration file holds no Hessians" "$tare" quantize "$model" "$work/x" --calibration "$work/channels.calib" --passes gptq
gptq=(--method weight_only --bits 4 --passes smooth_quant,gptq,bias_correction --quiet)
"$tare" quantize "$model" "$work/gptq1" --data "$samples" "${gptq[@]}" || fail "quantize --passes gptq: $?"
taskset -c 0 "$tare" quantize "$model" "$work/gptq2" --data "$samples" "${gptq[@]}" || fail "gptq on one processor: $?"
"$tare" quantize "$model" "$work/gptq3" --data "$samples" --calibration "$work/channels.calib" "${gptq[@]}" || fail "gptq with both: $?"
diff -r "$work/gptq1" "$work/gptq2" >/dev/null || fail "the integers of gptq depend on the workers"
diff -r "$work/gptq1" "$work/gptq3" >/dev/null || fail "the integers of gptq depend on the calibration file"
expect 2 "did you mean 'bias_correction'" "$tare" quantize "$model" "$work/x" --data "$samples" --passes bias_corection

# compare has the layer options of quantize; a recipe may need ranges for a method that does not.
layers() { "$tare" compare "$model" "${data[@]}" "$@" --json | sed -n 's/^ *"quantized_ops": \([0-9]*\),*$/\1/p' | tail -1; }
plain=$(layers --calibration "$work/c.calib" --methods static) deep=$(layers --calibration "$work/c.calib" --methods static --depthwise)
[ "$deep" -gt "$plain" ] || fail "compare --depthwise quantizes $deep layers, $plain without"
echo 'op=Conv2D -> static' >"$work/mixed"
[ "$(layers --calibration "$work/c.calib" --methods weight_only --recipe "$work/mixed")" -gt 0 ] || fail "compare --recipe"
for option in --full-range --symmetric --two-inputs --integer-adds "--op-set uniform_quantized" "--op-set tf" "--min-elements 100000"; do
    # shellcheck disable=SC2086
    layers --calibration "$work/c.calib" --methods static $option >/dev/null || fail "compare $option: $?"
done
for set in tf uniform_quantized; do
    "$tare" quantize "$model" "$work/$set" --calibration "$work/c.calib" --op-set "$set" --quiet || fail "quantize --op-set $set: $?"
    "$tare" validate "$work/$set" >/dev/null || fail "op set $set has faults"
    "$tare" run "$work/$set" --data "$glyphs/eval.tfrecord.gz" --limit 1 >/dev/null || fail "op set $set does not run"
done
# One scale per tensor is the default of the op set uniform_quantized, of which XLA does not compile much else.
"$tare" convert "$work/uniform_quantized" "$work/x" --dry-run --quiet >/dev/null || fail "convert of op set uniform_quantized: $?"
"$tare" quantize "$model" "$work/channels" --calibration "$work/c.calib" --op-set uniform_quantized --granularity per_channel --quiet ||
    fail "one scale per channel in op set uniform_quantized: $?"
"$tare" convert --input_model_dir="$work/channels" --output_model_dir="$work/x" --quiet --dry-run \
    --converter_options_string='tpu_functions { signature_name: "serving_default" }' >"$work/out" 2>&1 && fail "convert of scales per channel"
grep -q "isn't compilable for TPU device with one scale per channel" "$work/out" || fail "convert of scales per channel: $(cat "$work/out")"
"$tare" compare "$model" "${data[@]}" --calibration "$work/c.calib" --methods static:op_set=uniform_quantized,static >"$work/out" || fail "two op sets: $?"
grep -q 'static:op_set=uniform_quantized min_max per_tensor' "$work/out" && grep -q 'static min_max ' "$work/out" || fail "two op sets: $(cat "$work/out")"
"$tare" inspect "$work/tf" --functions >"$work/functions"
grep -q '^quantized_conv2d_with_bias_and_relu6_fn_0' "$work/functions" || fail "no functions of op set tf"
plain=$("$tare" compare "$model" "${data[@]}" --calibration "$work/c.calib" --methods static --depthwise --json | grep '"sqnr_db"' | tail -1 | grep -o '[0-9.]*')
wide=$("$tare" compare "$model" "${data[@]}" --calibration "$work/c.calib" --methods static --depthwise --activation-bits 16 --json | grep '"sqnr_db"' | tail -1 | grep -o '[0-9.]*')
awk -v p="$plain" -v w="$wide" 'BEGIN { exit !(w > p + 0.5) }' || fail "activations of 16 bits: $wide dB, of 8 $plain dB"
"$tare" quantize "$model" "$work/r" --calibration "$work/c.calib" --algorithm percentile:p=99 --json --dry-run 2>"$work/log" >"$work/r.json" ||
    fail "quantize --json: $?"
grep -v '^tare: warning: ' "$work/log" && fail "quantize --json also prints: $(head -1 "$work/log")"
python3 - "$work/r.json" <<'PY' || fail "quantize --json: $(head -30 "$work/r.json")"
import json, sys
r = json.load(open(sys.argv[1]))
quantized = [l for l in r["layers"] if "refused" not in l or l["refused"] is None]
assert len(quantized) == r["quantized_ops"] and len(r["layers"]) == r["quantizable_ops"] > len(quantized) > 0
assert r["weight_bytes"] < r["float_weight_bytes"] / 2
for l in quantized:
    assert l["scale"] > 0 and -128 <= l["zero_point"] <= 127 and l["weight_sqnr_db"] > 25 and l["activation_bits"] == 8
    assert len(l["weight_scales"]) == min(8, l["n_weight_scales"]) and l["rounding_mse"] > 0 and 0 <= l["clipped"] < 0.1
assert any(l["clipping_mse"] > 0 and l["clipped"] > 0 for l in quantized)
PY
expect 1 "has no activations of 16 bits" "$tare" quantize "$model" "$work/x" --method dynamic --activation-bits 16
expect 2 "expected 8 or 16, got '9'" "$tare" quantize "$model" "$work/x" --data "$samples" --activation-bits 9
expect 1 "does not exist in the op set uniform_quantized" "$tare" compare "$model" "${data[@]}" --methods weight_only --op-set uniform_quantized
finish
