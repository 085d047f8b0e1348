/* Finds the float values that a bfloat16 conversion must not round, because results would change by more than rounding
 * errors. */
#ifndef TARE_TPU_EXACT_VALUES_H
#define TARE_TPU_EXACT_VALUES_H

#include "graph/model.h"

/* Values that stay exact:
 *  - values that become an integer of more than 8 bits: an index, a count, a hash, a position;
 *  - inputs of ops whose result changes by steps (Bucketize, Range), and operands of comparisons with integers that
 *    come from inputs by arithmetic alone;
 *  - values that cross to functions outside of the conversion (from TPU to CPU) and are compared, looked up, printed or
 * converted to integers there;
 *  - logits that ArgMax, TopK and the like order, and final probabilities with their logits: bfloat16 has 8 bits of
 *    precision, so that many classes would tie.
 * From these values the analysis propagates backward through elementwise arithmetic, moves, reductions, calls,
 * branches, loops and lists. It stops at inputs and constants, and at any other op (a matrix product, a pooling), whose
 * result stays exact but whose operands need not. */
struct tare_exact_values;

struct tare_exact_options {
    struct tare_graph *const *converted; /* graphs that are about to be converted; others run as they are */
    size_t n_converted;
    struct tare_graph *const *placed; /* functions whose returns count as final results, besides the signatures' */
    size_t n_placed;
    bool rounds_outputs; /* logits, probabilities and operands of ArgMax and TopK may be rounded */
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
/* Whether elements of some list must stay exact. */
bool tare_exact_has_lists(const struct tare_exact_values *values);

#endif
