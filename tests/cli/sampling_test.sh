#!/usr/bin/env bash
# Samples without files of their own: calibrate --sample draws records at random, and compare --rest evaluates with those
# that the calibration has not used.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
cd "$work" || exit 1
"$tare" dataset split "$glyphs/eval.tfrecord.gz" --parts 4 -o all --quiet >/dev/null || fail "split: $?"
rm all-00003-of-00004.tfrecord # 750 records in three files
calibrate() { "$tare" calibrate "$model" --data 'all-*' "$@" --quiet || fail "calibrate $*: $?"; }

calibrate --sample 300 -o one.calib
calibrate --sample 300 --seed 1 --threads 1 --batch 7 -o same.calib
cmp one.calib same.calib || fail "another number of threads: other records"
calibrate --sample 300 --seed 2 -o other.calib
cmp -s one.calib other.calib && fail "another seed: the same records"
calibrate --sample 300 --shard 0/2 -o a.calib
calibrate --sample 300 --shard 1/2 -o b.calib
"$tare" merge a.calib b.calib -o merged.calib 2>/dev/null && cmp one.calib merged.calib || fail "shards have other records"
"$tare" calibrate "$model" --data 'all-*' --sample 300 -o log.calib --json 2>log >out || fail "calibrate: $(cat log)"
python3 -c 'import json; assert json.load(open("out"))["records"] == 300' || fail "$(cat out)"
grep -qxF "tare: next: tare compare $model --calibration log.calib --eval 'all-*' --rest" log || fail "no suggestion of the rest: $(cat log)"
"$tare" dataset split 'all-*' --count 300 --seed 1 -o part --quiet >/dev/null || fail "split: $?"
"$tare" compare "$model" --calibration log.calib --data part-00000-of-00002.tfrecord --methods float,static --quiet >out 2>log || fail "compare: $(cat log)"
grep -q "warning: 300 of 300 evaluation records" log || fail "dataset split draws others: $(cat log)"

# ---- the rest ----
"$tare" compare "$model" --calibration log.calib --data 'all-*' --rest --methods float,static --report r.json --quiet >out 2>log || fail "compare --rest: $(cat log)"
grep -q "same inputs" log && fail "calibration records are evaluated with: $(cat log)"
grep -qE "all-\*, 450 records" out || fail "not the 450 other records: $(cat out)"
"$tare" compare "$model" --calibration log.calib --data 'all-*' --methods float,static --quiet >out 2>log || fail "compare: $(cat log)"
grep -q "warning: 300 of 750 evaluation records have the same inputs as calibration samples" log || fail "not the sample: $(cat log)"
"$tare" compare "$model" --calibration log.calib --data 'all-*' --rest --limit 40 --methods float,static --quiet >out || fail "compare --limit: $?"
grep -q ", 40 records" out || fail "--limit counts records that are left out: $(cat out)"
"$tare" compare "$model" --calibration log.calib --data 'all-*' --rest --dry-run >out 2>/dev/null || fail "--dry-run: $?"
grep -q "models over 450 records" out || fail "--dry-run counts other records: $(cat out)"
"$tare" compare "$model" --calibration log.calib --data 'all-*' --rest --sensitivity --methods static --quiet >out 2>log || fail "--sensitivity: $(cat log)"

# ---- errors ----
expect 1 "a sample of 751 records (expected at most 750, which the data has)" "$tare" calibrate "$model" --data 'all-*' --sample 751 -o x.calib --quiet
expect 2 "--sample and --limit are mutually exclusive" "$tare" calibrate "$model" --data 'all-*' --sample 7 --limit 9 -o x.calib --quiet
expect 2 "option '--seed' has no effect without --sample" "$tare" calibrate "$model" --data 'all-*' --seed 7 -o x.calib --quiet
expect 2 "no sample can be drawn from a pipe" "$tare" calibrate "$model" --data - --sample 7 -o x.calib --quiet <all-00000-of-00004.tfrecord
expect 2 "--rest: which records are left follows from a calibration (give --calibration FILE.calib)" "$tare" compare "$model" --data 'all-*' --rest --quiet
expect 1 "--rest: the calibration has used no record of part-00001-of-00002.tfrecord (calibrate with --sample on the same files" \
    "$tare" compare "$model" --calibration log.calib --data part-00001-of-00002.tfrecord --rest --quiet
calibrate -o everything.calib
expect 1 "no records to evaluate with" "$tare" compare "$model" --calibration everything.calib --data 'all-*' --rest --quiet
absent x.calib
finish
