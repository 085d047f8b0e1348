/* The report over all jobs of a batch: table and CSV. */
#include "eval/report/csv.h"
#include "eval/jobs/job_result.h"
#include "eval/measure.h"

#include <math.h>

const struct tare_job_outcome_look tare_job_outcomes[] = { { "done", 2 }, { "rejected", 1 }, { "FAILED", 4 } };

size_t tare_batch_failed(const struct tare_batch_report *report) {
    size_t failed = 0;
    for (size_t i = 0; i < report->count; i++)
        failed += report->results[i].outcome != TARE_JOB_DONE;
    return failed;
}

size_t tare_batch_warned(const struct tare_batch_report *report) {
    size_t warned = 0;
    for (size_t i = 0; i < report->count; i++)
        warned += report->results[i].n_warnings > 0;
    return warned;
}

/* ---- table ---- */

static double megabytes(int64_t bytes) {
    return bytes ? (double)bytes / 1e6 : NAN;
}

static double relative_time(const struct tare_job_result *r) {
    const double compiled = r->cycles / r->float_cycles;
    return isfinite(compiled) ? compiled : r->tpu_seconds / r->float_tpu_seconds;
}

static void measured_cell(struct tare_report_table *table, const struct tare_measure *measure, double value) {
    struct tare_strbuf text = { 0 };
    if (!isnan(value)) tare_measure_put(&text, measure, value);
    tare_report_table_text(table, text.size ? tare_strbuf_text(&text) : NULL);
    tare_strbuf_free(&text);
}

/* The measure's name and its values; a model without labels and expected values is measured by its SQNR alone. */
static void measured_cells(struct tare_report_table *table, const struct tare_job_result *r) {
    const bool measured = r->measure && !isnan(r->float_measure_value);
    int kind;
    if (!measured || tare_measure_read(&kind, r->measure) != TARE_OK) {
        for (int i = 0; i < 3; i++)
            tare_report_table_text(table, NULL);
        return;
    }
    const struct tare_measure *measure = tare_measure_find((enum tare_measure_kind)(kind - 1));
    tare_report_table_text(table, measure->title);
    measured_cell(table, measure, r->float_measure_value);
    measured_cell(table, measure, r->measure_value);
}

static void result_row(struct tare_report_table *table, const struct tare_job_result *r) {
    tare_report_table_row(table);
    tare_report_table_link(table, r->page, r->name);
    tare_report_table_series(table, tare_job_outcomes[r->outcome].series, tare_job_outcomes[r->outcome].name);
    measured_cells(table, r);
    tare_report_table_share(table, 2, r->agreement);
    tare_report_table_db(table, r->sqnr_db);
    tare_report_table_number(table, "%.3f", megabytes(r->size_bytes));
    tare_report_table_bar(table,
                          r->size_bytes && r->float_bytes ? (double)r->size_bytes / (double)r->float_bytes : NAN);
    tare_report_table_number(table, "%.0f", r->cycles);
    tare_report_table_number(table, "%.2f", relative_time(r));
    tare_report_table_number(table, "%.0f", megabytes(r->peak_bytes));
    tare_report_table_cell(table, "%.2f", r->seconds);
    tare_report_table_text(table, r->reason);
}

void tare_batch_jobs(struct tare_strbuf *out, enum tare_report_form form, const struct tare_batch_report *report) {
    static const struct tare_report_column columns[] = {
        { .heading = "job", .left = true, .wraps = true },
        { .heading = "outcome", .left = true },
        { .heading = "measure", .left = true, .help = "of labels or expected values" },
        { .heading = "float", .help = "the measure of the float model" },
        { .heading = "model", .help = "the measure of the job's model" },
        { .heading = "agree", .help = "share of records for which both models predict the same class" },
        { .heading = "SQNR dB", .help = "of the first output against the float model" },
        { .heading = "weights MB" },
        { .heading = "of float", .left = true, .help = "size of the weights" },
        { .heading = "cycles", .help = "of a batch on the chip of the limits, by Google's TPU compiler" },
        { .heading = "time",
          .help = "on that chip, relative to the float model in bfloat16; without compiler estimated" },
        { .heading = "peak MB", .help = "memory of the job's process" },
        { .heading = "seconds" },
        { .heading = "reason", .left = true, .only = TARE_IN_TEXT },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, report->text_width);
    for (size_t i = 0; i < report->count; i++)
        result_row(table, &report->results[i]);
    tare_report_table_end(out, table);
}

void tare_batch_table(struct tare_strbuf *out, const struct tare_batch_report *report) {
    const size_t failed = tare_batch_failed(report), warned = tare_batch_warned(report);
    tare_batch_jobs(out, TARE_IN_TEXT, report);
    tare_strbuf_printf(out, "\n%zu jobs: %zu done", report->count, report->count - failed);
    tare_strbuf_printf(out, ", %zu failed or rejected", failed);
    if (report->skipped)
        tare_strbuf_printf(out, "; %zu were finished by an earlier run and unchanged", report->skipped);
    tare_strbuf_printf(out, "; %.1f s\n", report->seconds);
    if (warned)
        tare_strbuf_printf(out, "%zu job%s warnings, which --report FILE.html or .json lists\n", warned,
                           warned == 1 ? " has" : "s have");
}

/* ---- CSV ---- */

void tare_batch_csv(struct tare_strbuf *out, const struct tare_batch_report *report) {
    tare_strbuf_puts(out, "job,outcome,reason,output,records,float_top1,top1,agreement,sqnr_db,size_bytes,float_bytes,"
                          "peak_bytes,seconds,key,output_hash,measure,float_measure_value,measure_value,loss,mae,chip,"
                          "cycles,float_cycles,tpu_seconds,float_tpu_seconds,"
                          "tpu_bytes\r\n");
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_job_result *r = &report->results[i];
        const double figures[] = { r->float_top1, r->top1, r->agreement, r->sqnr_db };
        const double measured[] = { r->float_measure_value, r->measure_value, r->loss, r->mae };
        tare_csv_text(out, r->name);
        tare_strbuf_printf(out, ",%s,", tare_job_outcomes[r->outcome].name);
        tare_csv_text(out, r->reason);
        tare_strbuf_putc(out, ',');
        tare_csv_text(out, r->output);
        tare_strbuf_printf(out, ",%lld", (long long)r->records);
        for (size_t k = 0; k < 4; k++)
            tare_csv_number(out, figures[k]);
        tare_strbuf_printf(out, ",%lld,%lld,%lld,%.3f,%s,%s,%s", (long long)r->size_bytes, (long long)r->float_bytes,
                           (long long)r->peak_bytes, r->seconds, r->key ? r->key : "",
                           r->output_hash ? r->output_hash : "", r->measure ? r->measure : "");
        for (size_t k = 0; k < 4; k++)
            tare_csv_number(out, measured[k]);
        const double chip[] = { r->cycles, r->float_cycles, r->tpu_seconds, r->float_tpu_seconds, r->tpu_bytes };
        tare_strbuf_printf(out, ",%s", r->chip ? r->chip : "");
        for (size_t k = 0; k < 5; k++)
            tare_csv_number(out, chip[k]);
        tare_strbuf_puts(out, "\r\n");
    }
}
