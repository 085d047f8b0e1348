/* The description of a layer as a convolution or product of the XLA op set: see quant/product.h, which computes it. */
#ifndef TARE_QUANT_PRODUCT_FORM_H
#define TARE_QUANT_PRODUCT_FORM_H

#include "graph/graph.h"
#include "interpreter/ops/support/dims_wire.h"
#include "quant/method.h"

/* Explicit padding of one spatial dimension (negative: elements are cut off), and the number of its elements that a
 * filter spans. Between two elements of the input are base - 1 zeros. */
struct tare_spatial {
    int64_t stride, dilation, low, high, reach, base;
};

enum { TARE_MOST_WINDOW = 3 };

struct tare_quant_product {
    enum tare_quant_kind kind;

    /* Convolutions. */
    int spatial;                /* dimensions of the window: 1 to 3; 0: no convolution */
    struct tare_conv_dims dims; /* of the activation and the raw result; the kernel's are those of `arranged` */
    struct tare_spatial window[TARE_MOST_WINDOW];
    bool pads_late; /* SAME padding with a stride, of a size known only at run time: low and high are not set */
    int64_t groups; /* of input channels, each with filters of its own */
    bool one_place; /* image and window have one element in each spatial dimension, and channels are last: the product
                     * of the channels */

    /* Products of arrays. Broadcasting is done first: a batch axis that may have one element at run time is broadcast
     * to the other operand's size (0: no broadcast), and an axis known to have one element is removed, which makes the
     * other operand's axis free. The axes below are the remaining ones; the raw result has the axes batch, free of the
     * left operand, free of the right operand. */
    int64_t spread_left[TARE_MAX_RANK], spread_right[TARE_MAX_RANK]; /* by axis of the operand as it comes */
    bool spreads_left, spreads_right;
    unsigned squeezed_left, squeezed_right; /* bits 1 << axis; a weight loses its own by being rearranged */
    int n_batch, n_contracted, n_free_left, n_free_right;
    int left_batch[TARE_MAX_RANK], left_contracted[TARE_MAX_RANK];
    int right_batch[TARE_MAX_RANK], right_contracted[TARE_MAX_RANK];
    bool moves;                      /* the op's output is a transposition of the raw result */
    int result_order[TARE_MAX_RANK]; /* output axis i is raw axis result_order[i] */

    /* The right operand, when it is a weight: its axes in the order batch, contracted, free. */
    int n_order;
    int order[TARE_MAX_RANK];
    unsigned reversed;          /* bits 1 << axis of the weight whose elements are in the opposite order */
    struct tare_shape arranged; /* as the XLA op takes it: a filter, or the axes in that order */
    /* The same elements as a stack of matrices: rows are summed over, each column is one output channel. A table has
     * one matrix an entry, with one column. */
    int64_t batches, rows, columns;
    struct tare_shape channel_shape; /* one value a channel, shaped to broadcast with the raw result */
};

#endif
