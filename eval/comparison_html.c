/* The comparison as one page: what each method costs and saves, where it loses, what the ranges look like, and what the
 * figures were made of. */
#include "base/strbuf.h"
#include "eval/calibration_report.h"
#include "eval/comparison.h"
#include "eval/page.h"
#include "eval/sensitivity.h"
#include "eval/significance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what is drawn ---- */

/* One figure for all models: top-1 where there are labels, else agreement with float, else SQNR. */
struct measure {
    const char *name, *unit;
    enum { BY_TOP1, BY_AGREEMENT, BY_SQNR } kind;
};

static struct measure measure_of(const struct tare_comparison *c) {
    const struct tare_metrics *m = &c->rows[0].outputs[0];
    if (m->labelled) return (struct measure){ "top-1", " %", BY_TOP1 };
    if (m->ranked) return (struct measure){ "agreement with float", " %", BY_AGREEMENT };
    return (struct measure){ "SQNR", " dB", BY_SQNR };
}

/* Percent or dB; an exact model's SQNR is drawn at 100 dB. */
static double value_of(const struct measure *measure, const struct tare_comparison_row *row) {
    const struct tare_metrics *m = &row->outputs[0];
    if (measure->kind == BY_TOP1) return 100 * (double)m->top1 / (double)m->labelled;
    if (measure->kind == BY_AGREEMENT) return 100 * (double)m->agree / (double)m->ranked;
    return fmax(-20, fmin(100, tare_metrics_sqnr_db(m)));
}

/* Methods have colours by their first appearance. */
static int series_of(const struct tare_comparison *c, size_t row) {
    int series = -1;
    for (size_t i = 0; i <= row; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++) seen |= strcmp(c->rows[k].method, c->rows[i].method) == 0;
        series += !seen;
        if (strcmp(c->rows[i].method, c->rows[row].method) == 0) return series % TARE_PAGE_SERIES;
    }
    return series % TARE_PAGE_SERIES;
}

/* No other model is at least as good and at least as small, and better in one of both. */
static bool on_front(const struct tare_comparison *c, const struct measure *measure, size_t row) {
    double value = value_of(measure, &c->rows[row]);
    for (size_t i = 0; i < c->n_rows; i++) {
        double other = value_of(measure, &c->rows[i]);
        bool as_good = other >= value && c->rows[i].size_bytes <= c->rows[row].size_bytes;
        bool better = other > value || c->rows[i].size_bytes < c->rows[row].size_bytes;
        if (i != row && as_good && (better || i < row)) return false;
    }
    return true;
}

static void put_name(struct tare_strbuf *out, const struct tare_comparison_row *row) {
    tare_strbuf_puts(out, row->method);
    if (row->algorithm) tare_strbuf_printf(out, " %s", row->algorithm);
    if (row->granularity && strcmp(row->granularity, "per_channel") != 0) tare_strbuf_printf(out, " %s", row->granularity);
}

/* ---- accuracy against size ---- */

static struct tare_plot frame_of(const struct tare_comparison *c, const struct measure *measure) {
    struct tare_plot plot = { .x_low = 0, .y_low = INFINITY, .y_high = -INFINITY, .height = 320 };
    double margin;
    for (size_t r = 0; r < c->n_rows; r++) {
        double value = value_of(measure, &c->rows[r]);
        plot.y_low = fmin(plot.y_low, value);
        plot.y_high = fmax(plot.y_high, value);
        plot.x_high = fmax(plot.x_high, 1.05 * (double)c->rows[r].size_bytes / 1e6);
    }
    margin = fmax(0.12 * (plot.y_high - plot.y_low), 0.2);
    plot.y_low -= margin;
    plot.y_high += margin;
    if (!(plot.x_high > 0)) plot.x_high = 1;
    return plot;
}

