/* Accuracy comparison: the float model and quantized ones on the same records. */
#ifndef TARE_COMPARE_H
#define TARE_COMPARE_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the float model and each quantized one over the records of `paths`, with or without labels. `calibration`: of
 * this model, or NULL if no method needs one. `options`: the options of `tare compare`, written as in calibration.h:
 * "methods=static,weight_only algorithms=min_max,mse label=class", "sensitivity". *json is the output of `tare compare
 * --json` (docs/json.md; release: tare_text_free). */
TARE_API TARE_CHECKED tare_status tare_model_compare(char **json, const tare_model *model, const char *const *paths,
                                                     size_t n_paths, const tare_calibration *calibration,
                                                     const char *options);

/* A metric of the caller, by which the models are then ranked and plotted. It has no interval: the recommendation
 * uses the SQNR against the float model. */
typedef struct tare_metric {
    size_t struct_size;      /* sizeof(tare_metric) */
    const char *name;        /* of columns and axes: "mean IoU" */
    int32_t lower_is_better; /* 1: the smallest value is the best */
    void *arg;               /* first argument of the functions */
    /* Called before the records of each model. May be NULL. */
    tare_status (*begin)(void *arg);
    /* Called for each record, in the order of the data: the outputs of the signature, and the n arrays of the
     * record, labels included. All are valid during the call. */
    tare_status (*record)(void *arg, const tare_array *outputs, size_t n_outputs, const tare_array *record, size_t n);
    /* Called after the last record of each model: sets its value; NaN if it has none. */
    tare_status (*end)(void *arg, double *value);
    /* The functions run on any thread of the library, never concurrently, and may not call it. Another status than
     * TARE_OK ends the comparison with that status. */
    uint64_t reserved[4]; /* zero. For members of later versions */
} tare_metric;

/* What to compare with. Zero it, then set struct_size and what is needed. */
typedef struct tare_comparison_task {
    size_t struct_size;                  /* sizeof(tare_comparison_task) */
    const char *const *paths;            /* evaluation data: files or patterns … */
    size_t n_paths;                      /* number of paths */
    const tare_records *records;         /* … or records of the caller, which are kept in a temporary file in $TMPDIR,
                                            else /tmp, because each model reads them; NULL: paths */
    const tare_calibration *calibration; /* of this model; NULL if no method needs one. Not used after the call */
    const tare_metric *metric;           /* NULL: a built-in one (option "metric") */
    const char *options;                 /* as for tare_model_compare */
    const char *const *samples;          /* instead of `calibration`, representative samples to calibrate with, which
                                            the option "auto" needs: files or patterns … */
    size_t n_samples;                    /* number of samples */
    const tare_records *sample_records;  /* … or records of the caller, kept like `records`; NULL: samples */
    uint64_t reserved[1];                /* zero. For members of later versions */
} tare_comparison_task;

/* Thread-safe: it does not change. */
typedef struct tare_comparison_handle tare_comparison;

/* Runs the comparison. Release *out with tare_comparison_close. */
TARE_API TARE_CHECKED tare_status tare_comparison_open(tare_comparison **out, const tare_model *model,
                                                       const tare_comparison_task *task);
/* Frees the comparison. No-op if NULL. */
TARE_API void tare_comparison_close(tare_comparison *comparison);

enum tare_comparison_format {
    TARE_COMPARISON_JSON = 1,      /* as `tare compare --json` (docs/json.md) */
    TARE_COMPARISON_HTML = 2,      /* one page with plots and tables, without external references */
    TARE_COMPARISON_CSV = 3,       /* one line per model */
    TARE_COMPARISON_TEXT = 4,      /* the tables and the recommendation, as printed by `tare compare` */
    TARE_COMPARISON_NODE_DATA = 5, /* the error of each layer for Model Explorer, as `--node-data` */
};
/* Returns the report in a format of enum tare_comparison_format. Release *text with tare_text_free. */
TARE_API TARE_CHECKED tare_status tare_comparison_report(char **text, const tare_comparison *comparison, int format);

#ifdef __cplusplus
}
#endif

#endif
