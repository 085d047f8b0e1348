#!/usr/bin/env bash
# tare convert on the bundled example: calibration from a file or from samples, algorithms by option, the JSON report, dry runs.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
samples=$glyphs/calibration.tfrecord.gz
place='tpu_functions { function_alias: "tpu_func" } '
batch='batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 allowed_batch_sizes: 2 allowed_batch_sizes: 4 allowed_batch_sizes: 8 } '
data="representative_datasets: { key: \"serving_default\" value: { tfrecord_file_path: \"$samples\" } }"
quantize() { echo "external_feature_configs { quantization_options { $1 } } "; }
convert() { # OUT OPTIONS FLAGS...
    local out=$1 options=$2
    shift 2
    "$tare" convert --quiet --overwrite --input_model_dir="$model" --output_model_dir="$out" --converter_options_string="$options" "$@" >/dev/null
}
same() { diff -rq "$1" "$2" >/dev/null; }

# A calibration file gives what its samples give.
"$tare" calibrate "$model" --data "$samples" -o "$work/glyphs.calib" --quiet || fail "calibrate: $?"
convert "$work/samples" "$place$(quantize "$data")" || fail "from samples: $?"
convert "$work/file" "$place$(quantize '')" --calibration "$work/glyphs.calib" --report "$work/int8.json" || fail "from a file: $?"
same "$work/samples" "$work/file" || fail "samples and calibration file give different models"

# Samples are warned of as by tare calibrate.
"$tare" dataset split "$samples" -o "$work/few" --count 3 >/dev/null 2>&1 || fail "split: $?"
few="representative_datasets: { key: \"serving_default\" value: { tfrecord_file_path: \"$work/few-00000-of-00002.tfrecord\" } }"
"$tare" convert --overwrite --input_model_dir="$model" --output_model_dir="$work/few_model" --converter_options_string="$place$(quantize "$few")" >/dev/null 2>"$work/err" ||
    fail "few samples: $(tail -1 "$work/err")"
"$tare" calibrate "$model" --data "$work/few-00000-of-00002.tfrecord" -o "$work/few.calib" 2>"$work/calibrate_err" || fail "calibrate few samples: $?"
grep -q "^tare: warning: only 3 records of signature 'serving_default'" "$work/err" || fail "no warning of few samples: $(cat "$work/err")"
[ "$(grep '^tare: warning: only' "$work/err")" = "$(grep '^tare: warning: only' "$work/calibrate_err")" ] || fail "convert and calibrate warn differently"

convert "$work/tagged" "$place$(quantize "$data tags: \"serve\"")" || fail "tags: $?"
same "$work/samples" "$work/tagged" || fail "tags of the only MetaGraph give another model"

# Another algorithm gives another model, from the same statistics.
percentile='calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_PERCENTILE }'
convert "$work/percentile" "$place$(quantize "$percentile")" --calibration "$work/glyphs.calib" || fail "percentile: $?"
same "$work/file" "$work/percentile" && fail "percentile gives the model of min_max"

# Dynamic range computes no float64 on the TPU, its zero points are scaling as well, and the activations that it quantizes may be
# bfloat16: one note for all layers, no warning.
"$tare" convert --overwrite --input_model_dir="$model" --output_model_dir="$work/dynamic" --report "$work/dynamic.json" --converter_options_string="$place$(quantize \
    'quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } signature_keys: "serving_default" ')" >/dev/null 2>"$work/err" || fail "dynamic: $(cat "$work/err")"
[ "$(grep -c 'stays* float32: the value scales or rounds quantized values' "$work/err")" = 1 ] || fail "dynamic: $(cat "$work/err")"
grep -q 'float64\|becomes an integer' "$work/err" && fail "dynamic: $(cat "$work/err")"
grep -q '"op": "Relu"' "$work/dynamic.json" && fail "dynamic: activations stay float32"

