/* Comparing float with quantized models as users put it: the options as rows, for `tare compare` and for the texts of
 * the public functions, and the work that follows from them. What is printed of it is eval/comparison.h's. */
#ifndef TARE_WORKFLOW_COMPARE_H
#define TARE_WORKFLOW_COMPARE_H

#include "eval/comparison.h"
#include "eval/sensitivity.h"
#include "eval/variant.h"
#include "graph/op.h"
#include "workflow/autotune.h"
#include "workflow/quantize.h"
#include "workflow/mixed_precision_search.h"

/* What is compared; everything is borrowed. */
struct tare_compare_task {
    const char *model;                  /* SavedModel directory */
    const struct tare_op_registry *ops; /* that it is opened with; NULL: the built-in ones */
    const char *const *data;            /* records to measure with */
    size_t n_data;
    const char *const *calibration_data; /* representative samples … */
    size_t n_calibration_data;
    const char *calibration_file;         /* … or a calibration file … */
    struct tare_calibration *calibration; /* … or a calibration of the prepared model */
    const struct tare_dataset_spec *spec; /* what records become; NULL: they are samples */
    bool quiet;                           /* no progress on standard error */
    void (*on_progress)(void *arg, const char *label, int64_t done,
                        int64_t total); /* of progress (base/progress.h); NULL: not */
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* A comparison with all that its reports show. */
struct tare_compare_job {
    const struct tare_compare_request *options;
    const struct tare_compare_task *task;
    struct tare_variant_list variants;
    struct tare_comparison result;
    struct tare_sensitivity sensitivity;   /* when asked for, and no target is */
    struct tare_autotune automatic;        /* when asked for; its row is the last */
    struct tare_mixed_precision targeting; /* when a target is given; of the first method that quantizes */
    struct tare_runner_options runner;
    struct tare_calibration *calibration; /* in use; NULL: no method asks for one */
    bool owns_calibration;
};

/* Reads the options and checks what cannot go together. End with tare_workflow_compare_close, also after a failure. */
tare_status tare_workflow_compare_open(struct tare_compare_job *out, const struct tare_compare_request *options,
                                       const struct tare_compare_task *task) TARE_WARN_UNUSED;
void tare_workflow_compare_close(struct tare_compare_job *comparing);
/* Calibrates when a method asks for it, and runs float and every variant over the records. */
tare_status tare_workflow_compare_run(struct tare_compare_job *comparing) TARE_WARN_UNUSED;
/* Notes a file that was written of the comparison, with its hash, among what the reports say of its making. */
tare_status tare_workflow_compare_add_file(struct tare_compare_job *comparing, const char *what,
                                           const char *path) TARE_WARN_UNUSED;
/* Instead of that: what would run, on how many records, and the time and memory that it would take by one batch of the
 * float model. Reads all records, writes nothing. */
struct tare_strbuf;
tare_status tare_workflow_compare_plan(struct tare_strbuf *out, struct tare_compare_job *comparing) TARE_WARN_UNUSED;
/* The first variant that quantizes; NULL: none does. */
const struct tare_variant *tare_workflow_compare_first_quantizing(const struct tare_compare_job *comparing);

#endif
