/* Measures, their intervals and tests, and the recommendation; see the header. */
#include "eval/measure.h"
#include "base/strbuf.h"
#include "eval/significance.h"

#include <math.h>

const char *const tare_measure_names[] = { "top1", "auc", "mae", "rmse", "r2", "sqnr", NULL };

static const struct tare_measure measures[] = {
    { "top-1", "top-1", " %", false, TARE_MEASURE_TOP1 },
    { "AUC", "AUC", "", false, TARE_MEASURE_AUC },
    { "mean absolute error", "MAE", "", true, TARE_MEASURE_MAE },
    { "root mean squared error", "RMSE", "", true, TARE_MEASURE_RMSE },
    { "R²", "R²", "", false, TARE_MEASURE_R2 },
    { "SQNR", "SQNR", " dB", false, TARE_MEASURE_SQNR },
};
static const struct tare_measure accuracy = { "accuracy", "accuracy", " %", false, TARE_MEASURE_TOP1 };

const char *tare_measure_key(const struct tare_measure *measure) {
    return measure->kind == TARE_MEASURE_CUSTOM ? measure->name : tare_measure_names[measure->kind];
}

bool tare_measure_is_tested(const struct tare_measure *measure) {
    return measure->kind != TARE_MEASURE_SQNR && measure->kind != TARE_MEASURE_CUSTOM;
}

bool tare_measure_has(enum tare_measure_kind kind, const struct tare_metrics *m) {
    switch (kind) {
    case TARE_MEASURE_TOP1:
        return m->labelled > 0;
    case TARE_MEASURE_AUC:
        return m->auc.count > 0;
    case TARE_MEASURE_MAE:
    case TARE_MEASURE_RMSE:
    case TARE_MEASURE_R2:
        return m->expected_elements > 0;
    case TARE_MEASURE_CUSTOM:
        return m->has_custom;
    default:
        return true;
    }
}

static bool has_requested(const struct tare_comparison *c, const struct tare_metrics *m) {
    return c->metric > 0 && c->metric - 1 != TARE_MEASURE_SQNR &&
           tare_measure_has((enum tare_measure_kind)(c->metric - 1), m);
}

static bool has_truth(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return tare_measure_has(TARE_MEASURE_MAE, m) || tare_measure_has(TARE_MEASURE_TOP1, m);
}

static bool is_numeric(const struct tare_comparison *c, const struct tare_metrics *m) {
    (void)c;
    return m->elements > 0;
}

size_t tare_measured_output(const struct tare_comparison *c) {
    bool (*const wanted[])(const struct tare_comparison *, const struct tare_metrics *) = { has_requested, has_truth,
                                                                                            is_numeric };
    for (size_t w = 0; c->n_rows && w < sizeof wanted / sizeof *wanted; w++)
        for (size_t i = 0; i < c->n_outputs; i++)
            if (wanted[w](c, &c->rows[0].outputs[i])) return i;
    return 0;
}

const struct tare_metrics *tare_measured_of(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    return &row->outputs[tare_measured_output(c)];
}

static enum tare_measure_kind kind_of(const struct tare_comparison *c) {
    static const enum tare_measure_kind inferred[] = { TARE_MEASURE_MAE, TARE_MEASURE_TOP1, TARE_MEASURE_SQNR };
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
    return kind == TARE_MEASURE_TOP1 && tare_measured_of(c, &c->rows[0])->binary ? &accuracy : &measures[kind];
}

double tare_measure_value(const struct tare_measure *measure, const struct tare_metrics *m) {
    if (!tare_measure_has(measure->kind, m)) return NAN;
    switch (measure->kind) {
    case TARE_MEASURE_TOP1:
        return 100 * tare_metrics_share(m->top1, m->labelled);
    case TARE_MEASURE_AUC:
        return tare_auc_value(&m->auc);
    case TARE_MEASURE_MAE:
        return m->expected_error / (double)m->expected_elements;
    case TARE_MEASURE_RMSE:
        return sqrt(m->expected_squared_error / (double)m->expected_elements);
    case TARE_MEASURE_R2:
        return tare_metrics_r2(m);
    case TARE_MEASURE_CUSTOM:
        return m->custom;
    default:
        return tare_metrics_sqnr_db(m);
    }
}

