#!/usr/bin/env bash
# Converts every signature of every SavedModel in a folder in five ways and puts an independent checker over what was written.
#   tests/sweep/convert.sh TARE MODELS CHECKER [WORK_DIR]
# CHECKER is a command ("python3 check.py") that takes a SavedModel directory, prints one line a fault and "N faults". A signature that the
# converter refuses with a reason (an op that a TPU lacks, shapes that cannot be batched, TensorFlow 1) counts as refused;
# faults that the original has are not counted against the conversion. tests/unit/convert/conversion_model_test.c is the
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
    [weight_only]='external_feature_configs { quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } signature_keys: "SIGNATURE" } }'
)
faults() { $checker "$1" 2>/dev/null | tail -1 | cut -d' ' -f1; }
converted=0 refused=0 faulty=0 failed=0
for model in "$models"/*/; do
    before=$(faults "$model")
    while read -r signature; do
        for variant in default plain float batched weight_only; do
            options="tpu_functions { signature_name: \"$signature\" } ${variants[$variant]/SIGNATURE/$signature}"
            if ! "$tare" convert --quiet --overwrite --input_model_dir="$model" --output_model_dir="$work/out" \
                --converter_options_string="$options" >/dev/null 2>"$work/errors"; then
                refused=$((refused + 1))
                grep -qE "^tare: .*(TPU|BatchFunction|[Bb]atch|TensorFlow 1|expects|has no value|Dimensions of inputs)" "$work/errors" && continue
                failed=$((failed + 1))
                echo "$(basename "$model") $signature $variant: $(tail -1 "$work/errors")"
                continue
            fi
            converted=$((converted + 1))
            after=$(faults "$work/out")
            [ "$after" -le "$before" ] && continue
            faulty=$((faulty + 1))
            echo "$(basename "$model") $signature $variant: $after faults ($before in the original)"
        done
    done < <("$tare" inspect "$model" 2>/dev/null | sed -n 's/^signature //p')
done
echo "$converted conversions, $refused refused with a reason, $faulty with new faults, $failed failed"
[ "$faulty" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$converted" -gt 0 ]
