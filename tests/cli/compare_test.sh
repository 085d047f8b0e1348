#!/usr/bin/env bash
# tare compare on the bundled example: many variants from one calibration, reports in three formats, inapplicable
# combinations, the recommendation.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
data=(--data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet)
samples=$glyphs/calibration.tfrecord.gz

"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static,weight_only,bfloat16 \
    --algorithms min_max,percentile,mse --granularities per_channel,per_tensor --json >"$work/all.json" || fail "compare: $?"
results=$(grep -c '"method": ' "$work/all.json")
[ "$results" = 10 ] || fail "$results results (expected float, 2 x 3 static, 2 weight_only, bfloat16)"
grep -q '"calibrations": 1,' "$work/all.json" || fail "not calibrated once: $(grep calibrations "$work/all.json")"

# A calibration file leads to the same figures as its samples.
figures() { "$tare" compare "$model" "${data[@]}" --methods static --algorithms mse --report "$work/r.csv" "$@" >/dev/null && sed 's/tare [qc].*//' "$work/r.csv"; }
"$tare" calibrate "$model" --data "$samples" -o "$work/c.calib" --quiet || fail "calibrate: $?"
from_samples=$(figures --calibration-data "$samples")
from_file=$(figures --calibration "$work/c.calib")
[ -n "$from_samples" ] && [ "$from_samples" = "$from_file" ] || fail "file and samples differ: $from_file / $from_samples"
python3 - "$work/r.csv" <<'PY' || fail "the measure of the CSV: $(cat "$work/r.csv")"
import csv, sys
first, second = csv.DictReader(open(sys.argv[1], newline=""))
for row in first, second:
    assert row["measure"] == "top1" and abs(float(row["measure_value"]) - 100 * float(row["top1"])) < 1e-3, row
    assert abs(float(row["measure_low"]) - 100 * float(row["top1_low"])) < 1e-3 and row["iou"] == row["psnr"] == "", row
change = float(second["measure_value"]) - float(first["measure_value"])
assert first["difference_low"] == "" and float(second["difference_low"]) < change < float(second["difference_high"])
PY
[ "$(wc -l <"$work/r.csv")" = 3 ] || fail "the CSV has $(wc -l <"$work/r.csv") lines (expected a heading and two rows)"

for format in html json; do
    "$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --report "$work/r.$format" >/dev/null || fail "$format: $?"
    [ -s "$work/r.$format" ] || fail "no $format report"
done
grep -qE '(src|href)="?https?:' "$work/r.html" && fail "the page has external references"

# Layer by layer: the worst first; with every layer kept in float the model is exact; the recipe keeps the worst in float.
"$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --methods static --write-recipe "$work/recipe" --worst 2 \
    --sensitivity-limit 50 --json >"$work/s.json" || fail "sensitivity: $?"
alone=$(grep -A1 '"alone"' "$work/s.json" | grep -o '"sqnr_db": [0-9.]*' | cut -d' ' -f2)
[ "$(wc -w <<<"$alone")" -ge 5 ] && [ "$alone" = "$(sort -g <<<"$alone")" ] || fail "layers do not stand by their loss: $alone"
kept=$(grep -A1 '"kept_so_far"' "$work/s.json" | grep -o '"sqnr_db": [^,]*' | cut -d' ' -f2 | tail -1)
awk -v x="${kept/null/999}" 'BEGIN { exit !(x > 100) }' || fail "with every layer kept the model is not the float one: $kept dB"
"$tare" quantize "$model" "$work/kept" --calibration "$work/c.calib" --recipe "$work/recipe" 2>"$work/log" || fail "recipe: $(cat "$work/log")"
"$tare" quantize "$model" "$work/all" --calibration "$work/c.calib" 2>"$work/log_all" || fail "quantize: $?"
quantized() { sed -n 's/^\([0-9]*\) of .* quantizable ops quantized$/\1/p' "$1"; }
[ $(($(quantized "$work/log_all") - $(quantized "$work/log"))) = 2 ] || fail "the recipe does not keep two layers: $(head -1 "$work/log") / $(head -1 "$work/log_all")"
expect 2 "--sensitivity requires a quantizing method" "$tare" compare "$model" "${data[@]}" --methods bfloat16 --sensitivity

