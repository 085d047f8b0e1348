#!/usr/bin/env bash
# quantize and convert --for CHIP: the compiler decides which layers are quantized; without it the estimate does. The compiler of this
# test says of the models, in the order float, all, estimated, by parts, what the test wants.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model
export TMPDIR=$work/tmp TARE_TPU_COMPILER=$work/compiler
mkdir tmp
"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" --limit 50 -o calib --quiet >/dev/null 2>&1 || fail "calibrate: $?"

# compiler ANSWER…: JSON objects, one for each program, in the order in which they come; the last for all later ones.
compiler() {
    rm -f answers/* calls; mkdir -p answers; : >programs
    local n=0 answer
    for answer; do n=$((n + 1)); echo "$answer" >answers/$n; done
    cat >compiler <<SH
#!/bin/sh
cd "$work"
echo "\$1" >>calls
sum=\$(md5sum <"\$2")
grep -qxF "\$sum" programs || echo "\$sum" >>programs
n=\$(grep -nxF "\$sum" programs | cut -d: -f1)
[ -e answers/\$n ] || n=$n
cat answers/\$n
SH
    chmod +x compiler
}
compiled_once() { [ "$(wc -l <calls)" = "$(wc -l <programs)" ] || fail "$1: $(wc -l <calls) calls for $(wc -l <programs) programs"; }
says() { # says CYCLES [NODE CYCLES]…
    local cycles=$1 ops=""
    shift
    while [ $# -gt 0 ]; do
        ops="$ops${ops:+, }{\"node\": \"$1\", \"op\": \"fusion\", \"cycles\": $2, \"products\": []}"
        shift 2
    done
    echo "{\"ok\": true, \"compiler\": \"fake 1\", \"cycles\": $cycles, \"products\": {}, \"memory\": {}, \"ops\": [$ops]}"
}
chosen() { "$tare" quantize "$model" out --calibration calib --for v6e --batch 32 --overwrite --write-recipe recipe "$@" >printed 2>&1 || fail "quantize $*: $? $(cat printed)"; }

# All layers: a rule for none.
compiler "$(says 100)" "$(says 70)" "$(says 80)"
chosen
grep -qF 'v6e, batches of 32, by fake 1: 7 of 7 layers quantized, 70 cycles (all 70, none 100)' printed && grep -q '^7 of 12 ' printed || fail "all: $(cat printed)"
grep -qF -- '-> float' recipe && fail "all: $(cat recipe)"
[ "$(sort -u calls)" = v6e ] || fail "the compiler got the chips $(sort -u calls)"

# None: the model is written in float, without --allow-unquantized, and each layer has the reason.
compiler "$(says 100)" "$(says 120)" "$(says 110)"
chosen
grep -qF '0 of 7 layers quantized, 100 cycles (all 120, none 100)' printed && grep -q '^0 of 12 ' printed || fail "none: $(cat printed)"
[ "$(grep -c 'it does not become faster on a Cloud TPU v6e in batches of 32' printed)" = 2 ] || fail "reasons: $(cat printed)"
[ -e out/saved_model.pb ] && [ "$(grep -c -- '-> float' recipe)" = 7 ] || fail "none: $(cat recipe)"
"$tare" quantize "$model" again --calibration calib --recipe recipe --allow-unquantized >printed 2>&1 && grep -q '^0 of 12 ' printed || fail "the recipe: $(cat printed)"

# The layers that are faster by the compiler's ops: a layer has those that are named after it or after what was made for it.
compiler "$(says 100 stem_conv 50 block2_pointwise 10 logits 20)" "$(says 110 stem_conv/XlaConvV2 55 block2_pointwise/XlaConvV2 4 block2_pointwise/quantize/cast 3 logits 19)" "$(says 90)"
chosen
grep -qF '2 of 7 layers quantized, 90 cycles (all 110, none 100)' printed || fail "by parts: $(cat printed)"
[ "$(wc -l <calls)" -ge 3 ] || fail "by parts: $(wc -l <calls) calls"
compiled_once "by parts"
python3 - <<'PY' || fail "by parts: $(cat recipe)"
rules = [line.split('"')[1] for line in open("recipe") if "-> float" in line]
assert "stem_conv" in rules and "block2_pointwise" not in rules and "logits" not in rules, rules
PY

# What the compiler rejects is not chosen.
compiler "$(says 100)" '{"ok": false, "compiler": "fake 1", "error": "no"}' "$(says 120)"
chosen
grep -qF '0 of 7 layers quantized, 100 cycles (all nan, none 100)' printed || fail "rejected: $(cat printed)"

# Without the compiler: the estimate, which is called one; a chip without integer units gains nothing.
export TARE_TPU_COMPILER=$work/none
chosen
grep -qE 'v6e, batches of 32, by the estimate \(the command of TARE_TPU_COMPILER does not exist\): 0 of 7 layers quantized, [0-9.]+ µs \(all [0-9.]+, none [0-9.]+\)' printed || fail "estimated: $(cat printed)"
"$tare" convert "$model" tpu --calibration calib --for v6e --quiet >/dev/null 2>printed || fail "convert: $(cat printed)"
"$tare" inspect tpu >inspected || fail "inspect: $?"
grep -q XlaConvV2 inspected && fail "convert: $(cat inspected)"

# compare: the mix is a row of its own where some layers become faster, as of a residual network (its data may be absent).
images=$test_data/references/resnet8_cifar10/serving_default/inputs.tfrecord.gz residual=$test_data/models/resnet8_cifar10
if [ -e "$images" ]; then
    "$tare" calibrate "$residual" --data "$images" -o residual.calib --quiet >/dev/null 2>&1 || fail "calibrate: $?"
    "$tare" quantize "$residual" none --calibration residual.calib --for v6e --batch 32 --dry-run >printed 2>&1 || fail "--dry-run: $?"
    count=$(sed -n 's/^.*: \([0-9]*\) of 10 layers quantized.*/\1/p' printed)
    [ "$count" -gt 0 ] && [ "$count" -lt 10 ] || fail "not some of the layers become faster: $(cat printed)"
    "$tare" compare "$residual" --calibration residual.calib --eval "$images" --methods static --chip v6e --chip-batch 32 --report rows.json --quiet >printed 2>&1 || fail "compare: $(cat printed)"
    python3 - "$count" <<'PY' || fail "compare: $(cat printed)"
import json, sys
rows = json.load(open("rows.json"))["results"]
fastest = [row for row in rows if row["method"] == "fastest"]
assert len(fastest) == 1 and fastest[0]["quantized_ops"] == int(sys.argv[1]), rows
PY
fi
"$tare" compare "$model" --calibration calib --eval "$glyphs/eval.tfrecord.gz" --limit 50 --methods static --chip v2 --quiet >printed 2>&1 && grep -q fastest printed && fail "a chip without integer units: $(cat printed)"

# compare --compile: cycles are the compiler's, and the fastest model within the margin is recommended, not the smallest. auto --for
# builds it; where none is faster than float, nothing is written, and a model that the compiler rejects is not chosen.
export TARE_TPU_COMPILER=$work/compiler
choose() { rm -rf out out.*; "$tare" auto "$model" out --data "$glyphs/calibration.tfrecord.gz" --eval "$glyphs/eval.tfrecord.gz" --for v6e --batch 32 >printed 2>&1; }
compiler "$(says 100)" "$(says 70)" "$(says 110)" "$(says 90)"
choose || fail "auto --for: $(cat printed)"
compiled_once "auto --for"
grep -qF 'estimated slower' printed && fail "auto --for, of another chip: $(cat printed)"
grep -qE '^static min_max ← .* 70$' printed && grep -qF 'Recommended: static min_max, the fastest of 2 models' printed || fail "auto --for: $(cat printed)"
grep -qF '1.43 times as fast on a Cloud TPU v6e in batches of 32 (70 cycles, float 100, by fake 1)' printed && grep -qF 'step: tare compare' printed || fail "auto --for: $(cat printed)"
grep -qF -- '--chip v6e --chip-batch 32 --compile' printed && grep -qF 'as fake 1 compiles the model' out.html && [ -e out/saved_model.pb ] || fail "auto --for: $(cat printed)"
compiler "$(says 100)" "$(says 130)" "$(says 120)" '{"ok": false, "compiler": "fake 1", "error": "too large"}'
choose && fail "auto --for: a slower model is written"
grep -qF 'each smaller one within the margin is slower than float on a Cloud TPU v6e in batches of 32, by fake 1' printed && [ ! -e out ] || fail "auto --for, slower: $(cat printed)"
grep -qF -- '--compile: a model has no cycles: too large' printed || fail "a rejected model: $(cat printed)"
export TARE_TPU_COMPILER=$work/none
choose
grep -qF -- '--compile: estimated: the command of TARE_TPU_COMPILER does not exist' printed || fail "auto --for without a compiler: $(cat printed)"
expect 2 "--batch" "$tare" auto "$model" out --data "$glyphs/calibration.tfrecord.gz" --batch 32

expect 2 "--batch" "$tare" quantize "$model" out --calibration calib --batch 32 --overwrite
expect 2 "v9" "$tare" quantize "$model" out --calibration calib --for v9 --overwrite
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"
finish
