/* Convolutions with arbitrary dimension order (XLA's form): converts operands to channels-last and results back. */
#ifndef TARE_INTERPRETER_OPS_XLA_GENERAL_CONV_H
#define TARE_INTERPRETER_OPS_XLA_GENERAL_CONV_H

#include "interpreter/kernels/conv.h"
#include "interpreter/ops/support/dims_wire.h"

#include "base/arena.h"

enum { TARE_MOST_SPATIAL = 3 };

/* Window parameters for each spatial dimension. */
struct tare_conv_windows {
    int64_t stride[TARE_MOST_SPATIAL], lhs_dilation[TARE_MOST_SPATIAL], rhs_dilation[TARE_MOST_SPATIAL];
    int64_t pad[TARE_MOST_SPATIAL][2]; /* may be negative */
    int64_t groups;
};

struct tare_general_conv {
    struct tare_conv conv; /* channels-last; spatial dimensions occupy the last of its three axes */
    int rank;
    int lhs_order[5], rhs_order[5]; /* operand axes of [batch, spatial…, feature] and [spatial…, in, out] */
    int output_order[5];            /* output axes of [batch, spatial…, feature] */
    struct tare_shape output;
};

tare_status tare_general_conv_set(struct tare_general_conv *general, const struct tare_conv_dims *dims,
                                  const struct tare_conv_windows *windows, const struct tare_shape *lhs,
                                  const struct tare_shape *rhs);
/* Computes the padding of "SAME" for one dimension. */
void tare_conv_same_padding(int64_t pad[2], int64_t in, int64_t kernel, int64_t stride, int64_t lhs_dilation,
                            int64_t rhs_dilation);

/* Returns the elements of an array in the given axis order: the array itself, or a copy in scratch. NULL: no memory. */
const void *tare_in_order(struct tare_arena *scratch, const void *data, size_t element_size,
                          const struct tare_shape *shape, const int *order);
/* Stores the channels-last result in the output's axis order; no operation if they are equal (`to` == `from`). */
void tare_general_conv_store(const struct tare_general_conv *general, void *to, const void *from, size_t element_size);
/* True if the channels-last result is the output, so that it may be computed in place. */
bool tare_general_conv_is_stored(const struct tare_general_conv *general);

#endif
