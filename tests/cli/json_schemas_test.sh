#!/bin/bash
# Every JSON output has the form of its schema in docs/schemas, also errors; docs/json.md explains every key.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3, which validates"
check=$source_dir/tests/helpers/check_json.py
model=$glyphs/saved_model
samples=$glyphs/calibration.tfrecord.gz
eval=$glyphs/eval.tfrecord.gz
cd "$work" || exit 1

# valid SCHEMA COMMAND…: standard output is one document of the schema.
valid() {
    local schema=$1
    shift
    "$@" >document.json 2>errors || true
    python3 "$check" "$source_dir/docs/schemas/$schema.json" document.json >found || fail "$* ($schema): $(head -c 2000 found; cat errors)"
}
# has EXPRESSION: of the last document, which is `d`.
has() { python3 -c 'import json, sys; d = json.load(open("document.json")); sys.exit(not eval(sys.argv[1]))' "$1" || fail "not so: $1"; }

# the validator finds what it is for
echo '{"path": "m", "valid": true, "faults": [], "notes": [], "more": 1}' >wrong.json
echo '{"path": "m", "valid": 1, "faults": [{"where": "x"}]}' >worse.json
python3 "$check" "$source_dir/docs/schemas/validate.json" wrong.json worse.json >found && fail "wrong documents are valid"
for text in 'unknown key more' 'no notes' 'valid: expected boolean' 'no what'; do grep -qF "$text" found || fail "not found: $text"; done

for schema in "$source_dir"/docs/schemas/*.json; do
    python3 "$check" --documented "$source_dir/docs/json.md" "$source_dir/docs/converter.md" "$schema" || fail "docs/json.md"
done

# each command, with the options that add keys
valid inspect "$tare" inspect "$model" --json
valid inspect "$tare" inspect "$model" --json --functions --suggest
has '"suggest" in d and d["function_groups"]'
valid inspect "$tare" inspect "$model" --json --graph __inference_tpu_func_101
has 'd["nodes"]'
valid calibrate "$tare" calibrate "$model" --data "$samples" -o m.calib --json
has 'd["warnings"] is not None and d["records"] == 300'
valid calibrate "$tare" calibrate "$model" --data "$samples" --dry-run --json
has '"output" not in d'
valid show "$tare" show m.calib --json --algorithms min_max,entropy
valid run "$tare" run "$model" --data "$samples" --json --profile --output-dir outputs
has 'd["nodes"] and "file" in d["outputs"][0]'
valid validate "$tare" validate "$model" --json
valid ops "$tare" ops --json
cp document.json published.json
valid ops "$tare" ops --check-compat published.json --json
valid compare "$tare" compare "$model" --calibration m.calib --data "$eval" --json --explain --sensitivity --methods static,weight_only --limit 40 \
    --node-data nodes.json
has 'd["explanations"] and d["sensitivity"]["layers"] and d["results"][1]["changed"]'
cp document.json first.json
python3 "$check" "$source_dir/docs/schemas/node-data.json" nodes.json || fail "node data"
valid compare "$tare" compare "$model" --calibration m.calib --data "$eval" --json --max-drop 1 --limit 40 --algorithms mse
has 'd["target"]["points"]'
cp document.json second.json
valid quantize "$tare" quantize "$model" int8 --calibration m.calib --json
has 'any(l["refused"] for l in d["layers"]) and any(l["quantized"] for l in d["layers"])'
valid convert "$tare" convert "$model" tpu --calibration m.calib --json
has 'd["functions"] and d["chips"] and d["passes"]'
valid check "$tare" check tpu --chip v5e --estimate --json --with "$model"
has 'd["with"]["computations"]'
valid diff "$tare" diff "$model" int8 --json
has 'd["layers"] and d["weights"]'
valid diff "$tare" diff first.json second.json --json
has 'd["results"]'
valid diff "$tare" diff outputs outputs --json
has 'd["same"] and d["files"]'
valid dataset-info "$tare" dataset info "$eval" --json
valid dataset-head "$tare" dataset head "$eval" --json
cat >jobs.textproto <<JOBS
job { name: "good" model: "$model" output: "$work/good" calibration: "$work/m.calib" method: "static" }
job { name: "bad" model: "nowhere" output: "$work/bad" method: "weight_only" }
JOBS
valid batch "$tare" batch jobs.textproto --json

# node data has the numbers of the file's nodes, read here from the protobuf messages
PYTHONPATH=$source_dir/scripts python3 - "$model/saved_model.pb" <<'PY' || fail "node data: $(cat nodes.json)"
import json, sys
from protobuf_wire import fields
def of(message, *path):
    found = [message]
    for number in path:
        found = [f.value for m in found for f in fields(m) if f.number == number]
    return found
data, first = json.load(open("nodes.json")), json.load(open("first.json"))
numbers = {}
for function in of(open(sys.argv[1], "rb").read(), 2, 2, 2, 1):  # meta_graphs, graph_def, library, function
    name = of(function, 1, 1)[0].decode()
    for i, node in enumerate(of(function, 3)):
        numbers[name, of(node, 1)[0].decode()] = str(i + 1)
layers = [l for l in first["sensitivity"]["layers"]]
assert len(layers) > 5 and set(data) == {l["function"] for l in layers}, layers
for l in layers:
    value = data[l["function"]]["results"][numbers[l["function"], l["layer"]]]["value"]
    assert abs(value - l["alone"]["sqnr_db"]) < 0.006, (l, value)
assert sum(len(g["results"]) for g in data.values()) == len(layers)
PY
expect 1 "no quantized layer is a node of the model's file" "$tare" compare "$model" --data "$eval" --limit 4 --methods bfloat16 --node-data none.json --quiet
absent none.json

# errors: one document on standard output, one line on standard error
for command in "inspect nowhere" "inspect $model --signature other" "compare $model" "run $model --data $samples --sample none" \
    "calibrate $model --unknown" "nothing" "inspect"; do
    valid error "$tare" $command --json
    [ "$(wc -l <errors)" -eq 1 ] || fail "$command --json: $(cat errors)"
    has 'd["error"]["text"] in open("errors").read() and d["error"]["exit_status"] in (1, 2)'
done
"$tare" inspect nowhere >document.json 2>errors
[ ! -s document.json ] || fail "an error is JSON without --json"
"$tare" inspect --no-json nowhere >document.json 2>errors
[ ! -s document.json ] || fail "an error is JSON with --no-json"
# a result with a failing exit status is the only document
printf 'XX' >damaged.pb
mkdir -p broken && cp -r "$model"/* broken/ && head -c 3000 "$model/saved_model.pb" >broken/saved_model.pb
"$tare" validate broken --json >document.json 2>errors
python3 -c 'import json; json.load(open("document.json"))' || fail "validate of a broken model: $(cat document.json)"

[ "$("$tare" -V)" = "$("$tare" --version)" ] || fail "-V"
finish
