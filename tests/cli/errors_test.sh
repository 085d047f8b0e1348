#!/usr/bin/env bash
# What goes wrong gives one clear line, exit status 1 or 2, and leaves nothing behind.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
out=$work/out
data=$glyphs/calibration.tfrecord.gz

# usage
expect 2 "unknown command 'inspekt' (did you mean 'inspect'?)" "$tare" inspekt
expect 2 "environment variable TARE_CPU: unknown level 'AVX2' (expected plain, neon, avx2" env TARE_CPU=AVX2 "$tare" version
expect 2 "did you mean" "$tare" inspect "$glyphs/saved_model" --varables
expect 2 "--input_model_dir" "$tare" convert --output_model_dir="$out"
expect 2 "needs input (give --input image=FILE.npy" "$tare" run "$glyphs/saved_model"
expect 2 "--data and --input are mutually exclusive" "$tare" run "$glyphs/saved_model" --data "$data" --input image=x.npy
expect 2 "static quantization needs representative samples" "$tare" quantize "$glyphs/saved_model" "$out"
expect 2 "an accuracy pass needs representative samples" "$tare" quantize "$glyphs/saved_model" "$out" --method dynamic --passes equalization
expect 2 "unknown method 'statik' (did you mean 'static'?)" "$tare" compare "$glyphs/saved_model" --data "$data" --methods float,statik
expect 2 "option '--eval' has no effect without --max-drop or --min-sqnr or --max-mae or --max-size" "$tare" quantize "$glyphs/saved_model" "$out" --data "$data" --eval "$data"
expect 2 "option '--label' has no effect without --eval or --auto" "$tare" quantize "$glyphs/saved_model" "$out" --data "$data" --label none
expect 2 "option '--worst' has no effect without --write-recipe" "$tare" compare "$glyphs/saved_model" --data "$data" --worst 3
expect 2 "option '--sensitivity-limit' has no effect without --sensitivity or --write-recipe" "$tare" compare "$glyphs/saved_model" --data "$data" --sensitivity-limit 3
printf 'job { model: "%s" method: "weight_only" output: "%s" }\n' "$glyphs/saved_model" "$out" >"$work/jobs.textproto"
expect 2 "option '--label' has no effect without --output-dir" "$tare" batch "$work/jobs.textproto" --label none
expect 2 "--methods and --output-dir are for a folder of models, and '$work/jobs.textproto' is none" "$tare" batch "$work/jobs.textproto" --methods static
"$tare" quantize "$glyphs/saved_model" "$out" --method weight_only --data "$work/none.tfrecord" --dry-run --quiet 2>"$work/stderr" || fail "weight_only with data: $(cat "$work/stderr")"
grep -q "warning: --data only checks the result: neither the method nor a rule" "$work/stderr" || fail "unused data: $(cat "$work/stderr")"

# ... before the model is read, where it cannot change the answer
none=$work/nowhere
touch "$work/a.calib" "$work/a.tfrecord"
both=(--calibration "$work/a.calib" --data "$work/a.tfrecord")
for command in quantize convert; do
    expect 2 "--calibration and --data are mutually exclusive" "$tare" $command "$none" "$out" --method static "${both[@]}"
    expect 2 "an accuracy pass needs representative samples" "$tare" $command "$none" "$out" --passes gptq
    expect 1 "the output '$work/a.tfrecord' is the input" "$tare" $command "$none" "$out" --data "$work/a.tfrecord" --write-recipe "$work/a.tfrecord"
    expect 1 "cannot create '$work/no/recipe'" "$tare" $command "$none" "$out" --data "$work/a.tfrecord" --write-recipe "$work/no/recipe"
done
expect 2 "--auto needs representative samples" "$tare" quantize "$none" "$out" --auto
expect 2 "--algorithms: unknown algorithm 'entropie' (did you mean 'entropy'?)" "$tare" compare "$none" --data "$data" --methods weight_only --algorithms entropie
expect 2 "--input a is given twice" "$tare" run "$none" --input a=1.npy --input a=2.npy
expect 2 "--output a is given twice" "$tare" run "$none" --output a --output a
expect 2 "--spec: applies to --data" "$tare" run "$none" --input a=1.npy --spec none
expect 1 "cannot create '$work/no/m': folder '$work/no' does not exist" "$tare" export "$none" "$work/no/m"
expect 2 "VHLO version '99.0.0' (expected 1.1.0 to 1.20.0)" "$tare" export "$none" "$out" --vhlo-version 99.0.0
for shape in image=a =1 image=1,-2; do
    expect 2 "--shape $shape: expected INPUT=SIZE,SIZE" "$tare" export "$none" "$out" --shape $shape
    expect 2 "--shape $shape: expected INPUT=SIZE,SIZE" "$tare" check "$none" --shape $shape
