#include "eval/report/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define LIGHT                                                                                                          \
    "--ink:#18202c;--soft:#59636f;--line:#dde2e8;--paper:#fff;--card:#f6f7f9;--bar:#9aa8ba;--warn:#8a5300;"            \
    "--warnbg:#fff6e3;--good:#17663f;--goodbg:#e9f6ee;--c0:#1f6fc4;--c1:#c9571a;--c2:#1c8a5a;--c3:#8b47c2;"            \
    "--c4:#c22f4e;--c5:#7a6a10;--c6:#0f8291;--c7:#5d5f66"
#define DARK                                                                                                           \
    "--ink:#e8ecf2;--soft:#9ea9b7;--line:#303947;--paper:#11151c;--card:#191f29;--bar:#5f6e83;--warn:#ffc46b;"         \
    "--warnbg:#33270f;--good:#7bd6a3;--goodbg:#12291d;--c0:#6cb0ff;--c1:#ff9a5c;--c2:#55cf96;--c3:#c795f5;"            \
    "--c4:#ff7f98;--c5:#d8c25a;--c6:#52cddd;--c7:#b4b7be"

static const char STYLE[] =
    ":root{color-scheme:light dark;" LIGHT "}"
    "@media screen and (prefers-color-scheme:dark){:root{" DARK "}}"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Helvetica Neue\",sans-serif}"
    "main{max-width:1400px;margin:0 auto;padding:clamp(16px,4vw,40px) clamp(14px,3vw,32px) 64px}"
    "h1{font-size:clamp(22px,3.2vw,30px);line-height:1.2;margin:0 0 8px;overflow-wrap:anywhere}"
    "h2{font-size:20px;line-height:1.3;margin:40px 0 10px}h3{font-size:16px;margin:0 0 2px;overflow-wrap:anywhere}"
    "p{margin:0 0 10px;max-width:80ch;overflow-wrap:anywhere}.soft{color:var(--soft)}"
    ".small{font-size:14px}code{font:0.92em "
    "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}"
    "a{color:var(--c0)}"
    ".scroll{overflow-x:auto;margin:0 0 12px;border:1px solid var(--line);border-radius:8px}"
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--line);vertical-align:top}"
    "thead th{border-top:0;background:var(--card);color:var(--soft);font-weight:600}"
    ".l{text-align:left}.w{white-space:normal;overflow-wrap:anywhere;min-width:12em}thead "
    "th:empty{padding:0}th[title]{cursor:help}"
    ".note{margin:0 0 8px;padding:8px 12px;border-radius:8px;border-left:4px solid;max-width:none;font-size:15px}"
    ".warning{background:var(--warnbg);border-color:var(--warn)}.good{background:var(--goodbg);border-color:var(--good)"
    "}"
    ".card{background:var(--card);border-radius:10px;padding:14px 16px;margin:0 0 16px}"
    ".card .scroll{background:var(--paper)}"
    "@media(min-width:900px){.pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:24px}}"
    ".stroke{width:30px;height:8px;margin-right:.6em;vertical-align:middle}"
    ".legend{font-size:14px;max-width:none}.legend span.item{display:inline-block;margin-right:1.4em}"
    ".swatch{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.5em;background:currentColor}"
    "figure{margin:8px 0 4px;padding:12px 0 24px 54px}figure.bare{padding:0}"
    ".area{position:relative}.area svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}"
    ".area span{position:absolute;font-size:12px;line-height:1;white-space:nowrap;color:var(--soft);"
    "font-variant-numeric:tabular-nums}"
    ".area .x{top:100%;margin-top:7px;transform:translateX(-50%)}.area .x.first{transform:none}"
    ".area .x.last{transform:translateX(-100%)}"
    ".area .y{right:100%;margin-right:8px;transform:translateY(-50%)}"
    ".area .at{transform:translate(9px,-50%)}.area .at.left{transform:translate(calc(-100% - 9px),-50%)}"
    ".area .above{transform:translate(4px,calc(-100% - 10px))}.area .above.left{transform:translate(calc(-100% - "
    "4px),calc(-100% - 10px))}"
    ".area .at{text-shadow:0 0 3px var(--paper),0 0 3px var(--paper),0 0 2px var(--paper)}.area .ink{color:var(--ink)}"
    "path{fill:none;stroke:currentColor;stroke-width:1.75;vector-effect:non-scaling-stroke;stroke-linejoin:round}"
    "path.dot{stroke-width:10;stroke-linecap:round}path.grid{stroke:var(--line);stroke-width:1}"
    "path.front{stroke:var(--soft);stroke-width:1.5;opacity:.6}path.dot.ring{stroke:var(--ink);stroke-width:15}"
    ".meter{display:inline-block;width:7em;height:.6em;border-radius:3px;background:var(--line);margin-right:.7em;"
    "overflow:hidden}"
    ".meter i{display:block;height:100%;background:var(--bar)}"
    "path.fill{stroke:none;fill:currentColor}path.thin{stroke-width:1}.pale{opacity:.25}"
    ".bar{color:var(--bar)}"
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}"
    ".c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}"
    ".area span.c0{color:var(--c0)}.area span.c1{color:var(--c1)}.area span.c2{color:var(--c2)}"
    ".area span.c3{color:var(--c3)}.area span.c4{color:var(--c4)}.area span.c5{color:var(--c5)}"
    ".area span.c6{color:var(--c6)}.area span.c7{color:var(--c7)}"
    "path.line.c1{stroke-dasharray:7 3}path.line.c2{stroke-dasharray:2 3}path.line.c3{stroke-dasharray:9 3 2 3}"
    "path.line.c4{stroke-dasharray:4 4}path.line.c5{stroke-dasharray:12 4}path.line.c6{stroke-dasharray:5 2 1 2}"
    "path.line.c7{stroke-dasharray:1 5}"
    "@media(max-width:520px){th,td{padding:5px 8px}table{font-size:13px}.card{padding:12px "
    "10px}figure{padding-left:44px}"
    ".w{min-width:9em}.meter{width:4em}}"
    /* A browser shrinks the whole page when one table does not fit on paper: headings and names in the first column are
       broken there. Drawings stand side by side and small enough for two or three cards a page. */
    "@media print{@page{margin:14mm 12mm}body{font-size:10pt}main{max-width:none;padding:0}h1{font-size:18pt}"
    "h2{font-size:13pt;margin:18pt 0 6pt}.note{font-size:10pt}.scroll{overflow:visible;border:0;border-radius:0}"
    "table{font-size:7.5pt}th,td{padding:2.5px "
    "3px}th,.l{white-space:normal}.l{min-width:7em}td:has(.meter),td:has(.swatch):not(:first-child){white-space:nowrap}"
    ".l:first-child{overflow-wrap:anywhere;min-width:11em}.meter{width:2.5em;margin-right:.4em}"
    ".pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:14px}.card{zoom:.8}.card "
    "table{font-size:9pt}"
    "tr,.card,figure,.note{break-inside:avoid}h2,h3,h2+p,.legend{break-after:avoid}p{orphans:3;widows:3}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";

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
        /* Room for the text and its end, then the text over it. */
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
    if (style_class != NULL) tare_strbuf_printf(out, " class=\"%s\"", style_class);
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
    tare_strbuf_printf(out, "</title><style>%s</style></head>\n<body><main>\n", STYLE);
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
    for (const struct tare_page_column *column = columns; column->heading != NULL; column++) {
        tare_strbuf_puts(out, "<th");
        write_classes(out, column);
        if (column->help != NULL) {
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
    if (table->columns[table->next + 1].heading != NULL) table->next++;
}

/* Long text may be broken behind a slash or an underline, as paths and the names of nodes are read. */
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
