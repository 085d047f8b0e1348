/* Batches of matrices for the linear algebra ops, in the tensor's own precision (half and bfloat16 in float), and in
 * double up to 8 x 8: conversion between tensors and LAPACK's element types, and transposition. */
#ifndef TARE_INTERPRETER_OPS_LINALG_MATRIX_H
#define TARE_INTERPRETER_OPS_LINALG_MATRIX_H

#include "interpreter/inference/infer.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/small_lapack.h"

typedef _Complex double tare_complex;

/* The last two dimensions of a tensor of at least rank 2, and the number of matrices; 0 if they are empty. */
struct tare_matrices {
    int64_t count, rows, columns;
};
struct tare_matrices tare_matrices_of(const struct tare_tensor *tensor);
/* Creates all outputs with the shapes of the row's inference and the node's dtypes. *input: the matrices of input 0. */
tare_status tare_matrix_outputs(struct tare_kernel *kernel, struct tare_matrices *input);

/* The type of a dtype's own precision. */
enum tare_lapack_type tare_matrix_type(int dtype);
/* The type in which matrices [rows, columns] of a dtype are computed: small ones in double, which is the faster one
 * there (small_lapack.h). */
enum tare_lapack_type tare_matrix_type_for(int dtype, int64_t rows, int64_t columns);
/* Loads LAPACK; TARE_UNSUPPORTED if it is missing or a dimension does not fit its 32-bit integers. */
tare_status tare_matrix_open(int64_t rows, int64_t columns);
/* Loads LAPACK and prepares the LU factorization of matrices [n, n] of input 0's dtype. */
tare_status tare_matrix_open_lu(struct tare_lapack_call *lu, struct tare_kernel *kernel, int64_t n);
/* `count` zeroed elements from the arena, with TARE_LAPACK_SLACK more after them; NULL: no memory. */
void *tare_matrix_new(struct tare_arena *memory, enum tare_lapack_type type, int64_t count);
/* Elements first … first + count - 1 of the tensor, converted to `type`; and back, rounded once. */
void tare_matrix_read(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first,
                      int64_t count);
void tare_matrix_write(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t count);
/* The matrix [rows, columns] at element `first` of the tensor in column-major order; and back. `buffer` has room for
 * it.
 */
void tare_matrix_load(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first, int64_t rows,
                      int64_t columns, void *buffer);
void tare_matrix_store(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t rows, int64_t columns, void *buffer);
/* Where to store elements first … for tare_matrix_write: in the tensor, which then does nothing, otherwise `buffer`. */
void *tare_matrix_room(const struct tare_tensor *to, enum tare_lapack_type type, int64_t first, void *buffer);
/* to [columns, rows] = transpose of from [rows, columns]; with `conjugate` the adjoint. */
void tare_matrix_transpose(void *to, const void *from, enum tare_lapack_type type, int64_t rows, int64_t columns,
                           bool conjugate);
/* Conjugates the elements in place; nothing to do for real types. */
void tare_matrix_conjugate(void *x, enum tare_lapack_type type, int64_t count);
/* Adds a real value to element i. */
void tare_matrix_add_real(void *x, enum tare_lapack_type type, int64_t i, double value);
/* Sets x [n, n] to the identity. */
void tare_matrix_set_identity(void *x, enum tare_lapack_type type, int64_t n);
/* Element i, and whether all elements are finite. Real types have and store no imaginary part. */
tare_complex tare_matrix_at(const void *x, enum tare_lapack_type type, int64_t i);
void tare_matrix_set(void *x, enum tare_lapack_type type, int64_t i, tare_complex value);
bool tare_matrix_is_finite(const void *x, enum tare_lapack_type type, int64_t count);
/* The row order [rows] that `count` exchanges produce, whose pivots are those of getrf. */
void tare_matrix_order(int *order, int rows, const int *pivots, int count);
/* Eigenvalue i of geev, and an element of its vector in v or vl. A conjugate pair of a real type has its vectors' real
 * parts in the first column of the pair, whose value has the positive imaginary part, and the imaginary parts in the
 * second one. */
tare_complex tare_matrix_eigenvalue(const struct tare_lapack_call *geev, int64_t i);
tare_complex tare_matrix_eigenvector(const struct tare_lapack_call *geev, const void *vectors, int64_t i, int64_t row);
/* The rounding error of 1 in a type. */
double tare_matrix_epsilon(enum tare_lapack_type type);
/* Whether an element of the diagonal of a [n, n] is zero. */
bool tare_matrix_is_singular(const void *a, enum tare_lapack_type type, int64_t n);

/* ---- shape inference ---- */

/* A batch of matrices [rows, columns] with the leading dimensions of input `i`. */
tare_status tare_matrix_infer(struct tare_shape *out, const struct tare_infer *infer, size_t i, int64_t rows,
                              int64_t columns);
/* The last two dimensions of input `i`, -1 if unknown; TARE_SHAPE below rank 2. */
tare_status tare_matrix_infer_dims(int64_t *rows, int64_t *columns, const struct tare_infer *infer, size_t i);
/* Input 0 is square; output 0 has its shape. */
tare_status tare_matrix_infer_square(struct tare_infer *infer);
/* Input 0 is square; output 0 is the vector of its eigenvalues, output 1 that of the vectors, empty if the attribute
 * `vectors` is false (NULL: always requested). */
tare_status tare_matrix_infer_eigen(struct tare_infer *infer, const char *vectors);

#endif
