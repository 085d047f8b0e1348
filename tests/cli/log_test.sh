#!/usr/bin/env bash
# --verbose and --log-file: every command has them; details on standard error, all messages in the file. Colors of messages.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model

"$tare" help | sed -nE 's/^  ([a-z]+) .*/\1/p' | grep -vxE 'dataset|completion|man|help|version' >commands
printf 'dataset %s\n' info head make split export >>commands
[ "$(wc -l <commands)" -ge 17 ] || fail "commands: $(cat commands)"
while read -r command; do
    # shellcheck disable=SC2086
    "$tare" help $command >help || fail "help $command: $?"
    grep -qE '^  -v, --(\[no-\])?verbose ' help && grep -qE '^      --log-file FILE ' help || fail "tare $command has no --verbose or --log-file"
done <commands

# Colors on a terminal: errors red, warnings yellow, the recommendation bold; none in a file, with NO_COLOR or TERM=dumb.
colors() { # colors TERM NO_COLOR COMMAND: the output of the command on a terminal, with its escape sequences as [COLOR]
    script -qec "env TERM=$1 NO_COLOR=$2 $3" /dev/null </dev/null | sed -e 's/\x1b\[\([0-9]*\)m/[\1]/g' -e 's/\x1b\[K//g' | tr -d '\r'
}
samples=$glyphs/calibration.tfrecord.gz
"$tare" dataset split "$samples" --count 20 -o few --quiet >/dev/null || fail "split: $?"
error="'$tare' quantize '$model' '$work' --method weight_only --quiet"
warning="'$tare' calibrate '$model' --data few-00000-of-00002.tfrecord -o colors.calib --quiet"
verdict="'$tare' compare '$model' --data few-00000-of-00002.tfrecord --methods float,weight_only --quiet"
if have_pty; then
    colors xterm "" "$error" >log
    grep -qF "[31]tare:[0] Output directory already exists" log || fail "the error is not red: $(cat log)"
    colors xterm "" "$warning" >log
    grep -qF "tare: [33]warning:[0] only 20 records" log || fail "the warning is not yellow: $(cat log)"
    colors xterm "" "$verdict" >log
    grep -qE '\[1\] +Recommended: .*\. +\[0\]' <<<"$(tr '\n' ' ' <log)" || fail "the recommendation is not bold: $(cat log)"
    for plain in "dumb ''" "xterm 1"; do
        for command in "$error" "$warning" "$verdict"; do
            # shellcheck disable=SC2086
            eval colors $plain '"$command"' >log
            grep -qE '\[(0|1|31|33)\]' log && fail "colors with TERM and NO_COLOR $plain: $(cat log)"
        done
    done
    grep -q "^tare: warning: only 20 records" <<<"$(colors dumb "" "$warning")" || fail "no warning without colors"
else
    echo "no pseudo terminal can be opened here: colors on a terminal were not tried"
fi
for command in "$error" "$warning" "$verdict"; do
    TERM=xterm bash -c "$command" >log 2>&1
    [ -s log ] && ! grep -q $'\x1b' log || fail "colors in a file: $(cat log)"
done

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
expect 2 "--log-file few.calib is also --output" "$tare" calibrate "$model" --data few.tfrecord -o few.calib --log-file few.calib
expect 2 "--log-file ./few.calib is also --output" "$tare" calibrate "$model" --data few.tfrecord -o few.calib --log-file ./few.calib
absent few.calib
# nor is it data, by whatever path or pattern, or what 'auto' writes beside the model; two outputs are two files
cp "$samples" mine.gz
sum=$(sha256sum <mine.gz)
for data in mine.gz 'min*.gz' serving_default=mine.gz; do
    expect 1 "the output 'mine.gz' is the input 'mine.gz' (choose another file)" "$tare" calibrate "$model" --data "$data" -o few.calib --log-file mine.gz
done
expect 1 "the output 'mine.gz' is the input 'mine.gz'" "$tare" dataset info mine.gz --log-file mine.gz
[ "$(sha256sum <mine.gz)" = "$sum" ] || fail "messages were appended to the data"
for file in page.html page.recipe; do
    expect 2 "--log-file $file is also a file of OUT" "$tare" auto "$model" page --data mine.gz --log-file "$file"
done
expect 2 "--node-data ./both.json is also --report" "$tare" compare "$model" --data mine.gz --report both.json --node-data ./both.json
absent both.json
expect 1 "Output directory already exists: plain" "$tare" quantize "$model" plain --method weight_only --quiet --log-file messages
[ "$(wc -l <messages)" -gt "$lines" ] && grep -q " error: Output directory already exists: plain" messages && grep -q "detail: exit status 1 after" messages ||
    fail "the error is not in the file: $(cat messages)"
"$tare" calibrate "$model" --data few-00000-of-00002.tfrecord -o few.calib --quiet --log-file warnings 2>log || fail "calibrate: $(cat log)"
grep -q "^tare: warning: .*20 records" log && grep -q " warning: .*20 records" warnings && grep -q " note: 20 records, " warnings || fail "warnings: $(cat warnings)"
grep -q "note" log && fail "--quiet prints notes: $(cat log)"
# A log that cannot be written is an error before the work, or at the end if it becomes full.
if [ -w /dev/full ]; then
    expect 1 "--log-file /dev/full: cannot be written: No space left on device" "$tare" copy "$model" unlogged --log-file /dev/full
    absent unlogged
fi
"$tare" inspect "$model" --json --log-file sized >/dev/null || fail "inspect: $?"
full() { # only the first line of the log fits, up to the length of the process id
    head -c $((1024 - $(head -1 sized | wc -c) - 9)) /dev/zero >filled
    { (trap '' XFSZ; ulimit -f 1; exec "$tare" inspect "$1" --json --log-file filled); echo $? >status; } | cat >printed
    return "$(cat status)"
}
expect 1 "--log-file filled: cannot be written: File too large (the work is done, but its log is incomplete)" full "$model"
"$tare" inspect "$model" --json | cmp - printed || fail "inspect with a full log prints something else"
expect 1 "cannot create 'nowhere/messages': folder 'nowhere' does not exist" "$tare" convert "$model" x --log-file nowhere/messages
absent x

# The Conversion Report is in the file, also where standard output has JSON.
for form in "" --json; do
    "$tare" convert "$model" report$form --quiet --log-file report.log$form $form >printed || fail "convert $form: $?"
    grep -q ' note: -------- Conversion Report --------$' report.log$form && grep -qE ' note: TPU cost of the model: [0-9.]+%' report.log$form ||
        fail "no report in the log: $(cat report.log$form)"
done

# A folder that cannot be written to is an error before the work as well.
touch plain_file
expect 1 "cannot create 'plain_file/x': 'plain_file' is not a folder" "$tare" convert "$model" plain_file/x
expect 1 "cannot create 'plain_file/x/y': 'plain_file' is not a folder" "$tare" quantize "$model" plain_file/x/y --method weight_only
finish
