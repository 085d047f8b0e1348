/* Scatter plots of accuracy against cost: a marker and an interval per model, and the Pareto front. */
#include "base/ascii.h"
#include "eval/report/comparison_page.h"
#include "eval/report/page.h"
#include "eval/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- figures ---- */

enum { MOST_DB = 100, LEAST_DB = -20 };

/* What is plotted: an exact model at the top, a useless one at the bottom. */
static double plotted(const struct tare_measure *measure, double value) {
    return measure->kind == TARE_MEASURE_SQNR ? fmax(LEAST_DB, fmin(MOST_DB, value)) : value;
}

static double value_of(const struct tare_measure *measure, const struct tare_comparison *c, size_t row) {
    return plotted(measure, tare_measure_value(measure, tare_measured_of(c, &c->rows[row])));
}

static bool is_better(const struct tare_measure *measure, double a, double b) {
    return measure->lower_is_better ? a < b : a > b;
}

int tare_comparison_series(const struct tare_comparison *c, size_t row) {
    int series = -1;
    for (size_t i = 0; i <= row; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= strcmp(c->rows[k].method, c->rows[i].method) == 0;
        series += !seen;
        if (strcmp(c->rows[i].method, c->rows[row].method) == 0) return series % TARE_PAGE_SERIES;
    }
    return series % TARE_PAGE_SERIES;
}

/* Megabytes or microseconds. */
static double cost_of(const struct tare_comparison_row *row, enum tare_comparison_axis axis) {
    return axis == TARE_AGAINST_SIZE ? (double)row->size_bytes / 1e6 : 1e6 * row->tpu_seconds;
}

bool tare_comparison_on_front(const struct tare_comparison *c, enum tare_comparison_axis axis, size_t row) {
    const struct tare_measure *measure = tare_measure_of(c);
    const double value = value_of(measure, c, row), cost = cost_of(&c->rows[row], axis);
    for (size_t i = 0; i < c->n_rows; i++) {
        const double other = value_of(measure, c, i), paid = cost_of(&c->rows[i], axis);
        if (i == row || is_better(measure, value, other) || paid > cost) continue;
        if (is_better(measure, other, value) || paid < cost || i < row) return false;
    }
    return true;
}

bool tare_comparison_has_times(const struct tare_comparison *c) {
    for (size_t r = 0; r < c->n_rows; r++)
        if (!(c->rows[r].tpu_seconds > 0)) return false;
    return c->n_rows > 0;
}

/* ---- a plot ---- */

struct drawing {
    const struct tare_comparison *c;
    const struct tare_measure *measure;
    enum tare_comparison_axis axis;
    struct tare_plot plot;
    bool logarithmic; /* the cost axis */
};

/* From this ratio of the largest to the smallest cost, a linear axis would draw the cheap models on one spot. */
static const double WIDE_COSTS = 12;

static double at_cost(const struct drawing *d, double cost) {
    return d->logarithmic ? log10(cost) : cost;
}

static double x_of(const struct drawing *d, size_t row) {
    return at_cost(d, cost_of(&d->c->rows[row], d->axis));
}

static void include(struct tare_plot *plot, double value) {
    if (isnan(value)) return;
    plot->y_low = fmin(plot->y_low, value);
    plot->y_high = fmax(plot->y_high, value);
}

/* The axes cover values and intervals. */
static void frame(struct drawing *d) {
    struct tare_plot *plot = &d->plot;
    double margin, cheapest = INFINITY, dearest = 0;
    *plot = (struct tare_plot){ .x_low = 0, .y_low = INFINITY, .y_high = -INFINITY, .height = 320 };
    for (size_t r = 0; r < d->c->n_rows; r++) {
        const struct tare_comparison_row *row = &d->c->rows[r];
        double low, high;
        tare_measure_interval(&low, &high, d->measure, tare_measured_of(d->c, row));
        include(plot, value_of(d->measure, d->c, r));
        include(plot, low);
        include(plot, high);
        cheapest = fmin(cheapest, cost_of(row, d->axis));
        dearest = fmax(dearest, cost_of(row, d->axis));
    }
    d->logarithmic = cheapest > 0 && dearest > WIDE_COSTS * cheapest;
    plot->x_high = at_cost(d, 1.08 * dearest);
    if (d->logarithmic) plot->x_low = at_cost(d, cheapest / 1.5);
    if (d->measure->kind == TARE_MEASURE_SQNR && plot->y_low == MOST_DB) plot->y_low = 0; /* all are exact */
    margin = 0.06 * (plot->y_high - plot->y_low);
    if (!(margin > 0)) margin = fmax(0.01 * fabs(plot->y_high), 1e-9);
    plot->y_low -= margin;
    plot->y_high += margin;
    if (!(plot->x_high > plot->x_low)) plot->x_high = plot->x_low + 1;
}

