/* The LAPACK custom calls of JAX, lapack_<s|d|c|z><routine>_ffi (jaxlib/cpu/lapack_kernels.cc), and the corresponding
 * ones for TPU. Operands and results are batches: the last dimensions are those of the matrix or vector, and the
 * routine runs for each matrix. Options are characters in the backend_config; `info` of a matrix is the last result.
 * Logical indices do not depend on layouts, so tensors are row-major here and transposed for LAPACK. */
#include "interpreter/kernels/lapack_reductions.h"
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/support/backend_config.h"
#include "interpreter/ops/xla/custom_call_row.h"

#include "base/alloc.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { MOST_OPERANDS = 4, MOST_RESULTS = 6 };

struct call;

/* A routine. Operands and results are one letter each:
 * M [m, n] as operand 0; Q [n, n]; B [rows, columns] as operand 1 (gtsv: 3); U, V the singular vectors;
 * N vector [n], T [reflectors], t [n - 1], of the routine's type; R, S, r the same of its real
 * type; C [n, n] complex; I, P int32 vectors [min(m, n)] and [m]; i int32 scalar. */
struct routine {
    const char *operands, *results;
    tare_status (*run)(struct call *call);
    bool finite; /* operand 0 must be finite: LAPACK's iterations may not end otherwise */
};

struct call {
    struct tare_kernel *kernel;
    const struct routine *routine;
    enum tare_lapack_type type;
    int m, n, least, reflectors, rows, columns, u_columns, v_rows;
    int64_t batch;
    void *in[MOST_OPERANDS], *out[MOST_RESULTS]; /* of one matrix; matrices are column-major */
    struct tare_arena work;                      /* reset after each matrix */
};

/* A character option: 'L' for "uplo = 76 : ui8". */
static char option(const struct call *call, const char *key, char fallback) {
    return (char)tare_backend_config_int(call->kernel, key, fallback);
}

static struct tare_lapack_problem problem(struct call *call) {
    return (struct tare_lapack_problem){ call->type, call->n, &call->work };
}

static bool is_matrix(char letter) {
    return strchr("MQBUVC", letter) != NULL;
}
static bool is_int(char letter) {
    return strchr("IPi", letter) != NULL;
}

/* Rows and columns of a result or operand; a vector has one column, a scalar one element. */
static void dims_of(const struct call *call, char letter, int *rows, int *columns) {
    const struct {
        char letter;
        int rows, columns;
    } dims[] = {
        { 'M', call->m, call->n },
        { 'Q', call->n, call->n },
        { 'B', call->rows, call->columns },
        { 'U', call->m, call->u_columns },
        { 'V', call->v_rows, call->n },
        { 'C', call->n, call->n },
        { 'N', call->n, 1 },
        { 'R', call->n, 1 },
        { 'T', call->reflectors, 1 },
        { 'S', call->least, 1 },
        { 't', call->n - 1, 1 },
        { 'r', call->n - 1, 1 },
        { 'I', call->least, 1 },
        { 'P', call->m, 1 },
    };
    *rows = *columns = 1;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        if (dims[i].letter == letter) *rows = dims[i].rows > 0 ? dims[i].rows : 0, *columns = dims[i].columns;
}

static size_t element_size(const struct call *call, char letter) {
    if (is_int(letter)) return sizeof(int32_t);
    if (strchr("RSr", letter)) return tare_lapack_real_size(call->type);
    return letter == 'C' ? 2 * tare_lapack_real_size(call->type) : tare_lapack_size(call->type);
}

static int dtype_of(const struct call *call, char letter) {
    const bool is_double = tare_lapack_real_size(call->type) == 8;
    if (is_int(letter)) return TARE_DT_INT32;
    if (strchr("RSr", letter)) return is_double ? TARE_DT_DOUBLE : TARE_DT_FLOAT;
    if (letter == 'C') return is_double ? TARE_DT_COMPLEX128 : TARE_DT_COMPLEX64;
    return call->kernel->inputs[0].dtype;
}

