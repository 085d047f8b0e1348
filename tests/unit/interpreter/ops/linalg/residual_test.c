/* Decompositions and solvers against their definitions: residuals such as |A - Q R| and |QᴴQ - 1|, relative to the
 * rounding error of the dtype, for random, rank-deficient, zero, graded and degenerate matrices of several sizes in
 * all four precisions; and inputs that are empty or contain NaN. */
#include "support/draw.h"
#include "support/mini_model.h"

#include "graph/graph.h"
#include "interpreter/session.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef double complex number;

/* A row-major matrix in complex double. */
struct matrix {
    int64_t rows, columns;
    number *at;
};

static struct matrix matrix_new(int64_t rows, int64_t columns) {
    struct matrix m = { rows, columns, calloc((size_t)(rows * columns) + 1, sizeof(number)) };
    assert_non_null(m.at);
    return m;
}

/* a or its adjoint times b or its adjoint; plain sums. */
static struct matrix product(struct matrix a, bool adjoint_a, struct matrix b, bool adjoint_b) {
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

static double norm(struct matrix a) {
    double sum = 0;
    for (int64_t i = 0; i < a.rows * a.columns; i++)
        sum += creal(a.at[i] * conj(a.at[i]));
    return sqrt(sum);
}

/* |a - b|; frees both. */
static double distance(struct matrix a, struct matrix b) {
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.columns, b.columns);
    for (int64_t i = 0; i < a.rows * a.columns; i++)
        a.at[i] -= b.at[i];
    const double d = norm(a);
    free(a.at), free(b.at);
    return d;
}

static struct matrix identity(int64_t n) {
    struct matrix m = matrix_new(n, n);
    for (int64_t i = 0; i < n; i++)
        m.at[i * n + i] = 1;
    return m;
}

static struct matrix copy(struct matrix a) {
    struct matrix b = matrix_new(a.rows, a.columns);
    memcpy(b.at, a.at, (size_t)(a.rows * a.columns) * sizeof *a.at);
    return b;
}

/* ---- inputs ---- */

enum kind { RANDOM, RANK_ONE, ZERO, GRADED, REPEATED, KINDS };
static const char *const kind_names[] = { "random", "rank 1", "zero", "graded", "repeated" };
static const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_DOUBLE, TARE_DT_COMPLEX64, TARE_DT_COMPLEX128 };

static double epsilon_of(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_COMPLEX64 ? FLT_EPSILON : DBL_EPSILON;
}

static number draw(int dtype, uint64_t *seed) {
    const double real = (double)draw_one(DRAW_NORMAL, seed);
    return tare_dtype_is_complex(dtype) ? real + I * (double)draw_one(DRAW_NORMAL, seed) : real;
}

static struct matrix make(enum kind kind, int dtype, int64_t rows, int64_t columns) {
    uint64_t seed = (uint64_t)(rows * 131 + columns * 7 + dtype * 3 + (int)kind + 1);
    struct matrix a = matrix_new(rows, columns);
    number *left = calloc((size_t)(rows + columns) + 1, sizeof *left), *right = left + rows;
    for (int64_t i = 0; i < rows + columns; i++)
        left[i] = draw(dtype, &seed);
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t r = i / columns, c = i % columns;
        a.at[i] = kind == ZERO       ? 0
                  : kind == RANK_ONE ? left[r] * right[c]
                  : kind == REPEATED ? 3 * (r == c)
                  : kind == GRADED   ? draw(dtype, &seed) * pow(10, -(double)(r + c) / 4)
                                     : draw(dtype, &seed);
    }
    free(left);
    return a;
}

