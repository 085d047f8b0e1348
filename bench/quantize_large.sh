#!/usr/bin/env bash
# Quantizes the weights of a SavedModel of 2 GiB and tells time and resident memory.
#   bench/quantize_large.sh BUILD_DIR [WORK_DIR]     (needs 4 GB there; removed afterwards)
set -euo pipefail
build=$1
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/quantize_large.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$build/bench/large_model" "$work/model" 8 8192
for options in "--bits 8" "--bits 4 --granularity per_block:64"; do
    TMPDIR=$work /usr/bin/time -f '%e %U %M' -o "$work/time" "$build/tare" quantize "$work/model" "$work/quantized" --overwrite --quiet \
        --method weight_only $options
    read -r wall user memory <"$work/time"
    awk -v o="$options" -v w="$wall" -v u="$user" -v m="$memory" -v s="$(du -sm "$work/quantized" | cut -f 1)" \
        'BEGIN { printf "%-36s %.1f s (%.1f s of processor), resident %.0f MiB, written %d MiB\n", o, w, u, m / 1024, s }'
done