/* ---- routines ---- */

static void copy(struct call *call, size_t result, size_t operand) {
    int rows, columns;
    dims_of(call, call->routine->operands[operand], &rows, &columns);
    memcpy(call->out[result], call->in[operand], (size_t)rows * (size_t)columns * tare_lapack_size(call->type));
}
static void set_info(struct call *call, size_t result, int info) {
    *(int32_t *)call->out[result] = info;
}

static tare_status run_potrf(struct call *c) {
    copy(c, 0, 0);
    set_info(c, 1, tare_lapack_potrf(c->type, option(c, "uplo", 'L') == 'U', c->n, c->out[0]));
    return TARE_OK;
}

static tare_status run_getrf(struct call *c) {
    copy(c, 0, 0);
    set_info(c, 2, tare_lapack_getrf(c->type, c->m, c->n, c->out[0], c->out[1]));
    return TARE_OK;
}

/* The same with pivots from 0, and the row order that they produce. */
static tare_status run_lu(struct call *c) {
    int32_t *pivots = c->out[1], *order = c->out[2];
    copy(c, 0, 0);
    tare_lapack_getrf(c->type, c->m, c->n, c->out[0], pivots);
    for (int i = 0; i < c->m; i++)
        order[i] = i;
    for (int i = 0; i < c->least; i++) {
        const int32_t other = --pivots[i], moved = order[i];
        order[i] = order[other];
        order[other] = moved;
    }
    return TARE_OK;
}

static tare_status run_geqrf(struct call *c) {
    struct tare_lapack_work work;
    copy(c, 0, 0);
    TARE_TRY(tare_lapack_qr_open(&work, c->type, c->m, c->n, c->least, &c->work));
    tare_lapack_geqrf(&work, c->out[0], c->out[1]);
    return TARE_OK;
}

/* The first n columns of Q, of which the operand contains the reflectors. */
static tare_status run_orgqr(struct call *c) {
    struct tare_lapack_work work;
    copy(c, 0, 0);
    if (c->n > c->m || c->reflectors > c->n)
        return TARE_FAIL(TARE_SHAPE, "%d columns of Q from %d reflectors of %d rows", c->n, c->reflectors, c->m);
    TARE_TRY(tare_lapack_qr_open(&work, c->type, c->m, c->reflectors, c->n, &c->work));
    tare_lapack_orgqr(&work, c->out[0], c->in[1]);
    return TARE_OK;
}

static tare_status run_gesdd(struct call *c) {
    struct tare_lapack_work work;
    copy(c, 0, 0);
    TARE_TRY(tare_lapack_svd_open(&work, c->type, c->m, c->n, option(c, "mode", 'A'), &c->work));
    set_info(c, 4, tare_lapack_gesdd(&work, c->out[0], c->out[1], c->out[2], c->out[3]));
    return TARE_OK;
}

static int solve_eigh(struct call *c, bool upper, tare_status *status) {
    struct tare_lapack_work work;
    copy(c, 0, 0);
    *status = tare_lapack_eigh_open(&work, c->type, c->n, option(c, "mode", 'V'), &c->work);
    return *status == TARE_OK ? tare_lapack_syevd(&work, upper, c->out[0], c->out[1]) : 0;
}

static tare_status run_syevd(struct call *c) {
    tare_status status;
    set_info(c, 2, solve_eigh(c, option(c, "uplo", 'L') == 'U', &status));
    return status;
}

