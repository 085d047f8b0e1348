/* QuantizationOptions: spellings of all releases, TensorFlow's defaults and its validation. */
#include "convert/quantization_options.h"
#include "base/format.h"
#include "base/strbuf.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <string.h>

typedef Tensorflow__Quantization__QuantizationOptions options_message;
typedef Tensorflow__Quantization__QuantizationMethod method_message;
typedef Tensorflow__Quantization__QuantizationComponentSpec component_message;
typedef Tensorflow__Quantization__UnitWiseQuantizationSpec unit_message;

/* ---- methods ---- */

static const struct tare_quant_method *const methods[] = { NULL, &tare_method_static, &tare_method_dynamic,
                                                           &tare_method_weight_only };

/* *given is false if the message does not set a method. */
static tare_status read_method(const struct tare_quant_method **out, bool *given, const method_message *message) {
    *given = false;
    if (!message) return TARE_OK;
    switch (message->method_oneof_case) {
    case TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__METHOD_ONEOF_EXPERIMENTAL_METHOD:
        if (message->experimental_method == 0) return TARE_OK;
        if (message->experimental_method > 3)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "experimental_method %d is not known",
                             (int)message->experimental_method);
        *out = methods[message->experimental_method];
        break;
    case TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__METHOD_ONEOF_PRESET_METHOD:
        if (message->preset_method == 0) return TARE_OK;
        if (message->preset_method > 4)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "preset_method %d is not known", (int)message->preset_method);
        *out = methods[message->preset_method - 1];
        break;
    default:
        return TARE_OK;
    }
    *given = true;
    return TARE_OK;
}

static const char *name_of(const struct tare_quant_method *method) {
    return method == &tare_method_static    ? "METHOD_STATIC_RANGE_INT8"
           : method == &tare_method_dynamic ? "METHOD_DYNAMIC_RANGE_INT8"
                                            : "METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8";
}

/* Activations are int8, biases int32; weights int8, or int4, which TensorFlow declares but does not implement. */
static tare_status read_component(struct tare_quant_setting *setting, unsigned *seen, const component_message *spec) {
    enum { ACTIVATION = 1, WEIGHT = 2, BIAS = 3, INT_4 = 1, INT_8 = 2, INT_32 = 3 };
    const int component = spec->has_quantization_component ? (int)spec->quantization_component : 0;
    const int type = spec->has_tensor_type ? (int)spec->tensor_type : 0;
    if (component < ACTIVATION || component > BIAS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "quantization_component_specs: quantization_component is not set");
    if (component == BIAS && type != INT_32)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only int32 precision is supported for bias.");
    if ((component == ACTIVATION && type != INT_8) || (component == WEIGHT && type != INT_8 && type != INT_4))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only int8 precision is supported for input operands.");
    if (component == WEIGHT) setting->bits = type == INT_4 ? 4 : 8;
    if (*seen & 1u << component)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only %d components are needed for %s",
                         setting->method == &tare_method_weight_only ? 1 : 3, name_of(setting->method));
    *seen |= 1u << component;
    return TARE_OK;
}

static tare_status read_components(struct tare_quant_setting *setting, component_message *const *specs, size_t count) {
    enum { NOT_WEIGHT = 1 << 1 | 1 << 3 };
    unsigned seen = 0;
    for (size_t i = 0; i < count && setting->method; i++)
        TARE_TRY(read_component(setting, &seen, specs[i]));
    if (setting->method == &tare_method_weight_only && seen & NOT_WEIGHT)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only 1 components are needed for %s", name_of(setting->method));
    return TARE_OK;
}

static tare_status read_precision(struct tare_quant_setting *setting, int precision) {
    enum { UNSPECIFIED, FULL, W4A4, W4A8, W8A8 };
    switch (precision) {
    case UNSPECIFIED:
    case W8A8:
        return TARE_OK;
    case FULL:
        setting->method = NULL;
        return TARE_OK;
    case W4A8:
        setting->bits = 4;
        return TARE_OK;
    case W4A4:
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only int8 precision is supported for input operands.");
    default:
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "quantization_precision %d is not known", precision);
    }
}

/* ---- units ---- */

/* A pattern that matches exactly this text. */
static const char *exactly(struct tare_arena *arena, const char *text) {
    return tare_arena_printf(arena, "\\Q%s\\E", text);
}

static bool is_set(const char *text) {
    return text && *text;
}

