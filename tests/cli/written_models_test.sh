# Models that TensorFlow and Keras wrote (tests/golden/saved_models.py), in every form that tare writes: TensorFlow refused each of
# these files of earlier versions, or loaded them without their variables. Such files are in tests/golden/refused_models.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
models=$source_dir/tests/golden/saved_models
refused=$source_dir/tests/golden/refused_models
alias='--converter_options_string=tpu_functions { function_alias: "tpu_func" }'
batches='batch_options { num_batch_threads: 1 max_batch_size: 4 allowed_batch_sizes: [2, 4] }'

# written NAME COMMAND MODEL OPTIONS…: writes $work/NAME and validates it. MODEL is one of these, or one that was written.
written() {
    local name=$1 model=$models/$3
    [ -d "$model" ] || model=$work/$3
    "$tare" "$2" "$model" "$work/$name" --quiet "${@:4}" >"$work/stdout" 2>&1 || fail "$*: $(cat "$work/stdout")"
    "$tare" validate "$work/$name" >"$work/stdout" 2>&1 || fail "$name: $(cat "$work/stdout")"
}

# lacks NAME TEXT: in the strings of the model.
lacks() { ! grep -qaF -- "$2" "$work/$1/saved_model.pb" || fail "$1 has $2"; }

# y NAME OUTPUT: what the model computes for ones.
y() {
    python3 -c 'import numpy, sys; numpy.save(sys.argv[1], numpy.ones((1, 8), "f4"))' "$work/x.npy"
    "$tare" run "$work/$1" --input x="$work/x.npy" --output-dir "$work/y" --quiet >"$work/stdout" 2>&1 || fail "$1: $(cat "$work/stdout")"
    python3 -c 'import numpy, sys; print(" ".join("%.2f" % v for v in numpy.load(sys.argv[1]).ravel()))' "$work/y/$2.npy"
}

# Each variable is stored twice there; the values are those that saved_models.py prints.
keras="-0.38 -0.54 2.71 -0.77"
written kept quantize keras3_export --method weight_only --min-elements 1 --keep-variables
written placed convert keras3_export
for name in kept placed; do
    out=$(y $name output_0)
    python3 - "$out" "$keras" <<'PYTHON' || fail "$name computes $out (expected $keras)"
import sys
got, expected = ([float(v) for v in text.split()] for text in sys.argv[1:])
assert len(got) == len(expected) and all(abs(a - b) < 0.05 for a, b in zip(got, expected))
PYTHON
done

# variables NAME: dtype and trainable of the variables of the object graph.
variables() {
    python3 - "$work/$1/saved_model.pb" <<'PYTHON'
import sys


def fields(data):
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    at = 0
    while at < len(data):
        key = varint()
        size = varint() if key & 7 in (0, 2) else {1: 8, 5: 4}[key & 7]
        yield key >> 3, data[at:at + size] if key & 7 != 0 else size
        at += size if key & 7 != 0 else 0


def below(data, *path):
    for number, value in fields(data):
        if number == path[0]:
            yield from below(value, *path[1:]) if path[1:] else [value]


for variable in below(open(sys.argv[1], "rb").read(), 2, 7, 1, 7):  # meta_graphs, object_graph_def, nodes, variable
    found = dict(fields(variable))
    print(found.get(1, 0), found.get(3, 0))
PYTHON
}

