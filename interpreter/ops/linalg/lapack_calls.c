/* The LAPACK custom calls of JAX, lapack_<s|d|c|z><routine>_ffi (jaxlib/cpu/lapack_kernels.cc), and the corresponding
 * ones for TPU. Operands and results are batches of the arrays of a call (lapack.h): the last dimensions are those of
 * the matrix or vector, and the routine runs for each matrix. Options are characters in the backend_config. Logical
 * indices do not depend on layouts, so tensors are row-major here and transposed for LAPACK. */
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/support/backend_config.h"
#include "interpreter/ops/xla/custom_call_row.h"

#include "base/alloc.h"

#include <string.h>

enum { MOST_ARRAYS = 7 }; /* and the empty name after the last one */

struct call;

/* Operands and results are arrays of the call, or one of its numbers info and rank; "VL" and "V" are the complex
 * vectors that a real type stores in two columns of vl and v. Those with '+' exist for complex types only, with '-' for
 * real types. `run` replaces tare_lapack_run. */
struct routine {
    enum tare_lapack_routine routine;
    const char *operands, *results;
    bool square, finite; /* what operand 0 must be: LAPACK's iterations may not end for NaN */
    tare_status (*run)(struct call *call);
};

/* Arrays and the tensors that they are copied from or to. */
struct list {
    size_t count;
    char names[MOST_ARRAYS][8];
    struct tare_lapack_array arrays[MOST_ARRAYS];
};

struct call {
    struct tare_kernel *kernel;
    const struct routine *routine;
    struct tare_lapack_call lapack;
    int b_rows;
    int64_t batch;
    struct list operands, results;
    void *info, *rank, *joined[2]; /* results that are not arrays of the routine */
};

/* A character option: 'L' for "uplo = 76 : ui8". */
static char option(const struct call *call, const char *key, char fallback) {
    return (char)tare_backend_config_int(call->kernel, key, fallback);
}

/* ---- routines that need more than a call of LAPACK's ---- */

/* Pivots from 0, and the row order that they produce. */
static tare_status run_lu(struct call *c) {
    int *pivots = c->lapack.pivots;
    const int count = c->lapack.m < c->lapack.n ? c->lapack.m : c->lapack.n;
    tare_lapack_run(&c->lapack);
    tare_matrix_order(c->lapack.order, c->lapack.m, pivots, count);
    for (int i = 0; i < count; i++)
        pivots[i]--;
    return TARE_OK;
}

/* The first n columns of Q, of which the operand contains the reflectors. */
static tare_status run_orgqr(struct call *c) {
    const struct tare_lapack_call *q = &c->lapack;
    if (q->n > q->m || q->k > q->n)
        return TARE_FAIL(TARE_SHAPE, "%d columns of Q from %d reflectors of %d rows", q->n, q->k, q->m);
    tare_lapack_run(&c->lapack);
    return TARE_OK;
}

/* The call for TPU has no info. */
static tare_status run_eigh(struct call *c) {
    if (!tare_lapack_run(&c->lapack)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "the eigenvalues did not converge");
}

/* Complex vectors from the real and imaginary parts that geev stores in two columns. */
static void join_vectors(const struct tare_lapack_call *c, void *to, const void *parts) {
    const enum tare_lapack_type type = c->type == TARE_LAPACK_D ? TARE_LAPACK_Z : TARE_LAPACK_C;
    const int64_t n = c->n;
    for (int64_t i = 0; i < n * n; i++)
        tare_matrix_set(to, type, i, tare_matrix_eigenvector(c, parts, i / n, i % n));
}

static tare_status run_geev(struct call *c) {
    tare_lapack_run(&c->lapack);
    if (tare_lapack_is_complex(c->lapack.type)) return TARE_OK;
    join_vectors(&c->lapack, c->joined[0], c->lapack.vl);
    join_vectors(&c->lapack, c->joined[1], c->lapack.v);
    return TARE_OK;
}

/* The number of selected eigenvalues is 0: sorting is not requested. */
static tare_status run_gees(struct call *c) {
    if (option(c, "sort", 'N') != 'N') return TARE_FAIL(TARE_UNSUPPORTED, "sorted Schur forms are not supported");
    tare_lapack_run(&c->lapack);
    return TARE_OK;
}

static tare_status run_trsm(struct call *c) {
    const struct tare_lapack_call *t = &c->lapack;
    const char form[] = { option(c, "side", 'L'), t->uplo, option(c, "trans_x", 'N'), option(c, "diag", 'N') };
    if (t->n != (form[0] == 'L' ? c->b_rows : t->k)) return TARE_FAIL(TARE_SHAPE, "the matrices do not fit");
    if (c->b_rows && t->k) tare_lapack_trsm(t->type, form, c->b_rows, t->k, t->a, t->n, t->b, c->b_rows);
    return TARE_OK;
}

