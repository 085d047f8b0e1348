#!/usr/bin/env bash
# Weights that stay variables: the integers are in the checkpoint under the old names, the model has no fault and runs, and
# its answers are those of the model whose weights became constants (batch normalisation was not folded: nearly).
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
eval=$glyphs/eval.tfrecord.gz

size() { stat -c %s "$1"/variables/variables.data-00000-of-00001; }
float=$(size "$glyphs/saved_model")

for options in "--bits 8" "--bits 4 --granularity per_block:32" "--bits 8 --granularity per_tensor" "--op-set tf" "--op-set uniform_quantized"; do
    for method in weight_only dynamic static; do
        [ $method != weight_only ] && [[ "$options" == *block* ]] && continue
        [ $method = weight_only ] && [[ "$options" == *op-set* ]] && continue
        [ $method = static ] && options="$options --data $glyphs/calibration.tfrecord.gz --limit 50"
        "$tare" quantize "$glyphs/saved_model" "$work/kept" --method $method --min-elements 64 --overwrite --keep-variables \
            $options 2>"$work/report" || fail "quantize $method $options: $(tail -1 "$work/report")"
        grep -q '^0 of\|is a variable' "$work/report" && fail "$method $options: nothing was quantized"
        "$tare" quantize "$glyphs/saved_model" "$work/frozen" --method $method --min-elements 64 --overwrite --quiet $options ||
            fail "quantize $method $options, frozen"
        "$tare" validate "$work/kept" >"$work/faults" 2>&1 || fail "$method $options: $(head -1 "$work/faults")"
        [ "$(size "$work/kept")" -lt $((float / 2)) ] || fail "$method $options: $(size "$work/kept") bytes of $float"
        for model in kept frozen; do
            "$tare" compare "$work/$model" --data "$eval" --limit 200 --methods float --json >"$work/$model.json" 2>/dev/null ||
                fail "$method $options: compare $model"
        done
        top1() { sed -n '/"results"/,$p' "$work/$1.json" | awk '$1 == "\"top1\":" { gsub(",", "", $2); print $2; exit }'; }
        awk -v a="$(top1 kept)" -v b="$(top1 frozen)" 'BEGIN { exit !(a > 0.9 && a > b - 0.011 && a < b + 0.011) }' ||
            fail "$method $options: top-1 is $(top1 kept), frozen $(top1 frozen)"
    done
done

# One calibration serves both choices, and no other model's does: tensors have the same values, though batch normalisation is a part
# of the weights in one and an op of its own in the other.
"$tare" calibrate "$glyphs/saved_model" --data "$glyphs/calibration.tfrecord.gz" --limit 50 -o "$work/plain.calib" --quiet 2>/dev/null ||
    fail "calibrate"
for op_set in xla tf uniform_quantized; do
    for source in "--calibration $work/plain.calib" "--data $glyphs/calibration.tfrecord.gz --limit 50"; do
        "$tare" quantize "$glyphs/saved_model" "$work/kept" --method static --op-set $op_set --overwrite --keep-variables $source \
            2>"$work/report" || fail "static $op_set $source: $(tail -1 "$work/report")"
        awk '$3 == "static" { print $1, $4, $5 }' "$work/report" >"$work/inputs.${source:2:4}"
        "$tare" compare "$work/kept" --data "$eval" --limit 200 --methods float --json >"$work/kept.json" 2>/dev/null || fail "compare"
        awk -v a="$(top1 kept)" 'BEGIN { exit !(a > 0.9) }' || fail "static $op_set $source: top-1 is $(top1 kept)"
    done
    [ -s "$work/inputs.cali" ] || fail "static $op_set: nothing was quantized"
    # scales and zero points of inputs, by layer: those of float tensors that differ by rounding alone
    awk 'NR == FNR { scale[$1] = $2; zero[$1] = $3; n++; next }
        { d = scale[$1] / $2; if (d < 0.9999 || d > 1.0001 || zero[$1] - $3 > 1 || $3 - zero[$1] > 1) { print; bad = 1 } else n-- }
        END { exit bad || n }' "$work/inputs.cali" "$work/inputs.data" >"$work/differ" || fail "$op_set: other inputs: $(cat "$work/differ")"
done
"$tare" quantize "$glyphs/saved_model" "$work/other" --method weight_only --quiet || fail "weight_only"
"$tare" calibrate "$work/other" --data "$glyphs/calibration.tfrecord.gz" --limit 50 -o "$work/other.calib" --quiet 2>/dev/null ||
    fail "calibrate the other"
expect 1 "other.calib: this is the calibration of another model" "$tare" quantize "$glyphs/saved_model" "$work/kept" --method static \
    --overwrite --keep-variables --calibration "$work/other.calib" --quiet
finish