static tare_status add_rule(struct tare_quant_recipe *recipe, struct tare_arena *arena, struct tare_quant_rule *rule,
                            const char *op) {
    if (is_set(op)) {
        rule->op = exactly(arena, op);
        if (!rule->op) return TARE_NO_MEMORY;
    }
    rule->setting.given |= 1u << TARE_SET_METHOD;
    if (rule->setting.bits) rule->setting.given |= 1u << TARE_SET_BITS;
    return tare_error_prefix(tare_quant_recipe_add(recipe, rule), "%s", rule->where);
}

static tare_status read_unit_method(struct tare_quant_setting *setting, const struct tare_quant_method *top,
                                    const method_message *message) {
    bool given;
    setting->method = top;
    TARE_TRY(read_method(&setting->method, &given, message));
    if (setting->method && setting->method != top)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Currently unit-wise quantization spec only supports NO_QUANTIZE and same "
                         "quantization method as the top-level `quantization_method`");
    return message ? read_components(setting, message->quantization_component_specs,
                                     message->n_quantization_component_specs)
                   : TARE_OK;
}

/* The older spelling: one unit, its name an op's or a node's by unit_type. */
static tare_status read_old_unit(struct tare_quant_recipe *recipe, struct tare_arena *arena,
                                 struct tare_quant_rule *rule, int unit_type, const char *func_name,
                                 const char *unit_name) {
    enum { UNIT_NODE = 1, UNIT_OP = 2 };
    if (!is_set(unit_name) || (unit_type != UNIT_NODE && unit_type != UNIT_OP))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "UnitWiseQuantizationSpec must contain at least one unit.");
    if (unit_type == UNIT_NODE) rule->name = unit_name;
    if (is_set(func_name)) rule->function = func_name;
    return add_rule(recipe, arena, rule, unit_type == UNIT_OP ? unit_name : NULL);
}

static tare_status read_unit_spec(struct tare_quant_recipe *recipe, struct tare_arena *arena,
                                  const struct tare_quant_method *top, const unit_message *message) {
    struct tare_quant_rule base = { .where = "unit_wise_quantization_specs" };
    TARE_TRY(read_unit_method(&base.setting, top, message->quantization_method));
    TARE_TRY(
        read_components(&base.setting, message->quantization_component_spec, message->n_quantization_component_spec));
    if (!message->n_unit && message->has_unit_type)
        return read_old_unit(recipe, arena, &base, (int)message->unit_type, message->func_name, message->unit_name);
    if (!message->n_unit)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "UnitWiseQuantizationSpec must contain at least one unit.");
    for (size_t i = 0; i < message->n_unit; i++) {
        struct tare_quant_rule rule = base;
        if (!is_set(message->unit[i]->op_type) && !is_set(message->unit[i]->node_name))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Either `op_type` or `node_name` must be specified.");
        if (is_set(message->unit[i]->node_name)) rule.name = message->unit[i]->node_name;
        if (is_set(message->unit[i]->func_name)) rule.function = message->unit[i]->func_name;
        TARE_TRY(add_rule(recipe, arena, &rule, message->unit[i]->op_type));
    }
    return TARE_OK;
}

/* The rules of the command, units of all layouts, then the extension's recipe, which takes precedence. */
static tare_status read_rules(struct tare_quant_plan *out, struct tare_arena *arena, const options_message *message) {
    const struct tare_quant_method *top = out->setting.method;
    const Tensorflow__Quantization__QuantizationExtensions *extensions = message->extensions;
    struct tare_quant_recipe *recipe;
    TARE_TRY(tare_quant_recipe_new(&recipe, arena));
    for (size_t i = 0; i < tare_quant_recipe_count(out->recipe); i++)
        TARE_TRY(tare_quant_recipe_add(recipe, tare_quant_recipe_rule(out->recipe, i)));
    for (size_t i = 0; i < message->n_unit_wise_quantization_spec; i++)
        TARE_TRY(read_unit_spec(recipe, arena, top, message->unit_wise_quantization_spec[i]));
    for (size_t i = 0; i < message->n_unit_wise_quantization_precision; i++) {
        const Tensorflow__Quantization__UnitWiseQuantizationPrecision *unit =
            message->unit_wise_quantization_precision[i];
        struct tare_quant_rule rule = { .where = "unit_wise_quantization_precision", .setting.method = top };
        TARE_TRY(
            read_precision(&rule.setting, unit->has_quantization_precision ? (int)unit->quantization_precision : 0));
        TARE_TRY(read_old_unit(recipe, arena, &rule, unit->has_unit_type ? (int)unit->unit_type : 0, unit->func_name,
                               unit->unit_name));
    }
    for (size_t i = 0; i < message->n_unit_wise_quantization_specs; i++)
        TARE_TRY(read_unit_spec(recipe, arena, top, message->unit_wise_quantization_specs[i]));
    if (extensions && extensions->recipe)
        TARE_TRY(tare_quant_recipe_read(recipe, extensions->recipe, strlen(extensions->recipe), "recipe"));
    if (extensions && extensions->recipe_file) out->recipe_file = extensions->recipe_file;
    out->recipe = recipe;
    return TARE_OK;
}