/* The call for TPU; its configuration is "<lower>,<sorted>,<iterations>,<tolerance>". */
static tare_status run_eigh(struct call *c) {
    const char *config = tare_node_string(c->kernel->node, "backend_config", NULL);
    tare_status status;
    if (solve_eigh(c, config && *config == '0', &status) && status == TARE_OK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the eigenvalues did not converge");
    return status;
}

/* Complex vectors from the real and imaginary parts that geev stores in two columns. */
static void join_vectors(struct call *c, size_t result, const void *parts, const void *imaginary) {
    const int n = c->n;
    const bool is_double = c->type == TARE_LAPACK_D;
    for (int k = 0; k < n; k++) {
        const double sign = creal(tare_matrix_at(imaginary, c->type, k));
        const int64_t real = sign < 0 ? k - 1 : k, other = sign < 0 ? k : k + 1;
        for (int64_t i = 0; i < n; i++) {
            tare_complex x = tare_matrix_at(parts, c->type, real * n + i);
            if (sign != 0) x += copysign(1, sign) * I * tare_matrix_at(parts, c->type, other * n + i);
            if (is_double)
                ((tare_complex *)c->out[result])[k * n + i] = x;
            else
                ((_Complex float *)c->out[result])[k * n + i] = (_Complex float)x;
        }
    }
}

static tare_status run_geev(struct call *c) {
    const int64_t size = (int64_t)c->n * c->n;
    const char left = option(c, "compute_left", 'V'), right = option(c, "compute_right", 'V');
    struct tare_lapack_work work;
    TARE_TRY(tare_lapack_eig_open(&work, c->type, c->n, left, right, &c->work));
    if (tare_lapack_is_complex(c->type)) {
        set_info(c, 3, tare_lapack_geev(&work, c->in[0], c->out[0], NULL, c->out[1], c->out[2]));
        return TARE_OK;
    }
    void *vl = tare_matrix_new(&c->work, c->type, size), *vr = tare_matrix_new(&c->work, c->type, size);
    if (!vl || !vr) return TARE_NO_MEMORY;
    set_info(c, 4, tare_lapack_geev(&work, c->in[0], c->out[0], c->out[1], vl, vr));
    join_vectors(c, 2, vl, c->out[1]);
    join_vectors(c, 3, vr, c->out[1]);
    return TARE_OK;
}

static tare_status run_gehrd(struct call *c) {
    const struct tare_lapack_problem p = problem(c);
    int info = 0;
    copy(c, 0, 0);
    TARE_TRY(tare_lapack_gehrd(&p, (int)tare_backend_config_int(c->kernel, "low", 1),
                               (int)tare_backend_config_int(c->kernel, "high", c->n), c->out[0], c->out[1], &info));
    set_info(c, 2, info);
    return TARE_OK;
}

/* The number of selected eigenvalues is 0: sorting is not requested. */
static tare_status run_gees(struct call *c) {
    const struct tare_lapack_problem p = problem(c);
    const bool is_complex = tare_lapack_is_complex(c->type);
    int info = 0;
    if (option(c, "sort", 'N') != 'N') return TARE_FAIL(TARE_UNSUPPORTED, "sorted Schur forms are not supported");
    copy(c, 0, 0);
    TARE_TRY(tare_lapack_gees(&p, option(c, "mode", 'V') == 'V', c->out[0], c->out[2], is_complex ? NULL : c->out[3],
                              c->out[1], &info));
    set_info(c, is_complex ? 3 : 4, 0);
    set_info(c, is_complex ? 4 : 5, info);
    return TARE_OK;
}

static tare_status run_trsm(struct call *c) {
    const char form[] = { option(c, "side", 'L'), option(c, "uplo", 'L'), option(c, "trans_x", 'N'),
                          option(c, "diag", 'N') };
    copy(c, 0, 1);
    if (c->n != (form[0] == 'L' ? c->rows : c->columns)) return TARE_FAIL(TARE_SHAPE, "the matrices do not fit");
    if (c->rows && c->columns) tare_lapack_trsm(c->type, form, c->rows, c->columns, c->in[0], c->n, c->out[0], c->rows);
    return TARE_OK;
}

static tare_status run_sytrd(struct call *c) {
    const struct tare_lapack_problem p = problem(c);
    int info = 0;
    copy(c, 0, 0);
    TARE_TRY(tare_lapack_sytrd(&p, option(c, "uplo", 'L') == 'U', c->out[0], c->out[1], c->out[2], c->out[3], &info));
    set_info(c, 4, info);
    return TARE_OK;
}

/* The first element of the subdiagonal and the last one of the superdiagonal are unused. */
static tare_status run_gtsv(struct call *c) {
    for (size_t i = 0; i < 4; i++)
        copy(c, i, i);
    char *below = c->out[0];
    set_info(c, 4,
             tare_lapack_gtsv(c->type, c->n, c->columns, below + tare_lapack_size(c->type), c->out[1], c->out[2],
                              c->out[3]));
    return TARE_OK;
}

/* ---- batches ---- */

static tare_status check_counts(const struct tare_kernel *kernel, const struct routine *routine) {
    const size_t operands = strlen(routine->operands), results = strlen(routine->results);
    if (kernel->n_inputs != operands || kernel->n_outputs != results)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu operands and %zu results (expected %zu and %zu)", kernel->n_inputs,
                         kernel->n_outputs, operands, results);
    switch (kernel->inputs[0].dtype) {
    case TARE_DT_FLOAT:
    case TARE_DT_DOUBLE:
    case TARE_DT_COMPLEX64:
    case TARE_DT_COMPLEX128:
        return TARE_OK;
    default:
        return TARE_FAIL(TARE_TYPE, "operand 0 is %s (expected float32, float64, complex64 or complex128)",
                         tare_dtype_name(kernel->inputs[0].dtype));
    }
}

