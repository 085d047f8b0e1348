/* Shapes: fully known, partially known, or of unknown rank. */
#ifndef TARE_BASE_TENSOR_SHAPE_H
#define TARE_BASE_TENSOR_SHAPE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TARE_MAX_RANK = 12, /* TensorFlow's kernels support 8; files with a higher rank are refused */
    TARE_UNKNOWN_DIM = -1,
    TARE_UNKNOWN_RANK = -1,
    TARE_MAX_ELEMENT_SIZE = 16,
};

struct tare_shape {
    int rank; /* TARE_UNKNOWN_RANK: nothing is known */
    int64_t dims[TARE_MAX_RANK];
};

/* tare_shape_make(3, 2, 4, -1): rank, then dims of any integer type. */
#define tare_shape_make(rank_, ...) ((struct tare_shape){ .rank = (rank_), .dims = { __VA_ARGS__ } })
struct tare_shape tare_shape_scalar(void);
struct tare_shape tare_shape_unknown(void);
/* From an array of dims; TARE_SHAPE if rank > TARE_MAX_RANK or a dim < -1. */
tare_status tare_shape_from_dims(struct tare_shape *out, int rank, const int64_t *dims);
bool tare_shape_is_known(const struct tare_shape *shape);
bool tare_shape_equal(const struct tare_shape *a, const struct tare_shape *b);
/* True if both could describe the same tensor: unknown dims and ranks match any. */
bool tare_shape_compatible(const struct tare_shape *a, const struct tare_shape *b);
/* Combines the known dims of both; TARE_SHAPE if they are incompatible. */
tare_status tare_shape_merge(struct tare_shape *out, const struct tare_shape *a, const struct tare_shape *b);
/* Number of elements; TARE_SHAPE if the shape is not fully known, has a negative dim, or the product of the dims other
 * than 0 has more elements of TARE_MAX_ELEMENT_SIZE bytes than int64 bytes: products of dims of a tensor do not
 * overflow, not even those of an empty one. */
tare_status tare_shape_elements(int64_t *out, const struct tare_shape *shape);
/* NumPy broadcasting of two (possibly partial) shapes. */
tare_status tare_shape_broadcast(struct tare_shape *out, const struct tare_shape *a, const struct tare_shape *b);

enum { TARE_SHAPE_TEXT_SIZE = 256 };
/* "[2,3,?]", "<unknown>" into `text`; returns `text`. */
const char *tare_shape_text(char text[TARE_SHAPE_TEXT_SIZE], const struct tare_shape *shape);

#endif
