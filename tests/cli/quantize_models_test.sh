#!/usr/bin/env bash
# Real models through every quantization method and op set: each has layers to quantize, the written model has no fault, runs,
# and the outputs of weight-only int8 have more than 20 dB. TARE_SWEEP=full takes every model with recorded inputs, in every
# op set and with --keep-variables as well, and prints a table; TARE_CHECKER names a second checker of SavedModels to run
# on what is written (python3 FILE MODEL, "0 faults").
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
need_data models
data=$test_data
short="autoencoder_ad mlperf-tiny-kws mobilenet_vww resnet8_cifar10 scisharp-lstm tfx-taxi-serving vespa-mnist"
least=20 # dB of weight-only int8

models=$short
[ "${TARE_SWEEP:-short}" = full ] && models=$(ls "$data/references")

# field KEY METHOD: of the first result of the method in $work/compare.json
field() {
    sed -n '/"results"/,$p' "$work/compare.json" | awk -v key="\"$1\":" -v method="\"$2\"," '
        $1 == "\"method\":" { hit = $2 == method }
        hit && $1 == key { sub(/^[^:]*: */, ""); sub(/,$/, ""); print; exit }'
}

# check MODEL SIGNATURE INPUTS METHOD OP_SET OPTION…: sets `quantized` to "N of M"
check() {
    local out=$work/quantized status=0
    local calibration=()
    [ "$4" = static ] && calibration=(--calibration "$work/c.calib")
    "$tare" quantize "$data/models/$1" "$out" --method "$4" --op-set "$5" --overwrite --allow-unquantized "${calibration[@]}" "${@:6}" 2>"$work/report" ||
        { fail "$1: quantize --method $4 --op-set $5 ${*:6}: $(tail -1 "$work/report")"; return; }
    quantized=$(sed -n 's/^\([0-9]* of [0-9]*\) quantizable ops quantized$/\1/p' "$work/report")
    [ "${quantized%% *}" = 0 ] && return
    [ "$valid" = no ] || "$tare" validate "$out" >"$work/faults" 2>&1 || fail "$1: $4, $5 ${*:6}: $(head -1 "$work/faults")"
    "$tare" run "$out" --signature "$2" --data "$3" --output-dir "$work/outputs" --per-record 2>"$work/error" ||
        fail "$1: $4, $5 ${*:6} does not run: $(tail -1 "$work/error")"
    [ -n "${TARE_CHECKER:-}" ] || return
    python3 "$TARE_CHECKER" "$out" >"$work/faults" 2>&1
    [ "$(tail -1 "$work/faults" | sed -n 's/ faults$//p')" -le "$original" ] || fail "$1: $4, $5 ${*:6}: $(tail -1 "$work/faults"): $(head -1 "$work/faults")"
}

