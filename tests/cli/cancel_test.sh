#!/usr/bin/env bash
# Cancellation: SIGINT, SIGTERM and SIGHUP stop a command within a second, inside a record, a loop without end and a single
# large product; a second signal ends it at once; an ignored SIGINT stays ignored; what is saved is complete.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
hostile() { "$TARE_TEST_HELPERS/hostile_model" "$@" || fail "hostile_model $*"; }
cd "$work" || exit 1
hostile loop loop
hostile calls calls 40
hostile product product 5000
"$TARE_TEST_HELPERS/op_model" samples x.tfrecord x 'float[1,4] 1 2 3 4' 3
before=$(ls -A)
# It takes some milliseconds on an idle machine; the bound is for machines that run other tests and for the sanitizers.
limit=10

# start COMMAND…: in the background as $pid, until it catches signals; then it gets 0.3 s. SIGINT, which a shell without job
# control ignores in such a process, has its default action.
start() {
    env --default-signal=INT "$tare" "$@" >stdout 2>stderr </dev/null &
    pid=$!
    ready $pid || fail "$1 $2 ended: $(cat stderr)"
    sleep 0.3
}
# stop SIGNAL COMMAND…: signals the running command; one line, status 130, nothing left.
stop() {
    local signal=$1 status=0 began took
    shift
    start "$@"
    began=$(date +%s%N)
    kill -s "$signal" $pid
    wait $pid || status=$?
    took=$((($(date +%s%N) - began) / 1000000))
    [ $status -eq 130 ] || fail "SIG$signal, $1 $2: status $status (expected 130): $(tail -1 stderr)"
    [ $took -le $((limit * 1000)) ] || fail "SIG$signal, $1 $2: stopped after $took ms"
    [ "$(grep -c '^tare: .*interrupted' stderr)" -eq 1 ] || fail "SIG$signal, $1 $2: no line about the interruption: $(cat stderr)"
    rm -f stdout stderr
    [ "$(ls -A)" = "$before" ] || fail "SIG$signal, $1 $2: left behind: $(ls -A)"
}
stop INT run loop --data x.tfrecord
stop TERM run calls --data x.tfrecord
stop HUP run product --data x.tfrecord
stop INT calibrate loop --data x.tfrecord -o out.calib
stop TERM calibrate product --data x.tfrecord -o out.calib --threads 2
stop HUP calibrate loop --data x.tfrecord -o out.calib
stop INT compare loop --data x.tfrecord
stop HUP compare calls --data x.tfrecord
stop TERM quantize loop out --data x.tfrecord
stop INT quantize product out --data x.tfrecord

# a reader of the messages that ends, and the processor time limit (ulimit -t): the command cleans up
for n in $(seq 60); do cat "$glyphs/calibration.tfrecord.gz"; done >many.tfrecord.gz
"$tare" calibrate "$glyphs/saved_model" --data many.tfrecord.gz -o unread.calib --verbose 2>&1 | head -1 >/dev/null
[ -z "$(find . -name '.*.lock' -o -name '.*.tmp-*')" ] || fail "without a reader: left: $(ls -A)"
[ -s unread.calib ] || fail "a calibration whose messages are not read: $(ls -A)"
"$tare" ops --json | head -1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 141 ] || fail "without a reader of its output: status ${PIPESTATUS[0]} (expected 141)"
rm unread.calib
status=0
(ulimit -St 1; exec "$tare" run loop --data x.tfrecord) >/dev/null 2>stderr || status=$?
[ $status -eq 130 ] && grep -qx 'tare: the processor time limit has passed' stderr || fail "ulimit -t: status $status: $(cat stderr)"
status=0
(ulimit -St 1; exec "$tare" calibrate loop --data x.tfrecord -o out.calib --quiet) 2>stderr || status=$?
[ $status -eq 130 ] && grep -q '^tare: the processor time limit has passed' stderr || fail "ulimit -t, calibrate: status $status: $(cat stderr)"
rm stderr many.tfrecord.gz
[ "$(ls -A)" = "$before" ] || fail "ulimit -t: left behind: $(ls -A)"

# a record that is nearly complete is completed, and the state is saved: the resumed run has the bytes of one run
want() { sha256sum <"$1" | cut -d' ' -f1; }
for n in $(seq 60); do cat "$glyphs/calibration.tfrecord.gz"; done >many.tfrecord.gz
"$tare" calibrate "$glyphs/saved_model" --data many.tfrecord.gz -o whole.calib --quiet || fail "calibrate"
for signal in INT TERM HUP; do
    for delay in 0 0.3 0.6 1.2 2.4 4.8; do # until the signal comes after the first record
        status=0
        env --default-signal=INT "$tare" calibrate "$glyphs/saved_model" --data many.tfrecord.gz -o part.calib --quiet 2>stderr &
        pid=$!
        ready $pid && sleep $delay && kill -s $signal $pid 2>/dev/null
        wait $pid || status=$?
        [ $status -eq 130 ] && grep -qxE 'tare: interrupted( within a record, before a state was saved)?' stderr && [ ! -e part.calib.state ] || break
    done
    if [ $status -eq 130 ]; then
        grep -q 'records are saved in .part.calib.state.; continue with --resume' stderr || fail "SIG$signal: $(cat stderr)"
        "$tare" calibrate "$glyphs/saved_model" --data many.tfrecord.gz -o part.calib --quiet --resume || fail "calibrate --resume"
    elif [ $status -ne 0 ]; then
        fail "SIG$signal: status $status: $(cat stderr)"
    fi
    [ "$(want part.calib)" = "$(want whole.calib)" ] || fail "SIG$signal: the resumed calibration has other bytes"
    rm -f part.calib part.calib.state
done

# a second signal ends the process at once; a signal that is ignored when it starts stays ignored
start run loop --data x.tfrecord
kill -STOP $pid
kill -TERM $pid
kill -CONT $pid
wait $pid
[ $? -eq 130 ] || fail "SIGTERM while stopped"
for attempt in 1 2 3 4 5; do # calibrate takes 0.3 s to complete its records: the second signal must come before
    start calibrate loop --data x.tfrecord -o out.calib
    kill -TERM $pid
    sleep 0.15
    kill -TERM $pid 2>/dev/null
    wait $pid
    status=$?
    [ $status -eq 143 ] && break
done
[ $status -eq 143 ] || fail "a second SIGTERM does not end the process at once: status $status"
(trap '' INT; exec "$tare" run loop --data x.tfrecord) >/dev/null 2>&1 </dev/null &
pid=$!
ready $pid || fail "run loop ended"
sleep 0.3
kill -INT $pid
sleep 0.5
kill -0 $pid 2>/dev/null || fail "an ignored SIGINT stopped the command"
kill -TERM $pid
wait $pid
[ $? -eq 130 ] || fail "SIGTERM after an ignored SIGINT"
finish
