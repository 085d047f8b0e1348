#!/usr/bin/env bash
# Forms of data that users have: bare NPY files, arrays of another dtype, one-hot labels, CSV tables, files of other programs.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2>/dev/null && echo "$p" && break; done)
[ -n "$python" ] || skip "no Python with NumPy"
model=$glyphs/saved_model
cd "$work" || exit 1

"$tare" dataset head -n 40 --values 784 --json "$glyphs/eval.tfrecord.gz" | "$python" -c "
import json, numpy, sys
records = [record['inputs'] for record in json.load(sys.stdin)]
images = numpy.array([record['image']['values'] for record in records], numpy.float32).reshape(-1, 28, 28, 1)
labels = numpy.array([record['label']['values'][0] for record in records])
assert len(images) == 40
numpy.save('images.npy', images)
numpy.save('labels.npy', labels)
numpy.save('one_hot.npy', numpy.eye(10, dtype=numpy.float32)[labels])
numpy.save('uint8.npy', numpy.rint(images * 255).astype(numpy.uint8))
numpy.savez('both.npz', image=images, label=labels)
with open('glyphs.csv', 'w') as file:
    file.write(','.join(f'p{i}' for i in range(784)) + ',label\n')
    for image, label in zip(images.reshape(-1, 784), labels):
        file.write(','.join(repr(float(x)) for x in image) + f',{label}\n')
" || fail "no arrays"

# ---- a bare .npy for a model with one input, whatever its name ----
"$tare" run "$model" --data both.npz --output-dir expected --quiet >/dev/null || fail "run --data both.npz: $?"
"$tare" run "$model" --data images.npy --output-dir bare --quiet >/dev/null || fail "run --data images.npy: $?"
cmp expected/probabilities.npy bare/probabilities.npy || fail "a bare .npy gives other outputs"

# ---- a folder of record files, in byte order, without markers ----
mkdir parts
cp both.npz parts/b.npz
"$python" -c "import numpy; numpy.savez('parts/a.npz', image=numpy.load('images.npy')[:3], label=numpy.load('labels.npy')[:3])"
touch parts/_SUCCESS parts/.crc
"$tare" calibrate "$model" --data parts -o parts.calib --quiet 2>log || fail "calibrate --data FOLDER: $(cat log)"
grep -q '"records": 43' <<<"$("$tare" show parts.calib --json)" || fail "a folder of record files has other records"
mkdir empty
expect 1 "empty: no records and no images" "$tare" calibrate "$model" --data empty -o none.calib
touch parts/README.md parts/dataset_info.json
mkdir -p nested/deep && cp -r parts nested/deep && touch nested/LICENSE
"$tare" calibrate "$model" --data nested -o nested.calib --quiet 2>log || fail "calibrate --data FOLDER with folders: $(cat log)"
grep -q '"records": 43' <<<"$("$tare" show nested.calib --json)" || fail "a folder of folders has other records"
echo notes >empty/notes.md
expect 1 "'empty/notes.md' has the name of a description" "$tare" calibrate "$model" --data empty -o none.calib
touch nested/deep/a.png
expect 1 "images next to records: nested/deep/a.png, nested/deep/parts/a.npz" "$tare" calibrate "$model" --data nested -o none.calib

# ---- images whose pixels are turned ----
mkdir turned && python3 - "$TARE_SOURCE_DIR/tests/corpus/image/seed-gray.jpg" turned/a.jpg <<'PYTHON' || fail "no image: $?"
import sys
jpeg = open(sys.argv[1], "rb").read()
exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
open(sys.argv[2], "wb").write(jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:])
PYTHON
echo 'input { name: "image" feature: "image/encoded" source: IMAGE image { channels: 1 step { resize { height: 28 width: 28 } } } }' >turned.spec
"$tare" dataset info turned --spec turned.spec >/dev/null 2>log || fail "dataset info --spec: $(cat log)"
grep -q "EXIF orientation other than 1" log || fail "dataset info --spec does not warn of turned images"

