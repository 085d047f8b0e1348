/* Eig: eigenvalues and right eigenvectors of general matrices by LAPACK (geev), in the precision of the output.
 * Eigenvalues are ordered by ascending magnitude; the columns of v have length one. */
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <math.h>
#include <string.h>

static tare_status infer_eig(struct tare_infer *infer) {
    return tare_matrix_infer_eigen(infer, "compute_v");
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
    TARE_TRY(tare_lapack_eig_open(&e->work, e->type, (int)e->n, 'N', vectors ? 'V' : 'N', kernel->scratch));
    e->rows = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->a = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->v = tare_matrix_new(kernel->scratch, e->type, e->n * e->n);
    e->values = tare_matrix_new(kernel->scratch, e->type, e->n);
    e->imaginary = tare_matrix_new(kernel->scratch, e->type, e->n);
    return e->rows && e->a && e->v && e->values && e->imaginary ? TARE_OK : TARE_NO_MEMORY;
}

static tare_complex complex_of(double re, double im) {
    const double parts[] = { re, im };
    tare_complex x;
    memcpy(&x, parts, sizeof x);
    return x;
}

/* By magnitude; equal ones stay in LAPACK's order. */
static void sort_values(struct value *values, const struct eig *e) {
    for (int64_t k = 0; k < e->n; k++) {
        tare_complex number = tare_matrix_at(e->values, e->type, k);
        if (!tare_lapack_is_complex(e->type))
            number = complex_of(creal(number), creal(tare_matrix_at(e->imaginary, e->type, k)));
        const struct value value = { number, cimag(number) == 0 ? fabs(creal(number)) : cabs(number), k };
        int64_t at = k;
        for (; at > 0 && values[at - 1].magnitude > value.magnitude; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

static void put(struct tare_tensor *to, int64_t i, tare_complex x) {
    if (to->dtype == TARE_DT_COMPLEX128)
        TARE_DATA(tare_complex, to)[i] = x;
    else
        TARE_DATA(_Complex float, to)[i] = (_Complex float)x;
}

/* The vector of an eigenvalue in every n-th element from `first` on. A conjugate pair of a real matrix has its vectors'
 * real parts in the first column of the pair and the imaginary parts in the second; the value with the positive
 * imaginary part is first. */
static void put_vector(struct tare_tensor *to, int64_t first, const struct eig *e, const struct value *value) {
    const double imaginary = cimag(value->number);
    const bool single = tare_lapack_is_complex(e->type) || imaginary == 0;
    const int64_t column = value->column * e->n, re = imaginary < 0 ? column - e->n : column, im = re + e->n;
    for (int64_t row = 0; row < e->n; row++) {
        tare_complex x = tare_matrix_at(e->v, e->type, single ? column + row : re + row);
        if (!single) x = complex_of(creal(x), copysign(1, imaginary) * creal(tare_matrix_at(e->v, e->type, im + row)));
        put(to, first + row * e->n, x);
    }
}

static tare_status eig_one(struct eig *e, struct value *values, const struct tare_tensor *input, int64_t i) {
    const int64_t size = e->n * e->n;
    const void *rows = tare_matrix_in_place(input, e->type, i * size);
    if (!rows) tare_matrix_read(e->rows, e->type, input, i * size, size);
    tare_matrix_transpose(e->a, rows ? rows : e->rows, e->type, e->n, e->n, false);
    if (!tare_matrix_is_finite(e->a, e->type, size) ||
        tare_lapack_geev(&e->work, e->a, e->values, e->imaginary, NULL, e->v))
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
    TARE_TRY(tare_matrix_outputs(kernel, &m));
    if (input->elements == 0) return TARE_OK;
    struct eig e = { .n = m.rows, .type = type_of(input->dtype, to) };
    struct value *values = TARE_NEW_ARRAY(kernel->scratch, struct value, (size_t)e.n);
    if (!values) return TARE_NO_MEMORY;
    TARE_TRY(open_eig(&e, kernel, vectors));
    for (int64_t i = 0; i < m.count; i++) {
        TARE_TRY(eig_one(&e, values, input, i));
        for (int64_t k = 0; k < e.n; k++) {
            put(&kernel->outputs[0], i * e.n + k, values[k].number);
            if (vectors) put_vector(&kernel->outputs[1], i * e.n * e.n + k, &e, &values[k]);
        }
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
