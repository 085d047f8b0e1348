#!/usr/bin/env bash
# tare inspect of StableHLO portable artifacts.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/stablehlo

"$tare" inspect "$modules/regions.mlirbc" --ops >"$work/out" || fail "inspect: $?"
for line in '  VHLO        1.8.0 (StableHLO_v1.8.0, bytecode version 6)' '  main        (tensor<2x3xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x3xf32>)' \
    '  functions   2, with 17 ops of 9 kinds, 4 bytes of constants' '       7 vhlo.return_v1'; do
    grep -qxF -- "$line" "$work/out" || fail "no '$line' in: $(cat "$work/out")"
done
grep -q 'stablehlo\.' "$work/out" && fail "the text is printed without --functions"
"$tare" inspect "$modules/network.mlirbc" --functions >"$work/out" || fail "inspect --functions: $?"
grep -qxF '  layers      0 matrix products, 1 convolutions' "$work/out" && grep -qF '    %0 = stablehlo.convolution %arg0, %arg1 {' "$work/out" ||
    fail "inspect --functions: $(cat "$work/out")"
"$tare" inspect "$modules/network.mlirbc" --json >"$work/out" || fail "inspect --json: $?"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
module = json.load(open(sys.argv[1]))
assert module["vhlo_version"] == "1.14.0" and module["convolutions"] == 1 and module["ops"]["vhlo.custom_call_v1"] == 1, module' "$work/out" ||
        fail "inspect --json: $(cat "$work/out")"
fi
# Gathers from vectors of integers, which shapes are computed with, are no layers: 4 of 60 gather floats.
"$tare" unwrap "$modules/random_pad.mlirbc" "$work/pad" --quiet >/dev/null 2>&1 || fail "unwrap"
"$tare" inspect "$work/pad" --ops >"$work/out" 2>/dev/null || fail "inspect of the unwrapped module"
grep -qx ' *60 GatherV2' "$work/out" && grep -q ', 4 quantizable nodes$' "$work/out" || fail "quantizable gathers: $(cat "$work/out")"
"$tare" inspect "$modules/network.mlirbc" --graph=main >"$work/out" && grep -qF -- '-> XlaCallModule' "$work/out" || fail "inspect --graph"
# Arrays in dictionaries, two of which main does not take.
"$tare" inspect "$source_dir/tests/golden/jax/of_a_tree.jaxexport" >"$work/out" || fail "inspect of_a_tree"
tail -n 4 "$work/out" | diff - <(
    cat <<'END'
  dropped     args[0]['dense']['bias']: the function does not use it
  arg0        args[0]['dense']['kernel']
  dropped     args[1]['mask']: the function does not use it
  arg1        args[1]['x']
END
) || fail "arguments: $(cat "$work/out")"
"$tare" inspect "$source_dir/tests/golden/jax/of_a_tree.jaxexport" --json | tr -d ' \n' |
    grep -qF '"arguments":["args[0]['"'dense'"']['"'kernel'"']","args[1]['"'x'"']"],"dropped_arguments":[' || fail "arguments in JSON"
# Of a function and its gradient, the function.
"$tare" inspect "$source_dir/tests/golden/saved_models/jax_gradient" >"$work/out" 2>/dev/null || fail "inspect jax_gradient"
[ "$(grep -c '^StableHLO module at ' "$work/out")" = 1 ] && grep -q '^  layers      1 matrix products, 0 convolutions$' "$work/out" &&
    grep -qx 'modules of functions that nothing calls, such as gradients: 1' "$work/out" || fail "modules: $(cat "$work/out")"
head -c 200 "$modules/network.mlirbc" >"$work/cut.mlirbc"
expect 1 "$work/cut.mlirbc: unexpected end of a section at byte" "$tare" inspect "$work/cut.mlirbc"
finish
