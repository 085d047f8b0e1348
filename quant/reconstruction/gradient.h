/* Derivatives of a graph, as nodes added to it: reverse-mode differentiation with the derivative ops of the
 * interpreter (Conv2DBackpropFilter, ReluGrad, MaxPoolGrad …), one rule per op. */
#ifndef TARE_QUANT_RECONSTRUCTION_GRADIENT_H
#define TARE_QUANT_RECONSTRUCTION_GRADIENT_H

#include "graph/graph.h"

/* A value with a derivative of its own, instead of that of the node that computes it: a rounding step, whose derivative
 * is `pass` (a bool tensor of the shape of `of`) with respect to `of`. */
struct tare_gradient_step {
    struct tare_edge value, of, pass;
};

struct tare_gradient_task {
    struct tare_graph *graph;               /* its nodes are in an order in which inputs come first */
    const struct tare_edge *values, *seeds; /* outputs y, and the derivatives of the loss with respect to them */
    size_t n_values;
    const struct tare_edge *wanted; /* x: the derivatives of the loss with respect to them are returned */
    size_t n_wanted;
    const struct tare_gradient_step *steps;
    size_t n_steps;
};

/* Adds the nodes. gradients[i].node is NULL if no output depends on wanted[i]. *unsupported: the name of the first op
 * without a rule on a path from a wanted edge to an output (the gradients are then unusable); NULL: none. */
tare_status tare_gradient_add(struct tare_edge *gradients, const char **unsupported,
                              const struct tare_gradient_task *task) TARE_WARN_UNUSED;

/* True if there is a rule for the op. */
bool tare_gradient_has_rule(const char *op);

#endif
