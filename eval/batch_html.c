/* The report over all jobs of a batch as a page. */
#include "eval/job_result.h"
#include "eval/page.h"

#include <math.h>

static const struct tare_page_column columns[] = {
    { .heading = "job", .left = true },
    { .heading = "outcome", .left = true },
    { .heading = "float", .help = "top-1 of the float model" },
    { .heading = "top-1", .help = "of the model that was made" },
    { .heading = "agreement", .help = "share of the records where both choose the same class" },
    { .heading = "SQNR dB", .help = "of the first output against the float model" },
    { .heading = "weights MB" },
    { .heading = "of float" },
    { .heading = "peak MB" },
    { .heading = "seconds" },
    { .heading = "reason", .left = true, .wraps = true },
    { 0 },
};

static void share_cell(struct tare_page_table *table, double share) {
    if (isnan(share))
        tare_page_table_skip(table);
    else
        tare_page_table_cell(table, "%.2f %%", 100 * share);
}

static void size_cell(struct tare_page_table *table, int64_t bytes, const char *format) {
    if (bytes)
        tare_page_table_cell(table, format, (double)bytes / 1e6);
    else
        tare_page_table_skip(table);
}

static void result_row(struct tare_page_table *table, const struct tare_job_result *r) {
    static const char *const outcomes[] = { "done", "rejected", "failed" };
    static const int colours[] = { 2, 1, 3 };
    tare_page_table_row(table);
    tare_page_table_cell(table, "%s", r->name);
    tare_page_table_series_cell(table, colours[r->outcome], "%s", outcomes[r->outcome]);
    share_cell(table, r->float_top1);
    share_cell(table, r->top1);
    share_cell(table, r->agreement);
    if (isnan(r->sqnr_db))
        tare_page_table_skip(table);
    else if (isinf(r->sqnr_db))
        tare_page_table_cell(table, "exact");
    else
        tare_page_table_cell(table, "%.2f", r->sqnr_db);
    size_cell(table, r->size_bytes, "%.3f");
    if (r->size_bytes && r->float_bytes)
        tare_page_table_cell(table, "%.0f %%", 100 * (double)r->size_bytes / (double)r->float_bytes);
    else
        tare_page_table_skip(table);
    size_cell(table, r->peak_bytes, "%.0f");
    tare_page_table_cell(table, "%.2f", r->seconds);
    if (r->reason)
        tare_page_table_cell(table, "%s", r->reason);
    else
        tare_page_table_skip(table);
}

void tare_batch_html(struct tare_strbuf *out, const struct tare_batch_report *report) {
    struct tare_page_table table;
    size_t failed = tare_batch_failed(report);
    tare_page_begin(out, report->title);
    tare_page_element(out, "p", "soft", "%zu jobs in %.1f s, %zu of them finished before and unchanged.", report->count, report->seconds,
                      report->skipped);
    if (failed)
        tare_page_note(out, "warning", "%zu of %zu jobs failed or were rejected.", failed, report->count);
    else
        tare_page_note(out, "good", "All %zu jobs are done.", report->count);
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < report->count; i++) result_row(&table, &report->results[i]);
    tare_page_table_end(&table);
    tare_page_end(out);
}
