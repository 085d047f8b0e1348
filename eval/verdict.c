/* The recommendation of a comparison, in figures and sentences; see the header. */
#include "eval/verdict.h"
#include "base/strbuf.h"
#include "eval/target.h"
#include "tpu/cost/fused.h"

#include <math.h>
#include <string.h>

static const double COMPETES = 1.25;  /* times the size of the smallest candidate */
static const double SAME_SIZE = 1.05; /* likewise */
static const double SAME_TIME = 1.01; /* times the time of the fastest one */
static const double CLEARLY = 1.05;   /* times: smaller differences of estimated times are not told */

/* ---- one model against float ---- */

static const struct tare_metrics *float_of(const struct tare_comparison *c) {
    return tare_measured_of(c, &c->rows[0]);
}

double tare_verdict_margin(const struct tare_comparison *c) {
    return c->margin > 0 ? c->margin : TARE_MARGIN;
}

/* In the unit of the measure. */
static double margin_of(const struct tare_comparison *c) {
    return tare_verdict_margin(c) * tare_measure_point(tare_measure_of(c), float_of(c));
}

/* The first output of another size or kind than float's, or with NaN or infinity in place of numbers; -1: none. */
static int broken_output(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    for (size_t i = 0; i < c->n_outputs; i++)
        if (row->outputs[i].unlike || row->outputs[i].not_finite) return (int)i;
    return -1;
}

static bool is_smaller(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    return !row->companion && row->size_bytes < c->rows[0].size_bytes && broken_output(c, row) < 0;
}

/* With limits that hold for `models` models together. */
static struct tare_paired against(const struct tare_comparison *c, const struct tare_comparison_row *row,
                                  const struct tare_comparison_row *other, size_t models) {
    struct tare_paired paired;
    tare_measure_paired(&paired, tare_measure_of(c), tare_measured_of(c, row), tare_measured_of(c, other),
                        TARE_TAIL_95 / (double)(models ? models : 1));
    return paired;
}

static struct tare_paired against_float(const struct tare_comparison *c, const struct tare_comparison_row *row,
                                        size_t models) {
    return against(c, row, &c->rows[0], models);
}

static bool keeps_up(const struct tare_comparison *c, const struct tare_comparison_row *row, size_t models) {
    if (broken_output(c, row) >= 0) return false;
    if (!tare_measure_is_tested(tare_measure_of(c)))
        return tare_worst_sqnr_db(NULL, c, row->outputs) >= TARE_VERDICT_DB;
    return against_float(c, row, models).high <= margin_of(c) * (1 + 1e-9);
}

/* An output that is the same for all of several records tells nothing. */
static bool is_constant(const struct tare_comparison *c) {
    bool varies = c->records < 2 || tare_measure_is_tested(tare_measure_of(c));
    for (size_t i = 0; i < c->n_outputs; i++)
        varies |= c->rows[0].outputs[i].varies;
    return !varies;
}

/* ---- the choice ---- */

/* Whether times are what the compiler says. */
static bool is_compiled(const struct tare_comparison *c) {
    return c->by_time && c->rows[0].tpu_cycles > 0;
}

static double time_of(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    const double time = is_compiled(c) ? row->tpu_cycles : row->tpu_seconds;
    return time > 0 ? time : INFINITY;
}

/* Not slower than float on the chip. */
static bool is_fast(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    const double most = is_compiled(c) || !row->quantized ? SAME_TIME : TARE_TPU_CERTAIN;
    return time_of(c, row) <= most * time_of(c, &c->rows[0]);
}

static bool is_candidate(const struct tare_comparison *c, const struct tare_comparison_row *row, size_t models) {
    return is_smaller(c, row) && keeps_up(c, row, models) && (!c->by_time || is_fast(c, row));
}

/* By the measure, then by the SQNR. */
static bool is_better(const struct tare_comparison *c, const struct tare_comparison_row *a,
                      const struct tare_comparison_row *b) {
    const struct tare_measure *measure = tare_measure_of(c);
    const double x = tare_measure_value(measure, tare_measured_of(c, a));
    const double y = tare_measure_value(measure, tare_measured_of(c, b));
    if (x != y && !isnan(x) && !isnan(y)) return measure->lower_is_better ? x < y : x > y;
    return tare_worst_sqnr_db(NULL, c, a->outputs) > tare_worst_sqnr_db(NULL, c, b->outputs);
}

