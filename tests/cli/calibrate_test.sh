#!/usr/bin/env bash
# tare calibrate on the bundled example: the same bytes whatever the workers, batches, shares, ranks and interruptions; bad
# records; what is refused.
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

# ---- workers, batches, shares ----

calibrate -o "$work/whole.calib" --threads 1 --batch 1 --json --quiet >"$work/whole.json" || fail "calibrate: $?"
[ "$(number records "$work/whole.json")" = $records ] || fail "records: $(cat "$work/whole.json")"
absent "$work/whole.calib.state"
for threads in 1 2; do
    for batch in 1 7 32; do
        calibrate -o "$work/c.calib" --threads $threads --batch $batch --json --quiet >"$work/c.json" || fail "calibrate: $?"
        same "$work/c.calib" "$threads workers, batch $batch"
        [ "$(number batch "$work/c.json")" = $batch ] || fail "batch $batch was not used: $(cat "$work/c.json")"
        [ "$(number threads "$work/c.json")" = $threads ] || fail "$threads workers were not used: $(cat "$work/c.json")"
    done
done
for i in 0 1 2 3 4; do
    calibrate -o "$work/share$i.calib" --shard $i/5 --batch $((1 + 6 * (i % 2))) --quiet || fail "share $i: $?"
    cmp -s "$work/whole.calib" "$work/share$i.calib" && fail "share $i is the whole"
done
shares() { for i in "$@"; do echo "$work/share$i.calib"; done; }
for order in "0 1 2 3 4" "3 1 4 0 2"; do
    "$tare" merge $(shares $order) -o "$work/c.calib" || fail "merge: $?"
    same "$work/c.calib" "shares $order"
done
"$tare" merge $(shares 4 1) -o "$work/some.calib" 2>/dev/null || fail "merge: $?"
"$tare" merge $(shares 2) "$work/some.calib" $(shares 0 3) -o "$work/c.calib" || fail "merge of a merge: $?"
same "$work/c.calib" "a merge of a merge"
expect 1 "is a shard given twice?" "$tare" merge $(shares 0 1 0) -o "$work/no.calib"
absent "$work/no.calib"

# ---- ranks ----

