/* The options of a plan, and a plan as text. */
#include "quant/plan.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "quant/pass.h"
#include "quant/recipe.h"

#include <stdlib.h>
#include <string.h>

/* ---- methods ---- */

/* Names of other tools for a method with settings. */
static const struct preset {
    const char *name;
    const struct tare_quant_method *method;
    int bits, activation_bits; /* 0: not set */
    int64_t block;
    enum tare_number_format format;
} presets[] = {
#define ROW(preset_name, its_method, ...) { .name = preset_name, .method = &its_method, __VA_ARGS__ },
    TARE_QUANT_PRESETS(ROW)
#undef ROW
        { .name = NULL },
};

static const char *const methods[] = { TARE_QUANT_METHOD_WORDS NULL };

static tare_status unknown_method(const char *name) {
    const char *nearest = tare_nearest_name(name, methods);
    if (nearest) return TARE_FAIL(TARE_USAGE, "unknown method '%s' (did you mean '%s'?)", name, nearest);
    return TARE_FAIL(TARE_USAGE,
                     "unknown method '%s' (expected static, dynamic, weight_only, float or a preset such as "
                     "int8, w4a8 and int4)",
                     name);
}

static void set_preset(struct tare_quant_setting *setting, const struct preset *preset) {
    setting->method = preset->method;
    setting->format = preset->format;
    if (preset->bits) setting->bits = preset->bits;
    setting->given |= 1u << (preset->format ? TARE_SET_FORMAT : TARE_SET_BITS); /* bits in a rule are of integers */
    if (preset->activation_bits) {
        setting->activation_bits = preset->activation_bits;
        setting->given |= 1u << TARE_SET_ACTIVATION_BITS;
    }
    if (preset->block) {
        setting->granularity = TARE_PER_BLOCK;
        setting->block = preset->block;
        setting->given |= 1u << TARE_SET_GRANULARITY;
    }
}

tare_status tare_quant_method_read(struct tare_quant_setting *setting, const char *text) {
    setting->method = tare_quant_method_find(text);
    if (setting->method || strcmp(text, "float") == 0) return TARE_OK;
    for (size_t i = 0; presets[i].name; i++)
        if (strcmp(presets[i].name, text) == 0) return set_preset(setting, &presets[i]), TARE_OK;
    return unknown_method(text);
}

static tare_status read_method(void *values, const char *text) {
    return tare_quant_method_read(values, text);
}

static void put_method(struct tare_strbuf *out, const void *values) {
    const struct tare_quant_setting *setting = values;
    tare_strbuf_puts(out, setting->method ? setting->method->name : "float");
}

/* ---- formats ---- */

static const char *const formats[] = { "int8", "int4", "fp8_e4m3", "fp8_e5m2", NULL };

const char *tare_number_format_name(enum tare_number_format format, int bits) {
    return format ? formats[1 + (int)format] : formats[bits == 4];
}

/* Integers also set the bits. */
static tare_status read_format(void *values, const char *text) {
    struct tare_quant_setting *setting = values;
    size_t i = 0;
    while (formats[i] && strcmp(formats[i], text) != 0)
        i++;
    if (!formats[i]) return TARE_FAIL(TARE_USAGE, "format is '%s' (expected int8, int4, fp8_e4m3 or fp8_e5m2)", text);
    setting->format = i < 2 ? TARE_FORMAT_INT : i == 2 ? TARE_FORMAT_E4M3 : TARE_FORMAT_E5M2;
    if (setting->format) return TARE_OK;
    setting->bits = i == 1 ? 4 : 8;
    setting->given |= 1u << TARE_SET_BITS;
    return TARE_OK;
}

/* The bits of integers are an option of their own. */
static void put_format(struct tare_strbuf *out, const void *values) {
    const struct tare_quant_setting *setting = values;
    tare_strbuf_puts(out, tare_number_format_name(setting->format, 8));
}

/* ---- granularities and algorithms ---- */

static tare_status read_granularity(void *values, const char *text) {
    static const char BLOCK[] = "per_block:";
    struct tare_quant_setting *setting = values;
    char *end;
    setting->block = 0;
    if (strcmp(text, "per_tensor") == 0) {
        setting->granularity = TARE_PER_TENSOR;
    } else if (strcmp(text, "per_channel") == 0) {
        setting->granularity = TARE_PER_CHANNEL;
    } else if (strncmp(text, BLOCK, sizeof BLOCK - 1) == 0) {
        setting->granularity = TARE_PER_BLOCK;
        setting->block = strtoll(text + sizeof BLOCK - 1, &end, 10);
        if (*end || (setting->block != 32 && setting->block != 64 && setting->block != 128 && setting->block != 256))
            return TARE_FAIL(TARE_USAGE, "granularity '%s': blocks have 32, 64, 128 or 256 rows", text);
    } else {
        return TARE_FAIL(TARE_USAGE, "granularity is '%s' (expected per_tensor, per_channel or per_block:N)", text);
    }
    return TARE_OK;
}