# The default table fits 80 columns and ends with the recommendation. --wide has all figures: on a terminal of 80 columns in
# parts, each with the models' names; in a pipe unbroken.
if have_pty; then
    script -qec "stty cols 80; '$tare' compare '$model' ${data[*]} --methods weight_only --wide" /dev/null | tr -d '\r' >"$work/narrow"
    "$tare" compare "$model" "${data[@]}" --methods weight_only --wide >"$work/wide"
    grep -qxF "agree: share of records with the same predicted class as float" "$work/wide" || fail "--wide does not explain its columns: $(cat "$work/wide")"
    wide_tables=$(grep -c '^model ' "$work/wide") parts=$(grep -c '^model ' "$work/narrow")
    [ "$wide_tables" = 2 ] && [ "$parts" -gt 2 ] && [ "$(grep -c '^weight_only ' "$work/narrow")" = "$parts" ] ||
        fail "$wide_tables tables in a pipe, $parts parts on a terminal: $(cat "$work/narrow")"
    # (bytes: – and µ are several)
    grep -E '^(model|float|weight_only) ' "$work/narrow" | awk 'length($0) > 84 { exit 1 }' || fail "wider than the terminal: $(cat "$work/narrow")"
fi

# The hash of a model's outputs does not depend on threads and batches; a written recipe is listed with its hash.
answers() { "$tare" compare "$1" "${data[@]}" --methods "$2" --json "${@:3}" | sed -n 's/^ *"answers_hash": "\(.*\)",*$/\1/p'; }
two=$(answers "$model" weight_only --threads 2 --batch 8)
[ "$(wc -w <<<"$two")" = 2 ] && [ "$(head -1 <<<"$two")" != "$(tail -1 <<<"$two")" ] || fail "hashes of two models' answers: $two"
[ "$two" = "$(answers "$model" weight_only --threads 1 --batch 3)" ] || fail "hashes of answers depend on workers or batches"
"$tare" quantize "$model" "$work/written" --method weight_only --quiet || fail "quantize: $?"
[ "$(answers "$work/written" float)" = "$(tail -1 <<<"$two")" ] || fail "the written model answers differently: $(answers "$work/written" float) / $two"
hash_in() { sed -n "s/^ *\"hash of the recipe\": \"\(.*\)\",*$/\1/p" "$work/s.json"; }
[ -n "$(hash_in)" ] || fail "the report has no hash of the recipe"
first=$(hash_in)
"$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --methods static --write-recipe "$work/recipe1" --worst 1 \
    --sensitivity-limit 20 --json >"$work/s.json" || fail "sensitivity: $?"
[ "$first" != "$(hash_in)" ] || fail "two recipes have one hash: $first"