if command -v mpirun >/dev/null && [ -e "$(dirname "$tare")/tare-mpi.so" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ranks() { ASAN_OPTIONS=detect_leaks=0 mpirun --oversubscribe -n 3 "$tare" calibrate "$@"; } # Open MPI leaks
    ranks "$model" --data "$work/part-*.tfrecord" --observe all -o "$work/ranks.calib" --batch 7 --json --quiet \
        >"$work/ranks.json" 2>"$work/ranks.err" || fail "mpirun: $?: $(cat "$work/ranks.err")"
    same "$work/ranks.calib" "three ranks"
    [ "$(number ranks "$work/ranks.json")" = 3 ] || fail "ranks: $(cat "$work/ranks.json")"
    [ -z "$(ls "$work"/ranks.calib.state* 2>/dev/null)" ] || fail "a rank's state was left behind"
    # A rank that fails ends the others, and is named once. Record 4 is rank 1's.
    cp "$work/samples.tfrecord" "$work/broken.tfrecord"
    size=$(($(stat -c %s "$work/samples.tfrecord") / 300))
    printf 'X' | dd of="$work/broken.tfrecord" bs=1 seek=$((4 * size + 100)) conv=notrunc status=none
    ranks "$model" --data "$work/broken.tfrecord" -o "$work/no.calib" --quiet >/dev/null 2>"$work/ranks.err" &&
        fail "ranks with a bad record ended well"
    grep -q "^tare: rank 1: .*broken.tfrecord: record 4: corrupted record" "$work/ranks.err" ||
        fail "the bad record's rank is not named: $(cat "$work/ranks.err")"
    [ "$(grep -c '^tare: ' "$work/ranks.err")" = 1 ] || fail "more than one rank spoke: $(cat "$work/ranks.err")"
    absent "$work/no.calib"
    # A rank that hangs, or whose machine is gone, ends the run and is named.
    mkdir "$work/many"
    for i in $(seq 40); do ln "$work/samples.tfrecord" "$work/many/$i.tfrecord"; done
    timeout -k 5 120 mpirun --oversubscribe -n 3 bash -c 'echo $$ >"$0.$OMPI_COMM_WORLD_RANK"; exec "$@"' "$work/pid" \
        "$tare" calibrate "$model" --data "$work/many/*.tfrecord" --observe all -o "$work/no.calib" --quiet >/dev/null 2>"$work/lost.err" &
    run=$!
    until [ -e "$work/.no.calib.lock" ] || ! kill -0 $run 2>/dev/null; do sleep 0.02; done # MPI has begun
    kill -STOP "$(cat "$work/pid.1")" || fail "rank 1 was over before it could be stopped"
    started=$SECONDS
    wait $run && fail "a run without rank 1 ended well"
    grep -q "^tare: rank 1: no sign of life for 15 seconds" "$work/lost.err" || fail "the lost rank is not named: $(cat "$work/lost.err")"
    [ $((SECONDS - started)) -lt 60 ] || fail "the lost rank was waited for: $((SECONDS - started)) s"
    absent "$work/no.calib"
else
    echo "no mpirun, or built without MPI: ranks are not tested"
fi
mkdir "$work/alone" && cp "$tare" "$work/alone/tare"
expect 1 "tare was built without MPI: tare-mpi.so is missing next to the program (build the target tare_mpi, or install the package tare-mpi;" \
    env OMPI_COMM_WORLD_SIZE=3 "$work/alone/tare" calibrate "$model" --data "$work/samples.tfrecord" -o "$work/no.calib"
absent "$work/no.calib"

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

# ---- bad records ----

one() { "$tare" calibrate "$model" --data "$work/bad.tfrecord" -o "$work/bad.calib" "$@"; }
size=$(($(stat -c %s "$work/samples.tfrecord") / 300))
cp "$work/samples.tfrecord" "$work/bad.tfrecord"
printf 'X' | dd of="$work/bad.tfrecord" bs=1 seek=$((17 * size + 100)) conv=notrunc status=none
truncate -s -5 "$work/bad.tfrecord"
expect 1 "bad.tfrecord: record 17: corrupted record at $((17 * size))" one --quiet
absent "$work/bad.calib"
expect 1 "bad.tfrecord: record 299: truncated record at $((299 * size))" one --quiet --max-bad 1
one --max-bad 2 --json >"$work/bad.json" 2>"$work/stderr" || fail "--max-bad 2: $?"
[ "$(number bad_records "$work/bad.json")" = 2 ] || fail "bad records: $(cat "$work/bad.json")"
[ "$(number records "$work/bad.json")" = 298 ] || fail "records: $(cat "$work/bad.json")"
grep -q "2 records of '.*bad.tfrecord' passed over; the first: record 17: corrupted record at" "$work/stderr" &&
    ! grep -q "record 299" "$work/stderr" || fail "not said: $(cat "$work/stderr")"
grep -q '"reason": "truncated"' "$work/bad.json" || fail "no reason: $(cat "$work/bad.json")"
one --dry-run --max-bad 2 --json --quiet >"$work/dry.json" 2>/dev/null || fail "--dry-run: $?"
[ "$(number bad_records "$work/dry.json")" = 2 ] || fail "--dry-run: $(cat "$work/dry.json")"
[ "$(number measured_records "$work/dry.json")" -ge 15 ] && grep -q '"estimated_seconds": [0-9]' "$work/dry.json" &&
    [ "$(number estimated_peak_bytes "$work/dry.json")" -gt 1000000 ] || fail "--dry-run estimates nothing: $(cat "$work/dry.json")"
one --dry-run --max-bad 2 >/dev/null 2>"$work/stderr" || fail "--dry-run: $?"
grep -qE "a run takes about [0-9.]+ s on [0-9]+ workers? and at most [0-9]+ MB \(measured on the first [0-9]+ records\)" "$work/stderr" ||
    fail "no estimate: $(cat "$work/stderr")"
"$tare" calibrate "$model" --data - --dry-run <"$work/samples.tfrecord" 2>"$work/stderr" >/dev/null || fail "--dry-run of a pipe: $?"
grep -q "the time of a run is not known" "$work/stderr" || fail "--dry-run of a pipe: $(cat "$work/stderr")"
"$tare" calibrate "$model" --data <(cat "$work/samples.tfrecord") --dry-run 2>"$work/stderr" >/dev/null || fail "--dry-run of a named pipe: $?"
grep -q "the time of a run is not known" "$work/stderr" || fail "--dry-run of a named pipe: $(cat "$work/stderr")"
cp "$work/bad.calib" "$work/whole.calib"
for i in 0 1; do one -o "$work/share$i.calib" --shard $i/2 --max-bad 2 --quiet 2>/dev/null || fail "share $i: $?"; done
"$tare" merge $(shares 1 0) -o "$work/c.calib" || fail "merge: $?"
same "$work/c.calib" "shares with bad records"

# ---- a model with state, a function ----

counter=$test_data/models/serving-counter
if [ -d "$counter" ]; then
    "$TARE_TEST_HELPERS/op_model" samples "$work/delta.tfrecord" delta 'float[] 1' 20 || fail "samples: $?"
    counting=("$tare" calibrate "$counter" --data "incr_counter_by=$work/delta.tfrecord" --observe all -o "$work/counter.calib")
    "${counting[@]}" --threads 2 --batch 4 --json >"$work/counter.json" 2>"$work/stderr" || fail "counter: $?"
    grep -q "is stateful (AssignAdd.*): it runs on one worker, one record at a time" "$work/stderr" ||
        fail "state is not announced: $(cat "$work/stderr")"
    [ "$(number threads "$work/counter.json") $(number batch "$work/counter.json")" = "1 1" ] || fail "counter: $(cat "$work/counter.json")"
    # The counter after each record: 1 to 20, each once.
    grep -q "AssignAdd:0  *20  *0.0  *1  *0  *20  *19 " <<<"$("$tare" show "$work/counter.calib")" ||
        fail "records did not run in order: $("$tare" show "$work/counter.calib" | grep AssignAdd)"
    expect 1 "its records cannot be split into shards" "${counting[@]}" --shard 0/2 --quiet
fi
"$tare" calibrate "$model" --data "$work/samples.tfrecord" --function tpu_func -o "$work/function.calib" --json --quiet \
    >"$work/function.json" || fail "--function: $?"
[ "$(number records "$work/function.json")" = 300 ] || fail "--function: $(cat "$work/function.json")"
"$tare" merge "$work/function.calib" "$work/share0.calib" -o "$work/c.calib" 2>"$work/stderr" ||
    fail "a function's calibration is another model's: $(cat "$work/stderr")"
# It holds what quantization asks for: the same layers as the signature's that calls the function, with the same numbers.
"$tare" calibrate "$model" --data "$work/samples.tfrecord" -o "$work/signature.calib" --quiet || fail "calibrate: $?"
for way in function signature; do
    "$tare" quantize "$model" "$work/by_$way" --method static --calibration "$work/$way.calib" >"$work/by_$way.txt" 2>&1 ||
        fail "quantize by the calibration of a $way: $(cat "$work/by_$way.txt")"
    grep -q "was not calibrated" "$work/by_$way.txt" && fail "$way: $(cat "$work/by_$way.txt")"
done
cmp -s "$work/by_function/saved_model.pb" "$work/by_signature/saved_model.pb" || fail "a function's calibration quantizes otherwise"

# ---- limits, standard input, refusals ----

calibrate -o "$work/whole.calib" --limit 500 --quiet || fail "--limit: $?"
for i in 0 1 2; do calibrate -o "$work/share$i.calib" --limit 500 --shard $i/3 --quiet || fail "--limit with --shard: $?"; done
"$tare" merge $(shares 2 0 1) -o "$work/c.calib" || fail "merge: $?"
same "$work/c.calib" "shares of the first 500"
"$tare" calibrate "$model" --data - -o "$work/c.calib" --json --quiet <"$glyphs/calibration.tfrecord.gz" >"$work/c.json" || fail "standard input: $?"
[ "$(number records "$work/c.json")" = 300 ] || fail "standard input: $(cat "$work/c.json")"
"$tare" calibrate "$model" --data "serving_default=$work/samples.tfrecord" -o - --quiet >"$work/c.calib" || fail "-o -: $?"
"$tare" calibrate "$model" --data "$work/samples.tfrecord" -o "$work/whole.calib" --quiet || fail "calibrate: $?"
same "$work/c.calib" "standard output"
expect 2 "--input image is given twice" "$tare" calibrate "$model" --input image=a.npy --input image=b.npy -o "$work/no.calib"
expect 2 "--input image is given twice" "$tare" run "$model" --input image=a.npy --input image=b.npy
expect 2 "is given twice for signature serving_default" "$tare" calibrate "$model" --data "$work/part-1*" --data "$work/part-11.tfrecord" -o "$work/no.calib"
expect 1 "there is no signature 'other' (the model has serving_default)" "$tare" calibrate "$model" --data "other=$work/samples.tfrecord" -o "$work/no.calib"
expect 2 "--shard 5/5: invalid shard (expected I/N with 0 <= I < N)" calibrate --shard 5/5 -o "$work/no.calib"
expect 2 "missing option --output FILE" calibrate
expect 1 "no file matches" "$tare" calibrate "$model" --data "$work/none-*.tfrecord" -o "$work/no.calib"
expect 1 "does not exist" "$tare" calibrate "$model" --data "$work/part-11.tfrecord" --quiet -o "$work/no/such/folder.calib"
absent "$work/no.calib"
finish