done
for option in max-drop min-sqnr max-mae max-size; do
    for command in quantize convert; do
        expect 2 "is 'zz' (expected " "$tare" $command "$none" "$out" --data "$data" --eval "$data" --$option zz
    done
done
expect 2 "--feedback: input b is given twice" "$tare" run "$none" --data "$data" --feedback a=b --feedback c=b
expect 2 "--feedback and --sample are mutually exclusive" "$tare" calibrate "$none" --data "$data" -o "$work/no.calib" --feedback a=b --sample 3
expect 2 "--sample and --limit are mutually exclusive" "$tare" calibrate "$none" --data "$data" -o "$work/no.calib" --limit 5 --sample 3
expect 1 "format fp8_e4m3 exists in the op set xla only" "$tare" quantize "$none" "$out" --data "$data" --format fp8_e4m3 --op-set tf
expect 1 "quantization changes the module" "$tare" convert "$none" "$out" --data "$data" --keep-module
expect 1 "num_cores_per_replica is 2, which needs a topology" "$tare" convert "$none" "$out" \
    --converter_options_string 'xla_sharding_options { num_cores_per_replica: 2 }'
# ... of every option whose value is not a name, a file or a folder
. <("$tare" completion bash)
names=" --float --function --graph --label --output --sequence --signature --tags --target --with "
tried=0
for command in auto inspect run calibrate quantize convert compare check export unwrap validate; do
    arguments=("$none")
    case $command in auto | quantize | convert | export | unwrap) arguments+=("$out") ;; esac
    case $command in auto | run | compare) arguments+=(--data "$data") ;; calibrate) arguments+=(--data "$data" -o "$work/no.calib") ;; esac
    for option in $(_tare_options $command); do
        case $(_tare_value "$command $option") in '' | :files | :folders) continue ;; esac
        [[ $names != *" $option "* ]] || continue
        expect 2 zz "$tare" $command "${arguments[@]}" $option zz
        tried=$((tried + 1))
    done
done
[ $tried -gt 100 ] || fail "only $tried options were tried"

# paths
expect 1 "no such directory" "$tare" inspect "$work/nowhere"
mkdir "$work/empty"
expect 1 "not a SavedModel" "$tare" inspect "$work/empty"
expect 1 "nowhere.tfrecord" "$tare" run "$glyphs/saved_model" --data "$work/nowhere.tfrecord"
mkdir "$work/exists"; touch "$work/exists/file"
expect 1 "Output directory already exists" "$tare" quantize "$glyphs/saved_model" "$work/exists" --data "$data" --quiet

# a truncated checkpoint
cp -r "$glyphs/saved_model" "$work/cut"
truncate -s 1000 "$work/cut/variables/variables.data-00000-of-00001"
expect 1 "is truncated" "$tare" quantize "$work/cut" "$out" --data "$data"
absent "$out"
cp -r "$glyphs/saved_model" "$work/cut_index"
truncate -s -1 "$work/cut_index/variables/variables.index"
expect 1 "variables.index" "$tare" inspect "$work/cut_index"

# a changed byte in the checkpoint
cp -r "$glyphs/saved_model" "$work/changed"
printf 'X' | dd of="$work/changed/variables/variables.data-00000-of-00001" bs=1 seek=5000 conv=notrunc status=none
expect 1 "Checksum does not match" "$tare" quantize "$work/changed" "$out" --data "$data"
absent "$out"

# a truncated saved_model.pb
cp -r "$glyphs/saved_model" "$work/cut_model"
truncate -s 20000 "$work/cut_model/saved_model.pb"
expect 1 "saved_model.pb" "$tare" inspect "$work/cut_model"

# corrupt and truncated records: file, record and byte
gzip -dc "$data" >"$work/samples.tfrecord"
size=$(($(wc -c <"$work/samples.tfrecord") / 300))
cp "$work/samples.tfrecord" "$work/corrupt.tfrecord"
printf 'XXXX' | dd of="$work/corrupt.tfrecord" bs=1 seek=$((size * 17 + 500)) conv=notrunc status=none
expect 1 "corrupt.tfrecord: record 17: corrupted record at $((size * 17))" \
    "$tare" quantize "$glyphs/saved_model" "$out" --data "$work/corrupt.tfrecord"
