/* The comparison as one page: what each method costs and saves, where it loses, what the ranges look like, and what the
 * figures were made of. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "eval/report/calibration_report.h"
#include "eval/comparison.h"
#include "eval/report/comparison_page.h"
#include "eval/report/page.h"
#include "eval/sensitivity.h"
#include "eval/significance.h"
#include "tpu/chips.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

static void text_cell(struct tare_page_table *table, const char *text) {
    if (text)
        tare_page_table_cell(table, "%s", text);
    else
        tare_page_table_skip(table);
}

static void costs(struct tare_strbuf *out, const struct tare_comparison *c) {
    char together[48] = "one record at a time";
    tare_page_element(out, "h2", NULL, "What the models take");
    if (c->chip_batch > 1) snprintf(together, sizeof together, "%lld records together", (long long)c->chip_batch);
    tare_page_element(out, "p", "soft small",
                      "Times are estimates for a Cloud TPU %s chip, %s, all of the signature on it: the longer "
                      "of arithmetic at its peak and traffic at its memory's bandwidth, elementwise ops fused.",
                      tare_comparison_chip_name(c), together);
    if (tare_tpu_chips[c->chip].unsourced)
        tare_page_element(out, "p", "soft small", "Figures of the chip that %s does not state: %s.",
                          tare_tpu_chips[c->chip].source, tare_tpu_chips[c->chip].unsourced);
    tare_comparison_costs(out, TARE_IN_PAGE, c);
}

static void slowest(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = {
        { .heading = "op", .left = true, .wraps = true },
        { .heading = "kind", .left = true },
        { .heading = "share of the time", .left = true, .help = "of the least time of the whole model" },
        { .heading = "µs" },
        { .heading = "million MACs" },
        { .heading = "traffic MB" },
        { .heading = "limited by", .left = true },
        { 0 },
    };
    struct tare_page_table table;
    if (!c->n_slowest || !(c->slowest_total > 0)) return;
    tare_page_element(out, "h2", NULL, "Slowest ops of %s", c->slowest_of);
    tare_page_element(out, "p", "soft small",
                      "By the estimate for a %s chip, not measured; what is fused behind an op counts with it.",
                      tare_comparison_chip_name(c));
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_slowest; i++) {
        const struct tare_comparison_op *op = &c->slowest[i];
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", op->node);
        tare_page_table_cell(&table, "%s", op->op);
        tare_page_table_bar_cell(&table, op->seconds / c->slowest[0].seconds, "%.1f %%",
                                 100 * op->seconds / c->slowest_total);
        tare_page_table_cell(&table, "%.3g", 1e6 * op->seconds);
        tare_page_table_cell(&table, "%.3g", op->macs / 1e6);
        tare_page_table_cell(&table, "%.3g", op->bytes / 1e6);
        tare_page_table_cell(&table, "%s", op->compute_bound ? "arithmetic" : "memory");
    }
    tare_page_table_end(&table);
}

/* ---- layers ---- */

/* Noise of input and weight together against the signal, by the calibration; infinite for a layer that stays float. */
static double layer_db(const struct tare_explanation *e) {
    double noise = 0;
    if (e->refused) return INFINITY;
    if (e->has_input) noise += pow(10, -e->input_sqnr_db / 10);
    if (e->weight_elements) noise += pow(10, -e->weight_sqnr_db / 10);
    return noise > 0 ? -10 * log10(noise) : INFINITY;
}

static int by_layer_db(const void *a, const void *b) {
    const struct tare_explanation *const *x = a, *const *y = b;
    const double p = layer_db(*x), q = layer_db(*y);
    return p != q ? (p < q ? -1 : 1) : (*x > *y) - (*x < *y); /* else in the model's order */
}

/* The bar is the noise in decibels above a layer of 60 dB, which no one hears of. */
static void layer_cell(struct tare_page_table *table, const struct tare_explanation *e) {
    const double db = layer_db(e);
    if (e->refused)
        tare_page_table_cell(table, "float");
    else if (isinf(db))
        tare_page_table_cell(table, "exact");
    else
        tare_page_table_bar_cell(table, fmax(0, fmin(1, (60 - db) / 60)), "%.1f dB", db);
}

static void explanation_row(struct tare_page_table *table, const struct tare_explanation *e) {
    double error = e->rounding_mse + e->clipping_mse;
    tare_page_table_row(table);
    tare_page_table_cell(table, "%s", e->node);
    tare_page_table_cell(table, "%s", e->op);
    layer_cell(table, e);
    if (e->has_input) {
        tare_page_table_cell(table, "%.4g", e->input.scale);
        tare_page_table_cell(table, "%d", e->input.zero_point);
        tare_page_table_cell(table, "%.1f", e->input_sqnr_db);
        tare_page_table_cell(table, "%.0f %%", error > 0 ? 100 * e->clipping_mse / error : 0);
        tare_page_table_cell(table, "%d", e->unused_codes);
    } else {
        for (int i = 0; i < 5; i++)
            tare_page_table_skip(table);
    }
    if (e->weight_elements) {
        tare_page_table_cell(table, "%.1f", e->weight_sqnr_db);
        tare_page_table_cell(table, "%.1f", e->spread);
    } else {
        tare_page_table_skip(table);
        tare_page_table_skip(table);
    }
    if (e->refused)
        tare_page_table_cell(table, "stays float: %s", e->refused);
    else
        text_cell(table, e->remedy);
}