# Estimates for a TPU: all products of the static model are integer products and take less time; chips differ.
takes() { "$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --methods static --json "$@" >"$work/t.json" || fail "compare $*: $?"; }
number() { sed -n "s/^ *\"$1\": \([0-9.e-]*\),*$/\1/p" "$work/t.json"; }
takes --depthwise
[ "$(number integer_share | tr '\n' ' ')" = "0.0 1.0 " ] || fail "shares of integer work: $(number integer_share)"
number tpu_seconds | awk 'NR == 1 { f = $1 } NR == 2 { exit !($1 > f && f > 0) }' || fail "times: depthwise layers in int8 are not estimated slower: $(number tpu_seconds)"
number hbm_bytes | awk 'NR == 1 { f = $1 } NR == 2 { exit !($1 < f / 2 && $1 > 0) }' || fail "weights in HBM: $(number hbm_bytes)"
grep -q '"chip": "v5e",' "$work/t.json" || fail "no chip"
v5e=$(number tpu_seconds)
takes --depthwise --chip v2 --chip-batch 64
[ "$v5e" != "$(number tpu_seconds)" ] || fail "v2 is as fast as v5e: $v5e"
expect 2 "v2, v3" "$tare" compare "$model" "${data[@]}" --methods bfloat16 --chip v9

# A dry run prints what would run, and writes nothing.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --algorithms min_max,mse --report "$work/dry.html" --dry-run >"$work/plan" ||
    fail "dry run: $?"
absent "$work/dry.html"
grep -q 'would run 6 models over 100 records$' "$work/plan" && grep -q '^would write .*dry.html$' "$work/plan" &&
    grep -Eq '^time: about [0-9.]+ s on [0-9]+ threads' "$work/plan" && grep -Eq '^calibration: once, on [0-9]+ samples$' "$work/plan" ||
    fail "the plan is $(cat "$work/plan")"
"$tare" quantize "$model" "$work/dry" --calibration "$work/c.calib" --dry-run 2>"$work/log" || fail "quantize --dry-run: $?"
grep -q ' MB of memory at most, ' "$work/log" || fail "quantize --dry-run tells no memory: $(cat "$work/log")"

# --explain prints the error of each layer; the page always has it.
"$tare" compare "$model" --calibration "$work/c.calib" "${data[@]}" --methods static --granularities per_tensor --depthwise --explain --margin 20 \
    --report "$work/e.html" >"$work/explained" || fail "explain: $?"
grep -q '^layers of static$' "$work/explained" || fail "no layers in: $(cat "$work/explained")"
grep -Eq 'DepthwiseConv2dNative +[0-9.]+ +[0-9]+% ' "$work/explained" || fail "a depthwise layer is not explained"
for part in 'Top-1 against size' 'Layers of static' 'Activations' 'Provenance' 'Recommended: ' '<nav '; do
    grep -q "$part" "$work/e.html" || fail "the page has no '$part'"
done

# The automatic choice is not worse than the methods it chose from; its recipe reproduces the model.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static --algorithms min_max,mse --granularities per_tensor \
    --auto --write-recipe "$work/auto.txt" --report "$work/auto.csv" >"$work/auto.out" || fail "compare --auto: $?"
grep -q '^auto: static, .* instead of .* held-out samples, .* models measured$' "$work/auto.out" || fail "nothing is said of --auto: $(cat "$work/auto.out")"
grep -q ' of the noise' "$work/auto.out" || fail "no layer says why: $(cat "$work/auto.out")"
tr -d '\r' <"$work/auto.csv" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $2 == "auto" { auto = $at["sqnr_db"] } $2 == "static" && $at["sqnr_db"] > best { best = $at["sqnr_db"] }
    END { exit !(auto > best - 0.2) }' || fail "what is chosen is worse: $(cat "$work/auto.csv")"
"$tare" quantize "$model" "$work/auto1" --data "$samples" --granularity per_tensor --auto --write-recipe "$work/auto2.txt" --quiet || fail "quantize --auto: $?"
diff "$work/auto.txt" "$work/auto2.txt" >/dev/null || fail "compare and quantize choose differently"
"$tare" quantize "$model" "$work/auto2" --data "$samples" --granularity per_tensor --recipe "$work/auto2.txt" --quiet || fail "the recipe of --auto: $?"
diff -r "$work/auto1" "$work/auto2" >/dev/null || fail "the recipe of --auto gives another model"
"$tare" quantize "$model" "$work/auto3" --method weight_only --bits 4 --data "$samples" --auto --min-sqnr 25 --eval "$glyphs/eval.tfrecord.gz" \
    --quiet || fail "quantize --auto with a target: $?"
expect 2 "--auto needs representative samples" "$tare" quantize "$model" "$work/x" --calibration "$work/c.calib" --auto
expect 2 "--auto and --recipe are mutually exclusive" "$tare" quantize "$model" "$work/x" --data "$samples" --auto --recipe "$work/auto.txt" --quiet

# A target: the layers of the recipe reach it, also with quantize alone; a target out of reach names the best mix.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods weight_only --bits 4 --min-sqnr 20 \
    --sensitivity-limit 50 --write-recipe "$work/mix.txt" --quiet >"$work/mix.out" || fail "compare --min-sqnr: $?"
grep -q ' chosen$' "$work/mix.out" || fail "no mix was chosen: $(cat "$work/mix.out")"
grep -qE '^name=.* -> (float|bits=8)' "$work/mix.txt" || fail "the recipe raises nothing: $(cat "$work/mix.txt")"
"$tare" quantize "$model" "$work/mix1" --method weight_only --bits 4 --recipe "$work/mix.txt" --quiet || fail "the recipe of a target: $?"
"$tare" quantize "$model" "$work/mix2" --method weight_only --bits 4 --min-sqnr 20 --eval "$glyphs/eval.tfrecord.gz" \
    --write-recipe "$work/mix2.txt" --quiet || fail "quantize --min-sqnr: $?"
"$tare" validate "$work/mix2" >/dev/null || fail "the mixed model has faults"
"$tare" compare "$model" --data "$glyphs/eval.tfrecord.gz" --quiet --methods weight_only --bits 4 --recipe "$work/mix2.txt" --json >"$work/mix.json" || fail "compare --recipe: $?"
db=$(grep '"sqnr_db"' "$work/mix.json" | tail -1 | grep -o '[0-9.]*')
awk -v x="$db" 'BEGIN { exit !(x >= 20) }' || fail "the mix has $db dB (expected 20)"
# The first line of a recipe is the command that gives the model with it: sizes are those of the rows.
sized() { # RECIPE: bytes of the weights of what its command gives
    local words
    words=$(sed -n '1s/^# tare quantize MODEL OUT \(.*\) --recipe FILE$/\1/p' "$1")
    [ -n "$words" ] || fail "no command in $1: $(head -1 "$1")"
    # shellcheck disable=SC2086
    "$tare" quantize "$model" "$work/of_recipe" $words --recipe "$1" --overwrite --json --quiet 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["weight_bytes"])'
}
"$tare" calibrate "$model" --data "$samples" --channels -o "$work/channels.calib" --quiet || fail "calibrate: $?"
"$tare" compare "$model" --calibration "$work/channels.calib" "${data[@]}" --methods static:bits=4:granularity=per_tensor --symmetric --depthwise \
    --min-sqnr 12 --sensitivity-limit 50 --write-recipe "$work/whole.txt" --json --quiet >"$work/whole.json" || fail "compare with settings: $?"
