#!/usr/bin/env bash
# tare batch: one failure stops no other; a run that is killed goes on where it was and ends with the same bytes; limits
# reject; a folder of models does without a job file; ranks share the work.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"

mkdir -p "$work/models" "$work/models/broken"
cp -r "$glyphs/saved_model" "$work/models/glyphs"
cp -r "$glyphs/saved_model" "$work/models/other"
head -c 300 "$glyphs/saved_model/saved_model.pb" >"$work/models/broken/saved_model.pb"

jobs() { # jobs FOLDER: a job file that writes below it
    mkdir -p "$1"
    cat >"$1/jobs.textproto" <<JOBS
defaults {
  output: "out/{name}"
  data: "$glyphs/calibration.tfrecord.gz"
  evaluation: "$glyphs/eval.tfrecord.gz"
  evaluation_limit: 100
}
job { model: "../models/glyphs" method: "static" }
job { model: "../models/glyphs" method: "static" algorithm: "percentile:p=99.9" name: "glyphs-percentile" }
job { model: "../models/glyphs" method: "weight_only" arguments: "--depthwise" }
job { model: "../models/other" method: "static" limits { max_drop: 50 } }
job { model: "../models/other" method: "weight_only" name: "strict" limits { min_sqnr_db: 200 } keep_rejected: true }
job { model: "../models/other" method: "weight_only" name: "removed" limits { min_sqnr_db: 200 } }
job { model: "../models/other" name: "tpu" converter_options: 'tpu_functions { function_alias: "tpu_func" }' }
job { model: "../models/broken" method: "weight_only" }
job { model: "../models/missing" method: "static" }
JOBS
}
outcome() { grep -o '"outcome": "[a-z]*"' "$1/jobs.textproto.state/$2.json" | cut -d'"' -f4; }

# one run
jobs "$work/a"
"$tare" batch "$work/a/jobs.textproto" --report "$work/a/report.html" --json >"$work/a/report.json" 2>"$work/a/stderr"
[ $? -eq 1 ] || fail "exit status is not 1 though jobs failed"
for job in glyphs-static glyphs-percentile glyphs-weight_only other-static tpu; do
    [ "$(outcome "$work/a" $job)" = done ] || fail "$job: $(outcome "$work/a" $job)"
    [ -f "$work/a/out/$job/saved_model.pb" ] || fail "$job wrote no model"
done
[ "$(outcome "$work/a" strict)" = rejected ] || fail "strict: $(outcome "$work/a" strict)"
absent "$work/a/out/strict"
[ -f "$work/a/out/strict.rejected/saved_model.pb" ] || fail "the rejected model is not kept aside"
for job in broken-weight_only missing-static; do
    [ "$(outcome "$work/a" $job)" = failed ] || fail "$job: $(outcome "$work/a" $job)"
    absent "$work/a/out/$job"
done
[ "$(outcome "$work/a" removed)" = rejected ] || fail "removed: $(outcome "$work/a" removed)"
absent "$work/a/out/removed"
absent "$work/a/out/removed.rejected"
grep -q '"jobs_failed": 4' "$work/a/report.json" || fail "not 4 failed: $(grep jobs_ "$work/a/report.json")"
[ "$(find "$work/a/jobs.textproto.state" -name '*.calib' | wc -l)" = 2 ] || fail "three static jobs of two models are not calibrated twice"
# Each model that was made has a page, linked from the table: also the rejected one that was removed.
linked=$(grep -o 'href="report-pages/[^"]*"' "$work/a/report.html" | sort -u | wc -l)
[ "$linked" = 7 ] && [ "$linked" = "$(find "$work/a/report-pages" -name '*.html' | wc -l)" ] || fail "$linked linked pages, written: $(ls "$work/a/report-pages")"
for page in $(grep -o 'href="report-pages/[^"]*"' "$work/a/report.html" | sed 's/href="//; s/"$//'); do
    grep -q '<h1>Two models side by side</h1>' "$work/a/$page" || fail "$page is not a page of a model"
