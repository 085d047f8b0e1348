/* Report pages: one HTML file each, without external references; light and dark, for a phone, a wide screen and paper.
 * The style is page.css; page.js sorts and filters tables, and pages are complete without it. This header has the
 * frame, text, tables and plots; the reports decide what they show.
 *
 * Everything is appended to a text buffer, and texts are escaped here. Functions do not fail: allocation errors set the
 * buffer's `failed`.
 *
 * Colours are classes: "c0" … "c7" are the series (each with its own dash and marker), "soft" is secondary text,
 * "front" the line of Pareto-optimal models and "ring" the ring around their markers. */
#ifndef TARE_EVAL_REPORT_PAGE_H
#define TARE_EVAL_REPORT_PAGE_H

#include "base/status.h"
#include "base/strbuf.h"
#include "base/warnings.h"

#include <stdbool.h>
#include <stddef.h>

enum { TARE_PAGE_SERIES = 8 };

/* Head, style, <main> and the title as <h1>: what the page is, "Comparison of", and of what (NULL: nothing). */
void tare_page_begin(struct tare_strbuf *out, const char *what, const char *name);
/* Ends the page. Pages with three or more headings get a list of contents after the title. */
void tare_page_end(struct tare_strbuf *out);
/* A section heading, <h2>, listed in the contents. */
void tare_page_heading(struct tare_strbuf *out, const char *format, ...) TARE_PRINTF(2, 3);
/* The text as an id: letters and digits, other bytes as '-'. For id="" and href="#". */
void tare_page_id(struct tare_strbuf *out, const char *text);
/* Text with < > & " ' as entities. */
void tare_page_text(struct tare_strbuf *out, const char *text);
void tare_page_printf(struct tare_strbuf *out, const char *format, ...) TARE_PRINTF(2, 3);
/* The text of a path or the name of a node, which may be broken after slashes and underscores. */
void tare_page_name(struct tare_strbuf *out, const char *name);
/* An element with escaped text: <h2>…</h2>, <p class="soft">…</p>. `style_class` may be NULL. */
void tare_page_element(struct tare_strbuf *out, const char *element, const char *style_class, const char *format, ...)
    TARE_PRINTF(4, 5);
/* A box with a message; kind "warning" or "good". */
void tare_page_note(struct tare_strbuf *out, const char *kind, const char *format, ...) TARE_PRINTF(3, 4);
/* A box for each warning. */
void tare_page_warnings(struct tare_strbuf *out, const struct tare_warnings *warnings);
/* A command to type, after a few words (may be empty); page.js adds a button that copies it. */
void tare_page_command(struct tare_strbuf *out, const char *words, const char *command);
/* The names of the two compared things, labelled "first" and "second". */
void tare_page_sides(struct tare_strbuf *out, const char *first, const char *second);
/* A card that shows its title alone until it is opened, as it is with `open`; `id` as by tare_page_id. */
void tare_page_folded_begin(struct tare_strbuf *out, const char *id, const char *title, bool open);
void tare_page_folded_end(struct tare_strbuf *out);
/* A pair of halves next to each other on wide pages; each of the three ends with tare_page_box_end. */
void tare_page_pair_begin(struct tare_strbuf *out);
void tare_page_half_begin(struct tare_strbuf *out);
void tare_page_box_end(struct tare_strbuf *out);

/* A line with the names of series, each after its marker. */
void tare_page_legend_begin(struct tare_strbuf *out);
void tare_page_legend_item(struct tare_strbuf *out, int series, const char *format, ...) TARE_PRINTF(3, 4);
void tare_page_legend_end(struct tare_strbuf *out);

/* ---- tables ---- */

/* One column; an array ends with a row without heading. */
struct tare_page_column {
    const char *heading;
    const char *help; /* tooltip of the heading; may be NULL */
    bool left;        /* left-aligned text; numbers are right-aligned */
    bool wraps;       /* long text may wrap */
};
struct tare_page_table {
    struct tare_strbuf *out;
    const struct tare_page_column *columns;
    size_t next; /* next cell of the row */
    bool in_row, first;
    const char *cell; /* element of the cell: td, th */
};
/* A table scrolls horizontally when the page is too narrow. */
void tare_page_table_begin(struct tare_page_table *table, struct tare_strbuf *out,
                           const struct tare_page_column *columns);
