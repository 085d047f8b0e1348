/* What a batch would do, with its memory and time by estimate (--dry-run). */
#include "cli/batch/batch.h"
#include "base/file.h"
#include "base/output.h"
#include "base/text_table.h"
#include "base/thread.h"
#include "cli/command.h"

#include <math.h>
#include <stdio.h>

/* Seconds that the task took in its last run, changed since or not; NaN if it never ran. */
static tare_status seconds_before(double *seconds, struct tare_batch_run *b, const struct tare_task *task) {
    struct tare_job_result result;
    *seconds = NAN;
    if (tare_file_kind_of(task->result_path) != TARE_FILE_REGULAR) return TARE_OK;
    const tare_status status = tare_job_result_load(&result, &b->arena, task->result_path);
    if (status == TARE_OK && result.outcome != TARE_JOB_FAILED) *seconds = result.seconds;
    return tare_error_dismiss(status);
}

/* Estimated time of all tasks: the sum over those that will run. */
struct plan_sums {
    size_t jobs, calibrations, unknown; /* unknown: tasks without a previous run */
    double seconds;
    int64_t largest;
};

static tare_status plan_row(struct tare_text_table *table, struct tare_batch_run *b, const struct tare_task *task,
                            struct plan_sums *sums) {
    double seconds;
    int64_t bytes;
    TARE_TRY(seconds_before(&seconds, b, task));
    TARE_TRY(tare_folder_bytes(&bytes, task->job->model));
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", task->is_calibration ? task->job->model : task->name);
    tare_text_table_cell(table, "%s",
                         task->skip             ? "nothing: finished before"
                         : task->is_calibration ? "calibrate"
                         : task->job->method    ? task->job->method
                         : task->job->converts  ? "convert"
                                                : "quantize");
    tare_text_table_cell(table, "%.2f", (double)bytes / 1e6);
    tare_text_table_cell(table, "%.0f", (double)task->memory / 1e6);
    if (isnan(seconds))
        tare_text_table_skip(table);
    else
        tare_text_table_cell(table, "%.1f", seconds);
    tare_text_table_cell(table, "%s", task->is_calibration ? task->calibration_path : task->job->output);
    if (task->skip) return TARE_OK;
    ++*(task->is_calibration ? &sums->calibrations : &sums->jobs);
    if (isnan(seconds))
        sums->unknown++;
    else
        sums->seconds += seconds;
    if (task->memory > sums->largest) sums->largest = task->memory;
    return TARE_OK;
}

static void sum_up(struct tare_strbuf *text, const struct tare_batch_run *b, const struct plan_sums *sums,
                   int64_t budget) {
    const struct tare_batch_settings *o = b->options;
    const int processes = o->processes ? o->processes : tare_cpu_count();
    int64_t memory = sums->largest * processes;
    if (memory > budget) memory = budget > sums->largest ? budget : sums->largest;
    tare_strbuf_printf(text, "%zu jobs and %zu calibrations in at most %d processes and %.0f MB, by estimate",
                       sums->jobs, sums->calibrations, processes, (double)memory / 1e6);
    if (sums->unknown)
        tare_strbuf_printf(text, "; %zu of them never ran, so that their time is not known\n", sums->unknown);
    else
        tare_strbuf_printf(text, ", about %.0f s\n", ceil(sums->seconds / processes));
}

tare_status tare_batch_plan_print(struct tare_batch_run *b, int64_t budget) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "job", .left = true },
        { .heading = "does", .left = true },
        { .heading = "model MB" },
        { .heading = "peak MB, by estimate" },
        { .heading = "seconds before" },
        { .heading = "writes", .left = true },
        { 0 },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    struct tare_strbuf text = { 0 };
    struct plan_sums sums = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < b->n_tasks && status == TARE_OK; i++)
        status = plan_row(table, b, &b->tasks[i], &sums);
    tare_text_table_fit(table, tare_command_width(stdout));
    tare_text_table_print(&text, table);
    tare_text_table_free(table);
    sum_up(&text, b, &sums, budget);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}
