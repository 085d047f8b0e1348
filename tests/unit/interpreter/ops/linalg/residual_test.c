/* Decompositions and solvers against their definitions: residuals such as |A - Q R| and |QᴴQ - 1|, relative to the
 * rounding error of the dtype, for random, rank-deficient, zero, graded and degenerate matrices of several sizes in
 * all four precisions. */
#include "support/matrix_request.h"
#include "support/mini_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs the op and converts its outputs. */
static void decompose(const struct matrix_request *r, struct matrix *outputs) {
    struct tare_tensor results[3];
    mini_ok(matrix_request_run(r, results));
    for (int i = 0; i < r->n_outputs; i++) {
        outputs[i] = matrix_from_tensor(&results[i]);
        tare_tensor_reset(&results[i]);
    }
}

/* Asserts that `error` is at most 30 n roundings of the size of the matrix. */
static void assert_small(double error, double size, const struct matrix_request *r, enum matrix_kind kind,
                         const char *what) {
    const int64_t n = r->inputs[0].rows > r->inputs[0].columns ? r->inputs[0].rows : r->inputs[0].columns;
    const double bound = 30 * (double)n * matrix_epsilon(r->dtype) * (size > 0 ? size : 1);
    if (!(error <= bound))
        fail_msg("%s %s %s [%lld,%lld]: %s is %g (expected at most %g)", r->op, tare_dtype_name(r->dtype),
                 matrix_kind_names[kind], (long long)r->inputs[0].rows, (long long)r->inputs[0].columns, what, error,
                 bound);
}

static void assert_orthonormal(struct matrix q, const struct matrix_request *r, enum matrix_kind kind,
                               const char *what) {
    assert_small(matrix_distance(matrix_product(q, true, q, false), matrix_identity(q.columns)), 1, r, kind, what);
}

static const int64_t shapes[][2] = { { 1, 1 },   { 2, 2 },   { 5, 3 }, { 3, 5 }, { 33, 33 },
                                     { 40, 17 }, { 17, 40 }, { 1, 6 }, { 6, 1 } };
