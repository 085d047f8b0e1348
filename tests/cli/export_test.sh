#!/usr/bin/env bash
# tare export: the module of a float model and of quantized ones gives the outputs of the model, in both containers and in every
# version of VHLO; what StableHLO cannot express is an error that names it.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model

python3 - <<'PY' || skip "no NumPy"
import numpy
numpy.save("image.npy", numpy.random.default_rng(5).random((3, 28, 28, 1), numpy.float32))
PY
# same SOURCE ULPS: the files of SOURCE give the outputs of the model SOURCE, up to a relative error of ULPS units of float32.
same() {
    local source=$1 most=$2 file
    "$tare" run "$source" --input image=image.npy --output-dir "$work/expected" --quiet >/dev/null || fail "run $source: $?"
    for file in module.mlirbc module.jax newest.mlirbc; do
        "$tare" run "$file" --input arg0=image.npy --output-dir "$work/found" --quiet >/dev/null || fail "run $file of $source: $?"
        python3 - "$most" <<'PY' || fail "$file of $source: other outputs"
import sys, numpy
expected, found = numpy.load("expected/probabilities.npy"), numpy.load("found/output_0.npy")
assert expected.shape == found.shape == (3, 10), (expected.shape, found.shape)
error = abs(expected - found).max() / abs(expected).max() / 2.0**-23
assert error <= float(sys.argv[1]), error
PY
    done
}
export_all() { # export_all SOURCE
    "$tare" export "$1" module.mlirbc --batch 3 --quiet || fail "export $1: $?"
    "$tare" export "$1" module.jax --batch 3 --container jax --quiet || fail "export --container jax $1: $?"
    "$tare" export "$1" newest.mlirbc --batch 3 --vhlo-version 1.20.0 --quiet || fail "export --vhlo-version $1: $?"
}

"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o c.calib --quiet || fail "calibrate: $?"
export_all "$model"
same "$model" 32 # products and means are added in another order
"$tare" inspect module.mlirbc >out && grep -qF 'VHLO        1.5.0 (StableHLO_v1.5.0' out && grep -qF '(tensor<3x28x28x1xf32>) -> tensor<3x10xf32>' out || fail "inspect: $(cat out)"
"$tare" inspect newest.mlirbc | grep -F 'VHLO        1.20.0' >/dev/null || fail "inspect: $("$tare" inspect newest.mlirbc)"
# Quantized models: products of integers, the same bits.
for method in static dynamic weight_only; do
    rm -rf quantized
    "$tare" quantize "$model" quantized --method $method --calibration c.calib --quiet 2>/dev/null || fail "quantize --method $method: $?"
    export_all quantized
    same quantized 0
done
rm -rf quantized
"$tare" quantize "$model" quantized --calibration c.calib --quiet 2>/dev/null && "$tare" export quantized module.mlirbc --quiet
"$tare" inspect module.mlirbc --functions >out || fail "inspect --functions: $?"
[ "$(grep -c 'stablehlo.convolution.*xi8>, tensor.*xi8>) -> tensor.*xi32>' out)" -ge 6 ] || fail "no products of 8-bit integers: $(grep convolution out)"

# A SavedModel around the module: the signature's names, one XlaCallModule, the same bits.
"$tare" export quantized kept --container saved_model --batch 3 --quiet || fail "export --container saved_model: $?"
"$tare" validate kept >/dev/null || fail "validate: $("$tare" validate kept 2>&1)"
"$tare" inspect kept --ops | grep -w XlaCallModule >/dev/null || "$tare" inspect kept | grep -F 'StableHLO module at main/XlaCallModule' >/dev/null || fail "no module: $("$tare" inspect kept)"
"$tare" run quantized --input image=image.npy --output-dir expected --quiet >/dev/null && "$tare" run kept --input image=image.npy --output-dir found --quiet >/dev/null || fail "run: $?"
cmp -s expected/probabilities.npy found/probabilities.npy || fail "the SavedModel of the module has other outputs"
expect 1 "" "$tare" export quantized kept --container saved_model --batch 3 --quiet