/* The front as steps from small to large. */
static void draw_front(struct tare_strbuf *out, const struct tare_plot *plot, const struct tare_comparison *c,
                       const struct measure *measure) {
    double last_size = -1, last_value = 0;
    for (;;) {
        size_t next = c->n_rows;
        for (size_t r = 0; r < c->n_rows; r++) {
            double size = (double)c->rows[r].size_bytes / 1e6;
            if (!on_front(c, measure, r) || size <= last_size) continue;
            if (next == c->n_rows || c->rows[r].size_bytes < c->rows[next].size_bytes) next = r;
        }
        if (next == c->n_rows) return;
        double size = (double)c->rows[next].size_bytes / 1e6, value = value_of(measure, &c->rows[next]);
        if (last_size >= 0) {
            tare_plot_line(out, plot, last_size, last_value, size, last_value, "c7");
            tare_plot_line(out, plot, size, last_value, size, value, "c7");
        }
        last_size = size;
        last_value = value;
    }
}

static void draw_models(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct measure measure = measure_of(c);
    const struct tare_plot plot = frame_of(c, &measure);
    struct tare_strbuf text = { 0 };
    tare_page_element(out, "h2", NULL, "%s against size of the weights", measure.kind == BY_TOP1 ? "Top-1"
                      : measure.kind == BY_AGREEMENT ? "Agreement with float" : "SQNR");
    tare_page_legend_begin(out);
    for (size_t r = 0; r < c->n_rows; r++)
        if (r == 0 || series_of(c, r) > series_of(c, r - 1)) tare_page_legend_item(out, series_of(c, r), "%s", c->rows[r].method);
    tare_page_legend_end(out);
    tare_strbuf_printf(&text, "%s of %zu models against the megabytes of their weights", measure.name, c->n_rows);
    tare_plot_begin(out, &plot, tare_strbuf_text(&text));
    tare_plot_grid(out, &plot);
    draw_front(out, &plot, c, &measure);
    for (size_t r = 0; r < c->n_rows; r++) {
        char style[8];
        snprintf(style, sizeof style, "c%d", series_of(c, r));
        tare_plot_dot(out, &plot, (double)c->rows[r].size_bytes / 1e6, value_of(&measure, &c->rows[r]), style);
    }
    tare_plot_letters(out);
    tare_plot_ticks(out, &plot, " MB", measure.unit);
    for (size_t r = 0; r < c->n_rows; r++) {
        if (!on_front(c, &measure, r)) continue;
        text.size = 0;
        put_name(&text, &c->rows[r]);
        tare_plot_label(out, &plot, (double)c->rows[r].size_bytes / 1e6, value_of(&measure, &c->rows[r]), "ink", "%s",
                        tare_strbuf_text(&text));
    }
    tare_plot_end(out);
    tare_strbuf_free(&text);
    tare_page_element(out, "p", "soft small", "Up is more accurate, left is smaller. The named models are the ones that no "
                      "other beats in both; the line joins them.");
}

/* ---- tables ---- */

static void share_cell(struct tare_page_table *table, int64_t part, int64_t whole) {
    if (whole)
        tare_page_table_cell(table, "%.2f %%", 100 * (double)part / (double)whole);
    else
        tare_page_table_skip(table);
}

static void text_cell(struct tare_page_table *table, const char *text) {
    if (text)
        tare_page_table_cell(table, "%s", text);
    else
        tare_page_table_skip(table);
}

static void label_cells(struct tare_page_table *table, const struct tare_metrics *m, bool is_reference) {
    double low, high;
    share_cell(table, m->top1, m->labelled);
    tare_share_interval(&low, &high, m->top1, m->labelled);
    tare_page_table_cell(table, "%.1f – %.1f", 100 * low, 100 * high);
    if (is_reference)
        tare_page_table_skip(table);
    else
        tare_page_table_cell(table, "%+.2f, %s", 100 * (double)(m->gained - m->lost) / (double)m->labelled,
                             tare_comparison_distinguishable(m) ? "differs" : "no difference seen");
    share_cell(table, m->top5, m->labelled);
}

