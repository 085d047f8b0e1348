#include "eval/report/page.h"
#include "page_css.h" /* TARE_PAGE_CSS, generated from page.css */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- text ---- */

void tare_page_text(struct tare_strbuf *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<':
            tare_strbuf_puts(out, "&lt;");
            break;
        case '>':
            tare_strbuf_puts(out, "&gt;");
            break;
        case '&':
            tare_strbuf_puts(out, "&amp;");
            break;
        case '"':
            tare_strbuf_puts(out, "&quot;");
            break;
        case '\'':
            tare_strbuf_puts(out, "&#39;");
            break;
        default:
            tare_strbuf_putc(out, *text);
        }
    }
}

static void print_escaped(struct tare_strbuf *out, const char *format, va_list args) TARE_PRINTF(2, 0);
static void print_escaped(struct tare_strbuf *out, const char *format, va_list args) {
    struct tare_strbuf plain = { 0 };
    char small[256];
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(small, sizeof small, format, args);
    if (size >= 0 && (size_t)size < sizeof small) {
        tare_page_text(out, small);
    } else if (size >= 0) {
        /* Reserves room for the text and its end, then prints into it. */
        for (int i = 0; i <= size; i++)
            tare_strbuf_putc(&plain, ' ');
        if (!plain.failed) {
            vsnprintf(plain.data, (size_t)size + 1, format, again);
            tare_page_text(out, plain.data);
        }
        out->failed = out->failed || plain.failed;
    }
    va_end(again);
    tare_strbuf_free(&plain);
}

#define PRINT_ESCAPED(out, format)                                                                                     \
    do {                                                                                                               \
        va_list args;                                                                                                  \
        va_start(args, format);                                                                                        \
        print_escaped(out, format, args);                                                                              \
        va_end(args);                                                                                                  \
    } while (0)

void tare_page_printf(struct tare_strbuf *out, const char *format, ...) {
    PRINT_ESCAPED(out, format);
}

void tare_page_element(struct tare_strbuf *out, const char *element, const char *style_class, const char *format, ...) {
    tare_strbuf_printf(out, "<%s", element);
    if (style_class) tare_strbuf_printf(out, " class=\"%s\"", style_class);
    tare_strbuf_putc(out, '>');
    PRINT_ESCAPED(out, format);
    tare_strbuf_printf(out, "</%s>\n", element);
}

void tare_page_note(struct tare_strbuf *out, const char *kind, const char *format, ...) {
    tare_strbuf_printf(out, "<p class=\"note %s\">", kind);
    PRINT_ESCAPED(out, format);
    tare_strbuf_puts(out, "</p>\n");
}

void tare_page_sides(struct tare_strbuf *out, const char *first, const char *second) {
    tare_strbuf_puts(out, "<p><span class=\"soft\">first</span> <code>");
    tare_page_text(out, first);
    tare_strbuf_puts(out, "</code><br><span class=\"soft\">second</span> <code>");
    tare_page_text(out, second);
    tare_strbuf_puts(out, "</code></p>\n");
}

void tare_page_swatch(struct tare_strbuf *out, int series) {
    tare_strbuf_printf(out, "<span class=\"swatch c%d\"></span>", series % TARE_PAGE_SERIES);
}

void tare_page_legend_begin(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "<p class=\"legend\">");
}

void tare_page_legend_item(struct tare_strbuf *out, int series, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tare_strbuf_puts(out, "<span class=\"item\">");
    tare_page_swatch(out, series);
    tare_page_text(out, text);
    tare_strbuf_puts(out, "</span> ");
}

void tare_page_legend_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</p>\n");
}

void tare_page_line_swatch(struct tare_strbuf *out, int series) {
    tare_strbuf_printf(out,
                       "<svg class=\"stroke c%d\" viewBox=\"0 0 30 8\" aria-hidden=\"true\"><path class=\"line c%d\" "
                       "d=\"M0 4H30\"/></svg>",
                       series % TARE_PAGE_SERIES, series % TARE_PAGE_SERIES);
}

void tare_page_card_begin(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "<section class=\"card\">\n");
}

void tare_page_pair_begin(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "<section class=\"pair\">\n");
}

void tare_page_half_begin(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "<section>\n");
}

void tare_page_box_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</section>\n");
}

