/* One function for each kind of warning. */
#include "calib/warnings.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "calib/convergence.h"

#include <inttypes.h>
#include <string.h>

const double tare_warning_outlier_share = 0.8;

enum { NAMED_TENSORS = 4 }; /* a message names this many and counts the others */

/* ---- the list ---- */

/* Takes ownership of `text` (freed also on failure). */
static tare_status add(struct tare_calibration_warning_list *list, struct tare_calibration_warning warning,
                       struct tare_strbuf *text) {
    warning.text = text->failed ? NULL : tare_arena_strdup(&list->arena, tare_strbuf_text(text));
    tare_strbuf_free(text);
    if (!warning.text || !TARE_GROW(list->items, list->count, list->capacity)) return TARE_NO_MEMORY;
    list->items[list->count++] = warning;
    return TARE_OK;
}

void tare_calibration_warning_list_free(struct tare_calibration_warning_list *list) {
    tare_free(list->items);
    tare_arena_free(&list->arena);
    *list = (struct tare_calibration_warning_list){ 0 };
}

static const struct tare_calibration_warning about_no_record = { .input = -1, .record = -1 };

static void put_tensor(struct tare_strbuf *text, const struct tare_calibration_tensor *tensor) {
    tare_strbuf_printf(text, "'%s:%d'", tensor->node, tensor->output);
    if (*tensor->function != '\0') tare_strbuf_printf(text, " of function '%s'", tensor->function);
}

static void put_tensors(struct tare_strbuf *text, const struct tare_calibration_warning *warning) {
    size_t named = warning->n_tensors <= NAMED_TENSORS + 1 ? warning->n_tensors : NAMED_TENSORS;
    for (size_t i = 0; i < named; i++) {
        tare_strbuf_puts(text, i > 0 ? ", " : "");
        put_tensor(text, warning->tensors[i]);
    }
    if (named < warning->n_tensors) tare_strbuf_printf(text, " and %zu more", warning->n_tensors - named);
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

/* Tensors that one warning is about, in the calibration's order. */
struct group {
    struct tare_calibration_warning warning;
    size_t capacity;
};

static bool is_at(const struct group *group, int32_t input, int64_t record) {
    return group->warning.input == input && group->warning.record == record;
}

static tare_status put_in_group(struct tare_calibration_warning_list *list, struct group *group,
                                const struct tare_calibration_tensor *tensor) {
    struct tare_calibration_warning *warning = &group->warning;
    if (warning->n_tensors == group->capacity) {
        size_t capacity = group->capacity ? 2 * group->capacity : 4;
        const struct tare_calibration_tensor **grown =
            TARE_NEW_ARRAY(&list->arena, const struct tare_calibration_tensor *, capacity);
        if (!grown) return TARE_NO_MEMORY;
        if (warning->n_tensors > 0) memcpy(grown, warning->tensors, warning->n_tensors * sizeof *grown);
        warning->tensors = grown;
        group->capacity = capacity;
    }
    warning->tensors[warning->n_tensors++] = tensor;
    return TARE_OK;
}

/* Groups by record, in the order of the tensors. */
struct groups {
    struct group *items;
    size_t count, capacity;
};

static tare_status put_by_record(struct tare_calibration_warning_list *list, struct groups *groups, int32_t input,
                                 int64_t record, const struct tare_calibration_tensor *tensor) {
    size_t at = 0;
    while (at < groups->count && !is_at(&groups->items[at], input, record))
        at++;
    if (at == groups->count) {
        if (!TARE_GROW(groups->items, groups->count, groups->capacity)) return TARE_NO_MEMORY;
        groups->items[groups->count++] = (struct group){ .warning = { .input = input, .record = record } };
    }
    return put_in_group(list, &groups->items[at], tensor);
}

/* ---- coverage ---- */

/* The tensors of one function, in the calibration's order. */
struct function_tensors {
    struct tare_calibration_tensor *const *items;
    size_t count;
    bool is_side; /* a branch or loop body whose coverage is known */
};

/* Functions by name. */
struct functions {
    struct tare_map by_name; /* of struct function_tensors */
    struct tare_arena *arena;
};

static struct function_tensors *function_entry(struct functions *functions, const char *name) {
    struct function_tensors *entry = tare_map_get(&functions->by_name, name);
    if (entry) return entry;
    entry = TARE_NEW(functions->arena, struct function_tensors);
    return entry && tare_map_set(&functions->by_name, name, entry) ? entry : NULL;
}

/* Sorts the tensors by function, so that each function has a part of one array. */
static tare_status index_functions(struct functions *functions, const struct tare_calibration *c) {
    struct tare_calibration_tensor **sorted =
        TARE_NEW_ARRAY(functions->arena, struct tare_calibration_tensor *, c->n_tensors + 1);
    struct function_tensors **entries = TARE_NEW_ARRAY(functions->arena, struct function_tensors *, c->n_tensors + 1);
    size_t end = 0;
    if (!sorted || !entries) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->n_tensors; i++) {
        entries[i] = function_entry(functions, c->tensors[i]->function);
        if (!entries[i]) return TARE_NO_MEMORY;
        entries[i]->count++;
    }
    for (size_t i = 0; i < c->n_tensors; i++) {
        if (entries[i]->items) continue;
        entries[i]->items = &sorted[end];
        end += entries[i]->count;
        entries[i]->count = 0;
    }
    for (size_t i = 0; i < c->n_tensors; i++)
        sorted[(size_t)(entries[i]->items - sorted) + entries[i]->count++] = c->tensors[i];
    for (size_t i = 0; i < c->coverage.count; i++) {
        struct function_tensors *entry = function_entry(functions, c->coverage.sides[i].target);
        if (!entry) return TARE_NO_MEMORY;
        entry->is_side = true;
    }
    return TARE_OK;
}

