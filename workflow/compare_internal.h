/* Shared by workflow/compare*.c only. */
#ifndef TARE_WORKFLOW_COMPARE_INTERNAL_H
#define TARE_WORKFLOW_COMPARE_INTERNAL_H

#include "eval/comparison.h"
#include "workflow/compare.h"

/* Sets `refused` for combinations that are not applicable, which also
 * become skipped rows of the result. Fails when no combination is left. */
tare_status tare_workflow_compare_check(struct tare_compare_job *job) TARE_WARN_UNUSED;
/* Adds the variant to the rows that are not measured, with the reason. */
tare_status tare_workflow_compare_skip(struct tare_compare_job *job, const struct tare_variant *variant,
                                       const char *reason) TARE_WARN_UNUSED;
/* Checks the models given as folders (compare_given.c): that they open, that their signature has the inputs and
 * outputs of the float model's, and that every op has a kernel. Reads no weights. */
tare_status tare_workflow_compare_check_given(struct tare_compare_job *job) TARE_WARN_UNUSED;
/* Runs given model number `index` over the records and adds its row. */
tare_status tare_workflow_compare_run_given(struct tare_compare_job *job, size_t index) TARE_WARN_UNUSED;
/* Checks the names of --input and of --label, before anything runs. */
tare_status tare_workflow_compare_check_keys(const struct tare_compare_job *job,
                                             const struct tare_graph_model *model) TARE_WARN_UNUSED;
/* Whether a variant of the comparison needs second moments (compare_check.c). */
bool tare_workflow_compare_needs_hessians(const struct tare_compare_job *job);

/* Sets the commands of a row that build the model of the variant (compare_commands.c). */
tare_status tare_workflow_compare_commands(struct tare_comparison_row *row, struct tare_compare_job *job,
                                           const struct tare_variant *variant) TARE_WARN_UNUSED;
/* Sets the command that builds what the comparison recommends. */
tare_status tare_workflow_compare_next(struct tare_compare_job *job) TARE_WARN_UNUSED;
/* Adds the provenance of the figures to the result (compare_provenance.c); `seconds`: the time of the comparison. */
tare_status tare_workflow_compare_describe(struct tare_compare_job *job, double seconds) TARE_WARN_UNUSED;

#endif
