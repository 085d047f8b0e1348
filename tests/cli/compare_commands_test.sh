#!/usr/bin/env bash
# The commands that a comparison prints for each row build the models that it measured: the outputs have the same bits.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "python3"
models=("$glyphs")
[ -e "${test_data:-/none}/tasks/heart-failure/saved_model" ] && models+=("$test_data/tasks/heart-failure")

for folder in "${models[@]}"; do
    rm -rf "$work/models"
    "$tare" compare "$folder/saved_model" --calibration-data "$folder/calibration.tfrecord.gz" --data "$folder/eval.tfrecord.gz" --limit 100 \
        --methods static,static+bfloat16,w4a8,dynamic,weight_only:bits=4:block=32+gptq,bfloat16 --algorithms min_max,percentile:p=99.9 --depthwise \
        --auto --margin 25 --quiet --report "$work/report.json" >"$work/out" || fail "compare: $?"
    python3 "$source_dir/tests/helpers/row_commands.py" "$tare" "$work/report.json" "$work/models" --data "$folder/eval.tfrecord.gz" \
        --limit 100 >"$work/result" || fail "$folder: $(cat "$work/result")"
    grep -qF '"next": "tare' "$work/report.json" || fail "$folder: no next step"
    grep -qxF "next: $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["next"])' "$work/report.json")" "$work/out" ||
        fail "no next step: $(tail -3 "$work/out")"
done

# The names of the rows are methods of a batch: the same models.
rows=static,static+bfloat16,weight_only:bits=4:block=32+gptq,bfloat16
"$tare" compare "$glyphs/saved_model" --calibration-data "$glyphs/calibration.tfrecord.gz" --data "$glyphs/eval.tfrecord.gz" --limit 50 \
    --methods "$rows" --quiet --report "$work/rows.json" >/dev/null || fail "compare $rows: $?"
mkdir -p "$work/folder" && ln -s "$glyphs/saved_model" "$work/folder/glyphs"
"$tare" batch "$work/folder" --data "$glyphs/calibration.tfrecord.gz" --eval "$glyphs/eval.tfrecord.gz" --limit 50 --methods "$rows" \
    --output-dir "$work/built" --json --quiet >"$work/batch.json" 2>"$work/log" || fail "batch $rows: $(tail -3 "$work/log")"
python3 - "$work/rows.json" "$work/batch.json" <<'PY' || fail "batch built other models than compare measured"
import json, sys
rows, jobs = (json.load(open(path)) for path in sys.argv[1:])
measured = [row["sqnr_db"] for row in rows["results"][1:]]
built = [job["sqnr_db"] for job in jobs["jobs"]]
assert len(built) == 4 and measured == built, (measured, built)
PY
expect 2 "did you mean 'gptq'?" "$tare" batch "$work/folder" --methods static,static+gptk --output-dir "$work/none"
absent "$work/none"

# Where the records decide nothing, the next step compares the same with more of them.
"$tare" compare "$glyphs/saved_model" --data "$glyphs/eval.tfrecord.gz" --calibration-data "$glyphs/calibration.tfrecord.gz" --limit 20 \
    --methods weight_only --auto --quiet >"$work/out" 2>/dev/null || fail "compare of 20 records: $?"
[ "$(tail -1 "$work/out")" = "next: tare compare $glyphs/saved_model --methods weight_only --data $glyphs/calibration.tfrecord.gz --eval $glyphs/eval.tfrecord.gz --auto" ] ||
    fail "not the same with more records: $(tail -3 "$work/out")"

# A target: the command has the rules of the mix, and is a conversion if the mix was measured with bfloat16.
mix() {
    "$tare" compare "$glyphs/saved_model" --data "$glyphs/eval.tfrecord.gz" --limit 100 --methods "$1" --bits 4 --min-sqnr 20 --json --quiet \
        >"$work/mix.json" || fail "compare --min-sqnr of $1: $?"
    python3 - "$work/mix.json" "${@:2}" <<'PY' || fail "the command of a mix of $1: $(grep '"next"' "$work/mix.json")"
import json, shlex, sys
words = shlex.split(json.load(open(sys.argv[1]))["next"])
command, *end = sys.argv[2:]
assert words[:2] == ["tare", command] and "--rule" in words and "weight_only" in words, words
assert "--bfloat16" not in words if not end else words[-len(end):] == end, words
PY
}
mix weight_only quantize
mix weight_only+bfloat16 convert --bfloat16 analysis

# Where each model is worse, the next step is a search for better settings.
"$tare" compare "$glyphs/saved_model" --data "$glyphs/eval.tfrecord.gz" --calibration-data "$glyphs/calibration.tfrecord.gz" --limit 300 \
    --methods static --algorithms percentile:p=60 --margin 2 --quiet >"$work/out" 2>/dev/null || fail "compare with clipping: $?"
[ "$(tail -1 "$work/out")" = "next: tare auto $glyphs/saved_model OUT --data $glyphs/calibration.tfrecord.gz --eval $glyphs/eval.tfrecord.gz --margin 2" ] ||
    fail "no way out: $(tail -3 "$work/out")"
"$tare" quantize "$glyphs/saved_model" "$work/clipped" --data "$glyphs/calibration.tfrecord.gz" --algorithm percentile:p=60 --quiet 2>"$work/log" ||
    fail "quantize with clipping: $(cat "$work/log")"
grep -qE 'SQNR of -?[0-9.]+ dB against float on 8 samples \(expected 20 or more; --auto chooses settings' "$work/log" ||
    fail "no way out of quantize: $(cat "$work/log")"
"$tare" compare "$glyphs/saved_model" --with "$work/clipped" --data "$glyphs/eval.tfrecord.gz" --quiet >"$work/out" || fail "compare --with: $?"
[ "$(tail -1 "$work/out")" = "next: tare auto $glyphs/saved_model OUT --data SAMPLES --eval $glyphs/eval.tfrecord.gz" ] ||
    fail "no way out of compare --with: $(tail -3 "$work/out")"
finish