static void explanations(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = {
        { .heading = "layer", .left = true, .wraps = true },
        { .heading = "op", .left = true },
        { .heading = "its own noise",
          .left = true,
          .help = "signal over the noise of input and weight on their grids; the longer the bar, the worse" },
        { .heading = "scale", .help = "of the activation" },
        { .heading = "zero point" },
        { .heading = "input dB", .help = "SQNR of the activation on its grid, by the calibration" },
        { .heading = "clipping",
          .help = "share of the activation's error that comes from clipping; the rest is rounding" },
        { .heading = "unused", .help = "codes of the grid that no value falls on" },
        { .heading = "weight dB", .help = "SQNR of the weight" },
        { .heading = "spread", .help = "the widest channel of the weight over the median one" },
        { .heading = "what would help", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_page_table table;
    const struct tare_explanation **sorted = tare_calloc(c->explanations.count + 1, sizeof *sorted);
    if (!c->explanations.count || !sorted) {
        tare_free(sorted);
        return;
    }
    for (size_t i = 0; i < c->explanations.count; i++)
        sorted[i] = &c->explanations.items[i];
    qsort(sorted, c->explanations.count, sizeof *sorted, by_layer_db);
    tare_page_element(out, "h2", NULL, "Layers of %s, the worst first",
                      c->slowest_of ? c->slowest_of : "the first method");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->explanations.count; i++)
        explanation_row(&table, sorted[i]);
    tare_page_table_end(&table);
    tare_free(sorted);
}

/* ---- sensitivity ---- */

/* What is nearly exact ends at the edge of the drawing. */
static double drawn_db(const struct tare_plot *plot, double sqnr_db) {
    return fmax(0, fmin(plot->y_high, sqnr_db));
}

static void draw_sensitivity(struct tare_strbuf *out, const struct tare_sensitivity *s) {
    struct tare_plot plot = { .x_low = 0, .x_high = (double)s->count, .y_low = 0, .y_high = 10, .height = 240 };
    for (size_t i = 0; i < s->count; i++) {
        if (s->layers[i].alone.sqnr_db < 100) plot.y_high = fmax(plot.y_high, 1.2 * s->layers[i].alone.sqnr_db);
    }
    tare_plot_begin(
        out, &plot,
        "SQNR of each layer quantized alone, the worst first, and of the model as the worst are kept in float");
    tare_plot_grid(out, &plot);
    for (size_t i = 0; i < s->count; i++)
        tare_plot_bar(out, &plot, (double)i + 0.15, (double)i + 0.85, 0, drawn_db(&plot, s->layers[i].alone.sqnr_db),
                      "bar");
    for (size_t i = 0; i + 1 < s->count; i++)
        tare_plot_line(out, &plot, (double)i + 0.5, drawn_db(&plot, s->layers[i].kept.sqnr_db), (double)i + 1.5,
                       drawn_db(&plot, s->layers[i + 1].kept.sqnr_db), "c1");
    tare_plot_letters(out);
    tare_plot_ticks(out, &plot, NULL, " dB");
    for (size_t i = 0; i < s->count && s->count <= 20; i++)
        tare_plot_x_tick(out, &plot, (double)i + 0.5, "%zu", i + 1);
    tare_plot_end(out);
}

static void sensitivity(struct tare_strbuf *out, const struct tare_sensitivity *s) {
    tare_page_element(out, "h2", NULL, "Sensitivity to %s", s->method);
    tare_page_element(out, "p", "soft", "%lld records. All %zu layers quantized give %.2f dB.", (long long)s->records,
                      s->count, s->all.sqnr_db);
    tare_page_legend_begin(out);
    tare_page_legend_item(out, 7, "this layer quantized alone");
    tare_page_legend_item(out, 1, "this one and the ones before it kept in float");
    tare_page_legend_end(out);
    if (s->count) draw_sensitivity(out, s);
    tare_sensitivity_layers(out, TARE_IN_PAGE, s, 0);
}

/* ---- the rest ---- */

enum { MOST_HISTOGRAMS = 60 };

static void histograms(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_calibration_report_options options = { 0 };
    struct tare_calibration_report report;
    if (!c->calibration) return;
    if (tare_calibration_report_make(&report, c->calibration, c->model, &options) == TARE_OK) {
        tare_page_element(out, "h2", NULL, "Activations");
        if (report.n_tensors > MOST_HISTOGRAMS)
            tare_page_element(out, "p", "soft", "The first %d of %zu tensors; tare show draws all.", MOST_HISTOGRAMS,
                              report.n_tensors);
        if (report.n_tensors > MOST_HISTOGRAMS) report.n_tensors = MOST_HISTOGRAMS;
        tare_calibration_report_histograms(out, &report);
    } else {
        tare_error_clear();
    }
    tare_calibration_report_free(&report);
}

static void manifest(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = { { .heading = "", .left = true, .wraps = true },
                                                       { .heading = "", .left = true, .wraps = true },
                                                       { 0 } };
    struct tare_page_table table;
    if (!c->n_manifest) return;
    tare_page_element(out, "h2", NULL, "Made with");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_manifest; i++) {
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", c->manifest[i].name);
        tare_page_table_cell(&table, "%s", c->manifest[i].value);
    }
    for (size_t r = 0; r < c->n_rows; r++) {
        struct tare_strbuf name = { 0 };
        tare_comparison_put_name(&name, &c->rows[r]);
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "hash of the answers of %s", tare_strbuf_text(&name));
        tare_page_table_cell(&table, "%s", c->rows[r].answers);
        tare_strbuf_free(&name);
    }
    tare_page_table_end(&table);
}