/* ---- representative datasets ---- */

static tare_status read_datasets(struct tare_quantization *out, struct tare_arena *arena,
                                 const options_message *message) {
    const Tensorflow__Quantization__CalibrationOptions *calibration = message->calibration_options;
    const size_t newer = calibration ? calibration->n_representative_datasets : 0;
    struct tare_dataset_file *files;
    if (newer && message->n_representative_datasets)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "representative_datasets is given in QuantizationOptions and in "
                                                "calibration_options; give it once");
    files = TARE_NEW_ARRAY(arena, struct tare_dataset_file, message->n_representative_datasets + newer + 1);
    if (!files) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_representative_datasets; i++) {
        const Tensorflow__Quantization__QuantizationOptions__RepresentativeDatasetsEntry *entry =
            message->representative_datasets[i];
        const Tensorflow__Quantization__RepresentativeDatasetFile *file = entry->value;
        if (!file || file->dataset_file_case !=
                         TENSORFLOW__QUANTIZATION__REPRESENTATIVE_DATASET_FILE__DATASET_FILE_TFRECORD_FILE_PATH)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported Representative Dataset filetype");
        files[out->n_datasets++] =
            (struct tare_dataset_file){ entry->key ? entry->key : "serving_default", file->tfrecord_file_path };
    }
    for (size_t i = 0; i < newer; i++) {
        const Tensorflow__Quantization__RepresentativeDatasetConfig *config = calibration->representative_datasets[i];
        if (config->file_case != TENSORFLOW__QUANTIZATION__REPRESENTATIVE_DATASET_CONFIG__FILE_TF_RECORD ||
            !config->tf_record->path)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported Representative Dataset filetype");
        files[out->n_datasets++] =
            (struct tare_dataset_file){ is_set(config->signature_key) ? config->signature_key : "serving_default",
                                        config->tf_record->path };
    }
    out->datasets = files;
    return TARE_OK;
}

static void put_set(struct tare_strbuf *text, const char *name, bool first) {
    tare_strbuf_printf(text, "%s'%s'", first ? "" : ", ", name);
}

/* Compares the signatures as sets, in both directions, if there are samples. */
static tare_status check_datasets(const struct tare_quantization *q) {
    bool fits = true;
    struct tare_strbuf signatures = { 0 }, datasets = { 0 };
    tare_status status = TARE_OK;
    for (size_t d = 0; d < q->n_datasets; d++) {
        bool known = false;
        for (size_t s = 0; s < q->n_signatures; s++)
            known |= strcmp(q->datasets[d].signature, q->signatures[s]) == 0;
        put_set(&datasets, q->datasets[d].signature, d == 0);
        fits &= known;
    }
    for (size_t s = 0; s < q->n_signatures; s++) {
        bool known = false;
        for (size_t d = 0; d < q->n_datasets; d++)
            known |= strcmp(q->datasets[d].signature, q->signatures[s]) == 0;
        put_set(&signatures, q->signatures[s], s == 0);
        fits &= known;
    }
    if (q->n_datasets && !fits)
        status =
            TARE_FAIL(TARE_INVALID_ARGUMENT,
                      "The signature keys and the keys of representative dataset map do not match. Signature keys: "
                      "{%s}, representative dataset map: {%s}.",
                      tare_strbuf_text(&signatures), tare_strbuf_text(&datasets));
    tare_strbuf_free(&signatures);
    tare_strbuf_free(&datasets);
    return status;
}

/* ---- calibration ---- */

