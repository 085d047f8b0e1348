/* Running a stateless node, or a call of functions of such nodes, on given values, without a session: constant folding
 * and value propagation. */
#ifndef TARE_INTERPRETER_INFERENCE_EVALUATE_H
#define TARE_INTERPRETER_INFERENCE_EVALUATE_H

#include "graph/op.h"

/* True when the node has a kernel, and its outputs depend on its inputs alone (no state, no functions, no resources).
 */
bool tare_node_is_pure(const struct tare_node *node);
/* Runs the kernel of a pure node. `outputs` (node->n_outputs, zeroed) are the caller's to reset; all zero on failure.
 */
tare_status tare_node_evaluate(const struct tare_node *node, const struct tare_tensor *inputs,
                               struct tare_tensor *outputs);
/* The same for calls, branches and loops all of whose nodes are pure. Not *done, with outputs that are all zero: it
 * takes too many steps. */
bool tare_call_is_pure(const struct tare_node *node);
tare_status tare_call_evaluate(bool *done, const struct tare_node *node, const struct tare_tensor *inputs,
                               struct tare_tensor *outputs);
/* Whether a node is one or the other. */
bool tare_node_is_computable(const struct tare_node *node);
/* The value of an edge that such nodes compute from constants and from edges with given values, one element each. Not
 * *done: it depends on others, or takes too many steps. */
tare_status tare_edge_evaluate(bool *done, struct tare_tensor *out, struct tare_edge edge,
                               const struct tare_edge *given, const struct tare_tensor *values, size_t n_given);

#endif
