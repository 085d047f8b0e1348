#!/usr/bin/env bash
# Converts a SavedModel of 2 GiB and tells time and resident memory beside a plain copy of its files on the same disk.
#   bench/convert_large.sh BUILD_DIR [WORK_DIR]     (needs 7 GB there; removed afterwards)
set -euo pipefail
build=$1
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/convert_large.XXXXXX")
trap 'rm -rf "$work"' EXIT
side=8192 variables=8
"$build/bench/large_model" "$work/model" $variables $side
timed() { /usr/bin/time -f '%e %M' -o "$work/time" "$@" >/dev/null; cat "$work/time"; }
cat "$work"/model/variables/* >/dev/null # both find the files in memory
sync
for run in 1 2 3; do
    rm -rf "$work/copy" "$work/converted"
    read -r copy _ < <(timed bash -c "cp -r '$work/model' '$work/copy' && sync '$work'/copy/variables/*")
    rm -rf "$work/copy"
    read -r convert memory < <(timed "$build/tare" convert --quiet --input_model_dir="$work/model" \
        --output_model_dir="$work/converted" --converter_options_string='tpu_functions { function_alias: "tpu_func" }')
    limit=$((side * side * 4 * 5 / 2 / 1024 + 256 * 1024))
    awk -v c="$copy" -v t="$convert" -v m="$memory" -v l="$limit" -v r="$run" \
        'BEGIN { printf "run %d: cp and sync %.2f s, convert %.2f s (%.2f of its speed), resident %.0f MiB (limit %.0f MiB)\n", r, c, t, c / t, m / 1024, l / 1024 }'
done
