#!/usr/bin/env bash
# Measures how the time and memory of each command grow with the size of a model.
#   bench/scaling.sh BUILD_DIR [N [SHAPE…]]
# Each shape of bench/scaling_model.c (default: all) is written with N, 4 N and 16 N layers (default N: 1000; `nested`
# has N / 20), and the exponent is fitted between N and 16 N: cost ~ size^exponent, so that 1 is linear. Start-up costs
# are not subtracted, which makes small exponents of short runs smaller. Time is the least processor time of RUNS runs
# (3; short commands run more often) in seconds, memory the peak resident set in MiB.
set -euo pipefail
build=$(cd "$1" && pwd) n=${2:-1000}
shift; [ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- long wide functions variables nested recurrent
tare=$build/tare root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/scaling.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - <<'PY'
import random, struct
random.seed(1)
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }"
header += b" " * ((64 - (10 + len(header) + 1) % 64) % 64) + b"\n"
with open("x.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    file.write(struct.pack("<64f", *[random.gauss(0, 1) for _ in range(64)]))
PY
"$tare" dataset make --quiet --input x=x.npy -o samples.tfrecord

# measure NAME OUTPUT COMMAND…: appends "NAME seconds MiB" to the results of this size
measure() {
    local name=$1 output=$2 cost
    shift 2
    cost=$("$root/bench/least_cost.py" "${RUNS:-3}" "$output" "$@" 2>errors) ||
        { echo "scaling.sh: $name: $(head -1 errors)" >&2; cost="- -"; }
    echo "$name $cost" >>"$results"
}

printf '%-10s %-10s %30s %30s\n' shape command "seconds at n, 4n, 16n: exponent" "MiB at n, 4n, 16n: exponent"
for shape; do
    for factor in 1 4 16; do
        results=$work/results.$factor size=$((n * factor))
        [ "$shape" = nested ] && size=$((size / 20))
        rm -rf model calibration quantized converted copied
        : >"$results"
        "$build/bench/scaling_model" "$shape" model "$size"
        measure inspect - "$tare" inspect model
        measure validate - "$tare" validate model
        measure calibrate calibration "$tare" calibrate --data=samples.tfrecord model -o calibration
        measure quantize quantized "$tare" quantize model quantized --calibration calibration
        measure convert converted "$tare" convert --quiet --input_model_dir=model --output_model_dir=converted \
            --converter_options_string='tpu_functions { function_alias: "tpu_func" }'
        measure copy copied "$tare" copy model copied
        measure diff - "$tare" diff model quantized
        measure compare - "$tare" compare model --data=samples.tfrecord --calibration=calibration
    done
    paste -d ' ' results.1 results.4 results.16 | awk -v shape="$shape" '
        function exponent(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", log(b / a) / log(16)) : "-" }
        { printf "%-10s %-10s %7s %7s %8s: %s %12s %7s %8s: %s\n", shape, $1, $2, $5, $8, exponent($2, $8), $3, $6, $9, exponent($3, $9) }'
done
