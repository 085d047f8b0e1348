#!/usr/bin/env bash
# The tables of docs/accuracy.md about ResNet-8 and MobileNet, in one go, and whether what the project promises of them holds.
# bench/accuracy_resnet.sh [--check]: --check measures only what the promises are about. Ends with 1 when one does not hold.
# TARE: the program (default: build/tare); TARE_TEST_DATA: the folder of models and data sets.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
tare=${TARE:-$root/build/tare}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
resnet=(--data "$data/datasets/cifar10/eval-1000.tfrecord.gz" --calibration-data "$data/datasets/cifar10/calibration-512.tfrecord.gz" --label label)
vww=$data/references/mobilenet_vww/serving_default/inputs.tfrecord.gz

# compare MODEL OPTION…: rows "method|algorithm|granularity|top1|agreement|sqnr_db|size_bytes" in $work/rows
compare() {
    local model=$1
    shift
    "$tare" compare "$data/models/$model" "$@" --quiet --report "$work/report.csv" >"$work/out"
    tr -d '\r' <"$work/report.csv" | awk -F, -v OFS='|' '
        # fields with commas stand in quotes
        function cut(line,   n, i, c, quoted, field) {
            n = 1; field = ""; quoted = 0
            for (i = 1; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) { f[n++] = field; field = "" }
                else field = field c
            }
            f[n] = field
            return n
        }
        { n = cut($0) }
        NR == 1 { for (i = 1; i <= n; i++) at[f[i]] = i; next }
        { print f[at["method"]], f[at["algorithm"]], f[at["granularity"]], f[at["top1"]], f[at["agreement"]], f[at["sqnr_db"]], f[at["size_bytes"]] }' >"$work/rows"
}

# A table of the rows; without top-1 where there are no labels.
print_rows() {
    echo
    echo "$1"
    echo
    awk -F'|' 'function share(x) { return x == "" ? "" : sprintf("%.1f %%", 100 * x) }
        BEGIN { print "| method | ranges | weights | top-1 | agrees with float | SQNR of the outputs | weights kB |"; print "|---|---|---|---|---|---|---|" }
        { printf "| %s | %s | %s | %s | %s | %s | %.0f |\n", $1, $2, $3, share($4), share($5), $6 == "" ? "" : sprintf("%.1f dB", $6), $7 / 1000 }' "$work/rows"
}

# The greatest top-1, in percent, of rows of a method, an algorithm and a granularity (regular expressions).
best() {
    awk -F'|' -v m="^($1)$" -v a="^($2)$" -v g="^($3)$" '$1 ~ m && $2 ~ a && $3 ~ g && $4 > best { best = $4 } END { printf "%.2f", 100 * best }' "$work/rows"
}

failed=0
# promise WHAT VALUE LEAST
promise() {
    local verdict=holds
    awk -v x="$2" -v y="$3" 'BEGIN { exit !(x >= y - 1e-6) }' || { verdict="DOES NOT HOLD"; failed=1; }
    printf '%-62s %6s %% (expected %.2f %%): %s\n' "$1" "$2" "$3" "$verdict" >>"$work/promises"
}
less() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }

all_algorithms=min_max,average_min_max,percentile,percentile:p=99.99,entropy,mse
blocks=per_channel,per_block:32,per_block:64,per_block:128
check=false
[ "${1:-}" = --check ] && check=true
if $check; then
    compare resnet8_cifar10 "${resnet[@]}" --methods static,dynamic,weight_only --algorithms $all_algorithms --auto
else
    compare resnet8_cifar10 "${resnet[@]}" --methods static,dynamic,weight_only --algorithms $all_algorithms \
        --granularities per_channel,per_tensor --auto
    print_rows "ResNet-8 on CIFAR-10, 1000 images"
fi
float=$(best float '' '')
static=$(best static '.*' per_channel)
promise "static int8, the best range algorithm" "$static" "$(less "$float" 0.3)"
promise "static int8, --auto, against the best algorithm less 2.7 points" "$(best auto '.*' '.*')" "$(less "$static" 2.7)"
promise "dynamic" "$(best dynamic '' per_channel)" "$(less "$float" 0.2)"
promise "weight_only int8" "$(best weight_only '' per_channel)" "$(less "$float" 0.2)"

if $check; then
    compare resnet8_cifar10 "${resnet[@]}" --bits 4 --granularities per_block:32,per_block:64 --methods weight_only+bias_correction,weight_only+gptq+bias_correction
else
    compare resnet8_cifar10 "${resnet[@]}" --bits 4 --granularities $blocks --auto --methods \
        weight_only,weight_only+bias_correction,weight_only+gptq,weight_only+gptq+bias_correction,weight_only+weight_clipping+gptq+bias_correction,weight_only+gptq:act_order=false+bias_correction
    print_rows "ResNet-8, weights of 4 bits"
fi
promise "weight_only int4 in blocks, gptq and bias_correction" "$(best 'weight_only[+]gptq[+]bias_correction' '' 'per_block.*')" "$(less "$float" 1.5)"
promise "weight_only int4 in blocks of 32, bias_correction alone" "$(best 'weight_only[+]bias_correction' '' per_block:32)" "$(less "$float" 1.5)"

if ! $check; then
    compare resnet8_cifar10 "${resnet[@]}" --algorithms mse --granularities per_channel,per_tensor --methods \
        static,static+bias_correction,static+equalization,static+equalization+bias_correction,static+weight_clipping,static+smooth_quant,static+smooth_quant+bias_correction,static+gptq,static+gptq+bias_correction,static+smooth_quant+gptq+bias_correction,dynamic,dynamic+smooth_quant,dynamic+gptq+bias_correction,weight_only,weight_only+gptq+bias_correction
    print_rows "ResNet-8, accuracy passes on int8"
    compare mobilenet_vww --data "$vww" --calibration-data "$vww" --depthwise --methods static,dynamic,weight_only,static+bias_correction,static+equalization \
        --granularities per_channel,per_tensor
    print_rows "MobileNet v1, person detection, depthwise convolutions quantized"
    compare mobilenet_vww --data "$vww" --calibration-data "$vww" --depthwise --bits 4 --min-elements 1 --granularities per_channel,per_tensor,per_block:64 \
        --methods weight_only
    print_rows "MobileNet v1, weights of 4 bits"
    for granularity in per_tensor per_channel; do
        compare mobilenet_vww --data "$vww" --calibration-data "$vww" --depthwise --bits 4 --min-elements 1 --granularities $granularity \
            --methods weight_only --auto
        print_rows "MobileNet v1, weights of 4 bits, $granularity and --auto"
    done
fi
echo
cat "$work/promises"
exit $failed
