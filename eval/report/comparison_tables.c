/* Tables of a comparison that its page and its terminal text share: the summary, the accuracy of every model at one
 * output, and the cost of every model. */
#include "base/strbuf.h"
#include "eval/report/comparison_page.h"
#include "eval/verdict.h"

#include <math.h>

static double share(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

#define MODEL_COLUMN                                                                                                   \
    {                                                                                                                  \
        .heading = "model", .left = true,                                                                              \
        .help = "method, calibration algorithm, and granularity of the weights unless per channel"                     \
    }

/* An arrow marks the recommended model. */
static void name_cell(struct tare_report_table *table, const struct tare_comparison *c, size_t r) {
    struct tare_strbuf name = { 0 };
    tare_comparison_put_name(&name, &c->rows[r]);
    if (&c->rows[r] == tare_verdict_of(c).row) tare_strbuf_puts(&name, " ←");
    tare_report_table_row(table);
    tare_report_table_series(table, tare_comparison_series(c, r), tare_strbuf_text(&name));
    tare_strbuf_free(&name);
}

static void measure_cell(struct tare_report_table *table, const struct tare_measure *measure, double value) {
    struct tare_strbuf text = { 0 };
    tare_measure_put(&text, measure, value);
    tare_report_table_text(table, isnan(value) ? NULL : tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

/* Difference of the measure from float, marked when its interval does not contain 0. */
static void difference_cell(struct tare_report_table *table, const struct tare_metrics *m,
                            const struct tare_metrics *reference, const struct tare_measure *measure) {
    double difference, low, high;
    tare_measure_difference(&difference, &low, &high, measure, m, reference);
    if (m == reference || measure->kind == TARE_MEASURE_SQNR || isnan(difference))
        tare_report_table_skip(table, 1);
    else
        tare_report_table_cell(table, *measure->unit ? "%+.2f %s" : "%+.3g %s", difference,
                               low > 0 || high < 0 ? "*" : " ");
}

void tare_comparison_summary(struct tare_strbuf *out, enum tare_report_form form, const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_report_column columns[] = {
        MODEL_COLUMN,
        { .heading = measure->title },
        { .heading = "vs float", .help = "difference from the float model; * its 95 % interval does not contain 0" },
        { .heading = "MB", .help = "size of constants and variables" },
        { .heading = "est. µs", .help = "estimated time per example on the chip" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    for (size_t r = 0; r < c->n_rows; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        name_cell(table, c, r);
        measure_cell(
            table, measure,
            r == 0 && measure->kind == TARE_MEASURE_SQNR ? NAN : tare_measure_value(measure, tare_measured_of(c, row)));
        difference_cell(table, tare_measured_of(c, row), tare_measured_of(c, &c->rows[0]), measure);
        tare_report_table_cell(table, "%.3f", (double)row->size_bytes / 1e6);
        tare_report_table_number(table, "%.3g", 1e6 * row->tpu_seconds);
    }
    tare_report_table_end(out, table);
}

/* ---- accuracy ---- */

static void label_cells(struct tare_report_table *table, const struct tare_metrics *m,
                        const struct tare_metrics *reference) {
    double low, high;
    if (!m->labelled) {
        tare_report_table_skip(table, 4);
        return;
    }
    tare_share_interval(&low, &high, m->top1, m->labelled);
    tare_report_table_share(table, 2, share(m->top1, m->labelled));
    tare_report_table_cell(table, "%.1f – %.1f", 100 * low, 100 * high);
    difference_cell(table, m, reference, tare_measure_find(TARE_MEASURE_TOP1));
    tare_report_table_share(table, 2, m->classes > 5 ? share(m->top5, m->labelled) : NAN);
}

static void expected_cells(struct tare_report_table *table, const struct tare_metrics *m) {
    const double n = (double)m->expected_elements;
    tare_report_table_number(table, "%.4g", n > 0 ? m->expected_error / n : NAN);
    tare_report_table_number(table, "%.4g", n > 0 ? sqrt(m->expected_squared_error / n) : NAN);
    tare_report_table_number(table, "%.4f", tare_metrics_r2(m));
}

static void model_row(struct tare_report_table *table, const struct tare_comparison *c, size_t r, size_t output) {
    const struct tare_metrics *m = &c->rows[r].outputs[output];
    name_cell(table, c, r);
    label_cells(table, m, &c->rows[0].outputs[output]);
    tare_report_table_number(table, "%.4f", tare_auc_value(&m->auc));
    tare_report_table_number(table, "%.4f", tare_metrics_f1(m));
    expected_cells(table, m);
    tare_report_table_share(table, 2, share(m->agree, m->ranked));
    tare_report_table_db(table, tare_metrics_sqnr_db(m));
    tare_report_table_number(table, "%.6f", tare_metrics_cosine(m));
    tare_report_table_number(table, "%.3g", tare_metrics_mean_error(m));
    tare_report_table_share(table, 2, tare_metrics_relative_error(m));
    if (m->max_abs_error > 0)
        tare_report_table_cell(table, "%.3g at %lld", m->max_abs_error, (long long)m->max_abs_record);
    else
        tare_report_table_number(table, "%.3g", m->max_abs_error);
}

void tare_comparison_models(struct tare_strbuf *out, enum tare_report_form form, const struct tare_comparison *c,
                            size_t output) {
    static const struct tare_report_column columns[] = {
        MODEL_COLUMN,
        { .heading = "top-1",
          .help = "share of labelled records that are predicted correctly; for a single score, at "
                  "the threshold" },
        { .heading = "95 % interval", .help = "Wilson's score interval of top-1, in percent" },
        { .heading = "vs float",
          .help = "difference of top-1 in percentage points; * its 95 % interval does not contain 0" },
        { .heading = "top-5" },
        { .heading = "AUC", .help = "area under the ROC curve of two classes" },
        { .heading = "F1", .help = "F1 of the positive class of a single score" },
        { .heading = "MAE", .help = "mean absolute error against the expected values" },
        { .heading = "RMSE", .help = "root mean squared error against the expected values" },
        { .heading = "R²", .help = "coefficient of determination against the expected values" },
        { .heading = "agree", .help = "share of records with the same predicted class as float" },
        { .heading = "SQNR dB", .help = "energy of the float outputs over the energy of the difference" },
        { .heading = "cosine", .help = "cosine of the angle between the outputs and those of float" },
        { .heading = "mean error", .help = "mean absolute difference from float" },
        { .heading = "relative", .help = "mean error relative to the mean magnitude", .only = TARE_IN_PAGE },
        { .heading = "max error", .help = "largest difference from float, and its record" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, c->text_width);
    for (size_t r = 0; r < c->n_rows; r++)
        model_row(table, c, r, output);
    tare_report_table_end(out, table);
}

/* ---- cost ---- */

static void cost_row(struct tare_report_table *table, const struct tare_comparison *c, size_t r) {
    const struct tare_comparison_row *row = &c->rows[r], *first = &c->rows[0];
    const bool by_size = tare_comparison_on_front(c, TARE_AGAINST_SIZE, r);
    const bool by_time = tare_comparison_has_times(c) && tare_comparison_on_front(c, TARE_AGAINST_TIME, r);
    name_cell(table, c, r);
    tare_report_table_cell(table, "%.3f", (double)row->size_bytes / 1e6);
    tare_report_table_number(table, "%.3f", row->hbm_bytes / 1e6);
    if (row->quantizable)
        tare_report_table_cell(table, "%lld of %lld", (long long)row->quantized, (long long)row->quantizable);
    else
        tare_report_table_skip(table, 1);
    tare_report_table_share(table, 1, row->macs > 0 ? row->integer_macs / row->macs : NAN);
    tare_report_table_number(table, "%.3g", 1e6 * row->tpu_seconds);
    tare_report_table_number(table, "%.2f", row->tpu_seconds / first->tpu_seconds);
    tare_report_table_cell(table, "%.2f", row->seconds);
    if (by_size || by_time)
        tare_report_table_text(table, by_size && by_time ? "size and time" : by_size ? "size" : "time");
}

void tare_comparison_costs(struct tare_strbuf *out, enum tare_report_form form, const struct tare_comparison *c) {
    static const struct tare_report_column columns[] = {
        MODEL_COLUMN,
        { .heading = "MB", .help = "size of constants and variables" },
        { .heading = "HBM MB", .help = "weights in the memory of the chip" },
        { .heading = "ops quantized" },
        { .heading = "integer MACs", .help = "share of the multiply-accumulates on integers of 8 or 4 bits" },
        { .heading = "est. µs", .help = "estimated time per example on the chip" },
        { .heading = "vs float", .help = "estimated time relative to float" },
        { .heading = "seconds here", .help = "measured time of all records on this machine" },
        { .heading = "Pareto-optimal in",
          .left = true,
          .only = TARE_IN_PAGE,
          .help = "no other model is as accurate and smaller, or as accurate and faster" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, c->text_width);
    for (size_t r = 0; r < c->n_rows; r++)
        cost_row(table, c, r);
    tare_report_table_end(out, table);
}