/* The next model of the front above a cost; n_rows: none. */
static size_t next_on_front(const struct drawing *d, double above) {
    size_t next = d->c->n_rows;
    for (size_t r = 0; r < d->c->n_rows; r++) {
        const double cost = cost_of(&d->c->rows[r], d->axis);
        if (cost <= above || !tare_comparison_on_front(d->c, d->axis, r)) continue;
        if (next == d->c->n_rows || cost < cost_of(&d->c->rows[next], d->axis)) next = r;
    }
    return next;
}

/* Steps: the best value for at most that cost, from the worst edge of the plot to its right edge. */
static void draw_front(struct tare_strbuf *out, const struct drawing *d) {
    double cost = -1, value = d->measure->lower_is_better ? d->plot.y_high : d->plot.y_low;
    for (size_t r; (r = next_on_front(d, cost)) < d->c->n_rows;) {
        const double to = x_of(d, r), next = value_of(d->measure, d->c, r);
        if (cost >= 0) tare_plot_line(out, &d->plot, at_cost(d, cost), value, to, value, "front");
        tare_plot_line(out, &d->plot, to, value, to, next, "front");
        cost = cost_of(&d->c->rows[r], d->axis);
        value = next;
    }
    if (cost >= 0) tare_plot_line(out, &d->plot, at_cost(d, cost), value, d->plot.x_high, value, "front");
}

/* The interval of the float model as a band, and that of each model as a line. */
static void draw_intervals(struct tare_strbuf *out, const struct drawing *d) {
    for (size_t r = 0; r < d->c->n_rows; r++) {
        const double x = x_of(d, r);
        double low, high;
        char style[24];
        tare_measure_interval(&low, &high, d->measure, tare_measured_of(d->c, &d->c->rows[r]));
        if (isnan(low)) continue;
        snprintf(style, sizeof style, "interval c%d", tare_comparison_series(d->c, r));
        if (r == 0) tare_plot_bar(out, &d->plot, d->plot.x_low, d->plot.x_high, low, high, "band");
        tare_plot_line(out, &d->plot, x, low, x, high, style);
    }
}

static void put_tooltip(struct tare_strbuf *out, const struct drawing *d, size_t r) {
    const struct tare_comparison_row *row = &d->c->rows[r];
    double low, high;
    tare_measure_interval(&low, &high, d->measure, tare_measured_of(d->c, row));
    tare_comparison_put_name(out, row);
    if (row == tare_verdict_of(d->c).row) tare_strbuf_puts(out, " (recommended)");
    tare_strbuf_printf(out, "\n%s ", d->measure->title);
    tare_measure_put(out, d->measure, tare_measure_value(d->measure, tare_measured_of(d->c, row)));
    if (!isnan(low)) {
        tare_strbuf_puts(out, " (95 %: ");
        tare_measure_put(out, d->measure, low);
        tare_strbuf_puts(out, " – ");
        tare_measure_put(out, d->measure, high);
        tare_strbuf_putc(out, ')');
    }
    tare_strbuf_printf(out, "\n%.3f MB", (double)row->size_bytes / 1e6);
    if (row->tpu_seconds > 0) tare_strbuf_printf(out, ", %.3g µs", 1e6 * row->tpu_seconds);
}