static struct tare_tensor to_tensor(struct matrix a, int dtype) {
    const struct tare_shape shape = { .rank = 2, .dims = { a.rows, a.columns } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        tare_tensor_set_c128(&tensor, i, a.at[i]);
    for (int64_t i = 0; i < tensor.elements; i++) /* what the op reads */
        a.at[i] = tare_tensor_get_c128(&tensor, i);
    return tensor;
}

static struct matrix from_tensor(const struct tare_tensor *tensor) {
    const struct tare_shape *s = &tensor->shape;
    struct matrix a = matrix_new(s->rank == 2 ? s->dims[0] : 1, s->dims[s->rank - 1]);
    for (int64_t i = 0; i < tensor->elements; i++)
        a.at[i] = tare_tensor_get_c128(tensor, i);
    return a;
}

/* ---- running one op ---- */

struct request {
    const char *op, *flag; /* `flag` is set true; NULL: none */
    int dtype, result_dtype;
    int n_outputs;
    struct matrix inputs[2];
    int n_inputs;
    int64_t batch; /* matrices that input 0 consists of, one below the other; 0: it is one matrix */
};

static void set_result_dtype(struct request *r) {
    if (strcmp(r->op, "Eig") == 0)
        r->result_dtype = epsilon_of(r->dtype) > 1e-10 ? TARE_DT_COMPLEX64 : TARE_DT_COMPLEX128;
}

static tare_status run(const struct request *r, struct tare_tensor *results) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge inputs[2], fetches[3];
    struct tare_node *node;
    for (int i = 0; i < r->n_inputs; i++) {
        struct tare_tensor tensor = to_tensor(r->inputs[i], r->dtype);
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

/* Runs the op and converts its outputs. */
static void decompose(const struct request *r, struct matrix *outputs) {
    struct tare_tensor results[3];
    mini_ok(run(r, results));
    for (int i = 0; i < r->n_outputs; i++) {
        outputs[i] = from_tensor(&results[i]);
        tare_tensor_reset(&results[i]);
    }
}

/* Asserts that `error` is at most 30 n roundings of the size of the matrix. */
static void assert_small(double error, double size, const struct request *r, enum kind kind, const char *what) {
    const int64_t n = r->inputs[0].rows > r->inputs[0].columns ? r->inputs[0].rows : r->inputs[0].columns;
    const double bound = 30 * (double)n * epsilon_of(r->dtype) * (size > 0 ? size : 1);
    if (!(error <= bound))
        fail_msg("%s %s %s [%lld,%lld]: %s is %g (expected at most %g)", r->op, tare_dtype_name(r->dtype),
                 kind_names[kind], (long long)r->inputs[0].rows, (long long)r->inputs[0].columns, what, error, bound);
}

static void assert_orthonormal(struct matrix q, const struct request *r, enum kind kind, const char *what) {
    assert_small(distance(product(q, true, q, false), identity(q.columns)), 1, r, kind, what);
}

static const int64_t shapes[][2] = { { 1, 1 },   { 2, 2 },   { 5, 3 }, { 3, 5 }, { 33, 33 },
                                     { 40, 17 }, { 17, 40 }, { 1, 6 }, { 6, 1 } };
static const int64_t sizes[] = { 1, 2, 3, 5, 6, 8, 33, 70 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Calls `check` for every dtype and kind with a matrix of each size. */
static void each_square(void (*check)(struct request *r, enum kind kind), const char *op, int n_outputs) {
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t s = 0; s < COUNT(sizes); s++) {
                struct request r = { .op = op, .dtype = dtypes[d], .n_outputs = n_outputs, .n_inputs = 1 };
                r.inputs[0] = make((enum kind)kind, dtypes[d], sizes[s], sizes[s]);
                check(&r, (enum kind)kind);
                free(r.inputs[0].at);
            }
}

static void each_shape(void (*check)(struct request *r, enum kind kind), const char *op, int n_outputs) {
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t s = 0; s < COUNT(shapes); s++)
                for (int full = 0; full < 2; full++) {
                    struct request r = { .op = op, .dtype = dtypes[d], .n_outputs = n_outputs, .n_inputs = 1 };
                    r.flag = full ? "full_matrices" : NULL;
                    r.inputs[0] = make((enum kind)kind, dtypes[d], shapes[s][0], shapes[s][1]);
                    check(&r, (enum kind)kind);
                    free(r.inputs[0].at);
                }
}

/* ---- the checks ---- */

static void check_qr(struct request *r, enum kind kind) {
    struct matrix out[2];
    decompose(r, out);
    const double size = norm(r->inputs[0]);
    assert_orthonormal(out[0], r, kind, "|QᴴQ - 1|");
    for (int64_t i = 0; i < out[1].rows; i++)
        for (int64_t j = 0; j < i && j < out[1].columns; j++)
            assert_true(out[1].at[i * out[1].columns + j] == 0);
    assert_small(distance(product(out[0], false, out[1], false), copy(r->inputs[0])), size, r, kind, "|A - QR|");
    free(out[0].at), free(out[1].at);
}

static void check_svd(struct request *r, enum kind kind) {
    struct matrix out[3];
    decompose(r, out);
    const double size = norm(r->inputs[0]);
    struct matrix scaled = matrix_new(r->inputs[0].rows, out[2].columns);
    for (int64_t i = 0; i < scaled.rows; i++)
        for (int64_t j = 0; j < out[0].columns; j++)
            scaled.at[i * scaled.columns + j] = out[1].at[i * out[1].columns + j] * out[0].at[j];
    for (int64_t j = 0; j < out[0].columns; j++)
        assert_true(creal(out[0].at[j]) >= 0 && (j == 0 || creal(out[0].at[j]) <= creal(out[0].at[j - 1])));
    assert_orthonormal(out[1], r, kind, "|UᴴU - 1|");
    assert_orthonormal(out[2], r, kind, "|VᴴV - 1|");
    assert_small(distance(product(scaled, false, out[2], true), copy(r->inputs[0])), size, r, kind, "|A - U S Vᴴ|");
    free(scaled.at), free(out[0].at), free(out[1].at), free(out[2].at);
}

static void check_eigh(struct request *r, enum kind kind) {
    struct matrix out[2], a = r->inputs[0];
    const int64_t n = a.rows;
    for (int64_t i = 0; i < n; i++) {
        a.at[i * n + i] = creal(a.at[i * n + i]);
        for (int64_t j = i + 1; j < n; j++)
            a.at[i * n + j] = conj(a.at[j * n + i]);
    }
    decompose(r, out);
    struct matrix scaled = copy(out[1]);
    for (int64_t i = 0; i < n * n; i++)
        scaled.at[i] *= out[0].at[i % n];
    for (int64_t j = 0; j < n; j++)
        assert_true(cimag(out[0].at[j]) == 0 && (j == 0 || creal(out[0].at[j]) >= creal(out[0].at[j - 1])));
    assert_orthonormal(out[1], r, kind, "|VᴴV - 1|");
    assert_small(distance(product(scaled, false, out[1], true), copy(a)), norm(a), r, kind, "|A - V E Vᴴ|");
    free(scaled.at), free(out[0].at), free(out[1].at);
}

/* Unit vectors of a defective matrix need not be independent, but A v = e v holds to rounding. */
static void check_eig(struct request *r, enum kind kind) {
    struct matrix out[2];
    set_result_dtype(r);
    decompose(r, out);
    struct matrix scaled = copy(out[1]);
    const int64_t n = scaled.rows;
    for (int64_t i = 0; i < n * n; i++)
        scaled.at[i] *= out[0].at[i % n];
    for (int64_t j = 1; j < n; j++)
        assert_true(cabs(out[0].at[j]) >= cabs(out[0].at[j - 1]) * (1 - 4 * epsilon_of(r->dtype)));
    assert_small(distance(product(r->inputs[0], false, out[1], false), scaled), norm(r->inputs[0]), r, kind,
                 "|A V - V E|");
    free(out[0].at), free(out[1].at);
}

/* Eigenvalues of a real matrix are real, or pairs of exact conjugates with exactly conjugate vectors, the one with the
 * positive imaginary part first. */
static void check_conjugates(struct request *r, enum kind kind) {
    struct matrix out[2];
    const int64_t n = r->inputs[0].rows;
    set_result_dtype(r);
    if (kind != RANDOM || tare_dtype_is_complex(r->dtype)) return;
    decompose(r, out);
    for (int64_t j = 0; j < n; j++) {
        const bool pair = cimag(out[0].at[j]) != 0;
        if (pair) assert_true(j + 1 < n && cimag(out[0].at[j]) > 0 && out[0].at[j + 1] == conj(out[0].at[j]));
        for (int64_t i = 0; i < n; i++) {
            const number *x = &out[1].at[i * n + j];
            assert_true(pair ? x[1] == conj(x[0]) : cimag(x[0]) == 0);
        }
        j += pair;
    }
    free(out[0].at), free(out[1].at);
}

/* A·Aᴴ + 1, which is positive definite. */
static void make_definite(struct matrix *a) {
    struct matrix square = product(*a, false, *a, true);
    for (int64_t i = 0; i < square.rows; i++)
        square.at[i * square.columns + i] = creal(square.at[i * square.columns + i]) + 1;
    free(a->at);
    *a = square;
}

static void check_cholesky(struct request *r, enum kind kind) {
    struct matrix out[1];
    make_definite(&r->inputs[0]);
    decompose(r, out);
    for (int64_t i = 0; i < out[0].rows; i++)
        for (int64_t j = i + 1; j < out[0].columns; j++)
            assert_true(out[0].at[i * out[0].columns + j] == 0);
    assert_small(distance(product(out[0], false, out[0], true), copy(r->inputs[0])), norm(r->inputs[0]), r, kind,
                 "|A - L Lᴴ|");
    free(out[0].at);
}

static void check_inverse(struct request *r, enum kind kind) {
    struct matrix out[1];
    make_definite(&r->inputs[0]);
    for (int adjoint = 0; adjoint < 2; adjoint++) {
        r->flag = adjoint ? "adjoint" : NULL;
        decompose(r, out);
        const double size = norm(r->inputs[0]) * norm(out[0]);
        assert_small(distance(product(r->inputs[0], adjoint, out[0], false), identity(out[0].rows)), size, r, kind,
                     "|A A⁻¹ - 1|");
        free(out[0].at);
    }
}

static void check_solve(struct request *r, enum kind kind) {
    struct matrix out[1];
    const bool triangular = strcmp(r->op, "MatrixTriangularSolve") == 0;
    make_definite(&r->inputs[0]);
    const int64_t n = r->inputs[0].rows;
    for (int64_t i = 0; triangular && i < n * n; i++)
        if (i % n > i / n) r->inputs[0].at[i] = 0;
    r->n_inputs = 2;
    r->inputs[1] = make(RANDOM, r->dtype, n, 3);
    for (int adjoint = 0; adjoint < 2; adjoint++) {
        r->flag = adjoint ? "adjoint" : NULL;
        decompose(r, out);
        const double size = norm(r->inputs[0]) * norm(out[0]) + norm(r->inputs[1]);
        assert_small(distance(product(r->inputs[0], adjoint, out[0], false), copy(r->inputs[1])), size, r, kind,
                     "|A x - b|");
        free(out[0].at);
    }
    free(r->inputs[1].at);
}

/* P A = L U, where the output p lists the rows of A in the order of L U. */
static void check_lu(struct request *r, enum kind kind) {
    struct matrix out[2];
    if (kind == RANK_ONE || kind == ZERO || kind == GRADED) return; /* not invertible, or nearly */
    decompose(r, out);
    const int64_t n = r->inputs[0].rows;
    struct matrix lower = identity(n), upper = matrix_new(n, n), ordered = matrix_new(n, n);
    for (int64_t i = 0; i < n * n; i++) {
        (i % n < i / n ? lower : upper).at[i] = out[0].at[i];
        ordered.at[i] = r->inputs[0].at[(int64_t)creal(out[1].at[i / n]) * n + i % n];
        if (i % n < i / n) assert_true(cabs(out[0].at[i]) <= 1 + 4 * epsilon_of(r->dtype));
    }
    assert_small(distance(product(lower, false, upper, false), ordered), norm(r->inputs[0]), r, kind, "|P A - L U|");
    free(lower.at), free(upper.at), free(out[0].at), free(out[1].at);
}

/* For a definite A: the square root squared is A; the logarithm of a complex A has A as its exponential. */
static void check_root(struct request *r, enum kind kind) {
    struct matrix root, logarithm, restored;
    make_definite(&r->inputs[0]);
    decompose(r, &root);
    assert_small(distance(product(root, false, root, false), copy(r->inputs[0])), norm(r->inputs[0]), r, kind,
                 "|B B - A|");
    free(root.at);
    if (!tare_dtype_is_complex(r->dtype)) return;
    struct request log = *r, exponential = *r;
    log.op = "MatrixLogarithm";
    exponential.op = "MatrixExponential";
    decompose(&log, &logarithm);
    exponential.inputs[0] = logarithm;
    decompose(&exponential, &restored);
    assert_small(distance(restored, copy(r->inputs[0])), 10 * norm(r->inputs[0]), r, kind, "|exp(log A) - A|");
    free(logarithm.at);
}

/* The solution without `fast`. */
static struct matrix least_squares(const struct request *r) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_tensor tensors[3], result;
    struct tare_edge inputs[3], fetch;
    for (int i = 0; i < 2; i++)
        tensors[i] = to_tensor(r->inputs[i], r->dtype);
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
    struct matrix x = from_tensor(&result);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
    return x;
}

