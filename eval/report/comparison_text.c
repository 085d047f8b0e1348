/* The comparison as terminal tables. */
#include "base/strbuf.h"
#include "eval/report/comparison_columns.h"
#include "eval/sensitivity.h"
#include "eval/target.h"
#include "eval/verdict.h"

#include <string.h>

enum { LINE = 80 };

/* Appends text with line breaks at spaces, so that lines have at most LINE bytes, or the terminal's width; continuation
 * lines are indented. Where the text goes into a file or a pipe, it is one line. */
static void put_wrapped(struct tare_strbuf *out, const struct tare_comparison *c, const char *text, int indent) {
    const size_t most = !c->text_width ? SIZE_MAX : c->text_width < LINE ? c->text_width : LINE;
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (strncmp(text + word, " %", 2) == 0) word += 1 + strcspn(text + word + 1, " "); /* keep "94.90 %" together */
        if (column && column + 1 + word > most) {
            tare_strbuf_printf(out, "\n%*s", indent, "");
            column = (size_t)indent;
        } else if (column) {
            tare_strbuf_putc(out, ' ');
            column++;
        }
        for (size_t i = 0; i < word; i++)
            tare_strbuf_putc(out, text[i]);
        column += word;
        text += word + (text[word] == ' ');
    }
    tare_strbuf_putc(out, '\n');
}

static void put_skipped(struct tare_strbuf *out, const struct tare_comparison *c) {
    if (c->n_skipped) tare_strbuf_puts(out, "\nnot measured\n");
    for (size_t i = 0; i < c->n_skipped; i++) {
        const struct tare_comparison_skipped *s = &c->skipped[i];
        struct tare_strbuf line = { 0 };
        tare_comparison_put_skipped(&line, s);
        tare_strbuf_printf(&line, ": %s", s->reason);
        put_wrapped(out, c, tare_strbuf_text(&line), 4);
        out->failed |= line.failed;
        tare_strbuf_free(&line);
    }
}

static void put_summary(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    if (c->n_outputs > 1)
        tare_strbuf_printf(out, "\noutput %s; all %zu outputs with --wide\n", c->output_keys[tare_measured_output(c)],
                           c->n_outputs);
    tare_comparison_put(out, TARE_IN_TEXT, c, TARE_SUMMARY_COLUMNS, tare_measured_output(c));
    if (tare_measure_is_tested(measure) && measure->kind != TARE_MEASURE_R2 && c->n_rows > 1)
        tare_strbuf_puts(out, "* the 95 % interval of the difference does not contain 0\n");
    if (tare_verdict_of(c).row) tare_strbuf_puts(out, "← recommended\n");
    if (c->rows[0].tpu_seconds > 0)
        tare_strbuf_printf(out, "est. µs: per example on a Cloud TPU %s, batch %lld\n", tare_comparison_chip_name(c),
                           (long long)tare_comparison_chip_batch(c));
    if (c->compiler)
        tare_strbuf_printf(out, "cycles: of a batch there, as %s compiles the model for it\n", c->compiler);
}

static void put_wide(struct tare_strbuf *out, const struct tare_comparison *c) {
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_strbuf_printf(out, "\noutput %s\n", c->output_keys[i]);
        tare_comparison_put(out, TARE_IN_TEXT, c, TARE_MODEL_COLUMNS, i);
    }
    tare_strbuf_printf(out,
                       "\ncost; estimates for a Cloud TPU %s, batch %lld: ops fused as its compiler does,\n"
                       "with cycles fitted to the compiler's estimates of other networks\n",
                       tare_comparison_chip_name(c), (long long)tare_comparison_chip_batch(c));
    tare_comparison_put(out, TARE_IN_TEXT, c, TARE_COST_COLUMNS, 0);
}

void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_strbuf line = { 0 };
    tare_strbuf_printf(&line, "%s on %s, %lld records, signature %s", c->model, c->data, (long long)c->records,
                       c->signature);
    put_wrapped(out, c, tare_strbuf_text(&line), 4);
    out->failed |= line.failed;
    tare_strbuf_free(&line);
    if (c->wide)
        put_wide(out, c);
    else
        put_summary(out, c);
    if (c->sensitivity) tare_sensitivity_table(out, c->sensitivity, c->text_width);
    if (c->target) tare_target_table(out, c->target);
    put_skipped(out, c);
}

void tare_comparison_verdict(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_strbuf line = { 0 };
    if (c->n_rows < 2 && tare_verdict_of(c).reason != TARE_VERDICT_GUESS) return;
    tare_verdict_put(&line, c);
    tare_strbuf_puts(&line, ".");
    tare_strbuf_putc(out, '\n');
    put_wrapped(out, c, tare_strbuf_text(&line), 0);
    out->failed |= line.failed;
    tare_strbuf_free(&line);
}
