/* Matrices in complex double, and ops of linear algebra on them in any precision. */
#ifndef TARE_TESTS_SUPPORT_MATRIX_REQUEST_H
#define TARE_TESTS_SUPPORT_MATRIX_REQUEST_H

#include "base/tensor/tensor.h"

#include <complex.h>
#include <stdbool.h>

typedef double complex matrix_number;

/* A row-major matrix in complex double. */
struct matrix {
    int64_t rows, columns;
    matrix_number *at;
};

struct matrix matrix_new(int64_t rows, int64_t columns); /* zeros */
/* a or its adjoint times b or its adjoint; plain sums. */
struct matrix matrix_product(struct matrix a, bool adjoint_a, struct matrix b, bool adjoint_b);
double matrix_norm(struct matrix a);
/* |a - b|; frees both. */
double matrix_distance(struct matrix a, struct matrix b);
struct matrix matrix_identity(int64_t n);
struct matrix matrix_copy(struct matrix a);
/* A tensor of the dtype; the matrix is rounded to it. */
struct tare_tensor matrix_to_tensor(struct matrix a, int dtype);
struct matrix matrix_from_tensor(const struct tare_tensor *tensor);

enum matrix_kind { MATRIX_RANDOM, MATRIX_RANK_ONE, MATRIX_ZERO, MATRIX_GRADED, MATRIX_REPEATED, MATRIX_KINDS };
extern const char *const matrix_kind_names[MATRIX_KINDS];
/* The four precisions, and the rounding error of one. */
extern const int matrix_dtypes[4];
double matrix_epsilon(int dtype);
matrix_number matrix_draw(int dtype, uint64_t *seed);
/* The same matrix for the same arguments. */
struct matrix matrix_make(enum matrix_kind kind, int dtype, int64_t rows, int64_t columns);

/* One op on matrices. */
struct matrix_request {
    const char *op, *flag; /* `flag` is set true; NULL: none */
    int dtype, result_dtype;
    int n_outputs;
    struct matrix inputs[2];
    int n_inputs;
    int64_t batch; /* matrices that input 0 consists of, one below the other; 0: it is one matrix */
};

/* The complex dtype of the outputs of Eig. */
void matrix_request_set_result(struct matrix_request *r);
/* Runs the op. Rounds the inputs to the dtype. */
tare_status matrix_request_run(const struct matrix_request *r, struct tare_tensor *results);

#endif