/* The residual of a least squares solution is orthogonal to the columns of A, also where A has no full rank, and the
 * solution is then the one of least norm: a combination of the rows of A. */
static void check_least_squares(struct request *r, enum kind kind) {
    if (kind == GRADED) return; /* the rank is not defined */
    const struct matrix a = r->inputs[0];
    r->inputs[1] = make(RANDOM, r->dtype, a.rows, 3);
    struct matrix x = least_squares(r), residual = product(a, false, x, false);
    const double size = norm(a) * (norm(a) * norm(x) + norm(r->inputs[1]));
    for (int64_t i = 0; i < a.rows * 3; i++)
        residual.at[i] -= r->inputs[1].at[i];
    struct matrix normal = product(a, true, residual, false);
    assert_small(norm(normal), size, r, kind, "|Aᴴ (A x - b)|");
    if (kind == ZERO) assert_true(norm(x) == 0);
    for (int64_t i = 0; kind == RANK_ONE && i < a.columns * 3; i++) /* a multiple of the first row, conjugated */
        assert_small(cabs(x.at[i] * conj(a.at[0]) - x.at[i % 3] * conj(a.at[i / 3])), norm(x) * norm(a), r, kind,
                     "the part of x outside the rows of A");
    free(x.at), free(residual.at), free(normal.at), free(r->inputs[1].at);
}