/* The smallest candidate; *beaten: it is not, as it is better than that one by their paired comparison. */
static const struct tare_comparison_row *smallest(bool *beaten, const struct tare_comparison *c,
                                                  const struct tare_verdict *v) {
    const struct tare_comparison_row *least = NULL, *best;
    for (size_t r = 1; r < c->n_rows; r++)
        if ((!least || c->rows[r].size_bytes < least->size_bytes) && is_candidate(c, &c->rows[r], v->compared))
            least = &c->rows[r];
    best = least;
    for (size_t r = 1; r < c->n_rows && least; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if (row == best || (double)row->size_bytes > COMPETES * (double)least->size_bytes) continue;
        if (is_candidate(c, row, v->compared) && against(c, best, row, v->candidates - 1).low > 0) best = row;
    }
    *beaten = best && best->size_bytes > least->size_bytes;
    return best;
}

/* Of the candidates that are about as large as `base` and not worse. */
static bool is_equal(const struct tare_comparison *c, const struct tare_verdict *v,
                     const struct tare_comparison_row *row, const struct tare_comparison_row *base) {
    return (double)row->size_bytes <= SAME_SIZE * (double)base->size_bytes && is_candidate(c, row, v->compared) &&
           !(against(c, row, base, v->candidates - 1).low > 0);
}

static const struct tare_comparison_row *best_of_equals(const struct tare_comparison *c, const struct tare_verdict *v,
                                                        const struct tare_comparison_row *base) {
    const struct tare_comparison_row *best = base;
    double fastest = time_of(c, base);
    for (size_t r = 1; r < c->n_rows; r++)
        if (is_equal(c, v, &c->rows[r], base)) fastest = fmin(fastest, time_of(c, &c->rows[r]));
    if (time_of(c, best) > SAME_TIME * fastest) best = NULL;
    for (size_t r = 1; r < c->n_rows; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if (time_of(c, row) > SAME_TIME * fastest || !is_equal(c, v, row, base)) continue;
        if (!best || is_better(c, row, best)) best = row;
    }
    return best;
}

/* The fastest candidate; of those of about the same time the smallest, then the better one. */
static const struct tare_comparison_row *fastest(const struct tare_comparison *c, const struct tare_verdict *v) {
    const struct tare_comparison_row *best = NULL;
    double least = INFINITY;
    for (size_t r = 1; r < c->n_rows; r++)
        if (is_candidate(c, &c->rows[r], v->compared)) least = fmin(least, time_of(c, &c->rows[r]));
    for (size_t r = 1; r < c->n_rows; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if (!(time_of(c, row) <= SAME_TIME * least) || !is_candidate(c, row, v->compared)) continue;
        const double size = best ? (double)best->size_bytes : INFINITY;
        if ((double)row->size_bytes * SAME_SIZE < size ||
            ((double)row->size_bytes <= SAME_SIZE * size && is_better(c, row, best)))
            best = row;
    }
    return best;
}

static bool has_smaller(const struct tare_comparison *c) {
    for (size_t r = 1; r < c->n_rows; r++)
        if (!c->rows[r].companion && c->rows[r].size_bytes < c->rows[0].size_bytes) return true;
    return false;
}

/* Whether all smaller models are known to lose more than the margin. */
static bool are_worse(const struct tare_comparison *c, size_t models) {
    for (size_t r = 1; r < c->n_rows && tare_measure_is_tested(tare_measure_of(c)); r++)
        if (is_smaller(c, &c->rows[r]) && !(against_float(c, &c->rows[r], models).low > margin_of(c))) return false;
    return true;
}

/* Whether classes are what most labels are, but the scores of two classes have an order that is not random. */
static bool is_ranking(const struct tare_comparison *c) {
    struct tare_guess unused;
    return tare_measure_of(c)->kind == TARE_MEASURE_TOP1 && tare_measure_has(TARE_MEASURE_AUC, float_of(c)) &&
           !tare_measure_is_guess(&unused, tare_measure_find(TARE_MEASURE_AUC), float_of(c));
}

/* Whether a smaller model keeps up, but takes longer than float on the chip. */
static bool has_slower(const struct tare_comparison *c, size_t models) {
    for (size_t r = 1; r < c->n_rows; r++)
        if (is_smaller(c, &c->rows[r]) && keeps_up(c, &c->rows[r], models)) return true;
    return false;
}

