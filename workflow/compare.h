/* A comparison of the float model with quantized ones, from a user's request: for `tare compare` and the public API.
 * eval/comparison.h has the result and prints it. */
#ifndef TARE_WORKFLOW_COMPARE_H
#define TARE_WORKFLOW_COMPARE_H

#include "eval/evaluation.h"
#include "eval/record_store.h"
#include "eval/sensitivity.h"
#include "graph/op.h"
#include "workflow/autotune/autotune.h"
#include "workflow/quantize.h"
#include "workflow/mixed_precision_search.h"
#include "workflow/unused_records.h"

struct json_t;

/* Input of a comparison; everything is borrowed. */
struct tare_compare_task {
    const char *model;                  /* SavedModel directory */
    const char *model_name;             /* shown in reports instead of the directory; NULL: the directory */
    const struct tare_op_registry *ops; /* NULL: the built-in ones */
    const char *const *data;            /* evaluation records */
    size_t n_data;
    const char *data_name;                   /* shown in reports instead of the paths; NULL: the paths */
    const struct tare_custom_metric *metric; /* ranks the models (eval/comparison.h); NULL: the request's */
    const char *const *calibration_data;     /* representative samples … */
    size_t n_calibration_data;
    const char *calibration_data_name;    /* shown in reports instead of their paths; NULL: the paths */
    const char *calibration_file;         /* … or a calibration file … */
    struct tare_calibration *calibration; /* … or a calibration of the prepared model */
    struct tare_dataset_spec
        *spec;             /* maps records to inputs, and keeps the label and the target; NULL: records are samples */
    const char *spec_path; /* its file, for the commands of the rows; NULL: none */
    const struct tare_feedback *feedback; /* state between records; NULL: none */
    const char *output;                   /* of `tare auto`, which has the comparison as a step; NULL: none */
    bool tpu;                             /* likewise: converts */
    bool quiet;                           /* print no progress */
    bool without_layers;                  /* the result needs neither explanations of layers nor the network */
    void (*on_progress)(void *arg, const char *label, int64_t done,
                        int64_t total); /* progress callback (base/progress.h); NULL: none */
    void *progress_arg;
    const struct tare_log *log;               /* gets the warnings, which the result has, too; NULL: none */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* A comparison with the content of its reports. */
struct tare_compare_job {
    const struct tare_compare_request *options;
    const struct tare_compare_task *task;
    struct tare_quant_plan plan;      /* of all variants, opened */
    const char *methods, *algorithms; /* that are compared */
    bool has_companion;               /* the variant that computes in bfloat16 is a companion of the one before it */
    struct tare_variant_list variants;
    const char **given;  /* names of the models of options->with, as printed */
    struct tare_log log; /* of the task; keeps warnings in the result */
    struct tare_comparison result;
    struct json_t *compiled;               /* by --compile: programs, each compiled once */
    struct tare_sensitivity sensitivity;   /* if requested, and no target is */
    struct tare_autotune automatic;        /* if requested; its row is the last */
    struct tare_mixed_precision targeting; /* if a target is requested; of the first quantizing variant */
    struct tare_graph_model *loaded;       /* the model without preparation, until its row is finished */
    bool can_convert;                      /* it can be converted for the TPU */
    struct tare_variant_source source;     /* of the variants */
    struct tare_record_store records;      /* decoded once for all models, if they fit into memory */
    struct tare_evaluation evaluation;     /* its calibration is NULL if no variant needs one */
    bool owns_calibration;
    struct tare_unused_records rest; /* --rest: chooses the records */
    size_t uncalibrated;             /* variants rejected because no calibration is available */
    tare_status failure;             /* of the first variant that failed */
    const char *failure_text;
};

/* Reads the request and checks every combination; those that are not applicable become skipped rows of the result
 * (TARE_USAGE or TARE_INVALID_ARGUMENT when none is left). Release with tare_workflow_compare_close, also after a
 * failure. */
tare_status tare_workflow_compare_open(struct tare_compare_job *out, const struct tare_compare_request *options,
                                       const struct tare_compare_task *task) TARE_WARN_UNUSED;
void tare_workflow_compare_close(struct tare_compare_job *comparing);
/* Frees models and records once all is measured; what the reports show stays. */
void tare_workflow_compare_release(struct tare_compare_job *comparing);
/* Calibrates if a variant needs it, and runs float and every variant over the records. A variant that fails becomes a
 * skipped row of the result and does not fail the call: see tare_workflow_compare_failure. */
tare_status tare_workflow_compare_run(struct tare_compare_job *comparing) TARE_WARN_UNUSED;
/* The failure of the first variant that failed, with its text set; TARE_OK when all were measured. */
tare_status tare_workflow_compare_failure(const struct tare_compare_job *comparing) TARE_WARN_UNUSED;
/* Adds a written file and its hash to the provenance in the reports. */
tare_status tare_workflow_compare_add_file(struct tare_compare_job *comparing, const char *what,
                                           const char *path) TARE_WARN_UNUSED;
/* Appends a recipe: of --auto and the target if they were requested, otherwise of the first quantizing variant with the
 * `worst` most sensitive layers in float. */
struct tare_strbuf;
tare_status tare_workflow_compare_recipe(struct tare_strbuf *out, struct tare_compare_job *comparing,
                                         size_t worst) TARE_WARN_UNUSED;
/* For --dry-run: what would run, on how many records, and the estimated time and memory, measured with one batch of the
 * float model. Reads all records, writes nothing. */
tare_status tare_workflow_compare_plan(struct tare_strbuf *out, struct tare_compare_job *comparing) TARE_WARN_UNUSED;
/* The model in commands: its directory, or MODEL if reports have a name instead (model_name). */
const char *tare_workflow_model_word(const char *directory, const char *name);
/* The first applicable variant that quantizes; NULL: none. */
const struct tare_variant *tare_workflow_compare_first_quantizing(const struct tare_compare_job *comparing);

#endif
