#!/usr/bin/env bash
# --max-memory and --max-seconds: refused before the allocation, with the node and the size; the time limit stops like Ctrl-C.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
hostile() { "$TARE_TEST_HELPERS/hostile_model" "$@" || fail "hostile_model $*"; }
cd "$work" || exit 1
hostile fill fill 500000000 # 2 GB when it runs
hostile fill small 1000
hostile loop loop
hostile calls calls 40
"$TARE_TEST_HELPERS/op_model" samples x.tfrecord x 'float[1,4] 1 2 3 4' 3
before=$(ls -A)
refuse() { # refuse TEXT COMMAND…
    expect 1 "$1" "$tare" "${@:2}"
    rm -f stdout stderr
    [ "$(ls -A)" = "$before" ] || fail "${*:2}: left behind: $(ls -A)"
}
over="fill (Fill): 2147483648 bytes more than the memory limit allows (expected at most 1000000000, got "
refuse "$over" run fill --data x.tfrecord --max-memory 1GB --quiet
refuse "$over" --max-memory=1000MB run fill --data x.tfrecord --quiet
refuse "$over" compare fill --data x.tfrecord --max_memory 1GB --quiet
refuse "$over" calibrate fill --data x.tfrecord -o out.calib --max-memory 1GB --quiet
refuse "$over" quantize fill out --data x.tfrecord --max-memory 1GB --quiet
# strings, too
"$tare" ops Tile --save-model strings --shape 'string[1]' --shape 'int32[1]' >/dev/null 2>&1 || fail "ops Tile"
{ echo input,multiples; echo abc,500000000; } >x.csv
printf 'input { name: "input" shape: 1 type: STRING }\ninput { name: "multiples" shape: 1 type: INT32 }\n' >x.spec
before=$(ls -A)
refuse "Tile (Tile): 8000000000 bytes more than the memory limit allows (expected at most 1000000000, got " run strings --data x.csv --spec x.spec --max-memory 1GB
rm -r strings x.csv x.spec
before=$(ls -A)
"$tare" run small --data x.tfrecord --max-memory 100MB >/dev/null || fail "a small model within its limit"
# an arena and the buffers of reading count as well
refuse "more than the memory limit allows" inspect "$glyphs/saved_model" --max-memory 20kB
refuse "more than the memory limit allows" quantize "$glyphs/saved_model" out --method weight_only --max-memory 300kB --quiet

expired() { # expired COMMAND…: status 130, one line, nothing left
    local status=0
    "$tare" "$@" >/dev/null 2>stderr </dev/null || status=$?
    [ $status -eq 130 ] || fail "$*: status $status (expected 130): $(cat stderr)"
    grep -q '^tare: the time limit has passed' stderr || fail "$*: $(cat stderr)"
    rm -f stderr
    [ "$(ls -A)" = "$before" ] || fail "$*: left behind: $(ls -A)"
}
expired run loop --data x.tfrecord --max-seconds 0.3
expired --max-seconds=0.3 run calls --data x.tfrecord
expired calibrate loop --data x.tfrecord -o out.calib --max-seconds 0.3 --quiet
expired quantize loop out --data x.tfrecord --max-seconds 0.3 --quiet
"$tare" run small --data x.tfrecord --max-seconds 600 >/dev/null || fail "a run within its time"

# so does one that waits for the other end of a pipe, or for data
mkfifo never
before=$(ls -A)
expired run small --data never --max-seconds 0.3
expired run small --data x.tfrecord --log-file never --max-seconds 0.3
expired calibrate small --data x.tfrecord -o never --max-seconds 0.3 --quiet
exec 8<>never # a writer that writes nothing
status=0
"$tare" run small --data - --max-seconds 0.3 <&8 >/dev/null 2>stderr || status=$?
[ $status -eq 130 ] && grep -qx 'tare: the time limit has passed' stderr || fail "waiting for standard input: status $status: $(cat stderr)"
"$tare" run small --data - <&8 >/dev/null 2>stderr &
ready $! && sleep 0.3 && kill -TERM $!
status=0
wait $! || status=$?
[ $status -eq 130 ] && grep -qx 'tare: interrupted' stderr || fail "SIGTERM while waiting for standard input: status $status: $(cat stderr)"
exec 8<&-
rm -f stderr never