static void model_row(struct tare_page_table *table, const struct tare_comparison *c, size_t r, size_t output, bool labelled) {
    const struct tare_comparison_row *row = &c->rows[r];
    const struct tare_metrics *m = &row->outputs[output];
    double sqnr = tare_metrics_sqnr_db(m);
    tare_page_table_row(table);
    tare_page_table_series_cell(table, series_of(c, r), "%s", row->method);
    text_cell(table, row->algorithm);
    text_cell(table, row->granularity);
    tare_page_table_cell(table, "%.3f", (double)row->size_bytes / 1e6);
    if (labelled) label_cells(table, m, r == 0);
    share_cell(table, m->agree, m->ranked);
    if (isinf(sqnr))
        tare_page_table_cell(table, "%s", sqnr > 0 ? "exact" : "none");
    else
        tare_page_table_cell(table, "%.2f", sqnr);
    tare_page_table_cell(table, "%.3g", m->max_abs_error);
}

static void models_table(struct tare_strbuf *out, const struct tare_comparison *c, size_t output) {
    static const struct tare_page_column all[] = {
        { .heading = "method", .left = true },
        { .heading = "algorithm", .left = true },
        { .heading = "weights", .left = true },
        { .heading = "MB", .help = "of the weights" },
        { .heading = "top-1" },
        { .heading = "95 % interval", .help = "Wilson's score interval of top-1, in percent" },
        { .heading = "against float", .help = "points of top-1; McNemar's exact test on the same records, at 95 %", .left = true },
        { .heading = "top-5" },
        { .heading = "agreement", .help = "share of the records where the largest element is where float has it" },
        { .heading = "SQNR dB", .help = "square of the float answers over that of the difference" },
        { .heading = "max error" },
        { 0 },
    };
    enum { FIRST_LABEL = 4, LABELS = 4, COLUMNS = sizeof all / sizeof *all };
    bool labelled = c->rows[0].outputs[output].labelled > 0;
    struct tare_page_column columns[COLUMNS];
    struct tare_page_table table;
    size_t count = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if (labelled || i < FIRST_LABEL || i >= FIRST_LABEL + LABELS) columns[count++] = all[i];
    tare_page_element(out, "h2", NULL, "Output %s", c->output_keys[output]);
    tare_page_table_begin(&table, out, columns);
    for (size_t r = 0; r < c->n_rows; r++) model_row(&table, c, r, output, labelled);
    tare_page_table_end(&table);
}

/* ---- layers ---- */

