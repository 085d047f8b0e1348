#!/usr/bin/env bash
# tare check: what a compiler says of the modules, read from one that the test makes; without a compiler, the estimate.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
model=$glyphs/saved_model
export TMPDIR=$work/tmp
mkdir tmp

# A compiler that says the same of every module; it keeps the modules and its chip.
compiler() { # compiler OBJECT
    cat >compiler <<SH
#!/bin/sh
echo "\$1" >"$work/chip"
shift
for file; do cp "\$file" "$work/kept.mlirbc"; echo '$1'; done
SH
    chmod +x compiler
}
compiler '{"ok": true, "compiler": "fake 1", "cycles": 12345, "products": {"s8 x s8 -> s32": 2}, "memory": {"code": 1000000, "arguments": 2000000, "results": 0, "temporary": 0},
"ops": [{"node": "a/PartitionedCall", "op": "fusion", "cycles": 345, "products": []}, {"node": "StatefulPartitionedCall/TPUPartitionedCall/call/stem", "op": "fusion", "cycles": 12000, "products": ["s8 x s8 -> s32"]}]}'
sed -i -e ':a' -e 'N' -e '$!ba' -e 's/},\n"ops"/}, "ops"/' compiler
export TARE_TPU_COMPILER=$work/compiler
"$tare" check "$model" --chip v6e --batch 4 >out || fail "check: $?"
[ "$(cat chip)" = v6e ] || fail "the compiler got the chip $(cat chip)"
grep -qF 'on a Cloud TPU v6e, batch 4, compiled by fake 1' out && grep -qF ': 12,345 cycles' out && grep -qF 'products  2 s8 x s8 -> s32' out || fail "check: $(cat out)"
[ "$(grep -n -m1 stem out | cut -d: -f1)" -lt "$(grep -n -m1 'a/PartitionedCall' out | cut -d: -f1)" ] || fail "the dearest op is not first: $(cat out)"
grep -qE '^stem +fusion +12,000 +97 % +s8 x s8 -> s32$' out || fail "an op: $(cat out)"
"$tare" inspect kept.mlirbc >inspected && grep -qF 'tensor<3136x' inspected || fail "the module has another batch: $(cat inspected)"
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# Converted before: the same computation. Two models: the ratio. JSON has all of it.
"$tare" convert "$model" converted --quiet >/dev/null || fail "convert: $?"
"$tare" check converted --with "$model" --chip v6e --batch 4 --top 1 >both || fail "check --with: $?"
[ "$(grep -c '12,345 cycles' both)" = 2 ] && grep -qF "converted takes 1.00 times the cycles of $model" both || fail "check --with: $(cat both)"
[ "$(grep -c '^stem' both)" = 2 ] || fail "--top 1: $(cat both)"
# Variables are constants of the module.
"$tare" convert "$model" kept --keep-variables --quiet >/dev/null || fail "convert --keep-variables: $?"
"$tare" check kept >out && grep -qF ': 12,345 cycles' out || fail "a model with variables is not compiled: $(cat out)"

"$tare" check converted --json >json || fail "check --json: $?"
python3 - <<'PY' || fail "JSON: $(cat json)"
import json
check = json.load(open("json"))
(part,) = check["computations"]
assert check["compiler"] == "fake 1" and check["chip"] == "v5e" and check["batch"] == 8 and check["estimated_because"] is None, check
assert part["cycles"] == 12345 and part["memory"]["code"] == 1e6 and part["error"] is None and part["estimated_seconds"] > 0, part
assert [op["node"] for op in part["ops"]] == ["stem", "a/PartitionedCall"] and part["ops"][0]["products"] == "s8 x s8 -> s32", part
assert abs(part["seconds"] - 12345 / 1.5e9) < 1e-12 and {"stem_conv", "logits"} <= {op["node"] for op in part["estimated_ops"]}, part
PY

# The page and the file have the compiler's figures and the estimate's, of both models.
"$tare" check converted --with "$model" --chip v6e --report page.html >/dev/null || fail "check --report: $?"
grep -qF 'compiles for a Cloud TPU v6e with fake 1' page.html && grep -qF '12345' page.html && grep -qF 'block5_<wbr/>pointwise' page.html && grep -qF 'est. µs' page.html && grep -qF 'converted takes 1.00 times the cycles' page.html || fail "check --report: $(head -c 3000 page.html)"
"$tare" check converted --report both.json >/dev/null || fail "check --report FILE.json: $?"
cmp -s json both.json || fail "check --report FILE.json: $(diff json both.json)"
expect 2 "unknown format" "$tare" check converted --report page.txt

# Keras exports two signatures, serve and serving_default, each with a call of its own: the one that is asked for is compiled.
cp -r "$model" two
chmod -R u+w two
python3 - "$TARE_SOURCE_DIR" two <<'PY' || fail "two signatures: $?"
import sys
sys.path.insert(0, sys.argv[1] + "/scripts")
from protobuf_wire import field, fields
path = sys.argv[2] + "/saved_model.pb"

def other(part):
    """The same with other names of the same length, of the node or of tensors."""
    return part.replace(b"serving_default_", b"serving_defaulx_").replace(b"\x17StatefulPartitionedCall", b"\x17StatefulPartitionedCalx", 1)