# ---- names of inputs, and of files, that contain an equals sign ----
cp images.npy 'a=b.npy'
"$tare" run "$model" --input 'image=a=b.npy' --output-dir signs --quiet >/dev/null || fail "run --input image=a=b.npy: $?"
mv a=b.npy b=c.npy && "$tare" dataset make --input a=b=c.npy -o "$work/signs.tfrecord" --quiet || fail "dataset make --input a=b=c.npy: $?"
mv b=c.npy c.npy && "$tare" dataset make --input a=b=c.npy -o "$work/signs.tfrecord" --quiet || fail "dataset make --input a=b=c.npy with c.npy: $?"
grep -q "a=b" <<<"$("$tare" dataset head "$work/signs.tfrecord" --limit 1)" || fail "the name of the input is not a=b"
expect 1 "the output 'c.npy' is the input 'c.npy'" "$tare" dataset make --input a=b=c.npy -o c.npy
mv c.npy a=b.npy
cmp expected/probabilities.npy signs/probabilities.npy || fail "a file with an equals sign gives other outputs"
expect 2 "--input x=y: unknown input" "$tare" calibrate "$model" --input 'x=y=images.npy' --input image=images.npy -o none.calib
expect 2 "--input x=y is given twice" "$tare" calibrate "$model" --input 'x=y=images.npy' --input 'x=y=labels.npy' -o none.calib

# ---- --input of calibrate and compare ----
"$tare" calibrate "$model" --input image=images.npy -o input.calib --quiet 2>log || fail "calibrate --input: $(cat log)"
grep -q '"records": 40' <<<"$("$tare" show input.calib --json)" || fail "calibrate --input has other records"
"$tare" compare "$model" --data both.npz --calibration input.calib --methods static --json --quiet >indices.json 2>log || fail "compare: $(cat log)"
"$tare" compare "$model" --input image=images.npy --input label=one_hot.npy --calibration input.calib --methods static --json --quiet >one_hot.json 2>log ||
    fail "compare --input with one-hot labels: $(cat log)"
accuracy() { grep -oE '"(top_?1|correct|accuracy)[a-z_0-9]*": [0-9.e+-]+' "$1"; }
[ -n "$(accuracy indices.json)" ] || fail "no accuracy in: $(head -c 600 indices.json)"
[ "$(accuracy indices.json)" = "$(accuracy one_hot.json)" ] || fail "one-hot labels: $(accuracy one_hot.json), indices: $(accuracy indices.json)"
# ---- labels that are not read, and labels of other classes ----
"$python" -c "
import numpy
images, labels = numpy.load('images.npy'), numpy.load('labels.npy')
numpy.savez('class.npz', image=images, **{'class': labels})
numpy.savez('other.npz', image=images, label=labels + 100)"
warnings() { "$tare" compare "$model" --eval "$@" --methods weight_only --quiet 2>&1 >/dev/null | grep 'warning: '; }
grep -qF "'class' of the records is not read (--label class measures the accuracy, --target class the error)" <<<"$(warnings class.npz)" ||
    fail "a key 'class' is passed over: $(warnings class.npz)"
[ -z "$(warnings class.npz --label class)$(warnings class.npz --metric sqnr)$(warnings both.npz)" ] || fail "labels that are read: $(warnings class.npz --label class)"
cp -r "$model" conditional && sed -i 's/image/label/g' conditional/saved_model.pb
"$python" -c "
import numpy
numpy.savez('conditional.npz', label=numpy.load('images.npy'), digit=numpy.load('labels.npy'))"
conditional() { "$tare" compare conditional --eval conditional.npz --methods weight_only --quiet "$@" 2>&1 >/dev/null | grep 'warning: .* label'; }
for options in "" "--label label"; do
    grep -qF "'label' is an input of the model and is not read as the label (--label KEY names another key" <<<"$(conditional $options)" ||
        fail "an input called label: $(conditional $options)"
