/* The dimension numbers of XlaDot: which axes of the operands are batch axes, contracted or free. */
#ifndef TARE_INTERPRETER_OPS_XLA_DOT_DIMS_H
#define TARE_INTERPRETER_OPS_XLA_DOT_DIMS_H

#include "graph/op.h"

/* `batch` products of m×k and k×n matrices. */
struct tare_dot {
    int64_t batch, m, n, k;
    /* axes of the operands in the order of [batch, m, k] and [batch, k, n] */
    int lhs_order[TARE_MAX_RANK], rhs_order[TARE_MAX_RANK];
    struct tare_shape output; /* batch, free of lhs, free of rhs; unknown dimensions stay -1 */
};

/* Reads the node's dimension numbers for operands of these shapes, whose ranks are known. TARE_INVALID_ARGUMENT for
 * invalid numbers, TARE_SHAPE if the shapes do not fit them. */
tare_status tare_dot_set(struct tare_dot *dot, const struct tare_node *node, const struct tare_shape *lhs,
                         const struct tare_shape *rhs);

#endif