/* TensorFlow's calibration methods as ours. 0 keeps the algorithm of the plan, and is TensorFlow's default of a
 * parameter. */
static tare_status read_algorithm(struct tare_algorithm_choice *out, const options_message *message) {
    static const char *const names[] = {
        NULL, "min_max", "average_min_max", "percentile", "mse", "mse", "mse_symmetric"
    };
    enum { PERCENTILE = 3 };
    const Tensorflow__Quantization__CalibrationOptions *calibration = message->calibration_options;
    const Tensorflow__Quantization__CalibrationOptions__CalibrationParameters *parameters =
        calibration ? calibration->calibration_parameters : NULL;
    const int method = calibration && calibration->has_calibration_method ? (int)calibration->calibration_method : 0;
    char percentile[128];
    if (message->extensions && is_set(message->extensions->algorithm))
        return tare_algorithm_parse(out, message->extensions->algorithm);
    if (method == 0) return TARE_OK;
    if (method < 0 || method >= (int)(sizeof names / sizeof *names))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported calibration method: %d", method);
    if (method != PERCENTILE || !parameters) return tare_algorithm_parse(out, names[method]);
    tare_format(percentile, sizeof percentile, "percentile:min_percentile=%.9g,max_percentile=%.9g",
                parameters->min_percentile != 0 ? (double)parameters->min_percentile : 0.001,
                parameters->max_percentile != 0 ? (double)parameters->max_percentile : 99.999);
    return tare_algorithm_parse(out, percentile);
}

static tare_status check_debugger(const Tensorflow__Quantization__DebuggerConfig *debugger) {
    enum { WHOLE_MODEL = 1 };
    const int type = debugger && debugger->has_debugger_type ? (int)debugger->debugger_type : 0;
    if (!debugger) return TARE_OK;
    if (type == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Debugger is enabled but debugger type was not specified.");
    if (type == WHOLE_MODEL && !is_set(debugger->unquantized_dump_model_path))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Debugger type whole model verify was used but unquantized_dump_model_path "
                         "was not specified.");
    return TARE_FAIL(TARE_UNSUPPORTED, "quantization_options: no debugger that dumps tensors is built in (tare compare "
                                       "measures what each method costs)");
}

/* ---- valid combinations ---- */

static tare_status read_op_set(enum tare_quant_op_set *out, const struct tare_quant_method *method, int op_set) {
    enum { TF = 1, XLA = 2, UNIFORM_QUANTIZED = 3, STABLEHLO = 4 };
    if ((op_set == TF || op_set == UNIFORM_QUANTIZED) && method == &tare_method_weight_only)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "TF/Uniform quantized opset does not support weight-only.");
    if (op_set == STABLEHLO && method != &tare_method_static)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "StableHLO quantized opset currently only supports static range quantization via TF Quantizer.");
    if (op_set == STABLEHLO)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "quantization_options: op_set must be TF, XLA or UNIFORM_QUANTIZED (got STABLEHLO)");
    if (op_set < 0 || op_set > STABLEHLO)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "quantization_options: op_set %d is not known", op_set);
    *out = op_set == UNIFORM_QUANTIZED ? TARE_OP_SET_UNIFORM_QUANTIZED
           : op_set == TF              ? TARE_OP_SET_TF
                                       : TARE_OP_SET_XLA;
    return TARE_OK;
}

static tare_status read_granularity(struct tare_quant_plan *out, const options_message *message) {
    const bool given = message->has_enable_per_channel_quantization;
    const bool expected = given && message->enable_per_channel_quantization;
    if (given || (message->has_op_set && out->op_set == TARE_OP_SET_TF)) {
        out->setting.granularity = expected ? TARE_PER_CHANNEL : TARE_PER_TENSOR;
        out->setting.given |= 1u << TARE_SET_GRANULARITY;
    }
    if (expected && (out->op_set == TARE_OP_SET_TF ||
                     (out->setting.method == &tare_method_dynamic && out->op_set != TARE_OP_SET_UNIFORM_QUANTIZED)))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Currently, per-channel quantization is supported for Uniform Quantized opset, weight only "
                         "quantization, or XLA opset with static range quantization.");
    return TARE_OK;
}

