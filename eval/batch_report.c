/* The report over all jobs of a batch: table and CSV. */
#include "base/text_table.h"
#include "eval/csv.h"
#include "eval/job_result.h"

#include <math.h>

static const char *const outcome_names[] = { "done", "rejected", "FAILED" };

size_t tare_batch_failed(const struct tare_batch_report *report) {
    size_t failed = 0;
    for (size_t i = 0; i < report->count; i++) failed += report->results[i].outcome != TARE_JOB_DONE;
    return failed;
}

/* ---- table ---- */

static const struct tare_text_table_column columns[] = {
    { .heading = "job", .left = true }, { .heading = "outcome", .left = true },
    { .heading = "float" },             { .heading = "top-1" },
    { .heading = "agree" },             { .heading = "SQNR dB" },
    { .heading = "weights MB" },        { .heading = "of float" },
    { .heading = "peak MB" },           { .heading = "seconds" },
    { .heading = "reason", .left = true }, { 0 },
};

static void share_cell(struct tare_text_table *table, double share) {
    if (isnan(share))
        tare_text_table_skip(table);
    else
        tare_text_table_cell(table, "%.2f%%", 100 * share);
}

static void size_cell(struct tare_text_table *table, int64_t bytes, const char *format) {
    if (bytes)
        tare_text_table_cell(table, format, (double)bytes / 1e6);
    else
        tare_text_table_skip(table);
}

static void result_row(struct tare_text_table *table, const struct tare_job_result *r) {
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", r->name);
    tare_text_table_cell(table, "%s", outcome_names[r->outcome]);
    share_cell(table, r->float_top1);
    share_cell(table, r->top1);
    share_cell(table, r->agreement);
    if (isnan(r->sqnr_db))
        tare_text_table_skip(table);
    else if (isinf(r->sqnr_db))
        tare_text_table_cell(table, "%s", r->sqnr_db > 0 ? "exact" : "none");
    else
        tare_text_table_cell(table, "%.2f", r->sqnr_db);
    size_cell(table, r->size_bytes, "%.3f");
    if (r->size_bytes && r->float_bytes)
        tare_text_table_cell(table, "%.0f%%", 100 * (double)r->size_bytes / (double)r->float_bytes);
    else
        tare_text_table_skip(table);
    size_cell(table, r->peak_bytes, "%.0f");
    tare_text_table_cell(table, "%.2f", r->seconds);
    if (r->reason) tare_text_table_cell(table, "%s", r->reason);
}

void tare_batch_table(struct tare_strbuf *out, const struct tare_batch_report *report) {
    struct tare_text_table *table = tare_text_table_new(columns);
    size_t failed = tare_batch_failed(report);
    for (size_t i = 0; i < report->count; i++) result_row(table, &report->results[i]);
    tare_text_table_print(out, table);
    tare_text_table_free(table);
    tare_strbuf_printf(out, "\n%zu jobs: %zu done", report->count, report->count - failed);
    tare_strbuf_printf(out, ", %zu failed or rejected", failed);
    if (report->skipped) tare_strbuf_printf(out, "; %zu were finished before and unchanged", report->skipped);
    tare_strbuf_printf(out, "; %.1f s\n", report->seconds);
}

/* ---- CSV ---- */

void tare_batch_csv(struct tare_strbuf *out, const struct tare_batch_report *report) {
    tare_strbuf_puts(out, "job,outcome,reason,output,records,float_top1,top1,agreement,sqnr_db,size_bytes,float_bytes,"
                          "peak_bytes,seconds\r\n");
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_job_result *r = &report->results[i];
        const double figures[] = { r->float_top1, r->top1, r->agreement, r->sqnr_db };
        tare_csv_text(out, r->name);
        tare_strbuf_printf(out, ",%s,", outcome_names[r->outcome]);
        tare_csv_text(out, r->reason);
        tare_strbuf_putc(out, ',');
        tare_csv_text(out, r->output);
        tare_strbuf_printf(out, ",%lld", (long long)r->records);
        for (size_t k = 0; k < 4; k++) tare_csv_number(out, figures[k]);
        tare_strbuf_printf(out, ",%lld,%lld,%lld,%.3f\r\n", (long long)r->size_bytes, (long long)r->float_bytes,
                           (long long)r->peak_bytes, r->seconds);
    }
}
