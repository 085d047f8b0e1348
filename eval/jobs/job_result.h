/* Results of batch jobs: one small JSON file per job while the batch runs, one report at the end. */
#ifndef TARE_EVAL_JOBS_JOB_RESULT_H
#define TARE_EVAL_JOBS_JOB_RESULT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "eval/report/report_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_job_outcome {
    TARE_JOB_DONE,     /* the model is written and within its limits */
    TARE_JOB_REJECTED, /* the model violates a limit */
    TARE_JOB_FAILED,
};

struct tare_job_result {
    const char *name;
    const char *key; /* hash of everything that the job depends on (tare_job_key); "" when that cannot be read */
    const char *run; /* id of the batch run that executed the job; "" without MPI */
    enum tare_job_outcome outcome;
    const char *reason;          /* of a rejection or failure, one line; NULL otherwise */
    const char *output;          /* path of the output; NULL: nothing was written */
    const char *output_hash;     /* of all its files; NULL: nothing was written */
    const char *const *warnings; /* of the job's commands */
    size_t n_warnings;
    const char *page; /* of the model, relative to the report's page; NULL: none */
    double seconds;
    int attempts;
    int64_t peak_bytes;              /* peak memory; 0: unknown */
    int64_t size_bytes, float_bytes; /* of constants and variables; 0: unknown */
    /* Measured on the evaluation records; NaN when not measured. Shares are 0 … 1. */
    double top1, float_top1, agreement, sqnr_db;
    const char *measure;                       /* its name in JSON; NULL: nothing was measured */
    double float_measure_value, measure_value; /* in its unit; an exact SQNR is infinite */
    double loss, mae; /* of the measure against float, in points (eval/sensitivity.h); mean absolute error */
    double loss_high; /* what the records do not exclude, at 95 %, likewise */
    int64_t records;  /* evaluated; 0: none */
    /* Of a batch on the chip of the limits; NaN: not known. */
    const char *chip, *compiler;           /* its name; who counted the cycles: "libtpu 0.0.42"; NULL: none */
    double cycles, float_cycles;           /* by the compiler; of the float model in bfloat16 */
    double tpu_seconds, float_tpu_seconds; /* estimated */
    double tpu_bytes;                      /* in its memory, by the compiler */
};

/* Returns a result with all figures unknown. */
struct tare_job_result tare_job_result_new(const char *name);

/* Writes or reads one result. Strings of a result that was read are in the arena. TARE_CORRUPT: the file is not a
 * result. */
tare_status tare_job_result_save(const struct tare_job_result *result, const char *path) TARE_WARN_UNUSED;
tare_status tare_job_result_load(struct tare_job_result *out, struct tare_arena *arena,
                                 const char *path) TARE_WARN_UNUSED;

/* Name and colour of each outcome in reports, indexed by enum tare_job_outcome. */
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
    size_t skipped;    /* finished by an earlier run and unchanged */
    size_t text_width; /* characters per line that the table should fit into; 0: unlimited */
};
void tare_batch_jobs(struct tare_strbuf *out, enum tare_report_form form,
                     const struct tare_batch_report *report); /* table alone */
void tare_batch_table(struct tare_strbuf *out, const struct tare_batch_report *report);
tare_status tare_batch_json(struct tare_strbuf *out, const struct tare_batch_report *report) TARE_WARN_UNUSED;
void tare_batch_csv(struct tare_strbuf *out, const struct tare_batch_report *report);
void tare_batch_junit(struct tare_strbuf *out, const struct tare_batch_report *report);
/* One HTML page; it refers to nothing but the pages of the models, if results have any. */
void tare_batch_html(struct tare_strbuf *out, const struct tare_batch_report *report);
/* Number of jobs that are not TARE_JOB_DONE; of those that have warnings. */
size_t tare_batch_failed(const struct tare_batch_report *report);
size_t tare_batch_warned(const struct tare_batch_report *report);

#endif