static enum tare_verdict_reason reason_of(const struct tare_comparison *c, const struct tare_verdict *v) {
    struct tare_guess guess;
    if (c->target) return TARE_VERDICT_TARGET;
    if (tare_measure_is_guess(&guess, tare_measure_of(c), float_of(c)))
        return is_ranking(c) ? TARE_VERDICT_UNBALANCED : TARE_VERDICT_GUESS;
    if (is_constant(c)) return TARE_VERDICT_CONSTANT;
    if (v->candidates) return TARE_VERDICT_RECOMMENDED;
    if (c->by_time && has_slower(c, v->compared)) return TARE_VERDICT_SLOWER;
    if (!has_smaller(c)) return TARE_VERDICT_NONE_SMALLER;
    if (!v->compared) return TARE_VERDICT_BROKEN;
    return are_worse(c, v->compared) ? TARE_VERDICT_WORSE : TARE_VERDICT_UNDECIDED;
}

struct tare_verdict tare_verdict_of(const struct tare_comparison *c) {
    struct tare_verdict v = { .tested = tare_measure_is_tested(tare_measure_of(c)) };
    for (size_t r = 1; r < c->n_rows; r++)
        v.compared += is_smaller(c, &c->rows[r]);
    for (size_t r = 1; r < c->n_rows; r++)
        v.candidates += is_candidate(c, &c->rows[r], v.compared);
    v.reason = reason_of(c, &v);
    if (v.reason != TARE_VERDICT_RECOMMENDED) return v;
    if (c->by_time) {
        v.row = fastest(c, &v);
        v.fastest = true;
        return v;
    }
    const struct tare_comparison_row *base = smallest(&v.better, c, &v);
    v.row = best_of_equals(c, &v, base);
    v.fastest = v.row != base && time_of(c, v.row) < time_of(c, base) / SAME_TIME;
    return v;
}

/* ---- sentences ---- */

/* "(94.80 %, float 94.90 %; 95 % interval of the difference, for 3 models: -0.41 to +0.21)" */
static void put_figures(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row,
                        size_t models) {
    const struct tare_measure *measure = tare_measure_of(c);
    struct tare_paired p = against_float(c, row, models);
    if (!measure->lower_is_better) tare_paired_scale(&p, -1);
    tare_strbuf_puts(out, "(");
    tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, row)));
    tare_strbuf_puts(out, ", float ");
    tare_measure_put(out, measure, tare_measure_value(measure, float_of(c)));
    tare_strbuf_puts(out, "; 95 % interval of the difference");
    if (models > 1) tare_strbuf_printf(out, " for %zu models", models);
    tare_strbuf_printf(out, *measure->unit ? ": %+.2f to %+.2f)" : ": %+.3g to %+.3g)", p.low, p.high);
}

static void put_margin(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_measure_put_points(out, tare_measure_of(c), tare_verdict_margin(c), 3);
}

/* Two digits, rounded up. */
static double round_up(double value) {
    const double step = pow(10, floor(log10(value)) - 1);
    return step * ceil(value / step);
}

/* "; 90 examples detect a loss of 7.6 percentage points of top-1 (give about 5200, or --margin 14)": a loss that
 * differs from none, for models that differ from float in as many examples. */
static void put_detectable(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_paired *p) {
    const double point = tare_measure_point(tare_measure_of(c), float_of(c));
    const double needed = tare_paired_needed(p, margin_of(c)), margin = round_up(p->high / point);
    if (!(point > 0)) return; /* float has no error */
    tare_strbuf_printf(out, "; %lld examples detect a loss of ", (long long)p->examples);
    tare_measure_put_points(out, tare_measure_of(c), (p->high - p->loss) / point, 2);
    if (needed > (double)p->examples)
        tare_strbuf_printf(out, " (give about %.0f", round_up(needed));
    else
        tare_strbuf_puts(out, " (give more");
    if (margin <= 100) tare_strbuf_printf(out, ", or --margin %.3g", margin);
    tare_strbuf_puts(out, ")");
}

static void put_gain(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row) {
    const double before = 1e6 * c->rows[0].tpu_seconds, after = 1e6 * row->tpu_seconds;
    const double cycles[] = { c->rows[0].tpu_cycles, row->tpu_cycles };
    tare_strbuf_printf(out, "; weights %.1f times smaller", (double)c->rows[0].size_bytes / (double)row->size_bytes);
    if (row->folded)
        tare_strbuf_printf(out, " on disk (the compiler of a TPU turns those of %lld convolution%s into bfloat16)",
                           (long long)row->folded, row->folded == 1 ? "" : "s");
    if (is_compiled(c)) {
        tare_strbuf_printf(out,
                           ", %.2f times as fast on a Cloud TPU %s in batches of %lld (%.0f cycles, float %.0f, by %s)",
                           cycles[0] / cycles[1], tare_comparison_chip_name(c),
                           (long long)tare_comparison_chip_batch(c), cycles[1], cycles[0], c->compiler);
        return;
    }
    if (after > 0 && before > CLEARLY * after)
        tare_strbuf_printf(out, ", an estimated %.1f times as fast", before / after);
    if (before > 0 && after > CLEARLY * before)
        tare_strbuf_printf(out, ", but slower than float by the estimate (%.3g µs, float %.3g µs): for its size only",
                           after, before);
}

