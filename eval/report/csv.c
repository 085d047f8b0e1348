/* Cells of CSV files. */
#include "eval/report/csv.h"
#include "eval/metrics.h"

#include <math.h>
#include <string.h>

void tare_csv_text(struct tare_strbuf *out, const char *text) {
    if (!text) return;
    if (!strpbrk(text, ",\"\r\n")) {
        tare_strbuf_puts(out, text);
        return;
    }
    tare_strbuf_putc(out, '"');
    for (; *text; text++) {
        if (*text == '"') tare_strbuf_putc(out, '"');
        tare_strbuf_putc(out, *text);
    }
    tare_strbuf_putc(out, '"');
}

void tare_csv_number(struct tare_strbuf *out, double value) {
    tare_strbuf_putc(out, ',');
    if (!isnan(value)) tare_strbuf_printf(out, "%.9g", value);
}

void tare_csv_share(struct tare_strbuf *out, int64_t part, int64_t whole) {
    tare_strbuf_putc(out, ',');
    if (whole) tare_strbuf_printf(out, "%.6f", tare_metrics_share(part, whole));
}