absent "$out"
head -c $((size * 3 + 100)) "$work/samples.tfrecord" >"$work/short.tfrecord"
expect 1 "record 3: truncated record at $((size * 3))" "$tare" run "$glyphs/saved_model" --data "$work/short.tfrecord" --output-dir "$work/answers"
absent "$work/answers/probabilities.npy"
echo "this is no TFRecord file, only text" >"$work/text.tfrecord"
expect 1 "(Is this even a TFRecord file?)" "$tare" run "$glyphs/saved_model" --data "$work/text.tfrecord"

# standard output that cannot be written, also where the text is longer than the buffer and nothing is left at the end
if [ -w /dev/full ]; then
    full() { "$@" >/dev/full; }
    expect 1 "standard output: cannot be written" full "$tare" version
    "$tare" calibrate "$glyphs/saved_model" --data "$data" -o "$work/full.calib" --quiet
    for parts in "show $work/full.calib" "show $work/full.calib --json" "inspect $glyphs/saved_model --json" ops; do
        expect 1 "standard output: cannot be written" full "$tare" $parts
    done
fi

# converter options
convert() { "$tare" convert --input_model_dir="$glyphs/saved_model" --output_model_dir="$out" --converter_options_string="$1"; }
expect 1 'function_alias "my_func" does not exist (known aliases: "tpu_func")' convert 'tpu_functions { function_alias: "my_func" }'
absent "$out"
expect 1 'signature_name "other" does not exist (known signatures: "serving_default")' convert 'tpu_functions { signature_name: "other" }'
expect 1 "tpu_functions" convert 'tpu_function { function_alias: "tpu_func" }'
expect 1 "is given twice" convert 'tpu_functions { function_alias: "tpu_func" } tpu_functions { concrete_function_name: "__inference_tpu_func_101" }'
expect 1 "monotonically increasing" convert 'tpu_functions { function_alias: "tpu_func" } batch_options { num_batch_threads: 1 max_batch_size: 8 batch_timeout_micros: 100 allowed_batch_sizes: 4 allowed_batch_sizes: 2 }'
absent "$out"

# a key of --label that no record has, also where it is that of an output
for label in class probabilities; do
    expect 1 "--label $label: no record has this key" "$tare" compare "$glyphs/saved_model" --data "$data" --methods weight_only --label $label --quiet
    expect 1 "--label $label: no record has this key" "$tare" quantize "$glyphs/saved_model" "$out" --method weight_only --max-drop 1 \
        --eval "$data" --label $label --quiet
done
absent "$out"
# samples that nothing uses are named, also where the file does not exist
for option in "calibration|--calibration is" "calibration-data|the samples are"; do
    said=${option#*|} option=${option%|*}
    "$tare" compare "$glyphs/saved_model" --data "$data" --methods weight_only --limit 5 --$option nothing --quiet >"$work/log" 2>&1 || fail "--$option: $?"
    grep -q "warning: $said not used: no method of the comparison needs activation ranges" "$work/log" || fail "--$option: $(cat "$work/log")"
done

# a node whose name TensorFlow refuses: no model is written with it
mkdir "$work/named"
cat >"$work/named/saved_model.pbtxt" <<'MODEL'
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    node { name: "my node \303\251" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "y" op: "Neg" input: "my node \303\251" attr { key: "T" value { type: DT_FLOAT } } }
    versions { producer: 1395 }
  }
  signature_def { key: "serving_default" value { method_name: "tensorflow/serving/predict"
    inputs { key: "x" value { name: "my node \303\251:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } }
    outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } } } }
}
MODEL
name="node 'my node é': TensorFlow refuses the name"
expect 1 "$work/named: $name" "$tare" copy "$work/named" "$out"
expect 1 "$out: $name" "$tare" quantize "$work/named" "$out" --method float --quiet
absent "$out"
sed -i 's/my node \\303\\251/my_node/' "$work/named/saved_model.pbtxt"
"$tare" copy "$work/named" "$work/renamed" || fail "a node that was renamed is refused"

# signatures
quantize_with() { convert "tpu_functions { function_alias: \"tpu_func\" } external_feature_configs { quantization_options { signature_keys: \"servin\" $1 } }"; }
expect 1 "signature_keys: $glyphs/saved_model: there is no signature 'servin' (the model has serving_default)" \
    quantize_with 'quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 }'
"$tare" calibrate "$glyphs/saved_model" --data "$data" -o "$work/signature.calib" --quiet
expect 1 "signature_keys: $glyphs/saved_model: there is no signature 'servin'" "$tare" convert "$glyphs/saved_model" "$out" \
    --calibration "$work/signature.calib" --converter_options_string 'external_feature_configs { quantization_options { signature_keys: "servin" } }'
absent "$out"
expect 1 "there is no signature 'predict' (the model has serving_default)" "$tare" run "$glyphs/saved_model" --signature predict --data "$data"
finish
