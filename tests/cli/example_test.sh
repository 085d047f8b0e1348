#!/usr/bin/env bash
# The main job on the bundled example: the figures of the float model are those recorded by its trainer, quantization costs
# little, and the converted model gives the same bits as the quantized one.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
calibration=$glyphs/calibration.tfrecord.gz
eval=$glyphs/eval.tfrecord.gz

"$tare" compare "$glyphs/saved_model" --calibration-data "$calibration" --data "$eval" --depthwise --json \
    --report "$work/compare.html" >"$work/compare.json" || fail "compare"
figure() { # METHOD KEY
    awk -v method="\"$1\"" -v key="\"$2\":" '$1 == "\"method\":" { hit = index($2, method) } hit && $1 == key { gsub(",", "", $2); print $2; exit }' "$work/results"
}
# results hold the key "method" before "outputs"; top-level keys of a row come first
sed -n '/"results"/,$p' "$work/compare.json" >"$work/results"
[ "$(figure float top1)" = 0.94899999999999995 ] || [ "$(figure float top1)" = 0.949 ] || fail "float top-1 is $(figure float top1) (expected 0.949)"
awk -v x="$(figure static top1)" 'BEGIN { exit !(x >= 0.939) }' || fail "static top-1 is $(figure static top1) (expected 0.939 at least)"
awk -v x="$(figure static agreement)" 'BEGIN { exit !(x >= 0.98) }' || fail "static agrees on $(figure static agreement) (expected 0.98 at least)"
awk -v x="$(figure weight_only top1)" 'BEGIN { exit !(x >= 0.939) }' || fail "weight-only top-1 is $(figure weight_only top1) (expected 0.939 at least)"
awk -v x="$(figure weight_only agreement)" 'BEGIN { exit !(x >= 0.98) }' || fail "weight-only agrees on $(figure weight_only agreement) (expected 0.98 at least)"
grep -q '"calibrations": 1' "$work/compare.json" || fail "calibrated more than once"
[ -z "$(grep -E '(src|href)="?[^"#]|https?://|@import|url\(' "$work/compare.html" | grep -v 'src="data:image/png;base64,')" ] || fail "the HTML report refers to something outside"

"$tare" quantize "$glyphs/saved_model" "$work/quantized" --data "$calibration" --quiet || fail "quantize"
"$tare" convert --input_model_dir="$glyphs/saved_model" --output_model_dir="$work/converted" --quiet \
    --converter_options_string="tpu_functions { function_alias: \"tpu_func\" } disable_default_optimizations: true
    external_feature_configs { quantization_options { representative_datasets: { key: \"serving_default\"
    value: { tfrecord_file_path: \"$calibration\" } } } }" >"$work/report" || fail "convert"
grep -q -- '-------- Conversion Report --------' "$work/report" || fail "no Conversion Report"
grep -q 'tpu_func$' "$work/report" || fail "the report does not name the function"
for model in quantized converted; do
    "$tare" run "$work/$model" --data "$eval" --limit 100 --output-dir "$work/$model.out" || fail "run $model"
done
cmp -s "$work/quantized.out/probabilities.npy" "$work/converted.out/probabilities.npy" || fail "conversion changed the answers"
for batch in 7 32; do
    "$tare" run "$work/quantized" --data "$eval" --limit 100 --batch $batch --output-dir "$work/batch$batch" || fail "run --batch $batch"
    cmp -s "$work/quantized.out/probabilities.npy" "$work/batch$batch/probabilities.npy" || fail "batch $batch changes the answers"
done

"$tare" copy "$glyphs/saved_model" "$work/copy" || fail "copy"
diff -r "$glyphs/saved_model" "$work/copy" >/dev/null || fail "the copy differs"
for model in "$glyphs/saved_model" "$work/quantized" "$work/converted"; do
    "$tare" validate "$model" || fail "validate $model"
done

# A calibration file stands for the samples, its order of making does not matter, and nothing counts twice.
"$tare" calibrate "$glyphs/saved_model" --data "$calibration" -o "$work/all.calib" --quiet || fail "calibrate"
"$tare" calibrate "$glyphs/saved_model" --data "$calibration" -o "$work/again.calib" --quiet || fail "calibrate again"
"$tare" calibrate "$glyphs/saved_model" --data "$eval" -o "$work/more.calib" --quiet || fail "calibrate on the other file"
cmp -s "$work/all.calib" "$work/again.calib" || fail "calibrating twice gives different files"
"$tare" quantize "$glyphs/saved_model" "$work/by_file" --calibration "$work/all.calib" --quiet || fail "quantize --calibration"
diff -r "$work/quantized" "$work/by_file" >/dev/null || fail "the calibration file gives another model than its samples"
"$tare" merge "$work/all.calib" "$work/more.calib" -o "$work/ab.calib" || fail "merge"
"$tare" merge "$work/more.calib" "$work/all.calib" -o "$work/ba.calib" || fail "merge the other way round"
cmp -s "$work/ab.calib" "$work/ba.calib" || fail "the order of merging matters"
"$tare" merge "$work/ab.calib" "$work/all.calib" -o "$work/twice.calib" 2>"$work/error" && fail "records were counted twice"
grep -q "is in both" "$work/error" || fail "merge does not say why: $(cat "$work/error")"
[ -e "$work/twice.calib" ] && fail "a refused merge left a file"
for algorithm in average_min_max percentile:p=99.99 entropy mse; do
    "$tare" quantize "$glyphs/saved_model" "$work/algorithm" --calibration "$work/all.calib" --algorithm $algorithm \
        --overwrite --quiet || fail "quantize --algorithm $algorithm"
    diff -rq "$work/quantized" "$work/algorithm" >/dev/null && fail "$algorithm gives the model of min_max"
done

# docs/reading-a-comparison.md shows what its commands print on the example, with the line breaks of a terminal.
"$tare" convert "$glyphs/saved_model" "$work/glyphs_tpu" --calibration "$work/all.calib" --quiet >/dev/null || fail "convert --calibration"
ln -s "$glyphs"/* "$work" && cd "$work" || exit 1
tare() { "$tare" "$@" 2>&1; }
page=$source_dir/docs/reading-a-comparison.md
for first in '--data calibration' '--with'; do
    # the command of the page, and what the page shows below it
    awk -v first="$first" '/^\$ tare compare/ { on = index($0, first); more = on } on && /^```/ { exit }
        on { print > (more ? "command" : "shown") } on && !/\\$/ { more = 0 }' "$page"
    [ -s command ] && [ -s shown ] || fail "$first: no such command in $page"
    eval "$(sed 's/^\$ //' command)" >printed || fail "$(cat command): $?"
    diff <(tr -s ' \n' '\n' <shown) <(tr -s ' \n' '\n' <printed) || fail "$page shows something else than is printed"
    rm -f command shown
done
grep -q TPUPartitionedCall "$work/converted/saved_model.pb" || fail "no TPUPartitionedCall in the converted model"
finish
