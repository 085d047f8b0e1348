#!/usr/bin/env bash
# From a SavedModel without aliases and 300 PNG files in class folders to a converted and checked int8 model in six
# commands. After the first, every command is the one that the command before it suggests; only placeholders in capitals
# are replaced. docs/getting-started.md describes the same commands.
set -uo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is not there"; exit 77; }
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
PATH=$(dirname "$tare"):$PATH

"$tare" dataset export "$glyphs/eval.tfrecord.gz" --limit 300 -o images --quiet || fail "export: $?"
cp -r "$glyphs/saved_model" classifier
PYTHONPATH=$TARE_SOURCE_DIR/scripts python3 - <<'PY' || fail "the model was not generated"
from protobuf_wire import field, fields

def edit(data, path):
    """Drops the field at the end of the path of field numbers."""
    out = b""
    for number, value, whole in fields(data):
        if number != path[0]:
            out += whole
        elif len(path) > 1:
            out += field(number, edit(value, path[1:]))
    return out

model = open("classifier/saved_model.pb", "rb").read()
without = edit(model, [2, 1, 8])  # SavedModel.meta_graphs.meta_info_def.function_aliases
assert len(without) < len(model) and b"tpu_func" in model
open("classifier/saved_model.pb", "wb").write(without)
PY
[ "$(find images -name '*.png' | wc -l)" = 300 ] && [ "$(ls images | wc -l)" = 10 ] || fail "no 300 images in 10 folders"
"$tare" inspect classifier >log 2>/dev/null && ! grep -q "function aliases" log || fail "the model has an alias: $(cat log)"

# next COMMAND: runs it and sets $next to the first command that it suggests.
next() {
    commands=$((${commands:-0} + 1))
    echo "\$ $1"
    bash -c "$1" >out 2>log || fail "$1: $(cat log)"
    next=$(sed -n 's/^.*next: \(tare .*\)$/\1/p' log | head -1)
    [ -n "$next" ] || [ "${2:-}" = last ] || fail "$1 suggests nothing: $(cat log)"
    next=${next//DATA/images}
    next=${next//MODEL/classifier}
    next=${next//EVAL.tfrecord/classifier-evaluation.tfrecord}
}
next "tare inspect classifier"
next "$next"
# The one line to edit: the model was trained on 0 … 1.
sed -i 's/^  # \(scale: 0.0039[0-9]*\).*/  \1/' classifier.spec
grep -q '^  scale: 0.0039' classifier.spec || fail "no scale in the draft: $(cat classifier.spec)"
next "$next"
next "$next"
next "$next"
grep -q '^7 of 12 quantizable ops quantized' log || fail "conversion: $(cat log)"
next "$next" last
[ "$commands" = 6 ] || fail "$commands commands"

# The same without files of samples.
"$tare" calibrate classifier --data images --spec classifier.spec --sample 150 -o drawn.calib --quiet 2>log || fail "--sample: $(cat log)"
"$tare" compare classifier --with classifier_tpu --calibration drawn.calib --data images --spec classifier.spec --rest --quiet >rest 2>log || fail "--rest: $(cat log)"
grep -q "on images, 150 records" rest && ! grep -q warning log || fail "the rest: $(cat rest log)"
grep -q '^classifier_tpu: may lose more than 1 percentage point of top-1' out || fail "comparison: $(cat out)"
awk '$1 == "float" { f = $2 } $1 == "classifier_tpu" { q = $2; mb = $5 } END { exit !(f > 90 && q > 90 && mb < 0.06) }' out || fail "accuracy and size: $(cat out)"
[ -s log ] && grep -q warning log && fail "warnings: $(cat log)"

# With the wrong scale, the comparison says that the float model only guesses.
"$tare" dataset make images --spec <(sed 's/^  scale/  # scale/' classifier.spec) -o wrong.tfrecord --quiet || fail "make: $?"
"$tare" compare classifier --data wrong.tfrecord --methods float --quiet >out 2>log || fail "compare: $(cat log)"
grep -q "^No model is recommended: the top-1 of float is " out && grep -q "the most frequent label for all" out || fail "nothing is said of the scale: $(cat out)"

# Splitting data that is not a TFRecord: nothing but the parts is left, also after a failure.
ls -A >before
"$tare" dataset split images --spec classifier.spec --parts 3 -o part --quiet >out || fail "split: $?"
[ "$(cat out)" = "$(printf 'part-0000%d-of-00003.tfrecord 100\n' 0 1 2)" ] || fail "split: $(cat out)"
rm -f part-*
expect 1 "images: record 0 at 0: " "$tare" dataset split images --parts 3 -o part --quiet
# Killed while it waits for data, with its temporary file open.
mkdir killed && mkfifo never
"$tare" dataset split - --spec classifier.spec --parts 3 -o killed/part --quiet <never >/dev/null 2>&1 &
pid=$!
exec {writer}>never
for _ in $(seq 600); do
    grep -q "killed/part.samples-.*(deleted)" <<<"$(ls -l /proc/$pid/fd 2>/dev/null)" && opened=yes && break
    sleep 0.1
done
kill -KILL $pid
wait $pid 2>/dev/null
exec {writer}>&-
[ "${opened:-no}" = yes ] || [ ! -e /proc/self/fd ] || fail "split: no deleted temporary file is open"
[ ! -e /proc/self/fd ] || [ -z "$(ls -A killed)" ] || fail "a killed split leaves $(ls -A killed)"
rm -rf killed never
expect 1 "cannot create 'nowhere/part" "$tare" dataset split images --spec classifier.spec --parts 3 -o nowhere/part --quiet
ls -A | grep -vxFf before | grep -vxE 'stderr|stdout|before|after' >after
[ ! -s after ] || fail "left behind: $(cat after)"

# Without records, every part of dataset is an error that names the file.
: >none.tfrecord
for part in "head none.tfrecord" "head none.tfrecord --json" "make none.tfrecord -o none.out" "split none.tfrecord --parts 2 -o none" "info none.tfrecord --quiet"; do
    # shellcheck disable=SC2086
    expect 1 "none.tfrecord: no records (expected at least 1)" "$tare" dataset $part
done
finish
