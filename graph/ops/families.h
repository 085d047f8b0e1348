/* The op families: each is a file graph/ops/<family>.c that defines `const struct tare_op tare_ops_<family>[]`, ended
 * by a row without name. Sorted, one a line. */
#ifndef TARE_GRAPH_OPS_FAMILIES_H
#define TARE_GRAPH_OPS_FAMILIES_H

#include "graph/op.h"

/* clang-format off */
#define TARE_OP_FAMILIES(X) \
    X(bias) \
    X(conv) \
    X(crop) \
    X(einsum) \
    X(image) \
    X(matmul) \
    X(nms) \
    X(norm) \
    X(pool) \
    X(quantize) \
    X(resize) \
    X(rnn) \
    X(uniform_quantized) \
    X(xla)
/* clang-format on */

#define X(family) extern const struct tare_op tare_ops_##family[];
TARE_OP_FAMILIES(X)
#undef X

#endif
