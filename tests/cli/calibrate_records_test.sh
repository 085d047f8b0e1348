#!/usr/bin/env bash
# tare calibrate with bad records, a model with state, a function.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
gzip -dc "$glyphs/calibration.tfrecord.gz" >"$work/samples.tfrecord"
# number FIELD FILE: the first of that name in a JSON summary
number() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$2" | head -1; }

shares() { for i in "$@"; do echo "$work/share$i.calib"; done; }

same() { cmp -s "$work/whole.calib" "$1" || fail "$2: other bytes"; }

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
finish