/* Diagonals whose elimination needs exchanges of rows: a zero main diagonal. */
static void tridiagonal_solve__exchanges_rows(void **state) {
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        enum { N = 6 };
        struct request r = { .op = "TridiagonalSolve", .dtype = dtypes[d], .n_outputs = 1, .n_inputs = 2 };
        struct matrix x, full = matrix_new(N, N);
        uint64_t seed = 11 + d;
        r.inputs[0] = matrix_new(3, N);
        r.inputs[1] = make(RANDOM, r.dtype, N, 2);
        for (int64_t i = 0; i < N; i++) {
            r.inputs[0].at[i] = 2 + draw(r.dtype, &seed) / 8;
            r.inputs[0].at[2 * N + i] = 3 + draw(r.dtype, &seed) / 8;
        }
        decompose(&r, &x);
        for (int64_t i = 0; i + 1 < N; i++) {
            full.at[i * N + i + 1] = r.inputs[0].at[i];
            full.at[(i + 1) * N + i] = r.inputs[0].at[2 * N + i + 1];
        }
        assert_small(distance(product(full, false, x, false), copy(r.inputs[1])), norm(full) * norm(x), &r, RANDOM,
                     "|A x - b|");
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
            struct request r = { .op = "Eig", .dtype = dtypes[i % 2], .n_outputs = 2, .n_inputs = 1 };
            uint64_t seed = (uint64_t)(n * 40 + i + 1);
            r.inputs[0] = matrix_new(n, n);
            for (int64_t k = 0; k < n * n; k++)
                r.inputs[0].at[k] = draw(r.dtype, &seed);
            check_conjugates(&r, RANDOM);
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

/* ---- inputs without a result ---- */

static void lu__restores_the_matrix(void **state) {
    (void)state;
    each_square(check_lu, "Lu", 2);
}
static void root_and_logarithm__are_inverse_functions(void **state) {
    (void)state;
    each_square(check_root, "MatrixSquareRoot", 1);
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
        void (*check)(struct request *r, enum kind kind);
    } ops[] = {
        { "Qr", 2, check_qr }, { "Svd", 3, check_svd }, { "SelfAdjointEigV2", 2, check_eigh }, { "Eig", 2, check_eig }
    };
    static const int64_t ns[] = { 2, 4, 8, 12 };
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(ops) * COUNT(ns) * 4; i++) {
            const int exponents[] = { -120, -50, 50, 120 }, exponent = exponents[i % 4];
            const double scale = pow(10, epsilon_of(dtypes[d]) > 1e-10 ? exponent / 8 : exponent);
            const size_t op = i / 4 % COUNT(ops);
            const int64_t n = ns[i / 4 / COUNT(ops)];
            struct request r = { .op = ops[op].op, .dtype = dtypes[d], .n_outputs = ops[op].n_outputs, .n_inputs = 1 };
            r.inputs[0] = make(RANDOM, r.dtype, n, n);
            for (int64_t k = 0; k < n * n; k++)
                r.inputs[0].at[k] *= scale;
            ops[op].check(&r, RANDOM);
            free(r.inputs[0].at);
        }
}