void tare_measure_interval(double *low, double *high, const struct tare_measure *measure,
                           const struct tare_metrics *m) {
    *low = *high = NAN;
    if (!tare_measure_has(measure->kind, m)) return;
    if (measure->kind == TARE_MEASURE_TOP1) {
        tare_share_interval(low, high, m->top1, m->labelled);
        *low *= 100;
        *high *= 100;
    } else if (measure->kind == TARE_MEASURE_AUC) {
        tare_auc_interval(low, high, &m->auc);
    } else if (measure->kind == TARE_MEASURE_MAE) {
        tare_mean_interval(low, high, m->errors.absolute, m->errors.count);
    } else if (measure->kind == TARE_MEASURE_RMSE) {
        tare_mean_interval(low, high, m->errors.squared, m->errors.count);
        *low = sqrt(fmax(0, *low));
        *high = sqrt(*high);
    }
}

double tare_measure_p(const struct tare_measure *measure, const struct tare_metrics *m,
                      const struct tare_metrics *reference) {
    const size_t n = m->errors.count;
    if (!tare_measure_has(measure->kind, m)) return NAN;
    switch (measure->kind) {
    case TARE_MEASURE_TOP1:
        return tare_paired_p(m->gained, m->lost);
    case TARE_MEASURE_AUC:
        return tare_auc_paired_p(&m->auc, &reference->auc);
    case TARE_MEASURE_MAE:
        return n == reference->errors.count ? tare_paired_mean_p(m->errors.absolute, reference->errors.absolute, n)
                                            : NAN;
    case TARE_MEASURE_RMSE:
    case TARE_MEASURE_R2:
        return n == reference->errors.count ? tare_paired_mean_p(m->errors.squared, reference->errors.squared, n) : NAN;
    default:
        return NAN;
    }
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

/* ---- the recommendation ---- */

static bool keeps_up(const struct tare_measure *measure, const struct tare_comparison *c,
                     const struct tare_comparison_row *row) {
    const struct tare_metrics *m = tare_measured_of(c, row), *reference = tare_measured_of(c, &c->rows[0]);
    const double value = tare_measure_value(measure, m), base = tare_measure_value(measure, reference);
    const double p = tare_measure_p(measure, m, reference);
    if (isnan(p)) return tare_metrics_sqnr_db(m) >= TARE_VERDICT_DB;
    return p >= 0.05 || (measure->lower_is_better ? value < base : value > base);
}

struct tare_verdict tare_verdict_of(const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    struct tare_verdict verdict = { .tested = tare_measure_is_tested(measure) };
    int64_t smallest = c->rows[0].size_bytes;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (c->rows[r].size_bytes >= c->rows[0].size_bytes || !keeps_up(measure, c, &c->rows[r])) continue;
        verdict.candidates++;
        if (c->rows[r].size_bytes >= smallest) continue;
        smallest = c->rows[r].size_bytes;
        verdict.row = &c->rows[r];
    }
    for (size_t r = 1; r < c->n_rows && verdict.row; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if ((double)row->size_bytes > 1.05 * (double)smallest || !keeps_up(measure, c, row)) continue;
        if (!(row->tpu_seconds < 0.99 * verdict.row->tpu_seconds)) continue;
        verdict.row = row;
        verdict.fastest = true;
    }
    return verdict;
}

static void put_gain(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row) {
    tare_strbuf_printf(out, "; weights %.1f times smaller", (double)c->rows[0].size_bytes / (double)row->size_bytes);
    if (row->tpu_seconds > 0 && row->tpu_seconds < 0.95 * c->rows[0].tpu_seconds)
        tare_strbuf_printf(out, ", an estimated %.1f times as fast", c->rows[0].tpu_seconds / row->tpu_seconds);
}

