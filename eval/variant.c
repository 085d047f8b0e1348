/* Parses lists of methods, algorithms and granularities into variants, and applies a variant to a model. */
#include "eval/variant.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "convert/pipeline.h"
#include "graph/graphs.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <string.h>

enum { MOST_METHODS = 32 };

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

static tare_status unknown(const char *name, const char *const *known) {
    struct tare_strbuf list = { 0 };
    const char *nearest = tare_nearest_name(name, known);
    tare_status status;
    for (size_t i = 0; known[i]; i++)
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    status = nearest ? TARE_FAIL(TARE_USAGE, "there is no '%s' (did you mean '%s'?)", name, nearest)
                     : TARE_FAIL(TARE_USAGE, "there is no '%s' (known: %s)", name, tare_strbuf_text(&list));
    tare_strbuf_free(&list);
    return status;
}

/* ---- combinations ---- */

/* Sets the method, and the settings of a preset. */
static tare_status find_method(struct tare_quant_setting *setting, const char *name) {
    const tare_status status = strcmp(name, "bfloat16") == 0 ? TARE_OK : tare_quant_method_read(setting, name);
    return tare_error_prefix(status, "--methods");
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
    return tare_error_prefix(unknown(plain, known), "--methods");
}

/* One setting of a method: NAME=VALUE. */
static tare_status read_setting(struct tare_variant *variant, const char *name, const char *value) {
    static const char *const others[] = { "method", "algorithm", "passes", "recipe", "rule", NULL };
    const char *known[MOST_METHODS + 1] = { "block" };
    struct tare_option_walk walk = tare_option_walk(tare_plan_rows);
    size_t count = 1;
    char text[32];
    if (strcmp(name, "block") == 0) {
        snprintf(text, sizeof text, "per_block:%s", value);
        return tare_quant_setting_read(&variant->plan.setting, "granularity", text);
    }
    for (const struct tare_option *row; (row = tare_option_next(&walk)) && count < MOST_METHODS;)
        if (!tare_op_is_one_of(row->name, others)) known[count++] = row->name;
    if (!tare_option_find(tare_plan_rows, name) || tare_op_is_one_of(name, others)) return unknown(name, known);
    return tare_option_set_value(&variant->plan, tare_plan_rows, name, value);
}

/* Appends ":bits=4:block=32": what the method sets. */
static void put_settings(struct tare_strbuf *text, const struct tare_quant_plan *plan) {
    const struct tare_quant_setting *setting = &plan->setting;
    struct tare_option_walk walk = tare_option_walk(tare_plan_rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        const void *table = (const char *)plan + walk.base[walk.depth];
        const uint64_t given = *(const uint64_t *)(const void *)((const char *)table + row->given);
        if (!(given >> (row - walk.first[walk.depth]) & 1)) continue;
        tare_strbuf_putc(text, ':');
        if (strcmp(row->name, "granularity") == 0 && setting->granularity == TARE_PER_BLOCK) {
            tare_strbuf_printf(text, "block=%lld", (long long)setting->block);
        } else {
            tare_quant_option_put_name(text, row);
            tare_option_put_value(text, row, table);
        }
    }
}

/* "weight_only:bits=4:block=32"; `name` gets "weight_only:bits=4:block=32" as printed from the settings. */
static tare_status read_settings(struct tare_variant *variant, struct tare_strbuf *name, char *text) {
    struct tare_quant_plan *plan = &variant->plan;
    struct tare_quant_setting *setting = &plan->setting;
    const uint64_t given[] = { plan->given, setting->given };
    char *save = NULL, *word = strtok_r(text, ":", &save), *piece;
    plan->given = setting->given = 0;
    TARE_TRY(find_method(setting, word ? word : ""));
    variant->bfloat16 = strcmp(word, "bfloat16") == 0;
    while ((piece = strtok_r(NULL, ":", &save))) {
        char *equals = strchr(piece, '=');
        if (!setting->method) return TARE_FAIL(TARE_USAGE, "--methods: '%s' has no settings (got '%s')", word, piece);
        if (!equals)
            return TARE_FAIL(TARE_USAGE, "--methods: '%s' is not a setting of '%s' (expected NAME=VALUE)", piece, word);
        *equals = '\0';
        TARE_TRY(tare_error_prefix(read_setting(variant, piece, equals + 1), "--methods: %s", word));
    }
    tare_strbuf_puts(name, setting->method ? setting->method->name : word);
    put_settings(name, plan);
    variant->sets_granularity = setting->given >> TARE_SET_GRANULARITY & 1;
    if (setting->method && (setting->format || !setting->method->takes_wide) &&
        !(setting->given >> TARE_SET_ACTIVATION_BITS & 1))
        setting->activation_bits = 0;
    plan->given |= given[0];
    setting->given |= given[1];
    return TARE_OK;
}

