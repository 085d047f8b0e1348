/* Converter options from text. */
#include "convert/options.h"
#include "convert/quantization_options.h"
#include "graph/op.h"
#include "proto/message.h"
#include "proto/tare/converter_options.pb-c.h"
#include "proto/text_format.h"
#include "tpu/topology.h"

#include <string.h>

/* ---- functions ---- */

/* The strings of a oneof are one member in memory: `name` is whichever is set. */
static tare_status choose(struct tare_tpu_choice *out, const char *field, int kind, const char *name, bool is_soft) {
    if (kind < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: an entry names no function (expected function_alias, concrete_function_name, "
                         "signature_name or jit_compile_functions: true)",
                         field);
    *out = (struct tare_tpu_choice){ (enum tare_tpu_choice_kind)kind, kind == TARE_TPU_BY_JIT ? NULL : name, is_soft };
    return TARE_OK;
}

static tare_status read_function(struct tare_tpu_choice *out, const Tare__TpuFunction *message) {
    static const int kinds[] = { [TARE__TPU_FUNCTION__NAME__NOT_SET] = -1,
                                 [TARE__TPU_FUNCTION__NAME_FUNCTION_ALIAS] = TARE_TPU_BY_ALIAS,
                                 [TARE__TPU_FUNCTION__NAME_CONCRETE_FUNCTION_NAME] = TARE_TPU_BY_CONCRETE,
                                 [TARE__TPU_FUNCTION__NAME_SIGNATURE_NAME] = TARE_TPU_BY_SIGNATURE,
                                 [TARE__TPU_FUNCTION__NAME_JIT_COMPILE_FUNCTIONS] = TARE_TPU_BY_JIT };
    const int kind = kinds[message->name_case];
    const bool names = kind != TARE_TPU_BY_JIT || message->jit_compile_functions;
    return choose(out, "tpu_functions", names ? kind : -1, message->function_alias,
                  message->enable_soft_device_placement);
}

static tare_status read_xla_function(struct tare_tpu_choice *out, const Tare__XlaFunctionSpec *message) {
    static const int kinds[] = { [TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC__NOT_SET] = -1,
                                 [TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_FUNCTION_ALIAS] = TARE_TPU_BY_ALIAS,
                                 [TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_CONCRETE_FUNCTION_NAME] = TARE_TPU_BY_CONCRETE,
                                 [TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_SIGNATURE_NAME] = TARE_TPU_BY_SIGNATURE,
                                 [TARE__XLA_FUNCTION_SPEC__FUNCTION_SPEC_JIT_COMPILE_FUNCTIONS] = TARE_TPU_BY_JIT };
    const int kind = kinds[message->function_spec_case];
    const bool names = kind != TARE_TPU_BY_JIT || message->jit_compile_functions;
    if (message->device_type != TARE__XLA_FUNCTION_SPEC__DEVICE_TYPE__TPU)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "xla_functions: device_type is %s (expected TPU: tare converts for Cloud TPUs)",
                         message->device_type ? "GPU" : "not set");
    if (message->device_execution_type == TARE__XLA_FUNCTION_SPEC__DEVICE_EXECUTION_TYPE__MULTIPLE_DEVICE)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "xla_functions: device_execution_type is MULTIPLE_DEVICE, which is for "
                                                "GPUs (expected xla_sharding_options for several TPU cores)");
    return choose(out, "xla_functions", names ? kind : -1, message->function_alias,
                  message->enable_soft_device_placement);
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

static tare_status check_order(const char *field, const int64_t *sizes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sizes[i] < 1 || (i && sizes[i] <= sizes[i - 1]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "%s: allowed_batch_sizes entries must be monotonically increasing (expected more than "
                             "%lld, got %lld)",
                             field, (long long)(i ? sizes[i - 1] : 0), (long long)sizes[i]);
    return TARE_OK;
}

