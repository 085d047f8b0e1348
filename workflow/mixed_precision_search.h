/* Mixed precision to a target, as users put it: options as rows, for `tare compare` and `tare quantize`, and the search
 * on a real model. */
#ifndef TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H
#define TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H

#include "eval/target.h"
#include "workflow/requests.h"

/* Some target is given. */
bool tare_workflow_mixed_precision_requested(const struct tare_mixed_precision_request *options);

/* What is searched; everything is borrowed. */
struct tare_mixed_precision_task {
    const struct tare_mixed_precision_request *options;
    const char *model;                    /* SavedModel directory */
    const struct tare_op_registry *ops;   /* NULL: the built-in ones */
    const struct tare_variant *variant;   /* what layers become that are quantized */
    struct tare_calibration *calibration; /* NULL where the variant needs none */
    const char *signature, *label;
    const struct tare_runner_options *runner; /* records that finalists are measured with */
    int64_t sensitivity_limit;                /* of them for the sensitivity */
    int64_t sensitivity_memory;               /* of struct tare_sensitivity_task */
    int threads;
    bool quiet;
};

struct tare_mixed_precision {
    struct tare_sensitivity sensitivity; /* of the variant */
    struct tare_target_result result;
};

/* `sensitivity`, of the variant, is taken over unless NULL; else it is measured. `out` is the caller's to end with
 * tare_workflow_mixed_precision_close, also after a failure. A target that no mix meets is no failure: result.chosen is
 * NULL. */
tare_status tare_workflow_mixed_precision_run(struct tare_mixed_precision *out,
                                              const struct tare_mixed_precision_task *task,
                                              struct tare_sensitivity *sensitivity) TARE_WARN_UNUSED;
void tare_workflow_mixed_precision_close(struct tare_mixed_precision *targeting);
/* TARE_NOT_FOUND with the best that is reached, where no mix meets the target. */
tare_status tare_workflow_mixed_precision_check(const struct tare_mixed_precision *targeting) TARE_WARN_UNUSED;

#endif
