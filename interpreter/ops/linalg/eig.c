/* Eig: eigenvalues and right eigenvectors of general matrices by LAPACK (geev), in the precision of the output,
 * small ones in complex double.
 * Eigenvalues are ordered by ascending magnitude; the columns of v have length one. */
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/matrix.h"

#include <complex.h>
#include <float.h>
#include <math.h>

static tare_status infer_eig(struct tare_infer *infer) {
    return tare_matrix_infer_eigen(infer, "compute_v");
}

/* One eigenvalue and its column in LAPACK's result. */
struct value {
    tare_complex number;
    double magnitude;
    int64_t column;
};

/* Real or complex as the input, in the precision of the output; small matrices in complex double (small_lapack.h). */
static enum tare_lapack_type type_of(int from, int to, int64_t n) {
    const bool is_double = to == TARE_DT_COMPLEX128;
    if (n <= TARE_SMALL_MOST) return TARE_LAPACK_Z;
    if (tare_lapack_is_complex(tare_matrix_type(from))) return is_double ? TARE_LAPACK_Z : TARE_LAPACK_C;
    return is_double ? TARE_LAPACK_D : TARE_LAPACK_S;
}

/* By magnitude; of a conjugate pair, whose magnitudes may differ by roundings, the positive imaginary part is first. */
static bool precedes(const struct value *x, const struct value *y) {
    const double difference = x->magnitude - y->magnitude;
    if (fabs(difference) > 2 * DBL_EPSILON * y->magnitude) return difference < 0;
    return cimag(x->number) > cimag(y->number);
}

/* Otherwise equal ones stay in the order of geev. */
static void sort_values(struct value *values, const struct tare_lapack_call *c) {
    for (int64_t k = 0; k < c->n; k++) {
        const tare_complex number = tare_matrix_eigenvalue(c, k);
        const struct value value = { number, cimag(number) == 0 ? fabs(creal(number)) : cabs(number), k };
        int64_t at = k;
        for (; at > 0 && precedes(&value, &values[at - 1]); at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

static void put(struct tare_tensor *to, int64_t i, tare_complex x) {
    tare_matrix_set(to->data, tare_matrix_type(to->dtype), i, x);
}

/* Eigenvalues of matrix `i` of the input; `rows` is a buffer. */
static tare_status eig_one(struct tare_lapack_call *c, struct value *values, const struct tare_tensor *input, int64_t i,
                           void *rows) {
    const int64_t n = c->n, size = n * n;
    tare_matrix_load(c->a, c->type, input, i * size, n, n, rows);
    if (!tare_matrix_is_finite(c->a, c->type, size) || tare_small_lapack_run(c))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Eigen decomposition was not successful. The input might not be valid.");
    sort_values(values, c);
    return TARE_OK;
}

static tare_status run_eig(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool vectors = tare_node_bool(kernel->node, "compute_v", true);
    struct tare_matrices m;
    TARE_TRY(tare_matrix_outputs(kernel, &m));
    if (input->elements == 0) return TARE_OK;
    struct tare_lapack_call c = { TARE_LAPACK_GEEV, type_of(input->dtype, kernel->outputs[0].dtype, m.rows),
                                  .m = (int)m.rows, .n = (int)m.rows,
                                  .left = 'N',      .job = vectors ? 'V' : 'N' };
    struct value *values = TARE_NEW_ARRAY(kernel->scratch, struct value, (size_t)m.rows);
    void *rows = tare_matrix_new(kernel->scratch, c.type, m.rows * m.rows);
    if (!values || !rows) return TARE_NO_MEMORY;
    TARE_TRY(tare_matrix_open(m.rows, m.rows));
    TARE_TRY(tare_lapack_prepare(&c, kernel->scratch));
    for (int64_t i = 0; i < m.count; i++) {
        TARE_TRY(eig_one(&c, values, input, i, rows));
        for (int64_t k = 0; k < c.n; k++) {
            put(&kernel->outputs[0], i * c.n + k, values[k].number);
            for (int64_t row = 0; vectors && row < c.n; row++)
                put(&kernel->outputs[1], (i * c.n + row) * c.n + k,
                    tare_matrix_eigenvector(&c, c.v, values[k].column, row));
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