/* The dimensions of the right-hand sides and the number of reflectors, where the routine has them. */
static tare_status read_further_dims(struct call *c) {
    const char *b_letter = strchr(c->routine->operands, 'B'), *tau_letter = strchr(c->routine->operands, 'T');
    if (b_letter) {
        const struct tare_shape *b = &c->kernel->inputs[b_letter - c->routine->operands].shape;
        if (b->rank < 2) return TARE_FAIL(TARE_SHAPE, "the right-hand sides have rank %d", b->rank);
        TARE_TRY(tare_matrix_open(b->dims[b->rank - 2], b->dims[b->rank - 1]));
        c->rows = (int)b->dims[b->rank - 2], c->columns = (int)b->dims[b->rank - 1];
    }
    c->reflectors = c->least;
    if (tau_letter) {
        const struct tare_shape *tau = &c->kernel->inputs[tau_letter - c->routine->operands].shape;
        if (tau->rank < 1) return TARE_FAIL(TARE_SHAPE, "the factors of the reflectors have rank 0");
        TARE_TRY(tare_matrix_open(tau->dims[tau->rank - 1], 1));
        c->reflectors = (int)tau->dims[tau->rank - 1];
    }
    return TARE_OK;
}

static tare_status read_operand_dims(struct call *c) {
    const struct tare_shape *a = &c->kernel->inputs[0].shape;
    const bool is_vector = !is_matrix(c->routine->operands[0]);
    const int rank = is_vector ? 1 : 2;
    if (a->rank < rank) return TARE_FAIL(TARE_SHAPE, "operand 0 has rank %d (expected at least %d)", a->rank, rank);
    const int64_t n = a->dims[a->rank - 1], m = is_vector ? n : a->dims[a->rank - 2];
    TARE_TRY(tare_matrix_open(m, is_vector ? 1 : n));
    c->m = (int)m, c->n = (int)n, c->least = (int)(m < n ? m : n);
    c->batch = 1;
    for (int d = 0; d < a->rank - rank; d++)
        if (!tare_mul_i64(&c->batch, c->batch, a->dims[d])) return TARE_FAIL(TARE_SHAPE, "too many matrices");
    TARE_TRY(read_further_dims(c));
    const char mode = option(c, "mode", 'A');
    c->u_columns = mode == 'A' ? c->m : c->least;
    c->v_rows = mode == 'A' ? c->n : c->least;
    const bool square =
        strpbrk(c->routine->results, "QRCrt") || c->routine->run == run_potrf || c->routine->run == run_trsm;
    if (square && c->m != c->n) return TARE_FAIL(TARE_SHAPE, "a matrix of %d x %d (expected a square one)", c->m, c->n);
    return TARE_OK;
}

