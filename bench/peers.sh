#!/usr/bin/env bash
# Throughput of networks here, in ONNX Runtime and in TensorFlow Lite, on one machine in one run: bench/peers.sh
# [workers [network…]]. ResNet-50 and MobileNetV2 are built by network_model with random weights; where there is no
# .onnx of a model, onnx_writer writes one with the same weights. Before anything is timed the outputs are compared
# (1e-4 of the largest magnitude). Programs and batch sizes alternate, ROUNDS times (3), SECONDS_EACH (1) each; the best
# of each counts. The latency lines are the least time of one sample, alone, with one thread and with one thread per
# processor inside the graph, here and in ONNX Runtime.
#
# Then the same networks in int8: static ranges, depthwise convolutions and residual additions included. onnx_writer
# writes them in QDQ form, which ONNX Runtime fuses to QLinear ops, and tflite_from_qdq.py in TensorFlow Lite's with the
# same scales; all int8 models have ranges of the same examples, and output_agreement.py checks their outputs first.
# Rows are processor time of one sample, one worker, and the latency of one sample as above. tare runs at its highest CPU
# level and with TARE_CPU=vnni and avx2; the peers choose their level themselves, so the columns of these levels have no
# ratio to them.
#
# PRECISIONS selects the parts ("float int8"). Needs npm (the peers come as npm packages, into build/peers) and the
# folder of model data (TARE_TEST_DATA, default ../shared/data).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
workers=${1:-1}
shift || true
chosen=" $* "
seconds=${SECONDS_EACH:-1}
rounds=${ROUNDS:-3}
precisions=" ${PRECISIONS:-float int8} "
peers=$root/build/peers
bench=$root/build/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -d "$data/models" ] || { echo "no model data in $data" >&2; exit 1; }

cmake -S "$root" -B "$root/build" -G Ninja -DTARE_BENCH=ON >/dev/null
cmake --build "$root/build" --target tare model_bench tflite_bench network_model onnx_writer >/dev/null
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

selected() { # selected NAME: on the command line, or all
    [ "$chosen" = "  " ] || [[ $chosen == *" $1 "* ]]
}

# The processor time in milliseconds of the line of one program.
busy() { sed -n 's/.*a sample, \([0-9.]*\) of the processor.*/\1/p'; }

