/* The comparison as terminal tables and as CSV. */
#include "base/strbuf.h"
#include "eval/report/comparison_page.h"
#include "eval/measure.h"
#include "eval/report/csv.h"
#include "eval/sensitivity.h"
#include "eval/target.h"
#include "eval/verdict.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

enum { LINE = 80 };

/* Appends text with line breaks at spaces, so that lines have at most LINE bytes; continuation lines are indented. */
static void put_wrapped(struct tare_strbuf *out, const char *text, int indent) {
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (strncmp(text + word, " %", 2) == 0) word += 1 + strcspn(text + word + 1, " "); /* keep "94.90 %" together */
        if (column && column + 1 + word > LINE) {
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
        tare_strbuf_printf(&line, "%s%s%s%s%s: %s", s->method, s->algorithm ? " " : "",
                           s->algorithm ? s->algorithm : "", s->granularity ? " " : "",
                           s->granularity ? s->granularity : "", s->reason);
        put_wrapped(out, tare_strbuf_text(&line), 4);
        out->failed |= line.failed;
        tare_strbuf_free(&line);
    }
}

static void put_summary(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    if (c->n_outputs > 1)
        tare_strbuf_printf(out, "\noutput %s; all %zu outputs with --wide\n", c->output_keys[tare_measured_output(c)],
                           c->n_outputs);
    tare_comparison_summary(out, TARE_IN_TEXT, c);
    if (tare_measure_is_tested(measure) && measure->kind != TARE_MEASURE_R2 && c->n_rows > 1)
        tare_strbuf_puts(out, "* the 95 % interval of the difference does not contain 0\n");
    if (tare_verdict_of(c).row) tare_strbuf_puts(out, "← recommended\n");
    if (c->rows[0].tpu_seconds > 0)
        tare_strbuf_printf(out, "est. µs: per example on a Cloud TPU %s, batch %lld\n", tare_comparison_chip_name(c),
                           (long long)(c->chip_batch > 0 ? c->chip_batch : 1));
}

static void put_wide(struct tare_strbuf *out, const struct tare_comparison *c) {
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_strbuf_printf(out, "\noutput %s\n", c->output_keys[i]);
        tare_comparison_models(out, TARE_IN_TEXT, c, i);
    }
    tare_strbuf_printf(out,
                       "\ncost; estimates for a Cloud TPU %s, batch %lld: the larger of compute and memory time, with\n"
                       "elementwise ops fused\n",
                       tare_comparison_chip_name(c), (long long)(c->chip_batch > 0 ? c->chip_batch : 1));
    tare_comparison_costs(out, TARE_IN_TEXT, c);
}

void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_strbuf line = { 0 };
    tare_strbuf_printf(&line, "%s on %s, %lld records, signature %s", c->model, c->data, (long long)c->records,
                       c->signature);
    put_wrapped(out, tare_strbuf_text(&line), 4);
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
    put_wrapped(out, tare_strbuf_text(&line), 0);
    out->failed |= line.failed;
    tare_strbuf_free(&line);
}

/* ---- CSV ---- */

/* Measures that only some outputs have, then the one that ranks the models, at the output by which it does. */
static void csv_measures(struct tare_strbuf *out, const struct tare_comparison *c,
                         const struct tare_comparison_row *row, const struct tare_metrics *m) {
    static const enum tare_measure_kind kinds[] = { TARE_MEASURE_IOU, TARE_MEASURE_PIXEL_ACCURACY,
                                                    TARE_MEASURE_SEQUENCE, TARE_MEASURE_PSNR, TARE_MEASURE_SSIM };
    const struct tare_measure *measure = tare_measure_of(c);
    const bool is_measured = m == tare_measured_of(c, row);
    double low = NAN, high = NAN, difference, least = NAN, most = NAN;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        tare_csv_number(out, tare_measure_value(tare_measure_find(kinds[i]), m));
    if (is_measured) tare_measure_interval(&low, &high, measure, m);
    tare_strbuf_putc(out, ',');
    tare_csv_text(out, is_measured ? tare_measure_key(measure) : "");
    tare_csv_number(out, is_measured ? tare_measure_value(measure, m) : NAN);
    tare_csv_number(out, low);
    tare_csv_number(out, high);
    if (is_measured && row != c->rows)
        tare_measure_difference(&difference, &least, &most, measure, m, tare_measured_of(c, c->rows));
    tare_csv_number(out, least);
    tare_csv_number(out, most);
}

static void csv_row(struct tare_strbuf *out, const struct tare_comparison *c, const struct tare_comparison_row *row,
                    const char *output, const struct tare_metrics *m) {
    const char *texts[] = { output, row->method, row->algorithm, row->granularity };
    double low = NAN, high = NAN;
    if (m->labelled) tare_share_interval(&low, &high, m->top1, m->labelled);
    for (size_t i = 0; i < 4; i++) {
        tare_csv_text(out, texts[i]);
        tare_strbuf_putc(out, ',');
    }
    tare_strbuf_printf(out, "%lld,%lld", (long long)m->rows, (long long)m->labelled);
    tare_csv_share(out, m->top1, m->labelled);
    tare_csv_share(out, m->top5, m->labelled);
    tare_csv_number(out, tare_auc_value(&m->auc));
    tare_csv_share(out, m->agree, m->ranked);
    tare_csv_number(out, tare_metrics_sqnr_db(m));
    tare_csv_number(out, tare_metrics_cosine(m));
    tare_csv_number(out, tare_metrics_mean_error(m));
    tare_csv_number(out, m->max_abs_error);
    tare_strbuf_printf(out, ",%lld", (long long)row->size_bytes);
    tare_csv_number(out, tare_metrics_relative_error(m));
    tare_csv_number(out, m->max_abs_error > 0 ? (double)m->max_abs_record : NAN);
    tare_csv_number(out, low);
    tare_csv_number(out, high);
    tare_csv_number(out, row->hbm_bytes);
    tare_csv_number(out, row->macs > 0 ? row->integer_macs / row->macs : NAN);
    tare_csv_number(out, row->tpu_seconds);
    tare_csv_number(out, tare_metrics_f1(m));
    tare_csv_number(out, m->expected_elements ? m->expected_error / (double)m->expected_elements : NAN);
    tare_csv_number(out, m->expected_elements ? sqrt(m->expected_squared_error / (double)m->expected_elements) : NAN);
    tare_csv_number(out, tare_metrics_r2(m));
    csv_measures(out, c, row, m);
    tare_strbuf_putc(out, ',');
    tare_csv_text(out, row->quantize);
    tare_strbuf_putc(out, ',');
    tare_csv_text(out, row->convert);
    tare_strbuf_printf(out, ",%d\r\n", row == tare_verdict_of(c).row);
}

void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_puts(out,
                     "output,method,algorithm,granularity,rows,labelled,top1,top5,auc,agreement,sqnr_db,cosine,"
                     "mean_abs_error,max_abs_error,size_bytes,relative_error,max_abs_error_record,top1_low,top1_high,"
                     "hbm_bytes,integer_share,tpu_seconds,f1,mae,rmse,r2,iou,pixel_accuracy,sequence,psnr,ssim,measure,"
                     "measure_value,measure_low,measure_high,difference_low,difference_high,"
                     "quantize_command,convert_command,recommended\r\n");
    for (size_t r = 0; r < c->n_rows; r++)
        for (size_t i = 0; i < c->n_outputs; i++)
            csv_row(out, c, &c->rows[r], c->output_keys[i], &c->rows[r].outputs[i]);
}