static const int64_t sizes[] = { 1, 2, 3, 5, 6, 8, 33, 70 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Calls `check` for every dtype and kind with a matrix of each size. */
static void each_square(void (*check)(struct matrix_request *r, enum matrix_kind kind), const char *op, int n_outputs) {
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (int kind = 0; kind < MATRIX_KINDS; kind++)
            for (size_t s = 0; s < COUNT(sizes); s++) {
                struct matrix_request r = {
                    .op = op, .dtype = matrix_dtypes[d], .n_outputs = n_outputs, .n_inputs = 1
                };
                r.inputs[0] = matrix_make((enum matrix_kind)kind, matrix_dtypes[d], sizes[s], sizes[s]);
                check(&r, (enum matrix_kind)kind);
                free(r.inputs[0].at);
            }
}

static void each_shape(void (*check)(struct matrix_request *r, enum matrix_kind kind), const char *op, int n_outputs) {
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (int kind = 0; kind < MATRIX_KINDS; kind++)
            for (size_t s = 0; s < COUNT(shapes); s++)
                for (int full = 0; full < 2; full++) {
                    struct matrix_request r = {
                        .op = op, .dtype = matrix_dtypes[d], .n_outputs = n_outputs, .n_inputs = 1
                    };
                    r.flag = full ? "full_matrices" : NULL;
                    r.inputs[0] = matrix_make((enum matrix_kind)kind, matrix_dtypes[d], shapes[s][0], shapes[s][1]);
                    check(&r, (enum matrix_kind)kind);
                    free(r.inputs[0].at);
                }
}

/* ---- the checks ---- */

static void check_qr(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[2];
    decompose(r, out);
    const double size = matrix_norm(r->inputs[0]);
    assert_orthonormal(out[0], r, kind, "|QᴴQ - 1|");
    for (int64_t i = 0; i < out[1].rows; i++)
        for (int64_t j = 0; j < i && j < out[1].columns; j++)
            assert_true(out[1].at[i * out[1].columns + j] == 0);
    assert_small(matrix_distance(matrix_product(out[0], false, out[1], false), matrix_copy(r->inputs[0])), size, r,
                 kind, "|A - QR|");
    free(out[0].at), free(out[1].at);
}

static void check_svd(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[3];
    decompose(r, out);
    const double size = matrix_norm(r->inputs[0]);
    struct matrix scaled = matrix_new(r->inputs[0].rows, out[2].columns);
    for (int64_t i = 0; i < scaled.rows; i++)
        for (int64_t j = 0; j < out[0].columns; j++)
            scaled.at[i * scaled.columns + j] = out[1].at[i * out[1].columns + j] * out[0].at[j];
    for (int64_t j = 0; j < out[0].columns; j++)
        assert_true(creal(out[0].at[j]) >= 0 && (j == 0 || creal(out[0].at[j]) <= creal(out[0].at[j - 1])));
    assert_orthonormal(out[1], r, kind, "|UᴴU - 1|");
    assert_orthonormal(out[2], r, kind, "|VᴴV - 1|");
    assert_small(matrix_distance(matrix_product(scaled, false, out[2], true), matrix_copy(r->inputs[0])), size, r, kind,
                 "|A - U S Vᴴ|");
    free(scaled.at), free(out[0].at), free(out[1].at), free(out[2].at);
}

static void check_eigh(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[2], a = r->inputs[0];
    const int64_t n = a.rows;
    for (int64_t i = 0; i < n; i++) {
        a.at[i * n + i] = creal(a.at[i * n + i]);
        for (int64_t j = i + 1; j < n; j++)
            a.at[i * n + j] = conj(a.at[j * n + i]);
    }
    decompose(r, out);
    struct matrix scaled = matrix_copy(out[1]);
    for (int64_t i = 0; i < n * n; i++)
        scaled.at[i] *= out[0].at[i % n];
    for (int64_t j = 0; j < n; j++)
        assert_true(cimag(out[0].at[j]) == 0 && (j == 0 || creal(out[0].at[j]) >= creal(out[0].at[j - 1])));
    assert_orthonormal(out[1], r, kind, "|VᴴV - 1|");
    assert_small(matrix_distance(matrix_product(scaled, false, out[1], true), matrix_copy(a)), matrix_norm(a), r, kind,
                 "|A - V E Vᴴ|");
    free(scaled.at), free(out[0].at), free(out[1].at);
}

/* Unit vectors of a defective matrix need not be independent, but A v = e v holds to rounding. */
static void check_eig(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[2];
    matrix_request_set_result(r);
    decompose(r, out);
    struct matrix scaled = matrix_copy(out[1]);
    const int64_t n = scaled.rows;
    for (int64_t i = 0; i < n * n; i++)
        scaled.at[i] *= out[0].at[i % n];
    for (int64_t j = 1; j < n; j++)
        assert_true(cabs(out[0].at[j]) >= cabs(out[0].at[j - 1]) * (1 - 4 * matrix_epsilon(r->dtype)));
    assert_small(matrix_distance(matrix_product(r->inputs[0], false, out[1], false), scaled), matrix_norm(r->inputs[0]),
                 r, kind, "|A V - V E|");
    free(out[0].at), free(out[1].at);
}

/* Eigenvalues of a real matrix are real, or pairs of exact conjugates with exactly conjugate vectors, the one with the
 * positive imaginary part first. */
static void check_conjugates(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[2];
    const int64_t n = r->inputs[0].rows;
    matrix_request_set_result(r);
    if (kind != MATRIX_RANDOM || tare_dtype_is_complex(r->dtype)) return;
    decompose(r, out);
    for (int64_t j = 0; j < n; j++) {
        const bool pair = cimag(out[0].at[j]) != 0;
        if (pair) assert_true(j + 1 < n && cimag(out[0].at[j]) > 0 && out[0].at[j + 1] == conj(out[0].at[j]));
        for (int64_t i = 0; i < n; i++) {
            const matrix_number *x = &out[1].at[i * n + j];
            assert_true(pair ? x[1] == conj(x[0]) : cimag(x[0]) == 0);
        }
        j += pair;
    }
    free(out[0].at), free(out[1].at);
}

/* A·Aᴴ + 1, which is positive definite. */
static void make_definite(struct matrix *a) {
    struct matrix square = matrix_product(*a, false, *a, true);
    for (int64_t i = 0; i < square.rows; i++)
        square.at[i * square.columns + i] = creal(square.at[i * square.columns + i]) + 1;
    free(a->at);
    *a = square;
}

static void check_cholesky(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[1];
    make_definite(&r->inputs[0]);
    decompose(r, out);
    for (int64_t i = 0; i < out[0].rows; i++)
        for (int64_t j = i + 1; j < out[0].columns; j++)
            assert_true(out[0].at[i * out[0].columns + j] == 0);
    assert_small(matrix_distance(matrix_product(out[0], false, out[0], true), matrix_copy(r->inputs[0])),
                 matrix_norm(r->inputs[0]), r, kind, "|A - L Lᴴ|");
    free(out[0].at);
}

static void check_inverse(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[1];
    make_definite(&r->inputs[0]);
    for (int adjoint = 0; adjoint < 2; adjoint++) {
        r->flag = adjoint ? "adjoint" : NULL;
        decompose(r, out);
        const double size = matrix_norm(r->inputs[0]) * matrix_norm(out[0]);
        assert_small(
            matrix_distance(matrix_product(r->inputs[0], adjoint, out[0], false), matrix_identity(out[0].rows)), size,
            r, kind, "|A A⁻¹ - 1|");
        free(out[0].at);
    }
}

static void check_solve(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[1];
    const bool triangular = strcmp(r->op, "MatrixTriangularSolve") == 0;
    make_definite(&r->inputs[0]);
    const int64_t n = r->inputs[0].rows;
    for (int64_t i = 0; triangular && i < n * n; i++)
        if (i % n > i / n) r->inputs[0].at[i] = 0;
    r->n_inputs = 2;
    r->inputs[1] = matrix_make(MATRIX_RANDOM, r->dtype, n, 3);
    for (int adjoint = 0; adjoint < 2; adjoint++) {
        r->flag = adjoint ? "adjoint" : NULL;
        decompose(r, out);
        const double size = matrix_norm(r->inputs[0]) * matrix_norm(out[0]) + matrix_norm(r->inputs[1]);
        assert_small(matrix_distance(matrix_product(r->inputs[0], adjoint, out[0], false), matrix_copy(r->inputs[1])),
                     size, r, kind, "|A x - b|");
        free(out[0].at);
    }
    free(r->inputs[1].at);
}

/* P A = L U, where the output p lists the rows of A in the order of L U. */
static void check_lu(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix out[2];
    if (kind == MATRIX_RANK_ONE || kind == MATRIX_ZERO || kind == MATRIX_GRADED) return; /* not invertible, or nearly */
    decompose(r, out);
    const int64_t n = r->inputs[0].rows;
    struct matrix lower = matrix_identity(n), upper = matrix_new(n, n), ordered = matrix_new(n, n);
    for (int64_t i = 0; i < n * n; i++) {
        (i % n < i / n ? lower : upper).at[i] = out[0].at[i];
        ordered.at[i] = r->inputs[0].at[(int64_t)creal(out[1].at[i / n]) * n + i % n];
        if (i % n < i / n) assert_true(cabs(out[0].at[i]) <= 1 + 4 * matrix_epsilon(r->dtype));
    }
    assert_small(matrix_distance(matrix_product(lower, false, upper, false), ordered), matrix_norm(r->inputs[0]), r,
                 kind, "|P A - L U|");
    free(lower.at), free(upper.at), free(out[0].at), free(out[1].at);
}

/* For a definite A: the square root squared is A; the logarithm of a complex A has A as its exponential. */
static void check_root(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix root, logarithm, restored;
    make_definite(&r->inputs[0]);
    decompose(r, &root);
    assert_small(matrix_distance(matrix_product(root, false, root, false), matrix_copy(r->inputs[0])),
                 matrix_norm(r->inputs[0]), r, kind, "|B B - A|");
    free(root.at);
    if (!tare_dtype_is_complex(r->dtype)) return;
    struct matrix_request log = *r, exponential = *r;
    log.op = "MatrixLogarithm";
    exponential.op = "MatrixExponential";
    decompose(&log, &logarithm);
    exponential.inputs[0] = logarithm;
    decompose(&exponential, &restored);
    assert_small(matrix_distance(restored, matrix_copy(r->inputs[0])), 10 * matrix_norm(r->inputs[0]), r, kind,
                 "|exp(log A) - A|");
    free(logarithm.at);
}

/* For the negative of a definite A, whose root is i times that of A: none of a real matrix. */
static void check_negative_root(struct matrix_request *r, enum matrix_kind kind) {
    struct matrix root;
    make_definite(&r->inputs[0]);
    const int64_t count = r->inputs[0].rows * r->inputs[0].columns;
    for (int64_t i = 0; i < count; i++)
        r->inputs[0].at[i] = -r->inputs[0].at[i];
    decompose(r, &root);
    if (tare_dtype_is_complex(r->dtype))
        assert_small(matrix_distance(matrix_product(root, false, root, false), matrix_copy(r->inputs[0])),
                     matrix_norm(r->inputs[0]), r, kind, "|B B - A|");
    for (int64_t i = 0; i < count && !tare_dtype_is_complex(r->dtype); i++)
        assert_true(isnan(creal(root.at[i])));
    free(root.at);
}

/* The solution without `fast`. */
static struct matrix least_squares(const struct matrix_request *r) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_tensor tensors[3], result;
    struct tare_edge inputs[3], fetch;
    for (int i = 0; i < 2; i++)
        tensors[i] = matrix_to_tensor(r->inputs[i], r->dtype);
    mini_ok(tare_tensor_new(&tensors[2], TARE_DT_DOUBLE, &(struct tare_shape){ .rank = 0 }));
    tare_tensor_set_f64(&tensors[2], 0, 0);
    for (int i = 0; i < 3; i++) {
        inputs[i] = (struct tare_edge){ tare_graph_add_const(model->main, "input", &tensors[i]), 0 };
        tare_tensor_reset(&tensors[i]);
    }
    struct tare_node *node = mini_open(model->main, r->op, "node", 3, inputs[0], inputs[1], inputs[2]);
    mini_infer_attrs(node);
    mini_ok(tare_node_set_bool(node, "fast", false));
    mini_done(node);
    fetch = (struct tare_edge){ node, 0 };
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, NULL, NULL, 0, &fetch, &result, 1, NULL, 0));
    struct matrix x = matrix_from_tensor(&result);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
    return x;
}

