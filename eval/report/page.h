/* Pages of reports: one HTML file each, without scripts, fonts or anything else from outside; light and dark, for a
 * telephone, a wide screen and paper. This header has the frame, text, tables and plots; what they show is the
 * report's.
 *
 * Everything is appended to a text buffer. Texts are escaped here. Nothing fails: memory errors stick to the buffer.
 *
 * Colours are classes: "c0" … "c7" are the series (each with its own dash as a line), "soft" is for what stands back,
 * "front" for the line of the best and "ring" for what lies around its dots. */
#ifndef TARE_EVAL_REPORT_PAGE_H
#define TARE_EVAL_REPORT_PAGE_H

#include "base/status.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum { TARE_PAGE_SERIES = 8 };

/* Head, style, <main> and the title as <h1>. */
void tare_page_begin(struct tare_strbuf *out, const char *title);
void tare_page_end(struct tare_strbuf *out);
/* Text with < > & " ' as entities. */
void tare_page_text(struct tare_strbuf *out, const char *text);
void tare_page_printf(struct tare_strbuf *out, const char *format, ...) TARE_PRINTF(2, 3);
/* An element with escaped text: <h2>…</h2>, <p class="soft">…</p>. `style_class` may be NULL. */
void tare_page_element(struct tare_strbuf *out, const char *element, const char *style_class, const char *format, ...)
    TARE_PRINTF(4, 5);
/* A box that holds a message; kind "warning" or "good". */
void tare_page_note(struct tare_strbuf *out, const char *kind, const char *format, ...) TARE_PRINTF(3, 4);
/* Which two things stand side by side: "first" and "second", each with its name. */
void tare_page_sides(struct tare_strbuf *out, const char *first, const char *second);
/* A small square in the colour of a series, for legends. */
void tare_page_swatch(struct tare_strbuf *out, int series);
/* A short piece of the series' line, dash and all. */
void tare_page_line_swatch(struct tare_strbuf *out, int series);
/* Boxes: a card, and in it two halves side by side where the page is wide enough. Each is ended by tare_page_box_end.
 */
void tare_page_card_begin(struct tare_strbuf *out);
void tare_page_pair_begin(struct tare_strbuf *out);
void tare_page_half_begin(struct tare_strbuf *out);
void tare_page_box_end(struct tare_strbuf *out);

/* Names of series side by side, each behind its swatch. */
void tare_page_legend_begin(struct tare_strbuf *out);
void tare_page_legend_item(struct tare_strbuf *out, int series, const char *format, ...) TARE_PRINTF(3, 4);
void tare_page_legend_end(struct tare_strbuf *out);

/* ---- tables ---- */

/* One column; an array of them ends with a row without heading. */
struct tare_page_column {
    const char *heading;
    const char *help; /* shown when the pointer rests on the heading; may be NULL */
    bool left;        /* text; numbers stand on the right */
    bool wraps;       /* long text may be broken over lines */
};
struct tare_page_table {
    struct tare_strbuf *out;
    const struct tare_page_column *columns;
    size_t next; /* cell of the row */
    bool in_row;
};
/* The table scrolls by itself where the page is too narrow for it. */
void tare_page_table_begin(struct tare_page_table *table, struct tare_strbuf *out,
                           const struct tare_page_column *columns);
void tare_page_table_row(struct tare_page_table *table);
void tare_page_table_cell(struct tare_page_table *table, const char *format, ...) TARE_PRINTF(2, 3);
/* A cell that begins with the swatch, or the line swatch, of a series. */
void tare_page_table_series_cell(struct tare_page_table *table, int series, const char *format, ...) TARE_PRINTF(3, 4);
void tare_page_table_line_cell(struct tare_page_table *table, int series, const char *format, ...) TARE_PRINTF(3, 4);
/* A bar, `share` (0 … 1) of its place long, and text behind it. */
void tare_page_table_bar_cell(struct tare_page_table *table, double share, const char *format, ...) TARE_PRINTF(3, 4);
/* An empty cell: a dash. */
void tare_page_table_skip(struct tare_page_table *table);
void tare_page_table_end(struct tare_page_table *table);

/* ---- plots ---- */

/* A drawing that is as wide as its place and `height` pixels high. Lines and letters keep their size at any width:
 * shapes are SVG that is stretched, letters are set over it. First come the shapes, then tare_plot_letters, then
 * labels. */
struct tare_plot {
    double x_low, x_high, y_low, y_high; /* values at the edges; low < high */
    int height;                          /* pixels */
    bool bare;                           /* no room for letters at the axes (a sparkline) */
};
/* `description` is what who cannot see the drawing is told. */
void tare_plot_begin(struct tare_strbuf *out, const struct tare_plot *plot, const char *description);
/* Lines across at the y ticks. */
void tare_plot_grid(struct tare_strbuf *out, const struct tare_plot *plot);
/* One line across. */
void tare_plot_grid_line(struct tare_strbuf *out, const struct tare_plot *plot, double y);
/* `count` columns of equal width side by side from x_low to x_high, standing on y_low. */
void tare_plot_columns(struct tare_strbuf *out, const struct tare_plot *plot, double x_low, double x_high,
                       const double *heights, size_t count, const char *style_class);
void tare_plot_bar(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double x1, double y0, double y1,
                   const char *style_class);
void tare_plot_line(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double y0, double x1, double y1,
                    const char *style_class);
/* Lines from point to point. */
void tare_plot_path(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *ys,
                    size_t count, const char *style_class);
/* The surface between two lines over the same xs. */
void tare_plot_band(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *lows,
                    const double *highs, size_t count, const char *style_class);
void tare_plot_dot(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, const char *style_class);
/* No shapes after this. */
void tare_plot_letters(struct tare_strbuf *out);
/* Numbers at the axes, each with the unit behind it ("" for none); a NULL unit leaves that axis without numbers. */
void tare_plot_ticks(struct tare_strbuf *out, const struct tare_plot *plot, const char *x_unit, const char *y_unit);
/* One number or name at a place of an axis. */
void tare_plot_x_tick(struct tare_strbuf *out, const struct tare_plot *plot, double x, const char *format, ...)
    TARE_PRINTF(4, 5);
void tare_plot_y_tick(struct tare_strbuf *out, const struct tare_plot *plot, double y, const char *format, ...)
    TARE_PRINTF(4, 5);
/* Letters beside a point: to its right, in the right half of the drawing to its left. */
void tare_plot_label(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, const char *style_class,
                     const char *format, ...) TARE_PRINTF(6, 7);
void tare_plot_end(struct tare_strbuf *out);

/* Round numbers in [low, high], at most `most` (2 or more) of them; gives their count. */
size_t tare_plot_round_numbers(double *numbers, size_t most, double low, double high);

#endif
