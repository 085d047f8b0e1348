/* A calibration as one HTML page. */
#include "base/strbuf.h"
#include "base/format.h"
#include "eval/report/calibration_report.h"
#include "eval/report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- histogram ---- */

/* Exponent of the smallest power of ten that is at least `count` and at least 10. */
static int decades_of(double count) {
    int decades = 1;
    while (decades < 18 && pow(10, decades) < count)
        decades++;
    return decades;
}

static void decade_text(char text[16], int decade) {
    static const char *const units[] = { "", "k", "M", "G", "T", "P" };
    tare_format(text, 16, "%.0f%s", pow(10, decade % 3), units[decade / 3 < 6 ? decade / 3 : 5]);
}

static void draw_thresholds(struct tare_strbuf *out, const struct tare_plot *plot,
                            const struct tare_calibration_report *report,
                            const struct tare_calibration_report_tensor *t) {
    double slack = 0.01 * (plot->x_high - plot->x_low);
    for (size_t i = 0; i < report->n_algorithms; i++) {
        const double ends[] = { t->ranges[i].range.low, t->ranges[i].range.high };
        char style[8];
        snprintf(style, sizeof style, "c%zu", i % TARE_PAGE_SERIES);
        for (int end = 0; end < 2; end++) {
            if (ends[end] < plot->x_low - slack || ends[end] > plot->x_high + slack) continue;
            tare_plot_line(out, plot, ends[end], plot->y_low, ends[end], plot->y_high, style);
        }
    }
}

/* Logarithmic counts, because the few outliers decide the range. */
static void draw_histogram(struct tare_strbuf *out, const struct tare_calibration_report *report,
                           const struct tare_calibration_report_tensor *t) {
    double heights[TARE_CALIBRATION_REPORT_COLUMNS], most = 0;
    for (int i = 0; i < TARE_CALIBRATION_REPORT_COLUMNS; i++) {
        most = fmax(most, t->columns[i]);
        heights[i] = t->columns[i] > 0 ? fmax(log10(t->columns[i]) + 0.3, 0.06) : 0;
    }
    int decades = decades_of(most), step = decades > 5 ? 2 : 1;
    double margin = 0.03 * (t->plot_high - t->plot_low);
    const struct tare_plot plot = { .x_low = t->plot_low - margin,
                                    .x_high = t->plot_high + margin,
                                    .y_low = 0,
                                    .y_high = decades + 0.3,
                                    .height = 200 };
    char text[16];
    if (!(t->plot_high > t->plot_low)) {
        tare_page_element(out, "p", "soft small", "Every finite value is 0.");
        return;
    }
    struct tare_strbuf description = { 0 };
    tare_strbuf_printf(&description, "Histogram of %s from %.5g to %.5g with the ranges of %zu algorithms", t->name,
                       t->low, t->high, report->n_algorithms);
    tare_plot_begin(out, &plot, tare_strbuf_text(&description));
    out->failed = out->failed || description.failed;
    tare_strbuf_free(&description);
    for (int decade = 0; decade <= decades; decade += step)
        tare_plot_grid_line(out, &plot, decade + 0.3);
    tare_plot_columns(out, &plot, t->plot_low, t->plot_high, heights, TARE_CALIBRATION_REPORT_COLUMNS);
    draw_thresholds(out, &plot, report, t);
    tare_plot_letters(out);
    tare_plot_ticks(out, &plot, "", NULL);
    for (int decade = 0; decade <= decades; decade += step) {
        decade_text(text, decade);
        tare_plot_y_tick(out, &plot, decade + 0.3, "%s", text);
    }
    tare_plot_end(out);
}

/* ---- convergence ---- */