const char *tare_quant_granularity_name(enum tare_quant_granularity granularity) {
    static const char *const names[] = { "per_channel", "per_tensor", "per_block" };
    return names[granularity];
}

void tare_quant_granularity_put(struct tare_strbuf *out, const struct tare_quant_setting *setting) {
    tare_strbuf_puts(out, tare_quant_granularity_name(setting->granularity));
    if (setting->granularity == TARE_PER_BLOCK) tare_strbuf_printf(out, ":%lld", (long long)setting->block);
}

static void put_granularity(struct tare_strbuf *out, const void *values) {
    tare_quant_granularity_put(out, values);
}

static tare_status read_algorithm(void *values, const char *text) {
    struct tare_quant_setting *setting = values;
    return tare_algorithm_parse(&setting->algorithm, text);
}

static void put_algorithm(struct tare_strbuf *out, const void *values) {
    const struct tare_quant_setting *setting = values;
    tare_algorithm_print(out, &setting->algorithm);
}

/* ---- the options ---- */

static const char *const weight_bits[] = { "4", "8", NULL };
static const char *const activation_bits[] = { "8", "16", NULL };

const char *const tare_quant_granularity_names[] = {
    "per_channel", "per_tensor", "per_block:32", "per_block:64", "per_block:128", "per_block:256", NULL
};
#define TARE_ROW_STRUCT struct tare_quant_setting
/* In the order of enum tare_quant_setting_row. */
const struct tare_option tare_quant_setting_rows[] = {
    { TARE_GIVEN_ROW("method", READ, method), .size = sizeof(const struct tare_quant_method *), .read = read_method,
      .print = put_method, .words = methods, .fallback = "static", .placeholder = "M",
      .help = "quantization method: static (int8 weights and activations), dynamic (activations quantized at run "
              "time), weight_only, or float (quantize only the layers that the recipe names); or a preset, which also "
              "sets bits: int8 or w8a8 (static), w8a16 (static, activations of 16 bits), w4a8, int8_dynamic, "
              "int8_weight_only, int4 (weight_only in blocks of 64 rows), fp8, fp8_dynamic, fp8_weight_only (format "
              "fp8_e4m3)" },
    { TARE_GIVEN_ROW("bits", INT, bits), .fallback = "8", .choices = weight_bits,
      .help = "bit width of weights; 4-bit weights are packed two to a byte" },
    { TARE_GIVEN_ROW("format", READ, format), .size = sizeof(enum tare_number_format), .read = read_format,
      .print = put_format, .words = formats, .fallback = "int8", .placeholder = "F",
      .help =
          "numbers of weights and quantized activations: int8, int4 (weights, as --bits 4), fp8_e4m3 (up to 448, 4 "
          "significant bits) or fp8_e5m2 (up to 57344, 3 significant bits) for chips with float8 units (op set xla)" },
    { TARE_GIVEN_ROW("granularity", READ, granularity),
      .size = offsetof(struct tare_quant_setting, block) + sizeof(int64_t) -
              offsetof(struct tare_quant_setting, granularity),
      .read = read_granularity, .print = put_granularity, .words = tare_quant_granularity_names,
      .fallback = "per_channel", .placeholder = "G",
      .fallback_text = "per_channel; per_tensor with --op-set uniform_quantized",
      .help = "weight quantization granularity: per_tensor, per_channel, or per_block:N with N = 32, 64, 128 or 256 "
              "input rows (weight_only)" },
    { TARE_GIVEN_ROW("full-range", FLAG, full_range),
      .help = "use the full integer range for weights, -128 … 127 (4 bits: -8 … 7), instead of -127 … 127" },
    { TARE_GIVEN_ROW("symmetric", FLAG, symmetric), .help = "use symmetric activation ranges" },
    { TARE_GIVEN_ROW("algorithm", READ, algorithm), .size = sizeof(struct tare_algorithm_choice),
      .read = read_algorithm, .print = put_algorithm, .words = tare_algorithm_names, .fallback = "min_max",
      .placeholder = "A",
      .help = "calibration algorithm that chooses activation ranges: min_max, average_min_max, percentile[:p=99.99], "
              "entropy, mse, …" },
    { TARE_GIVEN_ROW("activation-bits", INT, activation_bits), .choices = activation_bits,
      .help = "bit width of activations for method static; 16 computes two int8 products per layer (op set xla; "
              "default: 8, and 16 for layers whose output 8 bits would make too noisy)" },
    { 0 },
};
#undef TARE_ROW_STRUCT

