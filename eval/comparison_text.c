/* The comparison as a table, JSON and CSV. */
#include "base/strbuf.h"
#include "eval/comparison.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

static const char *or_dash(const char *text) { return text ? text : "-"; }

static void print_share(struct tare_strbuf *out, int64_t part, int64_t whole) {
    if (whole)
        tare_strbuf_printf(out, " %8.2f%%", 100 * share(part, whole));
    else
        tare_strbuf_printf(out, " %9s", "-");
}

static void print_decibels(struct tare_strbuf *out, double value) {
    if (isinf(value))
        tare_strbuf_printf(out, " %8s", value > 0 ? "exact" : "none");
    else
        tare_strbuf_printf(out, " %8.2f", value);
}

static void print_row(struct tare_strbuf *out, const struct tare_comparison_row *row, const struct tare_metrics *m) {
    tare_strbuf_printf(out, "%-12s %-16s %-12s", row->method, or_dash(row->algorithm), or_dash(row->granularity));
    print_share(out, m->top1, m->labelled);
    print_share(out, m->top5, m->labelled);
    print_share(out, m->agree, m->ranked);
    print_decibels(out, tare_metrics_sqnr_db(m));
    tare_strbuf_printf(out, " %9.6f %11.4g %11.3f\n", tare_metrics_cosine(m), m->max_abs_error,
                       (double)row->size_bytes / 1e6);
}

void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_printf(out, "%s on %s, %lld records, signature %s\n", c->model, c->data, (long long)c->records,
                       c->signature);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_strbuf_printf(out, "\noutput %s\n%-12s %-16s %-12s %9s %9s %9s %8s %9s %11s %11s\n", c->output_keys[i], "method",
                           "algorithm", "weights", "top-1", "top-5", "agree", "SQNR dB", "cosine", "max error",
                           "weights MB");
        for (size_t r = 0; r < c->n_rows; r++) print_row(out, &c->rows[r], &c->rows[r].outputs[i]);
    }
}

/* ---- JSON ---- */

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void put_metrics(json_t *object, const struct tare_metrics *m) {
    if (m->labelled) {
        json_object_set_new(object, "top1", json_real(share(m->top1, m->labelled)));
        json_object_set_new(object, "top5", json_real(share(m->top5, m->labelled)));
    }
    json_object_set_new(object, "agreement", json_real(share(m->agree, m->ranked)));
    json_object_set_new(object, "sqnr_db", number(tare_metrics_sqnr_db(m)));
    json_object_set_new(object, "cosine", number(tare_metrics_cosine(m)));
    json_object_set_new(object, "max_abs_error", number(m->max_abs_error));
    json_object_set_new(object, "max_abs_error_record", json_integer((json_int_t)m->max_abs_record));
    json_object_set_new(object, "mean_abs_error",
                        number(m->elements ? m->absolute_error / (double)m->elements : 0));
}

static json_t *row_json(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    json_t *object = json_object(), *outputs = json_object();
    json_object_set_new(object, "method", json_string(row->method));
    if (row->algorithm) json_object_set_new(object, "algorithm", json_string(row->algorithm));
    if (row->granularity) json_object_set_new(object, "granularity", json_string(row->granularity));
    put_metrics(object, &row->outputs[0]); /* the first output's figures stand for the model */
    json_object_set_new(object, "size_bytes", json_integer((json_int_t)row->size_bytes));
    json_object_set_new(object, "quantized_ops", json_integer((json_int_t)row->quantized));
    json_object_set_new(object, "quantizable_ops", json_integer((json_int_t)row->quantizable));
    json_object_set_new(object, "seconds", json_real(row->seconds));
    for (size_t i = 0; i < c->n_outputs; i++) {
        json_t *metrics = json_object();
        put_metrics(metrics, &row->outputs[i]);
        json_object_set_new(outputs, c->output_keys[i], metrics);
    }
    json_object_set_new(object, "outputs", outputs);
    return object;
}

tare_status tare_comparison_json(struct tare_strbuf *out, const struct tare_comparison *c) {
    json_t *results = json_array(), *root;
    char *text;
    for (size_t r = 0; r < c->n_rows; r++) json_array_append_new(results, row_json(c, &c->rows[r]));
    root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "model", c->model, "data", c->data, "signature", c->signature,
                     "records", (json_int_t)c->records, "calibrations", (json_int_t)c->calibrations, "results", results);
    text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    tare_strbuf_puts(out, text);
    tare_strbuf_putc(out, '\n');
    free(text);
    return TARE_OK;
}

/* ---- CSV ---- */

void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_puts(out, "output,method,algorithm,granularity,records,labelled,top1,top5,agreement,sqnr_db,cosine,"
                          "max_abs_error,size_bytes\n");
    for (size_t r = 0; r < c->n_rows; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        for (size_t i = 0; i < c->n_outputs; i++) {
            const struct tare_metrics *m = &row->outputs[i];
            tare_strbuf_printf(out, "%s,%s,%s,%s,%lld,%lld,%.6f,%.6f,%.6f,%.4f,%.8f,%.6g,%lld\n", c->output_keys[i],
                               row->method, row->algorithm ? row->algorithm : "", row->granularity ? row->granularity : "",
                               (long long)m->rows, (long long)m->labelled, share(m->top1, m->labelled),
                               share(m->top5, m->labelled), share(m->agree, m->ranked), tare_metrics_sqnr_db(m),
                               tare_metrics_cosine(m), m->max_abs_error, (long long)row->size_bytes);
        }
    }
}
