/* Converter options from text. */
#include "convert/options.h"
#include "convert/quantization_options.h"
#include "proto/message.h"
#include "proto/tare/converter_options.pb-c.h"
#include "proto/text_format.h"

#include <string.h>

/* ---- functions ---- */

static tare_status read_function(struct tare_tpu_choice *out, const Tare__TpuFunction *message) {
    switch (message->name_case) {
    case TARE__TPU_FUNCTION__NAME_FUNCTION_ALIAS:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_ALIAS, message->function_alias };
        return TARE_OK;
    case TARE__TPU_FUNCTION__NAME_CONCRETE_FUNCTION_NAME:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_CONCRETE, message->concrete_function_name };
        return TARE_OK;
    case TARE__TPU_FUNCTION__NAME_SIGNATURE_NAME:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_SIGNATURE, message->signature_name };
        return TARE_OK;
    case TARE__TPU_FUNCTION__NAME_JIT_COMPILE_FUNCTIONS:
        if (!message->jit_compile_functions) break;
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_JIT, NULL };
        return TARE_OK;
    default:
        break;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "tpu_functions: an entry names no function (expected function_alias, "
                                            "concrete_function_name, signature_name or jit_compile_functions: true)");
}

static tare_status read_xla_function(struct tare_tpu_choice *out, const Tare__XlaFunctionSpec *message) {
    if (message->device_type != TARE__XLA_FUNCTION_SPEC__DEVICE_TYPE__TPU)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "xla_functions: device_type is %s (expected TPU: tare converts for Cloud TPUs)",
                         message->device_type ? "GPU" : "not set");
    switch (message->function_spec_case) {
    case TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_FUNCTION_ALIAS:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_ALIAS, message->function_alias };
        return TARE_OK;
    case TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_CONCRETE_FUNCTION_NAME:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_CONCRETE, message->concrete_function_name };
        return TARE_OK;
    case TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_SIGNATURE_NAME:
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_SIGNATURE, message->signature_name };
        return TARE_OK;
    case TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_JIT_COMPILE_FUNCTIONS:
        if (!message->jit_compile_functions) break;
        *out = (struct tare_tpu_choice){ TARE_TPU_BY_JIT, NULL };
        return TARE_OK;
    default:
        break;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "xla_functions: an entry names no function (expected function_alias, "
                                            "concrete_function_name, signature_name or jit_compile_functions: true)");
}

static tare_status read_functions(struct tare_converter_options *out, struct tare_arena *arena,
                                  const Tare__ConverterOptions *message) {
    out->functions =
        TARE_NEW_ARRAY(arena, struct tare_tpu_choice, message->n_tpu_functions + message->n_xla_functions + 1);
    if (!out->functions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_tpu_functions; i++)
        TARE_TRY(read_function(&out->functions[i], message->tpu_functions[i]));
    out->n_functions = message->n_tpu_functions;
    for (size_t i = 0; i < message->n_xla_functions; i++)
        TARE_TRY(read_xla_function(&out->functions[out->n_functions++], message->xla_functions[i]));
    return TARE_OK;
}

/* ---- batching ---- */

static tare_status check_sizes(const struct tare_batch_options *batch) {
    for (size_t i = 0; i < batch->n_allowed; i++) {
        int64_t size = batch->allowed_batch_sizes[i];
        if (size < 1 || (i && size <= batch->allowed_batch_sizes[i - 1]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "batch_options: allowed_batch_sizes entries must be monotonically increasing (got %lld)",
                             (long long)size);
    }
    if (!batch->n_allowed) return TARE_OK;
    int64_t last = batch->allowed_batch_sizes[batch->n_allowed - 1];
    if (batch->disable_large_batch_splitting && last != batch->max_batch_size)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "batch_options: final entry in allowed_batch_sizes must equal max_batch_size when "
                         "enable_large_batch_splitting is False (got %lld, %d)",
                         (long long)last, batch->max_batch_size);
    if (last > batch->max_batch_size)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "batch_options: final entry in allowed_batch_sizes must be at most max_batch_size (got %lld, %d)",
            (long long)last, batch->max_batch_size);
    return TARE_OK;
}