/* Runs a batch and each of its matrices alone. */
static void check_batch(struct request *r) {
    const struct matrix all = r->inputs[0];
    const int64_t n = all.columns;
    struct tare_tensor batch[3], single[3];
    mini_ok(run(r, batch));
    r->inputs[0].rows = n;
    for (int64_t i = 0; i < r->batch; i++) {
        struct request one = *r;
        one.batch = 0;
        one.inputs[0].at = all.at + i * n * n;
        mini_ok(run(&one, single));
        for (int k = 0; k < r->n_outputs; k++) {
            const size_t bytes = (size_t)single[k].elements * tare_dtype_size(single[k].dtype);
            assert_int_equal(batch[k].elements, r->batch * single[k].elements);
            if (memcmp((const char *)batch[k].data + (size_t)i * bytes, single[k].data, bytes) != 0)
                fail_msg("%s %s n=%lld: output %d of matrix %lld differs in a batch", r->op, tare_dtype_name(r->dtype),
                         (long long)n, k, (long long)i);
            tare_tensor_reset(&single[k]);
        }
    }
    for (int k = 0; k < r->n_outputs; k++)
        tare_tensor_reset(&batch[k]);
}

static void batch__each_matrix_has_the_bits_of_a_single_one(void **state) {
    static const struct {
        const char *op;
        int n_outputs;
    } ops[] = { { "Qr", 2 }, { "Svd", 3 },      { "SelfAdjointEigV2", 2 }, { "Eig", 2 },
                { "Lu", 2 }, { "Cholesky", 1 }, { "MatrixInverse", 1 },    { "MatrixDeterminant", 1 } };
    static const int64_t ns[] = { 1, 4, 7, 20, 40 };
    enum { BATCH = 3 };
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t i = 0; i < COUNT(ops) * COUNT(ns); i++) {
            const int64_t n = ns[i % COUNT(ns)];
            struct request r = { .op = ops[i / COUNT(ns)].op, .dtype = dtypes[d], .n_inputs = 1, .batch = BATCH };
            r.n_outputs = ops[i / COUNT(ns)].n_outputs;
            set_result_dtype(&r);
            r.inputs[0] = make(RANDOM, r.dtype, BATCH * n, n);
            for (int64_t row = 0; row < BATCH * n; row++) /* positive definite for Cholesky */
                r.inputs[0].at[row * n + row % n] = 10 * (double)n;
            struct matrix all = r.inputs[0];
            check_batch(&r);
            free(all.at);
        }
}

