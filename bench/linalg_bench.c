/* Measures linear algebra ops against LAPACK called directly on the same matrices with one thread, in the same run and
 * alternating, least CPU time of several runs. Prints one line per op and size: microseconds per matrix of both and the
 * ratio. The direct call includes the copy of the matrix, which LAPACK overwrites.
 *
 * Usage: linalg_bench [small] [OP]; small: only the sizes 4 and 16; OP: only this op. */
#include "graph/graph.h"
#include "interpreter/ops/builtin.h"
#include "interpreter/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void openblas_set_num_threads(int threads);
void dsyevd_(const char *, const char *, const int *, double *, const int *, double *, double *, const int *, int *,
             const int *, int *, size_t, size_t);
void dgesdd_(const char *, const int *, const int *, double *, const int *, double *, double *, const int *, double *,
             const int *, double *, const int *, int *, int *, size_t);
void dgeqrf_(const int *, const int *, double *, const int *, double *, double *, const int *, int *);
void dorgqr_(const int *, const int *, const int *, double *, const int *, const double *, double *, const int *,
             int *);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *, double *, const int *,
             int *, size_t);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dgeev_(const char *, const char *, const int *, double *, const int *, double *, double *, double *, const int *,
            double *, const int *, double *, const int *, int *, size_t, size_t);

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);

/* Buffers of the direct calls, large enough for every routine at size n. */
struct direct {
    int n, size, *ints;
    double *a, *b, *c, *values, *more, *work;
};

static void eigh(struct direct *d) {
    int info;
    dsyevd_("V", "L", &d->n, d->a, &d->n, d->values, d->work, &d->size, d->ints, &d->size, &info, 1, 1);
}
static void svd(struct direct *d) {
    int info;
    dgesdd_("S", &d->n, &d->n, d->a, &d->n, d->values, d->b, &d->n, d->c, &d->n, d->work, &d->size, d->ints, &info, 1);
}
static void qr(struct direct *d) {
    int info;
    dgeqrf_(&d->n, &d->n, d->a, &d->n, d->values, d->work, &d->size, &info);
    dorgqr_(&d->n, &d->n, &d->n, d->a, &d->n, d->values, d->work, &d->size, &info);
}
static void inverse(struct direct *d) {
    int info;
    dgetrf_(&d->n, &d->n, d->a, &d->n, d->ints, &info);
    memset(d->b, 0, (size_t)d->n * (size_t)d->n * sizeof *d->b);
    for (int i = 0; i < d->n; i++)
        d->b[i * d->n + i] = 1;
    dgetrs_("N", &d->n, &d->n, d->a, &d->n, d->ints, d->b, &d->n, &info, 1);
}
static void determinant(struct direct *d) {
    int info;
    dgetrf_(&d->n, &d->n, d->a, &d->n, d->ints, &info);
}
static void cholesky(struct direct *d) {
    int info;
    dpotrf_("U", &d->n, d->a, &d->n, &info, 1);
}
static void eig(struct direct *d) {
    int info;
    const int one = 1;
    dgeev_("N", "V", &d->n, d->a, &d->n, d->values, d->more, NULL, &one, d->b, &d->n, d->work, &d->size, &info, 1, 1);
}

/* The square of the matrix; the op's second operand is the transpose. */
static void product(struct direct *d) {
    const double one = 1, zero = 0;
    dgemm_("N", "T", &d->n, &d->n, &d->n, &one, d->a, &d->n, d->a, &d->n, &zero, d->b, &d->n, 1, 1);
}

static const struct {
    const char *op;
    int n_outputs;
    void (*call)(struct direct *direct);
} ops[] = {
    { "SelfAdjointEigV2", 2, eigh },
    { "Svd", 3, svd },
    { "Qr", 2, qr },
    { "MatrixInverse", 1, inverse },
    { "MatrixDeterminant", 1, determinant },
    { "Cholesky", 1, cholesky },
    { "Eig", 2, eig },
    { "BatchMatMulV2", 1, product },
};

/* CPU time, which other processes disturb little. */
static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(tare_status status) {
    if (status == TARE_OK) return;
    fprintf(stderr, "linalg_bench: %s\n", tare_error_text());
    exit(1);
}

/* Symmetric matrices; `dominant` makes the diagonal so large that they are positive definite. */
static void fill(double *values, int64_t count, int64_t n, bool dominant) {
    for (int64_t i = 0; i < count * n * n; i++) {
        const int64_t r = i / n % n, c = i % n, low = r < c ? r : c, high = r < c ? c : r;
        values[i] = (double)((low * 2654435761u + high * 40503u + i / (n * n) * 97u) % 1000) / 500.0 - 1.0 +
                    (dominant && r == c ? 2.0 * (double)n : 0);
    }
}

