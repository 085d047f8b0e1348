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

/* Prints the name: "static", "static+bias_correction+bfloat16". */
static tare_status name_variant(struct tare_variant *variant, struct tare_arena *arena, const char *method) {
    const struct tare_quant_pass *const *passes = variant->options.passes;
    struct tare_strbuf text = { 0 };
    tare_strbuf_puts(&text, method);
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
    tare_status status = TARE_OK;
    if (!copy) return TARE_NO_MEMORY;
    TARE_TRY(find_method(&options->setting.method, strtok_r(copy, "+", &save)));
    variant->bfloat16 = strcmp(copy, "bfloat16") == 0;
    while ((name = strtok_r(NULL, "+", &save)) && status == TARE_OK)
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
    grown = tare_arena_extend(arena, list->variants, list->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[list->count++] = *variant;
    list->variants = grown;
    return TARE_OK;
}

/* All algorithms of one method and granularity. */
static tare_status add_algorithms(struct tare_variant_list *list, struct tare_arena *arena, struct tare_variant variant,
                                  const struct names *algorithms) {
    struct tare_quant_setting *setting = &variant.options.setting;
    if (!setting->method->needs_ranges) return add(list, arena, &variant);
    for (size_t a = 0; a < algorithms->count; a++) {
        TARE_TRY(tare_error_prefix(tare_algorithm_parse(&setting->algorithm, algorithms->items[a]), "--algorithms"));
        TARE_TRY(add(list, arena, &variant));
    }
    return TARE_OK;
}

static tare_status add_method(struct tare_variant_list *list, struct tare_arena *arena, const char *name,
                              const struct names *algorithms, const struct names *granularities, int bits) {
    struct tare_variant variant = { .options.setting.bits = bits };
    struct tare_quant_setting *setting = &variant.options.setting;
    TARE_TRY(read_method(&variant, arena, name));
    if (!setting->method) return add(list, arena, &variant);
    for (size_t g = 0; g < granularities->count; g++) {
        unsigned sets = 0;
        TARE_TRY(tare_error_prefix(tare_quant_setting_read(setting, &sets, "granularity", granularities->items[g]),
                                   "--granularities"));
        if (setting->granularity == TARE_PER_BLOCK && !setting->method->takes_blocks) continue;
        TARE_TRY(tare_error_prefix(tare_quant_check_setting(setting), "%s", name));
        TARE_TRY(add_algorithms(list, arena, variant, algorithms));
    }
    return TARE_OK;
}

tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *method_names,
                                const char *algorithm_names, const char *granularity_names, int bits) {
    struct names expected, algorithms, granularities;
    memset(out, 0, sizeof *out);
    TARE_TRY(split(&expected, arena, "--methods", method_names));
    TARE_TRY(split(&algorithms, arena, "--algorithms", algorithm_names));
    TARE_TRY(split(&granularities, arena, "--granularities", granularity_names));
    TARE_TRY(add_method(out, arena, "float", &algorithms, &granularities, bits));
    for (size_t i = 0; i < expected.count; i++)
        TARE_TRY(add_method(out, arena, expected.items[i], &algorithms, &granularities, bits));
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

bool tare_variants_calibrate(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (tare_quant_needs_ranges(&list->variants[i].options)) return true;
    return tare_variants_need_channels(list);
}

bool tare_variants_need_channels(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (tare_quant_passes_need_channels(list->variants[i].options.passes)) return true;
    return false;
}

bool tare_variants_need_hessians(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (tare_quant_passes_need_hessians(list->variants[i].options.passes)) return true;
    return false;
}

/* ---- models ---- */

tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                               const struct tare_variant *variant, struct tare_calibration *calibration) {
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    const struct tare_bfloat16_options bfloat16 = { .skip_safety_checks = true };
    size_t changes = 0;
    memset(report, 0, sizeof *report);
    if (tare_quant_needs_ranges(&variant->options) && !calibration)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s needs a calibration", variant->name);
    TARE_TRY(tare_calibration_check_passes(calibration, variant->options.passes));
    TARE_TRY(tare_pipeline_quantize(report, arena, model, &variant->options, &ranges));
    return variant->bfloat16 ? tare_tpu_bfloat16(model, &model->main, 1, &bfloat16, &changes) : TARE_OK;
}
