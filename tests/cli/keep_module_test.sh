#!/usr/bin/env bash
# tare unwrap writes plain SavedModels; tare convert --keep-module keeps the bytes of a module inside the TPU function.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
modules=$source_dir/tests/golden/stablehlo
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1
"$helper" samples data.tfrecord arg0 'float[1,8] 1 -2 3 0.5 -0.25 2 0 1' 5 || fail "samples: $?"
mlp=$modules/mlp.mlirbc
outputs() { rm -rf "$1.out"; "$tare" run "$1" --data data.tfrecord --output-dir "$1.out" --quiet >/dev/null 2>err || fail "run $1: $(cat err)"; }
count() { "$tare" inspect "$1" --ops | awk -v op="$2" '$2 == op { print $1 }'; }
# same_module MODEL: the file of the model contains the bytes of the module.
same_module() {
    local at
    at=$(LC_ALL=C grep -obUaP '\x4d\x4c\xef\x52' "$1/saved_model.pb")
    [ -n "$at" ] && cmp -s -i "${at%%:*}:0" -n "$(wc -c <"$mlp")" "$1/saved_model.pb" "$mlp"
}
cp "$mlp" mlp
outputs mlp

"$tare" unwrap "$mlp" plain 2>err || fail "unwrap: $(cat err)"
grep -qx 'tare: replaced 1 XlaCallModule op; wrote plain' err || fail "unwrap: $(cat err)"
"$tare" validate plain >/dev/null || fail "the unwrapped model is not valid"
[ "$(count plain MatMul)" = 2 ] && [ -z "$(count plain XlaCallModule)" ] || fail "unwrap: $("$tare" inspect plain --ops)"
outputs plain
"$tare" diff mlp.out plain.out >/dev/null || fail "the unwrapped model has other outputs"
expect 1 'plain: the model has no XlaCallModule op' "$tare" unwrap plain again
absent again
"$tare" unwrap "$mlp" plain --overwrite --quiet 2>err && [ ! -s err ] || fail "unwrap --overwrite --quiet: $(cat err)"

# version 2 of the converter: a module in the filterlist keeps its dtype
"$tare" convert "$mlp" filtered --converter_options_string='bfloat16_optimization_options { filterlist: "XlaCallModule" }' \
    >/dev/null 2>err || fail "filterlist XlaCallModule: $(cat err)"
grep -qF "the filterlist names XlaCallModule: the computation of the model's modules stays float32" err || fail "filterlist: $(cat err)"
outputs filtered
"$tare" diff mlp.out filtered.out >/dev/null || fail "filterlist XlaCallModule: other outputs"
"$tare" convert "$mlp" rounded --quiet >/dev/null 2>err || fail "convert: $(cat err)"
[ -n "$(count rounded Cast)" ] && [ -z "$(count filtered Cast)" ] || fail "casts: '$(count rounded Cast)' and '$(count filtered Cast)'"

"$tare" convert "$mlp" kept --keep-module --quiet >/dev/null 2>err || fail "convert --keep-module: $(cat err)"
[ "$(count kept XlaCallModule)" = 1 ] && [ "$(count kept TPUPartitionedCall)" = 1 ] || fail "kept: $("$tare" inspect kept --ops)"
same_module kept || fail "the converted model has another module"
"$tare" validate kept >/dev/null || fail "the converted model is not valid"
outputs kept
"$tare" compare mlp --with kept --data data.tfrecord >compared 2>&1 || fail "compare --with kept: $(cat compared)"
"$tare" compare plain --with mlp --data data.tfrecord >compared 2>&1 || fail "compare --with a module: $(cat compared)"
"$tare" diff mlp.out kept.out >/dev/null || fail "the converted model has other outputs"
"$tare" copy kept copied 2>err && same_module copied && cmp -s kept/saved_model.pb copied/saved_model.pb || fail "a copy changes the module"
"$tare" convert --input_model_dir="$modules/exported.jaxexport" --output_model_dir=batched --keep-module --quiet --converter_options_string='
    tpu_functions { signature_name: "serving_default" } batch_options { num_batch_threads: 1 max_batch_size: 4
    batch_timeout_micros: 10 allowed_batch_sizes: 4 max_enqueued_batches: 2 }' >/dev/null 2>err || fail "batching: $(cat err)"
[ "$(count batched XlaCallModule)" = 1 ] && [ "$(count batched BatchFunction)" = 1 ] || fail "batched: $("$tare" inspect batched --ops)"

refused() { expect 1 "$1" "$tare" convert "$mlp" none --keep-module --quiet "${@:2}"; absent none; }
refused 'quantization changes the module' --converter_options_string='external_feature_configs { quantization_options { } }'
refused 'bfloat16_optimization changes the module' --converter_options_string='bfloat16_optimization: ENABLED'
refused 'xla_sharding_options changes the module' --converter_options_string='xla_sharding_options { num_cores_per_replica: 1 }'
expect 1 'the model has no XlaCallModule op (omit --keep-module)' "$tare" convert plain none --keep-module
expect 1 'the module was not exported for TPU' "$tare" convert "$modules/cpu.jaxexport" none --keep-module

# A module that cannot be replaced stays, too: neither bfloat16 nor the check of ops reaches it.
LC_ALL=C sed 's/Sharding/Shardinq/' "$modules/network.mlirbc" >unknown
"$tare" convert unknown stays >/dev/null 2>err || fail "convert a module with an unknown custom call: $(cat err)"
grep -q "^tare: warning: the StableHLO module of .* cannot be expanded: .*custom call 'Shardinq' is not supported ([^;]*); it stays a module, in float32" err ||
    fail "no warning that the module stays: $(cat err)"
finish