static const struct function_tensors *tensors_of(const struct functions *functions, const char *name) {
    static const struct function_tensors none = { 0 };
    const struct function_tensors *entry = tare_map_get(&functions->by_name, name);
    return entry ? entry : &none;
}

static tare_status warn_of_side(struct tare_calibration_warning_list *list, const struct tare_calibration *c,
                                const struct functions *functions, const struct tare_coverage_side *side) {
    const struct function_tensors *observed = tensors_of(functions, side->target);
    struct group group = { .warning = about_no_record };
    struct tare_strbuf text = { 0 };
    char name[TARE_COVERAGE_SIDE_TEXT];
    group.warning.kind = "unreached_side";
    for (size_t i = 0; i < observed->count; i++)
        if (observed->items[i]->statistics.samples == 0) TARE_TRY(put_in_group(list, &group, observed->items[i]));
    size_t tensors = group.warning.n_tensors;
    tare_coverage_side_text(name, side);
    tare_strbuf_printf(&text, "no record took the %s of %s '%s'", name, side->op, side->node);
    if (*side->function != '\0') tare_strbuf_printf(&text, " in function '%s'", side->function);
    const bool is_shared = tare_calibration_function_records(c, side->target) > 0;
    tare_strbuf_printf(&text, " (function '%s'%s)", side->target, is_shared ? ", which other nodes run" : "");
    if (!is_shared && tensors > 0)
        tare_strbuf_printf(&text, ": its %zu observed tensor%s ha%s no range", tensors, plural(tensors),
                           tensors == 1 ? "s" : "ve");
    return add(list, group.warning, &text);
}

static tare_status warn_of_function(struct tare_calibration_warning_list *list, const char *name, size_t tensors) {
    struct tare_calibration_warning warning = about_no_record;
    struct tare_strbuf text = { 0 };
    warning.kind = "unreached_function";
    tare_strbuf_printf(&text, "no record reached function '%s' (%zu observed tensor%s)", name, tensors,
                       plural(tensors));
    return add(list, warning, &text);
}

/* Branches inside a function that was not reached are not reported. A function without observed tensors, such as the
 * one by which a reduction combines two elements, lacks nothing: its op may compute without running it. */
static tare_status warn_of_sides(struct tare_calibration_warning_list *list, const struct tare_calibration *c,
                                 const struct functions *functions) {
    size_t sides = 0;
    for (size_t i = 0; i < c->coverage.count; i++) {
        const struct tare_coverage_side *side = &c->coverage.sides[i];
        if (side->records > 0) continue;
        if (tare_calibration_function_records(c, side->function) == 0) continue;
        TARE_TRY(warn_of_side(list, c, functions, side));
        sides++;
    }
    for (size_t i = 0; i < c->n_functions && sides == 0; i++) {
        const struct function_tensors *observed = tensors_of(functions, c->functions[i].name);
        if (c->functions[i].records > 0 || observed->is_side || !observed->count) continue;
        TARE_TRY(warn_of_function(list, c->functions[i].name, observed->count));
    }
    return TARE_OK;
}

