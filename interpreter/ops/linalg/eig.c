/* Eig: eigenvalues and right eigenvectors of general matrices by LAPACK (geev), in the precision of the output.
 * Eigenvalues are ordered by ascending magnitude; the columns of v have length one. */
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

static tare_status infer_eig(struct tare_infer *infer) {
    struct tare_shape square;
    struct tare_infer inner = *infer;
    inner.outputs = &square;
    square = tare_shape_unknown();
    TARE_TRY(tare_matrix_infer_square(&inner));
    if (square.rank < 0) return TARE_OK;
    infer->outputs[0] = square;
    infer->outputs[0].rank--;
    infer->outputs[1] = tare_node_bool(infer->node, "compute_v", true) ? square : tare_shape_make(1, (int64_t)0);
    return TARE_OK;
}

/* One matrix [n, n]; the buffers are column-major. */
struct eig {
    int64_t n;
    enum tare_lapack_type type;
    struct tare_lapack_work work;
    void *rows, *a, *values, *imaginary, *v;
};

/* One eigenvalue and its column in LAPACK's result. */
struct value {
    tare_complex number;
    double magnitude;
    int64_t column;
};

/* Real or complex as the input, in the precision of the output. */
static enum tare_lapack_type type_of(int from, int to) {
    const bool is_complex = tare_lapack_is_complex(tare_matrix_type(from));
    if (to == TARE_DT_COMPLEX128) return is_complex ? TARE_LAPACK_Z : TARE_LAPACK_D;
    return is_complex ? TARE_LAPACK_C : TARE_LAPACK_S;
}

static tare_status open_eig(struct eig *e, struct tare_kernel *kernel, bool vectors) {
    TARE_TRY(tare_matrix_open(e->n, e->n));
    TARE_TRY(tare_lapack_eig_open(&e->work, e->type, (int)e->n, vectors ? 'V' : 'N', kernel->scratch));
    e->rows = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->a = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->v = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->values = tare_matrix_new(kernel->scratch, e->type, e->n);
    e->imaginary = tare_matrix_new(kernel->scratch, e->type, e->n);
    return e->rows && e->a && e->v && e->values && e->imaginary ? TARE_OK : TARE_NO_MEMORY;
}

static int compare(const void *a, const void *b) {
    const struct value *x = a, *y = b;
    if (x->magnitude != y->magnitude) return x->magnitude < y->magnitude ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

static void sort_values(struct value *values, const struct eig *e) {
    for (int64_t k = 0; k < e->n; k++) {
        tare_complex number = tare_matrix_at(e->values, e->type, k);
        if (!tare_lapack_is_complex(e->type)) number += I * tare_matrix_at(e->imaginary, e->type, k);
        values[k] = (struct value){ number, cabs(number), k };
    }
    qsort(values, (size_t)e->n, sizeof *values, compare);
}

/* Element `row` of the vector of an eigenvalue. A conjugate pair of a real matrix has its vectors' real parts in the
 * first column of the pair and the imaginary parts in the second; the value with the positive imaginary part is first.
 */
static tare_complex vector_element(const struct eig *e, const struct value *value, int64_t row) {
    const int64_t at = value->column * e->n + row;
    const double imaginary = cimag(value->number);
    if (tare_lapack_is_complex(e->type) || imaginary == 0) return tare_matrix_at(e->v, e->type, at);
    if (imaginary > 0) return tare_matrix_at(e->v, e->type, at) + I * tare_matrix_at(e->v, e->type, at + e->n);
    return tare_matrix_at(e->v, e->type, at - e->n) - I * tare_matrix_at(e->v, e->type, at);
}

static tare_status eig_one(struct eig *e, struct value *values, const struct tare_tensor *input, int64_t i) {
    const int64_t size = e->n * e->n;
    tare_matrix_read(e->rows, e->type, input, i * size, size);
    tare_matrix_transpose(e->a, e->rows, e->type, e->n, e->n, false);
    if (!tare_matrix_is_finite(e->a, e->type, size) || tare_lapack_geev(&e->work, e->a, e->values, e->imaginary, e->v))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Eigen decomposition was not successful. The input might not be valid.");
    sort_values(values, e);
    return TARE_OK;
}

static tare_status run_eig(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool vectors = tare_node_bool(kernel->node, "compute_v", true);
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    struct tare_matrices m;
    struct tare_shape values_shape, none = tare_shape_make(1, (int64_t)0);
    TARE_TRY(tare_matrices_of(&m, input, "input"));
    if (m.rows != m.columns)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld by %lld)", (long long)m.rows,
                         (long long)m.columns);
    values_shape = input->shape;
    values_shape.rank--;
    TARE_TRY(tare_kernel_output(kernel, 0, to, &values_shape));
    TARE_TRY(tare_kernel_output(kernel, 1, to, vectors ? &input->shape : &none));
    if (input->elements == 0) return TARE_OK;
    struct eig e = { .n = m.rows, .type = type_of(input->dtype, to) };
    struct value *values = TARE_NEW_ARRAY(kernel->scratch, struct value, (size_t)e.n);
    if (!values) return TARE_NO_MEMORY;
    TARE_TRY(open_eig(&e, kernel, vectors));
    for (int64_t i = 0; i < m.count; i++) {
        TARE_TRY(eig_one(&e, values, input, i));
        for (int64_t k = 0; k < e.n; k++)
            tare_tensor_set_c128(&kernel->outputs[0], i * e.n + k, values[k].number);
        for (int64_t at = 0; vectors && at < e.n * e.n; at++)
            tare_tensor_set_c128(&kernel->outputs[1], i * e.n * e.n + at,
                                 vector_element(&e, &values[at % e.n], at / e.n));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_eig[] = {
    { .name = "Eig",
      .inputs = "input: T",
      .outputs = "e: Tout, v: Tout",
      .attrs = "compute_v: bool = true; T: {float, double, complex64, complex128}; Tout: {complex64, complex128}",
      .infer = infer_eig,
      .run = run_eig },
    { 0 },
};