done
grep -q 'models/<wbr/>missing' "$work/a/report.html" || fail "the page does not give the reason of a failure"
hash=$(grep -o '"output_hash": "[0-9a-f]*"' "$work/a/jobs.textproto.state/glyphs-static.json" | cut -d'"' -f4)
[ -n "$hash" ] && grep -q "<td class=\"l w\">$hash</td>" "$work/a/report.html" || fail "the page does not name the files of glyphs-static by their hash '$hash'"
[ -z "$(find "$work/a/out" -name '.*')" ] || fail "left behind: $(find "$work/a/out" -name '.*')"

# a job is a plan: what it needs follows from all its arguments, and the model is the one that the command builds
mkdir -p "$work/p"
cat >"$work/p/jobs.textproto" <<JOBS
defaults { model: "$work/models/glyphs" output: "out/{name}" data: "$glyphs/calibration.tfrecord.gz" }
job { name: "gptq" method: "weight_only" arguments: "--bits=4" arguments: "--passes=gptq" }
job { name: "smooth" method: "static" arguments: "--passes=smooth_quant" }
JOBS
"$tare" batch "$work/p/jobs.textproto" >"$work/p/stdout" 2>&1 || fail "jobs with accuracy passes: $(cat "$work/p/stdout" "$work/p/jobs.textproto.state/"*.log)"
[ -z "$(find "$work/p" -name '*.calib')" ] || fail "a calibration is shared, which has neither Hessians nor statistics per channel"
data="$glyphs/calibration.tfrecord.gz"
"$tare" quantize "$work/models/glyphs" "$work/p/gptq" --quiet --method weight_only --bits 4 --passes gptq --data "$data" &&
    diff -r -x tare_made_from "$work/p/gptq" "$work/p/out/gptq" || fail "the job with gptq builds another model than the command"
"$tare" quantize "$work/models/glyphs" "$work/p/smooth" --quiet --passes smooth_quant --data "$data" &&
    diff -r -x tare_made_from "$work/p/smooth" "$work/p/out/smooth" || fail "the job with smooth_quant builds another model than the command"

