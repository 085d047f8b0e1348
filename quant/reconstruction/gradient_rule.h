/* What a derivative rule sees: the node, the derivatives with respect to its outputs, and where the derivatives with
 * respect to its inputs go. */
#ifndef TARE_QUANT_RECONSTRUCTION_GRADIENT_RULE_H
#define TARE_QUANT_RECONSTRUCTION_GRADIENT_RULE_H

#include "graph/emit.h"

enum { TARE_GRADIENT_INPUTS = 16, TARE_GRADIENT_OUTPUTS = 16 };

struct tare_gradient_rule_call {
    struct tare_emit *emit;
    struct tare_node *node;
    struct tare_edge dy[TARE_GRADIENT_OUTPUTS]; /* by output; node NULL: the loss does not depend on it */
    bool wanted[TARE_GRADIENT_INPUTS];          /* by input: a wanted edge leads to it */
    struct tare_edge dx[TARE_GRADIENT_INPUTS];  /* result, by wanted input */
};

struct tare_gradient_rule {
    const char *op;
    void (*add)(struct tare_gradient_rule_call *call);
};

/* Rules, by the file that has them; each ends with a NULL op. */
extern const struct tare_gradient_rule tare_gradient_rules_elementwise[], tare_gradient_rules_array[],
    tare_gradient_rules_product[];

/* An int32 vector: the shape of x at run time. */
struct tare_edge tare_gradient_shape(struct tare_emit *emit, struct tare_edge x);
/* x with a shape that is computed at run time. */
struct tare_edge tare_gradient_reshape(struct tare_emit *emit, struct tare_edge x, struct tare_edge shape);
/* The sum of dx over the axes along which `x` was broadcast to the shape of dx, with the shape of x. */
struct tare_edge tare_gradient_unbroadcast(struct tare_emit *emit, struct tare_edge dx, struct tare_edge x);
/* A node with all attributes of the call's node that the op has as well, and T. */
struct tare_edge tare_gradient_like(struct tare_gradient_rule_call *call, const char *op,
                                    const struct tare_edge *inputs, size_t n_inputs);

#endif
