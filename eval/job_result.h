/* What became of the jobs of a batch: one small JSON file each while it runs, one report at the end. */
#ifndef TARE_EVAL_JOB_RESULT_H
#define TARE_EVAL_JOB_RESULT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "eval/report/report_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_job_outcome {
    TARE_JOB_DONE,     /* the model is written and keeps to its limits */
    TARE_JOB_REJECTED, /* it breaks a limit */
    TARE_JOB_FAILED,
};

struct tare_job_result {
    const char *name;
    const char *key; /* hash of everything that the job depends on (tare_job_key); "" where that cannot be read */
    const char *run; /* which run of the batch made it; "" outside of MPI */
    enum tare_job_outcome outcome;
    const char *reason;      /* of a rejection or failure, one line; NULL otherwise */
    const char *output;      /* what was written; NULL: nothing */
    const char *output_hash; /* of all its files; NULL: nothing was written */
    double seconds;
    int attempts;
    int64_t peak_bytes;              /* most memory in use; 0: not known */
    int64_t size_bytes, float_bytes; /* of constants and variables; 0: not known */
    /* Measured on the evaluation records; NaN where they say nothing. Shares 0 … 1. */
    double top1, float_top1, agreement, sqnr_db;
    int64_t records; /* evaluated; 0: none */
};

/* All figures unknown. */
struct tare_job_result tare_job_result_new(const char *name);

/* Writes, reads one result. Texts of a read result are in the arena. TARE_CORRUPT for a file that is none. */
tare_status tare_job_result_save(const struct tare_job_result *result, const char *path) TARE_WARN_UNUSED;
tare_status tare_job_result_load(struct tare_job_result *out, struct tare_arena *arena,
                                 const char *path) TARE_WARN_UNUSED;

/* How reports show an outcome, by its value. */
extern const struct tare_job_outcome_look {
    const char *name;
    int series; /* colour in a page */
} tare_job_outcomes[];

/* Reports over all jobs: an aligned table with a summary line, JSON, CSV, a page. */
struct tare_batch_report {
    const char *title; /* the job file */
    const struct tare_job_result *results;
    size_t count;
    double seconds;    /* wall time of the batch */
    size_t skipped;    /* finished before and unchanged */
    size_t text_width; /* characters of a line that the table should fit into; 0: any */
};
void tare_batch_jobs(struct tare_strbuf *out, enum tare_report_form form,
                     const struct tare_batch_report *report); /* table alone */
void tare_batch_table(struct tare_strbuf *out, const struct tare_batch_report *report);
tare_status tare_batch_json(struct tare_strbuf *out, const struct tare_batch_report *report) TARE_WARN_UNUSED;
void tare_batch_csv(struct tare_strbuf *out, const struct tare_batch_report *report);
/* One page without references to the outside. */
void tare_batch_html(struct tare_strbuf *out, const struct tare_batch_report *report);
/* Jobs that are not done. */
size_t tare_batch_failed(const struct tare_batch_report *report);

#endif
