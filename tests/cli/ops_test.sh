#!/usr/bin/env bash
# tare ops: lists, and the comparison with a list that was kept.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
plugins=$TARE_TEST_PLUGINS
everything=$plugins/everything.so

has() { grep -qF -- "$2" "$1" || fail "no '$2' in: $(head -c 2000 "$1")"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "'$2' in $1"; }

# lists
"$tare" ops >"$work/table" || fail "ops"
has "$work/table" "MatMul "
has "$work/table" "(x: T) -> (y: T)"
lacks "$work/table" "IteratorGetNext" # known by definition only
"$tare" ops --all >"$work/table"; grep -q "^IteratorGetNext  *no " "$work/table" || fail "--all lacks IteratorGetNext"
"$tare" ops Reshape >"$work/one" || fail "ops Reshape"
has "$work/one" "Reshape(tensor: T, shape: Tshape) -> (output: T)"
has "$work/one" "Tshape: {int32, int64} = DT_INT32"
has "$work/one" "on a TPU: yes, constant shape"
"$tare" ops ZeroOut --plugin "$everything" >"$work/one" || fail "ops ZeroOut"
has "$work/one" "T: {float, double, int32} = DT_INT32"
has "$work/one" "runs here: plugin (T: float; T: int32) $everything; on a TPU: no"
"$tare" ops OnlyDefined --plugin="$everything" >"$work/one"; grep -q "runs here: no" "$work/one" || fail "OnlyDefined has no kernel"
expect 1 "there is no op 'MatMull' (did you mean 'MatMul'?)" "$tare" ops MatMull
expect 1 "there is no op 'ZeroOut'" "$tare" ops ZeroOut
expect 2 "--markdown, --json, --check-compat and --shape are mutually exclusive" "$tare" ops --markdown --json

