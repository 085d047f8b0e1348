#!/usr/bin/env bash
# An independent reader, written by docs/formats.md, finds in calibration files what tare show says of them.
set -uo pipefail
command -v python3 >/dev/null || skip "python3 is not there"
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
calibration=$glyphs/calibration.tfrecord.gz
eval=$glyphs/eval.tfrecord.gz

"$tare" calibrate "$glyphs/saved_model" --data "$calibration" --limit 60 -o "$work/a.calib" --quiet 2>"$work/warnings" || fail "calibrate"
expect 1 "there is no signature 'foo'" "$tare" quantize "$glyphs/saved_model" "$work/foo" --calibration "$work/a.calib" --signature foo
absent "$work/foo"
grep -q "warning: only 60 records of signature 'serving_default'" "$work/warnings" || fail "no warning of 60 records: $(cat "$work/warnings")"
"$tare" calibrate "$glyphs/saved_model" --data "$eval" --limit 40 -o "$work/b.calib" --quiet 2>/dev/null || fail "calibrate on the other file"
"$tare" merge "$work/a.calib" "$work/b.calib" -o "$work/both.calib" || fail "merge"
for file in a b both; do
    python3 "$source_dir/tests/golden/calibration_file.py" "$tare" "$work/$file.calib" >"$work/reader" 2>&1 ||
        fail "$file.calib: $(cat "$work/reader")"
done
"$tare" show "$work/a.calib" "$work/b.calib" --json >"$work/added" || fail "show of two files"
"$tare" show "$work/both.calib" --json >"$work/merged" || fail "show of the merged file"
cmp -s "$work/added" "$work/merged" || fail "show adds files up in another way than merge"
finish