static void draw_convergence(struct tare_strbuf *out, const struct tare_calibration_report_tensor *t) {
    double xs[TARE_STATISTICS_BUCKETS], lows[TARE_STATISTICS_BUCKETS], highs[TARE_STATISTICS_BUCKETS];
    if (t->n_points < 2 || !(t->plot_high > t->plot_low)) return;
    for (size_t i = 0; i < t->n_points; i++) {
        xs[i] = log2((double)t->points[i].records);
        lows[i] = t->points[i].low;
        highs[i] = t->points[i].high;
    }
    double first = xs[0], last = xs[t->n_points - 1];
    const struct tare_plot plot = {
        .x_low = first, .x_high = last, .y_low = t->plot_low, .y_high = t->plot_high, .height = 72
    };
    tare_page_element(out, "p", "soft small", "Range of the first 1, 2, 4 … records; 99%% of it after %" PRId64 ".",
                      tare_convergence_records(t->points, t->n_points, 0.99));
    struct tare_strbuf description = { 0 };
    tare_strbuf_printf(&description, "Range of %s against the number of records", t->name);
    tare_plot_begin(out, &plot, tare_strbuf_text(&description));
    out->failed = out->failed || description.failed;
    tare_strbuf_free(&description);
    tare_plot_band(out, &plot, xs, lows, highs, t->n_points, "c0 pale");
    tare_plot_path(out, &plot, xs, lows, t->n_points, "c0");
    tare_plot_path(out, &plot, xs, highs, t->n_points, "c0");
    tare_plot_letters(out);
    double step = ceil((last - first) / 5);
    for (double at = first; at <= last; at += fmax(step, 1))
        tare_plot_x_tick(out, &plot, at, "%.0f", exp2(at));
    tare_plot_y_tick(out, &plot, t->plot_low, "%.4g", t->plot_low);
    tare_plot_y_tick(out, &plot, t->plot_high, "%.4g", t->plot_high);
    tare_plot_end(out);
}

/* ---- tables ---- */

static void ranges_table(struct tare_strbuf *out, const struct tare_calibration_report *report,
                         const struct tare_calibration_report_tensor *t) {
    static const struct tare_page_column columns[] = {
        { .heading = "algorithm", .left = true },
        { .heading = "SQNR dB", .help = "mean square of the values over that of their rounding and clipping errors" },
        { .heading = "low" },
        { .heading = "high" },
        { .heading = "clipped", .help = "share of the finite values beyond the grid" },
        { 0 },
    };
    struct tare_page_table table;
    char text[TARE_CALIBRATION_NUMBER];
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < report->n_algorithms; i++) {
        const struct tare_calibration_report_range *r = &t->ranges[i];
        tare_page_table_row(&table);
        tare_page_table_line_cell(&table, (int)i, "%s", report->algorithms[i]);
        tare_page_table_cell(&table, "%s", tare_calibration_sqnr_text(text, r->quality.sqnr_db));
        tare_page_table_cell(&table, "%s", tare_calibration_value_text(text, r->range.low));
        tare_page_table_cell(&table, "%s", tare_calibration_value_text(text, r->range.high));
        tare_page_table_cell(&table, "%s", tare_calibration_share_text(text, r->quality.clipped));
    }
    tare_page_table_end(&table);
}

/* Whether a single record determines the range. */
static void put_outlier(struct tare_strbuf *out, const struct tare_calibration_report *report,
                        const struct tare_calibration_report_tensor *t) {
    const struct tare_statistics *s = &t->tensor->statistics;
    struct tare_range_without without;
    char record[TARE_CALIBRATION_NUMBER], low[TARE_CALIBRATION_NUMBER], high[TARE_CALIBRATION_NUMBER];
    if (s->finite_samples < TARE_WARNING_OUTLIER_RECORDS || !tare_statistics_range_without(&without, s)) return;
    if (without.share > tare_warning_outlier_share) return;
    tare_page_note(out, "warning", "Record %s alone sets this range; without it the values go from %s to %s.",
                   tare_calibration_record_text(record, report->calibration, without.input, without.record),
                   tare_calibration_value_text(low, without.low), tare_calibration_value_text(high, without.high));
}

void tare_calibration_report_put_id(struct tare_strbuf *out, const char *function, const char *node, int output) {
    tare_strbuf_printf(out, "%s/%s:%d", function, node, output);
}

/* The plots of these tensors are open. */
static bool has_warning(const struct tare_calibration_report *report, const struct tare_calibration_tensor *tensor) {
    for (size_t i = 0; i < report->warnings.count; i++)
        for (size_t k = 0; k < report->warnings.items[i].n_tensors; k++)
            if (report->warnings.items[i].tensors[k] == tensor) return true;
    return false;
}

