/* Escapes texts and prints the elements of a page. */
#include "eval/report/page.h"
#include "base/ascii.h"
#include "base/format.h"
#include "page_css.h" /* TARE_PAGE_CSS, generated from page.css */
#include "page_js.h"  /* TARE_PAGE_JS, from page.js */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where the contents go, and how headings begin. Text is escaped, so neither occurs in it. */
#define CONTENTS "<!--contents-->\n"
#define HEADING "<h2 id=\""

/* ---- text ---- */

static void put_character(struct tare_strbuf *out, char c) {
    switch (c) {
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
        tare_strbuf_putc(out, c);
    }
}

void tare_page_text(struct tare_strbuf *out, const char *text) {
    for (; *text; text++)
        put_character(out, *text);
}

/* Text in which no line breaks within "--option" or before "%". */
static void put_words(struct tare_strbuf *out, const char *text) {
    bool option = false;
    for (const char *at = text; *at || option; at++) {
        if (option && (*at == ' ' || !*at)) {
            tare_strbuf_puts(out, "</span>");
            option = false;
        }
        if (!*at) return;
        if ((at == text || at[-1] == ' ') && at[0] == '-' && at[1] == '-' && at[2]) {
            tare_strbuf_puts(out, "<span class=\"option\">");
            option = true;
        }
        if (at[0] == ' ' && at[1] == '%' && at > text && at[-1] >= '0' && at[-1] <= '9')
            tare_strbuf_puts(out, "&nbsp;");
        else
            put_character(out, *at);
    }
}

static void print_escaped(struct tare_strbuf *out, void (*put)(struct tare_strbuf *, const char *), const char *format,
                          va_list args) TARE_PRINTF(3, 0);
static void print_escaped(struct tare_strbuf *out, void (*put)(struct tare_strbuf *, const char *), const char *format,
                          va_list args) {
    struct tare_strbuf plain = { 0 };
    char small[256];
    va_list again;
    va_copy(again, args);
    int size = tare_format_va(small, sizeof small, format, args);
    if (size >= 0 && (size_t)size < sizeof small) {
        put(out, small);
    } else if (size >= 0) {
        /* Reserves room for the text and its end, then prints into it. */
        for (int i = 0; i <= size; i++)
            tare_strbuf_putc(&plain, ' ');
        if (!plain.failed) {
            tare_format_va(plain.data, (size_t)size + 1, format, again);
            put(out, plain.data);
        }
        out->failed = out->failed || plain.failed;
    }
    va_end(again);
    tare_strbuf_free(&plain);
}

#define PRINT_ESCAPED(out, put, format)                                                                                \
    do {                                                                                                               \
        va_list args;                                                                                                  \
        va_start(args, format);                                                                                        \
        print_escaped(out, put, format, args);                                                                         \
        va_end(args);                                                                                                  \
    } while (0)

void tare_page_printf(struct tare_strbuf *out, const char *format, ...) {
    PRINT_ESCAPED(out, tare_page_text, format);
}

void tare_page_element(struct tare_strbuf *out, const char *element, const char *style_class, const char *format, ...) {
    tare_strbuf_printf(out, "<%s", element);
    if (style_class) tare_strbuf_printf(out, " class=\"%s\"", style_class);
    tare_strbuf_putc(out, '>');
    PRINT_ESCAPED(out, put_words, format);
    tare_strbuf_printf(out, "</%s>\n", element);
}

void tare_page_note(struct tare_strbuf *out, const char *kind, const char *format, ...) {
    tare_strbuf_printf(out, "<p class=\"note %s\">", kind);
    PRINT_ESCAPED(out, put_words, format);
    tare_strbuf_puts(out, "</p>\n");
}

void tare_page_warnings(struct tare_strbuf *out, const struct tare_warnings *warnings) {
    if (!warnings->count) return;
    tare_strbuf_puts(out, "<section id=\"warnings\">\n");
    for (size_t i = 0; i < warnings->count; i++)
        tare_page_note(out, "warning", "%s", warnings->texts[i]);
    tare_page_box_end(out);
}

static void put_command(struct tare_strbuf *out, const char *command) {
    tare_strbuf_puts(out, "<code class=\"command\">");
    put_words(out, command);
    tare_strbuf_puts(out, "</code>");
}

