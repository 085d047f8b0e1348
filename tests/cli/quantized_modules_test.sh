#!/usr/bin/env bash
# Models from JAX that are quantized already (tests/golden/jax/modules.py): weights in float8 times scales keep their codes in
# float8, weights that the module itself rounds their integers, and products of integers stay as they are.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/jax
cd "$work" || exit 1
"$TARE_TEST_HELPERS/op_model" array x.npy 'float[3] 1 2 3' || fail "array"
"$TARE_TEST_HELPERS/op_model" samples x.tfrecord arg0 'float[3] 1 2 3' 3 || fail "samples"

# The codes are those of the model: no value changes.
"$tare" quantize "$modules/float8_weights.jaxexport" codes --method weight_only --format fp8_e4m3 --min-elements 1 >table 2>&1 ||
    fail "quantize: $(cat table)"
grep -q '^2 of 2 quantizable ops quantized' table || fail "layers: $(cat table)"
for model in codes "$modules/float8_weights.jaxexport"; do
    "$tare" run "$model" --input arg0=x.npy --quiet >out 2>err || fail "run: $(cat err)"
    [ "$(sed 's/^[^]]*\] //' out)" = "$(cat "$modules/float8_weights.values")" ] || fail "values of $model: $(cat out)"
done
# The integers of other formats are made from the values, and are not theirs.
for format in "static --data x.tfrecord" "static --data x.tfrecord --format fp8_e4m3" dynamic int4; do
    # shellcheck disable=SC2086
    "$tare" quantize "$modules/float8_weights.jaxexport" q --method $format --min-elements 1 --overwrite >table 2>&1 ||
        fail "quantize $format: $(cat table)"
    grep -q '^2 of 2 quantizable ops quantized' table || fail "layers by $format: $(cat table)"
    "$tare" validate q >out 2>err || fail "validate $format: $(cat out err)"
done

# Stacks of weights and of scales: layers of a loop, experts of rows. The products reach an export as float8.
for name in float8_stack float8_experts integer_stack grouped_stack; do
    for format in "weight_only --format fp8_e4m3" "static --data x.tfrecord" "static --data x.tfrecord --format fp8_e4m3" dynamic int4; do
        # shellcheck disable=SC2086
        "$tare" quantize "$modules/$name.jaxexport" q --method $format --min-elements 1 --overwrite >table 2>&1 ||
            fail "quantize $name $format: $(cat table)"
        grep -q '^1 of 1 quantizable ops quantized' table || fail "layers of $name by $format: $(cat table)"
        "$tare" export q q.mlirbc --quiet 2>err || fail "export $name $format: $(cat err)"
        for model in q q.mlirbc; do
            "$tare" run "$model" --input arg0=x.npy --quiet >"$model.out" 2>err || fail "run $name $format: $(cat err)"
        done
        cmp q.out q.mlirbc.out || fail "export of $name $format: $(cat q.out q.mlirbc.out)"
        python3 - "$format" "$modules/$name.values" <<'PY' || fail "values of $name by $format: $(cat q.out)"
import sys
found = [float(text) for text in open("q.out").read().split("] ")[1].split()]
expected = [float(text) for text in open(sys.argv[2]).read().split()]
if sys.argv[1].startswith("weight_only --format") and "float8" in sys.argv[2]:
    assert found == expected, expected     # the codes of the model
assert max(abs(a - b) for a, b in zip(found, expected)) < (0.1 if "fp8" in sys.argv[1] or "int4" in sys.argv[1] else 0.02) * max(map(abs, expected)), expected
PY
    done
done

# Folding computes the scales and the rounding: the weight is on the grid.
"$tare" quantize "$modules/trained_weights.jaxexport" rounded --method weight_only --min-elements 1 --json >table 2>err || fail "quantize: $(cat err)"
python3 - <<'PY' || fail "trained weights: $(cat table)"
import json
(layer,) = json.load(open("table"))["layers"]
assert layer["weight_sqnr_db"] > 120, layer
PY

expect 1 "the model has no quantizable op (1 products multiply integers already)" \
    "$tare" quantize "$modules/integer_products.jaxexport" q --method weight_only --min-elements 1 --overwrite --quiet
"$tare" quantize "$modules/integer_products.jaxexport" q --method weight_only --allow-unquantized --overwrite >out 2>err || fail "quantize: $(cat err)"
grep -q "1 products of the model multiply integers already: they stay as they are" err || fail "note: $(cat err)"
finish
