#!/usr/bin/env bash
# tare dataset on the goldens: info, head, make, split, refusals; and --spec on the commands that run models.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
golden=$source_dir/tests/golden
examples=$golden/examples

# info: text and JSON say the same; exit status 1 and the place when a record is bad.
"$tare" dataset info "$examples/images.tfrecord" --quiet >"$work/info" || fail "info: $?"
grep -q '^3 records (tf.Example)$' "$work/info" || fail "no records in: $(cat "$work/info")"
grep -Eq '^rare +float32 +\[1\] +2.5 +2.5 .*in 1 record$' "$work/info" || fail "no rare feature in: $(cat "$work/info")"
"$tare" dataset info "$examples/images.tfrecord" --spec "$examples/lists.spec" --json --quiet >"$work/info.json" || fail "info --spec: $?"
grep -q '"name": "raw_scaled"' "$work/info.json" || fail "the spec's inputs are missing: $(cat "$work/info.json")"
head -c 20000 "$examples/images.tfrecord" >"$work/cut"
expect 1 "tare: $work/cut: record 2: truncated record at " "$tare" dataset info "$work/cut" --quiet
grep -q '^2 records' "$work/stdout" || fail "the good records are missing: $(cat "$work/stdout")"
grep -q 'tf.SequenceExample' <<<"$("$tare" dataset info - --quiet <"$examples/sequences.tfrecord")" || fail "info from standard input"

grep -q '^4 records (arrays)$' <<<"$("$tare" dataset info - --quiet <"$golden/npy/samples.npz")" || fail "NPZ from standard input"
grep -q '^  array int16\[1,3,4\] -4 ' <<<"$(gzip -c "$golden/npy/i2.npy" | "$tare" dataset head -n 1 -)" || fail "compressed NPY from standard input"

# A drafted spec takes every record that it was drafted for.
for records in images sequences; do
    "$tare" dataset info "$examples/$records.tfrecord" --draft-spec "$work/$records.spec" --quiet >/dev/null || fail "draft: $?"
    "$tare" dataset info "$examples/$records.tfrecord" --spec "$work/$records.spec" --quiet >"$work/drafted" 2>"$work/log" || fail "the draft for $records: $(cat "$work/log" "$work/$records.spec")"
    grep -q '^3 records (samples)$' "$work/drafted" || fail "the draft for $records: $(cat "$work/drafted")"
done
grep -q '^label' "$work/images.spec" || fail "no label in the draft: $(cat "$work/images.spec")"
expect 2 "--spec and --draft-spec are mutually exclusive" "$tare" dataset info "$examples/images.tfrecord" --draft-spec x --spec y

# head
"$tare" dataset head -n 1 "$golden/npy/samples.npz" >"$work/head" || fail "head: $?"
grep -q '^  x float32\[1,2,3\] 0 1 2 3 4 5$' "$work/head" || fail "head: $(cat "$work/head")"
grep -q '^  name string\[1\] "a"$' "$work/head" || fail "head: $(cat "$work/head")"
"$tare" dataset head "$examples/sequences.tfrecord" --json | python3 -c '
import json, sys
records = json.load(sys.stdin)
assert [r["record"] for r in records] == [0, 1, 2], records
assert records[1]["inputs"]["words"]["values"] == ["w0", "w1", "w2"], records[1]
' || fail "head --json"