#define LISTED(name) #name ", "
#define TARE_ROW_STRUCT struct tare_quant_plan
const struct tare_option tare_plan_rows[] = {
    TARE_OPTION_NESTED(struct tare_quant_plan, setting, tare_quant_setting_rows),
    { TARE_GIVEN_ROW("passes", STRING, pass_names), .words = tare_quant_pass_names, .placeholder = "P,…",
      .help = "accuracy passes to run: " TARE_QUANT_PASSES(LISTED) "with parameters as in gptq:damp=0.01" },
    { TARE_GIVEN_ROW("op-set", CHOICE, op_set), .fallback = "xla", .choices = tare_quant_op_set_names,
      .help = "ops of the quantized graph: XlaConvV2 and XlaDotV2, UniformQuantized ops, or functions of standard "
              "TensorFlow ops" },
    { TARE_GIVEN_ROW("depthwise", FLAG, depthwise),
      .help = "also quantize depthwise convolutions (no speedup on a TPU)" },
    { TARE_GIVEN_ROW("two-inputs", FLAG, two_inputs),
      .help =
          "also quantize products of two activations, as in attention (method static); slower on a TPU than bfloat16" },
    { TARE_GIVEN_ROW("integer-adds", FLAG, integer_adds),
      .help = "compute residual additions between static layers in integers, with the scale of the sum" },
    { TARE_GIVEN_ROW("shared-ranges", FLAG, shared_ranges),
      .help = "in loops over stacked layers (lax.scan): one activation range for all iterations instead of one for "
              "each (method static)" },
    { TARE_GIVEN_ROW("min-elements", INT64, min_elements), .min = 0, .max = 1e15,
      .help = "quantize only weights with at least N elements (default: 1024 for weight_only, dynamic and embedding "
              "tables, otherwise all)" },
    { TARE_GIVEN_ROW("keep-variables", FLAG, keep_variables),
      .help = "keep weights as checkpoint variables (automatic for large models); batch normalizations are then not "
              "folded, which costs a TPU up to 1.8 times the time" },
    { TARE_GIVEN_ROW("recipe", STRING, recipe_file), .placeholder = "FILE",
      .help = "read options (bits=4) and per-layer rules from FILE, one per line: op=MatMul name=.*dense.* -> "
              "weight_only bits=4; options of the command line precede" },
    { TARE_GIVEN_ROW("rule", LIST, rules), .placeholder = "RULE",
      .help = "one line of a recipe, after those of --recipe: 'name=\"head\" -> float'" },
    { 0 },
};
#undef TARE_ROW_STRUCT

bool tare_quant_plan_is_given(const struct tare_quant_plan *plan) {
    uint64_t given = plan->given;
    for (size_t i = 0; tare_plan_rows[i].name; i++)
        if (strcmp(tare_plan_rows[i].name, "keep-variables") == 0) given &= ~(UINT64_C(1) << i);
    return given || plan->setting.given;
}

void tare_quant_weight_settings(int64_t out[static TARE_WEIGHT_SETTINGS], const struct tare_quant_setting *setting) {
    const int64_t values[TARE_WEIGHT_SETTINGS] = { setting->granularity, setting->block,
                                                   setting->bits ? setting->bits : 8, setting->format,
                                                   setting->full_range };
    memcpy(out, values, sizeof values);
}

bool tare_quant_same_weight_settings(const struct tare_quant_setting *a, const struct tare_quant_setting *b) {
    int64_t x[TARE_WEIGHT_SETTINGS], y[TARE_WEIGHT_SETTINGS];
    tare_quant_weight_settings(x, a);
    tare_quant_weight_settings(y, b);
    return memcmp(x, y, sizeof x) == 0;
}

/* ---- opening ---- */

enum tare_quant_granularity tare_quant_default_granularity(enum tare_quant_op_set op_set) {
    return op_set == TARE_OP_SET_UNIFORM_QUANTIZED ? TARE_PER_TENSOR : TARE_PER_CHANNEL;
}