/* ---- arrays ---- */

static struct tare_lapack_array array_of(struct call *c, const char *name) {
    const int n = c->lapack.n;
    if (strcmp(name, "info") == 0) return (struct tare_lapack_array){ &c->info, 0, 1, 1, TARE_LAPACK_OF_INTS };
    if (strcmp(name, "rank") == 0) return (struct tare_lapack_array){ &c->rank, 0, 1, 1, TARE_LAPACK_OF_INTS };
    if (strcmp(name, "VL") == 0) return (struct tare_lapack_array){ &c->joined[0], 2, n, n, TARE_LAPACK_OF_COMPLEX };
    if (strcmp(name, "V") == 0) return (struct tare_lapack_array){ &c->joined[1], 2, n, n, TARE_LAPACK_OF_COMPLEX };
    struct tare_lapack_array array = tare_lapack_array(&c->lapack, name);
    if (strcmp(name, "b") == 0) array.rows = c->b_rows;
    return array;
}

/* The dtype of an array's elements. */
static int dtype_of(const struct call *c, const struct tare_lapack_array *array) {
    const bool is_double = tare_lapack_real_size(c->lapack.type) == 8;
    if (array->elements == TARE_LAPACK_OF_TYPE) return c->kernel->inputs[0].dtype;
    if (array->elements == TARE_LAPACK_OF_INTS) return TARE_DT_INT32;
    if (array->elements == TARE_LAPACK_OF_REALS) return is_double ? TARE_DT_DOUBLE : TARE_DT_FLOAT;
    return is_double ? TARE_DT_COMPLEX128 : TARE_DT_COMPLEX64;
}

/* ---- batches ---- */

static tare_status check_dtype(const struct tare_kernel *kernel) {
    const int dtype = kernel->n_inputs ? kernel->inputs[0].dtype : TARE_DT_INVALID;
    if (dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_COMPLEX64 || dtype == TARE_DT_COMPLEX128)
        return TARE_OK;
    return TARE_FAIL(TARE_TYPE, "operand 0 is %s (expected float32, float64, complex64 or complex128)",
                     tare_dtype_name(dtype));
}

static tare_status open_lists(struct call *c) {
    const char *operands = c->routine->operands, *results = c->routine->results;
    while (tare_lapack_next_name(c->operands.names[c->operands.count], &operands, c->lapack.type))
        c->operands.count++;
    while (tare_lapack_next_name(c->results.names[c->results.count], &results, c->lapack.type))
        c->results.count++;
    if (c->kernel->n_inputs == c->operands.count && c->kernel->n_outputs == c->results.count) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu operands and %zu results (expected %zu and %zu)", c->kernel->n_inputs,
                     c->kernel->n_outputs, c->operands.count, c->results.count);
}

/* The last dimension of operand i, which is that of a vector, or the last two. */
static tare_status read_dims(const struct call *c, size_t i, int rank, int *rows, int *columns) {
    const struct tare_shape *shape = &c->kernel->inputs[i].shape;
    const int64_t *end = shape->dims + shape->rank;
    if (shape->rank < rank)
        return TARE_FAIL(TARE_SHAPE, "operand %zu has rank %d (expected at least %d)", i, shape->rank, rank);
    TARE_TRY(tare_matrix_open(rank > 1 ? end[-2] : 1, end[-1]));
    *rows = (int)(rank > 1 ? end[-2] : end[-1]), *columns = (int)end[-1];
    return TARE_OK;
}

static tare_status read_operand_dims(struct call *c) {
    const struct tare_shape *a = &c->kernel->inputs[0].shape;
    const int rank = array_of(c, c->operands.names[0]).rank;
    int *m = &c->lapack.m, *n = &c->lapack.n, unused;
    TARE_TRY(read_dims(c, 0, rank, m, n));
    c->batch = 1;
    for (int d = 0; d < a->rank - rank; d++)
        if (!tare_mul_i64(&c->batch, c->batch, a->dims[d])) return TARE_FAIL(TARE_SHAPE, "too many matrices");
    for (size_t i = 1; i < c->operands.count; i++) { /* right-hand sides, factors of reflectors */
        if (strcmp(c->operands.names[i], "b") == 0) TARE_TRY(read_dims(c, i, 2, &c->b_rows, &c->lapack.k));
        if (strcmp(c->operands.names[i], "tau") == 0) TARE_TRY(read_dims(c, i, 1, &unused, &c->lapack.k));
    }
    if (c->routine->square && *m != *n)
        return TARE_FAIL(TARE_SHAPE, "a matrix of %d x %d (expected a square one)", *m, *n);
    if (c->routine->routine == TARE_LAPACK_GTSV && c->b_rows != *n)
        return TARE_FAIL(TARE_SHAPE, "the matrices do not fit");
    return TARE_OK;
}

