#!/usr/bin/env bash
# Functions that each call the next one twice, 40 levels deep: 2^40 call paths in 41 functions. Every analysis visits a function
# once, so commands that do not run the model end in seconds; running it is stopped by --max-seconds.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
hostile() { "$TARE_TEST_HELPERS/hostile_model" "$@" || fail "hostile_model $*"; }
cd "$work" || exit 1
hostile calls deep 40
"$TARE_TEST_HELPERS/op_model" samples x.tfrecord x 'float[1,4] 1 2 3 4' 3
limit=60
! sanitized || limit=600
good() { # good COMMAND…: succeeds within the time and 1 GB of memory
    timeout -k 1 $limit "$tare" --max-memory 1GB "$@" >stdout 2>stderr </dev/null || fail "$*: status $?: $(tail -1 stderr)"
}
good inspect deep
good inspect deep --json
good inspect deep --ops
good inspect deep --suggest
grep -q 'signature_name: "serving_default"' stdout || fail "inspect --suggest finds nothing: $(tail -2 stdout)"
good validate deep
good copy deep copied
good diff deep copied
good quantize deep weights --method weight_only --min-elements 1
good quantize deep dynamic --method dynamic --min-elements 1
good convert deep converted --report converted.json
good validate converted
good diff deep weights
expired() {
    local status=0
    timeout -k 1 60 "$tare" "$@" --max-seconds 0.5 --max-memory 1GB >stdout 2>stderr </dev/null || status=$?
    [ $status -eq 130 ] || fail "$*: status $status (expected 130): $(tail -1 stderr)"
}
expired run deep --data x.tfrecord
expired calibrate deep --data x.tfrecord -o out.calib
expired compare deep --data x.tfrecord
expired quantize deep static --data x.tfrecord
absent out.calib
absent static

# what is visited once is counted as often as it is called
for depth in 3 5; do
    hostile calls small$depth $depth
    good convert small$depth tpu$depth --report report$depth.json
done
nodes() { python3 -c 'import json, sys; print([op["nodes"] for op in json.load(open(sys.argv[1]))["ops"] if op["op"] == "MatMul"])' "$1"; }
if command -v python3 >/dev/null; then
    [ "$(nodes report3.json)" = "[8]" ] || fail "MatMul of depth 3: $(nodes report3.json) (expected 8)"
    [ "$(nodes report5.json)" = "[32]" ] || fail "MatMul of depth 5: $(nodes report5.json) (expected 32)"
    [ "$(nodes converted.json)" = "[1099511627776]" ] || fail "MatMul of depth 40: $(nodes converted.json) (expected 2^40)"
fi

# A small stack (ulimit -s) is an error of its own, of every analysis, not a property of the model.
if ! sanitized; then
    hostile calls chain 500
    small() { expect 1 "functions nest too deep for the stack of this thread (" timeout -k 1 60 bash -c 'ulimit -s "$1"; exec "${@:2}"' - "$@"; }
    small 192 "$tare" inspect chain --json
    small 96 "$tare" unwrap "$source_dir/tests/golden/stablehlo/ops_deep_calls.mlirbc" unwrapped
    absent unwrapped
    good validate chain
fi
finish
