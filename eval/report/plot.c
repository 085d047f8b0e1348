/* Plots of pages (eval/report/page.h). The SVG has a thousand units in each direction and is stretched to its box;
 * strokes do not scale. Text and markers are HTML, positioned in percent. */
#include "eval/report/page.h"
#include "base/format.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { UNITS = 1000, MAX_TICKS = 6, TEXT_SIZE = 128 };

/* Position from low (0) to high (1), clamped slightly outside the edges. */
static double part(double value, double low, double high) {
    double share = high > low ? (value - low) / (high - low) : 0.5;
    return share < -0.02 ? -0.02 : share > 1.02 ? 1.02 : share;
}

static double x_of(const struct tare_plot *plot, double x) {
    return UNITS * part(x, plot->x_low, plot->x_high);
}

static double y_of(const struct tare_plot *plot, double y) {
    return UNITS * (1 - part(y, plot->y_low, plot->y_high));
}

void tare_plot_begin(struct tare_strbuf *out, const struct tare_plot *plot, const char *description) {
    tare_strbuf_printf(out,
                       "<figure%s><div class=\"area\" style=\"height:%dpx\"><svg viewBox=\"0 0 %d %d\" "
                       "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                       plot->bare ? " class=\"bare\"" : "", plot->height, UNITS, UNITS);
    tare_page_text(out, description);
    tare_strbuf_puts(out, "\">");
}

void tare_plot_grid_line(struct tare_strbuf *out, const struct tare_plot *plot, double y) {
    tare_strbuf_printf(out, "<path class=\"grid\" d=\"M0 %.1fH%d\"/>", y_of(plot, y), UNITS);
}

void tare_plot_columns(struct tare_strbuf *out, const struct tare_plot *plot, double x_low, double x_high,
                       const double *heights, size_t count) {
    double floor_y = y_of(plot, plot->y_low);
    tare_strbuf_printf(out, "<path class=\"fill bar\" d=\"M%.1f %.1f", x_of(plot, x_low), floor_y);
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(out, "V%.1fH%.1f", y_of(plot, heights[i]),
                           x_of(plot, x_low + (x_high - x_low) * (double)(i + 1) / (double)count));
    tare_strbuf_printf(out, "V%.1fz\"/>", floor_y);
}

void tare_plot_bar(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double x1, double y0, double y1,
                   const char *style_class) {
    tare_strbuf_printf(out, "<path class=\"fill %s\" d=\"M%.1f %.1fH%.1fV%.1fH%.1fz\"/>", style_class, x_of(plot, x0),
                       y_of(plot, y0), x_of(plot, x1), y_of(plot, y1), x_of(plot, x0));
}

void tare_plot_line(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double y0, double x1, double y1,
                    const char *style_class) {
    tare_strbuf_printf(out, "<path class=\"line %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", style_class, x_of(plot, x0),
                       y_of(plot, y0), x_of(plot, x1), y_of(plot, y1));
}

void tare_plot_path(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *ys,
                    size_t count, const char *style_class) {
    tare_strbuf_printf(out, "<path class=\"%s\" d=\"", style_class);
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(plot, xs[i]), y_of(plot, ys[i]));
    tare_strbuf_puts(out, "\"/>");
}

void tare_plot_band(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *lows,
                    const double *highs, size_t count, const char *style_class) {
    tare_strbuf_printf(out, "<path class=\"fill %s\" d=\"", style_class);
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(plot, xs[i]), y_of(plot, highs[i]));
    for (size_t i = count; i-- > 0;)
        tare_strbuf_printf(out, "L%.1f %.1f", x_of(plot, xs[i]), y_of(plot, lows[i]));
    tare_strbuf_puts(out, "z\"/>");
}

size_t tare_plot_round_numbers(double *numbers, size_t most, double low, double high) {
    static const double steps[] = { 1, 2, 2.5, 5, 10 };
    double width = high - low;
    if (!(width > 0) || !isfinite(width) || most < 2) return 0;
    double power = pow(10, floor(log10(width / (double)most)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        double step = steps[i] * power, first = ceil(low / step - 1e-9), last = floor(high / step + 1e-9);
        if (last - first + 1 > (double)most) continue;
        size_t count = 0;
        for (double at = first; at <= last; at += 1)
            numbers[count++] = at == 0 ? 0 : at * step;
        return count;
    }
    return 0;
}

void tare_plot_grid(struct tare_strbuf *out, const struct tare_plot *plot) {
    double ticks[MAX_TICKS];
    size_t count = tare_plot_round_numbers(ticks, MAX_TICKS, plot->y_low, plot->y_high);
    for (size_t i = 0; i < count; i++)
        tare_plot_grid_line(out, plot, ticks[i]);
}

void tare_plot_letters(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</svg>");
}

/* Labels at the ends of the axis stay inside the plot. */
static const char *end_class(double share) {
    return share < 0.03 ? " first" : share > 0.97 ? " last" : "";
}

void tare_plot_x_tick(struct tare_strbuf *out, const struct tare_plot *plot, double x, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    double share = part(x, plot->x_low, plot->x_high);
    tare_strbuf_printf(out, "<span class=\"x%s\" style=\"left:%.2f%%\">", end_class(share), 100 * share);
    tare_page_text(out, text);
    tare_strbuf_puts(out, "</span>");
}

void tare_plot_y_tick(struct tare_strbuf *out, const struct tare_plot *plot, double y, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    tare_strbuf_printf(out, "<span class=\"y\" style=\"top:%.2f%%\">", y_of(plot, y) * 100 / UNITS);
    tare_page_text(out, text);
    tare_strbuf_puts(out, "</span>");
}

void tare_plot_ticks(struct tare_strbuf *out, const struct tare_plot *plot, const char *x_unit, const char *y_unit) {
    double ticks[MAX_TICKS];
    size_t count = x_unit ? tare_plot_round_numbers(ticks, MAX_TICKS, plot->x_low, plot->x_high) : 0;
    for (size_t i = 0; i < count; i++)
        tare_plot_x_tick(out, plot, ticks[i], "%g%s", ticks[i], x_unit);
    count = y_unit ? tare_plot_round_numbers(ticks, MAX_TICKS, plot->y_low, plot->y_high) : 0;
    for (size_t i = 0; i < count; i++)
        tare_plot_y_tick(out, plot, ticks[i], "%g%s", ticks[i], y_unit);
}

void tare_plot_titles(struct tare_strbuf *out, const char *x_title, const char *y_title) {
    if (x_title) {
        tare_strbuf_puts(out, "<span class=\"xt\">");
        tare_page_text(out, x_title);
        tare_strbuf_puts(out, "</span>");
    }
    if (!y_title) return;
    tare_strbuf_puts(out, "<span class=\"yt\">");
    tare_page_text(out, y_title);
    tare_strbuf_puts(out, "</span>");
}

void tare_plot_label(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, const char *style_class,
                     const char *format, ...) {
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    double share = part(x, plot->x_low, plot->x_high);
    tare_strbuf_printf(out, "<span class=\"at%s %s\" style=\"left:%.2f%%;top:%.2f%%\">", share > 0.5 ? " left" : "",
                       style_class, 100 * share, y_of(plot, y) * 100 / UNITS);
    tare_page_text(out, text);
    tare_strbuf_puts(out, "</span>");
}

void tare_plot_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</div></figure>\n");
}
