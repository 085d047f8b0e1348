#!/usr/bin/env bash
# Names with control characters: every line for people is escaped, on standard output and standard error, and an error
# stays one line. Names of signatures, inputs, outputs, functions, nodes and files contain ESC, newline, CR, DEL, C1,
# bytes that are not UTF-8, and marks that reverse text.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
cp -r "$glyphs/saved_model" model
python3 - "$glyphs/calibration.tfrecord.gz" <<'EOP'
import gzip, re, struct, sys
# names of the same length, so that the messages around them stay as they are
names = {b"probabilities": b"pro\x1b[31m\nties", b"serving_default": "srv\u202e\x1b[2J\rfault".encode()[:15], b"image": b"i\x7f\xc2\x9be"}
assert all(len(a) == len(b) for a, b in names.items())
def rename(data):
    for old, new in names.items():
        data = data.replace(old, new)
    return data
path = "model/saved_model.pb"
data = open(path, "rb").read()
assert all(name in data for name in names)
open(path, "wb").write(rename(data))
EOP
evil=$'evil\e[31m\n\r\x7f\xff'
mv model "$evil"

# check STATUSES COMMAND…: no control character, no invalid UTF-8, one line of error
check() {
    local wanted=$1 status=0
    shift
    timeout 60 "$@" >out 2>err </dev/null || status=$?
    [[ " $wanted " == *" $status "* ]] || fail "${*:2:2}: exit status $status: $(head -c 300 err | cat -v)"
    python3 - <<'EOP' || fail "${*:2}: control characters in the output"
import re, sys
bad = 0
for name in ("out", "err"):
    data = open(name, "rb").read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        print(name, "is not UTF-8:", error); bad = 1; continue
    found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
    found = found or re.search("^ties", text, re.M)  # what follows the newline in the name of an output
    if found:
        print(name, repr(text[max(0, found.start() - 60):found.end() + 20])); bad = 1
sys.exit(bad)
EOP
    [ "$status" -eq 0 ] || [ "$(grep -c '^tare: ' err)" -ge 1 ] || fail "${*:2}: no error line: $(cat -v err)"
}
for options in "" "--functions" "--variables" "--ops" "--suggest" "--json"; do check "0" "$tare" inspect "$evil" $options; done
check "0" "$tare" inspect "$evil" --graph ""
check "0" "$tare" inspect "$evil" --graph tpu_func
check "0 1" "$tare" validate "$evil"
check "0 1" "$tare" validate "$evil" --json
check "0 1" "$tare" copy "$evil" "copy$evil"
check "0 1 2" "$tare" run "$evil"
check "0 1 2" "$tare" run "$evil" --random 1
check "0 1" "$tare" run "$evil" --data "$glyphs/calibration.tfrecord.gz"
check "0 1" "$tare" run "$evil" --data "$glyphs/calibration.tfrecord.gz" --profile
check "0 1" "$tare" quantize "$evil" "weights$evil" --method weight_only
check "0 1" "$tare" quantize "$evil" "weights$evil" --method weight_only
check "0 1 2" "$tare" convert "$evil" "tpu$evil"
check "0 1" "$tare" calibrate "$evil" --data "$glyphs/calibration.tfrecord.gz" -o "c$evil"
check "0 1" "$tare" compare "$evil" --data "$glyphs/calibration.tfrecord.gz"
check "0 1" "$tare" diff "$evil" "$glyphs/saved_model"
check "1 2" "$tare" "no$evil"
check "1 2" "$tare" inspect "no$evil"
check "1 2" "$tare" inspect --signature "no$evil" "$evil"
check "1 2" "$tare" show "no$evil"
check "1 2" "$tare" merge "no$evil" -o x
check "1 2" "$tare" dataset info "no$evil"
check "1 2" "$tare" dataset head "no$evil"
check "1 2" "$tare" dataset make "no$evil" -o x.tfrecord
check "1 2" "$tare" batch "no$evil"
check "1 2" "$tare" ops "no$evil"
check "1 2" "$tare" unwrap "no$evil" "out$evil"
cp "$glyphs/calibration.tfrecord.gz" "$evil.tfrecord.gz"
check "0" "$tare" dataset info "$evil.tfrecord.gz"
check "0" "$tare" dataset head "$evil.tfrecord.gz"
"$tare" inspect "no$evil" 2>err
[ "$(wc -l <err)" -eq 1 ] || fail "an error is not one line: $(cat -v err)"
grep -qF 'noevil\u001b[31m\n\r\u007f\xff' err || fail "the name is not escaped: $(cat -v err)"
# plain text, other scripts and colors of a terminal are not changed
"$tare" inspect "$evil" >out && grep -qF 'pro\u001b[31m\nties' out || fail "the output's name is not in: $(cat -v out)"
mkdir größe-日本 && "$tare" inspect größe-日本 2>err
grep -qF 'größe-日本' err || fail "a name in other letters was changed: $(cat err)"
# JSON has every name: bytes that are not UTF-8 are octal escapes (docs/json.md), nothing is left out
latin=$(printf 'm\377')
cp -r "$glyphs/saved_model" "$latin" && cp "$glyphs/calibration.tfrecord.gz" "$latin.gz"
printf 'a\377,b\n1,2\n' >"$latin.csv"
has() {
    local key=$1 text=$2
    shift 2
    "$@" >out.json 2>err || fail "${*@Q}: status $?: $(cat err)"
    python3 - "$key" "$text" <<'EOP' || fail "${*@Q}: no $key $text in: $(head -c 400 out.json)"
import functools, json, sys
value = functools.reduce(lambda x, key: x[int(key) if key.isdigit() else key], sys.argv[1].split("/"), json.load(open("out.json")))
sys.exit(value != sys.argv[2])
EOP
}
has model 'm\377' "$tare" run "$latin" --data "$latin.gz" --limit 2 --json --quiet --output-dir "out$latin"
has files/0/path 'm\377.gz' "$tare" dataset info "$latin.gz" --json --quiet
has keys/0/name 'a\377' "$tare" dataset info "$latin.csv" --json --quiet
has 0/file 'm\377.gz' "$tare" dataset head -n 1 "$latin.gz" --json
has '0/inputs/a\377/dtype' int64 "$tare" dataset head -n 1 "$latin.csv" --json
has output 'm\377.calib' "$tare" calibrate "$latin" --data "$latin.gz" --limit 2 -o "$latin.calib" --json --quiet
has data 'm\377.gz' "$tare" compare "$latin" --data "$latin.gz" --calibration "$latin.calib" --limit 2 --methods static --json --quiet
has first 'm\377' "$tare" diff "$latin" "$latin" --json
has second 'outm\377' "$tare" diff "out$latin" "out$latin" --json
# text that is longer than the buffer of the output
python3 - <<'EOP'
open("long.csv", "wb").write(("a" * 16383 + "\x1b[2J" + "é" * 9000 + "b" * 40000 + ",y\n1,2\n3,4\n").encode())
EOP
"$tare" dataset info long.csv >out || fail "dataset info of a long name: $?"
python3 - <<'EOP' || fail "a long name was changed"
import sys
sys.exit("a" * 16383 + "\\u001b[2J" + "é" * 9000 + "b" * 40000 not in open("out", "rb").read().decode())
EOP
finish
