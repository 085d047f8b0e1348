/* The report over all jobs of a batch as an HTML page. */
#include "eval/jobs/job_result.h"
#include "eval/report/page.h"
#include "include/tare/version.h"

#include <math.h>
#include <string.h>

/* Failed and rejected jobs come first. */
static void reasons(struct tare_strbuf *out, const struct tare_batch_report *report) {
    static const struct tare_page_column columns[] = {
        { .heading = "job", .left = true, .wraps = true },
        { .heading = "outcome", .left = true },
        { .heading = "reason", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_page_table table;
    tare_page_heading(out, "Failed or rejected");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_job_result *r = &report->results[i];
        if (r->outcome == TARE_JOB_DONE) continue;
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", r->name);
        tare_page_table_series_cell(&table, tare_job_outcomes[r->outcome].series, "%s",
                                    tare_job_outcomes[r->outcome].name);
        if (r->reason)
            tare_page_table_cell(&table, "%s", r->reason);
        else
            tare_page_table_skip(&table);
    }
    tare_page_table_end(&table);
}

static void warnings(struct tare_strbuf *out, const struct tare_batch_report *report) {
    static const struct tare_page_column columns[] = {
        { .heading = "job", .left = true, .wraps = true },
        { .heading = "warning", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_page_table table;
    tare_page_heading(out, "Warnings");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < report->count; i++)
        for (size_t k = 0; k < report->results[i].n_warnings; k++) {
            tare_page_table_row(&table);
            tare_page_table_cell(&table, "%s", report->results[i].name);
            tare_page_table_cell(&table, "%s", report->results[i].warnings[k]);
        }
    tare_page_table_end(&table);
}

/* The hashes by which a later run finds unchanged jobs (batch --resume), and by which a model can be traced to its run.
 */
static void manifest(struct tare_strbuf *out, const struct tare_batch_report *report) {
    static const struct tare_report_column columns[] = {
        { .heading = "job", .left = true, .wraps = true },
        { .heading = "hash of its inputs", .left = true, .wraps = true, .help = "model, data, options, version" },
        { .heading = "written", .left = true, .wraps = true },
        { .heading = "hash of its files", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(TARE_IN_PAGE, columns);
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_job_result *r = &report->results[i];
        tare_report_table_row(table);
        tare_report_table_text(table, r->name);
        tare_report_table_text(table, r->key && *r->key ? r->key : NULL);
        tare_report_table_text(table, r->output);
        tare_report_table_text(table, r->output_hash);
    }
    tare_page_heading(out, "Provenance");
    tare_page_element(out, "p", "soft small", "%s, by tare %s.", report->title, TARE_VERSION);
    tare_report_table_end(out, table);
}

void tare_batch_html(struct tare_strbuf *out, const struct tare_batch_report *report) {
    const char *slash = strrchr(report->title, '/');
    size_t counts[3] = { 0 };
    double made = 0, given = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_job_result *r = &report->results[i];
        counts[r->outcome]++;
        if (r->outcome != TARE_JOB_DONE) continue;
        made += (double)r->size_bytes;
        given += (double)r->float_bytes;
    }
    tare_page_begin(out, "Jobs of", slash && slash[1] ? slash + 1 : report->title);
    tare_page_element(out, "p", "soft", "%zu jobs in %.1f s by tare %s.", report->count, report->seconds, TARE_VERSION);
    if (report->skipped)
        tare_page_element(out, "p", "soft", "%zu of them were finished by an earlier run and unchanged.",
                          report->skipped);
    if (counts[TARE_JOB_REJECTED] + counts[TARE_JOB_FAILED])
        tare_page_note(out, "warning", "%zu done, %zu rejected by their limits, %zu failed.", counts[TARE_JOB_DONE],
                       counts[TARE_JOB_REJECTED], counts[TARE_JOB_FAILED]);
    else
        tare_page_note(out, "good", "All %zu jobs are done.", report->count);
    if (given > 0)
        tare_page_element(out, "p", NULL,
                          "The finished models have %.2f MB of weights, %.0f %% of the %.2f MB of their float "
                          "models.",
                          made / 1e6, 100 * made / given, given / 1e6);
    if (counts[TARE_JOB_REJECTED] + counts[TARE_JOB_FAILED]) reasons(out, report);
    tare_page_heading(out, "All jobs");
    tare_batch_jobs(out, TARE_IN_PAGE, report);
    if (tare_batch_warned(report)) warnings(out, report);
    manifest(out, report);
    tare_page_end(out);
}