# shape functions
infers() { # WANTED ARGUMENT...
    local expected=$1
    shift
    [ "$("$tare" ops "$@" 2>&1)" = "$expected" ] || fail "ops $*: $("$tare" ops "$@" 2>&1) (expected $expected)"
}
infers 'product float32 [?,5]' MatMul --shape [?,3] --shape [3,5] --attr T=float
infers 'zeroed int32 [2,?]' ZeroOut --shape [2,?] --plugin "$everything"
infers 'zeroed float32 <unknown>' ZeroOut --shape ? --attr T=DT_FLOAT --plugin "$everything"
infers 'out float32 [12]' Shapes --shape [3] --shape [4] --attr how=dim_multiply --plugin "$everything"
infers 'out float32 []' Shapes --shape [3] --shape [4] --attr "how='scalar'" --plugin "$everything"
infers 'tare: Shapes '\''Shapes'\'': Shape must be rank 2 but is rank 1' Shapes --shape [3] --shape ? --attr how=with_rank --plugin "$everything"
expect 2 "'[3' is not a shape" "$tare" ops Abs --shape [3 --attr T=float
expect 2 "'[3,]' is not a shape" "$tare" ops Abs --shape [3,] --attr T=float
expect 2 "'[99999999999999999999]' is not a shape" "$tare" ops Abs --shape [99999999999999999999] --attr T=float
expect 1 "NodeDef missing attr 'T' from Op Abs" "$tare" ops Abs --shape [3]
expect 2 "2 input shapes (expected 1" "$tare" ops Abs --shape [3] --shape [3] --attr T=float
expect 2 "the op has no attribute 'U'" "$tare" ops Abs --shape [3] --attr U=float
expect 2 "'flot' is not a valid value of attribute 'T'" "$tare" ops Abs --shape [3] --attr T=flot
expect 2 "expect exactly one OP (got 2)" "$tare" ops Abs Neg --shape [3]

# a model of one op
"$tare" ops MatMul --shape [?,2] --shape [2,1] --attr T=float --save-model "$work/product" || fail "--save-model"
"$tare" validate "$work/product" || fail "the model of MatMul is not valid"
"$TARE_TEST_HELPERS/op_model" array "$work/a.npy" 'float[1,2] 3 4' && "$TARE_TEST_HELPERS/op_model" array "$work/b.npy" 'float[2,1] 10 1'
[ "$("$tare" run "$work/product" --input a="$work/a.npy" --input b="$work/b.npy")" = "product float32[1,1] 34" ] || fail "run MatMul alone"
"$tare" inspect "$work/product" >"$work/one"
has "$work/one" "product  float32  [?,1]"
expect 1 "Output directory already exists" "$tare" ops MatMul --shape [?,2] --shape [2,1] --attr T=float --save-model "$work/product"
expect 1 "inner sizes differ: [?,2] times [3,1]" "$tare" ops MatMul --shape [?,2] --shape [3,1] --attr T=float --save-model "$work/bad"
absent "$work/bad"

# Print writes what TensorFlow does
"$tare" ops Print --shape int32[1] --shape int32[2,2] --shape int32[1] --attr 'message="m: "' --save-model "$work/print" || fail "the model of Print"
"$TARE_TEST_HELPERS/op_model" array "$work/x.npy" 'int32[1] 5' && "$TARE_TEST_HELPERS/op_model" array "$work/data.npy" 'int32[2,2] 1 2 3 4'
"$tare" run "$work/print" --input input="$work/x.npy" --input data_0="$work/data.npy" --input data_1="$work/x.npy" 2>"$work/printed" >"$work/one"
grep -qxF 'm: [[1 2][3...]...][5]' "$work/printed" || fail "Print: $(cat "$work/printed")"
expect 1 "input 0 is a reference" "$tare" ops Bump --shape [] --plugin "$everything" --save-model "$work/bad"
expect 1 "NoOp has no output" "$tare" ops NoOp --save-model "$work/bad"

# Every definition reads again as what it was written from: nothing differs from itself.
"$tare" ops --all --json --plugin "$everything" >"$work/all.json" || fail "--json"
[ "$(grep -c '"name":' "$work/all.json")" -gt 1500 ] || fail "--all --json lists $(grep -c '"name":' "$work/all.json") ops"
"$tare" ops --check-compat "$work/all.json" --plugin "$everything" || fail "a list breaks itself"
expect 1 "15 changes break published ops (expected none)" "$tare" ops --check-compat "$work/all.json"
has "$work/stdout" "ZeroOut: Op removed"

# changes: the kept list says other things than the library
"$tare" ops --json --plugin "$everything" ZeroOut SumAll OnlyDefined >"$work/published.json" || fail "--json ZeroOut"
"$tare" ops --check-compat "$work/published.json" --plugin "$everything" || fail "nothing has changed"
changed() { # SED WANTED: with the list changed by SED, exactly the lines WANTED are reported
    sed "$1" "$work/published.json" >"$work/other.json"
    cmp -s "$work/published.json" "$work/other.json" && fail "$1 changes nothing"
    "$tare" ops --check-compat "$work/other.json" --plugin "$everything" >"$work/changes" 2>"$work/stderr"
    local status=$?
    [ "$(cat "$work/changes")" = "$2" ] || fail "$1 reports: $(cat "$work/changes") (expected $2)"
    [ $status -eq $([ -n "$2" ] && echo 1 || echo 0) ] || fail "$1: exit status $status"
}
changed '/preserve_index/d; s/"T: {float, double, int32} = DT_INT32",/"T: {float, double, int32} = DT_INT32"/' ''
changed 's/ = DT_INT32/ = DT_FLOAT/' "ZeroOut: Attr 'T' has changed its default; from float to int32"
changed 's/{float, double, int32}/{float, half, int32}/' \
    "ZeroOut: Attr 'T' has a stricter set of allowed values; from [float, half, int32] to [float, double, int32]"
changed 's/N: int >= 2/N: int >= 1/' "SumAll: Attr 'N' has a higher minimum; from 1 to 2"
changed 's/"to_zero: T"/"to_zero: float"/' "ZeroOut: Input signature mismatch 'float' vs. 'T'"
changed 's/"zeroed: T"/"result: T"/' "ZeroOut: Output signature mismatch 'result: T' vs. 'zeroed: T'"
changed 's/"ZeroOut"/"NegOut"/' "NegOut: Op removed"
changed 's/T: float; T: int32/T: float; T: double/' "ZeroOut: Kernel for T: double removed"
changed '/OnlyDefined/,$s/"runs": false/"runs": true/' "OnlyDefined: Kernels removed"
"$tare" ops --check-compat "$work/other.json" --json --plugin "$everything" >"$work/changes" 2>/dev/null
has "$work/changes" '"change": "Kernels removed"'

# lists that are none
expect 1 "nowhere.json" "$tare" ops --check-compat "$work/nowhere.json"
echo '{ "ops": [' >"$work/cut.json"
expect 1 "cut.json: line " "$tare" ops --check-compat "$work/cut.json"
echo '{ "tare": "0.1.0" }' >"$work/other.json"
expect 1 'not a list of ops' "$tare" ops --check-compat "$work/other.json"
echo '{ "ops": [ { "name": "A", "attrs": [], "inputs": "x", "outputs": [] } ] }' >"$work/other.json"
expect 1 'op A: "inputs" is not an array' "$tare" ops --check-compat "$work/other.json"
echo '{ "ops": [ { "name": "A", "attrs": [ "a int" ], "inputs": [], "outputs": [] } ] }' >"$work/other.json"
expect 1 "op A: Trouble parsing '<name>:' from Attr(\"a int\")" "$tare" ops --check-compat "$work/other.json"
echo '{ "ops": [ 3 ] }' >"$work/other.json"
expect 1 "an op has no name" "$tare" ops --check-compat "$work/other.json"

# libraries that cannot be loaded: one line each, from every command that has the option
for command in run calibrate quantize compare convert batch inspect validate diff ops; do
    "$tare" $command --help >"$work/one"
    [ "$(grep -c -- '--plugin LIB.so' "$work/one")" -eq 1 ] || fail "$command has --plugin $(grep -c -- '--plugin LIB.so' "$work/one") times"
done
expect 1 "no_entry.so: is not a library of ops" "$tare" ops --plugin "$plugins/no_entry.so"
# attributes follow from dtypes in --shape
[ "$("$tare" ops MatMul --shape 'float[?,3]' --shape 'float[3,5]')" = "product float32 [?,5]" ] || fail "T from --shape"
[ "$("$tare" ops AddN --shape 'int32[2]' --shape 'int32[?]' --shape 'int32[2]')" = "sum int32 [2]" ] || fail "N and T from --shape"
[ "$("$tare" ops AddN --shape '[2]' --shape '[?]' --attr T=float)" = "sum float32 [2]" ] || fail "N from the number of shapes"
[ "$("$tare" ops ConcatV2 --shape '[2,3]' --shape '[2,5]' --shape '[]' --attr T=float)" = "output float32 [?,?]" ] ||
    fail "N beside a single input: $("$tare" ops ConcatV2 --shape '[2,3]' --shape '[2,5]' --shape '[]' --attr T=float 2>&1)"
expect 2 "2 input shapes (expected 3, one --shape per input)" "$tare" ops AddN --shape '[2]' --shape '[2]' --attr T=float --attr N=3
expect 2 "option '--shape': input 1 is int32 (expected float32)" "$tare" ops MatMul --shape 'float[?,3]' --shape 'int32[3,5]'
expect 2 "option '--shape': 'flot' is not a dtype (expected, for example, float[2,?])" "$tare" ops MatMul --shape 'flot[2]' --shape '[2]'

expect 1 "other_abi.so: was built for op ABI 2.0 (this tare has 1.1)" "$tare" inspect "$glyphs/saved_model" --plugin "$plugins/other_abi.so"
expect 1 "is loaded twice" "$tare" validate "$glyphs/saved_model" --plugin "$everything" --plugin "$everything"
ASKED_OP=MatMul expect 1 "Op MatMul is already registered: it is built in" "$tare" ops --plugin "$plugins/asked.so"
ASKED_ATTR="T: {float}" ASKED_KERNEL="T: half" expect 1 "Kernel for float16, but attr 'T' does not allow it" "$tare" ops --plugin "$plugins/asked.so"
ASKED_INPUT="in: T" expect 1 "Reference to unknown attr 'T' from Input(\"in: T\") for Op Foo (at character 5" "$tare" ops --plugin "$plugins/asked.so"
finish