tare_status tare_quant_choose_form(struct tare_quant_setting *setting, enum tare_quant_op_set op_set) {
    const struct tare_quant_method *form;
    if (!setting->method) return TARE_OK;
    form = tare_quant_method_in(setting->method, op_set, (int)setting->format);
    if (!form && setting->format)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "format %s exists in the op set xla only (omit --op-set)",
                         tare_number_format_name(setting->format, 8));
    if (!form) return TARE_FAIL(TARE_INVALID_ARGUMENT, "TF/Uniform quantized opset does not support weight-only.");
    setting->method = form;
    return TARE_OK;
}

/* What float8 excludes. */
static tare_status check_format(const struct tare_quant_setting *setting) {
    const char *name = tare_number_format_name(setting->format, 8);
    if (!setting->format) return TARE_OK;
    if (setting->bits && setting->bits != 8)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "format %s with %d bits (expected bits=8, or format=int4)", name,
                         setting->bits);
    if (setting->activation_bits == 16)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "format %s has no activations of 16 bits (format=int8 has)", name);
    if (setting->algorithm.row && setting->algorithm.row->of_integers)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "algorithm %s compares integers, which format %s has not (use min_max, percentile or mse)",
                         setting->algorithm.row->name, name);
    return TARE_OK;
}

tare_status tare_quant_check_setting(const struct tare_quant_setting *setting) {
    if (!setting->method) return TARE_OK;
    TARE_TRY(check_format(setting));
    if (setting->bits && setting->bits != 8 && setting->bits != 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "weights of %d bits (expected 8 or 4)", setting->bits);
    if (setting->activation_bits && setting->activation_bits != 8 && setting->activation_bits != 16)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "activations of %d bits (expected 8 or 16)", setting->activation_bits);
    if (setting->activation_bits == 16 && !setting->method->takes_wide)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "method %s has no activations of 16 bits (static in the op set XLA has)",
                         setting->method->name);
    if (setting->granularity != TARE_PER_BLOCK) return TARE_OK;
    if (setting->block != 32 && setting->block != 64 && setting->block != 128 && setting->block != 256)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "blocks of %lld rows (expected 32, 64, 128 or 256)",
                         (long long)setting->block);
    if (!setting->method->takes_blocks)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s has no weights in blocks (weight_only has)",
                         setting->method->name);
    return TARE_OK;
}

static tare_status read_recipe(struct tare_quant_recipe **out, struct tare_arena *arena,
                               const struct tare_quant_plan *plan) {
    char *data = NULL;
    size_t size = 0;
    tare_status status = TARE_OK;
    if (!plan->recipe_file && !plan->rules.count) return TARE_OK;
    if (!*out) TARE_TRY(tare_quant_recipe_new(out, arena));
    if (plan->recipe_file) {
        TARE_TRY(tare_file_read(&data, &size, plan->recipe_file));
        status = tare_quant_recipe_read(*out, data, size, plan->recipe_file);
        tare_free(data);
    }
    for (size_t i = 0; i < plan->rules.count && status == TARE_OK; i++)
        status = tare_quant_recipe_read(*out, plan->rules.items[i], strlen(plan->rules.items[i]), "rule");
    return status;
}

/* What the recipe sets and the command does not. */
static void copy_options(struct tare_quant_plan *plan, const struct tare_quant_plan *recipe) {
    struct tare_quant_setting *setting = &plan->setting;
    if (!recipe) return;
    tare_options_copy(setting, &recipe->setting, tare_quant_setting_rows, recipe->setting.given & ~setting->given);
    tare_options_copy(plan, recipe, tare_plan_rows, recipe->given & ~plan->given);
    setting->given |= recipe->setting.given;
    plan->given |= recipe->given;
}

tare_status tare_quant_plan_open(struct tare_quant_plan *plan, struct tare_arena *arena) {
    struct tare_quant_recipe *recipe = (struct tare_quant_recipe *)(uintptr_t)plan->recipe;
    TARE_TRY(read_recipe(&recipe, arena, plan));
    copy_options(plan, tare_quant_recipe_options(recipe));
    plan->recipe = tare_quant_recipe_count(recipe) ? recipe : NULL;
    if (!(plan->setting.given >> TARE_SET_GRANULARITY & 1))
        plan->setting.granularity = tare_quant_default_granularity(plan->op_set);
    if (plan->pass_names)
        TARE_TRY(tare_error_prefix(tare_quant_passes_parse(&plan->passes, arena, plan->pass_names), "--passes"));
    struct tare_quant_setting form = plan->setting;
    TARE_TRY(tare_quant_choose_form(&form, plan->op_set));
    return tare_quant_check_setting(&form);
}