static tare_status warn_of_functions(struct tare_calibration_warning_list *list, const struct tare_calibration *c) {
    struct functions functions = { .arena = &list->arena };
    tare_status status = index_functions(&functions, c);
    if (status == TARE_OK) status = warn_of_sides(list, c, &functions);
    tare_map_free(&functions.by_name);
    return status;
}

/* One warning about all tensors of a group, unless it is empty. */
static tare_status add_group(struct tare_calibration_warning_list *list, struct tare_calibration_warning *warning,
                             const char *kind, const char *tensor, const char *what) {
    struct tare_strbuf text = { 0 };
    if (warning->n_tensors == 0) return TARE_OK;
    warning->kind = kind;
    tare_strbuf_printf(&text, "%zu %s%s%s: ", warning->n_tensors, tensor, plural(warning->n_tensors), what);
    put_tensors(&text, warning);
    return add(list, *warning, &text);
}

static tare_status warn_of_unreached_tensors(struct tare_calibration_warning_list *list,
                                             const struct tare_calibration *c) {
    struct group group = { .warning = about_no_record };
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct tare_calibration_tensor *tensor = c->tensors[i];
        if (tensor->statistics.samples > 0) continue;
        /* A calibration that was not created by the engine contains no functions. */
        bool known = c->n_functions > 0 || *tensor->function == '\0';
        if (known && tare_calibration_function_records(c, tensor->function) == 0) continue;
        TARE_TRY(put_in_group(list, &group, tensor));
    }
    return add_group(list, &group.warning, "unreached_tensor", "observed tensor", " no record computed");
}

/* ---- values ---- */

static tare_status warn_of_not_finite(struct tare_calibration_warning_list *list, const struct tare_calibration *c,
                                      bool nan) {
    struct groups groups = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct tare_statistics *s = &c->tensors[i]->statistics;
        const struct tare_place *first = nan ? &s->first_nan : &s->first_infinity;
        if (nan ? s->has_nan : s->has_infinity)
            TARE_CHECK(put_by_record(list, &groups, first->input, first->record, c->tensors[i]));
    }
    for (size_t i = 0; i < groups.count; i++) {
        struct tare_calibration_warning *warning = &groups.items[i].warning;
        struct tare_strbuf text = { 0 };
        warning->kind = nan ? "nan" : "infinity";
        tare_strbuf_printf(
            &text, "%s in record %" PRId64 " of '%s', the first in %zu tensor%s: ", nan ? "NaN" : "infinity",
            warning->record, c->inputs[warning->input].file, warning->n_tensors, plural(warning->n_tensors));
        put_tensors(&text, warning);
        TARE_CHECK(add(list, *warning, &text));
    }
done:
    tare_free(groups.items);
    return status;
}

static struct tare_range_without without(const struct tare_statistics *s, const struct tare_extreme *left_out) {
    struct tare_range_without out = { .input = left_out->input, .record = left_out->record };
    bool holds_low = s->lowest[0].input == left_out->input && s->lowest[0].record == left_out->record;
    bool holds_high = s->highest[0].input == left_out->input && s->highest[0].record == left_out->record;
    out.low = s->lowest[holds_low].value;
    out.high = s->highest[holds_high].value;
    double whole = tare_width_with_zero(s->lowest[0].value, s->highest[0].value);
    out.share = whole > 0 ? tare_width_with_zero(out.low, out.high) / whole : 1;
    return out;
}

bool tare_statistics_range_without(struct tare_range_without *out, const struct tare_statistics *s) {
    if (s->n_extremes < 2) return false;
    struct tare_range_without low = without(s, &s->lowest[0]), high = without(s, &s->highest[0]);
    *out = low.share < high.share ? low : high;
    return true;
}

