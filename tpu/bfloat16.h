/* Conversion of float32 computation to bfloat16. */
#ifndef TARE_TPU_BFLOAT16_H
#define TARE_TPU_BFLOAT16_H

#include "graph/model.h"

/* A node, or an argument of a function (op "_Arg"), that stays float32 though its op has a bfloat16 form, and why. */
struct tare_bf16_kept {
    const char *function; /* "": the main graph */
    const char *node, *op;
    const char *reason; /* "becomes an integer (Cast 'x' in f)" */
};

struct tare_bf16_kept_list {
    struct tare_arena *arena; /* of items and reasons */
    struct tare_bf16_kept *items;
    size_t count;
};

/* Which values a conversion rounds, as --bfloat16 names them. */
enum tare_bf16_extent {
    TARE_BF16_CHECKED,  /* those that the analysis finds safe; a caller with samples checks the outputs */
    TARE_BF16_ANALYSIS, /* the same without a check */
    TARE_BF16_ALL,      /* all but integers, ranks and final probabilities */
};

/* A node that stays float32 with the arithmetic before it, because a check has shown that rounding changes outputs. */
struct tare_bf16_node {
    const char *function; /* as tare_graph_body_name returns it; "": the main graph */
    const char *node;
};

struct tare_bfloat16_options {
    bool skip_safety_checks; /* a model that computes in bfloat16 already is taken, too */
    /* Receives a node that is bfloat16 already ("function f: node 'x' (Cast)"; memory of the model); graphs with one
     * are left unchanged. NULL: they are an error. */
    const char **found;
    const char *const *float_ops; /* ops that stay in float32 (the filterlist) */
    size_t n_float_ops;
    bool rounds_outputs;    /* round final probabilities, their logits and the operands of ArgMax and TopK as well */
    bool rounds_magnitudes; /* only integers, ranks and final probabilities stay exact, whatever depends on sizes */
    const struct tare_bf16_node *nodes; /* of which the values and the products before them stay float32 */
    size_t n_nodes;
    struct tare_bf16_kept_list *kept; /* receives the nodes that stay float32 for exact values; NULL: not needed */
    /* Called with a variable's float32 value when it is no longer needed: its pages may be released. May be NULL. */
    void (*forget)(const struct tare_tensor *value);
};

/* Converts the float32 computation of `graphs` and of the functions that they call to bfloat16. Arguments and returns
 * of `graphs` (of the main graph: of the signatures) stay float32, with one Cast each; inner functions change their
 * signature, or a copy does where others call them as well. A variable that is read only as bfloat16, by everything
 * that signatures and aliases reach, becomes bfloat16 itself (its value, handle and reads); others stay float32 and are
 * cast after each read.
 *
 * In float32 stay: ops whose definition allows no bfloat16, those of the filterlist, random and other stateful ops, the
 * statistics of FusedBatchNorm, values that must stay exact (tpu/exact/values.h), also as arguments and returns of
 * inner functions, and arithmetic that quantizes to 8 bits or dequantizes integer products: rounding indices or scales
 * to 8 bits of precision would change results, not just their last digits. Constants are rounded to nearest even; a
 * finite constant stays finite.
 *
 * Adds the number of nodes that changed to *changes. TARE_INVALID_ARGUMENT for bfloat16 in the input (unless
 * `skip_safety_checks` or `found`) and for unknown names in the filterlist. */
tare_status tare_tpu_bfloat16(struct tare_graph_model *model, struct tare_graph *const *graphs, size_t n_graphs,
                              const struct tare_bfloat16_options *options, size_t *changes);

#endif