/* The residual of a least squares solution is orthogonal to the columns of A, also where A has no full rank, and the
 * solution is then the one of least norm: a combination of the rows of A. */
static void check_least_squares(struct matrix_request *r, enum matrix_kind kind) {
    if (kind == MATRIX_GRADED) return; /* the rank is not defined */
    const struct matrix a = r->inputs[0];
    r->inputs[1] = matrix_make(MATRIX_RANDOM, r->dtype, a.rows, 3);
    struct matrix x = least_squares(r), residual = matrix_product(a, false, x, false);
    const double size = matrix_norm(a) * (matrix_norm(a) * matrix_norm(x) + matrix_norm(r->inputs[1]));
    for (int64_t i = 0; i < a.rows * 3; i++)
        residual.at[i] -= r->inputs[1].at[i];
    struct matrix normal = matrix_product(a, true, residual, false);
    assert_small(matrix_norm(normal), size, r, kind, "|Aᴴ (A x - b)|");
    if (kind == MATRIX_ZERO) assert_true(matrix_norm(x) == 0);
    for (int64_t i = 0; kind == MATRIX_RANK_ONE && i < a.columns * 3; i++) /* a multiple of the first row, conjugated */
        assert_small(cabs(x.at[i] * conj(a.at[0]) - x.at[i % 3] * conj(a.at[i / 3])), matrix_norm(x) * matrix_norm(a),
                     r, kind, "the part of x outside the rows of A");
    free(x.at), free(residual.at), free(normal.at), free(r->inputs[1].at);
}