done
[ -z "$(conditional --label digit)$(conditional --metric sqnr)" ] || fail "an input called label, and other labels: $(conditional --label digit)"
grep -qF "40 of 40 labels are not classes of the output and are not counted (got 109, expected 0 to 9" <<<"$(warnings other.npz)" ||
    fail "no label is a class: $(warnings other.npz)"
expect 2 "missing option '--data'" "$tare" calibrate "$model" -o none.calib
# Samples in a pipe are read once: by the calibration.
"$tare" convert "$model" piped --data <(zcat "$glyphs/calibration.tfrecord.gz") --limit 40 2>log >/dev/null || fail "convert from a pipe: $(cat log)"
grep -qxF "tare: bfloat16 was not checked: the samples can be read only once" log || fail "convert from a pipe: $(cat log)"
expect 2 "--data and --input are mutually exclusive" "$tare" compare "$model" --data both.npz --input image=images.npy
expect 2 "--input images.npy: expected NAME=FILE.npy" "$tare" calibrate "$model" --input images.npy -o none.calib
absent none.calib
# An array that nothing reads is misspelled, and would leave the comparison without labels.
unused=(--input image=images.npy --input lable=one_hot.npy)
message="--input lable: unknown input (signature serving_default is run with image, label; did you mean 'label'?)"
expect 2 "$message" "$tare" compare "$model" "${unused[@]}" --methods weight_only --quiet
expect 2 "$message" "$tare" compare "$model" "${unused[@]}" --methods weight_only --quiet --dry-run
expect 2 "$message" "$tare" calibrate "$model" "${unused[@]}" -o none.calib --quiet
expect 2 "--input one_hot: unknown input" "$tare" compare "$model" --input image=images.npy --input one_hot=one_hot.npy \
    --label class --methods weight_only --quiet
expect 2 "--input picture: unknown input (the spec reads no feature of this name)" "$tare" calibrate "$model" \
    --input picture=images.npy --spec <(echo 'input { name: "image" }') -o none.calib --quiet
"$tare" calibrate "$model" --input pictures=images.npy --input label=one_hot.npy -o any.calib --quiet 2>log ||
    fail "calibrate --input, the only value: $(cat log)"
"$tare" compare "$model" --input image=images.npy --input one_hot=one_hot.npy --label one_hot --methods weight_only --quiet >/dev/null 2>log ||
    fail "compare --input with --label: $(cat log)"
absent none.calib

# ---- another dtype: the error has the line of the spec that converts it, and that line works ----
expect 1 'expected float32, got uint8 (cast it with --spec FILE: input { name: "image" feature: "uint8" type: FLOAT32 })' \
    "$tare" run "$model" --data uint8.npy --quiet
sed -E 's/.*--spec FILE: (.*)\)$/\1/' stderr | sed 's/feature: "uint8"/& scale: 0.00392156862745098/' >cast.spec
"$tare" run "$model" --data uint8.npy --spec cast.spec --output-dir cast --quiet >/dev/null 2>log || fail "the line of the error: $(cat cast.spec log)"
"$python" -c "
import numpy
a, b = (numpy.load(f'{folder}/probabilities.npy') for folder in ('expected', 'cast'))
assert a.shape == b.shape and abs(a - b).max() < 1e-3, abs(a - b).max()" || fail "uint8 by a spec gives other outputs"

expect 1 "--input image: expected float32, got uint8 (save the array as float32)" "$tare" run "$model" --input image=uint8.npy

# ---- integers of 4 and 2 bits: arrays of bytes, whose elements must fit ----
"$python" -c "
import numpy
numpy.save('signed.npy', numpy.array([-2, -1, 0, 1], numpy.int8))
numpy.save('unsigned.npy', numpy.array([0, 1, 2, 3], numpy.uint8))
numpy.save('large.npy', numpy.array([0, 1, 0, 16], numpy.uint8))
numpy.save('wide.npy', numpy.array([0, 1, 2, 3], numpy.int32))"
for row in int4:signed:int8 uint4:unsigned:uint8 int2:signed:int8 uint2:unsigned:uint8; do
    IFS=: read -r type file stored <<<"$row"
    rm -rf narrow narrow_out narrow_rows
    "$tare" ops Identity --save-model narrow --shape "${type}[4]" >/dev/null 2>log || fail "ops: $(cat log)"
    "$tare" run narrow --input input=$file.npy --output-dir narrow_out --quiet >/dev/null 2>log || fail "$type: $(cat log)"
    "$tare" run narrow --data $file.npy --output-dir narrow_rows --quiet >/dev/null 2>log || fail "$type as rows: $(cat log)"
    "$python" -c "