def graph(message):
    nodes = [bytes(f.value) for f in fields(message) if f.number == 1]
    names = {node: bytes(next(f.value for f in fields(node) if f.number == 1)) for node in nodes}
    copies = [other(node) for node in nodes if names[node] == b"StatefulPartitionedCall" or names[node].startswith(b"serving_default_")]
    return b"".join(field(1, node) for node in copies) + bytes(message)

def meta(message):
    out = b""
    for f in fields(message):
        out += field(2, graph(f.value)) if f.number == 2 else bytes(f.whole)
        if f.number == 5 and b"serving_default" in bytes(f.value):
            signature = next(bytes(g.value) for g in fields(f.value) if g.number == 2)
            out += field(5, field(1, "serve") + field(2, signature.replace(b"serving_default_", b"serving_defaulx_").replace(b"StatefulPartitionedCall:", b"StatefulPartitionedCalx:")))
    return out

data = open(path, "rb").read()
open(path, "wb").write(b"".join(field(2, meta(f.value)) if f.number == 2 else bytes(f.whole) for f in fields(data)))
PY
"$tare" check two --batch 4 >out || fail "two signatures: $?"
grep -qF 'compiled by fake 1' out && [ "$(grep -c '12,345 cycles' out)" = 1 ] || fail "two signatures: $(cat out)"
"$tare" inspect kept.mlirbc >inspected && grep -qF 'tensor<3136x' inspected || fail "two signatures: $(cat inspected)"

# convert --check: for the chip and the batch that are given, before the model is written.
"$tare" convert "$model" kept_model --check --batch 4 --quiet >out || fail "convert --check: $?"
[ "$(cat chip)" = v5e ] && grep -qF 'on a Cloud TPU v5e, batch 4, compiled by fake 1' out && [ -e kept_model ] || fail "convert --check: $(cat out)"

# A program that is rejected, or cannot be read.
compiler '{"ok": false, "compiler": "fake 1", "error": "Unsupported: stem"}'
expect 1 "the TPU compiler rejects" "$tare" check "$model"
expect 1 "the TPU compiler rejects" "$tare" convert "$model" not_written --check --quiet
[ -e not_written ] && fail "convert --check: a rejected model is written"
"$tare" check "$model" 2>/dev/null >out
grep -qF 'does not compile: Unsupported: stem' out || fail "a rejected program: $(cat out)"
"$tare" check "$model" --report page.html >/dev/null 2>&1
grep -qF 'does not compile: Unsupported: stem' page.html || fail "a rejected program: $(head -c 3000 page.html)"
compiler 'no JSON'
expect 1 "line 1 is not a JSON object" "$tare" check "$model"
printf '#!/bin/sh\n' >compiler
expect 1 "0 results (expected 1)" "$tare" check "$model"
printf '#!/bin/sh\necho first >&2\necho out of tiles >&2\nexit 4\n' >compiler
expect 1 "the TPU compiler: exit status 4: out of tiles" "$tare" check "$model"
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# Without a compiler, or by request: the estimate, which is called one.
printf '#!/bin/sh\nexit 3\n' >compiler
"$tare" check "$model" >out || fail "without a compiler: $?"
grep -qF "estimated: python3 has no TPU compiler (pip install 'jax[tpu]', or set TARE_TPU_COMPILER)" out && grep -qE ': [0-9.]+ µs, estimated$' out || fail "estimate: $(cat out)"
grep -qE '^block5_pointwise +Conv2D +[0-9]+ %$' out || fail "ops of the estimate: $(cat out)"
printf '#!/bin/sh\nexit 5\n' >compiler
"$tare" check "$model" --chip 8i | grep -F 'estimated: the TPU compiler does not know the chip' >/dev/null || fail "an unknown chip"
TARE_TPU_COMPILER=$work/missing "$tare" check "$model" | grep -F 'estimated: the command of TARE_TPU_COMPILER does not exist' >/dev/null || fail "a missing compiler"
"$tare" check "$model" --estimate | grep -F 'estimated: --estimate' >/dev/null || fail "--estimate"


# Integers on a chip that has no units for them are warned about, on another or without integers not.
"$tare" quantize "$model" integers --method dynamic --quiet >/dev/null 2>&1 || fail "quantize: $?"
"$tare" check integers --estimate --chip tpu7x 2>&1 >/dev/null | grep -F 'integers: a Cloud TPU tpu7x has no int8 units: integers save memory only' >/dev/null || fail "no warning of missing units"
[ -z "$("$tare" check integers --estimate --chip v6e 2>&1 >/dev/null)" ] || fail "v6e has int8 units"
[ -z "$("$tare" check "$model" --estimate --chip tpu7x 2>&1 >/dev/null)" ] || fail "a float model has no integers"

expect 1 "the model has no signature 'other'" "$tare" check "$model" --signature other
expect 2 "--chip" "$tare" check "$model" --chip v9
expect 1 "TMPDIR" env TMPDIR="$work/nowhere" "$tare" check "$model"

# Stopped while the compiler works: one line that says so, and the compiler is stopped as well.
printf '#!/bin/sh\necho $$ >"%s/pid"\nexec sleep 60\n' "$work" >compiler
"$tare" check "$model" 2>err &
child=$!
until [ -s pid ]; do sleep 0.1; done
kill -TERM $child
wait $child
[ $? != 0 ] && grep -qF interrupted err && [ "$(wc -l <err)" = 1 ] || fail "stopped: $(cat err)"
[ -z "$(ls tmp)" ] || fail "left behind when stopped: $(ls tmp)"

finish
