/* Search for a mix of precisions that meets a target, for `tare compare` and `tare quantize`. */
#ifndef TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H
#define TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H

#include "eval/target.h"
#include "workflow/requests.h"

/* Whether a target is given. */
bool tare_workflow_mixed_precision_requested(const struct tare_mixed_precision_request *options);
/* Before the model is loaded: TARE_USAGE for a target that is not a number, or not a size. */
tare_status tare_workflow_mixed_precision_open(const struct tare_mixed_precision_request *options) TARE_WARN_UNUSED;

/* Input of the search; everything is borrowed. */
struct tare_mixed_precision_task {
    const struct tare_mixed_precision_request *options;
    const struct tare_evaluation *evaluation;
    const struct tare_variant *variant;  /* settings of the quantized layers */
    const struct tare_comparison *known; /* see tare_evaluate_float */
    int64_t sensitivity_limit;           /* number of the records for the sensitivity */
};

struct tare_mixed_precision {
    struct tare_sensitivity sensitivity; /* of the variant */
    struct tare_sensitivity steps;       /* of the search: workflow/precision_levels.h */
    struct tare_target_result result;
};

/* Release `out` with tare_workflow_mixed_precision_close, also after a failure. If no mix meets the target, returns
 * TARE_OK with result.chosen NULL. */
tare_status tare_workflow_mixed_precision_run(struct tare_mixed_precision *out,
                                              const struct tare_mixed_precision_task *task) TARE_WARN_UNUSED;
void tare_workflow_mixed_precision_close(struct tare_mixed_precision *targeting);
/* TARE_NOT_FOUND with the best value reached, if no mix meets the target. */
tare_status tare_workflow_mixed_precision_check(const struct tare_mixed_precision *targeting) TARE_WARN_UNUSED;

/* Adds the rules of the chosen mix to the plan of the variant. Memory is from the arena. */
tare_status tare_workflow_mixed_precision_apply(struct tare_quant_plan *plan, struct tare_arena *arena,
                                                const struct tare_mixed_precision *targeting) TARE_WARN_UNUSED;

#endif