static void tensor_card(struct tare_strbuf *out, const struct tare_calibration_report *report,
                        const struct tare_calibration_report_tensor *t) {
    char text[TARE_CALIBRATION_NUMBER], mean[TARE_CALIBRATION_NUMBER], rms[TARE_CALIBRATION_NUMBER];
    const struct tare_statistics *s = &t->tensor->statistics;
    struct tare_strbuf id = { 0 };
    tare_calibration_report_put_id(&id, t->tensor->function, t->tensor->node, t->tensor->output);
    tare_page_folded_begin(out, tare_strbuf_text(&id), t->name, has_warning(report, t->tensor));
    out->failed = out->failed || id.failed;
    tare_strbuf_free(&id);
    tare_page_element(out, "p", "soft small", "%s values, %.1f%% zeros, mean %s, rms %s",
                      tare_calibration_count_text(text, t->elements),
                      100 * (double)s->histogram.zeros / (double)t->elements,
                      tare_calibration_value_text(mean, t->mean), tare_calibration_value_text(rms, t->rms));
    put_outlier(out, report, t);
    tare_page_pair_begin(out);
    tare_page_half_begin(out);
    draw_histogram(out, report, t);
    draw_convergence(out, t);
    tare_page_box_end(out);
    tare_page_half_begin(out);
    ranges_table(out, report, t);
    tare_page_box_end(out);
    tare_page_box_end(out);
    tare_page_folded_end(out);
}

static void extreme_cells(struct tare_page_table *table, const struct tare_calibration *c,
                          const struct tare_extreme *extreme) {
    char text[TARE_CALIBRATION_NUMBER];
    tare_page_table_cell(table, "%s", tare_calibration_value_text(text, extreme->value));
    tare_page_table_cell(table, "%s", tare_calibration_record_text(text, c, extreme->input, extreme->record));
}

/* The algorithm with the least error; the first on a tie. */
static size_t best_of(const struct tare_calibration_report *report, const struct tare_calibration_report_tensor *t) {
    size_t best = 0;
    for (size_t i = 1; i < report->n_algorithms; i++) {
        if (t->ranges[i].quality.sqnr_db > t->ranges[best].quality.sqnr_db) best = i;
    }
    return best;
}

static void overview(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    static const struct tare_page_column columns[] = {
        { .heading = "tensor", .help = "function/node:output", .left = true, .wraps = true },
        { .heading = "values" },
        { .heading = "zeros" },
        { .heading = "min" },
        { .heading = "by record",
          .help = "the record that holds the least value; input:record where there are several" },
        { .heading = "max" },
        { .heading = "by record", .help = "the record that holds the greatest value" },
        { .heading = "99% after", .help = "records after which 99% of the range had been seen, zero being in it" },
        { .heading = "least error", .help = "the algorithm with the highest SQNR", .left = true },
        { .heading = "SQNR dB", .help = "of that algorithm" },
        { 0 },
    };
    struct tare_page_table table;
    char text[TARE_CALIBRATION_NUMBER];
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct tare_calibration_report_tensor *t = &report->tensors[i];
        const struct tare_statistics *s = &t->tensor->statistics;
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", t->name);
        tare_page_table_cell(&table, "%s", tare_calibration_count_text(text, t->elements));
        if (!t->has_range) {
            for (int cell = 0; cell < 8; cell++)
                tare_page_table_skip(&table);
            continue;
        }
        size_t best = best_of(report, t);
        tare_page_table_cell(&table, "%.1f%%", 100 * (double)s->histogram.zeros / (double)t->elements);
        extreme_cells(&table, report->calibration, &s->lowest[0]);
        extreme_cells(&table, report->calibration, &s->highest[0]);
        tare_page_table_cell(&table, "%" PRId64, tare_convergence_records(t->points, t->n_points, 0.99));
        tare_page_table_cell(&table, "%s", report->algorithms[best]);
        tare_page_table_cell(&table, "%s", tare_calibration_sqnr_text(text, t->ranges[best].quality.sqnr_db));
    }
    tare_page_table_end(&table);
}