python3 - "$work/whole.json" "$(sized "$work/whole.txt")" <<'PY' || fail "the command of a recipe gives another model: $(head -1 "$work/whole.txt")"
import json, sys
report, size = json.load(open(sys.argv[1])), int(sys.argv[2])
chosen = [point for point in report["target"]["points"] if point.get("chosen")]
assert [point["size_bytes"] for point in chosen] == [size], (chosen, size)
assert report["verdict"] == "Recommended: the mix of precisions that is chosen for the target", report["verdict"]
PY
# The command has the samples, also those of --auto, if the plan needs any; the recipe has the other options.
recorded() { # COMMAND LINES OPTIONS: the recipe's command has these samples, and the recipe these options
    local text="# tare quantize MODEL OUT$1 --recipe FILE" lines=$2
    shift 2
    "$tare" compare "$model" "${data[@]}" --worst 1 --sensitivity-limit 10 --write-recipe "$work/recorded.txt" "$@" >/dev/null || fail "compare $*: $?"
    [ "$(head -1 "$work/recorded.txt")" = "$text" ] || fail "no '$text' in: $(head -1 "$work/recorded.txt")"
    [ "$(grep -v '^#\|->' "$work/recorded.txt" | tr '\n' ' ')" = "$lines " ] || fail "no '$lines' in: $(cat "$work/recorded.txt")"
}
ln -s "$samples" "$work/my samples"
recorded " --data '$work/my samples' --signature serving_default" "method=static" --methods static \
    --calibration-data "$work/my samples" --signature serving_default
recorded "" "method=weight_only" --methods weight_only --calibration-data "$samples"
recorded " --data $samples" "method=weight_only passes=gptq:damp=0.1 min_elements=5" \
    --methods weight_only+gptq:damp=0.1 --min-elements 5 --calibration-data "$samples"
grep -qF -- " --data $samples --recipe FILE" <<<"$(head -1 "$work/auto.txt")" || fail "no samples in: $(head -1 "$work/auto.txt")"

# An algorithm that loses more than it needs to is reported with the layer, also with --quiet, and in the report.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static --algorithms percentile:p=80 --quiet \
    --report "$work/clipped.json" >/dev/null 2>"$work/log" || fail "compare with clipping: $?"
grep -qE "^tare: warning: static percentile:p=80: layer '.*': clipping leaves its input" "$work/log" || fail "clipping is silent: $(cat "$work/log")"
grep -q '"warnings": \[' "$work/clipped.json" || fail "the report has no warnings"

# Among several precisions: 4 bits are raised to 8 before a layer goes to float; the recipe reproduces the mix.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static --bits 4 --min-sqnr 25 --sensitivity-limit 50 \
    --write-recipe "$work/levels.txt" --report "$work/levels.json" --quiet >"$work/levels.out" || fail "compare of precisions: $?"
grep -q ' -> bits=8' "$work/levels.txt" || fail "no layer has 8 bits: $(cat "$work/levels.txt")"
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static --bits 4 --recipe "$work/levels.txt" --json --quiet >"$work/mix.json" ||
    fail "the recipe of precisions: $?"