/* Diagonals whose elimination needs exchanges of rows: a zero main diagonal. */
static void tridiagonal_solve__exchanges_rows(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++) {
        enum { N = 6 };
        struct matrix_request r = {
            .op = "TridiagonalSolve", .dtype = matrix_dtypes[d], .n_outputs = 1, .n_inputs = 2
        };
        struct matrix x, full = matrix_new(N, N);
        uint64_t seed = 11 + d;
        r.inputs[0] = matrix_new(3, N);
        r.inputs[1] = matrix_make(MATRIX_RANDOM, r.dtype, N, 2);
        for (int64_t i = 0; i < N; i++) {
            r.inputs[0].at[i] = 2 + matrix_draw(r.dtype, &seed) / 8;
            r.inputs[0].at[2 * N + i] = 3 + matrix_draw(r.dtype, &seed) / 8;
        }
        decompose(&r, &x);
        for (int64_t i = 0; i + 1 < N; i++) {
            full.at[i * N + i + 1] = r.inputs[0].at[i];
            full.at[(i + 1) * N + i] = r.inputs[0].at[2 * N + i + 1];
        }
        assert_small(matrix_distance(matrix_product(full, false, x, false), matrix_copy(r.inputs[1])),
                     matrix_norm(full) * matrix_norm(x), &r, MATRIX_RANDOM, "|A x - b|");
        free(x.at), free(full.at), free(r.inputs[0].at), free(r.inputs[1].at);
    }
}