void tare_page_table_row(struct tare_page_table *table);
void tare_page_table_cell(struct tare_page_table *table, const char *format, ...) TARE_PRINTF(2, 3);
/* A cell that begins with the marker, or with the line, of a series. */
void tare_page_table_series_cell(struct tare_page_table *table, int series, const char *format, ...) TARE_PRINTF(3, 4);
void tare_page_table_line_cell(struct tare_page_table *table, int series, const char *format, ...) TARE_PRINTF(3, 4);
/* A bar of `share` of the full length, followed by text. More than 1 is a full bar marked as beyond the end. */
void tare_page_table_bar_cell(struct tare_page_table *table, double share, const char *format, ...) TARE_PRINTF(3, 4);
/* A cell with a command, as tare_page_command. */
void tare_page_table_command_cell(struct tare_page_table *table, const char *command);
/* A cell with a PNG in base64, `width` and `height` pixels large; small ones are enlarged. */
void tare_page_table_picture_cell(struct tare_page_table *table, const char *base64, int width, int height);
/* A cell with a link to an element of the page, by the text of its id. */
void tare_page_table_link_cell(struct tare_page_table *table, const char *id, const char *format, ...)
    TARE_PRINTF(3, 4);
/* The same to a file, by its path relative to the page. */
void tare_page_table_file_cell(struct tare_page_table *table, const char *path, const char *format, ...)
    TARE_PRINTF(3, 4);
/* An empty cell, printed as a dash. */
void tare_page_table_skip(struct tare_page_table *table);
void tare_page_table_end(struct tare_page_table *table);

/* ---- plots ---- */

/* A plot that fills the width of the page and is `height` pixels high. Line widths and text keep their size at any
 * width: shapes are stretched SVG, text and markers are HTML over it. Call the shape functions first, then
 * tare_plot_letters, then those for text and markers. */
struct tare_plot {
    double x_low, x_high, y_low, y_high; /* values at the edges; low < high */
    int height;                          /* pixels */
    bool bare;                           /* without axis labels (a sparkline) */
};
/* `description`: text for screen readers. */
void tare_plot_begin(struct tare_strbuf *out, const struct tare_plot *plot, const char *description);
/* Horizontal lines at the y ticks. */
void tare_plot_grid(struct tare_strbuf *out, const struct tare_plot *plot);
/* One horizontal line. */
void tare_plot_grid_line(struct tare_strbuf *out, const struct tare_plot *plot, double y);
/* `count` columns of equal width from x_low to x_high, based on y_low. */
void tare_plot_columns(struct tare_strbuf *out, const struct tare_plot *plot, double x_low, double x_high,
                       const double *heights, size_t count);
void tare_plot_bar(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double x1, double y0, double y1,
                   const char *style_class);
void tare_plot_line(struct tare_strbuf *out, const struct tare_plot *plot, double x0, double y0, double x1, double y1,
                    const char *style_class);
/* Straight lines from point to point. */
void tare_plot_path(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *ys,
                    size_t count, const char *style_class);
/* The area between two lines over the same xs. */
void tare_plot_band(struct tare_strbuf *out, const struct tare_plot *plot, const double *xs, const double *lows,
                    const double *highs, size_t count, const char *style_class);
/* Ends the shapes. */
void tare_plot_letters(struct tare_strbuf *out);
/* Numbers at the axes, each followed by the unit ("" for none); a NULL unit omits that axis. */
void tare_plot_ticks(struct tare_strbuf *out, const struct tare_plot *plot, const char *x_unit, const char *y_unit);
/* One number or name at a position of an axis. */
void tare_plot_x_tick(struct tare_strbuf *out, const struct tare_plot *plot, double x, const char *format, ...)
    TARE_PRINTF(4, 5);
void tare_plot_y_tick(struct tare_strbuf *out, const struct tare_plot *plot, double y, const char *format, ...)
    TARE_PRINTF(4, 5);
/* Titles of the axes; NULL: none. */
void tare_plot_titles(struct tare_strbuf *out, const char *x_title, const char *y_title);
/* The marker of a series at a point, ringed or not, with a tooltip for pointer and keyboard. */
void tare_plot_marker(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, int series, bool ring,
                      const char *tooltip);
/* Text next to a point: to its right; in the right half of the plot, to its left. */
void tare_plot_label(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, const char *style_class,
                     const char *format, ...) TARE_PRINTF(6, 7);
void tare_plot_end(struct tare_strbuf *out);

/* Round numbers in [low, high], at most `most` (2 or more); returns their count. */
size_t tare_plot_round_numbers(double *numbers, size_t most, double low, double high);

#endif