db=$(grep '"sqnr_db"' "$work/mix.json" | tail -1 | grep -o '[0-9.]*')
awk -v x="$db" 'BEGIN { exit !(x >= 25) }' || fail "the mix of precisions has $db dB (expected 25)"
grep -q '"raised": \[' "$work/levels.json" || fail "the report does not name raised layers"
expect 1 "no expected values, so there is no error to limit" "$tare" compare "$model" "${data[@]}" --methods weight_only --max-mae 0.1 --quiet
expect 2 "max-mae is '-1' (expected a positive number)" "$tare" compare "$model" "${data[@]}" --methods weight_only --max-mae=-1 --quiet
expect 1 "meets the target (best: " "$tare" compare "$model" "${data[@]}" --methods weight_only --max-size 1% --quiet
expect 2 "give --eval FILE" "$tare" quantize "$model" "$work/x" --method weight_only --max-drop 1
expect 1 "no accuracy drop to limit" "$tare" quantize "$model" "$work/x" --method weight_only --max-drop 1 --metric sqnr \
    --eval "$glyphs/eval.tfrecord.gz" --quiet
expect 2 "max-drop is 'x' (expected a number)" "$tare" compare "$model" "${data[@]}" --methods weight_only --max-drop x --quiet
expect 2 "a target requires a quantizing method" "$tare" compare "$model" "${data[@]}" --methods bfloat16 --max-drop 1

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

expect 2 "static needs representative samples" "$tare" compare "$model" "${data[@]}" --methods static

# Combinations that are not applicable are listed with a reason before the first record, also by --dry-run; the others are
# measured. Without a calibration that is what needs none.
mix=(--methods "static,weight_only:bits=4:block=32+gptq,weight_only:op_set=tf,static+bias_correction" --calibration "$work/c.calib")
"$tare" compare "$model" "${data[@]}" "${mix[@]}" --json >"$work/mix.json" || fail "inapplicable combinations: $?"
"$tare" compare "$model" "${data[@]}" "${mix[@]}" >"$work/mix.out" || fail "inapplicable combinations: $?"
"$tare" compare "$model" "${data[@]}" "${mix[@]}" --dry-run >"$work/mix.plan" || fail "inapplicable combinations, dry run: $?"
python3 - "$work/mix.json" "$work/mix.plan" "$work/mix.out" <<'PY' || fail "inapplicable combinations: $(cat "$work/mix.out" "$work/mix.plan")"
import json, sys
r = json.load(open(sys.argv[1]))
plan, out = open(sys.argv[2]).read(), open(sys.argv[3]).read()
assert [x["method"] for x in r["results"]] == ["float", "static"], r["results"]
skipped = {x["method"]: x["reason"] for x in r["skipped"]}
assert "holds no Hessians" in skipped["weight_only:bits=4:block=32+gptq"]
assert "does not exist in the op set tf" in skipped["weight_only:op_set=tf"]
assert "calibrate --channels" in skipped["static+bias_correction"]
for method, reason in skipped.items():
    assert "not measured: " + method in plan and reason in plan, plan
assert "would run 2 models" in plan
lines = out.rstrip("\n").split("\n")
if lines[-1].startswith("next: "): # as long as it is
    assert lines.pop() == "next: " + r["next"]
assert r["verdict"] + "." in lines, lines # in a pipe without line breaks
text = " ".join(lines[lines.index("not measured"):])
assert text.rstrip().endswith(".") and "No model is recommended: " in text, text
assert r["verdict"].split("(")[0].strip() in " ".join(" ".join(lines).split()), r["verdict"]
assert sum(x["recommended"] for x in r["measure"]["results"]) <= 1 and r["measure"]["name"] == "top1"
PY
"$tare" compare "$model" "${data[@]}" >"$work/uncalibrated" || fail "without a calibration: $?"
grep -q '^weight_only ' "$work/uncalibrated" && grep -q '^static min_max per_channel: needs representative samples (give' "$work/uncalibrated" ||
    fail "without a calibration: $(cat "$work/uncalibrated")"

# One table for several bit widths: 4 bits in blocks are smaller than 8 bits.
"$tare" compare "$model" "${data[@]}" --methods weight_only,weight_only:bits=4:block=32 --json >"$work/bits.json" || fail "bits: $?"
python3 - "$work/bits.json" <<'PY' || fail "bits by method: $(grep -E 'method|bits|size' "$work/bits.json")"
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
assert [x.get("weight_bits") for x in rows] == [None, 8, 4]
assert rows[2]["size_bytes"] < rows[1]["size_bytes"] < rows[0]["size_bytes"]
PY