static void draw_markers(struct tare_strbuf *out, const struct drawing *d) {
    const struct tare_comparison_row *best = tare_verdict_of(d->c).row;
    if (best)
        tare_plot_label(out, &d->plot, x_of(d, (size_t)(best - d->c->rows)),
                        value_of(d->measure, d->c, (size_t)(best - d->c->rows)), "soft", "recommended");
    for (size_t r = 0; r < d->c->n_rows; r++) {
        struct tare_strbuf tooltip = { 0 };
        put_tooltip(&tooltip, d, r);
        tare_plot_marker(out, &d->plot, x_of(d, r), value_of(d->measure, d->c, r), tare_comparison_series(d->c, r),
                         tare_comparison_on_front(d->c, d->axis, r), tare_strbuf_text(&tooltip));
        tare_strbuf_free(&tooltip);
    }
}

/* 1, 2 and 5 times powers of ten. */
static void put_logarithmic_ticks(struct tare_strbuf *out, const struct drawing *d) {
    static const double steps[] = { 1, 2, 5 };
    const bool dense = d->plot.x_high - d->plot.x_low < 2.5; /* powers of ten */
    for (double power = floor(d->plot.x_low); power <= d->plot.x_high; power++)
        for (size_t i = 0; i < (dense ? 3 : 1); i++) {
            const double x = power + log10(steps[i]);
            if (x >= d->plot.x_low && x <= d->plot.x_high)
                tare_plot_x_tick(out, &d->plot, x, "%.3g", steps[i] * pow(10, power));
        }
}

static void draw(struct tare_strbuf *out, const struct tare_comparison *c, enum tare_comparison_axis axis) {
    struct drawing d = { .c = c, .measure = tare_measure_of(c), .axis = axis };
    struct tare_strbuf text = { 0 };
    const char *cost = axis == TARE_AGAINST_SIZE ? "size of the weights" : "estimated time per example";
    frame(&d);
    tare_page_half_begin(out);
    tare_page_element(out, "h3", NULL, "%c%s against %s", tare_upper(d.measure->title[0]), d.measure->title + 1, cost);
    tare_strbuf_printf(&text, "%s of %zu models against the %s", d.measure->name, c->n_rows, cost);
    tare_plot_begin(out, &d.plot, tare_strbuf_text(&text));
    tare_plot_grid(out, &d.plot);
    draw_intervals(out, &d);
    draw_front(out, &d);
    tare_plot_letters(out);
    tare_plot_ticks(out, &d.plot, d.logarithmic ? NULL : "", d.measure->unit);
    if (d.logarithmic) put_logarithmic_ticks(out, &d);
    tare_strbuf_free(&text);
    tare_strbuf_printf(&text, "%s%s", axis == TARE_AGAINST_SIZE ? "weights, MB" : "time per example, µs",
                       d.logarithmic ? ", logarithmic" : "");
    tare_plot_titles(out, tare_strbuf_text(&text), d.measure->title);
    draw_markers(out, &d);
    tare_plot_end(out);
    tare_page_box_end(out);
    tare_strbuf_free(&text);
}

void tare_comparison_draw(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    double low, high;
    tare_measure_interval(&low, &high, measure, tare_measured_of(c, &c->rows[0]));
    tare_page_heading(out, "Accuracy and cost");
    tare_page_legend_begin(out);
    for (size_t r = 0; r < c->n_rows; r++) {
        bool first = true;
        for (size_t k = 0; k < r; k++)
            first &= strcmp(c->rows[k].method, c->rows[r].method) != 0;
        if (first) tare_page_legend_item(out, tare_comparison_series(c, r), "%s", c->rows[r].method);
    }
    tare_page_legend_end(out);
    tare_page_pair_begin(out);
    draw(out, c, TARE_AGAINST_SIZE);
    if (tare_comparison_has_times(c)) draw(out, c, TARE_AGAINST_TIME);
    tare_page_box_end(out);
    tare_page_element(
        out, "p", "soft small",
        "%s is more accurate, left is smaller or faster. Ringed points are Pareto-optimal; the line is the "
        "Pareto front.%s%s",
        measure->lower_is_better ? "Down" : "Up",
        measure->kind == TARE_MEASURE_SQNR ? " A model with the values of float is at the top." : "",
        isnan(low) ? "" : " Vertical lines are 95 % intervals; the band is that of the float model.");
}