import numpy
given = numpy.load('$file.npy')
for folder in ('narrow_out', 'narrow_rows'):
    found = numpy.load(folder + '/output.npy')
    assert found.dtype == numpy.$stored and (found.ravel() == given).all(), (folder, found)" || fail "$type: other outputs"
    expect 1 "input input: element 3 is 16 (expected" "$tare" run narrow --input input=large.npy
    expect 1 "expected $type, got int32 (save the array as $stored)" "$tare" run narrow --input input=wide.npy
    "$tare" run narrow --data wide.npy 2>err; grep -q "type: ${stored^^} })" err || fail "$type: no line of a spec: $(cat err)"
done

# ---- CSV, with the spec drafted for the model ----
expect 1 "a CSV row (expected also --spec FILE" "$tare" run "$model" --data glyphs.csv --quiet
"$tare" dataset info glyphs.csv --draft-spec csv.spec --model "$model" --quiet >info 2>log || fail "draft for a CSV file: $(cat log)"
grep -q 'CSV' info || fail "dataset info does not name the format: $(head -3 info)"
grep -q 'feature: "label"' csv.spec || fail "the draft has no label: $(tail -5 csv.spec)"
"$tare" run "$model" --data glyphs.csv --spec csv.spec --output-dir csv --quiet >/dev/null 2>log || fail "run --data glyphs.csv: $(cat log)"
cmp expected/probabilities.npy csv/probabilities.npy || fail "a CSV file gives other outputs"
sed '/^label {/,/^}/d' csv.spec >samples.spec
"$tare" compare "$model" --data glyphs.csv --eval glyphs.csv --spec samples.spec --methods weight_only --quiet >out 2>log || fail "compare: $(cat log)"
grep -q '^label' samples.spec && fail "the label line is there: $(cat samples.spec)"
grep -q '^model .*top-1' out || fail "a spec for samples loses the label: $(cat out)"
"$tare" calibrate "$model" --data glyphs.csv --spec csv.spec -o csv.calib 2>log || fail "calibrate: $(cat log)"
grep -q 'next: .* compare .* --eval EVAL.tfrecord --spec csv.spec$' log || fail "the next step does without the spec: $(cat log)"
mkdir jobs && cat >jobs/jobs.textproto <<JOBS
defaults { model: "$model" output: "{name}" data: "../glyphs.csv" evaluation: "../glyphs.csv" spec: "../samples.spec" limits { margin: 100 } }
job { method: "static" name: "calibrated" }
job { method: "static" name: "own" arguments: "--passes=smooth_quant" }
JOBS
"$tare" batch jobs/jobs.textproto --quiet --json >batch.json 2>log || fail "batch: $(cat log jobs/jobs.textproto.state/*.log)"
[ "$(grep -c '"measure": "top1"' batch.json)" = 2 ] || fail "batch does not read labels by the spec: $(cat batch.json)"
echo '# changed' >>samples.spec
[ "$("$tare" batch jobs/jobs.textproto --resume --quiet --json 2>/dev/null | sed -n 's/.*"jobs_skipped": \([0-9]*\).*/\1/p')" = 0 ] ||
    fail "batch does not notice a changed spec"
mkdir models && cp -r "$model" models/glyphs
"$tare" batch models --methods static --output-dir made --data glyphs.csv --eval glyphs.csv --spec samples.spec --quiet >out 2>log ||
    fail "batch of a folder: $(cat out log)"
