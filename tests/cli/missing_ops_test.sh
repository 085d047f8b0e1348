#!/usr/bin/env bash
# Ops that nothing runs: every command that runs a model stops before it does, lists all that is missing and where it is
# used, and names the option that loads it; with the library it runs.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
everything=$TARE_TEST_PLUGINS/everything.so
cd "$work" || exit 1
op_model() { "$TARE_TEST_HELPERS/op_model" "$@" || fail "op_model $*"; }
op_model chain gaps "$everything" SquareInRanges OnlyDefined / SquareInRanges SquareInRanges SquareInRanges Meet
op_model chain whole "$everything" SquareInRanges / SquareInRanges
op_model array x.npy 'float[2,2] 1 2 3 4'
op_model samples x.tfrecord x 'float[1,2] 1 2' 3

missing='gaps: 3 ops cannot be run; load them with --plugin LIB.so: Meet: used by inner/Meet; OnlyDefined: used by OnlyDefined; SquareInRanges: used by SquareInRanges, inner/SquareInRanges, inner/SquareInRanges_1 and 1 more'
for command in "run gaps --input x=x.npy --output-dir out" "run gaps --data x.tfrecord --output-dir out" \
    "calibrate gaps --data x.tfrecord -o x.calib" "compare gaps --data x.tfrecord --calibration-data x.tfrecord" "compare gaps --data x.tfrecord --methods float" "quantize gaps out --data x.tfrecord"; do
    # shellcheck disable=SC2086
    expect 1 "$missing" "$tare" $command
    absent out
    absent x.calib
done
"$tare" inspect gaps >text || fail "inspect: $(cat text)"
grep -q "interpreter lacks: 3" text || fail "inspect: $(cat text)"
grep -qx "OnlyDefined: used by OnlyDefined" text || fail "inspect: $(cat text)"

"$tare" calibrate gaps --data x.tfrecord -o x.calib 2>err
grep -q '^tare: gaps: 3 ops' err || fail "calibrate: the path is not printed once: $(cat err)"

# the library brings all but the one that it only defines
missing='gaps: 1 op cannot be run; load it with --plugin LIB.so: OnlyDefined: used by OnlyDefined'
expect 1 "$missing" "$tare" run gaps --input x=x.npy --plugin "$everything"
expect 1 "$missing" "$tare" calibrate gaps --data x.tfrecord -o x.calib --plugin "$everything"

# with it, every command runs: (x²)²
[ "$("$tare" run whole --input x=x.npy --plugin "$everything" 2>&1)" = "y float32[2,2] 1 16 81 256" ] ||
    fail "run: $("$tare" run whole --input x=x.npy --plugin "$everything" 2>&1)"
"$tare" calibrate whole --data x.tfrecord -o x.calib --quiet --plugin "$everything" || fail "calibrate"
"$tare" compare whole --data x.tfrecord --methods float --plugin "$everything" >text || fail "compare"
"$tare" quantize whole quantized --data x.tfrecord --quiet --allow-unquantized --plugin "$everything" || fail "quantize"
[ "$("$tare" run quantized --input x=x.npy --plugin "$everything" 2>/dev/null)" = "y float32[2,2] 1 16 81 256" ] || fail "run quantized"
# the same around a quantized op, layer by layer
op_model chain layers "$everything" SquareInRanges MatMul SquareInRanges
"$tare" compare layers --data x.tfrecord --calibration-data x.tfrecord --sensitivity --quiet --plugin "$everything" >text 2>&1 ||
    fail "compare --sensitivity: $(cat text)"
grep -q "^static " text || fail "compare --sensitivity: $(cat text)"