static void singular_matrices__are_rejected(void **state) {
    static const struct {
        const char *op;
        int n_inputs;
    } ops[] = { { "MatrixInverse", 1 }, { "MatrixSolve", 2 }, { "MatrixTriangularSolve", 2 }, { "Cholesky", 1 } };
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t k = 0; k < COUNT(ops); k++) {
            struct request r = { .op = ops[k].op, .dtype = dtypes[d], .n_outputs = 1, .n_inputs = ops[k].n_inputs };
            struct tare_tensor result;
            r.inputs[0] = make(ZERO, r.dtype, 4, 4);
            r.inputs[1] = make(RANDOM, r.dtype, 4, 2);
            mini_fails(run(&r, &result), k < 3 ? "not invertible" : "Cholesky decomposition was not successful");
            free(r.inputs[0].at), free(r.inputs[1].at);
        }
}

/* Eigenvalues and Cholesky factors of NaN are errors, as in TensorFlow; other results are NaN. */
static void nan__is_an_error_or_the_result(void **state) {
    static const struct {
        const char *op, *error;
        int n_outputs;
    } ops[] = { { "SelfAdjointEigV2", "Self-adjoint eigen decomposition was not successful", 2 },
                { "Cholesky", "Cholesky decomposition was not successful", 1 },
                { "Eig", "Eigen decomposition was not successful", 2 },
                { "MatrixExponential", "the matrix contains values that are not finite", 1 },
                { "Svd", NULL, 3 },
                { "Qr", NULL, 2 },
                { "MatrixDeterminant", NULL, 1 },
                { "MatrixInverse", NULL, 1 } };
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t k = 0; k < 2 * COUNT(ops); k++) {
            const int64_t nans = k % 2 ? 25 : 1;
            struct request r = {
                .op = ops[k / 2].op, .dtype = dtypes[d], .n_outputs = ops[k / 2].n_outputs, .n_inputs = 1
            };
            struct tare_tensor results[3];
            set_result_dtype(&r);
            r.inputs[0] = make(RANDOM, r.dtype, 5, 5);
            for (int64_t i = 0; i < nans; i++)
                r.inputs[0].at[i] = NAN;
            if (ops[k / 2].error) {
                mini_fails(run(&r, results), ops[k / 2].error);
            } else {
                mini_ok(run(&r, results));
                for (int i = 0; i < r.n_outputs; i++) {
                    assert_true(isnan(creal(tare_tensor_get_c128(&results[i], 0))));
                    tare_tensor_reset(&results[i]);
                }
            }
            free(r.inputs[0].at);
        }
}

