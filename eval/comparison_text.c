/* The comparison as a table and CSV. */
#include "base/strbuf.h"
#include "base/text_table.h"
#include "eval/comparison.h"
#include "eval/csv.h"
#include "eval/sensitivity.h"
#include "eval/significance.h"

#include <math.h>

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

bool tare_comparison_distinguishable(const struct tare_metrics *m) {
    return tare_paired_p(m->gained, m->lost) < 0.05;
}

/* ---- table ---- */

static const struct tare_text_table_column columns[] = {
    { .heading = "method", .left = true },    { .heading = "algorithm", .left = true },
    { .heading = "weights", .left = true },   { .heading = "top-1" },
    { .heading = "95 % interval" },           { .heading = "against float", .left = true },
    { .heading = "top-5" },                   { .heading = "AUC" },
    { .heading = "expected, mean error" },    { .heading = "agree" },
    { .heading = "SQNR dB" },                 { .heading = "cosine" },
    { .heading = "mean error" },              { .heading = "max error" },
    { .heading = "at record" },               { .heading = "weights MB" },
    { .heading = "seconds" },                 { 0 },
};

static void text_cell(struct tare_text_table *table, const char *text) {
    if (text)
        tare_text_table_cell(table, "%s", text);
    else
        tare_text_table_skip(table);
}

static void share_cell(struct tare_text_table *table, int64_t part, int64_t whole) {
    if (whole)
        tare_text_table_cell(table, "%.2f%%", 100 * share(part, whole));
    else
        tare_text_table_skip(table);
}

static void label_cells(struct tare_text_table *table, const struct tare_metrics *m, bool is_reference) {
    double low, high;
    share_cell(table, m->top1, m->labelled);
    tare_share_interval(&low, &high, m->top1, m->labelled);
    if (m->labelled)
        tare_text_table_cell(table, "%.1f – %.1f", 100 * low, 100 * high);
    else
        tare_text_table_skip(table);
    if (m->labelled && !is_reference)
        tare_text_table_cell(table, "%+.2f (%s)", 100 * share(m->gained - m->lost, m->labelled),
                             tare_comparison_distinguishable(m) ? "differs" : "no difference seen");
    else
        tare_text_table_skip(table);
    share_cell(table, m->top5, m->labelled);
}

static void auc_cell(struct tare_text_table *table, struct tare_metrics *m) {
    double auc = tare_auc_value(&m->auc);
    if (isnan(auc))
        tare_text_table_skip(table);
    else
        tare_text_table_cell(table, "%.4f", auc);
}

static void error_cells(struct tare_text_table *table, const struct tare_metrics *m) {
    double sqnr = tare_metrics_sqnr_db(m);
    share_cell(table, m->agree, m->ranked);
    if (isinf(sqnr))
        tare_text_table_cell(table, "%s", sqnr > 0 ? "exact" : "none");
    else
        tare_text_table_cell(table, "%.2f", sqnr);
    tare_text_table_cell(table, "%.6f", tare_metrics_cosine(m));
    tare_text_table_cell(table, "%.3g", tare_metrics_mean_error(m));
    tare_text_table_cell(table, "%.3g", m->max_abs_error);
    if (m->max_abs_error > 0)
        tare_text_table_cell(table, "%lld", (long long)m->max_abs_record);
    else
        tare_text_table_skip(table);
}

static void print_row(struct tare_text_table *table, const struct tare_comparison_row *row, struct tare_metrics *m,
                      bool is_reference) {
    tare_text_table_row(table);
    text_cell(table, row->method);
    text_cell(table, row->algorithm);
    text_cell(table, row->granularity);
    label_cells(table, m, is_reference);
    auc_cell(table, m);
    if (m->expected_elements)
        tare_text_table_cell(table, "%.4g", m->expected_error / (double)m->expected_elements);
    else
        tare_text_table_skip(table);
    error_cells(table, m);
    tare_text_table_cell(table, "%.3f", (double)row->size_bytes / 1e6);
    tare_text_table_cell(table, "%.2f", row->seconds);
}

void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_printf(out, "%s on %s, %lld records, signature %s\n", c->model, c->data, (long long)c->records,
                       c->signature);
    for (size_t i = 0; i < c->n_outputs; i++) {
        struct tare_text_table *table = tare_text_table_new(columns);
        tare_strbuf_printf(out, "\noutput %s\n", c->output_keys[i]);
        for (size_t r = 0; r < c->n_rows; r++) print_row(table, &c->rows[r], &c->rows[r].outputs[i], r == 0);
        tare_text_table_print(out, table);
        tare_text_table_free(table);
    }
    if (c->sensitivity) tare_sensitivity_table(out, c->sensitivity);
}

/* ---- CSV ---- */

static void csv_row(struct tare_strbuf *out, const struct tare_comparison_row *row, const char *output,
                    struct tare_metrics *m) {
    const char *texts[] = { output, row->method, row->algorithm, row->granularity };
    for (size_t i = 0; i < 4; i++) {
        tare_csv_text(out, texts[i]);
        tare_strbuf_putc(out, ',');
    }
    tare_strbuf_printf(out, "%lld,%lld", (long long)m->rows, (long long)m->labelled);
    tare_csv_share(out, m->top1, m->labelled);
    tare_csv_share(out, m->top5, m->labelled);
    tare_csv_number(out, tare_auc_value(&m->auc));
    tare_csv_share(out, m->agree, m->ranked);
    tare_csv_number(out, tare_metrics_sqnr_db(m));
    tare_csv_number(out, tare_metrics_cosine(m));
    tare_csv_number(out, tare_metrics_mean_error(m));
    tare_csv_number(out, m->max_abs_error);
    tare_strbuf_printf(out, ",%lld\r\n", (long long)row->size_bytes);
}

void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_puts(out, "output,method,algorithm,granularity,rows,labelled,top1,top5,auc,agreement,sqnr_db,cosine,"
                          "mean_abs_error,max_abs_error,size_bytes\r\n");
    for (size_t r = 0; r < c->n_rows; r++)
        for (size_t i = 0; i < c->n_outputs; i++)
            csv_row(out, &c->rows[r], c->output_keys[i], &c->rows[r].outputs[i]);
}
