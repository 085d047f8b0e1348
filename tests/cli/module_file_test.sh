#!/usr/bin/env bash
# Files of StableHLO modules as models: run, calibrate, quantize, convert, compare; the checks that test modules contain.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/stablehlo
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1
array() { "$helper" array "$1.npy" "$2" || fail "array $1"; }

# A network with constant weights.
"$helper" samples data.tfrecord arg0 'float[1,8] 1 -2 3 0.5 -0.25 2 0 1' 20 || fail "samples: $?"
mlp=$modules/mlp.mlirbc
"$tare" inspect "$mlp" --signature serving_default >out || fail "inspect: $?"
grep -qxF '  inputs  arg0  float32  [1,8]' out && grep -qxF '  outputs output_0  float32  [1,4]' out &&
    grep -qF '2 quantizable nodes' out || fail "inspect --signature: $(cat out)"
"$tare" run "$mlp" --data data.tfrecord --output-dir float --quiet >/dev/null || fail "run: $?"
"$tare" calibrate "$mlp" --data data.tfrecord -o c.calib --quiet 2>err || fail "calibrate: $(cat err)"
"$tare" compare "$mlp" --data data.tfrecord --calibration c.calib --methods static --quiet >out 2>err || fail "compare: $(cat err)"
"$tare" quantize "$mlp" int8 --calibration c.calib --quiet >out 2>err || fail "quantize: $(cat err)"
"$tare" inspect int8 --ops >out
grep -q ' 2 XlaDotV2$' out || fail "not both products are quantized: $(cat out)"
"$tare" convert "$mlp" tpu --quiet >/dev/null 2>err || fail "convert: $(cat err)"
for model in int8 tpu; do
    "$tare" validate $model >/dev/null || fail "$model is not valid"
    "$tare" run $model --data data.tfrecord --output-dir $model.out --quiet >/dev/null || fail "run $model"
done
"$tare" diff float tpu.out >out || fail "the converted model has other outputs: $(cat out)"
# A module with an unknown custom call: no library could load it, and each command names the model once.
LC_ALL=C sed 's/Sharding/Shardinq/' "$modules/network.mlirbc" >unknown.mlirbc
"$helper" samples network.tfrecord arg0 "float[1,8,8,2] $(yes 1 | head -n 128 | tr '\n' ' ')" 2 || fail "samples: $?"
for command in run 'calibrate -o unknown.calib'; do
    # shellcheck disable=SC2086
    "$tare" $command unknown.mlirbc --data network.tfrecord --quiet >out 2>err && fail "$command of an unknown custom call"
    grep -q "^tare: unknown.mlirbc: 1 op cannot be run: XlaCallModule: used by .*custom call 'Shardinq' is not supported (an export" err ||
        fail "$command of an unknown custom call: $(cat err)"
done
# More than ten arguments and results keep their order, and their names in what is written.
args=()
for i in $(seq 0 11); do array "x$i" "float[1] $i"; args+=(--input "arg$i=x$i.npy"); done
"$tare" unwrap "$modules/many.mlirbc" many --quiet 2>err || fail "unwrap: $(cat err)"
for model in "$modules/many.mlirbc" many; do
    "$tare" run "$model" "${args[@]}" >out || fail "run of many arguments: $?"
    for i in $(seq 0 11); do grep -qxF "output_$i float32[1] $((101 * i))" out || fail "many arguments: $(cat out)"; done
done
cp "$mlp" renamed.bin
"$tare" run renamed.bin --data data.tfrecord --output-dir again --quiet >/dev/null && "$tare" diff float again >/dev/null ||
    fail "the name of the file matters"

# What jax.export writes: the module is found in it, and the platform that the interpreter runs as is the second of two.
array x 'float[2,2] 1 2 3 4'
"$tare" run "$modules/exported.jaxexport" --input arg0=x.npy >out || fail "run of a jax.export file: $?"
grep -qxF 'output_0 float32[2,2] 2 3 4 5' out || fail "run of a jax.export file: $(cat out)"
"$tare" inspect "$modules/exported.jaxexport" >out && grep -qxF '  platforms   tpu, cpu (jax.export)' out || fail "inspect: $(cat out)"
size=$(wc -c <"$modules/exported.jaxexport")
for ((cut = 0; cut < size; cut += 13)); do
    head -c $cut "$modules/exported.jaxexport" >cut.jaxexport
    status=0
    "$tare" inspect cut.jaxexport >/dev/null 2>err || status=$?
    [ $status -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "cut to $cut bytes: exit status $status: $(cat err)"
done

# Checks: a main without results returns `done`; a check that does not hold names the element and both values.
array good 'float[2,3] 1 2 3.4 4 5 inf'
array far 'float[2,3] 1 2 3.7 4 5 inf'
array close 'float[2,3] 1 2 3.0000002 4 5 inf'
array half 'half[2] 1 nan'
array other 'half[2] 1.5 nan'
array empty 'int32[0,2]'
array yes 'bool[] true'
array no 'bool[] false'
check() { "$tare" run "$modules/checks.mlirbc" --input arg0="$1.npy" --input arg1="$2.npy" --input arg2=empty.npy --input arg3="$3.npy"; }
check good half no >out || fail "checks that hold: $?"
grep -qxF 'done bool[] 1' out || fail "checks that hold: $(cat out)"
check close half yes >/dev/null || fail "numbers within two units in the last place"
expect 1 'check.expect_almost_eq at byte 273: element [0, 2] is 3.70000005, expected 3]' check far half no
expect 1 'check.expect_eq at byte 241: element [0] is 1.5, expected 1]' check good other no
expect 1 'check.expect_close at byte 303: element [0, 2] is 3.4000001, expected 3]' check good half yes

expect 1 'a StableHLO module has no tags' "$tare" inspect "$mlp" --tags serve
expect 1 'this is a StableHLO module' "$tare" validate "$mlp"
finish
