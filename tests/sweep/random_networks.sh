#!/usr/bin/env bash
# Property test: random networks (tests/helpers/random_network.c) through every kind of conversion and quantization. Each
# output must be valid (`tare validate`, and CHECKER if given), run, and have the bits of the source where nothing changes
# numbers, and a least SQNR otherwise, or, where a FakeQuant rounds the outputs, an error of at most two of its steps.
#   tests/sweep/random_networks.sh TARE RANDOM_NETWORK FIRST COUNT [CHECKER]
# CHECKER is a command ("python3 check.py") that takes SavedModel directories and prints "N faults" last; it checks all outputs of a network at
# once, because most of its time is its start. Networks FIRST to FIRST + COUNT - 1 are tried; each failure is one line with its seed.
# tests/cli/random_networks_test.sh runs a few of them.
set -uo pipefail
tare=$1 generator=$2 first=$3 count=$4 checker=${5:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/random_networks.XXXXXX")
trap 'rm -rf "$work"' EXIT
place='tpu_functions { function_alias: "net" } '
batch='batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 allowed_batch_sizes: 4 allowed_batch_sizes: 8 } '
topology='topology: "\n\004\001\002\001\001\020\001\030\002\"\010\000\000\000\000\000\001\000\000" '
shards="xla_sharding_options { num_cores_per_replica: 2 $topology} "
float='bfloat16_optimization: DISABLED '
ran=0 failed=0
names=() # of the outputs of this network that CHECKER has yet to see: names[i] is in $work/kept/i
wrong() { echo "seed $seed, $name: $*"; failed=$((failed + 1)); }

# judge BOUND: the model in $work/out. BOUND "bits": the bits of the source; a number: the least SQNR in dB.
judge() { # sets out to where the model is then
    out=$work/out
    ran=$((ran + 1))
    "$tare" validate "$work/out" >"$work/text" 2>&1 || { wrong "$(grep -v ': valid$' "$work/text" | head -1)"; return; }
    if [ -n "$checker" ]; then
        out=$work/kept/${#names[@]}
        mv "$work/out" "$out"
        names+=("$name")
    fi
    rm -rf "$work/got"
    "$tare" run "$out" --data "$work/x.tfrecord" --output-dir "$work/got" --quiet 2>"$work/text" || { wrong "$(tail -1 "$work/text")"; return; }
    if [ "$1" = bits ]; then
        cmp -s "$work/source/y.npy" "$work/got/y.npy" || wrong "other outputs: $("$tare" diff "$work/source" "$work/got" | grep npy)"
    else
        "$tare" diff "$work/source" "$work/got" --json >"$work/text" 2>&1
        awk -v least="$1" -v step="$step" '{ gsub(/,/, "") } /"sqnr_db"/ { seen = 1; low = $2 != "null" && $2 + 0 < least }
            /"max_abs_error"/ { near = $2 <= 2.01 * step } END { exit !seen || (low && !near) }' "$work/text" ||
            wrong "SQNR below $1 dB: $("$tare" diff "$work/source" "$work/got" | grep npy)"
    fi
}
convert() { # NAME BOUND OPTIONS FLAG…
    name="convert $1"
    "$tare" convert "$source" "$work/out" --overwrite --quiet --allow-unquantized --converter_options_string="$3" "${@:4}" >/dev/null 2>"$work/text" || {
        grep -q 'quantization-aware training (QAT) is not supported for weight-only' "$work/text" && return # TensorFlow's rule
        ran=$((ran + 1))
        wrong "$(tail -1 "$work/text")"
        return
    }
    judge "$2"
}
quantize() { # NAME BOUND FLAG…
    name="quantize $1"
    out=
    "$tare" quantize "$work/model" "$work/out" --overwrite --quiet --allow-unquantized --min-elements 1 "${@:3}" >/dev/null 2>"$work/text" ||
        { ran=$((ran + 1)); wrong "$(tail -1 "$work/text")"; return; }
    judge "$2"
}
# A quantized model is converted as well: NAME OPTIONS.
convert_quantized() {
    [ -n "$out" ] || return
    rm -rf "$work/quantized"
    cp -r "$out" "$work/quantized"
    source=$work/quantized
    convert "$1" 8 "$2"
    source=$work/model
}
# Checks the outputs of one network together; where there are faults, one by one, to name them.
check_kept() {
    local i
    [ "${#names[@]}" -gt 0 ] || return
    $checker "$work"/kept/* >"$work/text" 2>&1
    if [ "$(tail -1 "$work/text")" != "0 faults" ]; then
        for i in "${!names[@]}"; do
            name=${names[i]}
            $checker "$work/kept/$i" >"$work/text" 2>&1
            [ "$(tail -1 "$work/text")" = "0 faults" ] || wrong "$(head -1 "$work/text")"
        done
    fi
    names=()
}
for ((seed = first; seed < first + count; seed++)); do
    name=generator
    "$generator" "$seed" "$work/model" "$work/x.tfrecord" >"$work/text" 2>&1 || { wrong "$(tail -1 "$work/text")"; continue; }
    step=$(sed -n 's/.*output step //p' "$work/text")
    # bfloat16 may move a value across the border between two steps of a FakeQuant, 0.03 to 0.05 of an activation of 1 (26 to 30 dB), and the
    # layers after it amplify that
    bfloat16=25
    grep -q '; 0 FakeQuants' "$work/text" || bfloat16=18
    rm -rf "$work/source" "$work/kept"
    mkdir "$work/kept"
    source=$work/model
    "$tare" run "$work/model" --data "$work/x.tfrecord" --output-dir "$work/source" --quiet 2>"$work/text" || { wrong "$(tail -1 "$work/text")"; continue; }
    convert float bits "$place$float"
    convert default $bfloat16 "$place"
    convert plain bits "$place disable_default_optimizations: true"
    convert 'scope ALL' $bfloat16 "$place bfloat16_optimization_options { scope: ALL }"
    convert batched bits "$place$batch$float"
    convert sharded bits "$place$shards$float"
    convert 'sharded and batched' bits "$place$shards$batch$float"
    convert auto $bfloat16 '' --tpu_functions=auto
    convert 'weight-only' 20 "$place external_feature_configs { quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 1 } } "
    for kept in '' --keep-variables; do
        for set in xla tf uniform_quantized; do
            quantize "static $set $kept" 8 --method static --data "$work/x.tfrecord" --op-set $set $kept
            [ $set = xla ] && convert_quantized "of static $kept" "$place"
            [ $set = uniform_quantized ] || quantize "dynamic $set $kept" 8 --method dynamic --op-set $set $kept
        done
        quantize "weight-only $kept" 20 --method weight_only $kept
        convert_quantized "of weight-only $kept, scope ALL" "$place bfloat16_optimization_options { scope: ALL }"
    done
    check_kept
done
echo "$count networks, $ran outputs, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
