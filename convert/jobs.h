/* The jobs of `tare batch`: from a job file, or from a folder of models and a list of methods. */
#ifndef TARE_CONVERT_JOBS_H
#define TARE_CONVERT_JOBS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_job_limits {
    double max_drop;        /* points; < 0: none */
    double min_sqnr_db;     /* -HUGE_VAL: none */
    int64_t max_size_bytes; /* < 0: none */
    double max_mae;         /* < 0: none */
    double margin;          /* points; < 0: none */
    int chip;               /* 0: any; otherwise 1 + index into tare_tpu_chips: must compile for it, and fit */
    int64_t chip_batch;     /* at least 1 */
    double max_time;        /* times that of float on the chip; < 0: none */
};

struct tare_text_list {
    const char *const *items;
    size_t count;
};

/* One output model. Paths are resolved; NULL or empty: not set. */
struct tare_job {
    const char *name, *model, *output;
    const char *method, *algorithm; /* NULL: none is named */
    struct tare_text_list plan;     /* method, algorithm and recipe as words for the command */
    bool converts;                  /* by `tare convert`; else by `tare quantize` */
    const char *recipe, *converter_options, *converter_options_file;
    struct tare_text_list arguments; /* further words for the command */
    struct tare_text_list data;
    const char *calibration, *signature, *spec;
    struct tare_text_list evaluation;
    const char *label, *target, *metric;
    int64_t evaluation_limit;
    struct tare_job_limits limits;
    bool keep_rejected;
};

struct tare_jobs {
    struct tare_job *jobs; /* arena memory */
    size_t count;
};

/* Reads a job file (proto/tare/batch.proto in text). Errors name file, position and job. */
tare_status tare_jobs_read(struct tare_jobs *out, struct tare_arena *arena, const char *path) TARE_WARN_UNUSED;

/* The common settings of jobs generated from a folder; strings may contain the placeholders of a job file. */
struct tare_jobs_of_folder {
    const char *folder;         /* each folder in it that holds a SavedModel is one model */
    const char *const *methods; /* ends with NULL */
    struct tare_job common;     /* name, model and method are set by the function */
};
/* Models in the order of their names, methods in the order given. TARE_NOT_FOUND if the folder contains no model. */
tare_status tare_jobs_of_folder(struct tare_jobs *out, struct tare_arena *arena,
                                const struct tare_jobs_of_folder *from) TARE_WARN_UNUSED;

#endif