static bool has_smaller(const struct tare_comparison *c) {
    for (size_t r = 1; r < c->n_rows; r++)
        if (c->rows[r].size_bytes < c->rows[0].size_bytes) return true;
    return false;
}

static void put_none(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_measure *measure,
                     bool tested) {
    if (!has_smaller(c))
        tare_strbuf_puts(out, "No model is smaller than float");
    else if (tested)
        tare_strbuf_printf(out, "No smaller model keeps up with float: the paired test finds each one worse in %s",
                           measure->name);
    else
        tare_strbuf_printf(out, "No smaller model reaches an SQNR of %d dB", TARE_VERDICT_DB);
}

/* ---- given models ---- */

bool tare_verdict_is_good(const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    size_t given = 0;
    if (tare_verdict_of(c).row) return true;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (!c->rows[r].path) continue;
        if (!keeps_up(measure, c, &c->rows[r])) return false;
        given++;
    }
    return given > 0;
}

/* "tpu_model: the paired test finds no difference from float in top-1 (75.60 %, float 75.60 %)" */
static void put_outcome(struct tare_strbuf *out, const struct tare_comparison *c,
                        const struct tare_comparison_row *row) {
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_metrics *m = tare_measured_of(c, row), *reference = tare_measured_of(c, &c->rows[0]);
    const double p = tare_measure_p(measure, m, reference), db = tare_metrics_sqnr_db(m);
    tare_comparison_put_name(out, row);
    if (isinf(db)) {
        tare_strbuf_puts(out, ": the outputs are those of float");
        return;
    }
    if (isnan(p)) {
        tare_strbuf_printf(out, ": SQNR %.2f dB against float (no labels to test accuracy)", db);
        return;
    }
    tare_strbuf_printf(out, ": the paired test finds %s float in %s (",
                       p >= 0.05                   ? "no difference from"
                       : keeps_up(measure, c, row) ? "it better than"
                                                   : "it worse than",
                       measure->name);
    tare_measure_put(out, measure, tare_measure_value(measure, m));
    tare_strbuf_puts(out, ", float ");
    tare_measure_put(out, measure, tare_measure_value(measure, reference));
    tare_strbuf_puts(out, ")");
}

/* Returns the number of given models. */
static size_t put_outcomes(struct tare_strbuf *out, const struct tare_comparison *c) {
    size_t given = 0;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (!c->rows[r].path) continue;
        if (given++) tare_strbuf_puts(out, ". ");
        put_outcome(out, c, &c->rows[r]);
    }
    return given;
}

void tare_verdict_put(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_verdict verdict = tare_verdict_of(c);
    const size_t given = put_outcomes(out, c);
    if (given && given + 1 == c->n_rows && verdict.candidates < 2) return; /* nothing to choose from */
    if (given) tare_strbuf_puts(out, ". ");
    if (!verdict.row) {
        put_none(out, c, measure, verdict.tested);
        return;
    }
    tare_strbuf_puts(out, "Recommended: ");
    tare_comparison_put_name(out, verdict.row);
    if (verdict.candidates == 1)
        tare_strbuf_puts(out, ", the only smaller model ");
    else
        tare_strbuf_printf(out, ", the %s of %zu models ", verdict.fastest ? "fastest of the smallest" : "smallest",
                           verdict.candidates);
    if (verdict.tested)
        tare_strbuf_printf(out, "that the paired test does not find worse than float in %s (", measure->name);
    else
        tare_strbuf_printf(out, "with an SQNR of at least %d dB (%s; ", TARE_VERDICT_DB,
                           measure->kind == TARE_MEASURE_CUSTOM ? measure->name : "no labels to test accuracy");
    tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, verdict.row)));
    if (verdict.tested) {
        tare_strbuf_puts(out, ", float ");
        tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, &c->rows[0])));
    }
    tare_strbuf_puts(out, ")");
    put_gain(out, c, verdict.row);
}
