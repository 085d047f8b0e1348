# tare inspect: the texts of TensorFlow's guide to tf.function on a model with the guide's functions, graphs, tags, JSON.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
guide=$source_dir/tests/models/function_guide

# same NAME WANTED GOT: two texts, with the difference shown.
same() {
    diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") >"$work/diff" || { fail "$1:"; cat "$work/diff"; }
}
# function NAME: what --functions prints of one group, without its heading.
function_group() { "$tare" inspect "$guide" --functions | awk -v name="function $1:" '/^function /{on=index($0, name)==1; next} on'; }

same "double, as pretty_printed_concrete_signatures prints it" "$(cat <<'TEXT'
double(a)
  Args:
    a: int32 Tensor, shape=()
  Returns:
    int32 Tensor, shape=()

double(a)
  Args:
    a: float32 Tensor, shape=()
  Returns:
    float32 Tensor, shape=()

double(a)
  Args:
    a: string Tensor, shape=()
  Returns:
    string Tensor, shape=()
TEXT
)" "$(function_group double | sed -e '1d' -e '/^__inference/d')"

same "pow, with the value that it was traced with" "$(cat <<'TEXT'

__inference_pow_40
pow(a, b=2)
  Args:
    a: float32 Tensor, shape=<unknown>
  Returns:
    float32 Tensor, shape=<unknown>
TEXT
)" "$(function_group pow | sed '$d')"

same "a method with a nest, bound values, a keyword and captures" "$(cat <<'TEXT'

__inference_scaled_50
scaled(inputs, mode=fast, rate=0.5, *, training=False)
  Args:
    inputs: {'size': <1>, 'x': <2>}
      <1>: int32 Tensor, shape=(1,)
      <2>: float32 Tensor, shape=(None, 4)
  Captures:
    scale: float32 variable, shape=(2,)
    Const: float32 constant, shape=(2,)
    words.txt: string asset, shape=()
  Returns:
    {'scaled': <1>}
      <1>: float32 Tensor, shape=(None, 2)
TEXT
)" "$(function_group scaled)"

same "groups, with aliases and where the objects are" "$(cat <<'TEXT'
function double: 3 concrete, alias twice, object .double
function pow: 1 concrete, object .pow
function scaled: 1 concrete, object .layer.scaled
function next_collatz: 1 concrete, object .next_collatz
TEXT
)" "$("$tare" inspect "$guide" --functions | grep '^function .*:')"

same "the guide's graph" "$(cat <<'TEXT'
[] -> a
['a', 'a'] -> add
['add'] -> Identity
TEXT
)" "$("$tare" inspect "$guide" --graph __inference_double_30)"

same "a graph by alias" "$("$tare" inspect "$guide" --graph __inference_double_10)" "$("$tare" inspect "$guide" --graph twice)"

same "second outputs and control inputs" "$(cat <<'TEXT'
['split/split_dim', 'mul'] -> split
['split:1', 'add_y'] -> add
['^ReadVariableOp'] -> NoOp
['add', '^NoOp'] -> Identity
TEXT
)" "$("$tare" inspect "$guide" --graph __inference_scaled_50 | tail -4)"

same "the main graph" "$(printf '[] -> Const\n[] -> scale')" "$("$tare" inspect "$guide" --graph '')"
expect 1 "unknown function 'triple'" "$tare" inspect "$guide" --graph triple
expect 1 "there is no signature 'nothing'" "$tare" inspect "$guide" --signature nothing

# JSON says the same and is JSON.
"$tare" inspect "$guide" --functions --json >"$work/functions.json"
"$tare" inspect "$guide" --graph __inference_scaled_50 --json >"$work/graph.json"
python3 - "$work/functions.json" "$work/graph.json" <<'PYTHON' || fail "JSON"
import json, sys
model, graph = (json.load(open(path)) for path in sys.argv[1:])
assert list(model) == ["path", "format", "tensorflow_version", "tags", "tf1", "signatures", "aliases", "variables", "checkpoint",
                       "ops", "quantizable", "missing_ops", "not_on_tpu", "tpu_calls", "functions", "function_groups"], list(model)
groups = {group["name"]: group for group in model["function_groups"]}
assert groups["double"]["aliases"] == ["twice"] and groups["double"]["objects"] == [".double"], groups["double"]
assert [trace["function"] for trace in groups["double"]["concrete"]] == ["__inference_double_%d" % n for n in (10, 20, 30)]
scaled = groups["scaled"]["concrete"][0]
assert scaled["captures"] == [{"name": "scale", "kind": "variable", "dtype": "float32", "shape": [2]},
                              {"name": "Const", "kind": "constant", "dtype": "float32", "shape": [2]},
                              {"name": "words.txt", "kind": "asset", "dtype": "string", "shape": []}], scaled["captures"]
assert scaled["text"].startswith("scaled(inputs, mode=fast"), scaled["text"]
assert model["variables"] == [{"name": "scale", "dtype": "float32", "shape": [2], "bytes": 8, "key": None, "object": 5}]
nodes = {node["name"]: node for node in graph["nodes"]}
assert graph["function"] == "__inference_scaled_50"
assert nodes["add"] == {"name": "add", "op": "AddV2", "inputs": ["split:1", "add_y"], "dtypes": ["float32"]}, nodes["add"]
assert nodes["Identity"]["inputs"] == ["add", "^NoOp"]
PYTHON

# Several MetaGraphs: tags choose; without them the choices are listed, but for one that is tagged "serve" alone.
meta() { printf 'meta_graphs { meta_info_def { %s } graph_def { node { name: "%s" op: "NoOp" } } }\n' "$1" "$2"; }
mkdir "$work/two" "$work/three"
{ meta 'tags: "gpu" tags: "serve"' first; meta 'tags: "tpu" tags: "serve"' second; meta '' bare; } >"$work/two/saved_model.pbtxt"
{ meta 'tags: "train"' first; meta 'tags: "serve"' second; } >"$work/three/saved_model.pbtxt"
expect 1 "several MetaGraphs, choose with --tags (the model has {gpu,serve}, {tpu,serve}, {})" "$tare" inspect "$work/two"
expect 1 "no MetaGraph has the tags asked for (the model has {gpu,serve}, {tpu,serve}, {})" "$tare" inspect "$work/two" --tags serve
same "tags in any order" "[] -> second" "$("$tare" inspect "$work/two" --tags serve,tpu --graph '')"
same "no tags" "[] -> bare" "$("$tare" inspect "$work/two" --tags '' --graph '')"
same "serve alone is the default" "[] -> second" "$("$tare" inspect "$work/three" --graph '')"
same "the heading says what else there is" "  tags        serve  (the model has {train}, {serve})" "$("$tare" inspect "$work/three" | grep '^  tags')"
finish