# Memory does not grow with the data file: 10 records of a file with 400 MB after them, which is hashed for the report, and of
# the file without them. A sanitizer adds an eighth of what is mapped.
most_growth=50
sanitized && most_growth=150
gzip -dc "$glyphs/eval.tfrecord.gz" >"$work/small.tfrecord"
cp "$work/small.tfrecord" "$work/large.tfrecord"
truncate -s 400M "$work/large.tfrecord"
python3 - "$tare" "$model" "$work" $most_growth <<'PY' || fail "compare holds its data file in memory"
import resource, subprocess, sys
tare, model, work, most_growth = sys.argv[1:]
def peak(data):
    subprocess.run([tare, "compare", model, "--data", f"{work}/{data}.tfrecord", "--limit", "10", "--methods", "weight_only", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 # of all processes until now
small, large = peak("small"), peak("large")
assert large < small + int(most_growth), f"{small:.0f} MB, then {large:.0f} MB"
PY
rm -f "$work/large.tfrecord"

# Nor with the records: labels, scores, errors and outputs of each are in files, of which 2 MiB are mapped at a time;
# heaps grow by a few MiB. Sanitizers
# keep what is freed.
if ! sanitized; then
"$TARE_TEST_HELPERS/op_model" chain "$work/product" "$TARE_TEST_PLUGINS/everything.so" MatMul / || fail "op_model"
python3 - "$tare" "$TARE_TEST_HELPERS/peak" "$work" <<'PY' || fail "compare holds figures of each record in memory"
import struct, subprocess, sys
tare, peak, work = sys.argv[1:4]
def array(name, type, shape, values):
    header = repr({"descr": type, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (117 - len(header)) + b"\n"
    with open(f"{work}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)
    return f"{name}={work}/{name}.npy"
def peak_of(count):
    numbers = [i * 2654435761 % 1000003 / 500000 - 1 for i in range(2 * count)]
    x = array("x", "<f4", (count, 1, 2), struct.pack(f"<{2 * count}f", *numbers))
    label = array("label", "<i8", (count,), struct.pack(f"<{count}q", *[n > 0 for n in numbers[::2]]))
    subprocess.run([tare, "dataset", "make", "--input", x, "--input", label, "-o", f"{work}/{count}.tfrecord", "--quiet"], check=True)
    subprocess.run([peak, f"{work}/peak", tare, "compare", f"{work}/product", "--data", f"{work}/{count}.tfrecord", "--methods", "weight_only",
                    "--min-elements", "1", "--target", "x", "--threads", "2", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return int(open(f"{work}/peak").read().split()[0]) >> 10
few, many = peak_of(50000), peak_of(200000)
assert many <= few + 10, f"{few} MB of 50,000 records, {many} MB of 200,000"
PY
rm -f "$work"/*000.tfrecord
fi

# --metric selects the measure; --target needs an expected value of the output's size.
"$tare" compare "$model" "${data[@]}" --methods weight_only:bits=4 --metric sqnr --json >"$work/metric.json" || fail "--metric: $?"
grep -q '"name": "sqnr"' <<<"$(grep -A1 '"measure": {' "$work/metric.json")" || fail "--metric sqnr: $(grep -A2 '"measure"' "$work/metric.json")"
expect 1 "metric 'mae': the records have no data for it (expected the value of each output element: --target)" "$tare" compare "$model" "${data[@]}" --methods weight_only --metric mae
expect 1 "the record has no 'nothing' (--target)" "$tare" compare "$model" "${data[@]}" --methods weight_only --target nothing
expect 1 "target 'label' has 1 elements (expected 10, as output " "$tare" compare "$model" "${data[@]}" --methods weight_only --target label --batch 1
expect 2 "did you mean 'bits'" "$tare" compare "$model" "${data[@]}" --methods weight_only:bit=4
expect 2 "did you mean 'weight_only'" "$tare" compare "$model" "${data[@]}" --methods weightonly
expect 2 "--calibration and samples are mutually exclusive" "$tare" compare "$model" "${data[@]}" --calibration x --calibration-data y
expect 2 "unknown format (expected .html, .json or .csv)" "$tare" compare "$model" "${data[@]}" --report r.txt
expect 1 "missing.calib" "$tare" compare "$model" "${data[@]}" --calibration "$work/missing.calib"
finish
