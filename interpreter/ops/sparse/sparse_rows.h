/* The three tensors of a sparse one: indices [n, rank], values [n], dense_shape [rank]. */
#ifndef TARE_INTERPRETER_OPS_SPARSE_SPARSE_ROWS_H
#define TARE_INTERPRETER_OPS_SPARSE_SPARSE_ROWS_H

#include "interpreter/inference/infer.h"

struct tare_sparse {
    const struct tare_tensor *indices, *values, *shape;
    int64_t count;
    int rank;
    int64_t dims[TARE_MAX_RANK];
};

/* Views inputs `indices`, `values`, `shape` of a kernel (values may be NULL) after checking that their shapes fit each
 * other and that the dims are not negative. Index values are not looked at. */
tare_status tare_sparse_make(struct tare_sparse *out, const struct tare_tensor *indices,
                             const struct tare_tensor *values, const struct tare_tensor *shape);
int64_t tare_sparse_index(const struct tare_sparse *sparse, int64_t row, int d);
/* "indices[2] = [0,5] is out of bounds: need 0 <= index < [3,4]"; with `ordered` also when rows repeat or fall. */
tare_status tare_sparse_check(const struct tare_sparse *sparse, bool ordered);
/* Shape inference's view: rank and count where they are known (-1), ranks checked. `first` is the indices operand. */
tare_status tare_sparse_infer(const struct tare_infer *infer, size_t indices, size_t values, size_t shape,
                              int64_t *count, int64_t *rank);

#endif
