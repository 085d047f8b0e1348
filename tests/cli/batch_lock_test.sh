#!/usr/bin/env bash
# Two batches with one output: a job is done by one process, and the other reports it; the output is always whole.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
mkdir "$work/models"
cp -r "$glyphs/saved_model" "$work/models/glyphs"
cd "$work" || exit 1
batch() { "$tare" batch models --methods weight_only --output-dir out --state "state$1" --jobs 1 --retries 0 --quiet "${@:2}" >"out$1.txt" 2>"err$1.txt"; }
batch 0 || fail "one batch: $(cat err0.txt)"
want=$(hash_of out/glyphs-weight_only)
[ -z "$(find out -name '.*')" ] || fail "left behind: $(find out -name '.*')"

# the output is locked: the job fails with the process in the message, and the output stays
exec 9>out/.glyphs-weight_only.lock
flock 9
echo 4711 >&9
batch 1 --overwrite && fail "the batch succeeded though its output was locked"
grep -q "output 'out/glyphs-weight_only' is being written by process 4711" out1.txt err1.txt state1/*.json || fail "no holder: $(cat out1.txt err1.txt)"
[ "$(hash_of out/glyphs-weight_only)" = "$want" ] || fail "the output changed while it was locked"
exec 9>&-
# what a killed process left is no lock
batch 2 --overwrite || fail "after a killed process: $(cat out2.txt err2.txt)"
[ -z "$(find out -name '.*')" ] || fail "left behind: $(find out -name '.*')"

# two at the same time: each job is done or refused, never half
for round in 1 2 3 4 5; do
    batch 3 --overwrite & first=$!
    batch 4 --overwrite & second=$!
    good=0
    wait $first && good=$((good + 1))
    wait $second && good=$((good + 1))
    [ $good -ge 1 ] || fail "round $round: no batch succeeded: $(cat out3.txt out4.txt)"
    [ "$(hash_of out/glyphs-weight_only)" = "$want" ] || fail "round $round: the output is not whole"
    [ -z "$(find out -name '.*')" ] || fail "round $round: left behind: $(find out -name '.*')"
    rm -rf state3 state4
done
finish
