/* The comparison as terminal tables and as CSV. */
#include "base/strbuf.h"
#include "eval/report/comparison_page.h"
#include "eval/report/csv.h"
#include "eval/sensitivity.h"
#include "eval/target.h"
#include "eval/significance.h"

#include <math.h>

/* ---- table ---- */

static void costs(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_printf(out,
                       "\nwhat the models take; least time of a record on a %s chip, %lld together:\n"
                       "the longer of arithmetic and memory traffic, elementwise ops fused\n",
                       tare_comparison_chip_name(c), (long long)(c->chip_batch > 0 ? c->chip_batch : 1));
    tare_comparison_costs(out, TARE_IN_TEXT, c);
}

void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_printf(out, "%s on %s, %lld records, signature %s\n", c->model, c->data, (long long)c->records,
                       c->signature);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_strbuf_printf(out, "\noutput %s\n", c->output_keys[i]);
        tare_comparison_models(out, TARE_IN_TEXT, c, i);
    }
    costs(out, c);
    if (c->sensitivity) tare_sensitivity_table(out, c->sensitivity, c->text_width);
    if (c->target) tare_target_table(out, c->target);
}

/* ---- CSV ---- */

static void csv_row(struct tare_strbuf *out, const struct tare_comparison_row *row, const char *output,
                    struct tare_metrics *m, bool is_reference) {
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
    tare_csv_number(out, m->labelled && !is_reference ? tare_paired_p(m->gained, m->lost) : NAN);
    tare_csv_number(out, row->hbm_bytes);
    tare_csv_number(out, row->macs > 0 ? row->integer_macs / row->macs : NAN);
    tare_csv_number(out, row->tpu_seconds);
    tare_strbuf_puts(out, "\r\n");
}

void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_strbuf_puts(
        out, "output,method,algorithm,granularity,rows,labelled,top1,top5,auc,agreement,sqnr_db,cosine,"
             "mean_abs_error,max_abs_error,size_bytes,relative_error,max_abs_error_record,top1_low,top1_high,paired_p,"
             "hbm_bytes,integer_share,tpu_seconds\r\n");
    for (size_t r = 0; r < c->n_rows; r++)
        for (size_t i = 0; i < c->n_outputs; i++)
            csv_row(out, &c->rows[r], c->output_keys[i], &c->rows[r].outputs[i], r == 0);
}
