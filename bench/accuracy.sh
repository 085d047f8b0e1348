#!/usr/bin/env bash
# Accuracy of the quantization methods on a folder of tasks.
#
#     bench/accuracy.sh FOLDER [OUT]
#
# A task is a folder FOLDER/NAME with calibration records, evaluation records and a model (docs/accuracy.md, "Tasks of your own").
# For each task, compares the float model with every method, algorithm and bit width below, and writes
#
#     OUT/NAME/SET.json    one comparison per set of methods
#     OUT/accuracy.md      the tables of docs/accuracy.md
#     OUT/accuracy.html    the same with intervals, sizes and every algorithm
#
# OUT is build/accuracy by default. A set that is complete is not run again unless the program, the records, the model or the
# options changed, so an interrupted run continues where it stopped. TASKS: names of tasks, separated by spaces (default: all).
# SETS: sets to run (default: int8 auto int4 fp8). INTO: a page whose tables are replaced, as docs/accuracy.md. TARE: the program
# (default: build/tare).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tare=${TARE:-$root/build/tare}
[ $# -ge 1 ] && [ -d "$1" ] || { echo "usage: bench/accuracy.sh FOLDER [OUT]" >&2; exit 2; }
folder=$(cd "$1" && pwd)
out=${2:-$root/build/accuracy}
mkdir -p "$out"

declare -A methods
methods[int8]=static,dynamic,weight_only,bfloat16
methods[auto]=static
methods[fp8]=fp8,fp8_dynamic,fp8_weight_only
methods[int4]=weight_only:bits=4,weight_only:bits=4:block=32,weight_only:bits=4+gptq,weight_only:bits=4:block=32+gptq,static:bits=4,static:bits=4+gptq
declare -A options
options[int8]='--algorithms min_max,average_min_max,percentile,percentile:p=99.99,entropy,mse'
options[auto]='--auto'
options[int4]=''
options[fp8]=''

# model_of TASK: its saved_model, or the path of the line "- model: `PATH`" in its README.md.
model_of() {
    local path place
    [ -d "$1/saved_model" ] && { echo "$1/saved_model"; return; }
    path=$(sed -n 's/^- model: `\(.*\)`.*$/\1/p' "$1/README.md" 2>/dev/null)
    for place in "$1" "$folder" "$folder/.."; do
        [ -n "$path" ] && [ -d "$place/$path" ] && { echo "$place/$path"; return; }
    done
    return 1
}

# records_of TASK KIND: the file of records.
records_of() {
    local file
    for file in "$1/$2".tfrecord "$1/$2".tfrecord.gz; do [ -f "$file" ] && { echo "$file"; return; }; done
    return 1
}

# The options of a task: the lines "- options: `…`" and "- metric: NAME …" of its README.md, and the key of its labels or
# expected values.
options_of() {
    local head metric
    metric=$(sed -n 's/^- metric: *\([A-Za-z0-9_]*\).*$/\1/p' "$1/README.md" 2>/dev/null | tr '[:upper:]' '[:lower:]')
    case $metric in auc | mae | rmse | r2 | sqnr | iou | pixel_accuracy | psnr | ssim | sequence) echo "--metric $metric" ;; esac
    sed -n 's/^- options: `\(.*\)`.*$/\1/p' "$1/README.md" 2>/dev/null || true
    head=$("$tare" dataset head -n 1 "$(records_of "$1" eval)")
    if grep -qE '^ +target (float|double|half|bfloat)' <<<"$head"; then
        echo "--target target"
    elif grep -qE '^ +target ' <<<"$head" && ! grep -qE '^ +label ' <<<"$head"; then
        echo "--label target"
    fi
}

# run TASK MODEL SET: one comparison, unless its result is there.
run() {
    local name set=$3 into key args status=0
    name=$(basename "$1")
    into=$out/$name
    mkdir -p "$into"
    args="--methods ${methods[$set]} ${options[$set]} $(options_of "$1" | tr '\n' ' ')"
    key=$({ echo "$args"; cksum <"$tare"; cksum <"$(records_of "$1" eval)"; cksum <"$(records_of "$1" calibration)"
            find "$2" -type f -exec cksum {} + | sort; } | cksum)
    [ -f "$into/$set.json" ] && [ "$(cat "$into/$set.key" 2>/dev/null)" = "$key" ] && return
    rm -f "$into/$set.key"
    local TIMEFORMAT='%R %U'
    # shellcheck disable=SC2086 # options are words
    { time "$tare" compare "$2" --calibration-data "$(records_of "$1" calibration)" --data "$(records_of "$1" eval)" $args --quiet \
        --report "$into/new.json" >"$into/$set.txt" 2>"$into/$set.log" || status=$?; } 2>"$into/$set.seconds"
    if [ ! -f "$into/new.json" ]; then
        echo "$name, $set: $(tail -n 1 "$into/$set.log")" >&2
        return 1
    fi
    mv "$into/new.json" "$into/$set.json"
    [ $status -ne 0 ] || echo "$key" >"$into/$set.key"
    printf '%-28s %-5s %6s s\n' "$name" "$set" "$(cut -d' ' -f1 "$into/$set.seconds")"
    return $status
}

failed=0
tasks=()
for task in "$folder"/*/; do
    task=${task%/}
    [ -z "${TASKS:-}" ] || [[ " $TASKS " = *" $(basename "$task") "* ]] || continue
    records_of "$task" eval >/dev/null && records_of "$task" calibration >/dev/null || continue
    model=$(model_of "$task") || { echo "$(basename "$task"): no model (expected saved_model/, or a line '- model: \`PATH\`' in README.md)" >&2; failed=1; continue; }
    tasks+=("$(basename "$task")")
    for set in ${SETS:-int8 auto int4 fp8}; do run "$task" "$model" "$set" || failed=1; done
done
[ ${#tasks[@]} -gt 0 ] || { echo "$folder: no task (expected folders with calibration.tfrecord.gz and eval.tfrecord.gz)" >&2; exit 1; }
mapfile -t tasks < <(printf '%s\n' "${tasks[@]}" | LC_ALL=C sort)
python3 "$root/bench/accuracy_tables.py" ${INTO:+--into "$INTO"} "$out" "${tasks[@]}"
exit $failed
