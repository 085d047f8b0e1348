/* Reading lists of methods and making their models. */
#include "eval/variant.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "convert/pipeline.h"
#include "quant/recipe.h"
#include "tpu/bfloat16.h"

#include <string.h>

/* Without quantization; the methods of quant/method.h follow them. */
static const char *const plain_methods[] = { "float", "bfloat16" };
enum { N_PLAIN = 2, MOST_METHODS = 32 };

/* ---- lists ---- */

struct names {
    const char **items;
    size_t count;
};

/* Splits at commas; spaces around a name do not count. A comma inside "percentile:min=1,max=99" belongs to the
 * algorithm: a piece that has '=' but no ':' goes on with the one before. */
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
        grown = tare_arena_extend(arena, out->items, out->count, 1, sizeof *grown);
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

/* What stands behind a method: bfloat16, or an accuracy pass. */
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

/* "static", "static+bias_correction+bfloat16"; *out is NULL for those that quantize nothing. */
static tare_status read_method(struct tare_variant *variant, const struct tare_quant_method **out,
                               struct tare_arena *arena) {
    char *copy = tare_arena_strdup(arena, variant->method), *save = NULL, *name;
    struct tare_strbuf passes = { 0 };
    tare_status status;
    if (!copy) return TARE_NO_MEMORY;
    TARE_TRY(find_method(out, strtok_r(copy, "+", &save)));
    variant->bfloat16 = strcmp(copy, "bfloat16") == 0;
    status = TARE_OK;
    while ((name = strtok_r(NULL, "+", &save)) && status == TARE_OK)
        status = *out ? find_addition(variant, &passes, name)
                      : TARE_FAIL(TARE_USAGE, "--methods: there is nothing to add to '%s' (got '%s')", copy, name);
    if (status == TARE_OK && passes.size)
        status = tare_error_prefix(
            tare_quant_passes_parse(&variant->quantization.options.passes, arena, tare_strbuf_text(&passes)),
            "--methods");
    tare_strbuf_free(&passes);
    return status;
}

static tare_status add(struct tare_variant_list *list, struct tare_arena *arena, const struct tare_variant *variant) {
    struct tare_variant *grown;
    for (size_t i = 0; i < list->count; i++) { /* asked for twice: measured once */
        const struct tare_variant *v = &list->variants[i];
        if (strcmp(v->method, variant->method) == 0 &&
            strcmp(v->algorithm ? v->algorithm : "", variant->algorithm ? variant->algorithm : "") == 0 &&
            strcmp(v->granularity ? v->granularity : "", variant->granularity ? variant->granularity : "") == 0)
            return TARE_OK;
    }
    grown = tare_arena_extend(arena, list->variants, list->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[list->count++] = *variant;
    list->variants = grown;
    return TARE_OK;
}

/* All algorithms of one method and granularity. */
static tare_status add_algorithms(struct tare_variant_list *list, struct tare_arena *arena, struct tare_variant variant,
                                  bool ranges, const struct names *algorithms) {
    if (!ranges) return add(list, arena, &variant);
    for (size_t a = 0; a < algorithms->count; a++) {
        variant.algorithm = algorithms->items[a];
        TARE_TRY(tare_error_prefix(tare_algorithm_parse(&variant.choice, variant.algorithm), "--algorithms"));
        variant.quantization.algorithm = variant.choice.row->name;
        TARE_TRY(add(list, arena, &variant));
    }
    return TARE_OK;
}

static tare_status add_method(struct tare_variant_list *list, struct tare_arena *arena, const char *name,
                              const struct names *algorithms, const struct names *wanted_granularities, int bits) {
    const struct tare_quant_method *method;
    struct tare_variant variant = { .method = name };
    TARE_TRY(read_method(&variant, &method, arena));
    variant.quantization.options.setting.method = method;
    if (!method) return add(list, arena, &variant);
    variant.quantization.options.setting.bits = bits;
    for (size_t g = 0; g < wanted_granularities->count; g++) {
        struct tare_quant_setting *setting = &variant.quantization.options.setting;
        unsigned sets = 0;
        variant.granularity = wanted_granularities->items[g];
        TARE_TRY(tare_error_prefix(tare_quant_setting_read(setting, &sets, "granularity", variant.granularity),
                                   "--granularities"));
        if (setting->granularity == TARE_PER_BLOCK && !method->takes_blocks) continue;
        TARE_TRY(tare_error_prefix(tare_quant_check_setting(setting), "%s", name));
        TARE_TRY(add_algorithms(list, arena, variant, method->needs_ranges, algorithms));
    }
    return TARE_OK;
}

tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *method_names,
                                const char *algorithm_names, const char *granularity_names, int bits) {
    struct names expected, algorithms, wanted_granularities;
    memset(out, 0, sizeof *out);
    TARE_TRY(split(&expected, arena, "--methods", method_names));
    TARE_TRY(split(&algorithms, arena, "--algorithms", algorithm_names));
    TARE_TRY(split(&wanted_granularities, arena, "--granularities", granularity_names));
    TARE_TRY(add_method(out, arena, "float", &algorithms, &wanted_granularities, bits));
    for (size_t i = 0; i < expected.count; i++)
        TARE_TRY(add_method(out, arena, expected.items[i], &algorithms, &wanted_granularities, bits));
    return TARE_OK;
}

bool tare_variants_calibrate(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->variants[i].algorithm) return true;
    return tare_variants_need_channels(list);
}

bool tare_variants_need_channels(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (tare_quant_passes_need_channels(list->variants[i].quantization.options.passes)) return true;
    return false;
}

bool tare_variants_need_hessians(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (tare_quant_passes_need_hessians(list->variants[i].quantization.options.passes)) return true;
    return false;
}

/* ---- models ---- */

tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                               const struct tare_variant *variant, struct tare_calibration *calibration) {
    const struct tare_quant_setting *setting = &variant->quantization.options.setting;
    const struct tare_calibrated_ranges calibrated = { .calibration = calibration,
                                                       .algorithm = variant->choice,
                                                       .symmetric = setting->symmetric,
                                                       .bits = setting->activation_bits };
    struct tare_quant_ranges ranges = { 0 };
    const struct tare_bfloat16_options bfloat16 = { .skip_safety_checks = true };
    size_t changes = 0;
    memset(report, 0, sizeof *report);
    if (variant->algorithm && !calibration)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s needs a calibration", variant->method);
    if (calibration) ranges = tare_ranges_of(&calibrated);
    TARE_TRY(tare_calibration_check_passes(calibration, variant->quantization.options.passes));
    TARE_TRY(tare_pipeline_quantize(report, arena, model, &variant->quantization, &ranges));
    return variant->bfloat16 ? tare_tpu_bfloat16(model, &model->main, 1, &bfloat16, &changes) : TARE_OK;
}
