#!/usr/bin/env bash
# Converts every signature of every SavedModel in a folder in nine ways, and every model as --tpu_functions auto finds and
# splits it, and runs an independent checker on what was written.
#   tests/sweep/convert.sh TARE MODELS CHECKER [WORK_DIR]
# CHECKER is a command ("python3 check.py") that takes a SavedModel directory, prints one line a fault and "N faults". A refusal counts as one only
# for a reason that is true of the model: it is TensorFlow 1 (and inspect says so, too), an op or dtype that no TPU has (with the node), a shape
# that cannot be batched (in the batched variant), a variable without value (in the quantized variant), a call that does not fit its function;
# the classes are counted at the end. Faults that the original has are not counted against the conversion. tests/unit/convert/conversion_model_test.c is the
# part of this that runs with the other tests, and runs the results besides.
set -uo pipefail
tare=$1 models=$2 checker=$3
work=$(mktemp -d "${4:-${TMPDIR:-/tmp}}/convert_sweep.XXXXXX")
trap 'rm -rf "$work"' EXIT
declare -A variants=(
    [default]=''
    [plain]='disable_default_optimizations: true'
    [float]='bfloat16_optimization: DISABLED'
    [batched]='batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 allowed_batch_sizes: 4 allowed_batch_sizes: 8 }'
    [scope_all]='bfloat16_optimization_options { scope: ALL }'
    [sharded]='xla_sharding_options { num_cores_per_replica: 2 topology: "\n\004\001\002\001\001\020\001\030\002\"\010\000\000\000\000\000\001\000\000" }'
    [sharded_batched]='xla_sharding_options { num_cores_per_replica: 2 topology: "\n\004\001\002\001\001\020\001\030\002\"\010\000\000\000\000\000\001\000\000" } batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 allowed_batch_sizes: 4 allowed_batch_sizes: 8 }'
    [kept]='external_feature_configs { quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } freeze_all_variables: false min_num_elements_for_weights: 1 signature_keys: "SIGNATURE" } } bfloat16_optimization_options { scope: ALL }'
    [weight_only]='external_feature_configs { quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } signature_keys: "SIGNATURE" } }'
)
faults() { $checker "$1" 2>/dev/null | tail -1 | cut -d' ' -f1; }
# The class of a refusal, nothing when it has no good reason.
reason() {
    local text variant=$1 tf1=$2
    text=$(grep '^tare: ' "$work/errors" | tail -1)
    case $text in
    *"The converter does not support TensorFlow 1 models"*) [ "$tf1" = true ] && echo TensorFlow-1 ;;
    *"isn't compilable for TPU device. (node '"*) echo no-TPU-kernel ;;
    *"which the TPU does not support"* | *" tensors are not supported on the TPU: node '"*) echo not-on-TPU ;;
    *"must be a compile-time constant, but '"*) echo not-constant ;;
    *"Dimensions of inputs should match: input '"* | *"Batching input tensors"* | *"Batched output tensor"*) [[ $variant = *batched ]] && echo batching-shape ;;
    *"has no input to batch"* | *"returns nothing that could be batched"*) [[ $variant = *batched ]] && echo nothing-to-batch ;;
    *"has no value"*) [[ $variant = weight_only || $variant = kept ]] && echo variable-without-value ;;
    *"nothing was quantized: "* | *"none of "*" was quantized; "*) [[ $variant = weight_only || $variant = kept ]] && echo nothing-to-quantize ;;
    *" but no checkpoint: variables/variables.index is missing"*) echo no-checkpoint ;;
    *": expects "*" outputs of "*", which has "*) echo broken-call ;;
    *"nothing can be placed on the TPU: "* | *"the model has been converted for TPU before"*) [ "$variant" = auto ] && echo nothing-to-split ;;
    esac
}
declare -A classes=()
converted=0 refused=0 faulty=0 failed=0
# try NAME VARIANT OPTION…: one conversion of $model, judged.
try() {
    local name=$1 variant=$2 class after
    if ! "$tare" convert --quiet --overwrite --allow-missing-variables --input_model_dir="$model" --output_model_dir="$work/out" "${@:3}" >/dev/null 2>"$work/errors"; then
        refused=$((refused + 1))
        class=$(reason "$variant" "$tf1")
        if [ -n "$class" ]; then
            classes[$class]=$((${classes[$class]:-0} + 1))
            return
        fi
        failed=$((failed + 1))
        echo "$(basename "$model") $name $variant: $(tail -1 "$work/errors")"
        return
    fi
    converted=$((converted + 1))
    after=$(faults "$work/out")
    [ "$after" -le "$before" ] && return
    faulty=$((faulty + 1))
    echo "$(basename "$model") $name $variant: $after faults ($before in the original)"
}
for model in "$models"/*/; do
    tf1=$("$tare" inspect "$model" --json 2>/dev/null | grep -o '"tf1": *[a-z]*' | head -1 | grep -o '[a-z]*$')
    [ -n "$tf1" ] || continue # broken on purpose
    before=$(faults "$model")
    [[ $before =~ ^[0-9]+$ ]] || { echo "$checker $model does not end in a line \"N faults\"" >&2; exit 2; }
    while read -r signature; do
        for variant in default plain float batched scope_all sharded sharded_batched weight_only kept; do
            try "$signature" $variant --allow-unquantized \
                --converter_options_string="tpu_functions { signature_name: \"$signature\" } ${variants[$variant]/SIGNATURE/$signature}"
        done
    done < <("$tare" inspect "$model" 2>/dev/null | sed -n 's/^signature //p')
    try "" auto --tpu_functions=auto
done
for class in "${!classes[@]}"; do echo "refused, $class: ${classes[$class]}"; done
echo "$converted conversions, $refused refused with a reason, $faulty with new faults, $failed failed"
[ "$faulty" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$converted" -gt 0 ]