static void read_component(struct tare_batch_options *out, const Tare__BatchOptions__Experimental *component) {
    if (!component) return;
    switch (component->batch_component_case) {
    case TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_FUNCTION_ALIAS:
        out->component = TARE_BATCH_ALIAS;
        out->name = component->function_alias;
        break;
    case TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_CONCRETE_FUNCTION_NAME:
        out->component = TARE_BATCH_CONCRETE;
        out->name = component->concrete_function_name;
        break;
    case TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_SIGNATURE_NAME:
        out->component = TARE_BATCH_SIGNATURE;
        out->name = component->signature_name;
        break;
    default:
        break;
    }
}

/* The fields of version 2, in the message itself. */
static tare_status read_own_component(struct tare_batch_options *out, const Tare__BatchOptions *message) {
    if (message->batch_component_case && message->experimental)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: the component is given twice, also in experimental");
    switch (message->batch_component_case) {
    case TARE__BATCH_OPTIONS__BATCH_COMPONENT_FUNCTION_ALIAS:
        out->component = TARE_BATCH_ALIAS;
        out->name = message->function_alias;
        break;
    case TARE__BATCH_OPTIONS__BATCH_COMPONENT_CONCRETE_FUNCTION_NAME:
        out->component = TARE_BATCH_CONCRETE;
        out->name = message->concrete_function_name;
        break;
    case TARE__BATCH_OPTIONS__BATCH_COMPONENT_SIGNATURE_NAME:
        out->component = TARE_BATCH_SIGNATURE;
        out->name = message->signature_name;
        break;
    default:
        break;
    }
    return TARE_OK;
}

/* The runtime's rules for individual numbers. */
static tare_status check_numbers(const struct tare_batch_options *batch) {
    if (batch->max_batch_size < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: max_batch_size must be positive (got %d)",
                         batch->max_batch_size);
    if (batch->num_batch_threads < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: num_batch_threads must be positive (got %d)",
                         batch->num_batch_threads);
    if (batch->batch_timeout_micros < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: batch_timeout_micros must be non-negative (got %d)",
                         batch->batch_timeout_micros);
    if (batch->max_enqueued_batches < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: max_enqueued_batches must be non-negative (got %d)",
                         batch->max_enqueued_batches);
    return TARE_OK;
}

static tare_status read_batch(struct tare_batch_options *out, struct tare_arena *arena,
                              const Tare__BatchOptions *message) {
    int64_t *sizes = TARE_NEW_ARRAY(arena, int64_t, message->n_allowed_batch_sizes + 1);
    if (!sizes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_allowed_batch_sizes; i++)
        sizes[i] = message->allowed_batch_sizes[i];
    *out = (struct tare_batch_options){
        .num_batch_threads = message->num_batch_threads,
        .max_batch_size = message->max_batch_size,
        .batch_timeout_micros = message->batch_timeout_micros,
        .max_enqueued_batches = message->max_enqueued_batches,
        .allowed_batch_sizes = sizes,
        .n_allowed = message->n_allowed_batch_sizes,
        .disable_large_batch_splitting = message->disable_large_batch_splitting,
    };
    read_component(out, message->experimental);
    TARE_TRY(read_own_component(out, message));
    TARE_TRY(check_numbers(out));
    return check_sizes(out);
}

static tare_status read_batches(struct tare_converter_options *out, struct tare_arena *arena,
                                const Tare__ConverterOptions *message) {
    out->batches = TARE_NEW_ARRAY(arena, struct tare_batch_options, message->n_batch_options + 1);
    if (!out->batches) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_batch_options; i++)
        TARE_TRY(read_batch(&out->batches[i], arena, message->batch_options[i]));
    out->n_batches = message->n_batch_options;
    return TARE_OK;
}

/* ---- optimizations ---- */

/* On by default, unless all defaults are off; an explicit state takes precedence. */
static bool resolve(Tare__ConverterOptions__State state, bool disable_defaults) {
    if (state == TARE__CONVERTER_OPTIONS__STATE__ENABLED) return true;
    return state == TARE__CONVERTER_OPTIONS__STATE__DEFAULT && !disable_defaults;
}