static bool keeps_up(const struct tare_comparison_measure *measure, const struct tare_comparison_row *row) {
    const struct tare_metrics *m = &row->outputs[0];
    if (measure->kind == TARE_BY_TOP1) return !tare_comparison_distinguishable(m) || m->gained > m->lost;
    if (measure->kind == TARE_BY_AGREEMENT) return (double)m->agree >= 0.99 * (double)m->ranked;
    return tare_metrics_sqnr_db(m) >= 20;
}

/* Of the models that labels cannot tell from float, or that agree with it on 99 % of the records, the most accurate one
 * that is within a tenth of the smallest. */
static void verdict(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_comparison_measure measure = tare_comparison_measure_of(c);
    const struct tare_comparison_row *best = NULL;
    struct tare_strbuf name = { 0 };
    int64_t smallest = c->rows[0].size_bytes;
    for (size_t r = 1; r < c->n_rows; r++)
        if (keeps_up(&measure, &c->rows[r]) && c->rows[r].size_bytes < smallest) smallest = c->rows[r].size_bytes;
    for (size_t r = 1; r < c->n_rows && smallest < c->rows[0].size_bytes; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if (!keeps_up(&measure, row) || (double)row->size_bytes > 1.1 * (double)smallest) continue;
        if (!best || tare_comparison_value(&measure, row) > tare_comparison_value(&measure, best)) best = row;
    }
    if (!best) {
        if (c->n_rows > 1) tare_page_note(out, "warning", "No smaller model keeps up with float on these records.");
        return;
    }
    tare_comparison_put_name(&name, best);
    tare_strbuf_printf(&name, ": %.2f%s %s (float %.2f%s), weights %.1f times smaller",
                       tare_comparison_value(&measure, best), measure.unit, measure.name,
                       tare_comparison_value(&measure, &c->rows[0]), measure.unit,
                       (double)c->rows[0].size_bytes / (double)best->size_bytes);
    if (tare_comparison_has_times(c) && best->tpu_seconds < 0.95 * c->rows[0].tpu_seconds)
        tare_strbuf_printf(&name, ", an estimated %.1f times as fast", c->rows[0].tpu_seconds / best->tpu_seconds);
    tare_page_note(out, "good", "%s.", tare_strbuf_text(&name));
    tare_strbuf_free(&name);
}

/* The last part of the path, or two where the last one is what every model has: saved_model, 1. */
static const char *title_of(const char *path) {
    const char *last = strrchr(path, '/'), *before;
    if (!last || !last[1]) return path;
    for (before = last; before > path && before[-1] != '/';)
        before--;
    return strcmp(last + 1, "saved_model") == 0 || !last[1 + strspn(last + 1, "0123456789")] ? before : last + 1;
}

void tare_comparison_html(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_page_begin(out, title_of(c->model));
    tare_page_element(out, "p", "soft",
                      "Float against %zu quantized or narrowed model%s, all on the same %lld records, by signature %s.",
                      c->n_rows - 1, c->n_rows == 2 ? "" : "s", (long long)c->records, c->signature);
    verdict(out, c);
    tare_comparison_draw(out, c);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_page_element(out, "h2", NULL, "Accuracy at output %s", c->output_keys[i]);
        tare_comparison_models(out, TARE_IN_PAGE, c, i);
    }
    costs(out, c);
    slowest(out, c);
    if (c->sensitivity) sensitivity(out, c->sensitivity);
    explanations(out, c);
    histograms(out, c);
    manifest(out, c);
    tare_page_end(out);
}