static void explanation_row(struct tare_page_table *table, const struct tare_explanation *e) {
    double error = e->rounding_mse + e->clipping_mse;
    tare_page_table_row(table);
    tare_page_table_cell(table, "%s", e->node);
    tare_page_table_cell(table, "%s", e->op);
    if (e->has_input) {
        tare_page_table_cell(table, "%.4g", e->input.scale);
        tare_page_table_cell(table, "%d", e->input.zero_point);
        tare_page_table_cell(table, "%.1f", e->input_sqnr_db);
        tare_page_table_cell(table, "%.0f %%", error > 0 ? 100 * e->clipping_mse / error : 0);
        tare_page_table_cell(table, "%d", e->unused_codes);
    } else {
        for (int i = 0; i < 5; i++) tare_page_table_skip(table);
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
        { .heading = "scale", .help = "of the activation" },
        { .heading = "zero point" },
        { .heading = "input dB", .help = "SQNR of the activation on its grid, by the calibration" },
        { .heading = "clipping", .help = "share of the activation's error that comes from clipping; the rest is rounding" },
        { .heading = "unused", .help = "codes of the grid that no value falls on" },
        { .heading = "weight dB", .help = "SQNR of the weight" },
        { .heading = "spread", .help = "the widest channel of the weight over the median one" },
        { .heading = "what would help", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_page_table table;
    if (!c->explanations.count) return;
    tare_page_element(out, "h2", NULL, "Layers of %s", c->explanations.items[0].method ? c->explanations.items[0].method : "the first method");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->explanations.count; i++) explanation_row(&table, &c->explanations.items[i]);
    tare_page_table_end(&table);
}

/* ---- sensitivity ---- */

/* What is nearly exact ends at the edge of the drawing. */
static double drawn_db(const struct tare_plot *plot, double sqnr_db) { return fmax(0, fmin(plot->y_high, sqnr_db)); }

static void draw_sensitivity(struct tare_strbuf *out, const struct tare_sensitivity *s) {
    struct tare_plot plot = { .x_low = 0, .x_high = (double)s->count, .y_low = 0, .y_high = 10, .height = 240 };
    for (size_t i = 0; i < s->count; i++) {
        if (s->layers[i].alone.sqnr_db < 100) plot.y_high = fmax(plot.y_high, 1.2 * s->layers[i].alone.sqnr_db);
    }
    tare_plot_begin(out, &plot, "SQNR of each layer quantized alone, the worst first, and of the model as the worst are kept in float");
    tare_plot_grid(out, &plot);
    for (size_t i = 0; i < s->count; i++)
        tare_plot_bar(out, &plot, (double)i + 0.15, (double)i + 0.85, 0, drawn_db(&plot, s->layers[i].alone.sqnr_db), "bar");
    for (size_t i = 0; i + 1 < s->count; i++)
        tare_plot_line(out, &plot, (double)i + 0.5, drawn_db(&plot, s->layers[i].kept.sqnr_db), (double)i + 1.5,
                       drawn_db(&plot, s->layers[i + 1].kept.sqnr_db), "c1");
    tare_plot_letters(out);
    tare_plot_ticks(out, &plot, NULL, " dB");
    for (size_t i = 0; i < s->count && s->count <= 20; i++) tare_plot_x_tick(out, &plot, (double)i + 0.5, "%zu", i + 1);
    tare_plot_end(out);
}

static void figure_cells(struct tare_page_table *table, const struct tare_sensitivity_figures *f, bool labelled) {
    if (isinf(f->sqnr_db))
        tare_page_table_cell(table, "%s", f->sqnr_db > 0 ? "exact" : "none");
    else
        tare_page_table_cell(table, "%.2f", f->sqnr_db);
    if (labelled) tare_page_table_cell(table, "%.2f %%", 100 * f->top1);
}

static void sensitivity(struct tare_strbuf *out, const struct tare_sensitivity *s) {
    static const struct tare_page_column with_labels[] = {
        { .heading = "" }, { .heading = "layer", .left = true, .wraps = true }, { .heading = "op", .left = true },
        { .heading = "weights" }, { .heading = "alone dB", .help = "only this layer is quantized" }, { .heading = "top-1" },
        { .heading = "all but it dB" }, { .heading = "top-1" },
        { .heading = "kept so far dB", .help = "this layer and the ones above stay float" }, { .heading = "top-1" }, { 0 },
    };
    static const struct tare_page_column without[] = {
        { .heading = "" }, { .heading = "layer", .left = true, .wraps = true }, { .heading = "op", .left = true },
        { .heading = "weights" }, { .heading = "alone dB", .help = "only this layer is quantized" },
        { .heading = "all but it dB" },
        { .heading = "kept so far dB", .help = "this layer and the ones above stay float" }, { 0 },
    };
    bool labelled = !isnan(s->all.top1);
    struct tare_page_table table;
    tare_page_element(out, "h2", NULL, "Sensitivity to %s", s->method);
    tare_page_element(out, "p", "soft", "%lld records. All %zu layers quantized give %.2f dB.", (long long)s->records, s->count,
                      s->all.sqnr_db);
    tare_page_legend_begin(out);
    tare_page_legend_item(out, 7, "this layer quantized alone");
    tare_page_legend_item(out, 1, "this one and the ones before it kept in float");
    tare_page_legend_end(out);
    if (s->count) draw_sensitivity(out, s);
    tare_page_table_begin(&table, out, labelled ? with_labels : without);
    for (size_t i = 0; i < s->count; i++) {
        const struct tare_sensitive_layer *layer = &s->layers[i];
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%zu", i + 1);
        tare_page_table_cell(&table, "%s", layer->node);
        tare_page_table_cell(&table, "%s", layer->op);
        tare_page_table_cell(&table, "%lld", (long long)layer->weight_elements);
        figure_cells(&table, &layer->alone, labelled);
        figure_cells(&table, &layer->restored, labelled);
        figure_cells(&table, &layer->kept, labelled);
    }
    tare_page_table_end(&table);
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
            tare_page_element(out, "p", "soft", "The first %d of %zu tensors; tare show draws all.", MOST_HISTOGRAMS, report.n_tensors);
        if (report.n_tensors > MOST_HISTOGRAMS) report.n_tensors = MOST_HISTOGRAMS;
        tare_calibration_report_histograms(out, &report);
    } else {
        tare_error_clear();
    }
    tare_calibration_report_free(&report);
}

