/* The sizes of a product as the matrix units of a TPU see it: a stationary matrix of `depth` rows and `columns` columns
 * for each tap of a convolution, cut into tiles of the unit's size, and rows that stream through it.
 */
#ifndef TARE_TPU_COST_PRODUCT_H
#define TARE_TPU_COST_PRODUCT_H

#include "interpreter/inference/infer.h"

enum tare_tpu_product_kind {
    TARE_TPU_NO_PRODUCT,
    TARE_TPU_DENSE, /* a matrix product, of a batch of matrices too */
    TARE_TPU_CONV,
    TARE_TPU_DEPTHWISE, /* one input channel a group: computed by the vector unit */
};

struct tare_tpu_product {
    enum tare_tpu_product_kind kind;
    double rows;   /* the batch of a convolution, the rows of a matrix */
    double places; /* positions of a convolution's result, or matrices */
    double taps, depth, columns;
    double line;    /* of a convolution: taps along the last dimension, which share a tile */
    bool is_padded; /* of a convolution: an op before it pads its images */
    double groups;  /* of a convolution: each has its own inputs and columns */
};

double tare_tpu_elements(const struct tare_shape *shape); /* of a shape that is fully known */

/* Of an op whose cost has `macs`, on shapes that are fully known; kind TARE_TPU_NO_PRODUCT without any. */
struct tare_tpu_product tare_tpu_product_of(const struct tare_infer *infer, double macs);

/* Tiles of size × size that the matrix is; the taps of a line of a convolution share one. */
double tare_tpu_product_tiles(const struct tare_tpu_product *product, double size);

#endif
