#!/usr/bin/env bash
# Processor time of a sample of the quantized forms of networks against float and static int8: bench/forms.sh [network…].
# ResNet-50 and MobileNetV2 are built by network_model with random weights, the others come from the folder of model data
# (TARE_TEST_DATA, default ../shared/data). Static and dynamic models quantize the same layers (--min-elements 1,
# depthwise convolutions included; static models also residual additions, with activations of 8 bits), or with
# LAYERS=default have the default options, as weight-only and bfloat16 models always do. Forms alternate at batch 1,
# ROUNDS times (4), SECONDS_EACH (0.2) each; the least time counts. LEVELS: CPU levels, "default" for the highest
# (default: "default avx2").
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
rounds=${ROUNDS:-4}
seconds=${SECONDS_EACH:-0.2}
static=(--depthwise --integer-adds --activation-bits 8 --min-elements 1)
dynamic=(--depthwise --min-elements 1)
[ "${LAYERS:-}" != default ] || static=() dynamic=()
read -ra levels <<<"${LEVELS:-default avx2}"
networks=("$@")
[ $# -gt 0 ] || networks=(resnet50 mobilenetv2 resnet8 vww kws)
bench=$root/build/bench
tare=$root/build/tare
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$root/build" -G Ninja -DTARE_BENCH=ON >/dev/null
cmake --build "$root/build" --target tare model_bench network_model onnx_writer >/dev/null

# The folder of a network's float model.
float_model() {
    case $1 in
        resnet50 | mobilenetv2) [ -d "$work/$1" ] || "$bench/network_model" "$1" "$work/$1"; echo "$work/$1" ;;
        resnet8) echo "$data/models/resnet8_cifar10" ;;
        vww) echo "$data/models/mobilenet_vww" ;;
        kws) echo "$data/models/mlperf-tiny-kws" ;;
        *) echo "no network '$1' (expected resnet50, mobilenetv2, resnet8, vww or kws)" >&2; return 2 ;;
    esac
}

quiet() { # a command whose messages matter only if it fails
    "$@" >/dev/null 2>"$work/messages" || { cat "$work/messages" >&2; return 1; }
}

forms() { # forms MODEL: writes them below $work/forms
    local model=$1
    rm -rf "$work/forms"
    mkdir "$work/forms"
    ln -s "$(realpath "$model")" "$work/forms/float"
    "$bench/onnx_writer" "$model" "$work/forms.onnx" "$work/samples.npy"
    quiet "$tare" calibrate --quiet "$model" --data "$work/samples.npy" -o "$work/calibration"
    quiet "$tare" quantize --quiet "$model" "$work/forms/static" --calibration "$work/calibration" "${static[@]}"
    quiet "$tare" quantize --quiet "$model" "$work/forms/dynamic" --method dynamic "${dynamic[@]}"
    quiet "$tare" quantize --quiet "$model" "$work/forms/weight-only" --method weight_only
    quiet "$tare" convert --quiet "$model" "$work/forms/bfloat16"
    rm -rf "$work/calibration"
}

measure() { # measure LEVEL: appends "FORM milliseconds"
    local level=$1 form
    [ "$level" != default ] || level=
    for form in float static dynamic weight-only bfloat16; do
        echo "$form $(TARE_CPU=$level "$bench/model_bench" "$work/forms/$form" 1 1 "$seconds" |
            sed -n 's/.*a sample, \([0-9.]*\) of the processor.*/\1/p')"
    done
}

echo "| network, level | float | static | float : static | dynamic | dynamic : static | weight-only : float | bfloat16 : float |"
echo "|---|---|---|---|---|---|---|---|"
for network in "${networks[@]}"; do
    model=$(float_model "$network")
    forms "$model"
    for level in "${levels[@]}"; do
        for ((round = 0; round < rounds; round++)); do measure "$level"; done | awk -v name="$network, $level" '
            !($1 in least) || $2 < least[$1] { least[$1] = $2 }
            END {
                printf "| %s | %.4g | %.4g | %.2f | %.4g | %.2f | %.2f | %.2f |\n", name, least["float"], least["static"],
                    least["float"] / least["static"], least["dynamic"], least["dynamic"] / least["static"],
                    least["weight-only"] / least["float"], least["bfloat16"] / least["float"]
            }'
    done
done