/* The configuration of the call for TPU is "<lower>,<sorted>,<iterations>,<tolerance>". */
static void read_options(struct call *c) {
    const char *config = tare_node_string(c->kernel->node, "backend_config", NULL);
    const char vectors = c->routine->routine == TARE_LAPACK_GESDD ? 'A' : 'V';
    c->lapack.uplo = c->routine->run == run_eigh && config && *config == '0' ? 'U' : option(c, "uplo", 'L');
    c->lapack.job = option(c, "mode", option(c, "compute_right", vectors));
    c->lapack.left = option(c, "compute_left", 'V');
    c->lapack.low = (int)tare_backend_config_int(c->kernel, "low", 1);
    c->lapack.high = (int)tare_backend_config_int(c->kernel, "high", c->lapack.n);
}

/* Checks that all operands have the type and the shapes of the routine. */
static tare_status open_operands(struct call *c) {
    for (size_t i = 0; i < c->operands.count; i++) {
        const struct tare_tensor *operand = &c->kernel->inputs[i];
        const struct tare_lapack_array array = c->operands.arrays[i] = array_of(c, c->operands.names[i]);
        if (operand->dtype != c->kernel->inputs[0].dtype || operand->elements != c->batch * array.rows * array.columns)
            return TARE_FAIL(TARE_SHAPE, "operand %zu does not fit the others", i);
    }
    return TARE_OK;
}

static tare_status open_results(struct call *c) {
    const struct tare_shape *a = &c->kernel->inputs[0].shape;
    for (size_t i = 0; i < c->results.count; i++) {
        const struct tare_lapack_array array = c->results.arrays[i] = array_of(c, c->results.names[i]);
        const int dtype = dtype_of(c, &array);
        struct tare_shape shape = *a;
        shape.rank -= c->operands.arrays[0].rank;
        if (array.rank > 0) shape.dims[shape.rank++] = array.rows;
        if (array.rank > 1) shape.dims[shape.rank++] = array.columns;
        TARE_TRY(tare_kernel_output(c->kernel, i, dtype, &shape));
        if (dtype != c->kernel->node->output_dtypes[i])
            return TARE_FAIL(TARE_TYPE, "result %zu is declared as %s (expected %s)", i,
                             tare_dtype_name(c->kernel->node->output_dtypes[i]), tare_dtype_name(dtype));
    }
    return TARE_OK;
}

