#!/usr/bin/env bash
# tare auto: one command that compares, decides, builds, verifies and reports, by the commands that it prints.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
data=(--data "$glyphs/calibration.tfrecord.gz" --eval "$glyphs/eval.tfrecord.gz")
cd "$work" || exit 1

"$tare" auto "$model" int8 "${data[@]}" >out 2>log || fail "auto: $(cat log)"
grep -q '^Recommended: ' out || fail "no recommendation: $(cat out)"
grep -qx 'wrote int8, whose outputs are those that were measured; int8.recipe: the plan; int8.html' out || fail "auto: $(tail -1 out)"
grep -q '<html' int8.html || fail "no report"
grep -q '^method=' int8.recipe || fail "no plan: $(cat int8.recipe)"
# The steps that it prints do the same: the second builds the same files.
grep '^tare: step: ' log | sed 's/^tare: step: //' >steps
[ "$(awk '{ print $2 }' steps | tr '\n' ' ')" = "compare quantize compare " ] || fail "steps: $(cat steps)"
mv int8 by_auto
while read -r line; do
    eval "${line/#tare/\"\$tare\"} --quiet" >/dev/null || fail "step: $line"
done <steps
diff -r by_auto int8 >/dev/null || fail "the printed command builds another model"

"$tare" auto "$model" tpu "${data[@]}" --tpu --quiet >out 2>log || fail "auto --tpu: $(cat log)"
[ -z "$(grep -vF 'tare: warning: the quantized model is estimated slower than the float model' log)" ] || fail "auto --quiet: $(cat log)"
grep -q TPUPartitionedCall <<<"$("$tare" inspect tpu --ops)" || fail "auto --tpu does not place the model"
expect 1 "already exists" "$tare" auto "$model" tpu "${data[@]}" --tpu
expect 2 "missing option '--data'" "$tare" auto "$model" other

# No recommendation: the way out. With the records of the next step there is one.
"$tare" dataset split "$glyphs/eval.tfrecord.gz" --count 60 --names few,rest -o labelled --quiet >/dev/null || fail "split: $?"
"$tare" auto "$model" other "${data[@]:0:2}" --eval labelled-few.tfrecord --tpu --quiet >out 2>log && fail "auto decides by 60 records"
[ "$(tail -1 out)" = "next: tare auto $model other ${data[*]:0:2} --eval EVAL --tpu" ] || fail "no next step: $(tail -1 out)"
grep -qxF "tare: no model is recommended, so that nothing is written: give more labelled records with --eval, or a larger --margin (see other.html)" \
    log || fail "no way out: $(cat log)"
absent other

# A model that cannot be written: the error says that the report and the plan are complete.
few_files() { # standard ones and two more, of none that this script was given
    (for fd in /proc/self/fd/*; do [ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"; done; ulimit -n 5; exec "$tare" "$@")
}
expect 1 "what was written is complete, but then: unwritten: cannot create " few_files auto "$model" unwritten "${data[@]}" --quiet
cmp -s unwritten.recipe int8.recipe && grep -q '</html>' unwritten.html || fail "the plan or the report is not complete"
absent unwritten

# Images and rows of CSV files without a spec: what is assumed is printed and kept.
python3 - <<'PY' || fail "no images: $?"
import pathlib, struct, zlib
chunk = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
for i in range(4):
    path = pathlib.Path('pictures', f'{i}.png')
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 28, 28, 8, 0, 0, 0, 0)) +
                     chunk(b'IDAT', zlib.compress((b'\0' + bytes([60 * i]) * 28) * 28)) + chunk(b'IEND', b''))
pathlib.Path('rows.csv').write_text('a,b\n1,2\n')
PY
expect 1 "no --spec: pictures: images without labels do not show the scale that the model expects" \
    "$tare" auto "$model" flat --data pictures
expect 1 "no --spec: rows.csv: 1 of the model's inputs have no feature in the records" "$tare" auto "$model" flat --data rows.csv
absent flat.spec
for name in a b; do mkdir -p classes/$name && cp pictures/*.png classes/$name; done
"$tare" auto "$model" flat --data classes >out 2>log && fail "auto decides by 8 images"
grep -q "^tare: flat.spec is assumed, because there is no --spec: 'image' from feature 'image/encoded'; label 'image/class/label'; pixels as .* (top-1 of the float model: .* with 0 … 255, .* with 0 … 1, .* with -1 … 1)$" log ||
    fail "nothing is assumed: $(head -1 log)"
"$tare" auto "$model" flat --data classes >out 2>log && fail "auto decides by 8 images"
grep -qx 'tare: flat.spec is used, because there is no --spec' log || fail "another spec: $(head -1 log)"
grep -qx "next: tare dataset head classes --spec flat.spec" out || fail "no next step: $(tail -1 out)"
finish
