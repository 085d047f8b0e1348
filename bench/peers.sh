#!/usr/bin/env bash
# Throughput of networks here, in ONNX Runtime and in TensorFlow Lite, on one machine in one run: bench/peers.sh [workers
# [network…]]. ResNet-50 and MobileNetV2 are built by network_model with random weights; where no .onnx of a model is at hand
# onnx_writer makes one, so that the weights are the same. Before anything is timed the answers are compared (1e-4 of the
# largest magnitude). Programs and batch sizes take turns, ROUNDS times (3), SECONDS_EACH (1) each; the best of each
# counts. The latency lines are the least time of one sample, alone, with one thread and with one thread per processor
# inside the graph, here and in ONNX Runtime. Needs npm (the peers come as npm packages, into build/peers) and the folder of model data (TARE_TEST_DATA,
# default ../shared/data).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
workers=${1:-1}
shift || true
chosen=" $* "
seconds=${SECONDS_EACH:-1}
rounds=${ROUNDS:-3}
peers=$root/build/peers
bench=$root/build/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -d "$data/models" ] || { echo "no model data in $data" >&2; exit 1; }

cmake -S "$root" -B "$root/build" -G Ninja -DTARE_BENCH=ON >/dev/null
cmake --build "$root/build" --target model_bench tflite_bench network_model onnx_writer >/dev/null
mkdir -p "$peers"
[ -d "$peers/node_modules/onnxruntime-node" ] && [ -d "$peers/node_modules/tfjs-tflite-node" ] ||
    npm install --prefix "$peers" --ignore-scripts --no-audit --no-fund onnxruntime-node tfjs-tflite-node >/dev/null
library=$(find "$peers" -name libtensorflowlite_c.so -path '*amd64*' | head -1)
export NODE_PATH=$peers/node_modules

ours() { "$bench/model_bench" "$1" "$3" "${4:-$workers}" "$seconds" - "${5:-1}"; }
onnx() { node "$root/bench/ort_bench.js" "$1" "$3" "${4:-$workers}" "$seconds" - "${5:-1}"; }
tflite() { "$bench/tflite_bench" "$library" "$2" "$3" "$workers" "$seconds"; }

# Of the lines of one program: best samples a second, least processor time of a sample, memory at the batch with the best
# rate (at 1 where that comes within 5 %).
best() {
    awk '{ batch = $2 + 0; memory[batch] = $(NF-1)
           if ($(NF-3) > rate[batch]) rate[batch] = $(NF-3) + 0
           for (i = 1; i < NF; i++) if ($(i+1) == "of" && (!least || $i < least)) least = $i }
         END { at = rate[8] > 1.05 * rate[1] ? 8 : 1; printf "%.1f %.3f %.1f %d\n", rate[at], least, memory[at], at }' "$1"
}

# The least "least T ms a run" of the lines of one program.
least() {
    awk '{ for (i = 1; i < NF; i++) if ($i == "least" && (!best || $(i + 1) + 0 < best)) best = $(i + 1) + 0 } END { print best + 0 }' "$1"
}

latency() { # latency NAME MODEL ONNX: one sample at a time
    local name=$1 model=$2 onnx=$3 round threads cores
    cores=$(nproc)
    rm -f "$work"/*.latency
    for ((round = 0; round < rounds; round++)); do
        for threads in 1 "$cores"; do
            ours "$model" - 1 1 "$threads" >>"$work/tare.$threads.latency" || true
            [ "$onnx" = - ] || onnx "$onnx" - 1 1 "$threads" >>"$work/ort.$threads.latency" 2>/dev/null || true
        done
    done
    for program in tare ort; do
        [ -s "$work/$program.1.latency" ] || continue
        echo "$program $(least "$work/$program.1.latency") $(least "$work/$program.$cores.latency")"
    done | awk -v cores="$cores" '
        { printf "%-16s %-7s latency %9.3f ms with 1 thread, %9.3f ms with %d: %.2f times as fast\n", "", $1, $2, $3, cores, $2 / $3
          if (NR == 1) ours = $3; else printf "%-16s latency against ONNX Runtime with %d threads: %.2f of its speed\n", "", cores, $3 / ours }'
}

compare() { # compare NAME MODEL [ONNX [TFLITE]]: "-" where there is none
    local name=$1 model=$2 onnx=$3 tflite=$4 round batch program
    [ "$chosen" = "  " ] || [[ $chosen == *" $name "* ]] || return 0
    rm -f "$work"/*.lines
    for ((round = 0; round < rounds; round++)); do
        for batch in 1 8; do
            ours "$model" - $batch >>"$work/tare.lines" || true
            [ "$onnx" = - ] || onnx "$onnx" - $batch >>"$work/ort.lines" 2>/dev/null || true
            [ "$tflite" = - ] || tflite "$model" "$tflite" $batch >>"$work/tflite.lines" 2>/dev/null || true
        done
    done
    for program in tare ort tflite; do
        [ -s "$work/$program.lines" ] || continue
        echo "$program $(best "$work/$program.lines")"
    done | awk -v name="$name" '
        { printf "%-16s %-7s %9.1f samples/s (batch %d)  %8.3f ms of processor time a sample  %6.1f MB\n", (NR == 1 ? name : ""), $1, $2, $5, $3, $4
          if (NR == 1) { rate = $2; cpu = $3; memory = $4 } else { if ($2 > most) { most = $2; peak = $4 } if (!least || $3 < least) least = $3 } }
        END { if (most) printf "%-16s against the better: %.2f of its rate, %.2f by processor time, %.2f of its memory\n", "", rate / most, least / cpu, memory / peak }'
    latency "$name" "$model" "$onnx"
}

written() { # written MODEL NAME: the .onnx of it, whose answers are the same
    "$bench/onnx_writer" "$1" "$work/$2.onnx"
    "$bench/model_bench" "$1" 3 1 0 "$work/answers"
    node "$root/bench/ort_bench.js" "$work/$2.onnx" 3 1 0 "$work/answers" >/dev/null
}

echo "$workers workers, the best of $rounds rounds of batch 1 and 8, $seconds s each; load $(cut -d' ' -f1 /proc/loadavg)"
for name in resnet50 mobilenetv2; do
    "$bench/network_model" $name "$work/$name"
    written "$work/$name" $name
    compare $name "$work/$name" "$work/$name.onnx" -
done
written "$data/models/resnet8_cifar10" resnet8
compare resnet8 "$data/models/resnet8_cifar10" "$work/resnet8.onnx" -
written "$data/models/mobilenet_vww" vww
compare vww "$data/models/mobilenet_vww" "$work/vww.onnx" -
written "$data/models/mlperf-tiny-kws" kws
compare kws "$data/models/mlperf-tiny-kws" "$work/kws.onnx" "$data/references/mlperf-tiny-kws/kws_ref_model_float32.tflite"
compare basic-pitch "$data/models/basic-pitch" "$data/references/basic-pitch/nmp.onnx" "$data/references/basic-pitch/nmp.tflite"
compare mcunet "$data/models/mcunet" "$data/references/mcunet/model.onnx" -
echo "load $(cut -d' ' -f1 /proc/loadavg)"