static tare_status check_sizes(const struct tare_batch_options *batch) {
    TARE_TRY(check_order("batch_options", batch->allowed_batch_sizes, batch->n_allowed));
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

static tare_status copy_sizes(const int64_t **out, struct tare_arena *arena, const int32_t *values, size_t count) {
    int64_t *sizes = TARE_NEW_ARRAY(arena, int64_t, count + 1);
    if (!sizes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        sizes[i] = values[i];
    *out = sizes;
    return TARE_OK;
}

/* The runtime's rules for the numbers of a queue. */
static tare_status check_queue(const char *field, int max_batch_size, int batch_timeout_micros,
                               int max_enqueued_batches) {
    if (max_batch_size < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: max_batch_size must be positive (got %d)", field, max_batch_size);
    if (batch_timeout_micros < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: batch_timeout_micros must be non-negative (got %d)", field,
                         batch_timeout_micros);
    if (max_enqueued_batches < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: max_enqueued_batches must be non-negative (got %d)", field,
                         max_enqueued_batches);
    return TARE_OK;
}

static tare_status read_low_priority(struct tare_batch_options *out, struct tare_arena *arena,
                                     const Tare__LowPriorityBatchOptions *message) {
    static const char field[] = "low_priority_batch_options";
    static const char *const policies[] = {
        [TARE__LOW_PRIORITY_BATCH_OPTIONS__MIXED_PRIORITY_BATCHING_POLICY__LOW_PRIORITY_PADDING_WITH_MAX_BATCH_SIZE] =
            "low_priority_padding_with_max_batch_size",
        [TARE__LOW_PRIORITY_BATCH_OPTIONS__MIXED_PRIORITY_BATCHING_POLICY__LOW_PRIORITY_PADDING_WITH_NEXT_ALLOWED_BATCH_SIZE] =
            "low_priority_padding_with_next_allowed_batch_size",
        [TARE__LOW_PRIORITY_BATCH_OPTIONS__MIXED_PRIORITY_BATCHING_POLICY__PRIORITY_ISOLATION] = "priority_isolation",
    };
    struct tare_low_priority *low = &out->low_priority;
    const size_t n = message ? message->n_allowed_batch_sizes : 0;
    if (!message) return TARE_OK;
    *low = (struct tare_low_priority){ .max_batch_size = message->max_batch_size,
                                       .batch_timeout_micros = message->batch_timeout_micros,
                                       .max_enqueued_batches = message->max_enqueued_batches,
                                       .n_allowed = n,
                                       .policy = policies[message->mixed_priority_batching_policy] };
    TARE_TRY(copy_sizes(&low->allowed_batch_sizes, arena, message->allowed_batch_sizes, n));
    TARE_TRY(check_queue(field, low->max_batch_size, low->batch_timeout_micros, low->max_enqueued_batches));
    TARE_TRY(check_order(field, low->allowed_batch_sizes, n));
    if (n && low->allowed_batch_sizes[n - 1] != low->max_batch_size)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: final entry in allowed_batch_sizes must equal max_batch_size (got %lld, %d)", field,
                         (long long)low->allowed_batch_sizes[n - 1], low->max_batch_size);
    return TARE_OK;
}

/* A field of the message itself, as version 2 has it, or of `experimental`. */
static tare_status read_component(struct tare_batch_options *out, const Tare__BatchOptions *message) {
    static const enum tare_batch_component older[] = {
        [TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT__NOT_SET] = TARE_BATCH_TPU,
        [TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_FUNCTION_ALIAS] = TARE_BATCH_ALIAS,
        [TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_CONCRETE_FUNCTION_NAME] = TARE_BATCH_CONCRETE,
        [TARE__BATCH_OPTIONS__EXPERIMENTAL__BATCH_COMPONENT_SIGNATURE_NAME] = TARE_BATCH_SIGNATURE,
    };
    static const enum tare_batch_component own[] = {
        [TARE__BATCH_OPTIONS__BATCH_COMPONENT__NOT_SET] = TARE_BATCH_TPU,
        [TARE__BATCH_OPTIONS__BATCH_COMPONENT_FUNCTION_ALIAS] = TARE_BATCH_ALIAS,
        [TARE__BATCH_OPTIONS__BATCH_COMPONENT_CONCRETE_FUNCTION_NAME] = TARE_BATCH_CONCRETE,
        [TARE__BATCH_OPTIONS__BATCH_COMPONENT_SIGNATURE_NAME] = TARE_BATCH_SIGNATURE,
    };
    const Tare__BatchOptions__Experimental *experimental = message->experimental;
    if (message->batch_component_case && experimental && experimental->batch_component_case)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: the component is given twice, also in experimental");
    if (message->batch_component_case) {
        out->component = own[message->batch_component_case];
        out->name = message->function_alias;
    } else if (experimental && experimental->batch_component_case) {
        out->component = older[experimental->batch_component_case];
        out->name = experimental->function_alias;
    }
    return TARE_OK;
}

static tare_status read_batch(struct tare_batch_options *out, struct tare_arena *arena,
                              const Tare__BatchOptions *message) {
    *out = (struct tare_batch_options){
        .num_batch_threads = message->num_batch_threads,
        .max_batch_size = message->max_batch_size,
        .batch_timeout_micros = message->batch_timeout_micros,
        .max_enqueued_batches = message->max_enqueued_batches,
        .n_allowed = message->n_allowed_batch_sizes,
        .disable_large_batch_splitting = message->disable_large_batch_splitting,
    };
    TARE_TRY(copy_sizes(&out->allowed_batch_sizes, arena, message->allowed_batch_sizes, out->n_allowed));
    TARE_TRY(read_component(out, message));
    TARE_TRY(check_queue("batch_options", out->max_batch_size, out->batch_timeout_micros, out->max_enqueued_batches));
    if (out->num_batch_threads < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: num_batch_threads must be positive (got %d)",
                         out->num_batch_threads);
    TARE_TRY(check_sizes(out));
    return read_low_priority(out, arena, message->low_priority_batch_options);
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

/* Ops whose values are those of variables: folding a batch normalization would make constants of them, which are
 * rounded. */
static bool holds_variables(const char *op) {
    static const char *const ops[] = { "VarHandleOp", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", NULL };
    return tare_op_is_one_of(op, ops);
}

/* Variables stay float32 in the file if the filterlist names their op, or convert_checkpoint is false. */
static tare_status read_filterlist(struct tare_converter_options *out, struct tare_arena *arena,
                                   const Tare__BFloat16OptimizationOptions *message) {
    const Tare__BFloat16OptimizationOptions__Experimental *more = message->experimental;
    const char **ops = TARE_NEW_ARRAY(arena, const char *, message->n_filterlist + 1);
    if (!ops) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_filterlist; i++)
        ops[out->n_float_ops++] = message->filterlist[i] + (strncmp(message->filterlist[i], "tf.", 3) == 0 ? 3 : 0);
    if (more && more->checkpoint_case && !more->convert_checkpoint) ops[out->n_float_ops++] = "VarHandleOp";
    out->keeps_variables = more && more->checkpoint_case;
    for (size_t i = 0; i < out->n_float_ops; i++)
        out->keeps_variables |= holds_variables(ops[i]);
    out->float_ops = ops;
    return TARE_OK;
}

static tare_status read_bfloat16(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__BFloat16OptimizationOptions *message) {
    if (!message) return TARE_OK;
    if (message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__GPU)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "bfloat16_optimization_options: scope is GPU (expected TPU or ALL: tare "
                         "converts for Cloud TPUs)");
    if (message->preserve_signature && message->scope != TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "The preserve_signature flag is only supported for the ALL scope. All other scopes preserve the "
            "signature by default. Set preserve_signature to false, or change the scope of the bfloat16 "
            "optimization.");
    if (message->enable_cast_outside && message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Cannot enable bfloat16 enable_cast_outside if the bfloat16 scope is not "
                         "TPU or GPU.");
    out->bfloat16_all = message->scope == TARE__BFLOAT16_OPTIMIZATION_OPTIONS__SCOPE__ALL;
    out->skip_safety_checks = message->skip_safety_checks;
    out->casts_outside = message->enable_cast_outside;
    return read_filterlist(out, arena, message);
}

static tare_status read_argument(struct tare_tpu_argument_split *out, struct tare_arena *arena,
                                 const Tare__XlaFunctionShardingSpec *function,
                                 const Tare__XlaFunctionShardingSpec__ArgShardingSpec *argument) {
    const bool by_alias = function->function_case == TARE__XLA_FUNCTION_SHARDING_SPEC__FUNCTION_FUNCTION_ALIAS;
    struct tare_tpu_choice *choice = TARE_NEW(arena, struct tare_tpu_choice);
    if (!choice) return TARE_NO_MEMORY;
    if (!function->function_case || !argument->split_spec)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "function_sharding_specs: an entry has no %s (expected %s)",
                         function->function_case ? "split_spec" : "function",
                         function->function_case ? "dimension and num_devices"
                                                 : "function_alias or concrete_function_name");
    *choice = (struct tare_tpu_choice){ by_alias ? TARE_TPU_BY_ALIAS : TARE_TPU_BY_CONCRETE, function->function_alias,
                                        false };
    *out = (struct tare_tpu_argument_split){ choice, argument->arg_index, argument->split_spec->dimension,
                                             argument->split_spec->num_devices };
    return TARE_OK;
}

static tare_status read_arguments(struct tare_tpu_sharding *out, struct tare_arena *arena,
                                  const Tare__XlaShardingOptions *message) {
    struct tare_tpu_argument_split *splits;
    size_t count = 0;
    for (size_t f = 0; f < message->n_function_sharding_specs; f++)
        count += message->function_sharding_specs[f]->n_arg_sharding_specs;
    out->splits = splits = TARE_NEW_ARRAY(arena, struct tare_tpu_argument_split, count + 1);
    if (!splits) return TARE_NO_MEMORY;
    for (size_t f = 0; f < message->n_function_sharding_specs; f++) {
        const Tare__XlaFunctionShardingSpec *function = message->function_sharding_specs[f];
        for (size_t i = 0; i < function->n_arg_sharding_specs; i++)
            TARE_TRY(read_argument(&splits[out->n_splits++], arena, function, function->arg_sharding_specs[i]));
    }
    return TARE_OK;
}

static tare_status read_sharding(struct tare_converter_options *out, struct tare_arena *arena,
                                 const Tare__XlaShardingOptions *message) {
    if (!message) return TARE_OK;
    if (message->n_sharding_specs || (message->experimental && message->experimental->policy_based_sharding_spec))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "xla_sharding_options: sharding of variables (%s) is not written: every core gets them whole "
                         "(expected function_sharding_specs, or none of these: then batches are split)",
                         message->n_sharding_specs ? "sharding_specs" : "policy_based_sharding_spec");
    out->has_sharding = true;
    out->sharding = (struct tare_tpu_sharding){
        .num_cores_per_replica = message->num_cores_per_replica,
        .n_device_assignment = message->n_device_assignment,
        .topology = message->topology.data,
        .topology_size = message->topology.len,
        .uses_shardy = message->use_shardy_partitioner,
    };
    TARE_TRY(
        copy_sizes(&out->sharding.device_assignment, arena, message->device_assignment, message->n_device_assignment));
    TARE_TRY(read_arguments(&out->sharding, arena, message));
    return tare_tpu_sharding_check(&out->sharding);
}