static void qr__is_orthogonal_times_triangular(void **state) {
    (void)state;
    each_shape(check_qr, "Qr", 2);
}
static void svd__restores_the_matrix(void **state) {
    (void)state;
    each_shape(check_svd, "Svd", 3);
}
static void self_adjoint_eig__diagonalizes(void **state) {
    (void)state;
    each_square(check_eigh, "SelfAdjointEigV2", 2);
}
static void eig__vectors_satisfy_the_definition(void **state) {
    (void)state;
    each_square(check_eig, "Eig", 2);
}
static void eig__conjugates_are_exact(void **state) {
    (void)state;
    each_square(check_conjugates, "Eig", 2);
    for (int64_t n = 2; n <= 9; n++)
        for (int64_t i = 0; i < 40; i++) {
            struct matrix_request r = { .op = "Eig", .dtype = matrix_dtypes[i % 2], .n_outputs = 2, .n_inputs = 1 };
            uint64_t seed = (uint64_t)(n * 40 + i + 1);
            r.inputs[0] = matrix_new(n, n);
            for (int64_t k = 0; k < n * n; k++)
                r.inputs[0].at[k] = matrix_draw(r.dtype, &seed);
            check_conjugates(&r, MATRIX_RANDOM);
            free(r.inputs[0].at);
        }
}
static void cholesky__factor_restores_the_matrix(void **state) {
    (void)state;
    each_square(check_cholesky, "Cholesky", 1);
}
static void inverse__times_the_matrix_is_the_identity(void **state) {
    (void)state;
    each_square(check_inverse, "MatrixInverse", 1);
}
static void solve__residual_is_small(void **state) {
    (void)state;
    each_square(check_solve, "MatrixSolve", 1);
    each_square(check_solve, "MatrixTriangularSolve", 1);
}

static void lu__restores_the_matrix(void **state) {
    (void)state;
    each_square(check_lu, "Lu", 2);
}
static void root_and_logarithm__are_inverse_functions(void **state) {
    (void)state;
    each_square(check_root, "MatrixSquareRoot", 1);
}
static void root__of_negative_eigenvalues_is_imaginary(void **state) {
    (void)state;
    each_square(check_negative_root, "MatrixSquareRoot", 1);
}
static void least_squares__residual_is_orthogonal(void **state) {
    (void)state;
    each_shape(check_least_squares, "MatrixSolveLs", 1);
}

/* Magnitudes for which sums of squares overflow or underflow. */
static void decompositions__do_not_depend_on_magnitude(void **state) {
    static const struct {
        const char *op;
        int n_outputs;
        void (*check)(struct matrix_request *r, enum matrix_kind kind);
    } ops[] = {
        { "Qr", 2, check_qr }, { "Svd", 3, check_svd }, { "SelfAdjointEigV2", 2, check_eigh }, { "Eig", 2, check_eig }
    };
    static const int64_t ns[] = { 2, 4, 8, 12 };
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (size_t i = 0; i < COUNT(ops) * COUNT(ns) * 4; i++) {
            const int exponents[] = { -120, -50, 50, 120 }, exponent = exponents[i % 4];
            const double scale = pow(10, matrix_epsilon(matrix_dtypes[d]) > 1e-10 ? exponent / 8 : exponent);
            const size_t op = i / 4 % COUNT(ops);
            const int64_t n = ns[i / 4 / COUNT(ops)];
            struct matrix_request r = {
                .op = ops[op].op, .dtype = matrix_dtypes[d], .n_outputs = ops[op].n_outputs, .n_inputs = 1
            };
            r.inputs[0] = matrix_make(MATRIX_RANDOM, r.dtype, n, n);
            for (int64_t k = 0; k < n * n; k++)
                r.inputs[0].at[k] *= scale;
            ops[op].check(&r, MATRIX_RANDOM);
            free(r.inputs[0].at);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qr__is_orthogonal_times_triangular),
        cmocka_unit_test(svd__restores_the_matrix),
        cmocka_unit_test(self_adjoint_eig__diagonalizes),
        cmocka_unit_test(eig__vectors_satisfy_the_definition),
        cmocka_unit_test(eig__conjugates_are_exact),
        cmocka_unit_test(cholesky__factor_restores_the_matrix),
        cmocka_unit_test(inverse__times_the_matrix_is_the_identity),
        cmocka_unit_test(solve__residual_is_small),
        cmocka_unit_test(lu__restores_the_matrix),
        cmocka_unit_test(root_and_logarithm__are_inverse_functions),
        cmocka_unit_test(root__of_negative_eigenvalues_is_imaginary),
        cmocka_unit_test(least_squares__residual_is_orthogonal),
        cmocka_unit_test(tridiagonal_solve__exchanges_rows),
        cmocka_unit_test(decompositions__do_not_depend_on_magnitude),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
