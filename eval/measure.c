/* Measures, their intervals and tests, and the recommendation; see the header. */
#include "eval/measure_row.h"
#include "base/strbuf.h"
#include "eval/target.h"

#include <math.h>
#include <string.h>

/* By kind. */
static const struct tare_measure_row *const rows[] = {
    [TARE_MEASURE_TOP1] = &tare_measure_top1,
    [TARE_MEASURE_AUC] = &tare_measure_auc,
    [TARE_MEASURE_MAE] = &tare_measure_mae,
    [TARE_MEASURE_RMSE] = &tare_measure_rmse,
    [TARE_MEASURE_R2] = &tare_measure_r2,
    [TARE_MEASURE_IOU] = &tare_measure_iou,
    [TARE_MEASURE_PIXEL_ACCURACY] = &tare_measure_pixel_accuracy,
    [TARE_MEASURE_SEQUENCE] = &tare_measure_sequence,
    [TARE_MEASURE_PSNR] = &tare_measure_psnr,
    [TARE_MEASURE_SSIM] = &tare_measure_ssim,
    [TARE_MEASURE_SQNR] = &tare_measure_sqnr,
};
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
    return measure->kind != TARE_MEASURE_CUSTOM && rows[measure->kind]->p;
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

double tare_measure_p(const struct tare_measure *measure, const struct tare_metrics *m,
                      const struct tare_metrics *reference) {
    if (!tare_measure_is_tested(measure) || !tare_measure_has(measure->kind, m)) return NAN;
    return rows[measure->kind]->p(m, reference);
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

void tare_measure_put_loss(struct tare_strbuf *out, const struct tare_measure *measure, double points, int digits) {
    if (measure->lower_is_better)
        tare_strbuf_printf(out, "%.*g %% more %s", digits, points, measure->title);
    else if (strcmp(measure->unit, " %") == 0)
        tare_strbuf_printf(out, "%.*g percentage points of %s lost", digits, points, measure->title);
    else
        tare_strbuf_printf(out, "%.*g%s of %s lost", digits, *measure->unit ? points : points / 100, measure->unit,
                           measure->title);
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

/* ---- the recommendation ---- */

/* The first output of another size or kind than float's, or with NaN or infinity in place of numbers; -1: none. */
static int broken_output(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    for (size_t i = 0; i < c->n_outputs; i++)
        if (row->outputs[i].unlike || row->outputs[i].not_finite) return (int)i;
    return -1;
}

/* NaN: without a test, as one of one record, or of labels of one class. */
static double p_of(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    return tare_measure_p(tare_measure_of(c), tare_measured_of(c, row), tare_measured_of(c, &c->rows[0]));
}

static bool keeps_up(const struct tare_measure *measure, const struct tare_comparison *c,
                     const struct tare_comparison_row *row) {
    const struct tare_metrics *m = tare_measured_of(c, row), *reference = tare_measured_of(c, &c->rows[0]);
    const double value = tare_measure_value(measure, m), base = tare_measure_value(measure, reference);
    const double p = p_of(c, row);
    if (broken_output(c, row) >= 0) return false;
    if (isnan(p)) return tare_worst_sqnr_db(NULL, c, row->outputs) >= TARE_VERDICT_DB;
    return p >= 0.05 || (measure->lower_is_better ? value < base : value > base);
}

struct tare_verdict tare_verdict_of(const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    struct tare_verdict verdict = { 0 };
    if (c->target) return verdict;
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
    verdict.tested = verdict.row && !isnan(p_of(c, verdict.row));
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

/* Of the smaller models, whether the paired test has a result for one, and whether one has a broken output. */
static void survey_smaller(bool *tested, bool *broken, const struct tare_comparison *c) {
    *tested = *broken = false;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (c->rows[r].size_bytes >= c->rows[0].size_bytes) continue;
        *tested |= !isnan(p_of(c, &c->rows[r]));
        *broken |= broken_output(c, &c->rows[r]) >= 0;
    }
}

static void put_none(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_measure *measure) {
    bool tested, broken;
    survey_smaller(&tested, &broken, c);
    if (!has_smaller(c))
        tare_strbuf_puts(out, "No model is smaller than float");
    else if (broken)
        tare_strbuf_puts(out,
                         "No smaller model keeps up with float: each one is worse, or has an output of another size or "
                         "with NaN or infinity");
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
    if (c->target) return c->target->chosen;
    if (tare_verdict_of(c).row) return true;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (!c->rows[r].path) continue;
        if (!keeps_up(measure, c, &c->rows[r])) return false;
        given++;
    }
    return given > 0;
}

/* What makes an output differ from float's in more than its values; false: nothing. */
static bool put_unlike(struct tare_strbuf *out, const struct tare_comparison *c,
                       const struct tare_comparison_row *row) {
    const int output = broken_output(c, row);
    if (output < 0) return false;
    const struct tare_metrics *m = &row->outputs[output];
    const char *key = c->n_outputs > 1 ? c->output_keys[output] : "", *space = c->n_outputs > 1 ? " " : "";
    if (m->unlike)
        tare_strbuf_printf(out, ": the output%s%s has another size or kind than that of float in %lld of %lld examples",
                           space, key, (long long)m->unlike, (long long)m->rows);
    else
        tare_strbuf_printf(out, ": NaN or infinity in %lld elements of the output%s%s that are finite in float",
                           (long long)m->not_finite, space, key);
    return true;
}

/* Why there is no paired test: "no labels to test accuracy". */
static const char *untested(const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    if (measure->kind == TARE_MEASURE_CUSTOM) return measure->name;
    if (!has_truth(c, tare_measured_of(c, &c->rows[0]))) return "no labels to test accuracy";
    return tare_measure_is_tested(measure) ? "too few records, or labels, for a paired test"
                                           : "a measure without a paired test";
}

/* Appends "; output logits: SQNR 3.08 dB" for the worst of the other outputs, unless it is near float's. */
static void put_other(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row) {
    size_t worst;
    const double db = tare_worst_sqnr_db(&worst, c, row->outputs);
    if (worst != tare_measured_output(c) && db < TARE_VERDICT_DB)
        tare_strbuf_printf(out, "; output %s: SQNR %.2f dB", c->output_keys[worst], db);
}

/* "tpu_model: the paired test finds no difference from float in top-1 (75.60 %, float 75.60 %)" */
static void put_outcome(struct tare_strbuf *out, const struct tare_comparison *c,
                        const struct tare_comparison_row *row) {
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_metrics *m = tare_measured_of(c, row), *reference = tare_measured_of(c, &c->rows[0]);
    const double p = tare_measure_p(measure, m, reference), db = tare_metrics_sqnr_db(m);
    tare_comparison_put_name(out, row);
    if (put_unlike(out, c, row)) return;
    if (*row->answers && strcmp(row->answers, c->rows[0].answers) == 0) {
        tare_strbuf_puts(out, ": the outputs are those of float");
        return;
    }
    if (isinf(db) || isnan(db)) {
        tare_strbuf_printf(out,
                           isinf(db) ? ": output %s has the values of float, but the outputs are not identical"
                                     : ": output %s has no finite numbers to compare with float",
                           c->output_keys[tare_measured_output(c)]);
        return;
    }
    if (isnan(p)) {
        tare_strbuf_printf(out, ": SQNR %.2f dB against float (%s)", db, untested(c));
        put_other(out, c, row);
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
    put_other(out, c, row);
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
    if (c->target) {
        tare_strbuf_printf(out, "%sRecommended: %s", given ? ". " : "",
                           c->target->chosen ? "the mix of precisions that is chosen for the target"
                                             : "none, as no mix of precisions meets the target");
        return;
    }
    if (given && given + 1 == c->n_rows && verdict.candidates < 2) return; /* nothing to choose from */
    if (given) tare_strbuf_puts(out, ". ");
    if (!verdict.row) {
        put_none(out, c, measure);
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
        tare_strbuf_printf(out, "with an SQNR of at least %d dB (%s; ", TARE_VERDICT_DB, untested(c));
    tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, verdict.row)));
    if (verdict.tested) {
        tare_strbuf_puts(out, ", float ");
        tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, &c->rows[0])));
    }
    tare_strbuf_puts(out, ")");
    put_other(out, c, verdict.row);
    put_gain(out, c, verdict.row);
}
