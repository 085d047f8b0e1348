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

/* Bytes for activations that models share (--sensitivity-memory); -1: every model runs completely. */
int64_t tare_workflow_compare_memory(const struct tare_compare_request *options);

/* A variant's model and, once it has run with others, its figures. Initialise with zeros. */
struct tare_made_variant {
    struct tare_graph_model *model; /* NULL: not made */
    struct tare_quant_report report;
    struct tare_arena arena; /* of the report */
    bool measured;           /* `pass` is complete */
    struct tare_comparison_pass pass;
    double seconds; /* of its runs */
};

/* Makes the model of a variant, unless it is made. */
tare_status tare_workflow_compare_make(struct tare_made_variant *made, struct tare_compare_job *job,
                                       const struct tare_variant *variant) TARE_WARN_UNUSED;
void tare_workflow_compare_drop(struct tare_made_variant *made);
/* Runs the variants that share costly first layers, from the layers at which they differ (compare_shared.c), and sets
 * `measured` of them; made[i] is of variant i. Others, and all of them where that fails, are run one by one later. The
 * caller drops `made`, also after a failure. */
tare_status tare_workflow_compare_share(struct tare_made_variant *made, struct tare_compare_job *job) TARE_WARN_UNUSED;
/* Sets the commands of a row that build the model of the variant (compare_commands.c). */
tare_status tare_workflow_compare_commands(struct tare_comparison_row *row, struct tare_compare_job *job,
                                           const struct tare_variant *variant) TARE_WARN_UNUSED;
/* Sets the command that builds what the comparison recommends. */
tare_status tare_workflow_compare_next(struct tare_compare_job *job) TARE_WARN_UNUSED;
/* Adds the provenance of the figures to the result (compare_provenance.c); `seconds`: the time of the comparison. */
tare_status tare_workflow_compare_describe(struct tare_compare_job *job, double seconds) TARE_WARN_UNUSED;

#endif