compare() { # compare NAME MODEL [ONNX [TFLITE]]: "-" where there is none
    local name=$1 model=$2 onnx=$3 tflite=$4 round batch program
    selected "$name" || return 0
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

integers() { # integers NAME MODEL: writes the int8 models of all programs and compares their outputs
    local name=$1 model=$2
    rm -rf "$work/int8"
    "$bench/onnx_writer" "$model" "$work/int8.onnx" "$work/samples.npy"
    {
        "$root/build/tare" calibrate --quiet "$model" --data "$work/samples.npy" -o "$work/calibration" &&
            "$root/build/tare" quantize --quiet "$model" "$work/int8" --calibration "$work/calibration" --depthwise \
                --integer-adds --activation-bits 8
    } 2>"$work/messages" || { cat "$work/messages" >&2; exit 1; } # few records: a warning
    "$bench/model_bench" "$model" 8 1 0 "$work/float.outputs"
    "$bench/model_bench" "$work/int8" 8 1 0 "$work/tare.outputs"
    node "$root/bench/ort_bench.js" "$work/int8.onnx" 8 1 0 "write:$work/ort.outputs"
    "$root/bench/tflite_from_qdq.py" "$work/int8.onnx" "$work/int8.tflite"
    "$bench/tflite_bench" "$library" "$work/int8.tflite" 8 1 0 "write:$work/tflite.outputs"
    echo "$name, ONNX Runtime: $("$root/bench/output_agreement.py" "$work"/{float,tare,ort}.outputs)"
    echo "$name, TensorFlow Lite: $("$root/bench/output_agreement.py" "$work"/{float,tare,tflite}.outputs)"
}

# Appends "BATCH PROGRAM-PRECISION ms" of each program at one batch size.
measure_int8() { # measure_int8 MODEL ONNX BATCH
    local model=$1 onnx=$2 batch=$3 level form
    for level in "" vnni avx2; do
        for form in "$model" "$work/int8"; do
            echo "$batch tare$level-$([ "$form" = "$model" ] && echo float || echo int8)" \
                "$(TARE_CPU=$level "$bench/model_bench" "$form" "$batch" 1 "$seconds" | busy)"
        done
    done
    echo "$batch ort-float $(node "$root/bench/ort_bench.js" "$onnx" "$batch" 1 "$seconds" 2>/dev/null | busy)"
    echo "$batch ort-int8 $(node "$root/bench/ort_bench.js" "$work/int8.onnx" "$batch" 1 "$seconds" 2>/dev/null | busy)"
    echo "$batch tflite-int8 $("$bench/tflite_bench" "$library" "$work/int8.tflite" "$batch" 1 "$seconds" 2>/dev/null | busy)"
}

compare_int8() { # compare_int8 NAME MODEL ONNX
    local name=$1 model=$2 round batch
    selected "$name" || return 0
    integers "$name" "$model"
    : >"$work/int8.lines"
    for ((round = 0; round < rounds; round++)); do
        for batch in 1 8; do measure_int8 "$model" "$3" $batch >>"$work/int8.lines"; done
    done
    awk -v name="$name" '
        NF == 3 && (!(($1, $2) in least) || $3 < least[$1, $2]) { least[$1, $2] = $3 }
        function ratio(batch, a, b) {
            return (batch, a) in least && (batch, b) in least ? sprintf("%.2f", least[batch, a] / least[batch, b]) : "-"
        }
        END {
            for (batch = 1; batch <= 8; batch += 7) {
                printf "%-12s batch %d  tare %8.3f %8.3f  vnni %8.3f %8.3f  avx2 %8.3f %8.3f",
                    name, batch, least[batch, "tare-float"], least[batch, "tare-int8"], least[batch, "tarevnni-float"],
                    least[batch, "tarevnni-int8"], least[batch, "tareavx2-float"], least[batch, "tareavx2-int8"]
                printf "  ONNX Runtime %8.3f %8.3f  TensorFlow Lite %8s", least[batch, "ort-float"], least[batch, "ort-int8"],
                    (batch, "tflite-int8") in least ? least[batch, "tflite-int8"] : "-"
                printf "  int8 : float %s (vnni %s, avx2 %s), against ONNX Runtime float %s, int8 %s, against TensorFlow Lite int8 %s\n",
                    ratio(batch, "tare-float", "tare-int8"), ratio(batch, "tarevnni-float", "tarevnni-int8"),
                    ratio(batch, "tareavx2-float", "tareavx2-int8"),
                    ratio(batch, "ort-float", "tare-float"), ratio(batch, "ort-int8", "tare-int8"),
                    ratio(batch, "tflite-int8", "tare-int8")
            }
        }' "$work/int8.lines"
    latency "$name" "$work/int8" "$work/int8.onnx"
}

# both NAME MODEL ONNX TFLITE
both() {
    selected "$1" || return 0
    [[ $precisions != *" float "* ]] || compare "$1" "$2" "$3" "$4"
    [[ $precisions != *" int8 "* ]] || compare_int8 "$1" "$2" "$3"
}

# network NAME MODEL [TFLITE]: one whose .onnx is written here
network() {
    selected "$1" || return 0
    written "$2" "$1"
    both "$1" "$2" "$work/$1.onnx" "${3:--}"
}

echo "$workers workers, the best of $rounds rounds of batch 1 and 8, $seconds s each; load $(cut -d' ' -f1 /proc/loadavg)"
for name in resnet50 mobilenetv2; do
    selected $name || continue
    "$bench/network_model" $name "$work/$name"
    network $name "$work/$name"
done
network resnet8 "$data/models/resnet8_cifar10"
network vww "$data/models/mobilenet_vww"
network kws "$data/models/mlperf-tiny-kws" "$data/references/mlperf-tiny-kws/kws_ref_model_float32.tflite"
if [[ $precisions == *" float "* ]]; then
    compare basic-pitch "$data/models/basic-pitch" "$data/references/basic-pitch/nmp.onnx" "$data/references/basic-pitch/nmp.tflite"
    compare mcunet "$data/models/mcunet" "$data/references/mcunet/model.onnx" -
fi
echo "load $(cut -d' ' -f1 /proc/loadavg)"
