/* Running one stateless node on given values, without a session: constant folding and value propagation. */
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

#endif
