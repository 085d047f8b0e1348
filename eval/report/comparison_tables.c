/* The tables that the page of a comparison and its text have alike. */
#include "base/strbuf.h"
#include "eval/report/comparison_page.h"
#include "eval/significance.h"

#include <math.h>

bool tare_comparison_distinguishable(const struct tare_metrics *m) {
    return tare_paired_p(m->gained, m->lost) < 0.05;
}

static double share(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

/* A terminal has a column for each part of a model's name, a page a colour for the method. */
#define NAME_COLUMNS                                                                                                   \
    { .heading = "method", .left = true, .only = TARE_IN_TEXT },                                                       \
        { .heading = "algorithm", .left = true, .only = TARE_IN_TEXT },                                                \
        { .heading = "weights", .left = true, .only = TARE_IN_TEXT }, {                                                \
        .heading = "model", .left = true, .only = TARE_IN_PAGE,                                                        \
        .help = "method, range algorithm, scales of the weights where they are not one a channel"                      \
    }

static void name_cells(struct tare_report_table *table, const struct tare_comparison *c, size_t r) {
    const struct tare_comparison_row *row = &c->rows[r];
    struct tare_strbuf name = { 0 };
    tare_comparison_put_name(&name, row);
    tare_report_table_row(table);
    tare_report_table_text(table, row->method);
    tare_report_table_text(table, row->algorithm);
    tare_report_table_text(table, row->granularity);
    tare_report_table_series(table, tare_comparison_series(c, r), tare_strbuf_text(&name));
    tare_strbuf_free(&name);
}

/* ---- accuracy ---- */

static void label_cells(struct tare_report_table *table, const struct tare_metrics *m, bool is_reference) {
    double low, high;
    if (!m->labelled) {
        tare_report_table_skip(table, 4);
        return;
    }
    tare_share_interval(&low, &high, m->top1, m->labelled);
    tare_report_table_share(table, 2, share(m->top1, m->labelled));
    tare_report_table_cell(table, "%.1f – %.1f", 100 * low, 100 * high);
    if (is_reference)
        tare_report_table_skip(table, 1);
    else
        tare_report_table_cell(table, "%+.2f (%s)", 100 * share(m->gained - m->lost, m->labelled),
                               tare_comparison_distinguishable(m) ? "differs" : "no difference seen");
    tare_report_table_share(table, 2, share(m->top5, m->labelled));
}

static void model_row(struct tare_report_table *table, const struct tare_comparison *c, size_t r, size_t output) {
    struct tare_metrics *m = &c->rows[r].outputs[output];
    name_cells(table, c, r);
    label_cells(table, m, r == 0);
    tare_report_table_number(table, "%.4f", tare_auc_value(&m->auc));
    tare_report_table_number(table, "%.4g",
                             m->expected_elements ? m->expected_error / (double)m->expected_elements : NAN);
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
        NAME_COLUMNS,
        { .heading = "top-1" },
        { .heading = "95 % interval", .help = "Wilson's score interval of top-1, in percent" },
        { .heading = "against float",
          .left = true,
          .help = "points of top-1; McNemar's exact test on the same records, at 95 %" },
        { .heading = "top-5" },
        { .heading = "AUC", .help = "area under the ROC curve of two classes" },
        { .heading = "expected, mean error", .help = "against the records' own values" },
        { .heading = "agree", .help = "share of the records where the largest element is where float has it" },
        { .heading = "SQNR dB", .help = "square of the float answers over that of the difference" },
        { .heading = "cosine", .help = "of the angle between the answers and those of float" },
        { .heading = "mean error", .help = "mean difference from float" },
        { .heading = "relative", .help = "the same as a share of the mean magnitude", .only = TARE_IN_PAGE },
        { .heading = "max error", .help = "greatest difference from float, and the record that shows it" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, c->text_width);
    for (size_t r = 0; r < c->n_rows; r++)
        model_row(table, c, r, output);
    tare_report_table_end(out, table);
}

/* ---- what models take ---- */

static void cost_row(struct tare_report_table *table, const struct tare_comparison *c, size_t r) {
    const struct tare_comparison_row *row = &c->rows[r], *first = &c->rows[0];
    const bool by_size = tare_comparison_on_front(c, TARE_AGAINST_SIZE, r);
    const bool by_time = tare_comparison_has_times(c) && tare_comparison_on_front(c, TARE_AGAINST_TIME, r);
    name_cells(table, c, r);
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
        NAME_COLUMNS,
        { .heading = "MB", .help = "of constants and variables" },
        { .heading = "in HBM MB", .help = "weights in the chip's memory" },
        { .heading = "ops quantized" },
        { .heading = "integer work", .help = "share of the multiply-accumulates on integers of 8 or 4 bits" },
        { .heading = "least µs", .help = "of a record on the chip" },
        { .heading = "times float" },
        { .heading = "seconds here", .help = "that all records took on this machine" },
        { .heading = "best for its",
          .left = true,
          .only = TARE_IN_PAGE,
          .help = "no other model is as accurate and smaller, or faster" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, c->text_width);
    for (size_t r = 0; r < c->n_rows; r++)
        cost_row(table, c, r);
    tare_report_table_end(out, table);
}
