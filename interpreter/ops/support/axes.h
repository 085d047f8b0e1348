/* Axes given as an operand, and a shape split by them into runs of dims that are kept or reduced together. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_AXES_H
#define TARE_INTERPRETER_OPS_SUPPORT_AXES_H

#include "interpreter/inference/infer.h"

/* reduced[d]: dim d is reduced. "Invalid reduction dimension (3 for input with 2 dimension(s)", a duplicate is an
 * error.
 */
tare_status tare_axes_read(bool reduced[TARE_MAX_RANK], const struct tare_tensor *axes, int rank);
/* The shape without the reduced dims, or with 1 instead of them. */
void tare_axes_shape(struct tare_shape *out, const struct tare_shape *in, const bool *reduced, bool keep_dims);
/* Shape of a reduction of input 0 by the axes in input 1 and attribute keep_dims. */
tare_status tare_axes_infer(struct tare_infer *infer);

/* Dims in runs, the innermost first. A row is the elements along the innermost run. */
struct tare_axes_plan {
    int runs;
    int64_t sizes[TARE_MAX_RANK + 1];
    bool reduced[TARE_MAX_RANK + 1]; /* run by run, alternating */
    int64_t inner, rows;
};
void tare_axes_plan(struct tare_axes_plan *plan, const struct tare_shape *shape, const bool *reduced);

/* Position of the results, row after row: zero it, then call tare_axes_next after each row. */
struct tare_axes_walk {
    int64_t at[TARE_MAX_RANK + 1];
    int64_t output; /* element of the output for the row's first result */
};
void tare_axes_next(struct tare_axes_walk *walk, const struct tare_axes_plan *plan);

/* One axis (attribute or scalar operand) counted from the front; TARE_INVALID_ARGUMENT "Expected dimension in the range
 * [-2, 2), but got 5". */
tare_status tare_axis_resolve(int *out, int64_t axis, int rank);
/* A shape around one axis: outer * dims[axis] * inner elements. */
struct tare_axis_split {
    int64_t outer, size, inner;
};
struct tare_axis_split tare_axis_split(const struct tare_shape *shape, int axis);

#endif
