#!/usr/bin/env bash
# Real tasks, and models of other kinds with recorded inputs: the commands of the recommended row (the next step) build the
# model that the comparison measured; where nothing is recommended, those of every row. OPTIONS: more options of compare.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "python3"
need_data tasks models references
models=(autoencoder_ad basic-pitch cifar-mlnet mcunet mlnet-matmul mnist-lr-mlnet mobilenet_vww proteinfer resnet8_cifar10
    rust-keras-single scisharp-lstm scisharp-pyfunc scisharp-simple tfjs-multi-out vespa-ext-v2 wakeword_stream)
checked=0
limit=100
! sanitized || limit=8 # a U-Net's records take seconds each

# check NAME MODEL SAMPLES RECORDS OPTION…
check() {
    # shellcheck disable=SC2086 # words
    local name=$1 model=$2 samples=$3 records=$4 status=0
    shift 4
    "$tare" compare "$model" --calibration-data "$samples" --data "$records" "$@" ${OPTIONS:-} --quiet --report "$work/$name.json" \
        >"$work/$name.out" 2>"$work/$name.log" || { fail "$name: $(cat "$work/$name.log")"; return; }
    local rows=--recommended
    grep -qE '^next: tare (quantize|convert) .* OUT' "$work/$name.out" || rows=
    python3 "$source_dir/tests/helpers/row_commands.py" "$tare" "$work/$name.json" "$work/$name.models" $rows --data "$records" \
        --limit $limit >"$work/$name.result" || { fail "$name: $(cat "$work/$name.result")"; status=1; }
    rm -rf "$work/$name.models"
    [ "$status" = 0 ] && checked=$((checked + $(cat "$work/$name.result")))
    [ "$status" = 1 ] || echo "$name: ${rows:-all rows}: $(cat "$work/$name.result") models"
}

for task in "$test_data"/tasks/*/; do
    name=$(basename "$task")
    model=$task/saved_model
    [ -d "$model" ] || model=$test_data/$(sed -n 's/^- model: `\(.*\)`.*$/\1/p' "$task/README.md")
    check "$name" "$model" "$task/calibration.tfrecord.gz" "$task/eval.tfrecord.gz" --limit $limit
done
for name in "${models[@]}"; do
    inputs=$test_data/references/$name/serving_default/inputs.tfrecord.gz
    check "$name" "$test_data/models/$name" "$inputs" "$inputs" --limit $limit
done
[ "$checked" -ge 40 ] || fail "only $checked models"
finish
