#!/usr/bin/env bash
# The sizes of a comparison are those of the weights that the signature uses, each once: within 1 % the variables and constants in
# the files of the written, pruned models, of float and of int8, for models of several kinds.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "python3"
need_data models tasks references
check() { # NAME MODEL RECORDS
    rm -rf "$work/float" "$work/int8"
    "$tare" quantize "$2" "$work/float" --method float --keep-variables --quiet 2>"$work/log" || fail "$1: $(cat "$work/log")"
    "$tare" quantize "$2" "$work/int8" --method weight_only --keep-variables --quiet 2>"$work/log" || fail "$1: $(cat "$work/log")"
    "$tare" compare "$2" --with "$work/float" --with "$work/int8" --eval "$3" --limit 1 --quiet --json >"$work/sizes.json" 2>"$work/log" ||
        fail "$1: $(cat "$work/log")"
    for written in float int8; do "$tare" inspect "$work/$written" --json >"$work/$written.json" 2>/dev/null || fail "$1: inspect"; done
    PYTHONPATH=$source_dir/scripts python3 - "$work" <<'PY' || fail "$1: sizes"
import json, os, sys
from protobuf_wire import fields

SIZES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 14: 2, 17: 2, 19: 2, 22: 4, 23: 8}  # of elements by DataType, without strings


def every(message, *path):
    found = [message]
    for number in path:
        found = [value for one in found for n, value, _ in fields(one) if n == number]
    return found


def constant_bytes(node):
    total = 0
    for tensor in every(node, 5, 2, 8) if every(node, 2) == [b"Const"] else ():
        elements = 1
        for dimension in every(tensor, 2, 2):
            elements *= (every(dimension, 1) or [0])[0]
        total += elements * SIZES.get(every(tensor, 1)[0], 0)
    return total


work = sys.argv[1]
rows = json.load(open(f"{work}/sizes.json"))["results"]
for name, row in (("float", rows[0]), ("float", rows[1]), ("int8", rows[2])):
    variables = sum(variable["bytes"] for variable in json.load(open(f"{work}/{name}.json"))["variables"])
    data = sum(os.path.getsize(f"{work}/{name}/variables/{file}") for file in os.listdir(f"{work}/{name}/variables") if ".data-" in file)
    [graph] = every(open(f"{work}/{name}/saved_model.pb", "rb").read(), 2, 2)
    written = variables + sum(map(constant_bytes, every(graph, 1) + every(graph, 2, 1, 3)))  # in the graph and in its functions
    assert variables <= data and abs(row["size_bytes"] - written) <= 0.01 * written, (name, row["size_bytes"], written, variables, data)
PY
}
for name in rongo-lstm sms-spam food-unet; do check $name "$test_data/tasks/$name/saved_model" "$test_data/tasks/$name/eval.tfrecord.gz"; done
for name in mobilenet_vww autoencoder_ad resnet8_cifar10; do
    check $name "$test_data/models/$name" "$test_data/references/$name/serving_default/inputs.tfrecord.gz"
done
finish
