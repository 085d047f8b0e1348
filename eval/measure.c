/* Measures, their intervals and differences; see the header. */
#include "eval/measure_row.h"
#include "base/strbuf.h"

#include <math.h>
#include <string.h>

#define ROW(kind, name) &tare_measure_##name,
#define NAME(kind, name) #name,
static const struct tare_measure_row *const rows[] = { TARE_EACH_MEASURE(ROW) }; /* by kind */
const char *const tare_metric_names[] = { "auto", TARE_EACH_MEASURE(NAME) NULL };
static const struct tare_measure accuracy = { "accuracy", "accuracy", " %", false, TARE_MEASURE_TOP1 };

tare_status tare_measure_read(int *metric, const char *name) {
    struct tare_strbuf names = { 0 };
    tare_status status;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_strbuf_printf(&names, "%s%s", i ? ", " : "", rows[i]->key);
        if (strcmp(rows[i]->key, name) != 0) continue;
        *metric = 1 + (int)i;
        tare_strbuf_free(&names);
        return TARE_OK;
    }
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "metric is '%s' (expected %s)", name, tare_strbuf_text(&names));
    tare_strbuf_free(&names);
    return status;
}

const struct tare_measure *tare_measure_find(enum tare_measure_kind kind) {
    return &rows[kind]->measure;
}

const char *tare_measure_key(const struct tare_measure *measure) {
    return measure->kind == TARE_MEASURE_CUSTOM ? measure->name : rows[measure->kind]->key;
}

bool tare_measure_is_tested(const struct tare_measure *measure) {
    return measure->kind != TARE_MEASURE_CUSTOM && rows[measure->kind]->paired;
}

bool tare_measure_has(enum tare_measure_kind kind, const struct tare_metrics *m) {
    return kind == TARE_MEASURE_CUSTOM ? m->has_custom : rows[kind]->has(m);
}

static bool has_requested(const struct tare_comparison *c, const struct tare_metrics *m) {
    return c->metric > 0 && c->metric - 1 != TARE_MEASURE_SQNR &&
           tare_measure_has((enum tare_measure_kind)(c->metric - 1), m);
}

static bool has_truth(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return tare_measure_has(TARE_MEASURE_MAE, m) || tare_measure_has(TARE_MEASURE_TOP1, m) || m->positions.known;
}

/* An output that is the same for every record, such as the anchors of a detector, measures nothing. */
static bool is_varying(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return m->varies && m->floating && m->elements > 0;
}

static bool is_floating(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return m->floating && m->elements > 0;
}

static bool is_numeric(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return m->elements > 0;
}

/* Of outputs that could have the classes of the labels, such as the scores and an embedding, the one by which float is
 * right most often; output i if labels are not measured by class. */
static size_t best_of_classes(const struct tare_comparison *c, size_t i) {
    const struct tare_metrics *outputs = c->rows[0].outputs;
    if (!tare_measure_has(TARE_MEASURE_TOP1, &outputs[i]) || tare_measure_has(TARE_MEASURE_MAE, &outputs[i])) return i;
    for (size_t k = i + 1; k < c->n_outputs; k++)
        if (tare_measure_has(TARE_MEASURE_TOP1, &outputs[k]) && !tare_measure_has(TARE_MEASURE_MAE, &outputs[k]) &&
            tare_measure_value(&rows[TARE_MEASURE_TOP1]->measure, &outputs[k]) >
                tare_measure_value(&rows[TARE_MEASURE_TOP1]->measure, &outputs[i]))
            i = k;
    return i;
}

size_t tare_measured_output(const struct tare_comparison *c) {
    bool (*const wanted[])(const struct tare_comparison *, const struct tare_metrics *) = { has_requested, has_truth,
                                                                                            is_varying, is_floating,
                                                                                            is_numeric };
    for (size_t w = 0; c->n_rows && w < sizeof wanted / sizeof *wanted; w++)
        for (size_t i = 0; i < c->n_outputs; i++)
            if (wanted[w](c, &c->rows[0].outputs[i])) return w < 2 ? best_of_classes(c, i) : i;
    return 0;
}

tare_status tare_measure_check_requested(const struct tare_comparison *c) {
    const struct tare_measure_row *row = c->metric > 0 ? rows[c->metric - 1] : NULL;
    if (!row || c->custom) return TARE_OK;
    for (size_t i = 0; i < c->n_outputs; i++)
        if (row->has(&c->rows[0].outputs[i])) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "metric '%s': the records have no data for it (expected %s)", row->key,
                     row->needs);
}

const struct tare_metrics *tare_measured_of(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    return &row->outputs[tare_measured_output(c)];
}

double tare_worst_sqnr_db(size_t *index, const struct tare_comparison *c, const struct tare_metrics *outputs) {
    bool (*const counted[])(const struct tare_comparison *, const struct tare_metrics *) = { is_varying, is_floating };
    size_t worst = tare_measured_output(c);
    bool any = false;
    for (size_t k = 0; k < sizeof counted / sizeof *counted && !any; k++) {
        for (size_t i = 0; i < c->n_outputs; i++) {
            if (!counted[k](c, &c->rows[0].outputs[i])) continue;
            if (!any || tare_metrics_sqnr_db(&outputs[i]) < tare_metrics_sqnr_db(&outputs[worst])) worst = i;
            any = true;
        }
    }
    if (index) *index = worst;
    return tare_metrics_sqnr_db(&outputs[worst]);
}

