#!/usr/bin/env bash
# bench/sequence_tasks.py and bench/super_resolution_task.py in a small form: the models that they write compute what the scripts
# record, and every method keeps the outputs of a TCN, an LSTM, a transformer, a perceptron and a super-resolution network.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3"
for python in python3 /usr/bin/python3; do "$python" -c 'import numpy' 2>/dev/null && break; done
"$python" -c 'import numpy' 2>/dev/null || skip "no NumPy (python3-numpy)"
export OPENBLAS_NUM_THREADS=1
"$python" "$source_dir/bench/sequence_tasks.py" --steps 30 --records 40 "$work/tasks" >"$work/log" || fail "sequence_tasks.py"
"$python" "$source_dir/bench/super_resolution_task.py" --steps 60 --records 24 "$work/tasks" >>"$work/log" ||
    fail "super_resolution_task.py"

# compare TASK KEY OPTION…: all methods on a task; the lines METHOD VALUE SQNR in $work/TASK, with the value of KEY.
compare() {
    local task=$1 folder=$work/tasks/$1 key=$2
    shift 2
    "$tare" compare "$folder/saved_model" --data "$folder/eval.tfrecord.gz" --target target --json \
        --calibration-data "$folder/calibration.tfrecord.gz" --methods static,dynamic,weight_only "$@" \
        >"$work/json" 2>"$work/error" || fail "$task $*: $(cat "$work/error")"
    "$python" - "$work/json" "$key" >"$work/$task" <<'END' || fail "$task: $(head -c 300 "$work/json")"
import json, sys
result = json.load(open(sys.argv[1]))
for row in result["results"]:
    sqnr = row["sqnr_db"]
    print(row["method"], row[sys.argv[2]], 999 if sqnr in (None, "exact") else sqnr)
END
}
# least TASK METHOD VALUE: the SQNR of the method.
least() {
    awk -v method="$2" -v least="$3" '$1 == method { found = 1; if ($3 < least) print "SQNR " $3 " dB" }
        END { if (!found) print "absent" }' "$work/$1" >"$work/wrong"
    [ ! -s "$work/wrong" ] || fail "$1, $2: $(cat "$work/wrong") (expected $3 dB or more)"
}
# recorded TASK RELATIVE: the float figure is the one in README.md.
recorded() {
    local score
    score=$(sed -n 's/^- float score: \([0-9.]*\).*/\1/p' "$work/tasks/$1/README.md")
    awk -v expected="$score" -v relative="$2" '$1 == "float" { d = $2 - expected; if (d < 0) d = -d; exit !(d <= relative * expected) }' \
        "$work/$1" || fail "$1: float $(head -1 "$work/$1") (expected $score)"
}

# The models are of TensorFlow 1, which tare convert refuses: a comparison has no bfloat16 row and says why.
"$tare" compare "$work/tasks/mlp/saved_model" --data "$work/tasks/mlp/eval.tfrecord.gz" --target target --methods bfloat16 >/dev/null 2>"$work/error"
grep -q 'bfloat16: The converter does not support TensorFlow 1 models' "$work/error" || fail "bfloat16 of TensorFlow 1: $(cat "$work/error")"
for task in tcn lstm transformer mlp; do
    compare "$task" expected_mean_abs_error
    recorded "$task" 1e-3
    for method in static dynamic weight_only; do least "$task" "$method" 35; done
done
compare superresolution psnr
grep -q '"name": "psnr"' "$work/json" || fail "PSNR was not inferred for images"
recorded superresolution 0.02 # the script clips the outputs
for method in static dynamic weight_only; do least superresolution "$method" 30; done
compare superresolution ssim --metric ssim
awk '{ if (!($2 > 0.05 && $2 <= 1)) bad = 1; if ($1 == "float") float = $2; else if ($2 < float - 0.01) bad = 1 } END { exit bad || NR != 4 }' \
    "$work/superresolution" || fail "SSIM: $(cat "$work/superresolution")"
finish
