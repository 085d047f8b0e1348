/* The three tensors of a sparse tensor: indices [n, rank], values [n], dense_shape [rank]. */
#ifndef TARE_INTERPRETER_OPS_SPARSE_SPARSE_ROWS_H
#define TARE_INTERPRETER_OPS_SPARSE_SPARSE_ROWS_H

#include "interpreter/inference/infer.h"

struct tare_sparse {
    const struct tare_tensor *indices, *values, *shape;
    int64_t count;
    int rank;
    int64_t dims[TARE_MAX_RANK];
};

/* Initializes a view of inputs `indices`, `values` and `shape` of a kernel (values may be NULL) and checks that
 * their shapes match and no dimension is negative. Does not check the index values. */
tare_status tare_sparse_make(struct tare_sparse *out, const struct tare_tensor *indices,
                             const struct tare_tensor *values, const struct tare_tensor *shape);
int64_t tare_sparse_index(const struct tare_sparse *sparse, int64_t row, int d);
/* Checks the index values: "indices[2] = [0,5] is out of bounds: need 0 <= index < [3,4]"; with `ordered` also that
 * rows are in increasing order without duplicates. */
tare_status tare_sparse_check(const struct tare_sparse *sparse, bool ordered);
/* The view of shape inference: rank and count if known (otherwise -1), ranks checked. `first` is the index of the
 * indices operand. */
tare_status tare_sparse_infer(const struct tare_infer *infer, size_t indices, size_t values, size_t shape,
                              int64_t *count, int64_t *rank);

#endif
