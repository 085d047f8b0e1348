#!/usr/bin/env bash
# The accuracy pass reconstruction on the bundled example: blocks, time limit, determinism, report.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
quantize() { # OUT OPTION…
    local out=$1
    shift
    "$tare" quantize "$glyphs/saved_model" "$work/$out" --data "$glyphs/calibration.tfrecord.gz" --bits 4 "$@"
}

quantize blocks --passes gptq,reconstruction:iterations=8 2>"$work/report" || fail "quantize: $(tail -1 "$work/report")"
grep -q '^reconstruction (SQNR' "$work/report" || fail "the report has no blocks: $(cat "$work/report")"
grep -qE '^  .*(rounded together|rounded layer by layer|unchanged), before [0-9.]+ dB, layer by layer [0-9.]+ dB, together [0-9.]+ dB$' \
    "$work/report" || fail "no block was trained: $(cat "$work/report")"

# Another number of threads gives the same model.
if command -v taskset >/dev/null; then
    taskset -c "$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$tare" quantize "$glyphs/saved_model" "$work/one" \
        --data "$glyphs/calibration.tfrecord.gz" --bits 4 --passes gptq,reconstruction:iterations=8 --quiet || fail "one thread"
    diff -r "$work/blocks" "$work/one" >/dev/null || fail "one thread gives another model"
fi
quantize seed --passes gptq,reconstruction:iterations=8,seed=2 --quiet || fail "another seed"

# The time limit, and a run without training, are reported.
quantize limited --passes reconstruction:iterations=1000000 --reconstruction-seconds 1 2>"$work/report" || fail "time limit"
grep -q 'not trained as a block: the time limit was reached$' "$work/report" || fail "the time limit is not reported: $(cat "$work/report")"
quantize layers --passes reconstruction:iterations=0 --json >"$work/json" 2>/dev/null || fail "iterations=0"
grep -q '"reason": "0 iterations"' "$work/json" || fail "the JSON report has no blocks: $(cat "$work/json")"

expect 2 "reconstruction: iterations is 'x' (expected a number from 0 to 1e+06)" quantize bad --passes reconstruction:iterations=x
finish
