#!/usr/bin/env bash
# What tare compare costs: bench/compare.sh [THREADS [MODEL DATA CALIBRATION]…]. The first lines, of resnet8: wall time of the
# whole command, calibration included and not, over the sum of the seconds that the float model and each distinct quantized one
# take over the records. Then, for resnet8 and each given model: processor time of a comparison of twelve variants over that of
# twelve float runs (tare run), with batches of 16 and with the best of four batch sizes; the least of three alternating runs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${TARE_TEST_DATA:-$root/../shared/data}
tare=${TARE:-$root/build/tare}
model=$data/models/resnet8_cifar10
eval=$data/datasets/cifar10/eval-1000.tfrecord.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
threads=${1:-1}
shift $(($# ? 1 : 0))
"$tare" calibrate "$model" --data "$data/datasets/cifar10/calibration-512.tfrecord.gz" -o "$work/c.calib" --quiet

measure() { # measure NAME OPTION…: the best of three
    local name=$1 best='' wall runs start
    shift
    for _ in 1 2 3; do
        start=$(date +%s.%N)
        "$tare" compare "$model" "$@" --data "$eval" --quiet --json --threads "$threads" \
            --methods static,dynamic,weight_only --algorithms min_max,average_min_max,percentile,entropy,mse >"$work/report.json"
        wall=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
        runs=$(grep -o '"seconds": [0-9.e-]*' "$work/report.json" | awk '{ sum += $2 } END { print sum }')
        best=$(printf '%s\n' ${best:+"$best"} "$(awk -v w="$wall" -v r="$runs" 'BEGIN { printf "%.3f %.2f %.2f", w / r, w, r }')" | sort -g | head -1)
    done
    awk -v name="$name" '{ printf "%-34s %.2f times the models'"'"' own runs (%.2f s against %.2f s)\n", name, $1, $2, $3 }' <<<"$best"
}

processor() { # processor COMMAND…: seconds of user and system time
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
less() { printf '%s\n' "$1" "$2" | sort -g | head -1; }

twelve() { # twelve MODEL DATA CALIBRATION
    local compared=1e9 batched=1e9 best=1e9 seconds
    for _ in 1 2 3; do
        compared=$(less "$compared" "$(processor "$tare" compare "$1" --data "$2" --calibration "$3" --quiet --threads "$threads" \
            --methods static,static:granularity=per_tensor,dynamic,weight_only --algorithms min_max,average_min_max,percentile,entropy,mse)")
        for batch in 1 8 16 64; do
            seconds=$(processor "$tare" run "$1" --data "$2" --quiet --threads "$threads" --batch "$batch")
            best=$(less "$best" "$seconds")
            [ "$batch" = 16 ] && batched=$(less "$batched" "$seconds")
        done
    done
    awk -v name="$(basename "$1")" -v c="$compared" -v b="$batched" -v f="$best" \
        'BEGIN { printf "%-20s 12 variants %.3f s: %.2f of 12 float runs (%.3f s) with batches of 16, %.2f (%.3f s) with the best batch size\n", name, c, c / 12 / b, b, c / 12 / f, f }'
}

measure "with a calibration file" --calibration "$work/c.calib"
measure "calibration of 512 records included" --calibration-data "$data/datasets/cifar10/calibration-512.tfrecord.gz"
twelve "$model" "$eval" "$work/c.calib"
while [ $# -ge 3 ]; do
    twelve "$1" "$2" "$3"
    shift 3
done
