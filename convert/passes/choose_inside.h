/* Weights that loops and branches receive from the function around them, where they were chosen from a stack. */
#ifndef TARE_CONVERT_PASSES_CHOOSE_INSIDE_H
#define TARE_CONVERT_PASSES_CHOOSE_INSIDE_H

#include "graph/calls.h"

/* Adds the call sites of a function in all graphs to *callers. */
tare_status tare_count_callers(size_t *callers, const struct tare_graph *function) TARE_WARN_UNUSED;
/* Passes one more value to the functions of a loop, which carries it unchanged, or of a branch: their last argument. */
tare_status tare_pass_value(struct tare_node *node, const struct tare_call_site *site, const char *name,
                            struct tare_edge value) TARE_WARN_UNUSED;
/* Where a loop or a branch multiplies by a weight that was chosen outside, it gets the number of the entry and chooses
 * itself: the layer of an iteration whose own loop runs over time, or which a condition guards. Counts the weights. */
tare_status tare_choose_inside(struct tare_graph_model *model, size_t *changes) TARE_WARN_UNUSED;

#endif
