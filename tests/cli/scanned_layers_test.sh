#!/usr/bin/env bash
# Layers under lax.scan (tests/golden/jax/scanned_layers.py) are quantized as well as the same layers unrolled.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/jax
cd "$work" || exit 1
# 64 rows with channels of different sizes
awk 'BEGIN { srand(3); for (i = 0; i < 64 * 16; i++) printf " %.5f", (rand() - 0.4) * (1 + i % 16) / 4 }' >values
"$TARE_TEST_HELPERS/op_model" array x.npy "float[64,16]$(cat values)" || fail "array"
methods=weight_only,dynamic,static,static:activation_bits=16,weight_only:bits=4,static:two_inputs=true,static+smooth_quant,static+gptq
for form in unrolled scanned pairs rest backwards nested rows guarded normalized; do
    "$tare" compare "$modules/layers_$form.jaxexport" --calibration-data x.npy --data x.npy --methods "$methods" \
        --min-elements 1 --wide --quiet >"$form" 2>err || fail "compare $form: $(cat err)"
    # a model and its SQNR, then a model and its share of integer products
    awk '/^output / { part = 1 } /^cost/ { part = 2 } /SQNR/ { column = / agree / ? 3 : 2 }
         /^fastest/ { next }
         { sub(/ min_max(, [0-9]+ layers? int16)?/, "") }
         part == 1 && $NF ~ /^[0-9]+$/ { print $1, $column }
         part == 2 && /%/ { for (i = 2; i <= NF; i++) if ($i ~ /%/) print $1, $i }' "$form" >"$form.numbers"
    [ "$(wc -l <"$form.numbers")" = 18 ] || fail "numbers: $(cat "$form" "$form.numbers")"
    paste "$form.numbers" unrolled.numbers >both
    awk '$1 != $3 { print "models: " $0 } /%/ && $2 + 0 < $4 - 2 { print "integers: " $0 }
         !/%/ && !/exact/ && !($2 + 0 >= $4 - 0.5) { print "dB: " $0 }' both >worse
    [ ! -s worse ] || fail "$form: $(cat worse both)"
    # These models are so small that the nodes which choose entries, and the tables of static ranges, count, too.
    "$tare" compare "$modules/layers_$form.jaxexport" --calibration-data x.npy --data x.npy --min-elements 1 --json --quiet \
        --methods weight_only,fp8,static,static+smooth_quant,static+bias_correction >"$form.json" 2>err || fail "compare --json $form: $(cat err)"
    python3 - "$form" 2>&1 <<'PY' || fail "$form: other sizes or SQNR than unrolled"
import json, sys
form, unrolled = ({row["method"] + "".join(f"+{one}" for one in [row.get("passes")] if one): row for row in json.load(open(f"{name}.json"))["results"]} for name in (sys.argv[1], "unrolled"))
for name, most in ("weight_only", 1.1), ("static:format=fp8_e4m3", 1.1), ("static", 1.2), ("static+smooth_quant", 1.25), ("static+bias_correction", 1.2):
    one, other = form[name], unrolled[name]
    assert one["size_bytes"] < most * other["size_bytes"], (name, one["size_bytes"], other["size_bytes"])
    assert abs(one["sqnr_db"] - other["sqnr_db"]) < 0.5, (name, one["sqnr_db"], other["sqnr_db"])
PY
done
# smooth_quant divides the first layer's stacks of weights and biases; only what the loop carries is multiplied.
products() {
    "$tare" quantize "$modules/layers_scanned.jaxexport" "$1" --data x.npy --min-elements 1 --quiet "${@:2}" 2>err || fail "quantize: $(cat err)"
    "$tare" inspect "$1" --ops 2>err | awk '$2 == "Mul" { print $1 }'
}
for method in "static 8" "dynamic"; do
    read -r method bits <<<"$method"
    plain=$(products "$method" --method "$method" ${bits:+--activation-bits "$bits"})
    smooth=$(products "$method.smooth" --method "$method" ${bits:+--activation-bits "$bits"} --passes smooth_quant)
    [ "$smooth" = $((plain + 1)) ] || fail "$method: $smooth products with smooth_quant, $plain without"
done
"$tare" compare "$modules/layers_scanned.jaxexport" --calibration-data x.npy --data x.npy --methods static --min-elements 1 \
    --shared-ranges --quiet >shared 2>err || fail "compare: $(cat err)"
awk '/SQNR/ { column = / agree / ? 3 : 2 } /^static / && !/%.*%/ { sub(/ min_max/, ""); print $column; nextfile }' shared scanned >decibels
awk 'NR == 1 { shared = $1 } NR == 2 && $1 > shared + 1 { better = 1 } END { exit !better }' decibels ||
    fail "ranges by iteration: $(cat shared scanned)"

# One iteration of all layers: no copy of the function, and with it of its masks, for each.
for form in masked masked_whole; do
    "$tare" quantize "$modules/layers_$form.jaxexport" "$form" --method weight_only --min-elements 1 --quiet 2>err || fail "quantize: $(cat err)"
    "$tare" inspect "$form" --ops >"$form.ops" 2>err || fail "inspect: $(cat err)"
    awk '$2 == "PartitionedCall" { calls = $1 } END { exit calls > 1 }' "$form.ops" || fail "calls: $(cat "$form.ops")"
done
one=$(wc -c <masked/saved_model.pb) whole=$(wc -c <masked_whole/saved_model.pb)
[ $((whole * 100)) -lt $((one * 115)) ] || fail "bytes: $whole (unrolled: $one)"
# a mask for eight heads is one mask
"$tare" export masked masked.mlirbc --quiet 2>err || fail "export: $(cat err)"
"$tare" inspect masked.mlirbc --functions >text 2>err || fail "text: $(cat err)"
grep -q 'constant.*tensor<1x1x16x16xi1>' text && ! grep -q 'constant.*tensor<1x8x16x16xi1>' text || fail "masks: $(grep xi1 text)"

# Convolutions, whose filters are chosen from a stack.
awk 'BEGIN { srand(4); for (i = 0; i < 16 * 288; i++) printf " %.4f", rand() - 0.3 }' >values
"$TARE_TEST_HELPERS/op_model" array images.npy "float[16,6,6,8]$(cat values)" || fail "array"
"$tare" compare "$modules/layers_convolutions.jaxexport" --calibration-data images.npy --data images.npy --min-elements 1 \
    --methods weight_only,dynamic,static,static+gptq --wide --quiet >images 2>err || fail "convolutions: $(cat err)"
awk '/^output / { part = 1 } /^cost/ { part = 2 } /SQNR/ { column = / agree / ? 3 : 2 }
     part == 1 && $NF ~ /^[0-9]+$/ && !/^float/ { sub(/ min_max/, ""); sub(/ \342\206\220/, ""); if ($column < 30) print; n++ }
     END { if (n != 4) print n " models" }' images >worse
[ ! -s worse ] || fail "convolutions: $(cat worse images)"

# One range file for both: the statistics of each iteration have a name of their own.
"$tare" calibrate "$modules/layers_scanned.jaxexport" --data x.npy --output x.calib --quiet 2>err || fail "calibrate: $(cat err)"
"$tare" show x.calib >shown 2>err || fail "show: $(cat err)"
grep -q '\[3\]' shown || fail "iterations: $(cat shown)"
"$tare" quantize "$modules/layers_scanned.jaxexport" q --calibration x.calib --min-elements 1 --quiet 2>err || fail "quantize: $(cat err)"
"$tare" validate q >out 2>err || fail "validate: $(cat out err)"
finish
