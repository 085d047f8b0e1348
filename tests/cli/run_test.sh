#!/usr/bin/env bash
# tare run: threads, functions, profile, summary, and state.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
shape_of() { head -c 128 "$1" | grep -aoE "'shape': \([0-9, ]*\)"; }
data=$glyphs/calibration.tfrecord.gz

for threads in 1 2 3; do
    "$tare" run "$model" --data "$data" --threads $threads --batch 4 --output-dir "$work/t$threads" 2>"$work/err" ||
        fail "run --threads $threads: $(cat "$work/err")"
    cmp -s "$work/t1/probabilities.npy" "$work/t$threads/probabilities.npy" || fail "--threads $threads changes the answers"
done

# a function by its alias gives what the signature gives
"$tare" run "$model" --function tpu_func --data "$data" --limit 20 --output-dir "$work/f" || fail "run --function"
"$tare" run "$model" --data "$data" --limit 20 --output-dir "$work/s" || fail "run --limit 20"
tail -c 800 "$work/f/identity.npy" >"$work/f.values"
tail -c 800 "$work/s/probabilities.npy" >"$work/s.values"
cmp -s "$work/f.values" "$work/s.values" || fail "the function and the signature differ"
expect 1 "there is no function 'tpu_fun' (the model has tpu_func" "$tare" run "$model" --function tpu_fun --data "$data"
expect 2 "--output nothing: unknown output (serving_default has probabilities)" "$tare" run "$model" --output nothing --data "$data"
printf 'input { name: "image" type: FLOAT32 }\n' >"$work/cast.spec"
expect 2 "--spec: applies to --data, not to --input" "$tare" run "$model" --input image=x.npy --spec "$work/cast.spec"
expect 2 "option '--per-record' has no effect without --output-dir" "$tare" run "$model" --per-record --data "$data"
expect 2 "--signature and --function are mutually exclusive" "$tare" run "$model" --function f --signature s --data "$data"

# Composite outputs are their components, also in what is written of the model; TensorFlow wrote the model.
composite=$source_dir/tests/models/composite_outputs
"$TARE_TEST_HELPERS/op_model" array "$work/rows.npy" "float[2,3] 1 0 0 0 2 3" || fail "array rows"
"$tare" quantize "$composite" "$work/composite" --method weight_only --allow-unquantized --quiet 2>"$work/err" || fail "quantize: $(cat "$work/err")"
"$tare" convert "$composite" "$work/composite_placed" --quiet >"$work/out" 2>"$work/err" || fail "convert: $(cat "$work/err")"
for written in "$composite" "$work/composite" "$work/composite_placed"; do
    "$tare" run "$written" --input "x=$work/rows.npy" >"$work/out" 2>"$work/err" || fail "composite outputs: $(cat "$work/err")"
    diff "$work/out" - >"$work/differs" <<'OUT' || fail "composite outputs of $written: $(cat "$work/differs")"
dense float32[2,3] 2 1 1 1 3 4
nested.flat_values float32[6] 1 0 0 0 2 3
nested.row_splits_0 int64[2] 0 2
nested.row_splits_1 int64[3] 0 3 6
ragged.values float32[6] 2 0 0 0 4 6
ragged.row_splits int64[3] 0 3 6
sparse.indices int64[3,2] 0 0 1 1 1 2
sparse.values float32[3] 1 2 3
sparse.dense_shape int64[2] 2 3
OUT
done
grep -qF 'int64    [?]  (of a RaggedTensor)' <<<"$("$tare" inspect "$work/composite" --signature serving_default 2>/dev/null)" || fail "inspect of composite outputs"

# a function of the guide to tf.function: shapes of its input_signature, values that were bound when it was traced, and
# outputs of --input in their own shapes
guide=$source_dir/tests/models/function_guide
array() { "$TARE_TEST_HELPERS/op_model" array "$work/$1.npy" "$2" || fail "array $1"; }
array ten "float[] 10"
array two "int32[] 2"
array three "int32[] 3"
array pair "float[2] 1 2"
array ints "int32[2] 1 2"
array matrix "int32[2,2] 1 2 3 4"
[ "$("$tare" run "$guide" --function pow --input "a=$work/ten.npy")" = "identity float32[] 100" ] || fail "pow"
"$tare" ops Sub --shape '[2]' --shape '[2]' --attr T=float --save-model "$work/sub" >/dev/null || fail "ops --save-model"
expect 2 "--input y=FILE.npy is missing" "$tare" run "$work/sub" --input "x=$work/pair.npy"
expect 2 "--input x=FILE.npy is missing" "$tare" run "$work/sub" --input "y=$work/pair.npy"
expect 2 "--input z: unknown input (serving_default has x, y)" "$tare" run "$work/sub" --input "x=$work/pair.npy" --input "z=$work/pair.npy"
[[ "$("$tare" run "$work/sub" --input "y=$work/pair.npy" --input "x=$work/pair.npy")" = *" 0 0" ]] || fail "inputs in another order"
[ "$("$tare" run "$guide" --function pow --input "b=$work/two.npy" --input "a=$work/ten.npy")" = "identity float32[] 100" ] ||
    fail "pow with the value of b that it was traced with"
