#!/usr/bin/env bash
# tare calibrate that is killed or interrupted, and resumed: the bytes of one run.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
gzip -dc "$glyphs/calibration.tfrecord.gz" >"$work/samples.tfrecord"
# Several files, so that there is time to be killed in.
for i in $(seq 8); do cp "$work/samples.tfrecord" "$work/part-$((i + 10)).tfrecord"; done
records=2400
all=(calibrate "$model" --data "$work/part-*.tfrecord" --observe all)
calibrate() { "$tare" "${all[@]}" "$@"; }
# number FIELD FILE: the first of that name in a JSON summary
number() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$2" | head -1; }

same() { cmp -s "$work/whole.calib" "$1" || fail "$2: other bytes"; }
calibrate -o "$work/whole.calib" --quiet || fail "calibrate: $?"

# ---- killed and resumed ----

state=$work/killed.calib.state
run_until_killed() {
    local before pid
    before=$(stat -c '%i %z' "$state" 2>/dev/null)
    "$tare" "${all[@]}" -o "$work/killed.calib" --resume --autosave 0.01 --threads 2 --batch 3 --quiet --json >"$work/killed.json" &
    pid=$!
    # a new state, then a moment of any kind
    while [ "$(stat -c '%i %z' "$state" 2>/dev/null)" = "$before" ] && kill -0 $pid 2>/dev/null; do sleep 0.005; done
    sleep "0.00$((RANDOM % 10))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ]
}
kills=0
while [ $kills -lt 10 ]; do
    run_until_killed || break
    kills=$((kills + 1))
    [ ! -e "$work/killed.calib" ] || fail "a calibration was written before the end"
done
[ $kills -ge 3 ] || fail "only $kills kills: the run is too short"
calibrate -o "$work/killed.calib" --resume --quiet --json >"$work/killed.json" || fail "resume: $?"
same "$work/killed.calib" "killed $kills times and resumed"
resumed=$(number resumed_records "$work/killed.json")
{ [ "$resumed" -gt 0 ] && [ "$resumed" -lt $records ]; } || fail "$resumed of $records records were done when it was killed"
absent "$state"

# ---- interrupted ----

for _ in 1 2 3 4 5; do # until the signal comes before the end of the run
    "$tare" "${all[@]}" -o "$work/stopped.calib" --threads 1 --autosave 0.02 --quiet 2>"$work/stderr" &
    pid=$!
    while [ ! -e "$work/stopped.calib.state" ] && kill -0 $pid 2>/dev/null; do sleep 0.005; done # it counts
    kill -TERM $pid # a shell without job control starts its background jobs with SIGINT ignored
    wait $pid
    status=$?
    [ $status = 0 ] || break
    rm "$work/stopped.calib"
done
[ $status = 130 ] || fail "interrupted: exit status $status (expected 130): $(cat "$work/stderr")"
grep -qE "records are saved in '.*stopped.calib.state'; continue with --resume" "$work/stderr" || fail "interrupted: $(cat "$work/stderr")"
absent "$work/stopped.calib"
expect 1 "this is the state of another run ('serving_default from 8 files #" calibrate -o "$work/stopped.calib" --limit 9 --resume --quiet
expect 1 "stopped.calib.state: the state of an interrupted run is not a calibration (finish the run with" "$tare" merge "$work/stopped.calib.state" -o "$work/merged.calib"
absent "$work/merged.calib"
calibrate -o "$work/stopped.calib" --resume --quiet || fail "resume: $?"
same "$work/stopped.calib" "interrupted and resumed"
finish