# Activations of 16 bits: bytes of integers, by shifts.
rm -rf wide
"$tare" quantize "$model" wide --activation-bits 16 --calibration c.calib --quiet 2>/dev/null || fail "quantize --activation-bits 16: $?"
export_all wide
same wide 0

# A converted model, batched: the whole signature without its placement, or its computation on the TPU.
"$tare" convert quantized converted --tpu_functions auto --quiet --converter_options_string 'bfloat16_optimization: DISABLED
    batch_options { num_batch_threads: 1 max_batch_size: 8 batch_timeout_micros: 10 allowed_batch_sizes: 8 }' >/dev/null || fail "convert: $?"
export_all converted
same converted 0
"$tare" export converted part.mlirbc --batch 3 --tpu-call 1 --quiet || fail "export --tpu-call: $?"
"$tare" inspect part.mlirbc >out && grep -qF '(tensor<2352xf32>) -> tensor<30xf32>' out || fail "inspect of a TPU computation: $(cat out)"
expect 1 "signature serving_default has no TPU call 2" "$tare" export converted none.mlirbc --tpu-call 2
expect 1 "signature serving_default has no TPU call 1" "$tare" export quantized none.mlirbc --tpu-call 1

# Exporting what was imported, and reading it again, changes nothing.
"$tare" export "$TARE_SOURCE_DIR/tests/golden/stablehlo/mlp.mlirbc" again.mlirbc --quiet || fail "export of a module: $?"

# Ops of XLA, loops and branches: JAX's values before and after (tests/golden/jax/modules.py).
jax=$source_dir/tests/golden/jax
python3 -c 'import numpy; numpy.save("x.npy", numpy.array([1, 2, 3], numpy.float32))'
for name in ops_of_xla narrow_constants loop_over_rows rolled_in_a_loop; do # the last two: sizes are computed from one of the argument
    "$tare" export "$jax/$name.jaxexport" again.mlirbc --batch 3 --quiet 2>err || fail "export $name: $(cat err)"
    for file in "$jax/$name.jaxexport" again.mlirbc; do
        "$tare" run "$file" --input arg0=x.npy --output-dir found --quiet >/dev/null 2>err || fail "run $file: $(cat err)"
        python3 - "$jax/$name.values" <<'PY' || fail "$file: other values than JAX's"
import sys, numpy
expected, found = numpy.loadtxt(sys.argv[1]), numpy.load("found/output_0.npy")
assert expected.shape == found.shape, (expected.shape, found.shape)
wrong = ~numpy.isclose(found, expected, rtol=2e-5, atol=2e-5)
assert not wrong.any(), (numpy.flatnonzero(wrong), found[wrong], expected[wrong])
PY
    done
done
for form in scanned convolutions; do
    "$tare" export "$jax/layers_$form.jaxexport" again.mlirbc --quiet 2>err || fail "export layers_$form: $(cat err)"
done

# Functions that are expressions in StableHLO have the values of their ops.
python3 -c 'import numpy; numpy.save("points.npy", numpy.array([0.1, 0.3, 0.5, 0.7, 0.99, 1.2, 1.5, 2.3, 7.5, 9.1, 1e25, -0.2, -0.6, -0.99, -3.3, -8.7], numpy.float32))'
for op in Acos Acosh Asin Asinh Atan Atanh Cosh Digamma Erf Erfc Erfinv IsInf Lgamma Sinh Tan; do
    rm -rf op
    "$tare" ops $op --save-model op --shape 'float[16]' >/dev/null 2>err || fail "ops $op: $(cat err)"
    "$tare" export op op.mlirbc --quiet 2>err || fail "export $op: $(cat err)"
    "$tare" run op --input x=points.npy --output-dir expected --quiet >/dev/null && "$tare" run op.mlirbc --input arg0=points.npy --output-dir found --quiet >/dev/null || fail "run $op: $?"
    python3 - <<'PY' || fail "$op: other values"
