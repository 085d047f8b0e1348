#!/usr/bin/env bash
# Throughput of real models here, in ONNX Runtime and in TensorFlow Lite, on one machine in one run: bench/peers.sh
# [workers]. Each program runs every batch size; the best one of each counts. Needs npm (the peers come as npm packages, into
# build/peers) and the folder of model data (TARE_TEST_DATA, default ../shared/data).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
workers=${1:-1}
seconds=${SECONDS_EACH:-2}
peers=$root/build/peers
[ -d "$data/models" ] || { echo "no model data in $data" >&2; exit 1; }

cmake -S "$root" -B "$root/build" -G Ninja -DTARE_BENCH=ON >/dev/null
cmake --build "$root/build" --target model_bench tflite_bench >/dev/null
mkdir -p "$peers"
[ -d "$peers/node_modules/onnxruntime-node" ] && [ -d "$peers/node_modules/tfjs-tflite-node" ] ||
    npm install --prefix "$peers" --ignore-scripts --no-audit --no-fund onnxruntime-node tfjs-tflite-node >/dev/null
library=$(find "$peers" -name libtensorflowlite_c.so -path '*amd64*' | head -1)

# best COMMAND...: the line with the most samples a second over the batch sizes, which stand in place of BATCH.
best() {
    local batch
    for batch in 1 8; do "${@/BATCH/$batch}" 2>/dev/null || true; done | awk '{ rate = $(NF-3) + 0; if (rate > most) { most = rate; line = $0 } } END { print line }'
}
rate() { sed -n 's/.* \([0-9.]*\) samples\/s.*/\1/p' <<<"$1"; }

compare() { # compare MODEL [ONNX [TFLITE]]: "-" where there is none
    local model=$1 onnx=$2 tflite=$3 ours line most=0
    ours=$(best "$root/build/bench/model_bench" "$data/models/$model" BATCH "$workers" "$seconds")
    printf '%-18s %-16s %s\n' "$model" tare "$ours"
    if [ "$onnx" != - ]; then
        line=$(NODE_PATH=$peers/node_modules best node "$root/bench/ort_bench.js" "$data/references/$onnx" BATCH "$workers" "$seconds")
        printf '%-18s %-16s %s\n' "" "ONNX Runtime" "$line"
        most=$(rate "$line")
    fi
    if [ "$tflite" != - ]; then
        line=$(best "$root/build/bench/tflite_bench" "$library" "$data/references/$tflite" BATCH "$workers" "$seconds")
        printf '%-18s %-16s %s\n' "" "TensorFlow Lite" "$line"
        most=$(awk -v a="$most" -v b="$(rate "$line")" 'BEGIN { print (a > b ? a : b) }')
    fi
    awk -v ours="$(rate "$ours")" -v peer="$most" 'BEGIN { printf "%-18s %-16s %.2f times the better peer\n", "", "", ours / peer }'
}

echo "$workers workers, best of batch 1 and 8, $seconds s each"
compare basic-pitch basic-pitch/nmp.onnx basic-pitch/nmp.tflite
compare mlperf-tiny-kws - mlperf-tiny-kws/kws_ref_model_float32.tflite
compare mcunet mcunet/model.onnx -