void tare_page_begin(struct tare_strbuf *out, const char *title) {
    tare_strbuf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    tare_page_text(out, title);
    tare_strbuf_printf(out, "</title><style>%s</style></head>\n<body><main>\n", TARE_PAGE_CSS);
    tare_page_element(out, "h1", NULL, "%s", title);
}

void tare_page_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</main></body></html>\n");
}

/* ---- tables ---- */

static void write_classes(struct tare_strbuf *out, const struct tare_page_column *column) {
    if (column->left || column->wraps)
        tare_strbuf_printf(out, " class=\"%s%s%s\"", column->left ? "l" : "", column->left && column->wraps ? " " : "",
                           column->wraps ? "w" : "");
}

void tare_page_table_begin(struct tare_page_table *table, struct tare_strbuf *out,
                           const struct tare_page_column *columns) {
    *table = (struct tare_page_table){ .out = out, .columns = columns };
    tare_strbuf_puts(out, "<div class=\"scroll\"><table><thead><tr>");
    for (const struct tare_page_column *column = columns; column->heading; column++) {
        tare_strbuf_puts(out, "<th");
        write_classes(out, column);
        if (column->help) {
            tare_strbuf_puts(out, " title=\"");
            tare_page_text(out, column->help);
            tare_strbuf_putc(out, '"');
        }
        tare_strbuf_putc(out, '>');
        tare_page_text(out, column->heading);
        tare_strbuf_puts(out, "</th>");
    }
    tare_strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void end_row(struct tare_page_table *table) {
    if (table->in_row) tare_strbuf_puts(table->out, "</tr>\n");
    table->in_row = false;
}

void tare_page_table_row(struct tare_page_table *table) {
    end_row(table);
    tare_strbuf_puts(table->out, "<tr>");
    table->in_row = true;
    table->next = 0;
}

static void begin_cell(struct tare_page_table *table) {
    tare_strbuf_puts(table->out, "<td");
    write_classes(table->out, &table->columns[table->next]);
    tare_strbuf_putc(table->out, '>');
    if (table->columns[table->next + 1].heading) table->next++;
}

/* Allows line breaks after slashes and underscores, as in paths and node names. */
static void put_breakable(struct tare_strbuf *out, const struct tare_strbuf *escaped) {
    for (size_t i = 0; i < escaped->size; i++) {
        tare_strbuf_putc(out, escaped->data[i]);
        if (escaped->data[i] == '/' || (escaped->data[i] == '_' && i > 1 && escaped->data[i - 1] != '_'))
            tare_strbuf_puts(out, "<wbr/>");
    }
    out->failed = out->failed || escaped->failed;
}

void tare_page_table_cell(struct tare_page_table *table, const char *format, ...) {
    struct tare_strbuf text = { 0 };
    const bool wraps = table->columns[table->next].wraps;
    begin_cell(table);
    PRINT_ESCAPED(&text, format);
    if (wraps)
        put_breakable(table->out, &text);
    else
        tare_strbuf_puts(table->out, tare_strbuf_text(&text));
    table->out->failed = table->out->failed || text.failed;
    tare_strbuf_free(&text);
    tare_strbuf_puts(table->out, "</td>");
}

void tare_page_table_series_cell(struct tare_page_table *table, int series, const char *format, ...) {
    begin_cell(table);
    tare_page_swatch(table->out, series);
    PRINT_ESCAPED(table->out, format);
    tare_strbuf_puts(table->out, "</td>");
}

void tare_page_table_line_cell(struct tare_page_table *table, int series, const char *format, ...) {
    begin_cell(table);
    tare_page_line_swatch(table->out, series);
    PRINT_ESCAPED(table->out, format);
    tare_strbuf_puts(table->out, "</td>");
}

void tare_page_table_bar_cell(struct tare_page_table *table, double share, const char *format, ...) {
    const double width = share > 1 ? 1 : share > 0 ? share : 0;
    begin_cell(table);
    tare_strbuf_printf(table->out, "<span class=\"meter\"><i style=\"width:%.1f%%\"></i></span>", 100 * width);
    PRINT_ESCAPED(table->out, format);
    tare_strbuf_puts(table->out, "</td>");
}

void tare_page_table_skip(struct tare_page_table *table) {
    begin_cell(table);
    tare_strbuf_puts(table->out, "–</td>");
}

void tare_page_table_end(struct tare_page_table *table) {
    end_row(table);
    tare_strbuf_puts(table->out, "</tbody></table></div>\n");
}
