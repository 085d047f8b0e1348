/* Cells of CSV files. */
#include "eval/report/csv.h"

#include <math.h>
#include <string.h>

static void put_cell(struct tare_strbuf *out, const char *prefix, const char *text) {
    const bool quoted = strpbrk(text, ",\"\r\n");
    if (quoted) tare_strbuf_putc(out, '"');
    tare_strbuf_puts(out, prefix);
    for (; *text; text++) {
        if (*text == '"') tare_strbuf_putc(out, '"');
        tare_strbuf_putc(out, *text);
    }
    if (quoted) tare_strbuf_putc(out, '"');
}

/* Spreadsheets compute a cell that begins with one of these, quoted or not, unless a quote comes first: names of files
 * and layers are not trusted. */
static bool is_formula(const char *text) {
    return *text && strchr("=+-@\t\r", *text);
}

void tare_csv_text(struct tare_strbuf *out, const char *text) {
    if (text) put_cell(out, is_formula(text) ? "'" : "", text);
}

void tare_csv_number(struct tare_strbuf *out, double value) {
    tare_strbuf_putc(out, ',');
    if (!isnan(value)) tare_strbuf_printf(out, "%.9g", value);
}
