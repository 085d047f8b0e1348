/* Batches of matrices for the linear algebra ops, in the tensor's own precision (half and bfloat16 in float), and in
 * double up to 8 x 8: conversion between tensors and LAPACK's element types, and transposition. */
#ifndef TARE_INTERPRETER_OPS_LINALG_MATRIX_H
#define TARE_INTERPRETER_OPS_LINALG_MATRIX_H

#include "interpreter/inference/infer.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/lapack.h"
#include "interpreter/kernels/transpose.h"

/* The last two dimensions; -1 if unknown, or below rank 2. */
struct tare_matrices {
    int64_t rows, columns;
};
struct tare_matrices tare_matrices_of(const struct tare_shape *shape);
/* Sets an unknown dimension to the other one; TARE_SHAPE if they differ. */
tare_status tare_matrix_infer_square(struct tare_matrices *matrix);

/* The dtype of LAPACK in which a tensor is computed (half and bfloat16: float), and that for matrices [rows, columns]:
 * up to 8 x 8 in double. */
int tare_matrix_dtype(int dtype);
int tare_matrix_dtype_for(int dtype, int64_t rows, int64_t columns);
/* Loads LAPACK; TARE_UNSUPPORTED if it is missing or a dimension does not fit its 32-bit integers. */
tare_status tare_matrix_open(int64_t rows, int64_t columns);
/* Elements first … first + count - 1 of the tensor, converted to `dtype`; and back, rounded once. */
void tare_matrix_read(void *to, int dtype, const struct tare_tensor *from, int64_t first, int64_t count);
void tare_matrix_write(struct tare_tensor *to, int64_t first, int dtype, const void *from, int64_t count);
/* Conjugates the elements in place; nothing to do for real types. */
void tare_matrix_conjugate(void *x, int dtype, int64_t count);
/* Sets x [n, n] to the identity. */
void tare_matrix_set_identity(void *x, int dtype, int64_t n);
bool tare_matrix_is_finite(const void *x, int dtype, int64_t count);
/* Fails: "Input is not invertible." */
tare_status tare_matrix_not_invertible(const char *what);
/* Whether an element of the diagonal of a [n, n] is zero. */
bool tare_matrix_is_singular(const void *a, int dtype, int64_t n);
/* The row order [rows] that `count` exchanges produce, whose pivots are those of getrf. */
void tare_matrix_order(int *order, int rows, const int *pivots, int count);
/* Factors the row-major A [n, n] in lu->a by the prepared call of getrf, which reads it as Aᵀ, and replaces the
 * row-major x [n, columns] by A⁻¹ x, with `adjoint` A⁻ᴴ x. False: A is singular. */
bool tare_matrix_solve(struct tare_lapack_call *lu, void *x, int64_t columns, bool adjoint);

/* ---- ops that compute their outputs for each matrix of input 0 ---- */

struct tare_matrix_batch {
    struct tare_lapack_call call;
    struct tare_kernel *kernel;
    bool vectors, adjoint; /* what the node requests; without vectors, outputs after the first one are empty */
    int64_t count, size;   /* matrices of [m, n] = `size` elements */
    void *buffer;          /* room for a matrix of input 0 or of an output */
    void *state;           /* of `run`; NULL before the first matrix */
};

/* A row's aux. */
struct tare_matrix_op {
    enum tare_lapack_routine routine;
    /* The last dimensions of the outputs, "n nn" for [n] and [n, n]: m rows and n columns of input 0, + for n + 1, p
     * for the smaller one, q and Q for p or, with full_matrices, m and n. Without m, input 0 must be square. */
    const char *shapes;
    const char *arrays; /* those of the call that its routine does not have */
    bool by_columns;    /* `a` of the call is the matrix; otherwise as in memory: for LAPACK, its transpose */
    tare_status (*run)(struct tare_matrix_batch *batch, int64_t i); /* for matrix i */
};

tare_status tare_matrix_infer(struct tare_infer *infer);
tare_status tare_matrix_run(struct tare_kernel *kernel);

#define TARE_MATRIX_TYPES "T: {double, float, half, complex64, complex128}"
#define TARE_MATRIX_OP(op, form)                                                                                       \
    { .name = op, .infer = tare_matrix_infer, .run = tare_matrix_run, .aux = &form }

/* Runs the call and returns info, -1 without it if an element of `a` is not finite: iterations may not end for NaN. */
int tare_matrix_run_finite(struct tare_matrix_batch *batch);
/* The matrix [rows, columns] at element `first` of output k from column-major order, or with `conjugate` the conjugate.
 */
void tare_matrix_put_columns(struct tare_matrix_batch *batch, size_t k, int64_t first, const void *from, int64_t rows,
                             int64_t columns, bool conjugate);
/* The elements of output k that belong to matrix i, from row-major elements of the call's dtype. */
void tare_matrix_put(struct tare_matrix_batch *batch, size_t k, int64_t i, const void *from);

#endif
