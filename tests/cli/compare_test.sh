#!/usr/bin/env bash
# tare compare on the bundled example: many variants from one calibration, reports in three formats, estimates for a TPU, dry runs,
# inapplicable combinations, measures.
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

# An algorithm that loses more than it needs to is reported with the layer, also with --quiet, and in the report.
"$tare" compare "$model" --calibration-data "$samples" "${data[@]}" --methods static --algorithms percentile:p=80 --quiet \
    --report "$work/clipped.json" >/dev/null 2>"$work/log" || fail "compare with clipping: $?"
grep -qE "^tare: warning: static percentile:p=80: layer '.*': clipping leaves its input" "$work/log" || fail "clipping is silent: $(cat "$work/log")"
grep -q '"warnings": \[' "$work/clipped.json" || fail "the report has no warnings"

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
