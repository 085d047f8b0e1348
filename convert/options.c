/* Converter options from text. */
#include "convert/options.h"
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
    default: break;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "tpu_functions: an entry names no function (wanted function_alias, "
                                            "concrete_function_name, signature_name or jit_compile_functions: true)");
}

static tare_status read_functions(struct tare_converter_options *out, struct tare_arena *arena,
                                  const Tare__ConverterOptions *message) {
    out->functions = TARE_NEW_ARRAY(arena, struct tare_tpu_choice, message->n_tpu_functions + 1);
    if (!out->functions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_tpu_functions; i++)
        TARE_TRY(read_function(&out->functions[i], message->tpu_functions[i]));
    out->n_functions = message->n_tpu_functions;
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
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
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
    default: break;
    }
}

static tare_status read_batch(struct tare_batch_options *out, struct tare_arena *arena,
                              const Tare__BatchOptions *message) {
    int64_t *sizes = TARE_NEW_ARRAY(arena, int64_t, message->n_allowed_batch_sizes + 1);
    if (!sizes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_allowed_batch_sizes; i++) sizes[i] = message->allowed_batch_sizes[i];
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
    if (out->max_batch_size < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: max_batch_size must be positive (got %d)",
                         out->max_batch_size);
    if (out->num_batch_threads < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: num_batch_threads must be positive (got %d)",
                         out->num_batch_threads);
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

/* On by default, unless all defaults are off; an explicit state wins. */
static bool resolve(Tare__ConverterOptions__State state, bool disable_defaults) {
    if (state == TARE__CONVERTER_OPTIONS__STATE__ENABLED) return true;
    return state == TARE__CONVERTER_OPTIONS__STATE__DEFAULT && !disable_defaults;
}

static void read_bfloat16(struct tare_converter_options *out, const Tare__BFloat16OptimizationOptions *message) {
    if (!message) return;
    out->bfloat16_all = message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL;
    out->skip_safety_checks = message->skip_safety_checks;
    out->float_ops = (const char *const *)message->filterlist;
    out->n_float_ops = message->n_filterlist;
}

static tare_status read_sharding(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__XlaShardingOptions *message) {
    int64_t *devices;
    if (!message) return TARE_OK;
    devices = TARE_NEW_ARRAY(arena, int64_t, message->n_device_assignment + 1);
    if (!devices) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_device_assignment; i++) devices[i] = message->device_assignment[i];
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

/* ---- quantization ---- */

typedef Tensorflow__Quantization__QuantizationOptions quantization_message;

static tare_status read_method(const struct tare_quant_method **out,
                               const Tensorflow__Quantization__QuantizationMethod *method) {
    static const struct tare_quant_method *const methods[] = { NULL, &tare_method_static, &tare_method_dynamic,
                                                               &tare_method_weight_only };
    *out = &tare_method_static; /* the default of the converter */
    if (!method) return TARE_OK;
    switch (method->method_oneof_case) {
    case TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__METHOD_ONEOF_EXPERIMENTAL_METHOD:
        if (method->experimental_method >= 1 && method->experimental_method <= 3)
            *out = methods[method->experimental_method];
        return TARE_OK;
    case TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__METHOD_ONEOF_PRESET_METHOD:
        if (method->preset_method == 0) return TARE_OK;
        if (method->preset_method > 4)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "quantization_options: preset_method %d is not known",
                             (int)method->preset_method);
        *out = methods[method->preset_method - 1];
        return TARE_OK;
    default: return TARE_OK;
    }
}

static tare_status read_datasets(struct tare_quantization *out, struct tare_arena *arena,
                                 const quantization_message *message) {
    struct tare_dataset_file *files = TARE_NEW_ARRAY(arena, struct tare_dataset_file, message->n_representative_datasets + 1);
    if (!files) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_representative_datasets; i++) {
        const Tensorflow__Quantization__QuantizationOptions__RepresentativeDatasetsEntry *entry =
            message->representative_datasets[i];
        const Tensorflow__Quantization__RepresentativeDatasetFile *file = entry->value;
        if (!file || file->dataset_file_case !=
                         TENSORFLOW__QUANTIZATION__REPRESENTATIVE_DATASET_FILE__DATASET_FILE_TFRECORD_FILE_PATH)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported Representative Dataset filetype");
        files[i] = (struct tare_dataset_file){ entry->key ? entry->key : "serving_default", file->tfrecord_file_path };
    }
    out->datasets = files;
    out->n_datasets = message->n_representative_datasets;
    return TARE_OK;
}

