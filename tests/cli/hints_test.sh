#!/usr/bin/env bash
# Every command line that a command suggests can be pasted: each is run, with words in capitals replaced, and so are those
# that it suggests in turn. Every option that a message names is an option of the command that prints it, or of the one
# that the message names.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
cd "$work" || exit 1
mkdir logs
PATH=/usr/bin:/bin # without the program
"$tare" dataset split "$glyphs/calibration.tfrecord.gz" --count 60 --names some,rest -o samples --quiet >/dev/null &&
    "$tare" dataset split "$glyphs/eval.tfrecord.gz" --count 500 --names some,rest -o labelled --quiet >/dev/null || fail "split: $?"
samples=$work/samples-some.tfrecord
eval=$work/labelled-some.tfrecord

# ---- the program in a suggestion ----
mkdir bin other && ln -s "$tare" bin/tare && printf '#!/bin/sh\n' >other/tare && chmod +x other/tare
suggests() { sed -n "s|^.*next: \(.*\) dataset info .*|\1|p" log; }
ln -s "$tare" "my tare"
while IFS='|' read -r path program expected; do
    PATH=$path "$program" inspect "$model" >/dev/null 2>log
    [ "$(suggests)" = "$expected" ] || fail "called as $program with PATH=$path: '$(suggests)' (expected $expected)"
done <<CASES
/usr/bin:/bin|$tare|$tare
$work/bin:/usr/bin:/bin|$tare|tare
$work/bin:/usr/bin:/bin|tare|tare
$work/other:$work/bin|$tare|$tare
/usr/bin:/bin|./bin/tare|./bin/tare
/usr/bin:/bin|./my tare|'./my tare'
CASES

# ---- the suggestions of the first commands, and of those that they suggest ----
declare -A seen
runs=0 suggestions=0

