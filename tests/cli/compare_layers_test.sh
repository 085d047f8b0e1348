#!/usr/bin/env bash
# Precisions of layers that compare chooses: sensitivity, --auto, targets, and the recipes and commands that reproduce them.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
data=(--data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet)
samples=$glyphs/calibration.tfrecord.gz
"$tare" calibrate "$model" --data "$samples" -o "$work/c.calib" --quiet || fail "calibrate: $?"

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
expect 2 "--auto and --recipe (or --rule) are mutually exclusive" "$tare" quantize "$model" "$work/x" --data "$samples" --auto --recipe "$work/auto.txt" --quiet

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
finish
