#!/usr/bin/env bash
# Modules that JAX wrote have the values that JAX computes (tests/golden/jax), before and after they are converted.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/jax
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1
"$helper" array x.npy 'float[3] 1 2 3' || fail "array"
for values in "$modules"/*.values; do
    case $values in */lapack_* | */ops_of_xla.values | */decompositions.values) continue ;; esac
    name=$(basename "$values" .values)
    "$tare" run "$modules/$name.jaxexport" --input arg0=x.npy --quiet >out 2>err || fail "run $name: $(cat err)"
    [ "$(sed 's/^[^]]*\] //' out)" = "$(cat "$values")" ] || fail "$name: $(cat out), expected $(cat "$values")"
done
# Inputs of a fixed first axis: each row of an array that has the input's shape is a record.
"$helper" array rows.npy 'float[2,3] 1 2 3 1 2 3' || fail "array"
"$tare" run "$modules/narrow_constants.jaxexport" --data rows.npy --output-dir rows --quiet 2>err || fail "rows: $(cat err)"
[ "$(tail -c 88 rows/*.npy | head -c 44 | od -An -v -t f4)" = "$(tail -c 44 rows/*.npy | od -An -v -t f4)" ] || fail "rows differ"
"$helper" array flat.npy 'float[6] 1 2 3 1 2 3' || fail "array"
# An array with several times the rows is cut, also one of --input; its outputs are joined again.
"$tare" run "$modules/narrow_constants.jaxexport" --data flat.npy --output-dir flat --quiet 2>err || fail "flat: $(cat err)"
"$tare" run "$modules/narrow_constants.jaxexport" --input arg0=flat.npy --output-dir whole --quiet 2>err || fail "whole: $(cat err)"
[ "$(tail -c 88 rows/*.npy | od -An -v -t f4)" = "$(tail -c 88 flat/*.npy | od -An -v -t f4)" ] && cmp flat/*.npy whole/*.npy ||
    fail "parts of an array differ from rows"
"$helper" array five.npy 'float[5] 1 2 3 1 2' || fail "array"
expect 1 "the model takes 3 rows at a time, and the last time has 2 (expected a multiple of 3)" \
    "$tare" run "$modules/narrow_constants.jaxexport" --data five.npy --quiet
expect 1 "expected shape [3] or a multiple of 3 rows, got [5]" \
    "$tare" run "$modules/narrow_constants.jaxexport" --input arg0=five.npy --quiet
expect 1 "a row of an array is a record: give the array the shape [N,3]" \
    "$tare" run "$modules/narrow_constants.jaxexport" --data - --quiet <flat.npy
# The precision that a product asks for is kept, with its operands; the other product is bfloat16.
"$tare" convert "$modules/asked_precision.jaxexport" precise --quiet --report precise.json >out 2>err || fail "convert asked_precision: $(cat err)"
python3 - precise.json <<'PYTHON' || fail "products in float32: $(cat precise.json)"
import json, sys
configs = open("precise/saved_model.pb", "rb").read().split(b"precision_config")[1:]
assert sum(b"\n\x02\x02\x02" in config[:12] for config in configs) == 1, configs
(kept,) = [node["reason"] for node in json.load(open(sys.argv[1]))["float32"] if node["op"] == "XlaDotV2"]
assert kept.startswith("is multiplied with a precision that the model asks for"), kept
PYTHON
# What computes in bfloat16 already is placed as it is.
"$tare" convert "$modules/in_bfloat16.jaxexport" placed >out 2>err && grep -q "is bfloat16 already: all else stays float32" err ||
    fail "convert in_bfloat16: $(cat err)"
"$tare" run placed --input arg0=x.npy --quiet >out 2>err || fail "run placed: $(cat err)"
[ "$(sed 's/^[^]]*\] //' out)" = "$(cat "$modules/in_bfloat16.values")" ] || fail "in_bfloat16: $(cat out)"

# What is built has the branches for a TPU, from calibration on: of those for other platforms nothing is left.
float32='--converter_options_string=bfloat16_optimization: DISABLED'
"$helper" samples x.tfrecord arg0 'float[3] 1 2 3' 3 || fail "samples"
# a product is counted once, not once for each platform
"$tare" inspect "$modules/platform_branches.jaxexport" >branches 2>err || fail "inspect: $(cat err)"
grep -q '1 matrix products' branches || fail "products: $(cat branches)"
"$tare" calibrate "$modules/platform_branches.jaxexport" --data x.tfrecord -o x.calib --quiet 2>err || fail "calibrate: $(cat err)"
"$tare" convert "$modules/platform_branches.jaxexport" tpu --quiet "$float32" >out 2>err || fail "convert: $(cat err)"
"$tare" convert "$modules/platform_branches.jaxexport" tpu_int8 --quiet --calibration x.calib --allow-unquantized >out 2>err ||
    fail "convert --calibration: $(cat err)"
"$tare" export "$modules/platform_branches.jaxexport" exported.mlirbc --quiet >out 2>err || fail "export: $(cat err)"
for built in tpu tpu_int8; do
    "$tare" inspect $built --ops >ops || fail "inspect: $?"
    ! grep -q Case ops || fail "$built: branches by the platform are left: $(cat ops)"
done
for built in tpu exported.mlirbc; do # ((x @ w) * 2 @ reversed w) * 2 - 1
    "$tare" run $built --input arg0=x.npy --quiet >out 2>err || fail "run $built: $(cat err)"
    [ "$(sed 's/^[^]]*\] //' out)" = "935 1295 1655" ] || fail "$built: $(cat out)"
done
# A kernel that nothing here knows: the branches for the CPU stand in for it, with a warning.
instead="has the branches for CPU, because those for TPU cannot be expanded: .*custom call 'kernel_of_somebody'"
"$tare" convert "$modules/platform_kernel.jaxexport" instead --quiet >out 2>err && grep -q "$instead" err || fail "convert: $(cat err)"
"$tare" quantize "$modules/platform_kernel.jaxexport" instead_int8 --quiet --method weight_only --allow-unquantized >out 2>err &&
    grep -q "$instead" err || fail "quantize: $(cat err)"

# The LAPACK and BLAS calls of JAX before 0.4.36, in four precisions: thousandths, which may round to the other side.
for letter in s d c z; do
    values=$modules/lapack_$letter.values
    "$tare" run "$modules/lapack_$letter.jaxexport" --input arg0=x.npy --output-dir out_$letter --quiet 2>err ||
        fail "run lapack_$letter: $(cat err)"
    tail -c $((4 * 1684)) out_$letter/*.npy | od -An -v -w4 -t d4 | paste - <(tr ' ' '\n' <"$values") >both
    awk '{ d = $1 - $2 } NF != 2 || d > 1 || d < -1 { print NR ": " $0 }' both >differ
    [ "$(wc -l <both)" = 1684 ] && [ ! -s differ ] || fail "lapack_$letter: $(head -3 differ) ($(wc -l <differ) of $(wc -l <both))"
done
# TensorFlow has no kernel for these calls on CPUs, and TPUs have none of LAPACK: such a model is not written.
! "$tare" convert "$modules/lapack_s.jaxexport" refused --quiet >out 2>err &&
    grep -q "op calling lapack_s.* stays on the CPU (export the model with platforms=(\"tpu\",))" err ||
    fail "calls of LAPACK: $(cat err)"
[ ! -e refused ] || fail "the refused model was written"
# A quantized one is written, because tare runs it, with a warning.
"$tare" quantize "$modules/lapack_s.jaxexport" warned --quiet --method weight_only --allow-unquantized >out 2>err || fail "quantize: $(cat err)"
grep -q "op calling lapack_s.* has no kernel for CPUs, and node .* stays on the CPU (export the model with platforms=(\"tpu\",));" err ||
    fail "quantize of LAPACK's calls: $(cat err)"

# Decompositions: calls of LAPACK on a CPU, other calls on a TPU, which keep float32. Where they stay on the CPU they are refused.
same() { # same FOLDER LARGEST: all 64 values are within this part of those of JAX, or of 1
    tail -c 256 "$1"/*.npy | od -An -v -w4 -t f4 | paste - <(tr ' ' '\n' <"$modules/decompositions.values") >both
    awk -v most="$2" '{ d = $1 - $2; m = $2 > 1 ? $2 : 1 } NF != 2 || !(d <= most * m && -d <= most * m) { print NR ": " $0 }' both >differ
    [ "$(wc -l <both)" = 64 ] && [ ! -s differ ] || fail "$1: $(head -3 differ) ($(wc -l <differ) of $(wc -l <both))"
}
"$tare" run "$modules/decompositions.jaxexport" --input arg0=x.npy --output-dir on_cpu --quiet 2>err || fail "run decompositions: $(cat err)"
same on_cpu 1e-5
for form in "float32 $float32" "bfloat16"; do
    set -- ${form%% *} "${form#* }"
    [ "$1" = bfloat16 ] && set -- bfloat16
    "$tare" convert "$modules/decompositions.jaxexport" "on_$1" --quiet "${@:2}" >out 2>err || fail "convert decompositions $1: $(cat err)"
    ! grep -q lapack_ "on_$1/saved_model.pb" || fail "$1: calls of LAPACK are left"
    for target in Eigh Qr LuDecomposition ProductOfElementaryHouseholderReflectors; do
        grep -q $target "on_$1/saved_model.pb" || fail "$1: $target is missing"
    done
    "$tare" run "on_$1" --input arg0=x.npy --output-dir "of_$1" --quiet 2>err || fail "run on_$1: $(cat err)"
done
same of_float32 1e-5
same of_bfloat16 2e-2
"$tare" export "$modules/decompositions.jaxexport" decompositions.mlirbc --quiet >out 2>err || fail "export decompositions: $(cat err)"
"$tare" run decompositions.mlirbc --input arg0=x.npy --output-dir of_module --quiet 2>err || fail "run the module: $(cat err)"
same of_module 1e-5
expect 1 "a call of lapack_s" "$tare" export "$modules/lapack_s.jaxexport" refused.mlirbc --quiet
"$tare" quantize "$modules/decompositions.jaxexport" left --quiet --method weight_only --min-elements 1 --allow-unquantized >out 2>err || fail "quantize: $(cat err)"
grep -q "op calling .* has no kernel for CPUs, and node .* stays on the CPU (place the function that has it on the TPU);" err ||
    fail "quantize decompositions: $(cat err)"

# TensorFlow does not load a model with calls whose results have open shapes.
for command in convert "quantize --method weight_only --allow-unquantized"; do
    # shellcheck disable=SC2086
    set -- $command
    ! "$tare" "$1" "$modules/calls_of_any_batch.jaxexport" open --quiet "${@:2}" >out 2>err && grep -q "export the model for a fixed batch size" err ||
        fail "$command of open shapes: $(cat err)"
    [ ! -e open ] || fail "$command: the model was written"
done

# XLA compiles Slice with a computed start, not StridedSlice.
"$tare" convert "$modules/loop_over_rows.jaxexport" loop --quiet >out 2>err || fail "convert: $(cat err)"
"$tare" inspect loop --ops >ops || fail "inspect: $?"
grep -qw Slice ops && ! grep -qw StridedSlice ops || fail "the rows of a loop: $(cat ops)"
# Layers have the names of JAX's locations, without loops and transformations; a recipe finds them.
"$tare" quantize "$modules/named_layers.jaxexport" named --method weight_only --min-elements 1 --rule 'name=.*head.* -> float' --json >named.json 2>err ||
    fail "quantize: $(cat err)"
grep -q '"decoder/dot_general"' named.json && grep -q '"head/dot_general"' named.json || fail "names of layers: $(grep '"node"' named.json)"
finish
