/* Turning float32 computation into bfloat16. */
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

struct tare_bfloat16_options {
    bool skip_safety_checks;      /* a model that computes in bfloat16 already is taken, too */
    const char *const *float_ops; /* ops that stay in float32 (the filterlist); "tf." before a name is allowed */
    size_t n_float_ops;
    bool rounds_outputs;              /* also final probabilities, their logits, and what ArgMax and TopK order */
    struct tare_bf16_kept_list *kept; /* gets what stays float32 for the sake of exact values; NULL: not needed */
    /* Told of a variable's float32 value that is not needed any more: its pages may go. NULL: nobody is told. */
    void (*forget)(const struct tare_tensor *value);
};

/* Turns the float32 computation of `graphs` and of what they call into bfloat16: arguments and returns of `graphs` (of
 * the main graph: of the signatures) stay float32, with one Cast each; inner functions change their signature, a copy
 * of them where somebody else calls them, too. A variable that is read as bfloat16 only, wherever the model's
 * signatures and aliases lead, becomes bfloat16 itself (its value, handle and reads); others stay float32 and are cast
 * behind their reads.
 *
 * In float32 stay: ops whose definition allows no bfloat16, those of the filterlist, random and other stateful ops, the
 * statistics of FusedBatchNorm, values that must stay exact (tpu/exact_values.h), also as arguments and returns of
 * inner functions, and arithmetic that quantizes to 8 bits or dequantizes integer products: rounding indices or scales
 * to 8 bits of precision would change results, not just their last digits. Constants are rounded to nearest even; a
 * finite constant stays finite.
 *
 * Adds the number of nodes that changed to *changes. TARE_INVALID_ARGUMENT for bfloat16 in the input (unless
 * skip_safety_checks) and for unknown names in the filterlist. */
tare_status tare_tpu_bfloat16(struct tare_model *model, struct tare_graph *const *graphs, size_t n_graphs,
                              const struct tare_bfloat16_options *options, size_t *changes);

#endif
