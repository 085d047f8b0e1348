# tare validate: answers, JSON, tags, and functions that call each other in a circle.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

"$tare" validate "$glyphs/saved_model" >"$work/stdout" 2>&1 || fail "the example is not valid: $(cat "$work/stdout")"
[ "$(cat "$work/stdout")" = "$glyphs/saved_model: valid" ] || fail "a valid model prints: $(cat "$work/stdout")"

# Two MetaGraphs, the second with an unknown op; without --tags both are checked.
node() { printf 'meta_graphs { meta_info_def { tags: "%s" } graph_def { node { name: "n" op: "%s" } } }\n' "$1" "$2"; }
mkdir "$work/two"
{ echo 'saved_model_schema_version: 1'; node serve NoOp; node train NoSuchOp; } >"$work/two/saved_model.pbtxt"
expect 1 "$work/two: 1 violation (expected none)" "$tare" validate "$work/two"
[ "$(cat "$work/stdout")" = "graph/n (NoSuchOp): unknown op" ] || fail "other faults: $(cat "$work/stdout")"
"$tare" validate "$work/two" --tags serve || fail "the sound MetaGraph is not valid"
expect 1 "1 violation" "$tare" validate "$work/two" --tags train
expect 1 "no MetaGraph has the tags asked for (the model has {serve}, {train})" "$tare" validate "$work/two" --tags gpu

"$tare" validate "$work/two" --json >"$work/faults.json" 2>/dev/null && fail "--json: exit status 0 for a faulty model"
python3 - "$work/faults.json" "$work/two" <<'PYTHON' || fail "JSON"
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer == {"path": sys.argv[2], "valid": False, "faults": [{"where": "graph/n (NoSuchOp)", "what": "unknown op"}], "notes": []}, answer
PYTHON

# f calls g calls f: reported, not followed, by every command.
call() {
    printf 'function { signature { name: "%s" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
      node_def { name: "call" op: "PartitionedCall" input: "x" attr { key: "Tin" value { list { type: DT_FLOAT } } }
        attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "f" value { func { name: "%s" } } } }
      ret { key: "y" value: "call:output:0" } }\n' "$1" "$2"
}
mkdir "$work/circle"
{
    echo 'saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: "serve" } graph_def { library {'
    call f g
    call g f
    echo '} } }'
} >"$work/circle/saved_model.pbtxt"
expect 1 "recursive function f (f calls g calls f)" "$tare" inspect "$work/circle"
expect 1 "recursive function f (f calls g calls f)" "$tare" copy "$work/circle" "$work/copy"
absent "$work/copy"
expect 1 "1 violation" "$tare" validate "$work/circle"
grep -q "recursive function f (f calls g calls f)" "$work/stdout" || fail "validate: $(cat "$work/stdout")"

# Identities that copy each other: whatever follows them to their source must end.
mkdir "$work/copies"
cat >"$work/copies/saved_model.pbtxt" <<'PBTXT'
saved_model_schema_version: 1
meta_graphs { meta_info_def { tags: "serve" } graph_def {
  node { name: "a" op: "Identity" input: "b" attr { key: "T" value { type: DT_RESOURCE } } }
  node { name: "b" op: "Identity" input: "a" attr { key: "T" value { type: DT_RESOURCE } } }
  node { name: "read" op: "ReadVariableOp" input: "a" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "PartitionedCall" input: "b" attr { key: "f" value { func { name: "f" } } }
    attr { key: "Tin" value { list { type: DT_RESOURCE } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
  library { function { signature { name: "f" input_arg { name: "h" type: DT_RESOURCE }
      output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "read" op: "ReadVariableOp" input: "h" attr { key: "dtype" value { type: DT_FLOAT } } }
    ret { key: "r" value: "read:value:0" } } }
} signature_def { key: "serving_default" value { outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT } } } } }
PBTXT
expect 1 "$work/copies: the graph has a cycle through node a" timeout 60 "$tare" quantize "$work/copies" "$work/quantized" \
    --method weight_only --allow-unquantized
absent "$work/quantized"
expect 1 "1 violation" timeout 60 "$tare" validate "$work/copies"
grep -q "graph: the graph has a cycle through node a" "$work/stdout" || fail "validate: $(cat "$work/stdout")"
finish