/* 0: the method's default; static range applies it to tables only. */
static tare_status read_min_elements(struct tare_quantization *out, const options_message *message) {
    const int64_t least = message->has_min_num_elements_for_weights ? message->min_num_elements_for_weights : 0;
    if (!message->has_min_num_elements_for_weights) return TARE_OK;
    if (least < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "min_num_elements_for_weights is %lld", (long long)least);
    if (out->plan.setting.method != &tare_method_static) {
        out->plan.min_elements = least;
        return TARE_OK;
    }
    out->plan.min_table_elements = least;
    if (least) out->warning = "min_num_elements_for_weights holds for tables alone in static range quantization";
    return TARE_OK;
}

static tare_status read_extensions(struct tare_quant_plan *out,
                                   const Tensorflow__Quantization__QuantizationExtensions *message) {
    if (!message) return TARE_OK;
    if (message->has_weight_bits) out->setting.bits = message->weight_bits;
    if (is_set(message->granularity))
        TARE_TRY(tare_quant_setting_read(&out->setting, "granularity", message->granularity));
    if (message->has_full_range_weights) out->setting.full_range = message->full_range_weights;
    if (message->has_symmetric_activations) out->setting.symmetric = message->symmetric_activations;
    if (message->has_depthwise) out->depthwise = message->depthwise;
    if (is_set(message->passes)) TARE_TRY(tare_option_set_value(out, tare_plan_rows, "passes", message->passes));
    if (message->has_activation_bits) out->setting.activation_bits = message->activation_bits;
    if (message->has_integer_adds) out->integer_adds = message->integer_adds;
    return tare_quant_check_setting(&out->setting);
}

static void read_keys(struct tare_quantization *out, const options_message *message) {
    static const char *const serving[] = { "serving_default" };
    out->signatures = message->n_signature_keys ? (const char *const *)message->signature_keys : serving;
    out->n_signatures = message->n_signature_keys ? message->n_signature_keys : 1;
    out->names_signatures = message->n_signature_keys > 0;
    out->tags = (const char *const *)message->tags;
    out->n_tags = message->n_tags;
    if (message->has_freeze_all_variables) out->plan.keep_variables = !message->freeze_all_variables;
    if (message->freeze_all_variables_message)
        out->plan.keep_variables =
            !(message->freeze_all_variables_message->has_enabled && message->freeze_all_variables_message->enabled);
}

/* The plan to start from; its recipe file and rules are read. */
static tare_status begin(struct tare_quant_plan *out, const struct tare_quant_plan *plan) {
    if (!plan) return tare_options_defaults(out, tare_plan_rows);
    *out = *plan;
    out->recipe_file = NULL;
    out->rules = (struct tare_option_list){ 0 };
    return TARE_OK;
}

tare_status tare_quantization_read(struct tare_quantization *out, struct tare_arena *arena,
                                   const options_message *message, const struct tare_quant_plan *base) {
    const method_message *method = message->quantization_method;
    struct tare_quant_plan *plan = &out->plan;
    bool given;
    memset(out, 0, sizeof *out);
    TARE_TRY(begin(plan, base));
    if (message->has_enable_two_input_tensors) plan->two_inputs = message->enable_two_input_tensors;
    TARE_TRY(read_method(&plan->setting.method, &given, method));
    if (message->has_quantization_precision && given)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "give quantization_method or quantization_precision, not both");
    if (message->has_quantization_precision)
        TARE_TRY(read_precision(&plan->setting, (int)message->quantization_precision));
    if (method)
        TARE_TRY(read_components(&plan->setting, method->quantization_component_specs,
                                 method->n_quantization_component_specs));
    if (message->has_enable_legacy_weight_only && message->enable_legacy_weight_only)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Legacy weight-only is deprecated. Use weight-only quantization method.");
    if (message->has_op_set && message->op_set)
        TARE_TRY(read_op_set(&plan->op_set, plan->setting.method, (int)message->op_set));
    TARE_TRY(read_granularity(plan, message));
    TARE_TRY(read_min_elements(out, message));
    TARE_TRY(read_extensions(plan, message->extensions));
    TARE_TRY(read_rules(plan, arena, message));
    TARE_TRY(tare_quant_plan_open(plan, arena));
    TARE_TRY(read_algorithm(&plan->setting.algorithm, message));
    TARE_TRY(check_debugger(message->debugger_config ? message->debugger_config : message->debugger_options));
    read_keys(out, message);
    TARE_TRY(read_datasets(out, arena, message));
    return tare_quant_needs_ranges(plan) ? check_datasets(out) : TARE_OK;
}
