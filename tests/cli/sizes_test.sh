#!/usr/bin/env bash
# The sizes of a comparison are those of the weights that the signature uses, each once: within 1 % the variables of the
# written, pruned models, of float and of int8, for models of several kinds.
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
    python3 - "$work" <<'PY' || fail "$1: sizes"
import json, os, sys
work = sys.argv[1]
rows = json.load(open(f"{work}/sizes.json"))["results"]
for name, row in (("float", rows[0]), ("float", rows[1]), ("int8", rows[2])):
    variables = sum(variable["bytes"] for variable in json.load(open(f"{work}/{name}.json"))["variables"])
    data = sum(os.path.getsize(f"{work}/{name}/variables/{file}") for file in os.listdir(f"{work}/{name}/variables") if ".data-" in file)
    text = os.path.getsize(f"{work}/{name}/saved_model.pb")
    # Constants are in the graph: scales and zero points, next to its nodes.
    assert variables <= 1.01 * row["size_bytes"] and 0.99 * row["size_bytes"] <= variables + text and variables <= data, \
        (name, row["size_bytes"], variables, data, text)
    assert name == "int8" or abs(row["size_bytes"] - variables) <= 0.01 * variables, (name, row["size_bytes"], variables)
PY
}
for name in rongo-lstm sms-spam food-unet; do check $name "$test_data/tasks/$name/saved_model" "$test_data/tasks/$name/eval.tfrecord.gz"; done
for name in mobilenet_vww autoencoder_ad resnet8_cifar10; do
    check $name "$test_data/models/$name" "$test_data/references/$name/serving_default/inputs.tfrecord.gz"
done
finish
