#!/usr/bin/env bash
# --auto by the measure of the task: samples with labels decide by top-1 first, samples without by SQNR alone; the choice is never
# below the plain method on the held-out samples.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
samples=$glyphs/eval.tfrecord.gz # with labels
auto() { # OUT OPTION…
    local out=$1
    shift
    "$tare" quantize "$glyphs/saved_model" "$work/$out" --auto --data "$samples" --limit 200 "$@" 2>"$work/report" ||
        fail "quantize $*: $(tail -1 "$work/report")"
}

auto labelled --bits 4
grep -qE '^auto: .*; top-1 [0-9.]+ % instead of [0-9.]+ %, [0-9.]+ dB instead of [0-9.]+ on [0-9]+ held-out samples' "$work/report" ||
    fail "no top-1 in: $(grep '^auto' "$work/report")"
sed -n 's/^auto: .*top-1 \([0-9.]*\) % instead of \([0-9.]*\) %.*/\1 \2/p' "$work/report" | awk '{ exit !($1 >= $2) }' ||
    fail "below the plain method: $(grep '^auto' "$work/report")"

auto unlabelled --label nothing
grep -q '^auto: ' "$work/report" || fail "no choice is printed"
grep -q 'top-1' <<<"$(grep '^auto: ' "$work/report")" && fail "top-1 without labels"

# the same measure for compare, and a requested one
"$tare" compare "$glyphs/saved_model" --data "$samples" --calibration-data "$samples" --limit 60 --methods static --auto \
    --metric top1 >"$work/table" 2>/dev/null || fail "compare --auto --metric"
grep -q '^auto: ' "$work/table" || fail "compare prints no choice"
finish
