/* Batches of matrices for the linear algebra ops, in the tensor's own precision (half and bfloat16 in float), and in
 * double up to 8 x 8: conversion between tensors and LAPACK's element types, and transposition. */
#ifndef TARE_INTERPRETER_OPS_LINALG_MATRIX_H
#define TARE_INTERPRETER_OPS_LINALG_MATRIX_H

#include "interpreter/inference/infer.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/small_lapack.h"

typedef _Complex double tare_complex;

/* The last two dimensions of a tensor of at least rank 2. */
struct tare_matrices {
    int64_t rows, columns;
};
struct tare_matrices tare_matrices_of(const struct tare_tensor *tensor);

/* The type of a dtype's own precision, and that in which matrices [rows, columns] of a dtype are computed: small ones
 * in double, which is the faster one there (small_lapack.h). */
enum tare_lapack_type tare_matrix_type(int dtype);
enum tare_lapack_type tare_matrix_type_for(int dtype, int64_t rows, int64_t columns);
/* Loads LAPACK; TARE_UNSUPPORTED if it is missing or a dimension does not fit its 32-bit integers. */
tare_status tare_matrix_open(int64_t rows, int64_t columns);
/* Room for `count` elements of a type (tare_lapack_new); NULL: no memory. */
void *tare_matrix_new(struct tare_arena *memory, enum tare_lapack_type type, int64_t count);
/* Elements first … first + count - 1 of the tensor, converted to `type`; and back, rounded once. */
void tare_matrix_read(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first,
                      int64_t count);
void tare_matrix_write(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t count);
/* The matrix [rows, columns] at element `first` of the tensor in column-major order; and back, or with `conjugate` the
 * conjugate. `buffer` has room for it. */
void tare_matrix_load(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first, int64_t rows,
                      int64_t columns, void *buffer);
void tare_matrix_store(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t rows, int64_t columns, bool conjugate, void *buffer);
/* Where to store elements first … for tare_matrix_write: in the tensor, which then does nothing, otherwise `buffer`. */
void *tare_matrix_room(const struct tare_tensor *to, enum tare_lapack_type type, int64_t first, void *buffer);
/* to [columns, rows] = transpose of from [rows, columns]. */
void tare_matrix_transpose(void *to, const void *from, enum tare_lapack_type type, int64_t rows, int64_t columns);
/* Conjugates the elements in place; nothing to do for real types. */
void tare_matrix_conjugate(void *x, enum tare_lapack_type type, int64_t count);
/* Sets x [n, n] to the identity. */
void tare_matrix_set_identity(void *x, enum tare_lapack_type type, int64_t n);
/* Element i. Real types have and store no imaginary part. */
static inline tare_complex tare_matrix_at(const void *x, enum tare_lapack_type type, int64_t i) {
    switch (type) {
    case TARE_LAPACK_S:
        return (double)((const float *)x)[i];
    case TARE_LAPACK_D:
        return ((const double *)x)[i];
    case TARE_LAPACK_C:
        return ((const _Complex float *)x)[i];
    default:
        return ((const tare_complex *)x)[i];
    }
}
void tare_matrix_set(void *x, enum tare_lapack_type type, int64_t i, tare_complex value);
bool tare_matrix_is_finite(const void *x, enum tare_lapack_type type, int64_t count);
/* The rounding error of 1 in a type. */
double tare_matrix_epsilon(enum tare_lapack_type type);
/* Whether an element of the diagonal of a [n, n] is zero. */
bool tare_matrix_is_singular(const void *a, enum tare_lapack_type type, int64_t n);
/* The row order [rows] that `count` exchanges produce, whose pivots are those of getrf. */
void tare_matrix_order(int *order, int rows, const int *pivots, int count);
/* Exchanges line i of x with line pivots[i] - 1 for i = first … last - 1, or with `backward` in the other order. A line
 * has `count` elements, `step` elements apart; lines are `line` elements apart. */
void tare_matrix_exchange(void *x, enum tare_lapack_type type, int line, int count, int step, const int *pivots,
                          int first, int last, bool backward);
/* Factors the row-major A [n, n] in lu->a by the prepared call of getrf, which reads it as Aᵀ, and replaces the
 * row-major x [n, columns] by A⁻¹ x, with `adjoint` A⁻ᴴ x. False: A is singular. */
bool tare_matrix_solve(struct tare_lapack_call *lu, void *x, int64_t columns, bool adjoint);
/* Eigenvalue i of geev, and an element of its vector in v or vl. A conjugate pair of a real type has its vectors' real
 * parts in the first column of the pair, whose value has the positive imaginary part, and the imaginary parts in the
 * second one. */
tare_complex tare_matrix_eigenvalue(const struct tare_lapack_call *geev, int64_t i);
tare_complex tare_matrix_eigenvector(const struct tare_lapack_call *geev, const void *vectors, int64_t i, int64_t row);

/* ---- ops that call one routine for each matrix of input 0 ---- */

struct tare_matrix_batch {
    struct tare_lapack_call call; /* its routine and options are set before tare_matrix_open_batch */
    struct tare_kernel *kernel;
    int64_t count, size; /* matrices of [m, n] = `size` elements; 0: all outputs are empty */
    void *buffer;        /* room for a matrix of input 0 or of an output */
};

/* Creates all outputs with the shapes of the row's inference and the node's dtypes, and prepares the call for matrices
 * of input 0 in the type in which they are computed. */
tare_status tare_matrix_open_batch(struct tare_matrix_batch *batch, struct tare_kernel *kernel);
/* Matrix i of input 0 as `a` of the call: as it is in memory, which is its transpose for LAPACK; or in column-major
 * order. */
void tare_matrix_next(struct tare_matrix_batch *batch, int64_t i);
void tare_matrix_next_by_columns(struct tare_matrix_batch *batch, int64_t i);
/* Runs the call; false without it if an element of `a` is not finite: iterations may not end for NaN. */
bool tare_matrix_run_finite(struct tare_matrix_batch *batch);
/* The elements of output k that belong to matrix i, from row-major elements of the call's type. */
void tare_matrix_put(struct tare_matrix_batch *batch, size_t k, int64_t i, const void *from);
/* Real numbers of the call's precision to elements first … of output 0. */
void tare_matrix_put_reals(struct tare_matrix_batch *batch, int64_t first, const void *from, int64_t count);

/* ---- shape inference ---- */

/* A batch of matrices [rows, columns] with the leading dimensions of input `i`. */
tare_status tare_matrix_infer(struct tare_shape *out, const struct tare_infer *infer, size_t i, int64_t rows,
                              int64_t columns);
/* The last two dimensions of input `i`, -1 if unknown; TARE_SHAPE below rank 2. */
tare_status tare_matrix_infer_dims(int64_t *rows, int64_t *columns, const struct tare_infer *infer, size_t i);
/* Input 0 is square; output 0 has its shape. */
tare_status tare_matrix_infer_square(struct tare_infer *infer);

#endif