# make: the same samples from NPZ, from single arrays and from a TFRecord; compressed by its name; all or nothing.
"$tare" dataset make "$golden/npy/samples.npz" -o "$work/a.tfrecord" --quiet || fail "make: $?"
"$tare" dataset make "$work/a.tfrecord" -o "$work/b.tfrecord.gz" --quiet || fail "make again: $?"
gzip -dc "$work/b.tfrecord.gz" | cmp - "$work/a.tfrecord" || fail "made again it is not the same"
"$tare" dataset make "$golden/npy/samples.npz" -o - --quiet | cmp - "$work/a.tfrecord" || fail "to standard output it is not the same"
"$tare" dataset make --input x="$golden/npy/i2.npy" --input y="$golden/npy/f4.npy" -o "$work/c.tfrecord" 2>"$work/log" || fail "arrays: $?"
grep -q "c.tfrecord: 2 records$" "$work/log" || fail "no summary: $(cat "$work/log")"
expect 2 "give FILE or --input" "$tare" dataset make -o "$work/d"
expect 2 "expected NAME=FILE" "$tare" dataset make --input x.npy -o "$work/d"
expect 2 "is given twice" "$tare" dataset make --input x=a --input x=b -o "$work/d"
expect 1 "images.tfrecord: record 0 at 0: it is a tf.Example (expected a RepresentativeDataSample, or --spec FILE" \
    "$tare" dataset make "$examples/images.tfrecord" -o "$work/d" --quiet
printf 'input { name: "x"\n  featur: "y" }' >"$work/bad.spec"
expect 1 "bad.spec:2:3: DatasetInput has no field 'featur' (did you mean 'feature'?)" \
    "$tare" dataset make "$examples/images.tfrecord" --spec "$work/bad.spec" -o "$work/d"
absent "$work/d"
[ -z "$(ls -A "$work" | grep tmp)" ] || fail "temporary files were left: $(ls -A "$work")"

# Every spec in the documentation is one: what fails is the record, not the spec.
awk '/^```/ { open = !open; if (open) file = sprintf("'"$work"'/doc%02d.spec", ++count); next } open { print > file }' "$source_dir/docs/dataset-spec.md"
specs=0
for spec in "$work"/doc*.spec; do
    grep -qE '^input|^label' "$spec" || continue
    specs=$((specs + 1))
    "$tare" dataset head "$examples/images.tfrecord" --spec "$spec" >/dev/null 2>"$work/log"
    grep -q "$spec:" "$work/log" && fail "the documentation has a bad spec: $(cat "$work/log")"
done
[ "$specs" -ge 5 ] || fail "only $specs specs were found in the documentation"