# Integers and float8 have no gradient: an optimizer of the loaded model must not be given them.
[ "$(variables kept)" = "6 0
1 1" ] || fail "kept has the variables $(variables kept) (expected int8, not trainable, and float, trainable)"
written kept_float8 quantize keras3_export --method fp8_weight_only --min-elements 1 --keep-variables
[ "$(variables kept_float8)" = "25 0
1 1" ] || fail "kept_float8 has the variables $(variables kept_float8)"

# The signatures that quantization_options names are written, for loaders of objects, too: serving_default if it names none.
signatures() { # signatures NAME KEYS EXPECTED OTHER
    written "$1" convert keras3_export "--converter_options_string=external_feature_configs { quantization_options { $2
        quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 1 } }"
    "$tare" inspect "$work/$1" | sed -n 's/^signature //p' >"$work/stdout"
    [ "$(tr '\n' ' ' <"$work/stdout")" = "$3" ] || fail "$1: signatures $(cat "$work/stdout")"
}
signatures named 'signature_keys: "serve"' "serve "
# The constant of the saver still names the object, the map of signatures does not.
[ "$(grep -ao serving_default "$work/named/saved_model.pb" | wc -l)" = 1 ] || fail "named has serving_default"
signatures unnamed "" "serving_default "
signatures both 'signature_keys: ["serving_default", "serve"]' "serve serving_default "

written split convert strings
written lambda convert function_of_a_lambda
written aliased convert function_of_a_lambda "$alias"
written batched convert function_of_a_lambda "$alias $batches"

written frozen quantize colocated --method weight_only --min-elements 1
lacks frozen loc:@b

for method in weight_only dynamic; do
    written gradient_$method quantize custom_gradient --method $method --min-elements 1
    lacks gradient_$method CustomGradient
    lacks gradient_$method internal_grad_fn
done

# A model that keeps its variables can be trained: its custom gradients stay, with the values that they capture. Integer
# arithmetic has no gradient.
for model in custom_gradient reversed_gradient; do
    written trained quantize $model --method float --keep-variables --overwrite
    written trained_bfloat16 convert $model --keep-variables --overwrite
    written trained_again quantize trained --method float --keep-variables --overwrite
    for name in trained trained_bfloat16 trained_again; do
        for text in CustomGradient internal_grad_fn /captured:0; do
            grep -qaF -- $text "$work/$name/saved_model.pb" || fail "$name of $model lacks $text"
        done
    done
    written frozen_gradient quantize $model --method float --overwrite
    written dynamic_gradient quantize $model --method dynamic --min-elements 1 --keep-variables --overwrite
    for name in frozen_gradient dynamic_gradient; do
        lacks $name CustomGradient
        lacks $name internal_grad_fn
        lacks $name /captured:0
    done
done