void tare_page_command(struct tare_strbuf *out, const char *words, const char *command) {
    tare_strbuf_puts(out, "<p>");
    tare_page_text(out, words);
    put_command(out, command);
    tare_strbuf_puts(out, "</p>\n");
}

void tare_page_sides(struct tare_strbuf *out, const char *first, const char *second) {
    tare_strbuf_puts(out, "<p><span class=\"soft\">first</span> <code>");
    tare_page_text(out, first);
    tare_strbuf_puts(out, "</code><br><span class=\"soft\">second</span> <code>");
    tare_page_text(out, second);
    tare_strbuf_puts(out, "</code></p>\n");
}

/* Shapes that differ without colour: circle, square, triangle, diamond, triangle down, plus, cross, hexagon. */
static const char *const shapes[TARE_PAGE_SERIES] = {
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4H4V4H-4z",
    "M0-5L5 4H-5z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5L-5-4H5z",
    "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7z",
    "M0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0L-5-2.6L-2.6-5z",
    "M-5 0L-2.5-4.4H2.5L5 0L2.5 4.4H-2.5z",
};

static void put_marker(struct tare_strbuf *out, int series, bool ring) {
    tare_strbuf_printf(out,
                       "<svg class=\"mark c%d\" viewBox=\"-8 -8 16 16\" aria-hidden=\"true\">%s<path d=\"%s\"/></svg>",
                       series % TARE_PAGE_SERIES, ring ? "<circle r=\"7\"/>" : "", shapes[series % TARE_PAGE_SERIES]);
}

/* The marker of a series in its colour, for legends. */
static void page_swatch(struct tare_strbuf *out, int series) {
    put_marker(out, series, false);
}

void tare_plot_marker(struct tare_strbuf *out, const struct tare_plot *plot, double x, double y, int series, bool ring,
                      const char *tooltip) {
    const double left = 100 * (x - plot->x_low) / (plot->x_high - plot->x_low);
    const double top = 100 * (1 - (y - plot->y_low) / (plot->y_high - plot->y_low));
    tare_strbuf_printf(
        out, "<span class=\"point%s\" style=\"left:%.2f%%;top:%.2f%%\" tabindex=\"0\" role=\"img\" aria-label=\"",
        left > 50 ? " left" : "", left, top);
    tare_page_text(out, tooltip);
    tare_strbuf_puts(out, "\">");
    put_marker(out, series, ring);
    tare_strbuf_puts(out, "<span class=\"tip\">");
    tare_page_text(out, tooltip);
    tare_strbuf_puts(out, "</span></span>");
}

void tare_page_legend_begin(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "<p class=\"legend\">");
}

void tare_page_legend_item(struct tare_strbuf *out, int series, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    tare_strbuf_puts(out, "<span class=\"item\">");
    page_swatch(out, series);
    tare_page_text(out, text);
    tare_strbuf_puts(out, "</span> ");
}

void tare_page_legend_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</p>\n");
}

/* A short piece of the series' line with its dash. */
static void page_line_swatch(struct tare_strbuf *out, int series) {
    tare_strbuf_printf(out,
                       "<svg class=\"stroke c%d\" viewBox=\"0 0 30 8\" aria-hidden=\"true\"><path class=\"line c%d\" "
                       "d=\"M0 4H30\"/></svg>",
                       series % TARE_PAGE_SERIES, series % TARE_PAGE_SERIES);
}

void tare_page_folded_begin(struct tare_strbuf *out, const char *id, const char *title, bool open) {
    tare_strbuf_puts(out, "<details class=\"card\" id=\"");
    tare_page_id(out, id);
    tare_strbuf_puts(out, open ? "\" open><summary>" : "\"><summary>");
    tare_page_text(out, title);
    tare_strbuf_puts(out, "</summary>\n");
}

void tare_page_folded_end(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "</details>\n");
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

