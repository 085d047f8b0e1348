#!/usr/bin/env bash
# --feedback and --sequence: the state of a streaming model, here a sum of all records so far, in every command that runs one.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
array() { "$TARE_TEST_HELPERS/op_model" array "$1.npy" "$2" || fail "array $1"; }
same() { cmp -s "$1.npy" "$2" || fail "$3: $(tail -c 48 "$2" | od -f)"; }

# z = x + y, and y is the z of the record before
"$tare" ops AddV2 --shape '[?,2]' --shape '[?,2]' --attr T=float --save-model sum >/dev/null || fail "ops --save-model"
array steps "float[4,2] 1 10 2 20 3 30 4 40"
array clip "int32[4] 7 7 8 8"
array sums "float[4,2] 1 10 3 30 6 60 10 100"
array clips "float[4,2] 1 10 3 30 3 30 7 70"
"$tare" dataset make --input x=steps.npy --input clip=clip.npy -o steps.tfrecord --quiet || fail "dataset make"

for threads in 1 3; do
    "$tare" run sum --data steps.tfrecord --feedback z=y --threads $threads --batch 4 --output-dir out --quiet || fail "run"
    same sums out/z.npy "run --threads $threads"
done
"$tare" run sum --data steps.tfrecord --feedback z=y --sequence clip --output-dir out --quiet || fail "run --sequence"
same clips out/z.npy "run --sequence"
"$tare" run sum --data steps.tfrecord --data steps.tfrecord --feedback z=y --limit 4 --output z --output-dir out --quiet || fail "run --limit"
same sums out/z.npy "run --limit"

# the calibration has the states: y is at most the sum of three records
"$tare" calibrate sum --data steps.tfrecord --feedback z=y --observe all --threads 3 -o sum.calib 2>log || fail "calibrate: $(cat log)"
grep -qF "records run in order, one at a time, and cannot be resumed (--feedback)" log || fail "calibrate does not say how it runs: $(cat log)"
grep -qF -- "--eval EVAL.tfrecord --feedback z=y" log || fail "the next command lacks the feedback: $(cat log)"
"$tare" show sum.calib --json >shown || fail "show"
grep -qE '"high": 60(\.0)?,' shown || fail "the range of y: $(cat shown)"
"$tare" calibrate sum --input x=steps.npy --input clip=clip.npy --feedback z=y --sequence clip --observe all -o b.calib --quiet 2>log ||
    fail "calibrate --input: $(cat log)"

# a state that the samples never fill, though no layer reads it as it is, is a warning of the calibration
array zeros "float[4,2] 0 0 0 0 0 0 0 0"
"$tare" calibrate sum --input x=steps.npy --input y=zeros.npy -o zeros.calib --quiet 2>log || fail "calibrate: $(cat log)"
grep -qF "with one value only (where it is a state that the model returns: --feedback OUTPUT=INPUT): 'y:0'" log ||
    fail "calibrate: $(cat log)"

# each model of a comparison runs on its own states
"$tare" compare sum --with sum --data steps.tfrecord --feedback z=y --json >compared || fail "compare"
grep -q '"records": 4' compared || fail "compare: $(cat compared)"

# A function is selected without the inputs that are fed back, which the records lack.
for command in "run --output-dir out" "calibrate -o c.calib"; do
    expect 1 "record 1: input image: output identity of the previous record has shape [1,10]" "$tare" $command "$glyphs/saved_model" --function tpu_func --data steps.tfrecord --feedback identity=image --quiet
    expect 1 "input #0(zero-based), 'image', is missing" "$tare" $command "$glyphs/saved_model" --function tpu_func --data steps.tfrecord --quiet
done

expect 1 "--feedback w=y: unknown output w (signature serving_default has z)" "$tare" run sum --data steps.tfrecord --feedback w=y
expect 1 "--feedback z=w: unknown input w (signature serving_default has x, y)" "$tare" compare sum --with sum --data steps.tfrecord --feedback z=w
expect 2 "--feedback z: expected OUTPUT=INPUT" "$tare" calibrate sum --data steps.tfrecord --feedback z -o c.calib --quiet
expect 1 "steps.tfrecord: record 0: --sequence scene: the record has no such key (it has " \
    "$tare" calibrate sum --data steps.tfrecord --feedback z=y --sequence scene -o c.calib --quiet
expect 2 "--feedback requires --data" "$tare" run sum --input x=steps.npy --input y=steps.npy --feedback z=y
expect 2 "option '--sequence' has no effect without --feedback" "$tare" run sum --data steps.tfrecord --sequence clip
expect 2 "--feedback and --sample are mutually exclusive" "$tare" calibrate sum --data steps.tfrecord --feedback z=y --sample 2 -o c.calib --quiet
expect 2 "--feedback: the records of a shard do not follow each other" \
    "$tare" calibrate sum --data steps.tfrecord --feedback z=y --shard 0/2 -o c.calib --quiet
expect 2 "--feedback and --rest are mutually exclusive" \
    "$tare" compare sum --with sum --data steps.tfrecord --feedback z=y --rest --calibration sum.calib
expect 2 "unknown option '--feedback'" "$tare" dataset head steps.tfrecord --feedback z=y
finish
