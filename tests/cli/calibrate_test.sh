#!/usr/bin/env bash
# tare calibrate on the bundled example: the same bytes whatever the workers, batches and shares; limits; what is refused.
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

shares() { for i in "$@"; do echo "$work/share$i.calib"; done; }

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
for order in "0 1 2 3 4" "3 1 4 0 2"; do
    "$tare" merge $(shares $order) -o "$work/c.calib" || fail "merge: $?"
    same "$work/c.calib" "shares $order"
done
"$tare" merge $(shares 4 1) -o "$work/some.calib" 2>/dev/null || fail "merge: $?"
"$tare" merge $(shares 2) "$work/some.calib" $(shares 0 3) -o "$work/c.calib" || fail "merge of a merge: $?"
same "$work/c.calib" "a merge of a merge"
expect 1 "is a shard given twice?" "$tare" merge $(shares 0 1 0) -o "$work/no.calib"
absent "$work/no.calib"

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
