/* The comparison as one HTML page: no scripts, no fonts, nothing from outside; light and dark; prints well. */
#include "base/strbuf.h"
#include "eval/comparison.h"

#include <math.h>
#include <string.h>

static const char STYLE[] =
    ":root{--ink:#1d2433;--soft:#5b6577;--line:#d9dee7;--paper:#ffffff;--card:#f6f8fb;--a:#2f6fed;--b:#e0662f}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7ebf3;--soft:#9aa5b8;--line:#2f3848;--paper:#12161f;--card:#1a202c;"
    "--a:#7aa5ff;--b:#ff9a63}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:1040px;margin:0 auto;padding:32px 20px}h1{font-size:26px;margin:0 0 4px;overflow-wrap:anywhere}"
    "h2{font-size:19px;margin:32px 0 8px}p{margin:0 0 8px;color:var(--soft);overflow-wrap:anywhere}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}"
    "th,td{padding:7px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}"
    "th{color:var(--soft);font-weight:600}th:nth-child(-n+3),td:nth-child(-n+3){text-align:left}"
    "svg{width:100%;height:auto;background:var(--card);border-radius:10px}text{fill:var(--ink);font:13px system-ui,sans-serif}"
    ".soft{fill:var(--soft)}.axis{stroke:var(--line)}.f{fill:var(--a)}.q{fill:var(--b)}"
    "@media print{body{background:#fff;color:#000}.scroll{overflow:visible}}";

static void escape(struct tare_strbuf *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': tare_strbuf_puts(out, "&lt;"); break;
        case '>': tare_strbuf_puts(out, "&gt;"); break;
        case '&': tare_strbuf_puts(out, "&amp;"); break;
        case '"': tare_strbuf_puts(out, "&quot;"); break;
        default: tare_strbuf_putc(out, *text);
        }
    }
}

static void cell(struct tare_strbuf *out, const char *text) {
    tare_strbuf_puts(out, "<td>");
    escape(out, text ? text : "–");
    tare_strbuf_puts(out, "</td>");
}

static void percent_cell(struct tare_strbuf *out, int64_t part, int64_t whole) {
    if (whole)
        tare_strbuf_printf(out, "<td>%.2f&nbsp;%%</td>", 100.0 * (double)part / (double)whole);
    else
        tare_strbuf_puts(out, "<td>–</td>");
}

static void table_row(struct tare_strbuf *out, const struct tare_comparison_row *row, const struct tare_metrics *m) {
    double sqnr = tare_metrics_sqnr_db(m);
    tare_strbuf_puts(out, "<tr>");
    cell(out, row->method);
    cell(out, row->algorithm);
    cell(out, row->granularity);
    percent_cell(out, m->top1, m->labelled);
    percent_cell(out, m->top5, m->labelled);
    percent_cell(out, m->agree, m->ranked);
    if (isinf(sqnr))
        tare_strbuf_puts(out, "<td>exact</td>");
    else
        tare_strbuf_printf(out, "<td>%.2f</td>", sqnr);
    tare_strbuf_printf(out, "<td>%.6f</td><td>%.4g</td><td>%.3f</td></tr>", tare_metrics_cosine(m), m->max_abs_error,
                       (double)row->size_bytes / 1e6);
}

static void table(struct tare_strbuf *out, const struct tare_comparison *c, size_t output) {
    tare_strbuf_puts(out, "<div class=\"scroll\"><table><thead><tr><th>method</th><th>algorithm</th><th>weights</th>"
                          "<th>top-1</th><th>top-5</th><th>agreement</th><th>SQNR dB</th><th>cosine</th><th>max error</th>"
                          "<th>weights MB</th></tr></thead><tbody>");
    for (size_t r = 0; r < c->n_rows; r++) table_row(out, &c->rows[r], &c->rows[r].outputs[output]);
    tare_strbuf_puts(out, "</tbody></table></div>");
}

/* The figure drawn: top-1 where there are labels, agreement with float otherwise. */
static double accuracy(const struct tare_metrics *m) {
    if (m->labelled) return (double)m->top1 / (double)m->labelled;
    return m->ranked ? (double)m->agree / (double)m->ranked : 0;
}

/* Accuracy against size: one point a model. */
static void plot(struct tare_strbuf *out, const struct tare_comparison *c) {
    enum { WIDTH = 1000, HEIGHT = 340, LEFT = 80, RIGHT = 190, TOP = 24, BOTTOM = 56 };
    double low = 1, high = 0, largest = 0;
    for (size_t r = 0; r < c->n_rows; r++) {
        double a = accuracy(&c->rows[r].outputs[0]), size = (double)c->rows[r].size_bytes;
        low = fmin(low, a);
        high = fmax(high, a);
        largest = fmax(largest, size);
    }
    low = fmax(0, low - 0.01);
    high = fmin(1, high + 0.01);
    if (largest <= 0 || high <= low) return;
    tare_strbuf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"accuracy against size\">", WIDTH, HEIGHT);
    for (int i = 0; i <= 4; i++) {
        double a = low + (high - low) * i / 4, y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - i / 4.0);
        tare_strbuf_printf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                                "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f %%</text>",
                           LEFT, WIDTH - RIGHT, y, y, LEFT - 10, y + 4, 100 * a);
    }
    for (int i = 0; i <= 4; i++)
        tare_strbuf_printf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.2f MB</text>",
                           LEFT + (WIDTH - LEFT - RIGHT) * i / 4.0, HEIGHT - BOTTOM + 24, largest * i / 4 / 1e6);
    for (size_t r = 0; r < c->n_rows; r++) {
        const struct tare_comparison_row *row = &c->rows[r];
        double x = LEFT + (WIDTH - LEFT - RIGHT) * (double)row->size_bytes / largest;
        double y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - (accuracy(&row->outputs[0]) - low) / (high - low));
        tare_strbuf_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/><text x=\"%.1f\" y=\"%.1f\">",
                           strcmp(row->method, "float") == 0 ? "f" : "q", x, y, x + 12, y + 4);
        escape(out, row->method);
        if (row->algorithm) {
            tare_strbuf_putc(out, ' ');
            escape(out, row->algorithm);
        }
        tare_strbuf_puts(out, "</text>");
    }
    tare_strbuf_puts(out, "</svg>");
}

void tare_comparison_html(struct tare_strbuf *out, const struct tare_comparison *c) {
    bool labelled = c->n_rows && c->n_outputs && c->rows[0].outputs[0].labelled;
    tare_strbuf_printf(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                            "content=\"width=device-width,initial-scale=1\"><title>tare compare</title><style>%s</style></head>"
                            "<body><main><h1>",
                       STYLE);
    escape(out, c->model);
    tare_strbuf_printf(out, "</h1><p>%lld records of ", (long long)c->records);
    escape(out, c->data);
    tare_strbuf_puts(out, ", signature ");
    escape(out, c->signature);
    tare_strbuf_printf(out, ". Every model ran on the same records.</p><h2>%s against size of weights</h2>",
                       labelled ? "Top-1 accuracy" : "Agreement with float");
    plot(out, c);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_strbuf_puts(out, "<h2>Output ");
        escape(out, c->output_keys[i]);
        tare_strbuf_puts(out, "</h2>");
        table(out, c, i);
    }
    tare_strbuf_puts(out, "<p>Agreement: records whose largest element is where float has it. SQNR: signal of the float "
                          "answers over the noise of the difference.</p></main></body></html>\n");
}