static tare_status warn_of_outliers(struct tare_calibration_warning_list *list, const struct tare_calibration *c) {
    struct groups groups = { 0 };
    struct tare_range_without range;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct tare_statistics *s = &c->tensors[i]->statistics;
        if (s->finite_samples < TARE_WARNING_OUTLIER_RECORDS || !tare_statistics_range_without(&range, s)) continue;
        if (range.share <= tare_warning_outlier_share)
            TARE_CHECK(put_by_record(list, &groups, range.input, range.record, c->tensors[i]));
    }
    for (size_t i = 0; i < groups.count; i++) {
        struct tare_calibration_warning *warning = &groups.items[i].warning;
        const struct tare_calibration_tensor *worst = warning->tensors[0];
        struct tare_range_without least = { .share = 2 };
        for (size_t k = 0; k < warning->n_tensors; k++) {
            if (!tare_statistics_range_without(&range, &warning->tensors[k]->statistics) || range.share >= least.share)
                continue;
            least = range;
            worst = warning->tensors[k];
        }
        struct tare_strbuf text = { 0 };
        warning->kind = "outlier";
        tare_strbuf_printf(&text, "record %" PRId64 " of '%s' alone sets the range of %zu tensor%s: ", warning->record,
                           c->inputs[warning->input].file, warning->n_tensors, plural(warning->n_tensors));
        put_tensor(&text, worst);
        tare_strbuf_printf(&text, " has %.5g … %.5g, without it %.5g … %.5g", worst->statistics.lowest[0].value,
                           worst->statistics.highest[0].value, least.low, least.high);
        TARE_CHECK(add(list, *warning, &text));
    }
done:
    tare_free(groups.items);
    return status;
}

static tare_status warn_of_constants(struct tare_calibration_warning_list *list, const struct tare_calibration *c) {
    struct group group = { .warning = about_no_record };
    double low, high;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct tare_statistics *s = &c->tensors[i]->statistics;
        if (!tare_statistics_extremes(&low, &high, s) || low != high) continue;
        TARE_TRY(put_in_group(list, &group, c->tensors[i]));
    }
    return add_group(list, &group.warning, "constant", "tensor",
                     " with one value only (where it is a state that the model returns: --feedback OUTPUT=INPUT)");
}

/* ---- records ---- */

/* Inputs are sorted by signature. */
static tare_status warn_of_few_records(struct tare_calibration_warning_list *list, const struct tare_calibration *c) {
    for (size_t i = 0, next; i < c->n_inputs; i = next) {
        int64_t records = 0;
        for (next = i; next < c->n_inputs && strcmp(c->inputs[next].signature, c->inputs[i].signature) == 0; next++)
            records += tare_record_set_size(&c->inputs[next].records);
        if (records >= TARE_WARNING_FEW_RECORDS) continue;
        struct tare_calibration_warning warning = about_no_record;
        struct tare_strbuf text = { 0 };
        warning.kind = "few_records";
        tare_strbuf_printf(&text, "only %" PRId64 " record%s of signature '%s' (%d or more are advised)", records,
                           plural((size_t)records), c->inputs[i].signature, TARE_WARNING_FEW_RECORDS);
        TARE_TRY(add(list, warning, &text));
    }
    return TARE_OK;
}

static tare_status warn_of_bad_records(struct tare_calibration_warning_list *list, const struct tare_calibration *c) {
    for (size_t i = 0; i < c->n_inputs; i++) {
        const struct tare_calibration_input *input = &c->inputs[i];
        struct tare_calibration_warning warning = { .kind = "bad_records", .input = (int32_t)i };
        struct tare_strbuf text = { 0 };
        if (input->n_bad == 0) continue;
        warning.record = input->bad[0].record;
        tare_strbuf_printf(&text, "%zu record%s of '%s' passed over; the first: %s", input->n_bad, plural(input->n_bad),
                           input->file, input->bad[0].text);
        TARE_TRY(add(list, warning, &text));
    }
    return TARE_OK;
}

static tare_status warn_plainly(struct tare_calibration_warning_list *list, const char *kind, const char *words) {
    struct tare_calibration_warning warning = about_no_record;
    struct tare_strbuf text = { 0 };
    warning.kind = kind;
    tare_strbuf_puts(&text, words);
    return add(list, warning, &text);
}

tare_status tare_calibration_warnings(struct tare_calibration_warning_list *out, const struct tare_calibration *c) {
    *out = (struct tare_calibration_warning_list){ 0 };
    if (c->unfinished)
        TARE_TRY(warn_plainly(out, "unfinished",
                              "this is the state of an interrupted run (calibrate --resume goes on with it)"));
    TARE_TRY(warn_of_bad_records(out, c));
    if (tare_calibration_records(c) == 0) return warn_plainly(out, "no_records", "no record was counted");
    TARE_TRY(warn_of_functions(out, c));
    TARE_TRY(warn_of_unreached_tensors(out, c));
    TARE_TRY(warn_of_not_finite(out, c, true));
    TARE_TRY(warn_of_not_finite(out, c, false));
    TARE_TRY(warn_of_outliers(out, c));
    TARE_TRY(warn_of_few_records(out, c));
    return warn_of_constants(out, c);
}
