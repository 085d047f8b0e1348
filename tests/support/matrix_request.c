#include "support/matrix_request.h"

#include "interpreter/session.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct matrix matrix_new(int64_t rows, int64_t columns) {
    struct matrix m = { rows, columns, calloc((size_t)(rows * columns) + 1, sizeof(matrix_number)) };
    assert_non_null(m.at);
    return m;
}

struct matrix matrix_product(struct matrix a, bool adjoint_a, struct matrix b, bool adjoint_b) {
    const int64_t m = adjoint_a ? a.columns : a.rows, k = adjoint_a ? a.rows : a.columns;
    const int64_t n = adjoint_b ? b.rows : b.columns;
    assert_int_equal(k, adjoint_b ? b.columns : b.rows);
    struct matrix c = matrix_new(m, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++)
                c.at[i * n + j] += (adjoint_a ? conj(a.at[p * a.columns + i]) : a.at[i * k + p]) *
                                   (adjoint_b ? conj(b.at[j * b.columns + p]) : b.at[p * n + j]);
    return c;
}

double matrix_norm(struct matrix a) {
    double sum = 0;
    for (int64_t i = 0; i < a.rows * a.columns; i++)
        sum += creal(a.at[i] * conj(a.at[i]));
    return sqrt(sum);
}

double matrix_distance(struct matrix a, struct matrix b) {
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.columns, b.columns);
    for (int64_t i = 0; i < a.rows * a.columns; i++)
        a.at[i] -= b.at[i];
    const double d = matrix_norm(a);
    free(a.at), free(b.at);
    return d;
}

struct matrix matrix_identity(int64_t n) {
    struct matrix m = matrix_new(n, n);
    for (int64_t i = 0; i < n; i++)
        m.at[i * n + i] = 1;
    return m;
}

struct matrix matrix_copy(struct matrix a) {
    struct matrix b = matrix_new(a.rows, a.columns);
    memcpy(b.at, a.at, (size_t)(a.rows * a.columns) * sizeof *a.at);
    return b;
}

const char *const matrix_kind_names[] = { "random", "rank 1", "zero", "graded", "repeated" };
const int matrix_dtypes[] = { TARE_DT_FLOAT, TARE_DT_DOUBLE, TARE_DT_COMPLEX64, TARE_DT_COMPLEX128 };

double matrix_epsilon(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_COMPLEX64 ? FLT_EPSILON : DBL_EPSILON;
}

matrix_number matrix_draw(int dtype, uint64_t *seed) {
    const double real = (double)draw_one(DRAW_NORMAL, seed);
    return tare_dtype_is_complex(dtype) ? real + I * (double)draw_one(DRAW_NORMAL, seed) : real;
}

struct matrix matrix_make(enum matrix_kind kind, int dtype, int64_t rows, int64_t columns) {
    uint64_t seed = (uint64_t)(rows * 131 + columns * 7 + dtype * 3 + (int)kind + 1);
    struct matrix a = matrix_new(rows, columns);
    matrix_number *left = calloc((size_t)(rows + columns) + 1, sizeof *left), *right = left + rows;
    for (int64_t i = 0; i < rows + columns; i++)
        left[i] = matrix_draw(dtype, &seed);
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t r = i / columns, c = i % columns;
        a.at[i] = kind == MATRIX_ZERO       ? 0
                  : kind == MATRIX_RANK_ONE ? left[r] * right[c]
                  : kind == MATRIX_REPEATED ? 3 * (r == c)
                  : kind == MATRIX_GRADED   ? matrix_draw(dtype, &seed) * pow(10, -(double)(r + c) / 4)
                                            : matrix_draw(dtype, &seed);
    }
    free(left);
    return a;
}

struct tare_tensor matrix_to_tensor(struct matrix a, int dtype) {
    const struct tare_shape shape = { .rank = 2, .dims = { a.rows, a.columns } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        tare_tensor_set_c128(&tensor, i, a.at[i]);
    for (int64_t i = 0; i < tensor.elements; i++) /* what the op reads */
        a.at[i] = tare_tensor_get_c128(&tensor, i);
    return tensor;
}

struct matrix matrix_from_tensor(const struct tare_tensor *tensor) {
    const struct tare_shape *s = &tensor->shape;
    struct matrix a = matrix_new(s->rank == 2 ? s->dims[0] : 1, s->dims[s->rank - 1]);
    for (int64_t i = 0; i < tensor->elements; i++)
        a.at[i] = tare_tensor_get_c128(tensor, i);
    return a;
}

void matrix_request_set_result(struct matrix_request *r) {
    if (strcmp(r->op, "Eig") == 0)
        r->result_dtype = matrix_epsilon(r->dtype) > 1e-10 ? TARE_DT_COMPLEX64 : TARE_DT_COMPLEX128;
}

tare_status matrix_request_run(const struct matrix_request *r, struct tare_tensor *results) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge inputs[2], fetches[3];
    struct tare_node *node;
    for (int i = 0; i < r->n_inputs; i++) {
        struct tare_tensor tensor = matrix_to_tensor(r->inputs[i], r->dtype);
        const int64_t rows = r->inputs[i].rows, columns = r->inputs[i].columns;
        if (r->batch) tensor.shape = (struct tare_shape){ .rank = 3, .dims = { r->batch, rows / r->batch, columns } };
        inputs[i] = (struct tare_edge){ tare_graph_add_const(model->main, i ? "b" : "a", &tensor), 0 };
        tare_tensor_reset(&tensor);
    }
    node = r->n_inputs == 2 ? mini_open(model->main, r->op, "node", 2, inputs[0], inputs[1])
                            : mini_open(model->main, r->op, "node", 1, inputs[0]);
    mini_infer_attrs(node);
    if (r->flag) mini_ok(tare_node_set_bool(node, r->flag, true));
    if (r->result_dtype) mini_ok(tare_node_set_type(node, "Tout", r->result_dtype));
    mini_done(node);
    for (int i = 0; i < r->n_outputs; i++)
        fetches[i] = (struct tare_edge){ node, i };
    struct tare_session *session = mini_session(model);
    const tare_status status =
        tare_session_run(session, NULL, NULL, 0, fetches, results, (size_t)r->n_outputs, NULL, 0);
    tare_session_free(session);
    tare_model_free(model);
    return status;
}