gzip -k glyphs.csv
"$tare" run "$model" --data glyphs.csv.gz --spec csv.spec --output-dir csv_gz --quiet >/dev/null 2>log || fail "run --data glyphs.csv.gz: $(cat log)"
cmp expected/probabilities.npy csv_gz/probabilities.npy || fail "a compressed CSV file gives other outputs"
printf 'a,b\n1,2\n,3\n' >gap.csv
printf 'input { name: "x" feature: "a" shape: 1 }' >gap.spec
expect 1 "'a' has no value in this record (default_value sets one)" "$tare" dataset make gap.csv --spec gap.spec -o gap.tfrecord --quiet
printf 'input { name: "x" feature: "uint8" image { channels: 3 } }' >channels.spec
expect 1 "an image of 1 channels (expected channels: 3" "$tare" dataset make uint8.npy --spec channels.spec -o c.tfrecord --quiet
expect 2 "--max-bad applies to FILE, not to --input" "$tare" dataset make --input image=images.npy --max-bad 1 -o c.tfrecord
printf 'a.png 1\n' >labels.txt
for part in info head "make -o c.tfrecord"; do
    for form in both.npz images.npy glyphs.csv "$glyphs/eval.tfrecord.gz"; do
        expect 2 "--labels has no effect for $form, " "$tare" dataset $part "$form" --labels labels.txt
    done
done
expect 2 "--labels has no effect with --input" "$tare" dataset make --input image=images.npy --labels labels.txt -o c.tfrecord
expect 2 "option '--limit' has no effect without --data" "$tare" run "$model" --input image=images.npy --limit 1
absent c.tfrecord
absent gap.tfrecord
expect 2 "option '--model' has no effect without --draft-spec" "$tare" dataset info glyphs.csv --model "$model"

# ---- the command that follows a draft: names of new files, all data, quoted ----
suggests() {
    local text=$1
    shift
    "$tare" dataset info "$@" >/dev/null 2>log || fail "dataset info $*: $(cat log)"
    grep -qF "tare: next: tare dataset split $text" log || fail "dataset info $*: no '$text' in: $(cat log)"
}
cp glyphs.csv part-1.csv && cp glyphs.csv 'part 2.csv'
after="--count 20 --names calibration,evaluation --seed 1 -o"
suggests "part-1.csv 'part 2.csv' --spec new.spec ${after/20/40} part-1" part-1.csv 'part 2.csv' --draft-spec new.spec
suggests "'part-*.csv' --spec new.spec $after part" 'part-*.csv' --draft-spec new.spec
suggests "DATA --spec new.spec $after data" - --draft-spec new.spec <glyphs.csv
suggests "glyphs.csv --spec new.spec --model $model $after saved_model" glyphs.csv --draft-spec new.spec --model "$model"
touch saved_model-evaluation.tfrecord
suggests "glyphs.csv --spec new.spec --model $model $after saved_model_2" glyphs.csv --draft-spec new.spec --model "$model"
cp -r "$model" here && touch here.spec
"$tare" inspect here >/dev/null 2>log || fail "inspect: $(cat log)"
grep -qF "next: tare dataset info DATA --draft-spec here_2.spec --model here" log || fail "an existing spec is suggested: $(cat log)"

# ---- complex numbers and integers of 64 bits are printed as they are ----
"$python" -c "
import numpy
numpy.save('complex.npy', numpy.array([[1 + 2j, -0.5j]], numpy.complex64))
numpy.save('large.npy', numpy.array([[2**64 - 1, 5]], numpy.uint64))"
grep -qx '  complex complex64\[1,2\] 1+2j -*0-0.5j' <<<"$("$tare" dataset head complex.npy)" || fail "complex: $("$tare" dataset head complex.npy)"
grep -qx '  large uint64\[1,2\] 18446744073709551615 5' <<<"$("$tare" dataset head large.npy)" || fail "uint64: $("$tare" dataset head large.npy)"
"$tare" dataset head large.npy --json | "$python" -c "
import json, sys
values = json.load(sys.stdin)[0]['inputs']['large']['values']
assert values == ['18446744073709551615', 5], values" || fail "uint64 in JSON"

