/* The results of a batch: the table, the report file, and a page per model that was made. */
#include "cli/batch/batch.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/batch/page.h"
#include "cli/command.h"
#include "cli/report_file.h"

#include <stdio.h>
#include <string.h>

/* ---- pages of the models ---- */

/* The folder of the pages: "batch.html" has "batch-pages". */
static const char *page_folder(struct tare_batch_run *b) {
    const char *path = b->options->report, *end = strrchr(path, '.');
    return tare_arena_printf(&b->arena, "%.*s-pages", (int)(end - path), path);
}

/* The job's name with other characters than letters, digits, '.' and '-' replaced, and its number, which is unique. */
static const char *page_name(struct tare_batch_run *b, size_t index, const char *name) {
    char *text = tare_arena_printf(&b->arena, "%zu-%s.html", index, name);
    for (char *c = text; c && *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c)) *c = '_';
    return text;
}

/* Copies the page of a model that was removed from the state of the batch. */
static tare_status copy_page(const char *from, const char *path) {
    struct tare_strbuf page = { 0 };
    char *text = NULL;
    size_t size;
    tare_status status = tare_file_read(&text, &size, from);
    if (status == TARE_OK) tare_strbuf_append(&page, text, size);
    if (status == TARE_OK) status = tare_report_write(path, &page);
    tare_strbuf_free(&page);
    tare_free(text);
    return status;
}

/* One page per model that was made, next to the report: the model compared with its input. */
static tare_status write_pages(struct tare_batch_run *b, struct tare_job_result *results) {
    const struct tare_log log = tare_command_log(true);
    const char *folder = page_folder(b), *base = folder ? strrchr(folder, '/') : NULL;
    if (!folder) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->jobs.count; i++) {
        const struct tare_task *task = &b->tasks[b->n_calibrations + i];
        struct tare_job_result *r = &results[i];
        const char *name = page_name(b, i + 1, r->name);
        const char *path = name ? tare_arena_printf(&b->arena, "%s/%s", folder, name) : NULL;
        const bool removed = r->outcome == TARE_JOB_REJECTED && !r->output;
        tare_status status = TARE_OK;
        if (!path) return TARE_NO_MEMORY;
        if (removed ? tare_file_kind_of(task->page_path) != TARE_FILE_REGULAR : !r->output) continue;
        TARE_TRY(tare_file_make_folders(folder, NULL));
        status =
            removed ? copy_page(task->page_path, path) : tare_batch_page_write(task->job, r->output, r->output, path);
        if (status != TARE_OK) {
            tare_warn(&log, "no page of job '%s': %s", r->name, tare_error_text());
            tare_error_clear();
        } else if (tare_file_kind_of(path) == TARE_FILE_REGULAR) {
            r->page = tare_arena_printf(&b->arena, "%s/%s", base ? base + 1 : folder, name);
            if (!r->page) return TARE_NO_MEMORY;
        }
    }
    return TARE_OK;
}

static tare_status write_report(const struct tare_batch_report *report, const char *path) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    switch (tare_report_kind(path)) {
    case TARE_REPORT_HTML:
        tare_batch_html(&text, report);
        break;
    case TARE_REPORT_CSV:
        tare_batch_csv(&text, report);
        break;
    case TARE_REPORT_JUNIT:
        tare_batch_junit(&text, report);
        break;
    default:
        status = tare_batch_json(&text, report);
    }
    if (status == TARE_OK) status = tare_report_write(path, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status print_report(const struct tare_batch_report *report, bool json) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (json)
        status = tare_batch_json(&text, report);
    else
        tare_batch_table(&text, report);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_batch_report_print(struct tare_batch_run *b) {
    struct tare_job_result *results = TARE_NEW_ARRAY(&b->arena, struct tare_job_result, b->jobs.count);
    struct tare_batch_report report = { .title = b->options->jobs,
                                        .results = results,
                                        .count = b->jobs.count,
                                        .seconds = tare_clock_seconds() - b->started,
                                        .text_width = tare_command_width(stdout) };
    size_t failed;
    if (!results) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->jobs.count; i++) {
        results[i] = b->tasks[b->n_calibrations + i].result;
        report.skipped += b->tasks[b->n_calibrations + i].skip;
    }
    TARE_TRY(print_report(&report, b->options->json));
    if (b->options->report && tare_report_kind(b->options->report) == TARE_REPORT_HTML)
        TARE_TRY(write_pages(b, results));
    if (b->options->report) TARE_TRY(write_report(&report, b->options->report));
    failed = tare_batch_failed(&report);
    return failed ? TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu of %zu jobs failed or were rejected (logs are in %s)", failed,
                              report.count, b->state)
                  : TARE_OK;
}