import numpy
expected, found = numpy.load("expected/y.npy").astype(float), numpy.load("found/output_0.npy").astype(float)
wrong = ~numpy.isclose(found, expected, rtol=4e-6, atol=3e-6, equal_nan=True)
assert not wrong.any(), (numpy.flatnonzero(wrong), found[wrong], expected[wrong])
PY
done

rm -rf op
"$tare" ops MatrixDiag --save-model op --shape 'float[16]' >/dev/null && "$tare" export op op.mlirbc --quiet && "$tare" run op.mlirbc --input arg0=points.npy --output-dir found --quiet >/dev/null || fail "MatrixDiag: $?"
python3 -c 'import numpy; assert (numpy.load("found/output_0.npy") == numpy.diag(numpy.load("points.npy"))).all()' || fail "MatrixDiag: other values"

# Weights in a file of safetensors are arguments, sorted by name, also of layers in loops.
apart() { # apart SOURCE INPUT OUTPUT: the module with the values of the file has the outputs of the one with its constants
    "$tare" export "$1" whole.mlirbc --batch 3 --quiet && "$tare" export "$1" apart.mlirbc --batch 3 --weights apart.safetensors --quiet 2>err || fail "export --weights $1: $(cat err)"
    [ "$(stat -c %s apart.mlirbc)" -lt "$(stat -c %s whole.mlirbc)" ] || fail "$1: the weights are still in the module"
    python3 - "$2" >arguments <<'PY' || fail "$1: the file of safetensors"
import json, sys, numpy
data = open("apart.safetensors", "rb").read()
size = int.from_bytes(data[:8], "little")
assert size % 8 == 0
header, ends = json.loads(data[8:8 + size]), 0
assert header and list(header) == sorted(header)
for index, (name, one) in enumerate(sorted(header.items())):
    first, last = one["data_offsets"]
    assert first == ends
    ends = last
    numpy.save(f"weight{index}.npy", numpy.frombuffer(data[8 + size + first:8 + size + last], {"F32": "<f4", "I8": "i1", "U8": "u1"}[one["dtype"]]).reshape(one["shape"]))
    print(f"--input arg{index + 1}=weight{index}.npy")
assert 8 + size + ends == len(data)
PY
    # shellcheck disable=SC2046 # options are words
    "$tare" run apart.mlirbc --input "arg0=$2" $(cat arguments) --output-dir found --quiet >/dev/null 2>err || fail "run $1 with weights: $(cat err)"
    "$tare" run whole.mlirbc --input "arg0=$2" --output-dir expected --quiet >/dev/null 2>err || fail "run $1: $(cat err)"
    cmp -s expected/output_0.npy found/output_0.npy || fail "$1: other outputs with weights as arguments"
}
apart "$model" image.npy
apart quantized image.npy
eight=$(stat -c %s apart.safetensors)
"$tare" quantize "$model" four --method weight_only --bits 4 --quiet || fail "quantize --bits 4: $?"
apart four image.npy
[ "$(($(stat -c %s apart.safetensors) * 10))" -lt "$((eight * 7))" ] || fail "weights of 4 bits: $(stat -c %s apart.safetensors) bytes, of 8: $eight"
python3 -c 'import numpy; numpy.save("row.npy", numpy.linspace(-1, 1, 16, dtype=numpy.float32)[None])'
apart "$jax/layers_nested.jaxexport" row.npy
expect 2 "--weights and --container saved_model are mutually exclusive" "$tare" export "$model" no --container saved_model --weights no.safetensors

# A conversion that ends in a module.
"$tare" convert "$model" placed --method int8_dynamic --quiet >/dev/null 2>&1 && "$tare" export placed whole.mlirbc --batch 3 --quiet || fail "convert, export: $?"
"$tare" convert "$model" direct.mlirbc --method int8_dynamic --stablehlo mlirbc --batch 3 --quiet >/dev/null 2>err || fail "convert --stablehlo: $(cat err)"
cmp direct.mlirbc whole.mlirbc || fail "convert --stablehlo writes another module than convert and export"
"$tare" convert "$model" direct --stablehlo saved_model --quiet >/dev/null 2>err && "$tare" validate direct >out || fail "convert --stablehlo saved_model: $(cat err out)"
expect 1 "is the input 'direct.mlirbc'" "$tare" convert direct.mlirbc direct.mlirbc --stablehlo mlirbc --quiet

