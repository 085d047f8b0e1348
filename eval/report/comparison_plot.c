/* Accuracy against what it is bought with: dots for the models, a line for the front. */
#include "eval/report/comparison_page.h"
#include "eval/report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- figures ---- */

struct tare_comparison_measure tare_comparison_measure_of(const struct tare_comparison *c) {
    const struct tare_metrics *m = &c->rows[0].outputs[0];
    if (m->labelled) return (struct tare_comparison_measure){ "top-1", "Top-1", " %", TARE_BY_TOP1 };
    if (m->ranked)
        return (struct tare_comparison_measure){ "agreement with float", "Agreement", " %", TARE_BY_AGREEMENT };
    return (struct tare_comparison_measure){ "SQNR", "SQNR", " dB", TARE_BY_SQNR };
}

double tare_comparison_value(const struct tare_comparison_measure *measure, const struct tare_comparison_row *row) {
    const struct tare_metrics *m = &row->outputs[0];
    if (measure->kind == TARE_BY_TOP1) return 100 * tare_metrics_share(m->top1, m->labelled);
    if (measure->kind == TARE_BY_AGREEMENT) return 100 * tare_metrics_share(m->agree, m->ranked);
    return fmax(-20, fmin(100, tare_metrics_sqnr_db(m)));
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

void tare_comparison_put_name(struct tare_strbuf *out, const struct tare_comparison_row *row) {
    tare_strbuf_puts(out, row->method);
    if (row->algorithm) tare_strbuf_printf(out, " %s", row->algorithm);
    if (row->granularity && strcmp(row->granularity, "per_channel") != 0)
        tare_strbuf_printf(out, " %s", row->granularity);
}

/* Megabytes or microseconds. */
static double price_of(const struct tare_comparison_row *row, enum tare_comparison_axis axis) {
    return axis == TARE_AGAINST_SIZE ? (double)row->size_bytes / 1e6 : 1e6 * row->tpu_seconds;
}

bool tare_comparison_on_front(const struct tare_comparison *c, enum tare_comparison_axis axis, size_t row) {
    const struct tare_comparison_measure measure = tare_comparison_measure_of(c);
    const double value = tare_comparison_value(&measure, &c->rows[row]), price = price_of(&c->rows[row], axis);
    for (size_t i = 0; i < c->n_rows; i++) {
        const double other = tare_comparison_value(&measure, &c->rows[i]), paid = price_of(&c->rows[i], axis);
        if (i != row && other >= value && paid <= price && (other > value || paid < price || i < row)) return false;
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
    struct tare_comparison_measure measure;
    enum tare_comparison_axis axis;
    struct tare_plot plot;
};

static void frame(struct drawing *d) {
    struct tare_plot *plot = &d->plot;
    double margin;
    *plot = (struct tare_plot){ .x_low = 0, .y_low = INFINITY, .y_high = -INFINITY, .height = 300 };
    for (size_t r = 0; r < d->c->n_rows; r++) {
        const double value = tare_comparison_value(&d->measure, &d->c->rows[r]);
        plot->y_low = fmin(plot->y_low, value);
        plot->y_high = fmax(plot->y_high, value);
        plot->x_high = fmax(plot->x_high, 1.08 * price_of(&d->c->rows[r], d->axis));
    }
    margin = fmax(0.12 * (plot->y_high - plot->y_low), 0.2);
    plot->y_low -= margin;
    plot->y_high += margin;
    if (!(plot->x_high > 0)) plot->x_high = 1;
}

/* The next model of the front behind a price; n_rows: none. */
static size_t next_on_front(const struct drawing *d, double behind) {
    size_t next = d->c->n_rows;
    for (size_t r = 0; r < d->c->n_rows; r++) {
        const double price = price_of(&d->c->rows[r], d->axis);
        if (price <= behind || !tare_comparison_on_front(d->c, d->axis, r)) continue;
        if (next == d->c->n_rows || price < price_of(&d->c->rows[next], d->axis)) next = r;
    }
    return next;
}

/* Steps: what the best model costs for at most so much. It starts at the foot and goes on to the right edge. */
static void draw_front(struct tare_strbuf *out, const struct drawing *d) {
    double price = -1, value = d->plot.y_low;
    for (size_t r; (r = next_on_front(d, price)) < d->c->n_rows;) {
        const double to = price_of(&d->c->rows[r], d->axis), up = tare_comparison_value(&d->measure, &d->c->rows[r]);
        if (price >= 0) tare_plot_line(out, &d->plot, price, value, to, value, "front");
        tare_plot_line(out, &d->plot, to, value, to, up, "front");
        price = to;
        value = up;
    }
    tare_plot_line(out, &d->plot, price, value, d->plot.x_high, value, "front");
}

/* Names of the front, the most accurate first, as far as they do not lie over each other. */
static void draw_names(struct tare_strbuf *out, const struct drawing *d) {
    const double room = 0.07 * (d->plot.y_high - d->plot.y_low);
    double last = INFINITY;
    struct tare_strbuf name = { 0 };
    for (;;) {
        size_t best = d->c->n_rows;
        for (size_t r = 0; r < d->c->n_rows; r++) {
            const double value = tare_comparison_value(&d->measure, &d->c->rows[r]);
            if (value > last - room || !tare_comparison_on_front(d->c, d->axis, r)) continue;
            if (best == d->c->n_rows || value > tare_comparison_value(&d->measure, &d->c->rows[best])) best = r;
        }
        if (best == d->c->n_rows) break;
        last = tare_comparison_value(&d->measure, &d->c->rows[best]);
        name.size = 0;
        tare_comparison_put_name(&name, &d->c->rows[best]);
        tare_plot_label(out, &d->plot, price_of(&d->c->rows[best], d->axis), last, "ink above", "%s",
                        tare_strbuf_text(&name));
    }
    tare_strbuf_free(&name);
}

static void draw(struct tare_strbuf *out, const struct tare_comparison *c, enum tare_comparison_axis axis) {
    struct drawing d = { .c = c, .measure = tare_comparison_measure_of(c), .axis = axis };
    struct tare_strbuf text = { 0 };
    const char *what = axis == TARE_AGAINST_SIZE ? "size of the weights" : "least time of a record";
    frame(&d);
    tare_page_half_begin(out);
    tare_page_element(out, "h3", NULL, "%s against %s", d.measure.title, what);
    tare_strbuf_printf(&text, "%s of %zu models against the %s", d.measure.name, c->n_rows, what);
    tare_plot_begin(out, &d.plot, tare_strbuf_text(&text));
    tare_plot_grid(out, &d.plot);
    draw_front(out, &d);
    for (size_t r = 0; r < c->n_rows; r++) {
        char style[24];
        const double x = price_of(&c->rows[r], axis), y = tare_comparison_value(&d.measure, &c->rows[r]);
        if (tare_comparison_on_front(c, axis, r)) tare_plot_dot(out, &d.plot, x, y, "ring");
        snprintf(style, sizeof style, "c%d", tare_comparison_series(c, r));
        tare_plot_dot(out, &d.plot, x, y, style);
    }
    tare_plot_letters(out);
    tare_plot_ticks(out, &d.plot, axis == TARE_AGAINST_SIZE ? " MB" : " µs", d.measure.unit);
    draw_names(out, &d);
    tare_plot_end(out);
    tare_page_box_end(out);
    tare_strbuf_free(&text);
}

void tare_comparison_draw(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_page_element(out, "h2", NULL, "Accuracy and its price");
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
    tare_page_element(out, "p", "soft small",
                      "Up is more accurate, left is smaller or faster. Ringed models are the ones that no "
                      "other beats in both; the line is the best that is to be had for so much.");
}
