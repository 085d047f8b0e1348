/* Slices of tensors, in which partitioned variables are stored and restored: position and text syntax. */
#ifndef TARE_PROTO_TENSOR_SLICE_H
#define TARE_PROTO_TENSOR_SLICE_H

#include "base/tensor/tensor.h"

/* A box inside a tensor: shape.dims[d] elements from start[d] on, in every dimension. */
struct tare_slice {
    int64_t start[TARE_MAX_RANK];
    struct tare_shape shape;
};

/* The whole tensor. */
struct tare_slice tare_slice_of_all(const struct tare_shape *whole);
/* TARE_CORRUPT if the box exceeds the tensor. */
tare_status tare_slice_check(const struct tare_slice *slice, const struct tare_shape *whole);
/* Parses the shape_and_slices of RestoreV2: the dimensions of the whole, then start,length (or - for all) of each, as
 * in "100 20 0,50:-". TARE_CORRUPT with the text. */
tare_status tare_slice_parse(struct tare_slice *out, struct tare_shape *whole, const char *text) TARE_WARN_UNUSED;
/* The intersection of two boxes of equal rank; false if it is empty. */
bool tare_slice_overlap(struct tare_slice *out, const struct tare_slice *a, const struct tare_slice *b);
/* Copies the intersection of the boxes `from` and `to` of the same whole. The dtypes are equal; `source` has the shape
 * from->shape and `target` to->shape. */
tare_status tare_slice_copy(struct tare_tensor *target, const struct tare_slice *to, const struct tare_tensor *source,
                            const struct tare_slice *from) TARE_WARN_UNUSED;

#endif
