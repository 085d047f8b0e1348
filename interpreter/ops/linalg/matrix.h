/* Batches of small matrices in complex double, for the linear algebra ops: read, written, factored, solved. */
#ifndef TARE_INTERPRETER_OPS_LINALG_MATRIX_H
#define TARE_INTERPRETER_OPS_LINALG_MATRIX_H

#include "interpreter/inference/infer.h"

typedef _Complex double tare_complex;

/* The last two dims of a tensor, and how many matrices there are. */
struct tare_matrices {
    int64_t count, rows, columns;
};
/* TARE_SHAPE below rank 2. */
tare_status tare_matrices_of(struct tare_matrices *out, const struct tare_tensor *tensor, const char *what);
/* Elements first … first+count-1 of a tensor of any numeric dtype. */
void tare_matrix_load(tare_complex *to, const struct tare_tensor *from, int64_t first, int64_t count);
void tare_matrix_store(struct tare_tensor *to, int64_t first, const tare_complex *from, int64_t count);
/* to [columns, rows] = the adjoint of from [rows, columns]. */
void tare_matrix_adjoint(tare_complex *to, const tare_complex *from, int64_t rows, int64_t columns);
/* to [m, n] = a [m, k] · b [k, n]. */
void tare_matrix_product(tare_complex *to, const tare_complex *a, const tare_complex *b, int64_t m, int64_t k,
                         int64_t n);

/* P·a = L·U in place, the greatest element of a column as pivot; order[i] is the row of `a` that came to row i. A zero
 * pivot stays where it is. *sign gets the permutation's. */
void tare_matrix_lu(tare_complex *a, int64_t n, int64_t *order, int *sign);
/* x [n, columns] becomes the solution of the factored system; false: a pivot is zero. `spare` holds as much as x. */
bool tare_matrix_lu_solve(tare_complex *x, const tare_complex *lu, const int64_t *order, int64_t n, int64_t columns,
                          tare_complex *spare);
/* x [n, columns] becomes the solution of a triangular system. */
bool tare_matrix_triangular_solve(tare_complex *x, const tare_complex *a, int64_t n, int64_t columns, bool lower);

/* Eigenvalues, ascending, and vectors (columns of v [n, n]) of a Hermitian matrix, whose lower triangle is read; `a` is
 * used up. Sweeps of Jacobi's rotations. */
void tare_matrix_eigen(double *values, tare_complex *v, tare_complex *a, int64_t n);

/* Shape inference: a batch of matrices [rows, columns] in front of which the dims of input `i` but for the last two
 * stand. */
tare_status tare_matrix_infer(struct tare_shape *out, const struct tare_infer *infer, size_t i, int64_t rows,
                              int64_t columns);
/* The last dims of input `i`, -1 where not known; TARE_SHAPE below rank 2. */
tare_status tare_matrix_infer_dims(int64_t *rows, int64_t *columns, const struct tare_infer *infer, size_t i);
/* Input 0 is square; output 0 has its shape. */
tare_status tare_matrix_infer_square(struct tare_infer *infer);

#endif