static void put_guess(struct tare_strbuf *out, const struct tare_guess *guess, bool ranks) {
    tare_strbuf_printf(out, "the %s of float is ", guess->measure->name);
    tare_measure_put(out, guess->measure, guess->value);
    tare_strbuf_puts(out, " (95 % interval: ");
    tare_measure_put(out, guess->measure, guess->low);
    tare_strbuf_puts(out, " to ");
    tare_measure_put(out, guess->measure, guess->high);
    tare_strbuf_printf(out, "), no better than %s (", guess->how);
    tare_measure_put(out, guess->measure, guess->chance);
    tare_strbuf_puts(out, ranks ? "); its scores have an order: compare with --metric auc"
                                : "). Check labels and the scale of the inputs with 'tare dataset head'");
}

/* Of the smaller models, the one with the least upper limit of the loss. */
static const struct tare_comparison_row *nearest(const struct tare_comparison *c, size_t models) {
    const struct tare_comparison_row *best = NULL;
    double least = INFINITY;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (!is_smaller(c, &c->rows[r])) continue;
        const struct tare_paired p = against_float(c, &c->rows[r], models);
        if (best && !(p.high < least)) continue;
        best = &c->rows[r];
        least = p.high;
    }
    return best;
}

/* No smaller model keeps up by the measure. */
static void put_compared(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_verdict *v) {
    const struct tare_comparison_row *best = nearest(c, v->compared);
    const struct tare_paired p = against_float(c, best, v->compared);
    tare_strbuf_puts(out, "No model is recommended: ");
    if (isnan(p.high)) {
        tare_strbuf_printf(out, "%lld examples are too few to compare models in %s (expected at least %d%s)",
                           (long long)p.examples, tare_measure_of(c)->name, TARE_FEWEST_EXAMPLES,
                           tare_measure_of(c)->kind == TARE_MEASURE_AUC ? ", half of them of each class" : "");
        return;
    }
    if (v->reason == TARE_VERDICT_WORSE)
        tare_strbuf_puts(out, "each smaller one loses more than ");
    else
        tare_strbuf_puts(out, "each smaller one may lose more than ");
    put_margin(out, c);
    tare_strbuf_puts(out, "; the nearest is ");
    tare_comparison_put_name(out, best);
    tare_strbuf_putc(out, ' ');
    put_figures(out, c, best, v->compared);
    if (v->reason == TARE_VERDICT_UNDECIDED) put_detectable(out, c, &p);
}

static void put_none(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_verdict *v) {
    struct tare_guess guess;
    switch (v->reason) {
    case TARE_VERDICT_GUESS:
    case TARE_VERDICT_UNBALANCED:
        tare_strbuf_puts(out, "No model is recommended: ");
        if (tare_measure_is_guess(&guess, tare_measure_of(c), float_of(c)))
            put_guess(out, &guess, v->reason == TARE_VERDICT_UNBALANCED);
        break;
    case TARE_VERDICT_CONSTANT:
        tare_strbuf_puts(out, "No model is recommended: the outputs of float are the same for all records");
        break;
    case TARE_VERDICT_NONE_SMALLER:
        tare_strbuf_puts(out, "No model is smaller than float");
        break;
    case TARE_VERDICT_BROKEN:
        tare_strbuf_puts(out, "No model is recommended: each smaller one has an output of another size than float, or "
                              "with NaN or infinity");
        break;
    case TARE_VERDICT_SLOWER:
        tare_strbuf_printf(out,
                           "No model is recommended: each smaller one within the margin is slower than float on a "
                           "Cloud TPU %s in batches of %lld, by %s",
                           tare_comparison_chip_name(c), (long long)tare_comparison_chip_batch(c),
                           is_compiled(c) ? c->compiler : "the estimate");
        break;
    default:
        if (v->tested)
            put_compared(out, c, v);
        else
            tare_strbuf_printf(out, "No smaller model reaches an SQNR of %d dB", TARE_VERDICT_DB);
    }
}

