#!/usr/bin/env bash
# Functions of several traces (tests/golden/tensorflow/traces): the one that TensorFlow calls with tensors only.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$source_dir/tests/golden/tensorflow/traces
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1
"$helper" array x.npy 'float[2] 1 2' && "$helper" array true.npy 'bool[] true' || fail "array"

while read -r name values; do
    "$tare" run "$model" --function "$name" --input x=x.npy >out 2>err || fail "$name: $(cat err)"
    [ "$(cut -d' ' -f3- out)" = "$values" ] || fail "$name: $(cat out) (expected $values)"
done <"${model}.values"
[ "$(wc -l <"${model}.values")" = 9 ] || fail "traces.values has $(wc -l <"${model}.values") lines"

# The trace of a value that is not the default, and one without a default.
"$tare" run "$model" --function layer --input x=x.npy --input training=true.npy >out 2>err || fail "training: $(cat err)"
[ "$(cut -d' ' -f3- out)" = "101 102" ] || fail "layer with training=True: $(cat out)"
"$tare" run "$model" --function required --input x=x.npy --input training=true.npy >out 2>err || fail "required: $(cat err)"
[ "$(cut -d' ' -f3- out)" = "101 102" ] || fail "required with training=True: $(cat out)"
expect 1 "training=True" "$tare" run "$model" --function required --input x=x.npy

# A function with one argument takes the only value of a record, whatever its key, as a signature does; --input names it.
layer=$glyphs/saved_model
python3 - <<'PY' || fail "rows.npy"
import struct
rows = b"".join(struct.pack("<f", (i * 7 % 256) / 255) for i in range(4 * 784))
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 28, 28, 1), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
open("rows.npy", "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + rows)
PY
"$tare" calibrate "$layer" --function tpu_func --data rows.npy -o rows.calib --quiet 2>err || fail "rows.npy: $(cat err)"
"$tare" run "$layer" --function tpu_func --data rows.npy --output-dir rows --quiet 2>err || fail "rows.npy: $(cat err)"
expect 1 "'image', is missing" "$tare" run "$layer" --function tpu_func --input pixels=rows.npy

# inspect lists the trace that would be called, here the one without y.
"$tare" inspect "$model" --graph maybe >maybe 2>err || fail "inspect: $(cat err)"
grep -qF -- '-> x' maybe && ! grep -qF -- '-> y' maybe || fail "inspect --graph maybe: $(cat maybe)"

# What only Python calls is removed, with a note; a copy has it all.
"$tare" quantize "$model" quantized --method float --allow-unquantized >out 2>err || fail "quantize: $(cat err)"
grep -qF 'that no signature and no alias calls are removed: late, maybe, required, scale, shapes (' err ||
    fail "lost methods: $(cat err)"
"$tare" copy "$model" copied >out 2>err || fail "copy: $(cat err)"
grep -qF 'removed' err && fail "copy: $(cat err)"
finish