void tare_page_begin(struct tare_strbuf *out, const char *what, const char *name) {
    tare_strbuf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    tare_page_text(out, what);
    tare_page_text(out, name ? " " : "");
    tare_page_text(out, name ? name : "");
    tare_strbuf_printf(out, "</title><style>%s</style></head>\n<body><main>\n", TARE_PAGE_CSS);
    tare_page_element(out, "h1", NULL, "%s%s%s", what, name ? " " : "", name ? name : "");
    tare_strbuf_puts(out, CONTENTS);
}

void tare_page_id(struct tare_strbuf *out, const char *text) {
    for (; *text; text++)
        tare_strbuf_putc(out, tare_is_letter_or_digit(*text) ? *text : '-');
}

void tare_page_heading(struct tare_strbuf *out, const char *format, ...) {
    struct tare_strbuf text = { 0 };
    PRINT_ESCAPED(&text, tare_page_text, format);
    tare_strbuf_puts(out, HEADING);
    tare_page_id(out, tare_strbuf_text(&text));
    tare_strbuf_printf(out, "\">%s</h2>\n", tare_strbuf_text(&text));
    out->failed = out->failed || text.failed;
    tare_strbuf_free(&text);
}

/* One link per heading of the page. */
static void put_contents(struct tare_strbuf *out, const char *page) {
    tare_strbuf_puts(out, "<nav aria-label=\"Contents\"><ul>");
    for (const char *at = page; (at = strstr(at, HEADING));) {
        const char *id = at + sizeof HEADING - 1, *text = strchr(id, '>') + 1, *end = strstr(text, "</h2>");
        tare_strbuf_puts(out, "<li><a href=\"#");
        tare_strbuf_append(out, id, (size_t)(text - 2 - id));
        tare_strbuf_puts(out, "\">");
        tare_strbuf_append(out, text, (size_t)(end - text));
        tare_strbuf_puts(out, "</a></li>");
        at = end;
    }
    tare_strbuf_puts(out, "</ul></nav>\n");
}

static size_t count_headings(const char *page) {
    size_t count = 0;
    while ((page = strstr(page, HEADING))) {
        count++;
        page++;
    }
    return count;
}

/* Replaces the placeholder of the contents, which is only known now. */
static void fill_contents(struct tare_strbuf *out) {
    struct tare_strbuf filled = { 0 };
    const char *page = tare_strbuf_text(out), *place = strstr(page, CONTENTS);
    if (out->failed || !place) return;
    tare_strbuf_append(&filled, page, (size_t)(place - page));
    if (count_headings(place) > 2) put_contents(&filled, place);
    tare_strbuf_puts(&filled, place + sizeof CONTENTS - 1);
    tare_strbuf_free(out);
    *out = filled;
}