/* Shapes of empty results; the orthogonal factors of a matrix without columns or rows are the identity. */
static void empty__results_have_the_right_shape(void **state) {
    static const struct {
        const char *op;
        int64_t rows, columns;
        bool full;
        const char *shapes[3];
    } cases[] = {
        { "Qr", 3, 0, true, { "[3,3]", "[3,0]" } },
        { "Qr", 0, 3, false, { "[0,0]", "[0,3]" } },
        { "Svd", 3, 0, true, { "[0]", "[3,3]", "[0,0]" } },
        { "Svd", 0, 2, false, { "[0]", "[0,0]", "[2,0]" } },
        { "SelfAdjointEigV2", 0, 0, false, { "[0]", "[0,0]" } },
        { "Eig", 0, 0, false, { "[0]", "[0,0]" } },
        { "Lu", 0, 0, false, { "[0,0]", "[0]" } },
        { "MatrixDeterminant", 0, 0, false, { "[]" } },
        { "Cholesky", 0, 0, false, { "[0,0]" } },
        { "MatrixInverse", 0, 0, false, { "[0,0]" } },
    };
    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t k = 0; k < COUNT(cases); k++) {
            struct request r = { .op = cases[k].op, .dtype = dtypes[d], .n_inputs = 1 };
            struct tare_tensor results[3];
            char text[TARE_SHAPE_TEXT_SIZE];
            while (r.n_outputs < 3 && cases[k].shapes[r.n_outputs])
                r.n_outputs++;
            r.flag = cases[k].full ? "full_matrices" : NULL;
            set_result_dtype(&r);
            r.inputs[0] = matrix_new(cases[k].rows, cases[k].columns);
            mini_ok(run(&r, results));
            for (int i = 0; i < r.n_outputs; i++) {
                assert_string_equal(tare_shape_text(text, &results[i].shape), cases[k].shapes[i]);
                if (cases[k].full && results[i].elements == 9) {
                    struct matrix q = from_tensor(&results[i]);
                    assert_true(distance(q, identity(3)) == 0);
                }
                tare_tensor_reset(&results[i]);
            }
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
        cmocka_unit_test(least_squares__residual_is_orthogonal),
        cmocka_unit_test(tridiagonal_solve__exchanges_rows),
        cmocka_unit_test(decompositions__do_not_depend_on_magnitude),
        cmocka_unit_test(batch__each_matrix_has_the_bits_of_a_single_one),
        cmocka_unit_test(singular_matrices__are_rejected),
        cmocka_unit_test(nan__is_an_error_or_the_result),
        cmocka_unit_test(empty__results_have_the_right_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
