#!/usr/bin/env bash
# tare calibrate under mpirun: the bytes of one process, ranks that fail or are lost.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
gzip -dc "$glyphs/calibration.tfrecord.gz" >"$work/samples.tfrecord"
# Several files, so that there is time to be killed in.
for i in $(seq 8); do cp "$work/samples.tfrecord" "$work/part-$((i + 10)).tfrecord"; done
all=(calibrate "$model" --data "$work/part-*.tfrecord" --observe all)
calibrate() { "$tare" "${all[@]}" "$@"; }
# number FIELD FILE: the first of that name in a JSON summary
number() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$2" | head -1; }

same() { cmp -s "$work/whole.calib" "$1" || fail "$2: other bytes"; }
calibrate -o "$work/whole.calib" --quiet || fail "calibrate: $?"

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
finish