# A folder of images: classes from its folders.
mkdir -p "$work/pets/cat" "$work/pets/dog"
python3 - "$work/pets" <<'PY' || fail "images"
import struct, sys, zlib
def png(v):
    c = lambda k, b: struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b))
    return (b"\x89PNG\r\n\x1a\n" + c(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
            + c(b"IDAT", zlib.compress((b"\0" + bytes([v, v])) * 2)) + c(b"IEND", b""))
for name, v in (("cat/1.png", 10), ("cat/2.png", 20), ("dog/1.png", 30)):
    open(sys.argv[1] + "/" + name, "wb").write(png(v))
PY
cat >"$work/pets.spec" <<'SPEC'
input { name: "image" feature: "image/encoded" image { channels: 3 step { resize { height: 1 width: 1 method: AREA } } } }
label { feature: "image/class/label" shape: 1 whole: true }
SPEC
"$tare" dataset make "$work/pets" --spec "$work/pets.spec" -o "$work/pets.tfrecord" 2>"$work/log" || fail "images: $(cat "$work/log")"
grep -q '^class 1: dog$' "$work/log" || fail "classes are not told: $(cat "$work/log")"
"$tare" dataset head "$work/pets.tfrecord" >"$work/head"
[ "$(grep -c 'image float32\[1,1,1,3\]' "$work/head")" = 3 ] || fail "images: $(cat "$work/head")"
grep -q '30 30 30  label int64\[1\] 1' <<<"$(grep -A2 '^record 2' "$work/head" | tr -d '\n')" || fail "the last image: $(cat "$work/head")"
echo damaged >"$work/pets/cat/3.png"
expect 1 "record 2 at 0: cat/3.png: input 'image': feature 'image/encoded': not an image" \
    "$tare" dataset make "$work/pets" --spec "$work/pets.spec" -o "$work/e.tfrecord" --quiet
"$tare" dataset make "$work/pets" --spec "$work/pets.spec" -o "$work/e.tfrecord" --max-bad 1 2>"$work/log" || fail "max-bad: $(cat "$work/log")"
grep -q 'e.tfrecord: 3 records, 1 bad ones left out' "$work/log" || fail "max-bad: $(cat "$work/log")"
# Of several, the first and their count.
echo damaged >"$work/pets/cat/4.png"
"$tare" dataset make "$work/pets" --spec "$work/pets.spec" -o "$work/e.tfrecord" --max-bad 2 --quiet --log-file "$work/messages" 2>"$work/log" || fail "max-bad: $(cat "$work/log")"
[ "$(wc -l <"$work/log")" = 2 ] && grep -q '^tare: left out: .*cat/3.png' "$work/log" && grep -q '^tare: 2 invalid records left out (--log-file FILE gets all reasons)$' "$work/log" || fail "max-bad: $(cat "$work/log")"
grep -q 'cat/3.png' "$work/messages" && grep -q 'cat/4.png' "$work/messages" || fail "the log file lacks a reason: $(cat "$work/messages")"

# split: every record once, the same for the same seed.
"$tare" dataset split "$glyphs/eval.tfrecord.gz" --fraction 0.8 --names calibration,evaluation --seed 5 -o "$work/s" --quiet >"$work/log" || fail "split: $?"
"$tare" dataset split "$glyphs/eval.tfrecord.gz" --fraction 0.8 --names calibration,evaluation --seed 5 -o "$work/t" --quiet >/dev/null || fail "split: $?"
cmp "$work/s-calibration.tfrecord" "$work/t-calibration.tfrecord" || fail "one seed gives two splits"
all=$("$tare" dataset info "$glyphs/eval.tfrecord.gz" --quiet --json | grep -m1 '"records"')
parts=$("$tare" dataset info "$work/s-calibration.tfrecord" "$work/s-evaluation.tfrecord" --quiet --json | grep -m1 '"records"')
[ "$all" = "$parts" ] || fail "records are missing: $parts of $all"
"$tare" dataset split "$work/a.tfrecord" --parts 3 -o "$work/p" --quiet >/dev/null || fail "split: $?"
cat "$work"/p-0000?-of-00003.tfrecord | cmp - "$work/a.tfrecord" || fail "parts in order are not the whole"
# Samples that do not fit on the disk: the error names the parts, not the temporary file without a name.
echo 'input { name: "image" }' >"$work/image.spec"
full() { (trap '' XFSZ; ulimit -f 64; exec "$tare" dataset split "$glyphs/eval.tfrecord.gz" --spec "$work/image.spec" --parts 2 -o "$work/full" --quiet); }
expect 1 "cannot write '$work/full-…': File too large" full
absent "$work/full-00000-of-00002.tfrecord"
expect 2 "expected exactly one of --parts, --count and --fraction" "$tare" dataset split "$work/a.tfrecord" -o "$work/q"
expect 2 "cannot be split: the files are read twice" "$tare" dataset split <(cat "$work/a.tfrecord") --parts 2 -o "$work/q" --quiet
expect 2 "there are only 4 records" "$tare" dataset split "$work/a.tfrecord" --count 5 -o "$work/q" --quiet
expect 2 "--seed x: expected an integer" "$tare" dataset split "$work/a.tfrecord" --parts 2 --seed x -o "$work/q"
expect 2 "did you mean 'info'" "$tare" dataset inf

# An output that is one of the files read would replace them: refused, by another name and with a spec too.
cp "$work/a.tfrecord" "$work/keep-00000-of-00002.tfrecord"
ln -s keep-00000-of-00002.tfrecord "$work/link.tfrecord"
model=$glyphs/saved_model
kept=$work/keep-00000-of-00002.tfrecord
apart() { expect 1 "(choose another file)" "$@"; cmp -s "$work/a.tfrecord" "$kept" || fail "$*: the input was replaced"; }
apart "$tare" dataset make "$kept" -o "$kept" --limit 1 --quiet
apart "$tare" dataset make "$work/keep-*.tfrecord" -o "$work/link.tfrecord" --limit 1 --quiet
apart "$tare" dataset split "$kept" --parts 2 -o "$work/keep" --quiet
printf 'input { name: "x" }' >"$work/x.spec"
apart "$tare" dataset split "$work/link.tfrecord" --parts 2 --spec "$work/x.spec" -o "$work/keep" --quiet
[ ! -e "$work/keep-00001-of-00002.tfrecord" ] || fail "a refused split left a part"
gzip -dc "$glyphs/calibration.tfrecord.gz" | head -c 31880 >"$work/c.tfrecord"
cp "$work/c.tfrecord" "$work/same.tfrecord"
expect 1 "the output '$work/c.tfrecord' is the input '$work/c.tfrecord'" "$tare" calibrate "$model" --data "$work/c.tfrecord" -o "$work/c.tfrecord" --quiet
cmp "$work/c.tfrecord" "$work/same.tfrecord" || fail "calibrate replaced its data"
absent "$work/c.tfrecord.state"

# --spec where models run: images as tf.Example records give what their samples give.
cat >"$work/png.spec" <<'SPEC'
input { name: "image" feature: "image/png" image { channels: 1 step { resize { height: 28 width: 28 } } } scale: 0.00392156862745098 }
label { }
SPEC
model=$glyphs/saved_model
"$tare" dataset make "$examples/images.tfrecord" --spec "$work/png.spec" -o "$work/glyphs.tfrecord" --quiet || fail "make glyphs: $?"
"$tare" run "$model" --data "$examples/images.tfrecord" --spec "$work/png.spec" --output-dir "$work/by_spec" --quiet || fail "run --spec: $?"
"$tare" run "$model" --data "$work/glyphs.tfrecord" --output-dir "$work/by_samples" --quiet || fail "run: $?"
cmp "$work/by_spec/probabilities.npy" "$work/by_samples/probabilities.npy" || fail "a spec changes the answers"
for command in "calibrate $model -o $work/c.calib" "quantize $model $work/int8" "compare $model --methods float"; do
    "$tare" $command --data "$examples/images.tfrecord" --spec "$work/png.spec" --quiet >/dev/null 2>"$work/log" || fail "$command --spec: $(cat "$work/log")"
done
expect 1 "tf.Example" "$tare" run "$model" --data "$examples/images.tfrecord" --quiet

# Images as files: read again, they are those of the records, in folders that have the numbers of the labels.
"$tare" dataset export "$glyphs/eval.tfrecord.gz" --limit 60 -o "$work/exported" 2>"$work/log" || fail "export: $(cat "$work/log")"
grep -qx "$work/exported: 60 images, whose values were from 0 to 1" "$work/log" || fail "export says: $(cat "$work/log")"
cat >"$work/exported.spec" <<'SPEC'
input { name: "image" feature: "image/encoded" image { channels: 1 } scale: 0.00392156862745098 }
label { feature: "image/class/label" shape: 1 whole: true }
SPEC
top1() { "$tare" compare "$model" --eval "$1" "${@:2}" --limit 60 --methods float --json --quiet | grep -o '"top1": [0-9.]*' | head -1; }
[ -n "$(top1 "$work/exported" --spec "$work/exported.spec")" ] &&
    [ "$(top1 "$work/exported" --spec "$work/exported.spec")" = "$(top1 "$glyphs/eval.tfrecord.gz")" ] ||
    fail "exported images: $(top1 "$work/exported" --spec "$work/exported.spec"), records: $(top1 "$glyphs/eval.tfrecord.gz")"
expect 1 "Output directory already exists" "$tare" dataset export "$glyphs/eval.tfrecord.gz" -o "$work/exported"
expect 1 "record 0: no image in label (expected [height, width, 1 or 3]" "$tare" dataset export "$glyphs/eval.tfrecord.gz" --image label -o "$work/none"
absent "$work/none"
finish
