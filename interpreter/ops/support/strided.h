/* The slice specification of StridedSlice: five bit masks and three vectors, reduced to a start, a step and a count
 * for each input dimension, and the shape of the result. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_STRIDED_H
#define TARE_INTERPRETER_OPS_SUPPORT_STRIDED_H

#include "graph/op.h"

struct tare_strided {
    int rank;                     /* of the sliced tensor */
    int64_t start[TARE_MAX_RANK]; /* first element; meaningless where counts is -1 */
    int64_t step[TARE_MAX_RANK];  /* not 0 */
    struct tare_shape counts;     /* elements a dimension; -1: not known */
    struct tare_shape result;     /* counts without shrunk dimensions, with new ones */
    int origin[TARE_MAX_RANK];    /* the sliced tensor's dimension for each of the result's; -1: a new one */
};

/* Reads the masks of `node`. `begin`, `end`, `strides` are vectors of one length; NULL where values are not known (then
 * `length`, which may not be -1 unless all are NULL, is the number of entries). A sliced tensor of unknown
 * rank, or an unknown length, makes the result's rank unknown. Error texts are TensorFlow's. */
tare_status tare_strided_make(struct tare_strided *out, const struct tare_node *node, const struct tare_shape *in,
                              const struct tare_tensor *begin, const struct tare_tensor *end,
                              const struct tare_tensor *strides, int64_t length);

#endif