# ---- no output replaces a file that is read, and a bad output is reported before the work ----
cp glyphs.csv report.csv && cp input.calib page.html
expect 1 "the output 'report.csv' is the input 'report.csv'" "$tare" compare "$model" --data 'report.c*' --spec csv.spec --methods float --report report.csv --quiet
expect 1 "the output 'page.html' is the input 'page.html'" "$tare" compare "$model" --data both.npz --calibration page.html --report page.html --quiet
expect 1 "the output 'page.html' is the input 'page.html'" "$tare" show page.html --html page.html
expect 1 "the output 'page.html' is the input 'page.html'" "$tare" convert "$model" converted --calibration page.html --report page.html --quiet
expect 1 "the output 'page.html' is the input 'page.html'" "$tare" diff report.csv page.html --html page.html
expect 1 "the output 'report.csv' is the input 'report.csv'" "$tare" dataset info report.csv --draft-spec report.csv --quiet
cmp glyphs.csv report.csv && cmp input.calib page.html || fail "an input was replaced"
expect 1 "cannot create 'nowhere/x': folder 'nowhere' does not exist" "$tare" dataset make both.npz -o nowhere/x --quiet
expect 1 "cannot create 'nowhere/x-…': folder 'nowhere' does not exist" "$tare" dataset split both.npz --parts 2 -o nowhere/x --quiet
expect 1 "cannot create 'nowhere/x.spec': folder 'nowhere' does not exist" "$tare" dataset info both.npz --draft-spec nowhere/x.spec --quiet
expect 2 "--draft-spec -: standard output has the summary" "$tare" dataset info both.npz --draft-spec -
expect 2 "--output '-': expected a prefix of file names" "$tare" dataset split both.npz --parts 2 -o -
expect 2 "--seed 18446744073709551616: expected an integer" "$tare" dataset split both.npz --parts 2 --seed 18446744073709551616 -o p
printf 'a,b\n' >header.csv
expect 1 "header.csv: no records" "$tare" dataset info header.csv --draft-spec header.spec --quiet
absent header.spec
"$tare" dataset make both.npz --limit 3 -o three.tfrecord --quiet && "$tare" dataset split three.tfrecord --fraction 0.1 -o part >/dev/null 2>log || fail "split: $(cat log)"
[ "$(cat log)" = "tare: warning: part-00000-of-00002.tfrecord has no records" ] || fail "a part without records: $(cat log)"
mkdir -p read_only && chmod 555 read_only
if command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups test -x "$tare" -a -r "$work/three.tfrecord" 2>/dev/null; then
    expect 1 "cannot create 'read_only/x': Permission denied" setpriv --reuid 65534 --clear-groups "$tare" dataset make three.tfrecord -o read_only/x --quiet
fi

# ---- an output is named once ----
expect 2 "--output probabilities is given twice" "$tare" run "$model" --data both.npz --output probabilities --output probabilities --output-dir twice --quiet
absent twice

# ---- standard input has one reader; empty tables ----
expect 2 "-: standard input can be read only once (given 2 times)" "$tare" run "$model" --data - --data - --quiet <both.npz
expect 2 "-: standard input can be read only once (given 2 times)" "$tare" dataset info - - --quiet <both.npz
expect 2 "-: standard input can be read only once (given 2 times)" "$tare" dataset head - - <both.npz
printf '\n' >empty.csv
expect 1 "empty.csv: the file is empty (expected the names of the columns)" "$tare" run "$model" --data empty.csv --spec csv.spec --quiet

# ---- files of other formats ----
printf '\211HDF\r\n\032\nxxxxxxxxxxxx' >data.h5
expect 1 "data.h5: an HDF5 file (expected TFRecord, NPY, NPZ, CSV, JPEG, PNG or BMP; in Python: numpy.savez" "$tare" run "$model" --data data.h5 --quiet
expect 1 "gcloud storage cp gs://bucket/a.tfrecord ." "$tare" run "$model" --data gs://bucket/a.tfrecord --quiet
finish