static void manifest(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = { { .heading = "", .left = true }, { .heading = "", .left = true, .wraps = true }, { 0 } };
    struct tare_page_table table;
    if (!c->n_manifest) return;
    tare_page_element(out, "h2", NULL, "Made with");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_manifest; i++) {
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", c->manifest[i].name);
        tare_page_table_cell(&table, "%s", c->manifest[i].value);
    }
    tare_page_table_end(&table);
}

static bool keeps_up(const struct measure *measure, const struct tare_comparison_row *row) {
    const struct tare_metrics *m = &row->outputs[0];
    if (measure->kind == BY_TOP1) return !tare_comparison_distinguishable(m) || m->gained > m->lost;
    if (measure->kind == BY_AGREEMENT) return (double)m->agree >= 0.99 * (double)m->ranked;
    return tare_metrics_sqnr_db(m) >= 20;
}

/* Of the models that labels cannot tell from float, or that agree with it on 99 % of the records, the most accurate one
 * that is within a tenth of the smallest. */
static void verdict(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct measure measure = measure_of(c);
    const struct tare_comparison_row *best = NULL;
    struct tare_strbuf name = { 0 };
    int64_t smallest = c->rows[0].size_bytes;
    for (size_t r = 1; r < c->n_rows; r++)
        if (keeps_up(&measure, &c->rows[r]) && c->rows[r].size_bytes < smallest) smallest = c->rows[r].size_bytes;
    for (size_t r = 1; r < c->n_rows && smallest < c->rows[0].size_bytes; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        if (!keeps_up(&measure, row) || (double)row->size_bytes > 1.1 * (double)smallest) continue;
        if (!best || value_of(&measure, row) > value_of(&measure, best)) best = row;
    }
    if (!best) {
        if (c->n_rows > 1) tare_page_note(out, "warning", "No smaller model keeps up with float on these records.");
        return;
    }
    put_name(&name, best);
    tare_page_note(out, "good", "%s: %.2f%s %s (float %.2f%s), weights %.1f times smaller.", tare_strbuf_text(&name),
                   value_of(&measure, best), measure.unit, measure.name, value_of(&measure, &c->rows[0]), measure.unit,
                   (double)c->rows[0].size_bytes / (double)best->size_bytes);
    tare_strbuf_free(&name);
}

void tare_comparison_html(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_page_begin(out, c->model);
    tare_page_element(out, "p", "soft", "%lld records of %s, signature %s. Every model ran on the same records.",
                      (long long)c->records, c->data, c->signature);
    verdict(out, c);
    draw_models(out, c);
    for (size_t i = 0; i < c->n_outputs; i++) models_table(out, c, i);
    if (c->sensitivity) sensitivity(out, c->sensitivity);
    explanations(out, c);
    histograms(out, c);
    manifest(out, c);
    tare_page_end(out);
}