# The command with its placeholders replaced; OUT becomes a name that is free.
filled() {
    local line=$1
    line=${line//FLOAT_MODEL/$model}
    line=${line//EVAL.tfrecord/$eval}
    line=${line//SAMPLES/$samples}
    line=${line//MODEL.calib/model$runs.calib}
    line=${line//ALL.calib/all$runs.calib}
    sed "s#\bMODEL\b#$model#g; s#\bDATA\b#$samples#g; s#\bEVAL\b#$eval#g; s#\bOUT\b#out$runs#g" <<<"$line"
}

# follow FILE: runs the command lines that it suggests, and those that these suggest, once each.
follow() {
    local line key
    while IFS= read -r line; do
        key=$(sed -E 's/_[0-9]+\b//g; s/(out|model|all)[0-9]+/\1/g' <<<"$line")
        [ -z "${seen[$key]:-}" ] || continue
        seen[$key]=1
        suggestions=$((suggestions + 1)) runs=$((runs + 1))
        line=$(filled "$line")
        bash -c "$line" >"logs/$runs" 2>&1 || fail "$line: $(cat "logs/$runs")"
        sed "s|^$tare \([a-z]*\).*|\1|" <<<"$line" >"logs/$runs.command"
        follow "logs/$runs"
    done < <(sed -n "s|^.*next: \(.*\)$|\1|p; s|^  \($tare .*\)$|\1|p" "$1")
}

# first ARGUMENT…: a command that a user starts with.
first() {
    runs=$((runs + 1))
    "$tare" "$@" >"logs/$runs" 2>&1 || fail "$*: $(cat "logs/$runs")"
    printf '%s\n' "$1" >"logs/$runs.command"
    follow "logs/$runs"
}

first inspect "$model"
first inspect "$model" --suggest
first dataset info "$samples" --draft-spec first.spec --model "$model"
first dataset make "$eval" -o labels.tfrecord
first dataset make "$samples" -o samples.tfrecord
first dataset split "$eval" --parts 2 -o part
first calibrate "$model" --data "$samples" -o whole.calib
first calibrate "$model" --data "$samples" --sample 30 --seed 7 -o drawn.calib
first calibrate "$model" --data "$samples" --shard 0/2 -o a.calib
first calibrate "$model" --data "$samples" --shard 1/2 -o b.calib
first merge a.calib b.calib -o both.calib
first show a.calib
first show a.calib b.calib
first quantize "$model" quantized --data "$samples"
first convert quantized converted
first inspect converted
first inspect quantized --suggest
first compare "$model" --data "$eval" --calibration both.calib
first compare "$model" --data "$eval" --calibration-data "$samples"
first compare "$model" --data "$eval" --calibration-data "$samples" --max-drop 1
first compare "$model" --with converted --data "$eval"
first auto "$model" automatic --data "$samples" --eval "$glyphs/eval.tfrecord.gz" --tpu
first auto "$model" automatic2 --data "$samples"
for expected in "compare MODEL --data SAMPLES --eval labels.tfrecord" "calibrate MODEL --data samples.tfrecord -o MODEL.calib"; do
    grep -qxF "tare: next: $tare $expected" logs/* || fail "no suggestion '$expected': $(cat logs/*)"
done
[ "$suggestions" -ge 15 ] || fail "only $suggestions suggestions"

# ---- commands that end with a suggestion ----
for command in inspect calibrate merge show quantize convert compare; do
    for ((i = 1; i <= runs; i++)); do
        [ "$(cat "logs/$i.command")" = "$command" ] || continue
        grep -qE "next: |^  $tare |^next: " "logs/$i" || fail "$command ends without a suggestion: $(cat "logs/$i")"
        break
    done
done

# ---- remedies in errors ----
error() {
    runs=$((runs + 1))
    "$tare" "$@" --quiet >"logs/$runs" 2>&1 && fail "$* succeeds"
    printf '%s\n' "$1" >"logs/$runs.command"
}
mkdir bare && cp "$model/saved_model.pb" bare/
error quantize "$model" quantized --data "$samples"
grep -qF "Output directory already exists: quantized (replace it with --overwrite" <<<"$(tail -1 "logs/$runs")" || fail "$(cat "logs/$runs")"
error convert "$model" quantized
error auto "$model" quantized --data "$samples"
error convert bare bare_tpu
error quantize "$model" new --method static
error quantize "$model" new --method weight_only --min-elements 1000000
error run "$model"
error compare "$model" --calibration both.calib --data "$eval" --label class
error compare "$model" --data none.tfrecord
error convert "$model" x --converter_options_string 'tpu_functions { function_alias: "none" }'
error show "$model"
error inspect both.calib
error calibrate "$model" --data "$eval" -o x.calib --signature none
printf 'x,y\n1,2\n' >table.csv
error calibrate "$model" --data table.csv -o x.calib
"$tare" quantize "$model" quantized --data "$samples" --overwrite --quiet 2>log || fail "--overwrite: $(cat log)"

# ---- options in messages ----
declare -A help
options_of() { # COMMAND
    [ -n "${help[$1]:-}" ] || help[$1]=$("$tare" help $1 2>/dev/null; [ "$1" != dataset ] || for part in info head make split export; do "$tare" help dataset $part; done)
    printf '%s\n' "${help[$1]}"
}
checked=0
for ((i = 1; i <= runs; i++)); do
    while IFS= read -r line; do
        for option in $(grep -oE -- '(^|[ (=])--[a-z][a-z0-9_-]+' <<<"$line" | grep -oE -- '--[a-z0-9_-]+'); do
            known=
            for command in $(cat "logs/$i.command") $(grep -oE "(tare|$tare) [a-z]+" <<<"$line" | sed 's/.* //'); do
                grep -qE -- "(^| )$option([ ,=]|\$)" < <(options_of "$command") && known=1
            done
            checked=$((checked + 1))
            [ -n "$known" ] || fail "$(cat "logs/$i.command") has no option $option: $line"
        done
    done < <(grep -E '^tare: |: .*--' "logs/$i" | grep -v "next: ")
done
[ "$checked" -ge 10 ] || fail "$checked options found"
finish