static enum tare_measure_kind kind_of(const struct tare_comparison *c) {
    static const enum tare_measure_kind inferred[] = {
        TARE_MEASURE_PSNR,           TARE_MEASURE_MAE,  TARE_MEASURE_IOU, TARE_MEASURE_SEQUENCE,
        TARE_MEASURE_PIXEL_ACCURACY, TARE_MEASURE_TOP1, TARE_MEASURE_SQNR
    };
    const struct tare_metrics *m = tare_measured_of(c, &c->rows[0]);
    size_t i = 0;
    if (c->metric > 0 && tare_measure_has((enum tare_measure_kind)(c->metric - 1), m))
        return (enum tare_measure_kind)(c->metric - 1);
    while (!tare_measure_has(inferred[i], m))
        i++;
    return inferred[i];
}

const struct tare_measure *tare_measure_of(const struct tare_comparison *c) {
    if (c->custom_measure) return c->custom_measure;
    const enum tare_measure_kind kind = kind_of(c);
    return kind == TARE_MEASURE_TOP1 && tare_measured_of(c, &c->rows[0])->binary ? &accuracy : &rows[kind]->measure;
}

double tare_measure_value(const struct tare_measure *measure, const struct tare_metrics *m) {
    if (!tare_measure_has(measure->kind, m)) return NAN;
    return measure->kind == TARE_MEASURE_CUSTOM ? m->custom : rows[measure->kind]->value(m);
}

void tare_measure_interval(double *low, double *high, const struct tare_measure *measure,
                           const struct tare_metrics *m) {
    *low = *high = NAN;
    if (measure->kind == TARE_MEASURE_CUSTOM || !tare_measure_has(measure->kind, m)) return;
    if (rows[measure->kind]->interval) rows[measure->kind]->interval(low, high, m);
}

void tare_measure_paired(struct tare_paired *out, const struct tare_measure *measure, const struct tare_metrics *m,
                         const struct tare_metrics *other, double tail) {
    *out = (struct tare_paired){ NAN, NAN, NAN, NAN, NAN, NAN, 0 };
    if (tare_measure_is_tested(measure) && tare_measure_has(measure->kind, m))
        rows[measure->kind]->paired(out, m, other, tail);
}

void tare_measure_difference(double *difference, double *low, double *high, const struct tare_measure *measure,
                             const struct tare_metrics *m, const struct tare_metrics *other) {
    struct tare_paired paired;
    tare_measure_paired(&paired, measure, m, other, TARE_TAIL_95);
    if (!measure->lower_is_better) tare_paired_scale(&paired, -1);
    *difference = tare_measure_value(measure, m) - tare_measure_value(measure, other);
    *low = paired.low;
    *high = paired.high;
}

double tare_measure_point(const struct tare_measure *measure, const struct tare_metrics *float_model) {
    if (measure->lower_is_better) return tare_measure_value(measure, float_model) / 100;
    return *measure->unit ? 1 : 0.01;
}

bool tare_measure_is_guess(struct tare_guess *out, const struct tare_measure *measure, const struct tare_metrics *m) {
    const struct tare_measure_row *row = measure->kind == TARE_MEASURE_CUSTOM ? NULL : rows[measure->kind];
    if (!row || !tare_measure_is_tested(measure)) return false;
    if (!row->chance) row = &tare_measure_rmse;
    if (!row->has(m)) return false;
    *out = (struct tare_guess){ row == rows[measure->kind] ? measure : &row->measure, .how = row->guess };
    out->value = row->value(m);
    out->chance = row->chance(m);
    row->interval(&out->low, &out->high, m);
    return row->measure.lower_is_better ? out->high >= out->chance : out->low <= out->chance;
}

void tare_measure_put(struct tare_strbuf *out, const struct tare_measure *measure, double value) {
    if (isnan(value))
        tare_strbuf_puts(out, "–");
    else if (isinf(value))
        tare_strbuf_puts(out, value > 0 ? "exact" : "none");
    else if (*measure->unit)
        tare_strbuf_printf(out, "%.2f%s", value, measure->unit);
    else
        tare_strbuf_printf(out, "%.4g", value);
}

void tare_measure_put_points(struct tare_strbuf *out, const struct tare_measure *measure, double points, int digits) {
    if (measure->lower_is_better)
        tare_strbuf_printf(out, "%.*g %% of the %s", digits, points, measure->title);
    else if (strcmp(measure->unit, " %") == 0)
        tare_strbuf_printf(out, "%.*g percentage point%s of %s", digits, points, points == 1 ? "" : "s",
                           measure->title);
    else
        tare_strbuf_printf(out, "%.*g%s of %s", digits, *measure->unit ? points : points / 100, measure->unit,
                           measure->title);
}

void tare_measure_put_loss(struct tare_strbuf *out, const struct tare_measure *measure, double points, int digits) {
    if (measure->lower_is_better) {
        tare_strbuf_printf(out, "%.*g %% more %s", digits, points, measure->title);
        return;
    }
    tare_measure_put_points(out, measure, points, digits);
    tare_strbuf_puts(out, " lost");
}

/* ---- the caller's metric ---- */

tare_status tare_measure_set_custom(struct tare_comparison *c, const struct tare_custom_metric *metric) {
    struct tare_measure *measure = TARE_NEW(&c->arena, struct tare_measure);
    if (!measure) return TARE_NO_MEMORY;
    *measure = (struct tare_measure){ .name = metric->name,
                                      .title = metric->name,
                                      .unit = "",
                                      .lower_is_better = metric->lower_is_better,
                                      .kind = TARE_MEASURE_CUSTOM };
    c->custom = metric;
    c->custom_measure = measure;
    return TARE_OK;
}
