#!/usr/bin/env bash
# Fuzzes all targets (tests/fuzz/targets.c), or those named, with libFuzzer under AddressSanitizer and UndefinedBehaviorSanitizer,
# starting from tests/corpus, and prints a table for docs/reliability.md: executions, edges covered, inputs, findings.
#
#   scripts/fuzz.sh MINUTES [TARGET…]        on all cores, or TARE_FUZZ_JOBS; each target gets the same share of the time
#   scripts/fuzz.sh --minimize [TARGET…]     keeps in tests/corpus the fewest inputs that cover what all do, small ones first
#
# New inputs and findings are in build-fuzz/fuzz/TARGET. A finding is repeated with
#   TARE_FUZZ_TARGET=TARGET build-fuzz/tests/fuzz_target FILE
# Fixed, it becomes tests/corpus/TARGET/fixed-WHAT, which --minimize keeps, as it does seed-WHAT (scripts/make-corpus.py).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-fuzz
program=$build/tests/fuzz_target
corpus=$root/tests/corpus
largest_addition=60000 # bytes of inputs that --minimize adds for one target, so that all together stay below 2 MB
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
action=$1
shift
[ -f "$build/build.ninja" ] || cmake -S "$root" --preset fuzz >/dev/null
ninja -C "$build" fuzz_target >&2
all=$(TARE_FUZZ_TARGET='' "$program" 2>&1 | sed -n 's/^TARE_FUZZ_TARGET must be one of: //p') || true
targets=("$@")
[ $# -gt 0 ] || read -ra targets <<<"$all"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 OPENBLAS_NUM_THREADS=1
memory=/dev/shm
[ -w $memory ] || memory=/tmp
TARE_FUZZ_SCRATCH=$(mktemp -d $memory/tare-fuzz-XXXXXX) # what a target that crashes leaves there is removed at the end
export TARE_FUZZ_SCRATCH
trap 'rm -rf "$TARE_FUZZ_SCRATCH"' EXIT

# fuzz TARGET SECONDS: until the time is over; libFuzzer ends at a finding, so it is started again.
fuzz() {
    local target=$1 end=$(($(date +%s) + $2)) work=$build/fuzz/$1 left
    mkdir -p "$work/inputs" "$work/findings"
    rm -f "$work"/log.*
    for round in $(seq 20); do
        left=$((end - $(date +%s)))
        [ "$left" -gt 0 ] || break
        TARE_FUZZ_TARGET=$target "$program" -max_total_time="$left" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
            -artifact_prefix="$work/findings/" "$work/inputs" "$corpus/$target" >"$work/log.$round" 2>&1 || true
    done
}

# row TARGET: one line of the table.
row() {
    local work=$build/fuzz/$1 runs edges
    runs=$(cat "$work"/log.* | awk '/number_of_executed_units/ { n += $2 } END { print n + 0 }')
    edges=$(cat "$work"/log.* | grep -oE 'cov: [0-9]+' | awk '$2 > n { n = $2 } END { print n + 0 }')
    echo "| $1 | $runs | $edges | $(find "$work/inputs" -type f | wc -l) | $(find "$work/findings" -type f | wc -l) |"
}

# minimize TARGET: the smallest inputs first, so that of two that cover the same the smaller one is kept.
minimize() {
    local target=$1 new=$build/fuzz/$1/minimized size added=0 file
    rm -rf "$new"
    mkdir -p "$new" "$build/fuzz/$target/inputs"
    TARE_FUZZ_TARGET=$target "$program" -merge=1 -timeout=20 -rss_limit_mb=3000 "$new" "$corpus/$target" "$build/fuzz/$target/inputs" \
        >"$build/fuzz/$target/log.merge" 2>&1
    find "$corpus/$target" -type f ! -name 'fixed-*' ! -name 'seed-*' -delete
    while read -r size file; do
        [ $((added + size)) -le $largest_addition ] || break
        cp "$file" "$corpus/$target/"
        added=$((added + size))
    done < <(find "$new" -type f -printf '%s %p\n' | sort -n)
    echo "$target: $(find "$corpus/$target" -type f | wc -l) inputs, $added bytes added"
}

if [ "$action" = --minimize ]; then
    for target in "${targets[@]}"; do minimize "$target"; done
    exit 0
fi
jobs=${TARE_FUZZ_JOBS:-$(nproc)}
seconds=$((action * 60 * jobs / ${#targets[@]}))
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    fuzz "$target" $((seconds > 0 ? seconds : 1)) &
done
wait
echo "| target | executions | edges | new inputs | findings |"
echo "|---|---|---|---|---|"
for target in "${targets[@]}"; do row "$target"; done
[ -z "$(find "$build/fuzz" -path '*/findings/*' -type f)" ]
