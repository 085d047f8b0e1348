/* The comparison as a table, JSON and CSV. */
#include "base/strbuf.h"
#include "base/text_table.h"
#include "eval/comparison.h"
#include "eval/csv.h"
#include "eval/sensitivity.h"
#include "eval/significance.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- JSON ---- */

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void put_label_metrics(json_t *object, const struct tare_metrics *m, bool is_reference) {
    double low, high;
    if (!m->labelled) return;
    tare_share_interval(&low, &high, m->top1, m->labelled);
    json_object_set_new(object, "labelled", json_integer((json_int_t)m->labelled));
    json_object_set_new(object, "top1", json_real(share(m->top1, m->labelled)));
    json_object_set_new(object, "top1_low", json_real(low));
    json_object_set_new(object, "top1_high", json_real(high));
    json_object_set_new(object, "top5", json_real(share(m->top5, m->labelled)));
    if (is_reference) return;
    json_object_set_new(object, "gained", json_integer((json_int_t)m->gained));
    json_object_set_new(object, "lost", json_integer((json_int_t)m->lost));
    json_object_set_new(object, "paired_p", json_real(tare_paired_p(m->gained, m->lost)));
    json_object_set_new(object, "distinguishable", json_boolean(tare_comparison_distinguishable(m)));
}

static void put_metrics(json_t *object, struct tare_metrics *m, bool is_reference) {
    double auc = tare_auc_value(&m->auc);
    put_label_metrics(object, m, is_reference);
    if (!isnan(auc)) json_object_set_new(object, "auc", json_real(auc));
    if (m->expected_elements) {
        json_object_set_new(object, "expected_mean_abs_error",
                            json_real(m->expected_error / (double)m->expected_elements));
        json_object_set_new(object, "expected_rms_error",
                            json_real(sqrt(m->expected_squared_error / (double)m->expected_elements)));
    }
    if (m->ranked) json_object_set_new(object, "agreement", json_real(share(m->agree, m->ranked)));
    json_object_set_new(object, "sqnr_db", number(tare_metrics_sqnr_db(m)));
    json_object_set_new(object, "cosine", number(tare_metrics_cosine(m)));
    json_object_set_new(object, "max_abs_error", number(m->max_abs_error));
    json_object_set_new(object, "max_abs_error_record", json_integer((json_int_t)m->max_abs_record));
    json_object_set_new(object, "mean_abs_error", number(tare_metrics_mean_error(m)));
    json_object_set_new(object, "relative_error", number(tare_metrics_relative_error(m)));
    json_object_set_new(object, "not_finite", json_integer((json_int_t)m->not_finite));
}

static json_t *row_json(const struct tare_comparison *c, const struct tare_comparison_row *row, bool is_reference) {
    json_t *object = json_object(), *outputs = json_object();
    json_object_set_new(object, "method", json_string(row->method));
    if (row->algorithm) json_object_set_new(object, "algorithm", json_string(row->algorithm));
    if (row->granularity) json_object_set_new(object, "granularity", json_string(row->granularity));
    put_metrics(object, &row->outputs[0], is_reference); /* the first output's figures stand for the model */
    json_object_set_new(object, "size_bytes", json_integer((json_int_t)row->size_bytes));
    json_object_set_new(object, "quantized_ops", json_integer((json_int_t)row->quantized));
    json_object_set_new(object, "quantizable_ops", json_integer((json_int_t)row->quantizable));
    json_object_set_new(object, "seconds", json_real(row->seconds));
    for (size_t i = 0; i < c->n_outputs; i++) {
        json_t *metrics = json_object();
        put_metrics(metrics, &row->outputs[i], is_reference);
        json_object_set_new(outputs, c->output_keys[i], metrics);
    }
    json_object_set_new(object, "outputs", outputs);
    return object;
}

static json_t *manifest_json(const struct tare_comparison *c) {
    json_t *object = json_object();
    for (size_t i = 0; i < c->n_manifest; i++)
        json_object_set_new(object, c->manifest[i].name, json_string(c->manifest[i].value));
    return object;
}

static json_t *figures_json(const struct tare_sensitivity_figures *f) {
    json_t *object = json_object();
    json_object_set_new(object, "sqnr_db", number(f->sqnr_db));
    if (!isnan(f->top1)) json_object_set_new(object, "top1", json_real(f->top1));
    if (!isnan(f->agreement)) json_object_set_new(object, "agreement", json_real(f->agreement));
    return object;
}

static json_t *sensitivity_json(const struct tare_sensitivity *s) {
    json_t *layers = json_array();
    for (size_t i = 0; i < s->count; i++) {
        const struct tare_sensitive_layer *layer = &s->layers[i];
        json_array_append_new(layers,
                              json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "function", layer->function, "layer", layer->node,
                                        "op", layer->op, "weight_elements", (json_int_t)layer->weight_elements, "alone",
                                        figures_json(&layer->alone), "all_but_it", figures_json(&layer->restored),
                                        "kept_so_far", figures_json(&layer->kept)));
    }
    return json_pack("{s:s, s:s?, s:s?, s:I, s:o, s:o, s:o}", "method", s->method, "algorithm", s->algorithm, "granularity",
                     s->granularity, "records", (json_int_t)s->records, "float", figures_json(&s->float_model),
                     "all_layers", figures_json(&s->all), "layers", layers);
}

tare_status tare_comparison_json(struct tare_strbuf *out, const struct tare_comparison *c) {
    json_t *results = json_array(), *root;
    char *text;
    for (size_t r = 0; r < c->n_rows; r++) json_array_append_new(results, row_json(c, &c->rows[r], r == 0));
    root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "model", c->model, "data", c->data, "signature", c->signature,
                     "records", (json_int_t)c->records, "calibrations", (json_int_t)c->calibrations, "results", results);
    if (root && c->n_manifest) json_object_set_new(root, "manifest", manifest_json(c));
    if (root && c->sensitivity) json_object_set_new(root, "sensitivity", sensitivity_json(c->sensitivity));
    text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    tare_strbuf_puts(out, text);
    tare_strbuf_putc(out, '\n');
    free(text);
    return TARE_OK;
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