# commands that look for a stop between records have the same words
for _ in $(seq 1000); do cat x.tfrecord; done >piece
before=$(ls -A)
endless() { while cat piece 2>/dev/null; do :; done; }
for command in "dataset info -" "dataset make - -o out.tfrecord" "dataset split $(yes piece | head -2000 | tr "\n" " ") --parts 2 -o out" "run small --data - --quiet"; do
    # shellcheck disable=SC2086
    { endless | { "$tare" $command --max-seconds 0.5 >/dev/null 2>stderr; echo $? >status; }; } 2>/dev/null
    [ "$(cat status)" -eq 130 ] && grep -qx 'tare: the time limit has passed' stderr || fail "$command: status $(cat status): $(cat stderr)"
    rm stderr status
    [ "$(ls -A)" = "$before" ] || fail "$command: left behind: $(ls -A)"
done
mkdir models && cp -r loop models/loop
status=0
"$tare" batch models --methods static --data x.tfrecord --output-dir done --state state --max-seconds 1 --quiet >/dev/null 2>stderr || status=$?
[ $status -eq 130 ] && grep -qx 'tare: the time limit has passed (continue with --resume)' stderr || fail "batch: status $status: $(cat stderr)"
rm -rf models done state piece stderr

# a command that waits where nothing can stop it is ended, with a message
status=0
{ ASKED_WAIT=1 "$tare" inspect small --plugin "$TARE_TEST_PLUGINS/asked.so" --max-seconds 0.2 >/dev/null 2>stderr; } 2>/dev/null || status=$?
[ $status -eq 142 ] || fail "a command that does not stop: status $status (expected 142): $(cat stderr)"
grep -qx 'tare: error: the time limit has passed, and the command did not stop in 5 s: ended' stderr || fail "a command that does not stop: $(cat stderr)"
rm -f stderr
before=$(ls -A)

usage() { expect 2 "$1" "$tare" "${@:2}"; }
usage "--max-memory is '4x' (expected a size" run small --data x.tfrecord --max-memory 4x
usage "--max-seconds is '-1' (expected a positive number" run small --data x.tfrecord --max-seconds=-1
usage "option '--max-seconds' needs a value" run small --data x.tfrecord --max-seconds
# a file size limit is an error of the write
limited() { (ulimit -f 8; exec "$tare" "$@"); }
expect 1 "File too large" limited copy "$glyphs/saved_model" out
expect 1 "File too large" limited calibrate "$glyphs/saved_model" --data "$glyphs/calibration.tfrecord.gz" -o out.calib --quiet
rm -f stdout stderr
[ "$(ls -A)" = "$before" ] || fail "ulimit -f: left behind: $(ls -A)"

# little address space: OpenBLAS, which asks for it forever, is not loaded; gptq computes the same without it
if sanitized; then
    echo "note: the sanitizer needs more address space than the limits of this test"
else
    within() { (ulimit -v "$1"; exec timeout -k 1 60 "$tare" "${@:2}"); }
    gptq() { echo quantize "$glyphs/saved_model" "$1" --data "$glyphs/calibration.tfrecord.gz" --passes gptq --quiet; }
    # shellcheck disable=SC2046
    "$tare" $(gptq out) 2>stderr || fail "gptq: $(cat stderr)"
    for size in 150000 300000 600000; do
        # shellcheck disable=SC2046
        within $size $(gptq out$size) 2>stderr || fail "gptq with $size kB of address space: status $?: $(cat stderr)"
        [ "$(hash_of out$size)" = "$(hash_of out)" ] || fail "gptq with $size kB of address space: another model"
    done
    rm -r out out*00
    "$tare" ops Cholesky --save-model cholesky --shape 'float[2,2]' >/dev/null 2>&1 || fail "ops Cholesky"
    "$TARE_TEST_HELPERS/op_model" samples square.tfrecord input 'float[2,2] 4 0 0 9' 1
    expect 1 "Cholesky (Cholesky): out of memory: linear algebra needs 268435456 bytes of address space (ulimit -v)" \
        within 150000 run cholesky --data square.tfrecord --quiet
    "$tare" run cholesky --data square.tfrecord --quiet >/dev/null || fail "run cholesky"
fi

grep -q -- '--max-memory SIZE' <<<"$("$tare" help)" || fail "help does not name the limits"
finish