static tare_status read_bfloat16(struct tare_converter_options *out, const Tare__BFloat16OptimizationOptions *message) {
    if (!message) return TARE_OK;
    if (message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__GPU)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "bfloat16_optimization_options: scope is GPU (expected TPU or ALL: tare "
                         "converts for Cloud TPUs)");
    if (message->preserve_signature && message->scope != TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "bfloat16_optimization_options: preserve_signature requires scope ALL "
                                                "(with others, signatures keep their dtypes anyway)");
    if (message->enable_cast_outside && message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "bfloat16_optimization_options: enable_cast_outside excludes scope ALL");
    out->bfloat16_all = message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL;
    out->skip_safety_checks = message->skip_safety_checks;
    out->float_ops = (const char *const *)message->filterlist;
    out->n_float_ops = message->n_filterlist;
    return TARE_OK;
}

static tare_status read_sharding(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__XlaShardingOptions *message) {
    int64_t *devices;
    if (!message) return TARE_OK;
    devices = TARE_NEW_ARRAY(arena, int64_t, message->n_device_assignment + 1);
    if (!devices) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_device_assignment; i++)
        devices[i] = message->device_assignment[i];
    out->has_sharding = true;
    out->sharding = (struct tare_tpu_sharding){
        .num_cores_per_replica = message->num_cores_per_replica,
        .device_assignment = devices,
        .n_device_assignment = message->n_device_assignment,
        .topology = message->topology.data,
        .topology_size = message->topology.len,
    };
    return TARE_OK;
}

/* ---- features ---- */

static tare_status read_features(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__ConverterOptions *message, const struct tare_quant_plan *plan) {
    for (size_t i = 0; i < message->n_external_feature_configs; i++) {
        const Tare__ExternalFeatureConfig *feature = message->external_feature_configs[i];
        if (feature->feature_case != TARE__EXTERNAL_FEATURE_CONFIG__FEATURE_QUANTIZATION_OPTIONS) continue;
        if (out->has_quantization)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "external_feature_configs: quantization_options is given twice");
        out->has_quantization = true;
        TARE_TRY(tare_quantization_read(&out->quantization, arena, feature->quantization_options, plan));
        out->quantization.from_text = true;
    }
    return TARE_OK;
}

/* ---- all of it ---- */

tare_status tare_converter_options_parse(struct tare_converter_options *out, struct tare_arena *arena, const char *text,
                                         size_t size, const struct tare_quant_plan *plan) {
    ProtobufCMessage *parsed;
    const Tare__ConverterOptions *message;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_text_format_read(&parsed, &tare__converter_options__descriptor, arena, text, size, TARE_TEXT_RELAXED,
                                   "converter options"));
    message = (const Tare__ConverterOptions *)parsed;
    TARE_TRY(read_functions(out, arena, message));
    TARE_TRY(read_batches(out, arena, message));
    out->io_shapes = resolve(message->io_shape_optimization, message->disable_default_optimizations);
    out->bfloat16 = resolve(message->bfloat16_optimization, message->disable_default_optimizations);
    out->requests_bfloat16 = message->bfloat16_optimization == TARE__CONVERTER_OPTIONS__STATE__ENABLED;
    TARE_TRY(read_bfloat16(out, message->bfloat16_optimization_options));
    if (message->experimental_options &&
        message->experimental_options->graph_pruning == TARE__CONVERTER_OPTIONS__STATE__DISABLED)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "experimental_options: graph_pruning is DISABLED (expected ENABLED: "
                                                "functions that become unused are always removed)");
    TARE_TRY(read_sharding(out, arena, message->xla_sharding_options));
    return read_features(out, arena, message, plan);
}

tare_status tare_converter_options_quantize(struct tare_converter_options *out, struct tare_arena *arena,
                                            const struct tare_quant_plan *plan) {
    const Tensorflow__Quantization__QuantizationOptions none = TENSORFLOW__QUANTIZATION__QUANTIZATION_OPTIONS__INIT;
    if (out->has_quantization) return TARE_OK;
    out->has_quantization = true;
    return tare_quantization_read(&out->quantization, arena, &none, plan);
}
