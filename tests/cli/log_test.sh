#!/usr/bin/env bash
# --verbose and --log-file: every command has them; details on standard error, all messages in the file.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model

"$tare" help | sed -nE 's/^  ([a-z]+) .*/\1/p' | grep -vxE 'dataset|completion|man|help|version' >commands
printf 'dataset %s\n' info head make split >>commands
[ "$(wc -l <commands)" -ge 17 ] || fail "commands: $(cat commands)"
while read -r command; do
    # shellcheck disable=SC2086
    "$tare" help $command >help || fail "help $command: $?"
    grep -qE '^  -v, --(\[no-\])?verbose ' help && grep -qE '^      --log-file FILE ' help || fail "tare $command has no --verbose or --log-file"
done <commands

# Details only on request; the file has them always, and what --quiet suppresses.
"$tare" convert "$model" plain --log-file messages 2>log >/dev/null || fail "convert: $(cat log)"
grep -qE "loaded|exit status" log && fail "details without --verbose: $(cat log)"
for text in "detail: tare [0-9.]+: tare convert .*/saved_model plain --log-file messages$" "detail: loaded .*/saved_model: [0-9]+ nodes, [0-9]+ functions, [0-9]+ variables, in [0-9.]+ s$" \
    "note: wrote plain$" "note: next: tare compare " "detail: exit status 0 after [0-9.]+ s, [0-9.]+ s of processor time, at most [0-9.]+ MB of memory$"; do
    grep -qE "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z [0-9]+ $text" messages || fail "no '$text' in: $(cat messages)"
done
"$tare" quantize "$model" verbose --method weight_only -v 2>log >/dev/null || fail "quantize: $(cat log)"
grep -q "^tare: loaded .*/saved_model: " log && grep -q "^tare: exit status 0 after " log || fail "no details: $(cat log)"
lines=$(wc -l <messages)
expect 1 "Output directory already exists: plain" "$tare" quantize "$model" plain --method weight_only --quiet --log-file messages
[ "$(wc -l <messages)" -gt "$lines" ] && grep -q " error: Output directory already exists: plain" messages && grep -q "detail: exit status 1 after" messages ||
    fail "the error is not in the file: $(cat messages)"
"$tare" dataset split "$glyphs/calibration.tfrecord.gz" --count 20 -o few --quiet >/dev/null
"$tare" calibrate "$model" --data few-00000-of-00002.tfrecord -o few.calib --quiet --log-file warnings 2>log || fail "calibrate: $(cat log)"
grep -q "^tare: warning: .*20 records" log && grep -q " warning: .*20 records" warnings && grep -q " note: 20 records, " warnings || fail "warnings: $(cat warnings)"
grep -q "note" log && fail "--quiet prints notes: $(cat log)"
# The file is checked before the work.
expect 1 "cannot create 'nowhere/messages': No such file or directory" "$tare" convert "$model" x --log-file nowhere/messages
absent x

# A folder that cannot be written to is an error before the work as well.
touch plain_file
expect 1 "cannot create 'plain_file/x': 'plain_file' is not a folder" "$tare" convert "$model" plain_file/x
expect 1 "cannot create 'plain_file/x/y': 'plain_file' is not a folder" "$tare" quantize "$model" plain_file/x/y --method weight_only
finish
