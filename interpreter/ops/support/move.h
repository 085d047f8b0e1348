/* Moves elements independently of their dtype: every op that only copies (slice, transpose, concat, gather, pad …)
 * describes the copy, which is done by element size. Strings are copied into the new tensor's buffer,
 * objects get another reference. Does not depend on ops or attributes. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_MOVE_H
#define TARE_INTERPRETER_OPS_SUPPORT_MOVE_H

#include "base/tensor/tensor.h"

enum { TARE_MOVE_RANK = 2 * TARE_MAX_RANK + 2 }; /* tiling and space-to-batch split every dimension in two */

/* For each index tuple below dims: to[to_offset + sum(i * to)] = from[from_offset + sum(i * from)]. Strides count
 * elements and may be negative or (from) zero. */
struct tare_move {
    int rank;
    int64_t dims[TARE_MOVE_RANK], from[TARE_MOVE_RANK], to[TARE_MOVE_RANK];
    int64_t from_offset, to_offset;
};

/* Executes a move. The caller guarantees that all addresses are inside both tensors and that no two targets are the
 * same. TARE_NO_MEMORY for strings only. */
tare_status tare_move_apply(struct tare_tensor *to, const struct tare_tensor *from, const struct tare_move *move);
/* Adds a dimension to a move, outermost first. */
void tare_move_dim(struct tare_move *move, int64_t dim, int64_t from_stride, int64_t to_stride);

/* Copies `count` adjacent elements. */
tare_status tare_move_run(struct tare_tensor *to, int64_t to_offset, const struct tare_tensor *from,
                          int64_t from_offset, int64_t count);
/* Copies element `from_offset` of `from` to `count` adjacent elements. */
tare_status tare_move_fill(struct tare_tensor *to, int64_t to_offset, int64_t count, const struct tare_tensor *from,
                           int64_t from_offset);
/* Fills with zeros, empty strings or null objects. */
void tare_move_zero(struct tare_tensor *to, int64_t to_offset, int64_t count);

/* Row-major strides of a known shape. */
void tare_move_strides(int64_t strides[TARE_MAX_RANK], const struct tare_shape *shape);
/* Product of dims first … last-1 of a known shape. */
int64_t tare_move_product(const struct tare_shape *shape, int first, int last);

#endif