for model in $models; do
    [ -d "$data/models/$model" ] || continue
    for inputs in "$data/references/$model"/*/inputs.tfrecord.gz; do
        [ -f "$inputs" ] || continue
        signature=$(basename "$(dirname "$inputs")")
        "$tare" quantize "$data/models/$model" "$work/quantized" --method weight_only --min-elements 1 --overwrite \
            2>"$work/report" || continue
        grep -q '^0 of' "$work/report" && continue # nothing to quantize
        "$tare" compare "$data/models/$model" --signature "$signature" --data "$inputs" --calibration-data "$inputs" \
            --methods static,dynamic,weight_only --json >"$work/compare.json" 2>"$work/error" ||
            { fail "$model, $signature: compare: $(tail -1 "$work/error")"; continue; }
        "$tare" calibrate "$data/models/$model" --signature "$signature" --data "$inputs" -o "$work/c.calib" --quiet \
            2>"$work/error" || { fail "$model, $signature: calibrate: $(tail -1 "$work/error")"; continue; }
        # The loop of the LSTM is unrolled in all rows: the float model is not estimated as one iteration.
        [ "$model" != scisharp-lstm ] || awk -v f="$(field tpu_seconds float)" -v q="$(field tpu_seconds static)" 'BEGIN { exit !(q > f / 2 && q < 2 * f) }' ||
            fail "$model: estimated $(field tpu_seconds static) s when quantized, $(field tpu_seconds float) s in float"
        original=0 # faults that the model came with are not the quantization's
        [ -n "${TARE_CHECKER:-}" ] && original=$(python3 "$TARE_CHECKER" "$data/models/$model" 2>&1 | sed -n 's/ faults$//p')
        "$tare" validate "$data/models/$model" >/dev/null 2>&1 && valid=yes || valid=no
        line=$model,$signature
        for method in static dynamic weight_only; do
            check "$model" "$signature" "$inputs" $method xla
            line="$line | $method ${quantized:-?}: $(field sqnr_db $method) dB"
        done
        if [ "${TARE_SWEEP:-short}" = full ] || [[ " mlperf-tiny-kws scisharp-lstm " == *" $model "* ]]; then
            for set in tf uniform_quantized; do
                for method in static dynamic; do
                    check "$model" "$signature" "$inputs" $method $set
                    line="$line | $set $method ${quantized:-?}"
                done
            done
            for set in xla tf uniform_quantized; do
                for method in static dynamic weight_only; do
                    [ $method = weight_only ] && [ $set != xla ] && continue
                    check "$model" "$signature" "$inputs" $method $set --keep-variables
                    line="$line | kept $set $method ${quantized:-?}"
                done
            done
        fi
        sqnr=$(field sqnr_db weight_only)
        awk -v x="${sqnr:-null}" -v least=$least 'BEGIN { exit !(x == "null" || x == "" || x > least) }' ||
            fail "$model, $signature: weight_only has $sqnr dB (expected more than $least)"
        [ "${TARE_SWEEP:-short}" = full ] && echo "$line"
    done
done
# A float model that becomes larger: functions that run on both sides are stored twice.
"$tare" convert "$data/models/tfx-tft-v2" "$work/twice" --allow-incompatible --keep-variables --quiet \
    --converter_options_string 'tpu_functions { signature_name: "serving_default" }' >/dev/null 2>"$work/stderr" || fail "convert tfx-tft-v2: $?"
grep -q 'twice takes .* MB, more than its input (.* MB): functions that run on both the CPU and the TPU are stored twice' "$work/stderr" ||
    fail "convert tfx-tft-v2 gives no warning of the size: $(cat "$work/stderr")"
"$tare" convert "$data/models/mobilenet_vww" "$work/once" --tpu_functions auto --quiet >/dev/null 2>"$work/stderr" || fail "convert mobilenet_vww: $?"
grep -q 'more than its input' "$work/stderr" && fail "convert mobilenet_vww warns: $(cat "$work/stderr")"
# TensorFlow 1 models cannot be converted: nothing suggests it
"$tare" inspect "$data/models/mlnet-matmul" >/dev/null 2>"$work/hints" || fail "inspect: $(cat "$work/hints")"
"$tare" quantize "$data/models/mlnet-matmul" "$work/tf1" --method weight_only --allow-unquantized 2>>"$work/hints" ||
    fail "quantize: $(cat "$work/hints")"
"$tare" calibrate "$data/models/mlnet-matmul" --data "$data/references/mlnet-matmul/serving_default/inputs.tfrecord.gz" -o "$work/tf1.calib" 2>"$work/log" ||
    fail "calibrate: $(cat "$work/log")"
grep -q "/mlnet-matmul is of TensorFlow 1: 'tare quantize' takes it, 'tare convert' does not$" <<<"$(head -1 "$work/log")" ||
    fail "calibrate does not say before the work that the model is of TensorFlow 1: $(cat "$work/log")"
cat "$work/log" >>"$work/hints"
grep "next: tare convert" "$work/hints" && fail "a TensorFlow 1 model should be converted: $(cat "$work/hints")"
finish