static struct tare_session *open_op(struct tare_edge *input, struct tare_edge *outputs, const char *op, int n_outputs) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    struct tare_node *x = tare_graph_add(model->main, "Placeholder", "x"), *node = tare_graph_add(model->main, op, "y");
    struct tare_session *session;
    check(tare_node_set_type(x, "dtype", TARE_DT_DOUBLE));
    check(tare_node_resolve(x));
    check(tare_node_add_input(node, (struct tare_edge){ x, 0 }));
    check(tare_node_set_type(node, "T", TARE_DT_DOUBLE));
    if (strcmp(op, "BatchMatMulV2") == 0) {
        check(tare_node_add_input(node, (struct tare_edge){ x, 0 }));
        check(tare_node_set_bool(node, "adj_y", true));
    }
    if (strcmp(op, "Eig") == 0) check(tare_node_set_type(node, "Tout", TARE_DT_COMPLEX128));
    check(tare_node_resolve(node));
    check(tare_session_new(&session, model, NULL));
    *input = (struct tare_edge){ x, 0 };
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = (struct tare_edge){ node, i };
    return session;
}

static double run_op(struct tare_session *session, struct tare_edge input, const struct tare_tensor *value,
                     const struct tare_edge *outputs, int n_outputs) {
    struct tare_tensor results[3];
    const double start = cpu_seconds();
    check(tare_session_run(session, &input, value, 1, outputs, results, (size_t)n_outputs, NULL, 0));
    const double seconds = cpu_seconds() - start;
    for (int i = 0; i < n_outputs; i++)
        tare_tensor_reset(&results[i]);
    return seconds;
}

static double run_direct(struct direct *d, const double *values, int64_t count, void (*call)(struct direct *direct)) {
    const size_t size = (size_t)d->n * (size_t)d->n;
    const double start = cpu_seconds();
    for (int64_t i = 0; i < count; i++) {
        memcpy(d->a, values + (size_t)i * size, size * sizeof *values);
        call(d);
    }
    return cpu_seconds() - start;
}

static void measure(size_t which, int64_t count, int64_t n) {
    const struct tare_shape shape = { .rank = 3, .dims = { count, n, n } };
    const size_t square = (size_t)(n * n);
    struct direct d = { .n = (int)n, .size = (int)(12 * n * n + 200 * n + 1000) };
    struct tare_edge input, outputs[3];
    struct tare_tensor value;
    double best = 1e9, best_direct = 1e9;
    d.a = calloc(square, 8), d.b = calloc(square, 8), d.c = calloc(square, 8), d.values = calloc((size_t)n, 8);
    d.more = calloc((size_t)n, 8), d.work = calloc((size_t)d.size, 8), d.ints = calloc((size_t)d.size, sizeof(int));
    if (!d.a || !d.b || !d.c || !d.values || !d.more || !d.work || !d.ints) exit(1);
    check(tare_tensor_new(&value, TARE_DT_DOUBLE, &shape));
    fill(value.data, count, n, ops[which].call == cholesky);
    struct tare_session *session = open_op(&input, outputs, ops[which].op, ops[which].n_outputs);
    for (int round = 0; round < (n >= 512 ? 10 : n >= 128 ? 20 : 100); round++) {
        const double own = run_op(session, input, &value, outputs, ops[which].n_outputs);
        const double direct = run_direct(&d, value.data, count, ops[which].call);
        if (own < best) best = own;
        if (direct < best_direct) best_direct = direct;
    }
    printf("%-18s %4lld x [%lld,%lld]  own %10.2f us  lapack %10.2f us  ratio %.2f\n", ops[which].op, (long long)count,
           (long long)n, (long long)n, best / (double)count * 1e6, best_direct / (double)count * 1e6,
           best / best_direct);
    fflush(stdout);
    tare_session_free(session);
    tare_tensor_reset(&value);
    free(d.a), free(d.b), free(d.c), free(d.values), free(d.more), free(d.work), free(d.ints);
}

int main(int argc, char **argv) {
    static const int64_t sizes[][2] = { { 1000, 4 }, { 100, 16 }, { 4, 128 }, { 1, 512 } };
    const bool small = argc > 1 && strcmp(argv[1], "small") == 0;
    const char *only = argc > 1 + small ? argv[1 + small] : NULL;
    openblas_set_num_threads(1);
    for (size_t which = 0; which < sizeof ops / sizeof *ops; which++)
        for (size_t i = 0; i < (small ? 2 : 4) && (!only || strcmp(only, ops[which].op) == 0); i++)
            measure(which, sizes[i][0], sizes[i][1]);
    return 0;
}