static void inputs(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    static const struct tare_page_column columns[] = {
        { .heading = "input" },
        { .heading = "records" },
        { .heading = "signature", .left = true },
        { .heading = "file", .left = true, .wraps = true },
        { 0 },
    };
    const struct tare_calibration *c = report->calibration;
    struct tare_page_table table;
    char text[TARE_CALIBRATION_NUMBER];
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_inputs; i++) {
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%zu", i + 1);
        tare_page_table_cell(&table, "%s",
                             tare_calibration_count_text(text, tare_record_set_size(&c->inputs[i].records)));
        tare_page_table_cell(&table, "%s", c->inputs[i].signature);
        tare_page_table_cell(&table, "%s", c->inputs[i].file);
    }
    tare_page_table_end(&table);
    for (size_t i = 0; i < c->n_inputs; i++) {
        for (size_t k = 0; k < c->inputs[i].n_bad; k++) {
            const struct tare_calibration_bad *bad = &c->inputs[i].bad[k];
            tare_page_element(out, "p", "small", "Passed over: %s: %s (%s, from byte %" PRId64 " on)",
                              c->inputs[i].file, bad->text, bad->reason, bad->offset);
        }
    }
}

static void coverage(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    static const struct tare_page_column columns[] = {
        { .heading = "node", .left = true, .wraps = true },
        { .heading = "op", .left = true },
        { .heading = "side", .left = true },
        { .heading = "function", .left = true, .wraps = true },
        { .heading = "records" },
        { 0 },
    };
    const struct tare_calibration *c = report->calibration;
    struct tare_page_table table;
    char text[TARE_CALIBRATION_NUMBER], name[TARE_COVERAGE_SIDE_TEXT];
    tare_page_heading(out, "Branches");
    if (c->coverage.count == 0) {
        tare_page_element(out, "p", "soft", "The model chooses between no functions: no If, Case or While.");
        return;
    }
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->coverage.count; i++) {
        const struct tare_coverage_side *side = &c->coverage.sides[i];
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s%s%s", side->function, *side->function != '\0' ? "/" : "", side->node);
        tare_page_table_cell(&table, "%s", side->op);
        tare_page_table_cell(&table, "%s", tare_coverage_side_text(name, side));
        tare_page_table_cell(&table, "%s", side->target);
        tare_page_table_cell(&table, "%s%s", side->records == 0 ? "never: " : "",
                             tare_calibration_count_text(text, side->records));
    }
    tare_page_table_end(&table);
}

void tare_calibration_report_histograms(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    tare_page_element(out, "p", "soft",
                      "Counts are on a logarithmic scale, without zeros. Lines mark the ends of each "
                      "algorithm's range; an end outside the plot is only in the table. SQNR and clipped share "
                      "are those of the range's int%d grid (%s).",
                      report->scheme.bits, report->scheme.symmetric ? "symmetric" : "asymmetric");
    for (size_t i = 0; i < report->n_tensors; i++) {
        if (report->tensors[i].has_range) tensor_card(out, report, &report->tensors[i]);
    }
}

void tare_calibration_report_html(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    const struct tare_calibration *c = report->calibration;
    char text[TARE_CALIBRATION_NUMBER];
    tare_page_begin(out, "Activation statistics of", report->title);
    tare_page_element(out, "p", "soft", "%s records, %zu tensors, %s. Model fingerprint %016" PRIx64 "%016" PRIx64 ".",
                      tare_calibration_count_text(text, tare_calibration_records(c)), c->n_tensors, c->settings,
                      c->fingerprint[0], c->fingerprint[1]);
    if (report->function && *report->function != '\0')
        tare_page_element(out, "p", "soft", "All tensors are in function %s.", report->function);
    tare_page_heading(out, "Warnings");
    for (size_t i = 0; i < report->warnings.count; i++)
        tare_page_note(out, "warning", "%s", report->warnings.items[i].text);
    if (report->warnings.count == 0) tare_page_note(out, "good", "No warnings.");
    tare_page_heading(out, "Inputs");
    inputs(out, report);
    tare_page_heading(out, "Tensors");
    overview(out, report);
    coverage(out, report);
    tare_page_heading(out, "Histograms and ranges");
    tare_calibration_report_histograms(out, report);
    tare_page_end(out);
}
