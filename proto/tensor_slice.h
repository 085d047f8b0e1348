/* Parts of tensors, as partitioned variables are stored and restored: where a part lies in the whole, and its text. */
#ifndef TARE_PROTO_TENSOR_SLICE_H
#define TARE_PROTO_TENSOR_SLICE_H

#include "base/tensor/tensor.h"

/* A box inside a tensor: shape.dims[d] elements from start[d] on, in every dimension. */
struct tare_slice {
    int64_t start[TARE_MAX_RANK];
    struct tare_shape shape;
};

/* All of a tensor. */
struct tare_slice tare_slice_of_all(const struct tare_shape *whole);
/* TARE_CORRUPT when the box leaves the tensor. */
tare_status tare_slice_check(const struct tare_slice *slice, const struct tare_shape *whole);
/* Reads what RestoreV2's shape_and_slices say: the whole's dimensions, then start,length (or - for all) each, as in
 * "100 20 0,50:-". TARE_CORRUPT names the text. */
tare_status tare_slice_parse(struct tare_slice *out, struct tare_shape *whole, const char *text) TARE_WARN_UNUSED;
/* What both have in common; false: nothing. All three have one rank. */
bool tare_slice_overlap(struct tare_slice *out, const struct tare_slice *a, const struct tare_slice *b);
/* Copies the elements that box `from` of the same whole has in common with box `to`. Dtypes are equal, `source` has the
 * shape from->shape and `target` to->shape. */
tare_status tare_slice_copy(struct tare_tensor *target, const struct tare_slice *to, const struct tare_tensor *source,
                            const struct tare_slice *from) TARE_WARN_UNUSED;

#endif
