/* Parses lists of methods, algorithms and granularities into variants, and applies a variant to a model. */
#include "eval/variant.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "convert/pipeline.h"
#include "quant/recipe.h"
#include "tpu/bfloat16.h"

#include <stdio.h>
#include <string.h>

/* Methods without quantization; those of quant/method.h follow. */
static const char *const plain_methods[] = { "float", "bfloat16" };
enum { N_PLAIN = 2, MOST_METHODS = 32 };

/* ---- lists ---- */

struct names {
    const char **items;
    size_t count;
};

/* Splits at commas and ignores spaces around names. A comma inside "percentile:min=1,max=99" belongs to the
 * algorithm: a piece that has '=' but no ':' continues the previous one. */
static tare_status split(struct names *out, struct tare_arena *arena, const char *option, const char *text) {
    char *copy = tare_arena_strdup(arena, text), *next;
    memset(out, 0, sizeof *out);
    for (char *at = copy; at; at = next) {
        char *comma = strchr(at, ',');
        const char **grown;
        next = comma ? comma + 1 : NULL;
        if (comma) *comma = '\0';
        if (out->count && strchr(at, '=') && !strchr(at, ':')) {
            at[-1] = ',';
            at[strcspn(at, " ")] = '\0';
            continue;
        }
        at += strspn(at, " ");
        at[strcspn(at, " ")] = '\0';
        if (!*at) return TARE_FAIL(TARE_USAGE, "%s: an empty name in '%s'", option, text);
        grown = tare_arena_append(arena, out->items, out->count, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        grown[out->count++] = at;
        out->items = grown;
    }
    return copy ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status unknown(const char *option, const char *name, const char *const *known) {
    struct tare_strbuf list = { 0 };
    const char *nearest = tare_nearest_name(name, known);
    tare_status status;
    for (size_t i = 0; known[i]; i++)
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    status = nearest ? TARE_FAIL(TARE_USAGE, "%s: there is no '%s' (did you mean '%s'?)", option, name, nearest)
                     : TARE_FAIL(TARE_USAGE, "%s: there is no '%s' (known: %s)", option, name, tare_strbuf_text(&list));
    tare_strbuf_free(&list);
    return status;
}

/* ---- combinations ---- */

static tare_status find_method(const struct tare_quant_method **out, const char *name) {
    const char *known[MOST_METHODS + 1] = { NULL };
    *out = tare_quant_method_find(name);
    if (*out) return TARE_OK;
    for (size_t i = 0; i < N_PLAIN; i++) {
        known[i] = plain_methods[i];
        if (strcmp(name, plain_methods[i]) == 0) return TARE_OK;
    }
    for (size_t i = 0; tare_quant_methods[i] && N_PLAIN + i < MOST_METHODS; i++)
        known[N_PLAIN + i] = tare_quant_methods[i]->name;
    return unknown("--methods", name, known);
}

/* An addition to a method: bfloat16, or an accuracy pass. */
static tare_status find_addition(struct tare_variant *variant, struct tare_strbuf *passes, const char *name) {
    const char *known[MOST_METHODS + 1] = { "bfloat16" };
    if (strcmp(name, "bfloat16") == 0) {
        variant->bfloat16 = true;
        return TARE_OK;
    }
    char plain[64] = ""; /* without parameters */
    memcpy(plain, name, strcspn(name, ":") < sizeof plain ? strcspn(name, ":") : 0);
    if (tare_quant_pass_find(plain)) {
        tare_strbuf_printf(passes, "%s,", name);
        return TARE_OK;
    }
    for (size_t i = 0; tare_quant_passes[i] && i + 1 < MOST_METHODS; i++)
        known[i + 1] = tare_quant_passes[i]->name;
    return unknown("--methods", plain, known);
}

static tare_status read_op_set(struct tare_quant_options *options, const char *value) {
    for (int i = 0; tare_quant_op_set_names[i]; i++) {
        if (strcmp(tare_quant_op_set_names[i], value) != 0) continue;
        options->op_set = (enum tare_quant_op_set)i;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_USAGE, "op_set is '%s' (expected xla, uniform_quantized or tf)", value);
}

/* One setting of a method; `key` is NAME of NAME=VALUE and may be written with hyphens. */
static tare_status read_setting(struct tare_variant *variant, char *key, const char *value) {
    static const char *const known[] = { "bits", "block", "granularity", "activation_bits", "op_set", NULL };
    struct tare_quant_setting *setting = &variant->options.setting;
    unsigned sets = 0;
    for (char *c = key; *c; c++)
        if (*c == '-') *c = '_';
    if (strcmp(key, "op_set") == 0) {
        variant->sets_op_set = true;
        return read_op_set(&variant->options, value);
    }
    if (strcmp(key, "block") == 0 || strcmp(key, "granularity") == 0) {
        char text[32];
        variant->sets_granularity = true;
        snprintf(text, sizeof text, "per_block:%s", value);
        return tare_quant_setting_read(setting, &sets, "granularity", *key == 'b' ? text : value);
    }
    if (strcmp(key, "bits") != 0 && strcmp(key, "activation_bits") != 0) return unknown("--methods", key, known);
    *(*key == 'a' ? &variant->sets_activation_bits : &variant->sets_bits) = true;
    return tare_quant_setting_read(setting, &sets, key, value);
}

/* "weight_only:bits=4:block=32". */
static tare_status read_settings(struct tare_variant *variant, char *text) {
    const struct tare_quant_method **method = &variant->options.setting.method;
    char *save = NULL, *name = strtok_r(text, ":", &save), *piece;
    if (!name) return unknown("--methods", "", plain_methods);
    TARE_TRY(find_method(method, name));
    variant->bfloat16 = strcmp(name, "bfloat16") == 0;
    while ((piece = strtok_r(NULL, ":", &save))) {
        char *equals = strchr(piece, '=');
        if (!*method) return TARE_FAIL(TARE_USAGE, "--methods: '%s' has no settings (got '%s')", name, piece);
        if (!equals)
            return TARE_FAIL(TARE_USAGE, "--methods: '%s' is not a setting of '%s' (expected NAME=VALUE)", piece, name);
        *equals = '\0';
        TARE_TRY(tare_error_prefix(read_setting(variant, piece, equals + 1), "--methods: %s", name));
    }
    return TARE_OK;
}

static void put_settings(struct tare_strbuf *text, const struct tare_variant *variant) {
    const struct tare_quant_setting *setting = &variant->options.setting;
    if (variant->sets_bits) tare_strbuf_printf(text, ":bits=%d", setting->bits);
    if (variant->sets_granularity && setting->granularity == TARE_PER_BLOCK)
        tare_strbuf_printf(text, ":block=%lld", (long long)setting->block);
    else if (variant->sets_granularity)
        tare_strbuf_printf(text, ":granularity=%s",
                           setting->granularity == TARE_PER_TENSOR ? "per_tensor" : "per_channel");
    if (variant->sets_activation_bits) tare_strbuf_printf(text, ":activation_bits=%d", setting->activation_bits);
    if (variant->sets_op_set) tare_strbuf_printf(text, ":op_set=%s", tare_quant_op_set_names[variant->options.op_set]);
}

/* Prints the name: "static", "weight_only:bits=4:block=32+gptq+bfloat16". */
static tare_status name_variant(struct tare_variant *variant, struct tare_arena *arena, const char *method) {
    const struct tare_quant_pass *const *passes = variant->options.passes;
    struct tare_strbuf text = { 0 };
    tare_strbuf_puts(&text, method);
    put_settings(&text, variant);
    if (passes && passes[0]) tare_strbuf_putc(&text, '+');
    tare_quant_passes_print(&text, passes, '+');
    if (variant->bfloat16 && variant->options.setting.method) tare_strbuf_puts(&text, "+bfloat16");
    variant->name = text.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return variant->name ? TARE_OK : TARE_NO_MEMORY;
}

/* Parses "static" or "static+bias_correction+bfloat16"; setting.method stays NULL for "float" and "bfloat16". */
static tare_status read_method(struct tare_variant *variant, struct tare_arena *arena, const char *text) {
    struct tare_quant_options *options = &variant->options;
    char *copy = tare_arena_strdup(arena, text), *save = NULL, *name;
    struct tare_strbuf passes = { 0 };
    tare_status status;
    if (!copy) return TARE_NO_MEMORY;
    name = strtok_r(copy, "+", &save);
    status = read_settings(variant, name ? name : copy);
    while (status == TARE_OK && (name = strtok_r(NULL, "+", &save)))
        status = options->setting.method
                     ? find_addition(variant, &passes, name)
                     : TARE_FAIL(TARE_USAGE, "--methods: there is nothing to add to '%s' (got '%s')", copy, name);
    if (status == TARE_OK && passes.size)
        status =
            tare_error_prefix(tare_quant_passes_parse(&options->passes, arena, tare_strbuf_text(&passes)), "--methods");
    tare_strbuf_free(&passes);
    return status == TARE_OK ? name_variant(variant, arena, copy) : status;
}

static bool is_same(const struct tare_variant *a, const struct tare_variant *b) {
    const struct tare_quant_setting *x = &a->options.setting, *y = &b->options.setting;
    return strcmp(a->name, b->name) == 0 && x->granularity == y->granularity && x->block == y->block &&
           tare_algorithm_equal(&x->algorithm, &y->algorithm);
}

static tare_status add(struct tare_variant_list *list, struct tare_arena *arena, const struct tare_variant *variant) {
    struct tare_variant *grown;
    for (size_t i = 0; i < list->count; i++) /* a duplicate is measured once */
        if (is_same(&list->variants[i], variant)) return TARE_OK;
    grown = tare_arena_append(arena, list->variants, list->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[list->count++] = *variant;
    list->variants = grown;
    return TARE_OK;
}

/* All algorithms with one method and granularity. */
static tare_status add_algorithms(struct tare_variant_list *list, struct tare_arena *arena, struct tare_variant variant,
                                  const struct names *algorithms) {
    struct tare_quant_setting *setting = &variant.options.setting;
    if (!setting->method->needs_ranges || variant.refused) return add(list, arena, &variant);
    for (size_t a = 0; a < algorithms->count; a++) {
        TARE_TRY(tare_error_prefix(tare_algorithm_parse(&setting->algorithm, algorithms->items[a]), "--algorithms"));
        TARE_TRY(add(list, arena, &variant));
    }
    return TARE_OK;
}

tare_status tare_variant_check(struct tare_variant *variant, struct tare_arena *arena) {
    const struct tare_quant_options *options = &variant->options;
    struct tare_quant_setting setting = options->setting;
    tare_status status;
    if (variant->refused || !setting.method) return TARE_OK;
    setting.method = tare_quant_method_in(setting.method, options->op_set);
    status = setting.method ? tare_quant_check_setting(&setting)
                            : TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s does not exist in the op set %s",
                                        options->setting.method->name, tare_quant_op_set_names[options->op_set]);
    if (status != TARE_INVALID_ARGUMENT) return status;
    variant->refused = tare_arena_strdup(arena, tare_error_text());
    tare_error_clear();
    return variant->refused ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_method(struct tare_variant_list *list, struct tare_arena *arena, const char *name,
                              const struct names *algorithms, const struct names *granularities, int bits) {
    struct tare_variant variant = { .options.setting.bits = bits };
    struct tare_quant_setting *setting = &variant.options.setting;
    TARE_TRY(read_method(&variant, arena, name));
    if (!setting->method) return add(list, arena, &variant);
    if (!variant.sets_granularity) setting->granularity = tare_quant_default_granularity(variant.options.op_set);
    for (size_t g = 0; g < (variant.sets_granularity || !granularities ? 1 : granularities->count); g++) {
        unsigned sets = 0;
        variant.refused = NULL;
        if (!variant.sets_granularity && granularities)
            TARE_TRY(tare_error_prefix(tare_quant_setting_read(setting, &sets, "granularity", granularities->items[g]),
                                       "--granularities"));
        TARE_TRY(tare_variant_check(&variant, arena));
        TARE_TRY(add_algorithms(list, arena, variant, algorithms));
    }
    return TARE_OK;
}

tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *method_names,
                                const char *algorithm_names, const char *granularity_names, int bits) {
    struct names methods, algorithms, granularities;
    memset(out, 0, sizeof *out);
    TARE_TRY(split(&methods, arena, "--methods", method_names));
    TARE_TRY(split(&algorithms, arena, "--algorithms", algorithm_names));
    if (granularity_names) TARE_TRY(split(&granularities, arena, "--granularities", granularity_names));
    const struct names *chosen = granularity_names ? &granularities : NULL;
    TARE_TRY(add_method(out, arena, "float", &algorithms, chosen, bits));
    for (size_t i = 0; i < methods.count; i++)
        TARE_TRY(add_method(out, arena, methods.items[i], &algorithms, chosen, bits));
    return TARE_OK;
}

const char *tare_variant_algorithm(struct tare_arena *arena, const struct tare_variant *variant) {
    struct tare_strbuf text = { 0 };
    const char *copy;
    if (!tare_quant_needs_ranges(&variant->options)) return NULL;
    tare_algorithm_print(&text, &variant->options.setting.algorithm);
    copy = text.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return copy;
}

const char *tare_variant_granularity(struct tare_arena *arena, const struct tare_variant *variant) {
    const struct tare_quant_setting *setting = &variant->options.setting;
    if (!setting->method) return NULL;
    if (setting->granularity == TARE_PER_BLOCK)
        return tare_arena_printf(arena, "per_block:%lld", (long long)setting->block);
    return setting->granularity == TARE_PER_TENSOR ? "per_tensor" : "per_channel";
}

bool tare_variant_calibrates(const struct tare_variant *variant) {
    return tare_quant_needs_ranges(&variant->options) || tare_quant_passes_need_channels(variant->options.passes);
}

bool tare_variants_calibrate(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_variant_calibrates(&list->variants[i])) return true;
    return false;
}

bool tare_variants_need_channels(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_quant_passes_need_channels(list->variants[i].options.passes))
            return true;
    return false;
}

bool tare_variants_need_hessians(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_quant_passes_need_hessians(list->variants[i].options.passes))
            return true;
    return false;
}

/* ---- models ---- */

/* The float32 constants that bfloat16 ones have replaced: they are not part of the model's size. */
static tare_status remove_float_constants(struct tare_graph_model *model) {
    TARE_TRY(tare_graph_remove_unreachable(model->main, NULL));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(tare_graph_remove_unreachable(model->functions[i], NULL));
    return TARE_OK;
}

tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena,
                               struct tare_graph_model *model, const struct tare_variant *variant,
                               struct tare_calibration *calibration) {
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    const struct tare_bfloat16_options bfloat16 = { .skip_safety_checks = true };
    size_t changes = 0;
    memset(report, 0, sizeof *report);
    if (tare_quant_needs_ranges(&variant->options) && !calibration)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s needs a calibration", variant->name);
    TARE_TRY(tare_calibration_check_passes(calibration, variant->options.passes));
    TARE_TRY(tare_pipeline_quantize(report, arena, model, &variant->options, &ranges));
    if (!variant->bfloat16) return TARE_OK;
    TARE_TRY(tare_tpu_bfloat16(model, &model->main, 1, &bfloat16, &changes));
    return remove_float_constants(model);
}
