/* Finds the float values that a bfloat16 conversion must not round, because results would change by more than rounding
 * errors. */
#ifndef TARE_TPU_EXACT_VALUES_H
#define TARE_TPU_EXACT_VALUES_H

#include "tpu/bfloat16.h"

/* The kinds of values that stay exact are the table in tpu/exact/kinds.c, and outputs (tpu/exact/results.c). From them
 * the analysis propagates backward through elementwise arithmetic, moves, reductions, calls, branches, loops and lists.
 * It stops at inputs and constants, and at products: those compute in bfloat16, unless the kind needs their results in
 * float32 as well. Arithmetic on exact values alone is exact up to the next product. */
struct tare_exact_values;

struct tare_exact_options {
    struct tare_graph *const *converted; /* graphs that are about to be converted; others run as they are */
    size_t n_converted;
    struct tare_graph *const *placed; /* functions whose returns count as final results, besides the signatures' */
    size_t n_placed;
    bool rounds_outputs;                /* logits, probabilities and operands of ArgMax and TopK may be rounded */
    const struct tare_bf16_node *nodes; /* found by a check (tpu/bfloat16.h) */
    size_t n_nodes;
    bool rounds_magnitudes; /* only integers, ranks and final probabilities stay exact */
};

/* Analyses the whole model. The result is arena memory, but for maps, which tare_exact_values_free releases. */
tare_status tare_exact_values_find(struct tare_exact_values **out, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_exact_options *options);
void tare_exact_values_free(struct tare_exact_values *values); /* NULL: nothing */

/* Why the value must stay exact, in words ("becomes an integer (Cast 'x' in f)"); NULL: it may be rounded. */
const char *tare_exact_edge(const struct tare_exact_values *values, struct tare_edge edge);
/* The same for any output of a node, or for a node that uses exact values and must keep their dtype. */
const char *tare_exact_node(const struct tare_exact_values *values, const struct tare_node *node);
/* The same for a function's return: callers need it exact. */
const char *tare_exact_return(const struct tare_exact_values *values, const struct tare_graph *graph, size_t i);
/* Whether the value is an input that is added to computed values, such as a mask: it may be beyond the range of
 * bfloat16, and must be limited to it when it is rounded. */
bool tare_exact_needs_limits(const struct tare_exact_values *values, struct tare_edge edge);
/* Whether elements of some list must stay exact. */
bool tare_exact_has_lists(const struct tare_exact_values *values);

#endif