/* Allocates the arrays that the routine does not have as arguments, or all where it is not called, as zeros. */
static tare_status allocate(struct call *c, const struct list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const struct tare_lapack_array *array = &list->arrays[i];
        if (!*array->data)
            *array->data = TARE_NEW_ARRAY(c->kernel->scratch, tare_complex, (size_t)array->rows * array->columns + 1);
        if (!*array->data) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status open_call(struct call *c) {
    TARE_TRY(check_dtype(c->kernel));
    c->lapack.routine = c->routine->routine;
    c->lapack.type = tare_matrix_type(c->kernel->inputs[0].dtype);
    c->info = &c->lapack.info, c->rank = &c->lapack.rank;
    TARE_TRY(open_lists(c));
    TARE_TRY(read_operand_dims(c));
    read_options(c);
    TARE_TRY(open_operands(c));
    TARE_TRY(open_results(c));
    if (c->routine->run != run_trsm && c->lapack.m && c->lapack.n)
        TARE_TRY(tare_lapack_prepare(&c->lapack, c->kernel->scratch));
    TARE_TRY(allocate(c, &c->operands));
    return allocate(c, &c->results);
}

/* Copies matrix `at` of a tensor to an array, or back, between row-major and column-major order. */
static void move(struct call *c, const struct tare_lapack_array *array, const struct tare_tensor *tensor, int64_t at,
                 bool back) {
    const size_t size = tare_dtype_size(dtype_of(c, array));
    const enum tare_lapack_type type = size == 4 ? TARE_LAPACK_S : size == 8 ? TARE_LAPACK_D : TARE_LAPACK_Z;
    const int64_t rows = array->rows, columns = array->columns;
    char *matrix = (char *)tensor->data + (size_t)(at * rows * columns) * size;
    if (back)
        tare_matrix_transpose(matrix, *array->data, type, columns, rows);
    else
        tare_matrix_transpose(*array->data, matrix, type, rows, columns);
}

/* The results of a matrix that is not finite: NaN, whose bits may all be ones, and numbers that report no convergence.
 */
static void set_nan(struct call *c) {
    for (size_t i = 0; i < c->results.count; i++) {
        const struct tare_lapack_array *array = &c->results.arrays[i];
        if (array->elements == TARE_LAPACK_OF_INTS)
            *(int *)*array->data = 1;
        else
            memset(*array->data, 0xff, (size_t)array->rows * array->columns * tare_dtype_size(dtype_of(c, array)));
    }
}

static tare_status run_lapack(struct tare_kernel *kernel, const void *arg) {
    struct call c = { .kernel = kernel, .routine = arg };
    TARE_TRY(open_call(&c));
    for (int64_t i = 0; i < c.batch; i++) {
        for (size_t k = 0; k < c.operands.count; k++)
            move(&c, &c.operands.arrays[k], &kernel->inputs[k], i, false);
        const int64_t size = (int64_t)c.lapack.m * c.lapack.n;
        if (c.routine->finite && !tare_matrix_is_finite(c.lapack.a, c.lapack.type, size))
            set_nan(&c);
        else if (size && c.routine->run)
            TARE_TRY(c.routine->run(&c));
        else if (size)
            tare_lapack_run(&c.lapack);
        for (size_t k = 0; k < c.results.count; k++)
            move(&c, &c.results.arrays[k], &kernel->outputs[k], i, true);
    }
    return TARE_OK;
}

/* Operands and results; whether operand 0 must be square, and finite. */
static const struct routine potrf = { TARE_LAPACK_POTRF, "a", "a info", true, false, NULL },
                            getrf = { TARE_LAPACK_GETRF, "a", "a pivots info", false, false, NULL },
                            lu = { TARE_LAPACK_GETRF, "a", "a pivots order", false, false, run_lu },
                            geqrf = { TARE_LAPACK_GEQRF, "a", "a tau", false, false, NULL },
                            orgqr = { TARE_LAPACK_ORGQR, "a tau", "a", false, false, run_orgqr },
                            gesdd = { TARE_LAPACK_GESDD, "a", "a s u v info", false, true, NULL },
                            syevd = { TARE_LAPACK_SYEVD, "a", "a s info", true, true, NULL },
                            eigh = { TARE_LAPACK_SYEVD, "a", "a s", true, true, run_eigh },
                            geev = { TARE_LAPACK_GEEV, "a", "w -wi -VL -V +vl +v info", true, true, run_geev },
                            gehrd = { TARE_LAPACK_GEHRD, "a", "a tau info", true, false, NULL },
                            gees = { TARE_LAPACK_GEES, "a", "a v w -wi rank info", true, true, run_gees },
                            trsm = { TARE_LAPACK_TRSM, "a b", "b", true, false, run_trsm },
                            sytrd = { TARE_LAPACK_SYTRD, "a", "a s e tau info", true, false, NULL },
                            gtsv = { TARE_LAPACK_GTSV, "dl d du b", "dl d du b info", false, false, NULL };

#define ALL_TYPES(real, complex, routine)                                                                              \
    { "lapack_s" real "_ffi", run_lapack, &routine }, { "lapack_d" real "_ffi", run_lapack, &routine },                \
        { "lapack_c" complex "_ffi", run_lapack, &routine }, {                                                         \
        "lapack_z" complex "_ffi", run_lapack, &routine                                                                \
    }

const struct tare_custom_call tare_lapack_calls[] = {
    ALL_TYPES("potrf", "potrf", potrf),
    ALL_TYPES("getrf", "getrf", getrf),
    ALL_TYPES("geqrf", "geqrf", geqrf),
    ALL_TYPES("orgqr", "ungqr", orgqr),
    ALL_TYPES("gesdd", "gesdd", gesdd),
    ALL_TYPES("syevd", "heevd", syevd),
    ALL_TYPES("geev", "geev", geev),
    ALL_TYPES("gehrd", "gehrd", gehrd),
    ALL_TYPES("gees", "gees", gees),
    ALL_TYPES("trsm", "trsm", trsm),
    ALL_TYPES("sytrd", "hetrd", sytrd),
    ALL_TYPES("gtsv", "gtsv", gtsv),
    { "LuDecomposition", run_lapack, &lu },
    { "Qr", run_lapack, &geqrf },
    { "ProductOfElementaryHouseholderReflectors", run_lapack, &orgqr },
    { "Eigh", run_lapack, &eigh },
    { 0 },
};
