/* Shape inference shared by op families, beside the row functions of graph/op.h. Windows of convolutions and pools are
 * in graph/ops/window.h. */
#ifndef TARE_GRAPH_INFER_H
#define TARE_GRAPH_INFER_H

#include "graph/op.h"

/* Shape that input `i`, a vector of dims, stands for: its dims when its value is known (-1: unknown), else unknown dims
 * of the vector's length, else unknown. TARE_SHAPE for a value below -1 or too many dims. */
tare_status tare_infer_shape_input(struct tare_shape *out, const struct tare_infer *infer, size_t i);
/* `shape` without the axes in the values of input `i` (negative ones count from the end), or with 1 in their place.
 * Axes not known: unknown dims when kept, else unknown. */
tare_status tare_infer_reduced(struct tare_shape *out, const struct tare_shape *shape, const struct tare_infer *infer,
                               size_t i, bool keep_dims);
/* Row function: output 0 is input 0 reduced over the axes in input 1, attribute keep_dims. */
tare_status tare_infer_reduce(struct tare_infer *infer);
/* An axis in 0 … rank-1 from one that may be negative; TARE_INVALID_ARGUMENT. */
tare_status tare_infer_axis(int *out, int64_t axis, int rank);
/* Input `i` has this rank or an unknown one; TARE_SHAPE "input 0 has rank 3 (wanted 4)". */
tare_status tare_infer_want_rank(const struct tare_infer *infer, size_t i, int rank);

#endif
