#!/usr/bin/env bash
# tare calibrate: peak memory does not depend on the number of records, in one file or in a hundred, with the state saved on the way or not.
# Two equal runs differ by up to 900 KiB: the system maps pages of the program in groups, and each worker has an arena of
# malloc whose size depends on which of them frees a buffer first. So the least of three runs counts, and a hundred times the
# records (95 MB) may take 2 MiB more: 70 bytes for each additional record. Of the few records with two workers it is the
# greatest of three: on a busy machine one worker may have read them all before the other one began (one of 40 runs), in 4 MiB
# less.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
! sanitized || { echo "skipped: sanitizers take memory of their own"; exit 77; }
model=$glyphs/saved_model
gzip -dc "$glyphs/calibration.tfrecord.gz" >"$work/samples.tfrecord"
mkdir "$work/one" "$work/hundred"
ln -s "$work/samples.tfrecord" "$work/one/1.tfrecord"
for i in $(seq 100); do
    cat "$work/samples.tfrecord" >>"$work/hundred.tfrecord"
    ln -s "$work/samples.tfrecord" "$work/hundred/$i.tfrecord"
done
# peak MOST DATA OPTION…: sets `least` and `greatest`, of up to three runs, until one takes at most MOST KiB
peak() {
    local most=$1 data=$2 kib
    shift 2
    least= greatest=0
    for _ in 1 2 3; do
        "$TARE_TEST_HELPERS/peak" "$work/peak" "$tare" calibrate "$model" --data "$work/$data" --quiet \
            -o "$work/c.calib" "$@" || fail "$data: $?"
        read -r kib _ <"$work/peak"
        { [ -n "$least" ] && [ "$least" -le "$kib" ]; } || least=$kib
        [ "$kib" -le "$greatest" ] || greatest=$kib
        [ "$least" -gt "$most" ] || break
    done
}
for threads in 1 2; do
    peak 0 'one/*.tfrecord' --threads $threads
    few=$least
    [ $threads = 1 ] || few=$greatest
    for data in hundred.tfrecord 'hundred/*.tfrecord'; do
        [ $threads = 2 ] && [ "$data" = hundred.tfrecord ] && continue
        peak $((few + 2048)) "$data" --threads $threads --autosave 0.1
        [ "$least" -le $((few + 2048)) ] ||
            fail "$threads workers, $data: $least KiB (expected $few of 300 records and at most 2048 more)"
    done
done
finish