/* TensorFlow's names onto ours. */
static const char *algorithm_of(const Tensorflow__Quantization__CalibrationOptions *calibration) {
    static const char *const names[] = { "min_max", "min_max", "average_min_max", "percentile", "mse", "mse",
                                         "mse_symmetric" };
    int method = calibration && calibration->has_calibration_method ? (int)calibration->calibration_method : 0;
    return method >= 0 && method < (int)(sizeof names / sizeof *names) ? names[method] : "min_max";
}

static tare_status check_datasets(const struct tare_quantization *q) {
    for (size_t d = 0; d < q->n_datasets; d++) {
        bool known = false;
        for (size_t s = 0; s < q->n_signatures; s++) known |= strcmp(q->datasets[d].signature, q->signatures[s]) == 0;
        if (!known)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "The signature keys and the keys of representative dataset map do not match. The "
                             "representative dataset map has '%s', which is no signature key.",
                             q->datasets[d].signature);
    }
    return TARE_OK;
}

static tare_status read_quantization(struct tare_quantization *out, struct tare_arena *arena,
                                     const quantization_message *message) {
    static const char *const serving[] = { "serving_default" };
    struct tare_quant_setting *setting = &out->options.setting;
    TARE_TRY(read_method(&setting->method, message->quantization_method));
    if (message->has_op_set && message->op_set > TENSORFLOW__QUANTIZATION__OP_SET__XLA)
        return TARE_FAIL(TARE_UNSUPPORTED, "quantization_options: op_set must be XLA for a TPU (got %d)",
                         (int)message->op_set);
    if (message->has_enable_legacy_weight_only && message->enable_legacy_weight_only)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Legacy weight-only is deprecated. Use weight-only quantization method.");
    if (message->has_enable_per_channel_quantization && !message->enable_per_channel_quantization)
        setting->granularity = TARE_PER_TENSOR;
    if (message->has_min_num_elements_for_weights && setting->method != &tare_method_static)
        out->options.min_elements = message->min_num_elements_for_weights;
    out->signatures = message->n_signature_keys ? (const char *const *)message->signature_keys : serving;
    out->n_signatures = message->n_signature_keys ? message->n_signature_keys : 1;
    out->tags = (const char *const *)message->tags;
    out->n_tags = message->n_tags;
    out->algorithm = algorithm_of(message->calibration_options);
    TARE_TRY(read_datasets(out, arena, message));
    return check_datasets(out);
}

static tare_status read_features(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__ConverterOptions *message) {
    for (size_t i = 0; i < message->n_external_feature_configs; i++) {
        const Tare__ExternalFeatureConfig *feature = message->external_feature_configs[i];
        if (feature->feature_case != TARE__EXTERNAL_FEATURE_CONFIG__FEATURE_QUANTIZATION_OPTIONS) continue;
        if (out->has_quantization)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "external_feature_configs: quantization_options is given twice");
        out->has_quantization = true;
        TARE_TRY(read_quantization(&out->quantization, arena, feature->quantization_options));
    }
    return TARE_OK;
}

/* ---- all of it ---- */

tare_status tare_converter_options_parse(struct tare_converter_options *out, struct tare_arena *arena, const char *text,
                                         size_t size) {
    ProtobufCMessage *parsed;
    const Tare__ConverterOptions *message;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_text_format_read(&parsed, &tare__converter_options__descriptor, arena, text, size, TARE_TEXT_RELAXED, "converter options"));
    message = (const Tare__ConverterOptions *)parsed;
    TARE_TRY(read_functions(out, arena, message));
    TARE_TRY(read_batches(out, arena, message));
    out->io_shapes = resolve(message->io_shape_optimization, message->disable_default_optimizations);
    out->bfloat16 = resolve(message->bfloat16_optimization, message->disable_default_optimizations);
    read_bfloat16(out, message->bfloat16_optimization_options);
    TARE_TRY(read_sharding(out, arena, message->xla_sharding_options));
    return read_features(out, arena, message);
}