void tare_page_end(struct tare_strbuf *out) {
    fill_contents(out);
    tare_strbuf_printf(out, "<script>%s</script></main></body></html>\n", TARE_PAGE_JS);
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
    tare_strbuf_puts(out, "<div class=\"scroll\"><table class=\"data\"><thead><tr>");
    for (const struct tare_page_column *column = columns; column->heading; column++) {
        tare_strbuf_puts(out, "<th scope=\"col\"");
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
    table->in_row = table->first = true;
    table->next = 0;
}

/* The first cell of a row is its heading when it is text. */
static void begin_cell(struct tare_page_table *table) {
    const bool heads = table->first && table->columns[table->next].left;
    table->cell = heads ? "th" : "td";
    tare_strbuf_printf(table->out, "<%s%s", table->cell, heads ? " scope=\"row\"" : "");
    write_classes(table->out, &table->columns[table->next]);
    tare_strbuf_putc(table->out, '>');
    table->first = false;
    if (table->columns[table->next + 1].heading) table->next++;
}

static void end_cell(struct tare_page_table *table) {
    tare_strbuf_printf(table->out, "</%s>", table->cell);
}

static void put_breakable(struct tare_strbuf *out, const struct tare_strbuf *escaped) {
    for (size_t i = 0; i < escaped->size; i++) {
        tare_strbuf_putc(out, escaped->data[i]);
        if (escaped->data[i] == '/' || (escaped->data[i] == '_' && i > 1 && escaped->data[i - 1] != '_'))
            tare_strbuf_puts(out, "<wbr/>");
    }
    out->failed = out->failed || escaped->failed;
}

void tare_page_name(struct tare_strbuf *out, const char *name) {
    struct tare_strbuf escaped = { 0 };
    tare_page_text(&escaped, name);
    put_breakable(out, &escaped);
    tare_strbuf_free(&escaped);
}

void tare_page_table_cell(struct tare_page_table *table, const char *format, ...) {
    struct tare_strbuf text = { 0 };
    const bool wraps = table->columns[table->next].wraps;
    begin_cell(table);
    PRINT_ESCAPED(&text, tare_page_text, format);
    if (wraps)
        put_breakable(table->out, &text);
    else
        tare_strbuf_puts(table->out, tare_strbuf_text(&text));
    table->out->failed = table->out->failed || text.failed;
    tare_strbuf_free(&text);
    end_cell(table);
}

void tare_page_table_command_cell(struct tare_page_table *table, const char *command) {
    begin_cell(table);
    put_command(table->out, command);
    end_cell(table);
}

void tare_page_table_picture_cell(struct tare_page_table *table, const char *base64, int width, int height) {
    enum { SHOWN = 64 };
    const int longest = width > height ? width : height, scale = longest ? SHOWN / longest : 1;
    begin_cell(table);
    tare_strbuf_printf(table->out,
                       "<img class=\"input\" alt=\"input\" width=\"%d\" height=\"%d\" "
                       "src=\"data:image/png;base64,%s\">",
                       width * (scale ? scale : 1), height * (scale ? scale : 1), base64);
    end_cell(table);
}

void tare_page_table_series_cell(struct tare_page_table *table, int series, const char *format, ...) {
    begin_cell(table);
    page_swatch(table->out, series);
    PRINT_ESCAPED(table->out, tare_page_text, format);
    end_cell(table);
}

void tare_page_table_line_cell(struct tare_page_table *table, int series, const char *format, ...) {
    begin_cell(table);
    page_line_swatch(table->out, series);
    PRINT_ESCAPED(table->out, tare_page_text, format);
    end_cell(table);
}

void tare_page_table_bar_cell(struct tare_page_table *table, double share, const char *format, ...) {
    const double width = share > 1 ? 1 : share > 0 ? share : 0;
    begin_cell(table);
    tare_strbuf_printf(table->out, "<span class=\"meter%s\"><i style=\"width:%.1f%%\"></i></span>",
                       share > 1 ? " over" : "", 100 * width);
    PRINT_ESCAPED(table->out, tare_page_text, format);
    end_cell(table);
}

/* Frees the text. */
static void end_link(struct tare_page_table *table, struct tare_strbuf *text) {
    put_breakable(table->out, text);
    tare_strbuf_free(text);
    tare_strbuf_puts(table->out, "</a>");
    end_cell(table);
}

void tare_page_table_link_cell(struct tare_page_table *table, const char *id, const char *format, ...) {
    struct tare_strbuf text = { 0 };
    begin_cell(table);
    tare_strbuf_puts(table->out, "<a href=\"#");
    tare_page_id(table->out, id);
    tare_strbuf_puts(table->out, "\">");
    PRINT_ESCAPED(&text, tare_page_text, format);
    end_link(table, &text);
}

/* A relative reference: bytes that have a meaning in one are escaped. */
static void put_reference(struct tare_strbuf *out, const char *path) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (; *path; path++) {
        if (strchr(plain, *path))
            tare_strbuf_putc(out, *path);
        else
            tare_strbuf_printf(out, "%%%02X", (unsigned char)*path);
    }
}

void tare_page_table_file_cell(struct tare_page_table *table, const char *path, const char *format, ...) {
    struct tare_strbuf text = { 0 };
    begin_cell(table);
    tare_strbuf_puts(table->out, "<a href=\"");
    put_reference(table->out, path);
    tare_strbuf_puts(table->out, "\">");
    PRINT_ESCAPED(&text, tare_page_text, format);
    end_link(table, &text);
}

void tare_page_table_skip(struct tare_page_table *table) {
    begin_cell(table);
    tare_strbuf_puts(table->out, "–");
    end_cell(table);
}

void tare_page_table_end(struct tare_page_table *table) {
    end_row(table);
    tare_strbuf_puts(table->out, "</tbody></table></div>\n");
}
