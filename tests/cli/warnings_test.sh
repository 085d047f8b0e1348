#!/usr/bin/env bash
# Every warning of a command is on standard error, in its JSON and in its page, once in each.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model

cat >lists.py <<'PYTHON'
"""lists.py FILE: the warnings of standard error (.log), of a report (.json) or of a page (.html), one per line, sorted; fails where
one is there twice."""
import html, json, re, sys

name = sys.argv[1]
text = open(name, encoding="utf-8").read()
if name.endswith(".log"):
    found = [line[len("tare: warning: "):] for line in text.splitlines() if line.startswith("tare: warning: ")]
elif name.endswith(".json"):
    found = [w if isinstance(w, str) else w["text"] for w in json.loads(text)["warnings"]]
else:
    part = re.search(r'<section id="warnings">(.*?)</section>|>Warnings</h2>(.*?)<h2', text, re.S)
    notes = re.findall(r'<p class="note warning">(.*?)</p>', part.group(0), re.S) if part else []
    found = [html.unescape(re.sub(r"<[^>]*>", "", note)).replace("\u00a0", " ") for note in notes]
found = [w for w in found if "more layers like these" not in w]
print("\n".join(sorted(found)))
sys.exit(len(found) != len(set(found)))
PYTHON

# same NAME FILE…: the lists are equal; those that begin the lines of NAME.expected are in them
same() {
    local name=$1 first=$2 file
    shift
    for file in "$@"; do
        python3 lists.py "$file" >"$file.list" || fail "$name: a warning is twice in $file: $(cat "$file.list")"
        cmp -s "$first.list" "$file.list" || fail "$name: $file and $first differ: $(diff "$first.list" "$file.list")"
    done
}
has() { # has FILE TEXT…
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$file.list" || fail "$file: no warning '$text': $(cat "$file.list")"
    done
}
few="only 40 records of signature 'serving_default' (200 or more are advised)"
shared="of 40 evaluation records have the same inputs as calibration samples"

"$tare" dataset split "$glyphs/calibration.tfrecord.gz" --count 40 -o some --quiet >/dev/null || fail "split"
some=some-00000-of-00002.tfrecord

"$tare" calibrate "$model" --data $some -o some.calib --json >calibrate.json 2>calibrate.log || fail "calibrate: $(cat calibrate.log)"
"$tare" show some.calib --report show.html >/dev/null 2>&1 && "$tare" show some.calib --json >show.json 2>/dev/null || fail "show"
same calibrate calibrate.log calibrate.json show.json show.html
has calibrate.log "$few"
# a record that is passed over, and a state of an earlier run
{ cat $some; printf 'rubbish that is no record'; } >broken.tfrecord
touch broken.calib.part
"$tare" calibrate "$model" --data broken.tfrecord --max-bad 3 -o broken.calib --autosave 60 --json >broken.json 2>broken.log || fail "calibrate: $(cat broken.log)"
same broken broken.log broken.json
has broken.log "$few" "1 record"

# the samples are the evaluation records; more layers are poor than standard error shows
for data in "--data $some --eval $some" "--calibration some.calib --eval $some"; do
    # shellcheck disable=SC2086
    "$tare" compare "$model" $data --methods float,static --algorithms percentile:p=60 --report compare.html --json >compare.json 2>compare.log ||
        fail "compare: $(cat compare.log)"
    "$tare" compare "$model" $data --methods float,static --algorithms percentile:p=60 --report again.json >/dev/null 2>&1 || fail "compare"
    same compare compare.json compare.html again.json
    python3 lists.py compare.log >compare.log.list || fail "twice: $(cat compare.log.list)"
    [ -z "$(comm -23 compare.log.list compare.json.list)" ] || fail "not in the reports: $(comm -23 compare.log.list compare.json.list)"
    hidden=$(sed -nE 's/.*: ([0-9]+) more layers like these \(--report FILE lists them\)$/\1/p' compare.log | paste -sd+)
    [ "$(comm -13 compare.log.list compare.json.list | wc -l)" -eq $((${hidden:-0})) ] && [ "${hidden:-0}" != 0 ] ||
        fail "hidden: $hidden; $(comm -13 compare.log.list compare.json.list)"
    has compare.json "$few" "$shared" "static percentile:p=60: layer 'stem_conv': clipping leaves"
done
"$tare" compare "$model" --data $some --eval $some --quiet --report compare.html --json >compare.json 2>compare.log || fail "compare: $(cat compare.log)"
same compare compare.log compare.json compare.html

"$tare" quantize "$model" int8 --data $some --report quantize.json --json >printed.json 2>quantize.log || fail "quantize: $(cat quantize.log)"
cmp quantize.json printed.json || fail "quantize: --report and --json differ"
same quantize quantize.log quantize.json
has quantize.log "$few" "estimated slower"
echo 'name=no_such_layer -> float' >none.recipe
"$tare" quantize "$model" int4 --calibration some.calib --bits 4 --recipe none.recipe --report quantize.json 2>quantize.log || fail "quantize: $(cat quantize.log)"
same quantize quantize.log quantize.json
has quantize.log "$few" "none.recipe:1: rule matches no layer"
"$tare" quantize "$model" near --calibration some.calib --rule 'op=Conv2d -> float' --rule 'name=stem_con -> float' 2>quantize.log ||
    fail "quantize: $(cat quantize.log)"
for near in op=Conv2D name=stem_conv; do
    grep -qF "rule matches no layer (did you mean $near?)" quantize.log || fail "not near: $(cat quantize.log)"
done

"$tare" convert "$model" tpu --data $some --report convert.json 2>convert.log >/dev/null || fail "convert: $(cat convert.log)"
same convert convert.log convert.json
has convert.log "$few" "estimated slower"
"$tare" convert "$model" tpu --data $some --json --overwrite 2>convert.log >convert.json || fail "convert: $(cat convert.log)"
same convert convert.log convert.json

# all steps of auto, also those after its comparison
for tpu in "" --tpu; do
    # shellcheck disable=SC2086
    "$tare" auto "$model" made --data $some --margin 10 --overwrite $tpu 2>auto.log >/dev/null || fail "auto: $(cat auto.log)"
    same auto auto.log made.html
    has auto.log "$few"
done

cat >jobs.textproto <<TEXT
job { name: "one" model: "$model" output: "one" method: "static" data: "$some" }
job { name: "two" model: "$model" output: "two" method: "weight_only" }
TEXT
"$tare" batch jobs.textproto --report batch.json --json >/dev/null 2>batch.log || fail "batch: $(cat batch.log)"
python3 - "$few" <<'PYTHON' || fail "batch: $(cat batch.json)"
import json, sys
one, two = json.load(open("batch.json"))["jobs"]
sys.exit(one["warnings"].count(sys.argv[1]) != 1 or two["warnings"] != [])
PYTHON
"$tare" batch jobs.textproto --report batch.html --resume >table 2>/dev/null || fail "batch --resume"
grep -qF "1 job has warnings, which --report FILE.html or .json lists" table || fail "batch: $(cat table)"
grep -qF "only 40 records of signature" batch.html || fail "batch.html has no warnings"
finish
