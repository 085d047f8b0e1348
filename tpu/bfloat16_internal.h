/* Shared by the files of the bfloat16 pass. */
#ifndef TARE_TPU_BFLOAT16_INTERNAL_H
#define TARE_TPU_BFLOAT16_INTERNAL_H

#include "graph/op.h"
#include "tpu/bfloat16.h"
#include "tpu/closure.h"
#include "tpu/exact/values.h"

/* How a node is converted. */
enum tare_bf16_choice {
    TARE_BF16_KEEP,     /* stays as it is */
    TARE_BF16_CONVERT,  /* computes in bfloat16 */
    TARE_BF16_FLEXIBLE, /* moves or creates values: follows its neighbours */
    TARE_BF16_CONST,    /* a float32 constant: each user gets the dtype that it expects */
    TARE_BF16_CALL,     /* calls a function; its types are the function's */
};

/* One graph being converted. */
struct tare_bf16_job {
    struct tare_arena *arena;
    struct tare_graph *graph;
    const struct tare_bfloat16_options *options;
    const struct tare_exact_values *exact;
    bool lists;     /* elements of TensorLists become bfloat16 */
    size_t n_nodes; /* nodes that were there before the pass: the arrays below are of these */
    enum tare_bf16_choice *choices;
    int **wanted_dtypes; /* that each input must have, by node position */
    size_t changes;
};

/* tpu/bfloat16_choice.c: fills job->choices. */
tare_status tare_bf16_choose(struct tare_bf16_job *job);
/* True for an op that the filterlist names. */
bool tare_bf16_is_filtered(const struct tare_bfloat16_options *options, const char *op);
/* tpu/bfloat16_exact.c: sets exact[position] for nodes whose arithmetic ends in integers or dequantizes them. */
tare_status tare_bf16_mark_exact(bool **exact, struct tare_arena *arena, const struct tare_graph *graph);
/* tpu/bfloat16_signatures.c: arguments and returns of inner functions become bfloat16, before the bodies are rewritten.
 */
tare_status tare_bf16_change_signatures(struct tare_arena *arena, const struct tare_tpu_member *members, size_t count,
                                        const struct tare_exact_values *exact);
/* tpu/bfloat16_rewrite.c: changes attributes, constants and edges by job->choices. */
tare_status tare_bf16_rewrite(struct tare_bf16_job *job);
/* tpu/bfloat16_round.c: a bfloat16 copy of a float32 tensor, rounded to nearest even; finite values stay finite. */
tare_status tare_bf16_round(struct tare_tensor *out, const struct tare_tensor *tensor);
/* tpu/bfloat16_variables.c: after every job was rewritten, variables that are read as bfloat16 only become so. Adds the
 * variables and reads that changed to *count. */
tare_status tare_bf16_variables(const struct tare_bf16_job *jobs, size_t n_jobs, struct tare_graph_model *model,
                                const struct tare_bfloat16_options *options, size_t *count);
/* True for a function call whose function the pass converts together with the caller. */
bool tare_bf16_follows(const struct tare_node *node);

#endif