/* Checks that all operands have the type and the shapes of the routine, and allocates their buffers. */
static tare_status open_operands(struct call *c) {
    for (size_t i = 0; c->routine->operands[i]; i++) {
        const struct tare_tensor *operand = &c->kernel->inputs[i];
        int rows, columns;
        dims_of(c, c->routine->operands[i], &rows, &columns);
        if (operand->dtype != c->kernel->inputs[0].dtype || operand->elements != c->batch * rows * columns)
            return TARE_FAIL(TARE_SHAPE, "operand %zu does not fit the others", i);
        c->in[i] = tare_matrix_new(c->kernel->scratch, TARE_LAPACK_Z, (int64_t)rows * columns + 1);
        if (!c->in[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status open_results(struct call *c) {
    const struct tare_shape *a = &c->kernel->inputs[0].shape;
    const int n_batch = a->rank - (is_matrix(c->routine->operands[0]) ? 2 : 1);
    for (size_t i = 0; c->routine->results[i]; i++) {
        const char letter = c->routine->results[i];
        struct tare_shape shape = *a;
        int rows, columns;
        dims_of(c, letter, &rows, &columns);
        shape.rank = n_batch;
        if (letter != 'i') shape.dims[shape.rank++] = rows;
        if (is_matrix(letter)) shape.dims[shape.rank++] = columns;
        TARE_TRY(tare_kernel_output(c->kernel, i, dtype_of(c, letter), &shape));
        if (c->kernel->outputs[i].dtype != c->kernel->node->output_dtypes[i])
            return TARE_FAIL(TARE_TYPE, "result %zu is declared as %s (expected %s)", i,
                             tare_dtype_name(c->kernel->node->output_dtypes[i]), tare_dtype_name(dtype_of(c, letter)));
        c->out[i] = tare_matrix_new(c->kernel->scratch, TARE_LAPACK_Z, (int64_t)rows * columns + 1);
        if (!c->out[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* Between row-major tensors and column-major buffers, for elements of any size. */
static void transpose_any(void *to, const void *from, size_t size, int64_t rows, int64_t columns) {
    const enum tare_lapack_type type = size == 4 ? TARE_LAPACK_S : size == 8 ? TARE_LAPACK_D : TARE_LAPACK_Z;
    tare_matrix_transpose(to, from, type, rows, columns, false);
}

static bool load(struct call *c, int64_t at) {
    bool finite = true;
    for (size_t i = 0; c->routine->operands[i]; i++) {
        const size_t size = tare_lapack_size(c->type);
        int rows, columns;
        dims_of(c, c->routine->operands[i], &rows, &columns);
        const int64_t count = (int64_t)rows * columns;
        transpose_any(c->in[i], (const char *)c->kernel->inputs[i].data + (size_t)(at * count) * size, size, rows,
                      columns);
        if (i == 0) finite = tare_matrix_is_finite(c->in[0], c->type, count);
    }
    return finite;
}

static void store(struct call *c, int64_t at) {
    for (size_t i = 0; c->routine->results[i]; i++) {
        const size_t size = element_size(c, c->routine->results[i]);
        int rows, columns;
        dims_of(c, c->routine->results[i], &rows, &columns);
        const int64_t count = (int64_t)rows * columns;
        transpose_any((char *)c->kernel->outputs[i].data + (size_t)(at * count) * size, c->out[i], size, columns, rows);
    }
}

/* The results of a matrix that is not finite: NaN, and an info that reports no convergence. */
static void set_nan(struct call *c) {
    for (size_t i = 0; c->routine->results[i]; i++) {
        const char letter = c->routine->results[i];
        int rows, columns;
        dims_of(c, letter, &rows, &columns);
        const size_t numbers = (size_t)rows * (size_t)columns * element_size(c, letter);
        if (is_int(letter)) {
            for (size_t k = 0; k < numbers / sizeof(int32_t); k++)
                ((int32_t *)c->out[i])[k] = 1;
        } else if (tare_lapack_real_size(c->type) == 4) {
            for (size_t k = 0; k < numbers / sizeof(float); k++)
                ((float *)c->out[i])[k] = NAN;
        } else {
            for (size_t k = 0; k < numbers / sizeof(double); k++)
                ((double *)c->out[i])[k] = (double)NAN;
        }
    }
}

static tare_status run_lapack(struct tare_kernel *kernel, const void *arg) {
    struct call c = { .kernel = kernel, .routine = arg };
    tare_status status = TARE_OK;
    TARE_TRY(check_counts(kernel, c.routine));
    c.type = tare_matrix_type(kernel->inputs[0].dtype);
    TARE_TRY(read_operand_dims(&c));
    TARE_TRY(open_operands(&c));
    TARE_TRY(open_results(&c));
    for (int64_t i = 0; status == TARE_OK && i < c.batch; i++) {
        const bool finite = load(&c, i);
        if (!finite && c.routine->finite)
            set_nan(&c);
        else if (c.m && c.n)
            status = c.routine->run(&c);
        store(&c, i);
        tare_arena_reset(&c.work);
    }
    tare_arena_free(&c.work);
    return status;
}

static const struct routine potrf = { "M", "Mi", run_potrf, false }, getrf = { "M", "MIi", run_getrf, false },
                            lu = { "M", "MIP", run_lu, false }, geqrf = { "M", "MT", run_geqrf, false },
                            orgqr = { "MT", "M", run_orgqr, false }, gesdd = { "M", "MSUVi", run_gesdd, true },
                            syevd = { "M", "MRi", run_syevd, true }, eigh = { "M", "MR", run_eigh, true },
                            geev_real = { "M", "NNCCi", run_geev, true },
                            geev_complex = { "M", "NQQi", run_geev, true }, gehrd = { "M", "Mti", run_gehrd, false },
                            gees_real = { "M", "MQNNii", run_gees, true },
                            gees_complex = { "M", "MQNii", run_gees, true }, trsm = { "MB", "B", run_trsm, false },
                            sytrd = { "M", "MRrti", run_sytrd, false }, gtsv = { "NNNB", "NNNBi", run_gtsv, false };

#define REAL(name, routine)                                                                                            \
    { "lapack_s" name "_ffi", run_lapack, &routine }, {                                                                \
        "lapack_d" name "_ffi", run_lapack, &routine                                                                   \
    }
#define COMPLEX(name, routine)                                                                                         \
    { "lapack_c" name "_ffi", run_lapack, &routine }, {                                                                \
        "lapack_z" name "_ffi", run_lapack, &routine                                                                   \
    }

const struct tare_custom_call tare_lapack_calls[] = {
    REAL("potrf", potrf),
    COMPLEX("potrf", potrf),
    REAL("getrf", getrf),
    COMPLEX("getrf", getrf),
    REAL("geqrf", geqrf),
    COMPLEX("geqrf", geqrf),
    REAL("orgqr", orgqr),
    COMPLEX("ungqr", orgqr),
    REAL("gesdd", gesdd),
    COMPLEX("gesdd", gesdd),
    REAL("syevd", syevd),
    COMPLEX("heevd", syevd),
    REAL("geev", geev_real),
    COMPLEX("geev", geev_complex),
    REAL("gehrd", gehrd),
    COMPLEX("gehrd", gehrd),
    REAL("gees", gees_real),
    COMPLEX("gees", gees_complex),
    REAL("trsm", trsm),
    COMPLEX("trsm", trsm),
    REAL("sytrd", sytrd),
    COMPLEX("hetrd", sytrd),
    REAL("gtsv", gtsv),
    COMPLEX("gtsv", gtsv),
    { "LuDecomposition", run_lapack, &lu },
    { "Qr", run_lapack, &geqrf },
    { "ProductOfElementaryHouseholderReflectors", run_lapack, &orgqr },
    { "Eigh", run_lapack, &eigh },
    { 0 },
};