# jobs inherit the library
cat >jobs.textproto <<JOBS
job { model: "layers" name: "float" method: "static" data: "x.tfrecord" evaluation: "x.tfrecord" output: "made" }
JOBS
"$tare" batch jobs.textproto --quiet --plugin "$everything" >text 2>&1 || fail "batch: $(cat text) $(cat jobs.textproto.state/*.json)"
[ -f made/saved_model.pb ] || fail "batch wrote no model: $(cat text)"
"$tare" diff layers made --plugin "$everything" >text 2>&1 || fail "diff: $(cat text)"
"$tare" batch jobs.textproto --quiet --overwrite >text 2>&1 && fail "batch without the library succeeds"
grep -q "SquareInRanges: used by SquareInRanges" text jobs.textproto.state/* || fail "batch does not say what is missing: $(cat text)"

convert=("$tare" convert --input_model_dir=whole --output_model_dir=converted --quiet --plugin "$everything"
    --converter_options_string='tpu_functions { concrete_function_name: "inner" }')
expect 1 "'tf.SquareInRanges' op isn't compilable for TPU device" "${convert[@]}"
absent converted
"${convert[@]}" --allow-incompatible >text 2>&1 || fail "convert: $(cat text)"
[ "$("$tare" run converted --input x=x.npy --plugin "$everything" 2>/dev/null)" = "y float32[2,2] 1 16 81 256" ] || fail "run converted"

# Tokenizers of TensorFlow Text, which nothing here computes: the network behind them is placed and quantized.
tokenizers=$source_dir/tests/golden/saved_models/tokenizers
op_model array text.npy 'float[1] 1'
for command in "run $tokenizers --input text=text.npy" "calibrate $tokenizers --data x.tfrecord -o x.calib" "compare $tokenizers --data x.tfrecord --methods float"; do
    # shellcheck disable=SC2086
    expect 1 "tokenizers: 1 op cannot be run; load it with --plugin LIB.so: FastWordpieceTokenizeWithOffsets: used by" "$tare" $command
done
expect 1 "SentencepieceTokenizeOp: used by" "$tare" run "$tokenizers" --signature sentences --input text=text.npy
for form in "placed convert" "aliased convert --converter_options_string=tpu_functions{function_alias:\"tpu_func\"}" \
    "small quantize --method weight_only --min-elements 1" "small_tf quantize --method dynamic --op-set tf --min-elements 1"; do
    # shellcheck disable=SC2086
    set -- $form
    "$tare" "$2" "$tokenizers" "$1" --quiet "${@:3}" >text 2>&1 || fail "$form: $(cat text)"
    "$tare" inspect "$1" --ops >text 2>&1 || fail "inspect $1: $(cat text)"
    [ "$2" != convert ] || grep -qw TPUPartitionedCall text || fail "$1: nothing is placed: $(cat text)"
    "$tare" validate "$1" >text 2>&1
    [ "$(grep -v ": unknown op$" text | grep -vc violations)" = 0 ] || fail "validate $1: $(cat text)"
    [ "$(grep -c ": unknown op$" text)" = 2 ] || fail "validate $1: $(cat text)"
done

# an attribute of the library's op with a value of another kind is an error when the model is opened
mkdir wrong
cat >wrong/saved_model.pbtxt <<'MODEL'
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "SquareInRanges" input: "x" attr { key: "chunk" value { s: "1000" } } }
    versions { producer: 1 }
  }
  signature_def {
    key: "serving_default"
    value {
      inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT } }
      outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT } }
      method_name: "tensorflow/serving/predict"
    }
  }
}
MODEL
rm -f x.calib
fault="AttrValue had value with type 'string' when 'int' expected"
for command in "inspect wrong" "run wrong --input x=x.npy" "quantize wrong out --method weight_only" "convert wrong out" \
    "calibrate wrong --data x.tfrecord -o x.calib"; do
    # shellcheck disable=SC2086
    expect 1 "$fault" "$tare" $command --plugin "$everything"
    absent out
    absent x.calib
done
"$tare" validate wrong --plugin "$everything" >text 2>&1 && fail "validate accepts an attribute of the wrong kind"
grep -qF "$fault" text || fail "validate: $(cat text)"
sed -i 's/s: "1000"/i: 1000/' wrong/saved_model.pbtxt
[ "$("$tare" run wrong --input x=x.npy --plugin "$everything" 2>/dev/null)" = "y float32[2,2] 1 4 9 16" ] || fail "the right kind: $?"
finish