const char *tare_verdict_remedy(const struct tare_verdict *v) {
    switch (v->reason) {
    case TARE_VERDICT_GUESS:
        return "check labels and the scale of the inputs";
    case TARE_VERDICT_UNBALANCED:
        return "compare by --metric auc";
    case TARE_VERDICT_CONSTANT:
        return "give records whose outputs differ";
    case TARE_VERDICT_NONE_SMALLER:
        return "'tare inspect' shows what can be quantized";
    case TARE_VERDICT_SLOWER:
        return "convert the float model, which is computed in bfloat16 there, or try a larger batch";
    case TARE_VERDICT_UNDECIDED:
        if (v->tested) return "give more labelled records with --eval, or a larger --margin";
        return "'tare quantize --min-sqnr' keeps layers in higher precision";
    default:
        return "'tare quantize --max-drop' keeps layers in higher precision; or give a larger --margin";
    }
}

/* ---- given models ---- */

static size_t count_given(const struct tare_comparison *c) {
    size_t given = 0;
    for (size_t r = 1; r < c->n_rows; r++)
        given += c->rows[r].path != NULL;
    return given;
}

bool tare_verdict_is_good(const struct tare_comparison *c) {
    const size_t given = count_given(c);
    if (c->target) return c->target->chosen;
    if (tare_verdict_of(c).row) return true;
    for (size_t r = 1; r < c->n_rows; r++)
        if (c->rows[r].path && !keeps_up(c, &c->rows[r], given)) return false;
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

/* Why models are compared by their SQNR. */
static void put_untested(struct tare_strbuf *out, const struct tare_comparison *c,
                         const struct tare_comparison_row *row) {
    const struct tare_measure *measure = tare_measure_of(c);
    if (measure->kind == TARE_MEASURE_SQNR) {
        tare_strbuf_puts(out, c->metric ? "as requested" : "no labels to compare by");
        return;
    }
    tare_strbuf_printf(out, "%s ", measure->name);
    tare_measure_put(out, measure, tare_measure_value(measure, tare_measured_of(c, row)));
    tare_strbuf_puts(out, ", without an interval");
}

/* Appends "; output logits: SQNR 3.08 dB" for the worst of the other outputs, unless it is near float's. */
static void put_other(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row) {
    size_t worst;
    const double db = tare_worst_sqnr_db(&worst, c, row->outputs);
    if (worst != tare_measured_output(c) && db < TARE_VERDICT_DB)
        tare_strbuf_printf(out, "; output %s: SQNR %.2f dB", c->output_keys[worst], db);
}

/* "tpu_model: loses at most 1 percentage point of top-1 (75.60 %, float 75.60 %; …)" */
static void put_outcome(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row,
                        size_t given) {
    const double db = tare_metrics_sqnr_db(tare_measured_of(c, row));
    const struct tare_paired p = against_float(c, row, given);
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
    if (isnan(p.high)) {
        tare_strbuf_printf(out, ": SQNR %.2f dB against float (", db);
        if (tare_measure_is_tested(tare_measure_of(c)))
            tare_strbuf_puts(out, "too few examples to compare by labels");
        else
            put_untested(out, c, row);
        tare_strbuf_putc(out, ')');
        put_other(out, c, row);
        return;
    }
    tare_strbuf_puts(out, keeps_up(c, row, given) ? ": loses at most "
                          : p.low > margin_of(c)  ? ": loses more than "
                                                  : ": may lose more than ");
    put_margin(out, c);
    tare_strbuf_putc(out, ' ');
    put_figures(out, c, row, given);
    if (!keeps_up(c, row, given) && !(p.low > margin_of(c))) put_detectable(out, c, &p);
    put_other(out, c, row);
}

/* Returns the number of given models. */
static size_t put_outcomes(struct tare_strbuf *out, const struct tare_comparison *c) {
    const size_t given = count_given(c);
    bool first = true;
    for (size_t r = 1; r < c->n_rows; r++) {
        if (!c->rows[r].path) continue;
        if (!first) tare_strbuf_puts(out, ". ");
        first = false;
        put_outcome(out, c, &c->rows[r], given);
    }
    return given;
}

/* ---- the whole ---- */

static void put_recommended(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_verdict *v) {
    tare_strbuf_puts(out, "Recommended: ");
    tare_comparison_put_name(out, v->row);
    if (v->candidates == 1)
        tare_strbuf_puts(out, ", the only smaller model ");
    else
        tare_strbuf_printf(out, ", %s of %zu models ",
                           c->by_time   ? "the fastest"
                           : v->fastest ? "the fastest of the smallest"
                           : v->better  ? "better than the smallest"
                                        : "the smallest",
                           v->candidates);
    if (v->tested) {
        tare_strbuf_puts(out, "with a loss of at most ");
        put_margin(out, c);
        tare_strbuf_putc(out, ' ');
        put_figures(out, c, v->row, v->compared);
    } else {
        tare_strbuf_printf(out, "with an SQNR of at least %d dB (", TARE_VERDICT_DB);
        put_untested(out, c, v->row);
        tare_strbuf_printf(out, "; %.2f dB on %lld record%s)", tare_metrics_sqnr_db(tare_measured_of(c, v->row)),
                           (long long)c->records, c->records == 1 ? "" : "s");
    }
    put_other(out, c, v->row);
    put_gain(out, c, v->row);
}

/* The fastest model that keeps up with float, unless the recommended one, or float itself, is about as fast. */
static void put_fastest(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_verdict *v) {
    const struct tare_comparison_row *best = &c->rows[0];
    for (size_t r = 1; r < c->n_rows; r++)
        if (time_of(c, &c->rows[r]) < time_of(c, best) && keeps_up(c, &c->rows[r], v->compared)) best = &c->rows[r];
    if (c->by_time || !v->row || best == &c->rows[0] || !(time_of(c, v->row) > CLEARLY * time_of(c, best))) return;
    tare_strbuf_puts(out, ". As fast as possible within the margin: ");
    tare_comparison_put_name(out, best);
    tare_strbuf_printf(out, ", an estimated %.3g µs", 1e6 * best->tpu_seconds);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The row that differs from `row` in "+bfloat16" only; NULL: none. */
static const struct tare_comparison_row *without_bfloat16(const struct tare_comparison *c,
                                                          const struct tare_comparison_row *row) {
    const char *added = strstr(row->method, "+bfloat16");
    for (size_t r = 1; r < c->n_rows && added && !added[strlen("+bfloat16")]; r++) {
        const struct tare_comparison_row *other = &c->rows[r];
        const size_t size = (size_t)(added - row->method);
        if (strncmp(other->method, row->method, size) == 0 && !other->method[size] &&
            same_text(other->algorithm, row->algorithm) && same_text(other->granularity, row->granularity))
            return other;
    }
    return NULL;
}

/* Where bfloat16 doubles the error, to more than 1/10000 of the energy. */
static void put_bfloat16(struct tare_strbuf *out, const struct tare_comparison *c) {
    for (size_t r = 1; r < c->n_rows; r++) {
        const struct tare_comparison_row *plain = without_bfloat16(c, &c->rows[r]);
        if (!plain) continue;
        const double before = tare_worst_sqnr_db(NULL, c, plain->outputs);
        const double after = tare_worst_sqnr_db(NULL, c, c->rows[r].outputs);
        if (!(after < 40) || !(before - after >= 3) || isinf(before)) continue;
        tare_strbuf_printf(out, ". bfloat16 costs ");
        tare_comparison_put_name(out, plain);
        tare_strbuf_printf(out,
                           " %.1f dB (SQNR %.2f instead of %.2f dB): convert with 'bfloat16_optimization: DISABLED' to "
                           "avoid that",
                           before - after, after, before);
    }
}

static void put_choice(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_verdict verdict = tare_verdict_of(c);
    const size_t given = put_outcomes(out, c);
    if (c->target) {
        tare_strbuf_printf(out, "%sRecommended: %s", given ? ". " : "",
                           c->target->chosen ? "the mix of precisions that is chosen for the target"
                                             : "none, as no mix of precisions meets the target");
        return;
    }
    if (given && given + 1 == c->n_rows && verdict.candidates < 2 && verdict.reason != TARE_VERDICT_GUESS &&
        verdict.reason != TARE_VERDICT_UNBALANCED)
        return; /* nothing to choose from */
    if (given) tare_strbuf_puts(out, ". ");
    if (verdict.row)
        put_recommended(out, c, &verdict);
    else
        put_none(out, c, &verdict);
    put_fastest(out, c, &verdict);
}

void tare_verdict_put(struct tare_strbuf *out, const struct tare_comparison *c) {
    put_choice(out, c);
    put_bfloat16(out, c);
}