expect 1 "ConcreteFunction pow(a, b) was constructed with int value 2 in b, but was called with int value 3" \
    "$tare" run "$guide" --function pow --input "a=$work/ten.npy" --input "b=$work/three.npy"
expect 1 "constructed with int value 2 in b, but was called with ndarray value of 2 elements" \
    "$tare" run "$guide" --function pow --input "a=$work/ten.npy" --input "b=$work/pair.npy"
expect 1 "cannot compute __inference_next_collatz_60 as input #0(zero-based) was expected to have shape [?] but has shape [2,2]" \
    "$tare" run "$guide" --function next_collatz --input "x=$work/matrix.npy"
expect 1 "was expected to be a int32 tensor but is a float tensor" \
    "$tare" run "$guide" --function next_collatz --input "x=$work/pair.npy"
"$tare" run "$guide" --function next_collatz --input "x=$work/ints.npy" --output-dir "$work/collatz" --quiet || fail "next_collatz"
[ "$(shape_of "$work/collatz/identity.npy")" = "'shape': (2,)" ] || fail "a vector: $(shape_of "$work/collatz/identity.npy")"
"$tare" run "$guide" --function pow --input "a=$work/ten.npy" --output-dir "$work/scalar" --quiet || fail "pow to a folder"
[ "$(shape_of "$work/scalar/identity.npy")" = "'shape': ()" ] || fail "a scalar: $(shape_of "$work/scalar/identity.npy")"
"$tare" run "$guide" --function pow --input "a=$work/pair.npy" --output-dir "$work/unknown" --json >"$work/summary" || fail "pow of a vector"
[ "$(shape_of "$work/unknown/identity.npy")" = "'shape': (2,)" ] || fail "an output of unknown shape: $(shape_of "$work/unknown/identity.npy")"
[ "$(tr -d ' \n' <"$work/summary" | grep -o '"shape":\[2\]')" ] || fail "--json has another shape: $(cat "$work/summary")"

# batches as a server forms them: 21 requests of one row in batches of 8, 8 and 5 (padded to 8), with the bits of single ones
"$tare" convert --quiet --input_model_dir="$model" --output_model_dir="$work/batched" --converter_options_string='
    tpu_functions { function_alias: "tpu_func" } batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000
    allowed_batch_sizes: 2 allowed_batch_sizes: 8 }' >/dev/null 2>"$work/err" || fail "convert: $(cat "$work/err")"
"$tare" run "$work/batched" --data "$data" --limit 21 --output-dir "$work/single" --quiet || fail "run the batched model"
"$tare" run "$work/batched" --data "$data" --limit 21 --batching --output-dir "$work/joined" --quiet 2>"$work/err" || fail "--batching"
cmp -s "$work/single/probabilities.npy" "$work/joined/probabilities.npy" || fail "--batching changes the answers"
grep -qF "21 requests with 21 rows ran in 3 batches (3 of 8 rows); padding: 3 of 24 rows (12.5 %); split requests: 0" "$work/err" ||
    fail "--batching reports: $(cat "$work/err")"
"$tare" run "$work/batched" --data "$data" --limit 3 --batching --json >"$work/summary" 2>"$work/err" || fail "--batching --json"
grep -qF '"padding_rows": 5' "$work/summary" || fail "--batching --json: $(cat "$work/summary")"
expect 1 "--batching: serving_default reaches no BatchFunction (convert the model with batch_options)" \
    "$tare" run "$model" --data "$data" --batching
expect 2 "--batching requires --data, whose records are the requests" "$tare" run "$model" --batching --input "x=$work/ten.npy"

# summary and profile
"$tare" run "$model" --data "$data" --limit 9 --threads 2 --batch 2 --profile --json >"$work/summary" || fail "run --json"
for text in '"records": 9' '"threads": 2' '"batch": 2' '"stateful": false' '"name": "probabilities"' '"dtype": "float32"' \
    '"op": "Conv2D"' '"node": "stem_conv"'; do
    grep -qF -- "$text" "$work/summary" || fail "--json lacks $text"