/* ---- needs ---- */

bool tare_quant_plan_quantizes(const struct tare_quant_plan *plan) {
    return plan->setting.method || plan->recipe;
}

bool tare_quant_needs_ranges(const struct tare_quant_plan *plan) {
    const struct tare_quant_method *method = plan->setting.method;
    if (method && method->needs_ranges) return true;
    for (size_t i = 0; i < tare_quant_recipe_count(plan->recipe); i++) {
        method = tare_quant_recipe_rule(plan->recipe, i)->setting.method;
        if (method && method->needs_ranges) return true;
    }
    return false;
}

bool tare_quant_plan_needs_channels(const struct tare_quant_plan *plan) {
    return tare_quant_passes_need_channels(plan->passes);
}

bool tare_quant_plan_needs_hessians(const struct tare_quant_plan *plan) {
    return tare_quant_passes_need_hessians(plan->passes);
}

bool tare_quant_plan_needs_calibration(const struct tare_quant_plan *plan) {
    return tare_quant_needs_ranges(plan) || tare_quant_plan_needs_channels(plan);
}

/* ---- text ---- */

/* Rules that are not in the file are written as options. */
static void put_rules(struct tare_strbuf *out, const struct tare_quant_plan *plan) {
    const size_t size = plan->recipe_file ? strlen(plan->recipe_file) : 0;
    for (size_t i = 0; i < tare_quant_recipe_count(plan->recipe); i++) {
        struct tare_quant_rule rule = *tare_quant_recipe_rule(plan->recipe, i);
        struct tare_strbuf text = { 0 };
        if (size && strncmp(rule.where, plan->recipe_file, size) == 0 && rule.where[size] == ':') continue;
        rule.comment = NULL;
        tare_quant_rule_put(&text, &rule);
        tare_strbuf_puts(out, " --rule ");
        if (text.size) text.data[--text.size] = '\0'; /* the end of the line */
        tare_strbuf_shell_word(out, tare_strbuf_text(&text));
        out->failed |= text.failed;
        tare_strbuf_free(&text);
    }
}

/* Whether the value of a row is to be written: the granularity has a default of the op set. */
static bool is_written(const struct tare_quant_plan *plan, const struct tare_option *row, const void *table) {
    if (row == &tare_quant_setting_rows[TARE_SET_METHOD]) return true;
    if (row == &tare_quant_setting_rows[TARE_SET_GRANULARITY])
        return plan->setting.granularity != tare_quant_default_granularity(plan->op_set);
    return tare_option_is_changed(row, table);
}

void tare_quant_plan_put(struct tare_strbuf *out, const struct tare_quant_plan *plan) {
    struct tare_option_walk walk = tare_option_walk(tare_plan_rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        const void *table = (const char *)plan + walk.base[walk.depth];
        if (row->kind != TARE_OPTION_LIST && is_written(plan, row, table)) tare_option_put(out, row, table);
    }
    put_rules(out, plan);
}

void tare_quant_plan_write(struct tare_strbuf *out, const struct tare_quant_plan *plan) {
    struct tare_option_walk walk = tare_option_walk(tare_plan_rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        const void *table = (const char *)plan + walk.base[walk.depth];
        if (!tare_quant_recipe_takes(row) || !is_written(plan, row, table)) continue;
        tare_quant_option_put_name(out, row);
        tare_option_put_value(out, row, table);
        tare_strbuf_putc(out, '\n');
    }
    for (size_t i = 0; i < tare_quant_recipe_count(plan->recipe); i++)
        tare_quant_rule_put(out, tare_quant_recipe_rule(plan->recipe, i));
}

tare_status tare_quant_setting_read(struct tare_quant_setting *setting, const char *name, const char *text) {
    const char *names[16] = { NULL };
    struct tare_strbuf list = { 0 };
    tare_status status;
    if (tare_option_find(tare_quant_setting_rows, name))
        return tare_option_set_value(setting, tare_quant_setting_rows, name, text);
    for (size_t i = 0; tare_quant_setting_rows[i].name; i++) {
        names[i] = tare_quant_setting_rows[i].name;
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = tare_nearest_name(name, names);
    status = TARE_FAIL(TARE_USAGE, "there is no setting '%s' (%s%s)", name,
                       nearest ? "did you mean " : "known: ", nearest ? nearest : tare_strbuf_text(&list));
    tare_strbuf_free(&list);
    return status;
}
