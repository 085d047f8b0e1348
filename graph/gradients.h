/* Custom gradients (tf.custom_gradient) of a model whose variables are kept, so that a loader can train it.
 *
 * A node with the attribute `_gradient_op_type`, mostly an IdentityN, has the gradient that the library registers for
 * that type: a function that captures values inside the function of the node, and variables. Where nothing is trained
 * (`keep_gradients` is false) the nodes only pass values on, and prune.c removes them. */
#ifndef TARE_GRAPH_GRADIENTS_H
#define TARE_GRAPH_GRADIENTS_H

#include "graph/model.h"

/* Adds an Identity for each captured value, which is kept like a result of its function (model->captured). To be called
 * before nodes are removed; again without effect. */
tare_status tare_model_keep_captured(struct tare_graph_model *model);
/* Whether the node keeps its own gradient: the model keeps gradients, and what the gradient captures exists. A type
 * without a gradient in the file counts: for it, loaders report an error instead of another gradient. */
bool tare_node_keeps_gradient(const struct tare_node *node);
/* The gradient function of a node that keeps it; NULL: none. */
struct tare_graph *tare_node_gradient(const struct tare_node *node);
/* Whether a node of the function keeps its gradient, which captures values of this function and not of a copy. */
bool tare_graph_keeps_gradients(const struct tare_graph *function);
/* Whether it is the Identity of a captured value. */
bool tare_node_is_captured(const struct tare_node *node);
/* The captured value that an object stands for; NULL: none, or it was removed. */
const struct tare_captured_tensor *tare_model_find_captured(const struct tare_graph_model *model, int object_id);
/* After a function's nodes were moved to `to`, where they have the same names. */
void tare_captured_moved(const struct tare_graph *from, const struct tare_graph *to);
/* Removes the types of nodes of `copy`, a copy of `from`, whose gradients capture values of `from`: they have the
 * gradient of what they compute. */
void tare_gradients_drop_copied(const struct tare_graph *copy, const struct tare_graph *from);

#endif