# Arguments and results with numbers for names keep their order, where a SavedModel has input_10 before input_2.
shapes=() names=
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
    shapes+=(--shape 'float[2]')
    names+=" $i"
done
"$tare" ops IdentityN "${shapes[@]}" --save-model numbered >/dev/null && "$tare" export numbered numbered.mlirbc --quiet || fail "export numbered: $?"
"$tare" inspect numbered.mlirbc --functions >out || fail "inspect numbered.mlirbc: $?"
for key in input output; do
    [ "$(grep -oE "\"${key}_[0-9]+\"" out | tr -dc '0-9\n' | sed 's/^/ /' | tr -d '\n')" = "$names" ] || fail "order of ${key}s: $(cat out)"
done

# The number of the argument's dtype in a file of jax.export: complex ones are behind the real ones.
for dtype in float:10 complex64:12 complex128:13; do
    rm -rf negated
    "$tare" ops Neg --shape "${dtype%:*}[2,3]" --save-model negated >/dev/null || fail "ops Neg: $?"
    "$tare" export negated negated.jax --container jax --quiet || fail "export ${dtype%:*}: $?"
    python3 - "${dtype#*:}" <<'PY' || fail "the number of ${dtype%:*}"
import struct, sys
data = open("negated.jax", "rb").read()
def follow(at):
    return at + struct.unpack_from("<I", data, at)[0]
def field(table, slot):
    return table + struct.unpack_from("<H", data, table - struct.unpack_from("<i", data, table)[0] + 4 + 2 * slot)[0]
avals = follow(field(follow(0), 3))
number = data[field(follow(avals + 4), 2)]
assert number == int(sys.argv[1]), number
PY
done

# Softmax of a short type is computed in float and rounded once, here and there.
python3 - <<'PY'
import random, struct
random.seed(2)
header = str({"descr": "<V2", "fortran_order": False, "shape": (16, 32)}).ljust(117) + "\n"
codes = [struct.unpack("<I", struct.pack("<f", random.random() * 6))[0] >> 16 for _ in range(512)]
open("scores.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + struct.pack("<512H", *codes))
PY
for op in Softmax LogSoftmax; do
    rm -rf scores ./*.out
    "$tare" ops "$op" --shape 'bfloat16[16,32]' --save-model scores >/dev/null || fail "ops $op: $?"
    "$tare" export scores scores.mlirbc --quiet || fail "export $op: $?"
    "$tare" run scores --input logits=scores.npy --output-dir op.out --quiet || fail "run $op: $?"
    "$tare" run scores.mlirbc --input arg0=scores.npy --output-dir module.out --quiet || fail "run the module of $op: $?"
    cmp op.out/*.npy module.out/*.npy || fail "$op in bfloat16 has other outputs as a module"
done

# Errors name what StableHLO does not have; nothing is written.
expect 2 "expected 1.1.0 to 1.20.0" "$tare" export "$model" none.mlirbc --vhlo-version 0.9.0
expect 1 "--shape picture=1,28,28,1: expected INPUT=SIZE,SIZE with an input of signature serving_default" "$tare" export "$model" none.mlirbc --shape picture=1,28,28,1
expect 1 "the model has no signature 'other'" "$tare" export "$model" none.mlirbc --signature other
expect 2 "--batch" "$tare" export "$model" none.mlirbc --batch 0
absent none.mlirbc
"$tare" export "$model" fixed.mlirbc --shape image=2,28,28,1 --quiet || fail "--shape: $?"
"$tare" inspect fixed.mlirbc | grep -F '(tensor<2x28x28x1xf32>)' >/dev/null || fail "--shape: $("$tare" inspect fixed.mlirbc)"
finish