/* Appends "+gptq+bfloat16". */
static tare_status name_variant(struct tare_variant *variant, struct tare_arena *arena, struct tare_strbuf *text) {
    const struct tare_quant_pass *const *passes = variant->plan.passes;
    if (variant->plan.setting.method && passes && passes[0]) tare_strbuf_putc(text, '+');
    if (variant->plan.setting.method) tare_quant_passes_print(text, passes, '+');
    if (variant->bfloat16 && variant->plan.setting.method) tare_strbuf_puts(text, "+bfloat16");
    variant->name = text->failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(text));
    return variant->name ? TARE_OK : TARE_NO_MEMORY;
}

/* The passes as the plan has them: names in the arena and rows. */
static tare_status set_passes(struct tare_quant_plan *plan, struct tare_arena *arena, const struct tare_strbuf *names) {
    if (!names->size) return TARE_OK;
    plan->pass_names = tare_arena_strndup(arena, tare_strbuf_text(names), names->size - 1);
    if (!plan->pass_names) return TARE_NO_MEMORY;
    return tare_error_prefix(tare_quant_passes_parse(&plan->passes, arena, plan->pass_names), "--methods");
}

/* Parses "static" or "static+bias_correction+bfloat16"; setting.method stays NULL for "float" and "bfloat16", whose
 * plan is without passes and rules. */
static tare_status read_method(struct tare_variant *variant, struct tare_arena *arena, const char *text) {
    struct tare_quant_plan *plan = &variant->plan;
    char *copy = tare_arena_strdup(arena, text), *save = NULL, *name;
    struct tare_strbuf passes = { 0 }, printed = { 0 };
    tare_status status;
    if (!copy) return TARE_NO_MEMORY;
    name = strtok_r(copy, "+", &save);
    status = read_settings(variant, &printed, name ? name : copy);
    while (status == TARE_OK && (name = strtok_r(NULL, "+", &save)))
        status = plan->setting.method
                     ? find_addition(variant, &passes, name)
                     : TARE_FAIL(TARE_USAGE, "--methods: there is nothing to add to '%s' (got '%s')", copy, name);
    if (status == TARE_OK) status = set_passes(plan, arena, &passes);
    if (status == TARE_OK && !plan->setting.method) *plan = (struct tare_quant_plan){ 0 };
    if (status == TARE_OK) status = name_variant(variant, arena, &printed);
    tare_strbuf_free(&passes);
    tare_strbuf_free(&printed);
    return status;
}

static bool is_same(const struct tare_variant *a, const struct tare_variant *b) {
    const struct tare_quant_setting *x = &a->plan.setting, *y = &b->plan.setting;
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
    struct tare_quant_setting *setting = &variant.plan.setting;
    if (!setting->method->needs_ranges || variant.refused) return add(list, arena, &variant);
    for (size_t a = 0; a < algorithms->count; a++) {
        TARE_TRY(tare_error_prefix(tare_algorithm_parse(&setting->algorithm, algorithms->items[a]), "--algorithms"));
        TARE_TRY(add(list, arena, &variant));
    }
    return TARE_OK;
}

/* Sets `refused` when the settings of the variant exclude each other, such as weight_only in the op set tf. */
static tare_status check(struct tare_variant *variant, struct tare_arena *arena) {
    const struct tare_quant_plan *plan = &variant->plan;
    struct tare_quant_setting setting = plan->setting;
    tare_status status;
    if (variant->refused || !setting.method) return TARE_OK;
    status = tare_quant_method_in(setting.method, plan->op_set, TARE_FORMAT_INT)
                 ? tare_quant_choose_form(&setting, plan->op_set)
                 : TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s does not exist in the op set %s",
                             plan->setting.method->name, tare_quant_op_set_names[plan->op_set]);
    if (status == TARE_OK) status = tare_quant_check_setting(&setting);
    if (status != TARE_INVALID_ARGUMENT) return status;
    variant->refused = tare_arena_strdup(arena, tare_error_text());
    tare_error_clear();
    return variant->refused ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_method(struct tare_variant_list *list, struct tare_arena *arena, const char *name,
                              const struct names *algorithms, const struct names *granularities,
                              const struct tare_quant_plan *plan) {
    struct tare_variant variant = { .plan = *plan };
    struct tare_quant_setting *setting = &variant.plan.setting;
    TARE_TRY(read_method(&variant, arena, name));
    if (!setting->method) return add(list, arena, &variant);
    if (!variant.sets_granularity && !granularities && !(plan->setting.given >> TARE_SET_GRANULARITY & 1))
        setting->granularity = tare_quant_default_granularity(variant.plan.op_set);
    for (size_t g = 0; g < (variant.sets_granularity || !granularities ? 1 : granularities->count); g++) {
        variant.refused = NULL;
        if (!variant.sets_granularity && granularities)
            TARE_TRY(tare_error_prefix(tare_quant_setting_read(setting, "granularity", granularities->items[g]),
                                       "--granularities"));
        TARE_TRY(check(&variant, arena));
        TARE_TRY(add_algorithms(list, arena, variant, algorithms));
    }
    return TARE_OK;
}

tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *method_names,
                                const char *algorithm_names, const char *granularity_names,
                                const struct tare_quant_plan *plan) {
    struct names methods, algorithms, granularities;
    memset(out, 0, sizeof *out);
    TARE_TRY(split(&methods, arena, "--methods", method_names));
    TARE_TRY(split(&algorithms, arena, "--algorithms", algorithm_names));
    for (size_t i = 0; i < algorithms.count; i++) { /* also those that no method needs */
        struct tare_algorithm_choice choice;
        TARE_TRY(tare_error_prefix(tare_algorithm_parse(&choice, algorithms.items[i]), "--algorithms"));
    }
    if (granularity_names) TARE_TRY(split(&granularities, arena, "--granularities", granularity_names));
    const struct names *chosen = granularity_names ? &granularities : NULL;
    TARE_TRY(add_method(out, arena, "float", &algorithms, chosen, plan));
    for (size_t i = 0; i < methods.count; i++)
        TARE_TRY(add_method(out, arena, methods.items[i], &algorithms, chosen, plan));
    return TARE_OK;
}

tare_status tare_variant_names(const char *const **out, struct tare_arena *arena, const char *methods,
                               const char *algorithm) {
    struct tare_quant_plan plan = { 0 };
    struct names names;
    TARE_TRY(tare_quant_plan_open(&plan, arena));
    TARE_TRY(split(&names, arena, "--methods", methods));
    for (size_t i = 0; i < names.count; i++) {
        struct tare_variant_list list;
        TARE_TRY(tare_variants_parse(&list, arena, names.items[i], algorithm ? algorithm : "min_max", NULL, &plan));
        const char *refused = list.variants[list.count - 1].refused;
        if (refused) return TARE_FAIL(TARE_USAGE, "--methods: %s: %s", names.items[i], refused);
    }
    const char **grown = tare_arena_append(arena, names.items, names.count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[names.count] = NULL;
    *out = grown;
    return TARE_OK;
}

tare_status tare_variant_texts(const char **algorithm, const char **granularity, struct tare_arena *arena,
                               const struct tare_variant *variant) {
    const struct tare_quant_setting *setting = &variant->plan.setting;
    *algorithm = *granularity = NULL;
    if (tare_quant_needs_ranges(&variant->plan)) {
        struct tare_strbuf text = { 0 };
        tare_algorithm_print(&text, &setting->algorithm);
        *algorithm = text.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&text));
        tare_strbuf_free(&text);
        if (!*algorithm) return TARE_NO_MEMORY;
    }
    if (!setting->method) return TARE_OK;
    *granularity = tare_quant_granularity_name(setting->granularity);
    if (setting->granularity == TARE_PER_BLOCK)
        *granularity = tare_arena_printf(arena, "%s:%lld", *granularity, (long long)setting->block);
    return *granularity ? TARE_OK : TARE_NO_MEMORY;
}

bool tare_variant_calibrates(const struct tare_variant *variant) {
    return tare_quant_plan_needs_calibration(&variant->plan);
}

bool tare_variants_calibrate(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_variant_calibrates(&list->variants[i])) return true;
    return false;
}

bool tare_variants_need_channels(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_quant_passes_need_channels(list->variants[i].plan.passes)) return true;
    return false;
}

bool tare_variants_need_hessians(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->variants[i].refused && tare_quant_passes_need_hessians(list->variants[i].plan.passes)) return true;
    return false;
}

/* ---- models ---- */

/* The float32 constants that bfloat16 ones have replaced: they are not part of the model's size. */
static tare_status remove_float_constants(struct tare_graph_model *model) {
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(tare_graph_remove_unreachable(tare_model_graph(model, i), NULL));
    return TARE_OK;
}

/* What `tare convert --bfloat16 analysis` computes. */
static tare_status to_bfloat16(struct tare_arena *arena, struct tare_graph_model *model,
                               const struct tare_variant *variant) {
    struct tare_converter_options converter;
    struct tare_conversion conversion;
    TARE_TRY(tare_converter_options_parse(&converter, arena, "", 0, NULL));
    converter.automatic = true;
    converter.extent = TARE_BF16_ANALYSIS;
    converter.has_quantization = tare_quant_plan_quantizes(&variant->plan);
    TARE_TRY(tare_pipeline_compute(&conversion, arena, model, &converter));
    return remove_float_constants(model);
}

tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena,
                               struct tare_graph_model *model, const struct tare_variant *variant,
                               struct tare_calibration *calibration) {
    TARE_TRY(tare_pipeline_quantize(report, arena, model, &variant->plan, calibration));
    return variant->bfloat16 ? to_bfloat16(arena, model, variant) : TARE_OK;
}