/* Fields that only a conversion for GPUs has. */
static tare_status refuse_gpu(const Tare__ConverterOptions *message) {
    const char *field = NULL, *own = "io_shape_optimization";
    if (message->non_xla_device_placement_options) {
        field = "non_xla_device_placement_options";
        own = "tpu_functions";
    }
    if (message->xla_io_optimization_options) field = "xla_io_optimization_options";
    if (message->xla_io_optimization == TARE__CONVERTER_OPTIONS__STATE__ENABLED) field = "xla_io_optimization";
    if (!field) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s is for GPUs (expected %s: tare converts for Cloud TPUs)", field, own);
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
    TARE_TRY(refuse_gpu(message));
    TARE_TRY(read_functions(out, arena, message));
    out->shares_cluster = message->enable_shared_replicate_cluster_name;
    out->allow_incompatible = message->safety_checks_case && !message->enable_device_placement_safety_checks;
    TARE_TRY(read_batches(out, arena, message));
    out->io_shapes = resolve(message->io_shape_optimization, message->disable_default_optimizations);
    out->bfloat16 = resolve(message->bfloat16_optimization, message->disable_default_optimizations);
    out->requests_bfloat16 = message->bfloat16_optimization == TARE__CONVERTER_OPTIONS__STATE__ENABLED;
    TARE_TRY(read_bfloat16(out, arena, message->bfloat16_optimization_options));
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