# limits apply to the measure of the records, or to the one that is named
mkdir -p "$work/m"
cat >"$work/m/jobs.textproto" <<JOBS
defaults { evaluation: "$glyphs/eval.tfrecord.gz" evaluation_limit: 100 output: "out/{name}" }
job { name: "good" model: "$work/models/glyphs" method: "weight_only" metric: "top1" limits { max_drop: 50 } }
job { name: "strict" model: "$work/models/glyphs" method: "weight_only" limits { max_drop: 0 } arguments: "--bits=4" arguments: "--granularity=per_tensor" }
job { name: "unlabelled" model: "$work/models/glyphs" method: "weight_only" label: "nothing" limits { max_drop: 50 } }
job { name: "unproven" model: "$work/models/glyphs" method: "weight_only" limits { max_drop: 50 margin: 1 } }
job { name: "misspelled" model: "$work/models/glyphs" method: "weight_only" metric: "top2" }
JOBS
"$tare" batch "$work/m/jobs.textproto" --report "$work/m/report.csv" --json >"$work/m/report.json" 2>/dev/null
python3 - "$work/m/report.csv" "$work/m/report.json" <<'PY' || fail "the measure in the reports: $(cat "$work/m/report.csv" "$work/m/report.json")"
import csv, json, sys
row = next(r for r in csv.DictReader(open(sys.argv[1], newline="")) if r["job"] == "strict")
job = next(j for j in json.load(open(sys.argv[2]))["jobs"] if j["name"] == "strict")
assert row["measure"] == job["measure"] == "top1", row
assert abs(float(row["float_measure_value"]) - 100 * float(row["float_top1"])) < 1e-4, row
assert abs(float(row["float_measure_value"]) - float(row["measure_value"]) - float(row["loss"])) < 1e-4, row
assert all(abs(float(row[key]) - job[key]) < 1e-4 for key in ("loss", "measure_value", "float_measure_value")), (row, job)
assert row["mae"] == "" and "mae" not in job, row
PY
[ "$(outcome "$work/m" good)" = done ] || fail "a limit on a measure: $(cat "$work/m/jobs.textproto.state/good.json")"
[ "$(outcome "$work/m" strict)" = rejected ] || fail "no loss allowed: $(cat "$work/m/jobs.textproto.state/strict.json")"
grep -q 'top-1 falls by .* points (at most 0.00 allowed)' "$work/m/jobs.textproto.state/strict.json" || fail "the reason: $(cat "$work/m/jobs.textproto.state/strict.json")"
grep -q 'top-1 may lose .* points (at most 1.00 allowed, by 100 records)' "$work/m/jobs.textproto.state/unproven.json" || fail "few records: $(cat "$work/m/jobs.textproto.state/unproven.json")"
grep -q -- "--label nothing: no record has this key" "$work/m/jobs.textproto.state/unlabelled.json" || fail "a label that no record has: $(cat "$work/m/jobs.textproto.state/unlabelled.json")"
grep -q "metric is 'top2' (expected top1, auc" "$work/m/jobs.textproto.state/misspelled.json" || fail "a misspelled metric: $(cat "$work/m/jobs.textproto.state/misspelled.json")"
# masks, measured by IoU, with a key of their own; the table names the measure
"$tare" ops Sigmoid --shape 'float[?,4,4,1]' --attr T=float --save-model "$work/m/pixels" >/dev/null || fail "ops: $?"
(cd "$work/m" && python3 -c 'import numpy as np
x = np.random.default_rng(1).normal(size=(20, 4, 4, 1)).astype("f4")
np.save("x.npy", x), np.save("mask.npy", (x > 0.3).astype("f4"))') || fail "arrays"
"$tare" dataset make --input x="$work/m/x.npy" --input mask="$work/m/mask.npy" -o "$work/m/masks.tfrecord" --quiet || fail "masks: $?"
cat >"$work/m/masks.textproto" <<JOBS
job { name: "pixels" model: "pixels" method: "weight_only" arguments: "--allow-unquantized" evaluation: "masks.tfrecord" label: "mask" output: "out/pixels" limits { max_drop: 0 } }
JOBS
"$tare" batch "$work/m/masks.textproto" --quiet >"$work/m/masks.txt" 2>&1 || fail "masks: $(cat "$work/m/masks.txt" "$work/m/masks.textproto.state/pixels.json")"
grep -qE "^job +outcome +measure +float +model" "$work/m/masks.txt" && grep -qE "^pixels +done +IoU +66\.89 % +66\.89 %" "$work/m/masks.txt" || fail "masks: $(cat "$work/m/masks.txt")"
printf 'job { model: "%s" method: "weight_only" output: "o" evaluation: "%s" limits { max_mae: 1 } }\n' "$work/models/glyphs" "$glyphs/eval.tfrecord.gz" >"$work/m/mae.textproto"
expect 1 "max_mae needs expected values (give their key: target)" "$tare" batch "$work/m/mae.textproto"

# the model of the batch is that of the command
"$tare" quantize "$work/models/glyphs" "$work/single" --data "$glyphs/calibration.tfrecord.gz" --quiet || fail "quantize: $?"
diff -r -x tare_made_from "$work/single" "$work/a/out/glyphs-static" >/dev/null || fail "batch and quantize write other bytes"

# killed again and again; what a process left of its writing goes
jobs "$work/b"
mkdir -p "$work/b/out/..glyphs-static.batch.tmp-1-1/variables" "$work/b/out/.tpu.batch"
for delay in 0.02 0.05 0.08 0.12 0.2; do
    "$tare" batch "$work/b/jobs.textproto" --jobs 1 --resume --quiet >/dev/null 2>&1 &
    sleep $delay
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
done
"$tare" batch "$work/b/jobs.textproto" --resume --quiet >/dev/null 2>&1
diff -r "$work/a/out" "$work/b/out" >"$work/diff" || fail "killed and resumed: other bytes than one run: $(head -3 "$work/diff")"

# finished and unchanged jobs are left out
touch -d '2001-01-01' "$work/b/jobs.textproto.state/glyphs-static.json"
"$tare" batch "$work/b/jobs.textproto" --resume --quiet --report "$work/b/report.csv" --json >"$work/b/report.json" 2>/dev/null
grep -qE "^glyphs-static,done,.*,[0-9a-f]{32},$hash," <<<"$(tr -d '\r' <"$work/b/report.csv")" || fail "the CSV has no hashes: $(cat "$work/b/report.csv")"
# The same for CI: one test case a job.
"$tare" batch "$work/b/jobs.textproto" --resume --quiet --report "$work/b/report.xml" --json >"$work/b/junit.json" 2>/dev/null
python3 - "$work/b/report.xml" "$work/b/junit.json" <<'PY' || fail "JUnit: $(cat "$work/b/report.xml")"
import json, sys, xml.etree.ElementTree
suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
jobs = json.load(open(sys.argv[2]))["jobs"]
cases = {case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in suite}
kinds = {"done": [], "rejected": ["failure"], "failed": ["error"]}
assert cases == {job["name"]: kinds[job["outcome"]] for job in jobs}, cases
assert int(suite.get("tests")) == len(jobs) and int(suite.get("errors")) == sum(job["outcome"] == "failed" for job in jobs) > 0
assert all(case[0].get("message") for case in suite if cases[case.get("name")])
PY
expect 2 "unknown format (expected .html, .json or .csv)" "$tare" compare "$glyphs/saved_model" --data "$glyphs/eval.tfrecord.gz" --report "$work/b/report.xml"
grep -q '"jobs_skipped": 7' "$work/b/report.json" || fail "not 7 left out: $(grep jobs_ "$work/b/report.json")"
[ "$work/b/jobs.textproto.state/glyphs-static.json" -ot "$work/models" ] || fail "a finished job ran again"
# ... but not one whose output was touched
echo x >>"$work/b/out/glyphs-static/saved_model.pb"
"$tare" batch "$work/b/jobs.textproto" --resume --quiet >/dev/null 2>&1
diff -r "$work/a/out" "$work/b/out" >/dev/null || fail "a damaged output is not made again"

# outputs that are there are not replaced unasked
"$tare" batch "$work/a/jobs.textproto" --quiet >/dev/null 2>&1
grep -q 'already exists' "$work/a/jobs.textproto.state/glyphs-static.json" || fail "an existing output was replaced"

# a folder of models, two ranks, no job file; the launcher does not name the run
rank() { # rank NUMBER NAME WORDS…
    local number=$1 name=$2
    shift 2
    PMI_RANK=$number PMI_SIZE=2 timeout 100 "$tare" batch "$work/models" --output-dir "$work/$name" --state "$work/$name.state" --quiet "$@"
}
for number in 1 0; do
    rank $number folder --methods weight_only --json >"$work/rank$number.json" 2>/dev/null &
done
wait
[ -s "$work/rank1.json" ] && fail "rank 1 reports, too"
grep -q '"jobs_total": 3' "$work/rank0.json" || fail "rank 0 does not report all: $(cat "$work/rank0.json")"
for model in glyphs other; do
    [ -f "$work/folder/$model-weight_only/saved_model.pb" ] || fail "$model was not made from the folder: $(cat "$work/rank0.json")"
done
absent "$work/folder.state/.rank-1"

# The script of sbatch is one process: those of srun have a step, too.
SLURM_PROCID=0 SLURM_NTASKS=4 timeout 100 "$tare" batch "$work/models" --methods weight_only --output-dir "$work/script" --quiet --json >"$work/script.json" 2>/dev/null
[ "$(grep -c '"outcome": "done"' "$work/script.json")" = 2 ] || fail "the script of sbatch: $(cat "$work/script.json")"

# Results of an earlier run in the same state do not count, whenever rank 1 starts.
cp -r "$work/folder.state" "$work/later.state"
PMI_RANK=0 PMI_SIZE=2 timeout 2 "$tare" batch "$work/models" --methods weight_only --output-dir "$work/later" --state "$work/later.state" \
    --overwrite --quiet --json >"$work/later.json" 2>/dev/null
grep -q '"jobs_total"' "$work/later.json" && fail "rank 0 reports without rank 1: $(cat "$work/later.json")"
(sleep 1; rank 1 later --methods weight_only --overwrite --max-size 1000 2>/dev/null) &
rank 0 later --methods weight_only --overwrite --max-size 1000 --json >"$work/later.json" 2>/dev/null
wait
[ "$(grep -c '"reason": ".*at most 1000' "$work/later.json")" = 2 ] || fail "not both models are rejected: $(cat "$work/later.json")"

# A rank that ends with an error or gives no sign of life ends the run within seconds: its jobs fail, with its number.
rank 1 ended --methods nonsense 2>/dev/null &
rank 0 ended --methods weight_only --json >"$work/ended.json" 2>/dev/null && fail "a run whose rank 1 failed ended well"
wait
grep -q '"reason": "rank 1 ended: --methods: .*nonsense' "$work/ended.json" || fail "the error of rank 1 is not told: $(cat "$work/ended.json")"
rank 0 ended --methods nonsense 2>/dev/null & # leaves the end of rank 1
rank 1 ended --methods nonsense 2>/dev/null
wait
(sleep 1; rank 1 ended --methods weight_only --overwrite 2>/dev/null) &
rank 0 ended --methods weight_only --overwrite --json >"$work/ended.json" 2>/dev/null
wait
[ "$(grep -c '"outcome": "done"' "$work/ended.json")" = 2 ] || fail "the error of an earlier run counts: $(cat "$work/ended.json")"
silent_rank() { # as a process that was killed leaves its file
    local sign="$work/silent.state/.rank-1" run=
    until [ -e "$sign" ]; do sleep 0.05; done
    printf '\nanyone\n' >"$sign"
    until [ -n "$run" ]; do read -r run <"$sign"; done
    printf '%s\n7\n' "$run" >"$sign"
}
silent_rank &
started=$SECONDS
rank 0 silent --methods weight_only --json >"$work/silent.json" 2>/dev/null && fail "a run whose rank 1 was killed ended well"
wait
grep -q '"reason": "rank 1: no sign of life for 15 seconds' "$work/silent.json" || fail "the lost rank is not named: $(cat "$work/silent.json")"
[ $((SECONDS - started)) -lt 60 ] || fail "the lost rank was waited for: $((SECONDS - started)) s"
[ -f "$work/silent/other-weight_only/saved_model.pb" ] || fail "the jobs of rank 0 were not done"
absent "$work/silent.state/.rank-1"

# A process that crashes is one failed job, with the signal as its reason; tried again, the job succeeds.
crash() { # crash RETRIES FOLDER: the first process is made to crash, as soon as it is there
    local batch child
    for _ in 1 2 3 4 5; do # it may be over before it is met
        rm -rf "$2"
        mkdir -p "$2"
        for model in glyphs other; do
            echo "job { model: \"../models/$model\" method: \"weight_only\" output: \"out/$model\" name: \"$model\" evaluation: \"$glyphs/eval.tfrecord.gz\" }"
        done >"$2/jobs.textproto"
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0 "$tare" batch "$2/jobs.textproto" --jobs 1 --retries "$1" --quiet --json >"$2/report.json" 2>"$2/stderr" &
        batch=$! child=
        while [ -z "$child" ] && kill -0 $batch 2>/dev/null; do read -r child _ 2>/dev/null <"/proc/$batch/task/$batch/children"; done
        kill -SEGV "$child" 2>/dev/null
        wait $batch
        grep -Eq 'signal 11|"attempts": 2' "$2/jobs.textproto.state/glyphs.json" && return
    done
}
crash 0 "$work/crash"
grep -q '"reason": "its process ended by signal 11' "$work/crash/jobs.textproto.state/glyphs.json" || fail "a crash is not a failed job: $(cat "$work/crash/stderr")"
[ "$(outcome "$work/crash" other)" = done ] || fail "a crash stops another job"
grep -q '"jobs_failed": 1' "$work/crash/report.json" || fail "a crash is not one failed job: $(grep jobs_ "$work/crash/report.json")"
crash 1 "$work/again"
grep -q '"attempts": 2' "$work/again/jobs.textproto.state/glyphs.json" || fail "a job that crashed is not tried again"
[ "$(outcome "$work/again" glyphs)" = done ] || fail "tried again: $(cat "$work/again/jobs.textproto.state/glyphs.json")"
diff -r -x tare_made_from "$work/folder/glyphs-weight_only" "$work/again/out/glyphs" >"$work/diff" || fail "tried again: other bytes: $(head -3 "$work/diff")"

# What a job depends on: further words' files and libraries of ops are noticed, too.
mkdir "$work/depends"
printf 'name="stem_conv" -> float\n' >"$work/depends/recipe"
echo "job { model: \"../models/glyphs\" method: \"weight_only\" output: \"out\" arguments: \"--recipe\" arguments: \"$work/depends/recipe\" }" >"$work/depends/jobs"
skipped() { "$tare" batch "$work/depends/jobs" --resume --quiet --json "$@" 2>/dev/null | sed -n 's/^ *"jobs_skipped": \([0-9]*\),*$/\1/p'; }
[ "$(skipped)$(skipped)" = 01 ] || fail "an unchanged job is not left out"
printf 'name="logits" -> float\n' >"$work/depends/recipe"
[ "$(skipped)$(skipped)" = 01 ] || fail "a changed recipe is not noticed"
if [ -f "$TARE_TEST_PLUGINS/everything.so" ]; then
    cp "$TARE_TEST_PLUGINS/everything.so" "$work/depends/ops.so"
    [ "$(skipped --plugin "$work/depends/ops.so")$(skipped --plugin "$work/depends/ops.so")" = 01 ] || fail "a library of ops is not noticed"
    echo >>"$work/depends/ops.so"
    [ "$(skipped --plugin "$work/depends/ops.so")" = 0 ] || fail "a changed library of ops is not noticed"
fi

# A model that is too large is written aside.
"$tare" batch "$work/models" --methods weight_only --output-dir "$work/large" --max-size 1000 --keep-rejected --quiet >/dev/null 2>&1
absent "$work/large/glyphs-weight_only"
[ -f "$work/large/glyphs-weight_only.rejected/saved_model.pb" ] || fail "a model that is too large is not written aside"
grep -q '"reason": ".*1000' "$work/large/glyphs-weight_only.json" "$work/models.state/glyphs-weight_only.json" 2>/dev/null ||
    fail "no reason: $(cat "$work/models.state/glyphs-weight_only.json")"

# Under a real mpirun.
if command -v mpirun >/dev/null; then
    jobs "$work/mpi"
    timeout 120 mpirun --allow-run-as-root --oversubscribe -n 3 "$tare" batch "$work/mpi/jobs.textproto" --jobs 1 --quiet --json >"$work/mpi/report.json" 2>"$work/mpi/stderr"
    [ "$(grep -c '"jobs_total": 9' "$work/mpi/report.json")" = 1 ] || fail "not one report under mpirun: $(cat "$work/mpi/report.json" "$work/mpi/stderr")"
    diff -r "$work/a/out" "$work/mpi/out" >"$work/diff" || fail "under mpirun: other bytes: $(head -3 "$work/diff")"
fi

# dry run
"$tare" batch "$work/a/jobs.textproto" --dry-run --state "$work/dry" >"$work/plan" || fail "dry run: $?"
absent "$work/dry"
grep -q '^glyphs-static ' "$work/plan" || fail "the plan does not list the jobs: $(cat "$work/plan")"
grep -q '^9 jobs and [34] calibrations in at most .* never ran, ' "$work/plan" || fail "the plan is not summed up: $(tail -1 "$work/plan")"
"$tare" batch "$work/again/jobs.textproto" --dry-run >"$work/plan"
grep -Eq '^glyphs +weight_only +[0-9.]+ +[0-9]+ +[0-9.]+ ' "$work/plan" || fail "no time of an earlier run"

# a model whose name is in braces is not a placeholder
mkdir "$work/braces" && ln -s "$(realpath "$glyphs/saved_model")" "$work/braces/{net}"
"$tare" batch "$work/braces" --methods weight_only --output-dir "$work/braces.out" --quiet --json >"$work/braces.json" 2>&1 || fail "a model named {net}: $(cat "$work/braces.json")"
[ -f "$work/braces.out/{net}-weight_only/saved_model.pb" ] || fail "a model named {net}: $(ls "$work/braces.out")"

# job files that are wrong
wrong() { printf '%s\n' "$2" >"$work/wrong.textproto"; expect 1 "$1" "$tare" batch "$work/wrong.textproto"; }
wrong "there is no job in it" ''
wrong "no output is given" 'job { model: "m" method: "static" }'
wrong "both write" 'job { model: "a" method: "static" output: "o" } job { model: "b" method: "static" output: "o" }'
wrong "two jobs have the name 'a-static'" 'job { model: "a" method: "static" output: "o" } job { model: "a" method: "static" output: "p" }'
wrong "needs evaluation records" 'job { model: "a" method: "static" output: "o" limits { max_drop: 1 } }'
wrong "limits: max_drop is nan (expected a finite number, 0 or more)" 'job { model: "a" method: "static" output: "o" limits { max_drop: nan } }'
wrong "limits: max_drop is -1 (expected a finite number, 0 or more)" 'job { model: "a" method: "static" output: "o" limits { max_drop: -1 } }'
wrong "limits: min_sqnr_db is inf (expected a finite number)" 'job { model: "a" method: "static" output: "o" limits { min_sqnr_db: inf } }'
wrong "limits: max_size_bytes is -3 " 'job { model: "a" method: "static" output: "o" limits { max_size_bytes: -3 } }'
wrong "metod" 'job { model: "a" metod: "static" }'
wrong "o/{modle}: unknown placeholder {modle} (expected {name}, {model}" 'job { model: "a" method: "static" output: "o/{modle}" }'
wrong "arguments: --dry_run cannot be among them (no model would be written)" 'job { model: "a" method: "static" output: "o" arguments: "--dry_run" }'
wrong "arguments: --method=dynamic cannot be among them (use the field of the job)" 'job { model: "a" method: "static" output: "o" arguments: "--method=dynamic" }'
wrong "cannot be a name" 'job { name: "../x" model: "a" method: "static" output: "o" }'
expect 2 "needs --methods" "$tare" batch "$work/models"
folder() { "$tare" batch "$work/models" --output-dir "$work/unknown" --state "$work/unknown.state" "$@"; }
expect 2 "--methods: unknown method 'weight_onyl' (did you mean 'weight_only'" folder --methods static,weight_onyl
expect 2 "unknown algorithm 'mim_max'" folder --methods weight_only --algorithm mim_max
[ ! -e "$work/unknown.state" ] || fail "an unknown method leaves a state"
finish