done
"$tare" run "$model" --data "$data" --limit 3 --profile >"$work/out" 2>"$work/err" || fail "run --profile"
grep -q 'op kind$' "$work/err" || fail "--profile has no table of op kinds"
grep -q 'Conv2D .*/stem_conv$' "$work/err" || fail "--profile has no table of nodes"
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "without --output-dir the values are printed, a line a record"
"$tare" run "$model" --data "$data" --limit 2 --trace --quiet >"$work/out" 2>"$work/err" || fail "run --trace"
grep -q 'record 1$' "$work/err" || fail "--trace does not say which record it is at"
grep -q 'logits (MatMul): float32\[1,128\] float32\[128,10\] -> float32\[1,10\]$' "$work/err" || fail "--trace lacks shapes"

# what a model prints: whole lines in the order of the records, whatever --threads says
"$tare" ops Print --save-model "$work/print" --shape 'float[1]' --shape 'float[1]' >/dev/null 2>"$work/err" || fail "ops Print: $(cat "$work/err")"
{ echo input,data_0; seq 1 2000 | sed 's/.*/&,&/'; } >"$work/rows.csv"
printf 'input { name: "input" shape: 1 type: FLOAT32 }\ninput { name: "data_0" shape: 1 type: FLOAT32 }\n' >"$work/rows.spec"
for workers in "" "--threads 4"; do
    "$tare" run "$work/print" --data "$work/rows.csv" --spec "$work/rows.spec" --quiet --output-dir "$work/printed" $workers 2>"$work/err" >/dev/null || fail "run print: $(tail -1 "$work/err")"
    cmp -s "$work/err" <(seq 1 2000 | sed 's/.*/[&]/') || fail "the lines of Print with '$workers': $(diff "$work/err" <(seq 1 2000 | sed 's/.*/[&]/') | head -4)"
done

# state, and ops that nobody has: with models that are at hand on some machines
models=$test_data
counter=$work/delta.tfrecord
if [ -d "$models/models/serving-counter" ]; then
    "$TARE_TEST_HELPERS/op_model" samples "$counter" delta 'float[] 2' 5 || fail "samples: $?"
    "$tare" run "$models/models/serving-counter" --signature incr_counter_by --data "$counter" --output-dir "$work/c" 2>"$work/err" ||
        fail "run serving-counter: $(cat "$work/err")"
    grep -qF "incr_counter_by is stateful (AssignAdd: used by incr_counter_by_op/AssignAdd): it runs on one worker" \
        "$work/err" || fail "state is not announced: $(cat "$work/err")"
    [ -s "$work/c/output.npy" ] || fail "the counter has no answers"
    "$tare" run "$models/models/serving-counter" --signature incr_counter_by --data "$counter" --threads 2 --json \
        >"$work/summary" 2>"$work/err" || fail "run serving-counter --threads 2"
    grep -q '"threads": 1' "$work/summary" || fail "the records of a model with state run on several workers"
    grep -q '"stateful": true' "$work/summary" || fail "the summary does not say that there is state"
fi
segmenter=$models/references/tf-text-segmenter/default
if [ -d "$segmenter" ]; then # rows of different shapes: one file a record, as the recorded answers have them
    "$tare" run "$models/models/tf-text-segmenter" --signature default --data "$segmenter/inputs.tfrecord.gz" \
        --output logits --output num_chars --per-record --output-dir "$work/seg" 2>"$work/err" || fail "run tf-text-segmenter: $(cat "$work/err")"
    for n in 0 1 2 3 4 5 6 7; do
        [ "$(shape_of "$work/seg/logits.rec$n.npy")" = "$(shape_of "$segmenter/logits.rec$n.npy")" ] || fail "tf-text-segmenter, record $n"
        [ -f "$work/seg/num_chars.rec$n.npy" ] || fail "tf-text-segmenter, num_chars of record $n"
    done
    expect 1 "output logits: rows of shape [11,2] and of [3,2] cannot be stored in one array (use --per-record)" "$tare" run "$models/models/tf-text-segmenter" --signature default --quiet \
        --data "$segmenter/inputs.tfrecord.gz" --output logits --output-dir "$work/seg2"
fi
if [ -d "$models/models/ydf-adult" ]; then
    expect 1 "3 ops cannot be run; load them with --plugin LIB.so: SimpleMLCreateModelResource: used by SimpleMLCreateModelResource" \
        "$tare" run "$models/models/ydf-adult" --data "$data"
fi
finish