# Batches of int8 convolutions are rounded up to 32 rows by the compiler: other sizes are named, of a float model not.
advice() { "$tare" convert --overwrite --input_model_dir="$model" --output_model_dir="$work/advised" --converter_options_string="$1" "${@:2}" 2>&1 | grep -F 'rounds the batch of a convolution of 8 bits up to 32 rows'; }
advice "$place$batch$(quantize '')" --calibration "$work/glyphs.calib" | grep -F 'the model has 6: batches of 2, 4, 8 take as long there as the next multiple of 32' >/dev/null || fail "no advice on batches: $(advice "$place$batch$(quantize '')" --calibration "$work/glyphs.calib")"
[ -z "$(advice "$place$batch")" ] || fail "advice on the batches of a float model"
[ -z "$(advice "$place${batch//8/32} $(quantize '')" --calibration "$work/glyphs.calib" | grep -F '32,')" ] || fail "32 is a multiple of 32"

# Tags: servers with TPUs look for serve and tpu. What has no part on the TPU keeps its own, and so does a converted model.
tags() { "$tare" inspect "$1" 2>/dev/null | sed -n 's/^  tags *//p'; }
expect_tags() { # OUT EXPECTED OPTIONS FLAGS...
    convert "$1" "$3" "${@:4}" || fail "$1: $?"
    [ "$(tags "$1")" = "$2" ] || fail "$1: tags '$(tags "$1")' (expected '$2')"
}
expect_tags "$work/tpu" serve,tpu "$place"
expect_tags "$work/plain" serve "$place" --tags serve
expect_tags "$work/others" serve,gpu "$place" --tags serve,gpu
expect_tags "$work/none" '(none)' "$place" --tags ''
expect_tags "$work/on_cpu" serve "disable_default_optimizations: true" --tpu_functions named
expect_tags "$work/batched" serve "disable_default_optimizations: true ${batch%\} }experimental { function_alias: \"tpu_func\" } }" --tpu_functions named
model=$work/tpu expect_tags "$work/again" serve,tpu "$batch"
"$tare" validate "$work/tpu" >/dev/null || fail "validate: $?"
"$tare" run "$work/tpu" --data "$samples" --limit 2 --quiet >/dev/null || fail "run: $?"
"$tare" compare "$model" --with "$work/tpu" --data "$samples" --limit 2 --quiet >/dev/null || fail "compare: $?"
"$tare" copy "$work/tpu" "$work/copy" >/dev/null && [ "$(tags "$work/copy")" = serve,tpu ] || fail "copy: tags '$(tags "$work/copy")'"

# The report.
convert "$work/float" "$place$batch" --report "$work/float.json" || fail "float: $?"
value() { # FILE PATH...: one number or word, by the keys on the way
    local file=$1
    shift
    awk -v path="$*" 'BEGIN { n = split(path, want, " "); at = 1 }
        at <= n && index($0, "\"" want[at] "\":") { if (at == n) { sub(/^[^:]*: */, ""); gsub(/[",]/, ""); print; exit } at++ }' "$file"
}
before=$(value "$work/int8.json" hbm before weights) after=$(value "$work/int8.json" hbm after weights)
[ -n "$before" ] && [ "$after" -gt 0 ] && [ "$after" -lt "$before" ] || fail "int8 weights: $after bytes (before: $before)"
[ "$(value "$work/int8.json" functions int8_macs)" -gt 1000000 ] || fail "no int8 products: $(value "$work/int8.json" functions int8_macs)"
[ "$(value "$work/float.json" functions int8_macs)" = 0 ] || fail "the float model has int8 products"
[ "$(value "$work/float.json" full_batch)" = 8 ] || fail "largest batch: $(value "$work/float.json" full_batch)"
one=$(value "$work/float.json" functions host_bytes in) full=$(value "$work/float.json" functions host_bytes_full_batch in)
[ "$one" -gt 0 ] && [ "$full" -gt "$one" ] || fail "host bytes: $one for a row, $full for a batch"
[ "$(value "$work/float.json" batching padding mean_padding_rows)" = 0.5 ] || fail "rows of padding to 2: $(value "$work/float.json" batching padding mean_padding_rows)"
grep -q '"chip": "v5e"' "$work/float.json" || fail "no v5e"
grep -q '"changes": [1-9]' <<<"$(grep -A1 '"pass": "freeze"' "$work/int8.json")" || fail "freezing changed nothing"
grep -q '"changes": 1' <<<"$(grep -A1 '"pass": "batch_inserted"' "$work/float.json")" || fail "no batcher was counted"

# A dry run writes nothing, but the report.
convert "$work/dry" "$place" --dry-run --report "$work/dry.json" || fail "dry run: $?"
absent "$work/dry"
[ -s "$work/dry.json" ] || fail "the dry run wrote no report"

run() { "$tare" convert --input_model_dir="$model" "$@"; }
expect 2 "--output_model_dir is missing (or give OUT, or --dry-run)" run
expect 2 "--calibration and representative_datasets are mutually exclusive" run --dry-run --calibration "$work/glyphs.calib" \
    --converter_options_string="$place$(quantize "$data")"
expect 1 "Failed to retrieve MetaGraphDef with tags {'serve', 'tpu'} from a SavedModel in $model." \
    run --dry-run --converter_options_string="$place$(quantize "$data tags: \"serve\" tags: \"tpu\"")"
expect 1 "missing.calib" run --dry-run --calibration "$work/missing.calib" --converter_options_string="$place$(quantize '')"
# A float model is folded; with variables kept it is not, and that is said. The answers are the same to rounding.
"$tare" convert "$model" "$work/folded" >/dev/null 2>"$work/err" || fail "convert: $?"
grep -q 'batch normalization' "$work/err" && fail "a folded model has a note of batch normalizations"
"$tare" convert "$model" "$work/kept" --keep-variables >/dev/null 2>"$work/err" || fail "convert with variables: $?"
grep -q 'tare: [0-9]* batch normalizations are not folded because variables stay' "$work/err" || fail "nothing is said of unfolded norms: $(cat "$work/err")"
variables() { "$tare" inspect "$1" --json | python3 -c "import json, sys; print(len(json.load(sys.stdin)[\"variables\"]))"; }
[ "$(variables "$work/folded")" = 0 ] || fail "a folded model has variables"
[ "$(variables "$work/kept")" -gt 0 ] || fail "--keep-variables keeps none"

finish