[ "$(variables trained)" = "1 1
1 1
1 1" ] || fail "trained has the variables $(variables trained) (expected the weight, its scale, and one that no function uses)"

# Two functions of one name, one of which is changed, would be taken for each other.
written implementation quantize implementations --method weight_only --min-elements 1
written bfloat16 convert implementations
for name in implementation bfloat16; do lacks $name dense_5f1c; done

written implements quantize implements_an_op --method weight_only --min-elements 1 --keep-variables
lacks implements my.op

# A loader of objects fills tables by functions that the objects name; the values are those that saved_models.py prints.
"$tare" validate "$models/stored_tables" >"$work/stdout" 2>&1 || fail "tables of TensorFlow: $(cat "$work/stdout")"
for form in "tables quantize --method weight_only --min-elements 1" "tables_placed convert"; do
    set -- $form
    written "$1" "$2" stored_tables "${@:3}"
    for key in table-keys save_fn restore_fn; do grep -qaF $key "$work/$1"/{variables/variables.index,saved_model.pb} || fail "$1 lacks $key"; done
    [ "$(y "$1" of_texts)" = "55.00" ] || fail "$1: $(y "$1" of_texts)"
done

# The size of a table, a scalar, is the same for every request: it is passed on instead of being batched.
written looked_up convert looked_up_strings --tpu_functions auto "--converter_options_string=$batches"
expect 1 "has as many rows as node 'SegmentMean' (SegmentMean) in function" \
    "$tare" convert "$models/segments" "$work/segments" --quiet --tpu_functions auto "--converter_options_string=$batches"
absent "$work/segments"
expect 1 "has as many rows as node 'StringSplit/StringSplitV2' (StringSplitV2) in function" \
    "$tare" convert "$models/looked_up_words" "$work/words" --quiet --tpu_functions auto "--converter_options_string=$batches"
absent "$work/words"
written words_placed convert looked_up_words
expect 1 "raggedtensortotensor' has 12 rows for a request of 13" \
    "$tare" convert "$models/row_splits" "$work/row_splits" --quiet --tpu_functions auto "--converter_options_string=$batches"
absent "$work/row_splits"

# Values that were read from the variables to which they are assigned.
written state convert keras_on_jax --tpu_functions auto "--converter_options_string=$batches"
"$tare" inspect "$work/state" --ops >"$work/stdout" 2>&1 || fail "inspect: $?"
! grep -qw AssignVariableOp "$work/stdout" || fail "state is assigned: $(cat "$work/stdout")"

# A seed that is advanced from nothing but itself, and values that are batched without it.
seed="removed that only advances a seed (seed_generator_state)"
"$tare" convert "$models/keras_on_jax_seed" "$work/seed" --tpu_functions auto "--converter_options_string=$batches" >"$work/stdout" 2>&1 ||
    fail "seed: $(cat "$work/stdout")"
grep -qF "$seed" "$work/stdout" || fail "the seed is not mentioned: $(cat "$work/stdout")"
"$tare" validate "$work/seed" >"$work/stdout" 2>&1 || fail "seed: $(cat "$work/stdout")"
"$tare" inspect "$work/seed" --ops >"$work/stdout" 2>&1 || fail "inspect: $?"
! grep -qw AssignVariableOp "$work/stdout" || fail "the seed is assigned: $(cat "$work/stdout")"
"$tare" convert "$models/keras_on_jax_seed" "$work/seed_kept" --keep-variables >"$work/stdout" 2>&1 || fail "seed_kept: $(cat "$work/stdout")"
! grep -qF "$seed" "$work/stdout" || fail "--keep-variables drops the seed"
"$tare" inspect "$work/seed_kept" --ops >"$work/stdout" 2>&1 || fail "inspect: $?"
grep -qw AssignVariableOp "$work/stdout" || fail "the seed is not assigned: $(cat "$work/stdout")"

expect 1 "is compiled by XLA (jit_compile), which has no kernel of the hybrid ops" \
    "$tare" quantize "$models/compiled" "$work/compiled" --quiet --method dynamic --op-set uniform_quantized --min-elements 1
absent "$work/compiled"
written compiled_xla quantize compiled --method dynamic --min-elements 1

written traced convert traced_before_saving "$alias"
[ "$("$tare" validate "$models/traced_before_saving")" = "note: function_aliases: tpu_func: no function __inference_g_1039, so that loaders skip the alias
$models/traced_before_saving: valid" ] || fail "an alias of a trace that was not saved: $("$tare" validate "$models/traced_before_saving")"

# Files in JPEG: the network, which the alias names, is on the TPU, and the files are read by the CPU.
written jpeg convert jpeg_files
written jpeg_aliased convert jpeg_files "$alias"
for name in jpeg jpeg_aliased; do
    "$tare" inspect "$work/$name" --ops >"$work/stdout" 2>&1 || fail "inspect: $?"
    grep -qw TPUPartitionedCall "$work/stdout" || fail "$name: nothing is on the TPU: $(cat "$work/stdout")"
    grep -qw DecodeJpeg "$work/stdout" || fail "$name reads no files: $(cat "$work/stdout")"
done

# What is bfloat16 already stays so, and the rest float32.
"$tare" convert "$models/mixed_bfloat16" "$work/mixed" >"$work/stdout" 2>&1 || fail "mixed_bfloat16: $(cat "$work/stdout")"
grep -qF "is bfloat16 already: all else stays float32" "$work/stdout" || fail "mixed_bfloat16 is not mentioned: $(cat "$work/stdout")"
"$tare" validate "$work/mixed" >"$work/stdout" 2>&1 || fail "mixed_bfloat16: $(cat "$work/stdout")"

# Products of float8 are placed as they are.
written float8 convert keras_float8
[ "$(y float8 output_0)" = "0.00 0.00 1.67 0.00" ] || fail "float8 computes $(y float8 output_0)"

# noted NAME TEXT: a model that loads, with this note alone.
noted() {
    [ "$("$tare" validate "$1" 2>&1)" = "note: $2
$1: valid" ] || fail "$1: $("$tare" validate "$1" 2>&1)"
}
written serve convert function_of_a_lambda --tags serve
untagged="tags: there are TPU functions, but no tag 'tpu': Vertex AI and TensorFlow Serving for TPUs load the tags serve and tpu"
noted "$work/serve" "$untagged"
noted "$refused/implements_what_it_was" "__inference_<lambda>_885: is quantized and implements dense_5f1c, as the function that it was made from does: where both models are loaded, the runtime may call either for the other"

# faults NAME TEXT…: exactly these violations, and perhaps the note on tags, which these files lack.
faults() {
    local name=$1
    shift
    "$tare" validate "$refused/$name" >"$work/stdout" 2>/dev/null && fail "$name is valid"
    [ "$(grep -vxF "note: $untagged" "$work/stdout")" = "$(printf '%s\n' "$@")" ] || fail "$name: $(cat "$work/stdout")"
}
faults call_named_like_a_function \
    "__inference_signature_wrapper_f_309/__inference_signature_wrapper_f_309_tpu (StatefulPartitionedCall): Node name contains invalid characters"
faults pivot_of_a_lambda \
    "__inference_<lambda>_442/batch/__inference_<lambda>_442 (BatchFunction): Node name contains invalid characters" \
    "tpu_fn_icv2___inference_<lambda>_442/cluster___inference_<lambda>_442/pivot (NoOp): Node name contains invalid characters"
faults colocated_with_nothing "graph/b/read (Identity): expects to be colocated with unknown node 'b'"
faults captured_tensor_gone \
    "object graph: node 7 is tensor matmul:0 of __inference_f_679, which does not exist"
faults loop_that_grows \
    "tpu_fn_icv2___inference_serve_65: loop 'while' (While) in function tpu_fn_icv2___inference_serve_65 changes the shape of 'while_placeholder_1', for example from [2,8] to [3,8], which a TPU does not support (write into a tensor of the final shape, or keep the loop on the CPU)"
faults branches_of_other_ranks \
    "tpu_fn_icv2___inference_signature_wrapper_<lambda>_38: the branches of 'cond' (If) in function __inference_<lambda>_30_bfloat16 return tensors of different ranks, for example [8] and [2,8], which a TPU does not support (reshape them to one rank, or keep the op on the CPU)"
faults scales_per_channel \
    "tpu_fn_icv2___inference_signature_wrapper_f_25: 'tf.UniformQuantizedDot' op isn't compilable for TPU device with one scale per channel. (node 'matmul/product' in function __inference_<lambda>_12_bfloat16; quantize the float model with --granularity per_tensor, or with the op set xla)"
faults table_without_content \
    "checkpoint: has the content of table MutableDenseHashTable, for which its object graph has no key (numbers/.ATTRIBUTES/table-keys)" \
    "checkpoint: has the content of table MutableHashTable, for which its object graph has no key (texts/.ATTRIBUTES/table-keys)"
faults keys_apart \
    "checkpoint: __inference_signature_wrapper___call___62 captures variable dense/kernel (node 8), for which its object graph has no key" \
    "checkpoint: __inference_signature_wrapper___call___62 captures variable dense/bias (node 9), for which its object graph has no key"
faults unsorted_outputs \
    "object graph: argument 2 of main is arg2, its structured signature has arg10 there" \
    "object graph: output output_10 of signature serving_default is result 10 of main, its structured outputs have it at 2"

finish
