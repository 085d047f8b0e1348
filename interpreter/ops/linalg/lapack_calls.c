/* The LAPACK custom calls of JAX, lapack_<s|d|c|z><routine>_ffi (jaxlib/cpu/lapack_kernels.cc), and the corresponding
 * ones for TPU. Operands and results are batches of the arrays of a call (lapack.h): the last dimensions are those of
 * the matrix or vector, and the routine runs for each matrix. Options are characters in the backend_config. Logical
 * indices do not depend on layouts, so tensors are row-major here and transposed for LAPACK. */
#include "interpreter/ops/linalg/matrix.h"
#include "interpreter/ops/support/backend_config.h"
#include "interpreter/ops/xla/custom_call_row.h"

#include "base/alloc.h"

#include <string.h>

enum { MOST_ARRAYS = 7 };

struct call;

struct routine {
    enum tare_lapack_routine routine;
    const char *operands, *results; /* arrays of the call, in lists as of tare_lapack_next_name */
    bool square, finite;            /* what operand 0 must be: LAPACK's iterations may not end for NaN */
    tare_status (*finish)(struct tare_lapack_call *call); /* after the routine; NULL: nothing */
};

/* Arrays and the tensors that they are copied from or to. */
struct list {
    size_t count;
    struct tare_lapack_array arrays[MOST_ARRAYS];
};

struct call {
    struct tare_kernel *kernel;
    const struct routine *routine;
    struct tare_lapack_call lapack;
    int64_t batch;
    struct list operands, results;
};

/* Pivots from 0, and the row order that they produce. */
static tare_status finish_lu(struct tare_lapack_call *lu) {
    int *pivots = lu->pivots;
    const int count = lu->m < lu->n ? lu->m : lu->n;
    tare_matrix_order(lu->order, lu->m, pivots, count);
    for (int i = 0; i < count; i++)
        pivots[i]--;
    return TARE_OK;
}

/* The call for TPU has no info. */
static tare_status finish_eigh(struct tare_lapack_call *eigh) {
    return *(int *)eigh->info ? TARE_FAIL(TARE_INVALID_ARGUMENT, "the eigenvalues did not converge") : TARE_OK;
}

/* ---- sizes and options ---- */

static tare_status set_dtype(struct call *c) {
    const int dtype = c->kernel->n_inputs ? c->kernel->inputs[0].dtype : TARE_DT_INVALID;
    c->lapack.dtype = dtype;
    if (tare_matrix_dtype(dtype) == dtype) return TARE_OK;
    return TARE_FAIL(TARE_TYPE, "operand 0 is %s (expected float32, float64, complex64 or complex128)",
                     tare_dtype_name(dtype));
}

static void open_list(struct call *c, struct list *list, const char *names) {
    char name[8];
    for (list->count = 0; tare_lapack_next_name(name, &names, c->lapack.dtype); list->count++)
        list->arrays[list->count] = tare_lapack_array(&c->lapack, name);
}

static tare_status open_lists(struct call *c) {
    open_list(c, &c->operands, c->routine->operands);
    open_list(c, &c->results, c->routine->results);
    if (c->kernel->n_inputs == c->operands.count && c->kernel->n_outputs == c->results.count) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu operands and %zu results (expected %zu and %zu)", c->kernel->n_inputs,
                     c->kernel->n_outputs, c->operands.count, c->results.count);
}

/* The last dimension of operand i, which is that of a vector, or the last two. */
static tare_status read_dims(const struct call *c, size_t i, int *rows, int *columns) {
    const struct tare_shape *shape = &c->kernel->inputs[i].shape;
    const int64_t *end = shape->dims + shape->rank;
    const int rank = c->operands.arrays[i].rank;
    if (shape->rank < rank)
        return TARE_FAIL(TARE_SHAPE, "operand %zu has rank %d (expected at least %d)", i, shape->rank, rank);
    TARE_TRY(tare_matrix_open(rank > 1 ? end[-2] : 1, end[-1]));
    *rows = (int)(rank > 1 ? end[-2] : end[-1]), *columns = (int)end[-1];
    return TARE_OK;
}

static tare_status read_sizes(struct call *c) {
    const struct tare_shape *a = &c->kernel->inputs[0].shape;
    struct tare_lapack_call *x = &c->lapack;
    TARE_TRY(read_dims(c, 0, &x->m, &x->n));
    if (c->operands.count > 1) /* the last one: right-hand sides, or factors of reflectors */
        TARE_TRY(read_dims(c, c->operands.count - 1, &x->rows, &x->k));
    c->batch = 1;
    for (int d = 0; d < a->rank - c->operands.arrays[0].rank; d++)
        if (!tare_mul_i64(&c->batch, c->batch, a->dims[d])) return TARE_FAIL(TARE_SHAPE, "too many matrices");
    return TARE_OK;
}

/* A character option: 'L' for "uplo = 76 : ui8". */
static char option(const struct call *call, const char *key, char fallback) {
    return (char)tare_backend_config_int(call->kernel, key, fallback);
}

/* The configuration of the call for TPU is "<lower>,<sorted>,<iterations>,<tolerance>". */
static void read_options(struct call *c) {
    const char *config = tare_node_string(c->kernel->node, "backend_config", NULL);
    struct tare_lapack_call *x = &c->lapack;
    const char vectors = x->routine == TARE_LAPACK_GESDD ? 'A' : 'V';
    x->uplo = c->routine->finish == finish_eigh && config && *config == '0' ? 'U' : option(c, "uplo", 'L');
    x->job = option(c, "mode", option(c, "compute_right", vectors));
    x->left = option(c, "compute_left", 'V');
    x->side = option(c, "side", 'L'), x->op = option(c, "trans_x", 'N'), x->diag = option(c, "diag", 'N');
    x->low = (int)tare_backend_config_int(c->kernel, "low", 1);
    x->high = (int)tare_backend_config_int(c->kernel, "high", x->n);
}

static tare_status check(const struct call *c) {
    const struct tare_lapack_call *x = &c->lapack;
    const bool is_trsm = x->routine == TARE_LAPACK_TRSM, is_gtsv = x->routine == TARE_LAPACK_GTSV;
    if (c->routine->square && x->m != x->n)
        return TARE_FAIL(TARE_SHAPE, "a matrix of %d x %d (expected a square one)", x->m, x->n);
    if (x->routine == TARE_LAPACK_ORGQR && (x->n > x->m || x->k > x->n))
        return TARE_FAIL(TARE_SHAPE, "%d columns of Q from %d reflectors of %d rows", x->n, x->k, x->m);
    if ((is_trsm || is_gtsv) && x->n != (is_gtsv || x->side == 'L' ? x->rows : x->k))
        return TARE_FAIL(TARE_SHAPE, "the matrices do not fit");
    if (x->routine == TARE_LAPACK_GEES && option(c, "sort", 'N') != 'N')
        return TARE_FAIL(TARE_UNSUPPORTED, "sorted Schur forms are not supported");
    return TARE_OK;
}

/* ---- tensors ---- */

/* Checks that all operands have the dtype and the shapes of the routine. */
static tare_status check_operands(struct call *c) {
    for (size_t i = 0; i < c->operands.count; i++) {
        const struct tare_tensor *operand = &c->kernel->inputs[i];
        const struct tare_lapack_array *array = &c->operands.arrays[i];
        if (operand->dtype != c->kernel->inputs[0].dtype ||
            operand->elements != c->batch * array->rows * array->columns)
            return TARE_FAIL(TARE_SHAPE, "operand %zu does not fit the others", i);
    }
    return TARE_OK;
}

static tare_status create_results(struct call *c) {
    for (size_t i = 0; i < c->results.count; i++) {
        const struct tare_lapack_array *array = &c->results.arrays[i];
        struct tare_shape shape = c->kernel->inputs[0].shape;
        shape.rank -= c->operands.arrays[0].rank;
        if (array->rank > 0) shape.dims[shape.rank++] = array->rows;
        if (array->rank > 1) shape.dims[shape.rank++] = array->columns;
        TARE_TRY(tare_kernel_output(c->kernel, i, array->dtype, &shape));
        if (array->dtype != c->kernel->node->output_dtypes[i])
            return TARE_FAIL(TARE_TYPE, "result %zu is declared as %s (expected %s)", i,
                             tare_dtype_name(c->kernel->node->output_dtypes[i]), tare_dtype_name(array->dtype));
    }
    return TARE_OK;
}

static tare_status open_call(struct call *c) {
    c->lapack.routine = c->routine->routine;
    TARE_TRY(set_dtype(c));
    TARE_TRY(open_lists(c));
    TARE_TRY(read_sizes(c));
    read_options(c);
    TARE_TRY(check(c));
    TARE_TRY(open_lists(c)); /* of the sizes that are now known */
    TARE_TRY(check_operands(c));
    TARE_TRY(create_results(c));
    TARE_TRY(tare_lapack_allocate(&c->lapack, c->routine->operands, c->kernel->scratch));
    TARE_TRY(tare_lapack_allocate(&c->lapack, c->routine->results, c->kernel->scratch));
    return c->lapack.m && c->lapack.n ? tare_lapack_prepare(&c->lapack, c->kernel->scratch) : TARE_OK;
}

/* Copies matrix `at` of a tensor to an array, or back, between row-major and column-major order. */
static void move(const struct tare_lapack_array *array, const struct tare_tensor *tensor, int64_t at, bool back) {
    const size_t size = tare_dtype_size(array->dtype);
    const int64_t rows = array->rows, columns = array->columns;
    char *matrix = (char *)tensor->data + (size_t)(at * rows * columns) * size;
    if (back)
        tare_transpose(matrix, *array->data, size, columns, rows);
    else
        tare_transpose(*array->data, matrix, size, rows, columns);
}

/* The results of a matrix that is not finite: NaN, whose bits may all be ones, and numbers that report no convergence.
 */
static void set_nan(struct call *c) {
    for (size_t i = 0; i < c->results.count; i++) {
        const struct tare_lapack_array *array = &c->results.arrays[i];
        if (array->dtype == TARE_DT_INT32)
            *(int *)*array->data = 1;
        else
            memset(*array->data, 0xff, (size_t)array->rows * array->columns * tare_dtype_size(array->dtype));
    }
}

static tare_status run_matrix(struct call *c) {
    const int64_t size = (int64_t)c->lapack.m * c->lapack.n;
    if (c->routine->finite && !tare_matrix_is_finite(c->lapack.a, c->lapack.dtype, size)) {
        set_nan(c);
        return TARE_OK;
    }
    if (size == 0) return TARE_OK;
    tare_lapack_run(&c->lapack);
    return c->routine->finish ? c->routine->finish(&c->lapack) : TARE_OK;
}

static tare_status run_lapack(struct tare_kernel *kernel, const void *arg) {
    struct call c = { .kernel = kernel, .routine = arg };
    TARE_TRY(open_call(&c));
    for (int64_t i = 0; i < c.batch; i++) {
        for (size_t k = 0; k < c.operands.count; k++)
            move(&c.operands.arrays[k], &kernel->inputs[k], i, false);
        TARE_TRY(run_matrix(&c));
        for (size_t k = 0; k < c.results.count; k++)
            move(&c.results.arrays[k], &kernel->outputs[k], i, true);
    }
    return TARE_OK;
}

#define CALL(target, name, arrays, ...)                                                                                \
    {                                                                                                                  \
        target, run_lapack, &(const struct routine) {                                                                  \
            .routine = TARE_LAPACK_##name, .operands = arrays, .results = __VA_ARGS__                                  \
        }                                                                                                              \
    }

const struct tare_custom_call tare_lapack_calls[] = {
    CALL("lapack_?potrf_ffi", POTRF, "a", "a info", .square = true),
    CALL("lapack_?getrf_ffi", GETRF, "a", "a pivots info"),
    CALL("lapack_?geqrf_ffi", GEQRF, "a", "a tau"),
    CALL("lapack_?orgqr_ffi", ORGQR, "a tau", "a"),
    CALL("lapack_?ungqr_ffi", ORGQR, "a tau", "a"),
    CALL("lapack_?gesdd_ffi", GESDD, "a", "a s u v info", .finite = true),
    CALL("lapack_?syevd_ffi", SYEVD, "a", "a s info", .square = true, .finite = true),
    CALL("lapack_?heevd_ffi", SYEVD, "a", "a s info", .square = true, .finite = true),
    CALL("lapack_?geev_ffi", GEEV, "a", "w -wi VL V info", .square = true, .finite = true),
    CALL("lapack_?gehrd_ffi", GEHRD, "a", "a tau info", .square = true),
    CALL("lapack_?gees_ffi", GEES, "a", "a v w -wi rank info", .square = true, .finite = true),
    CALL("lapack_?trsm_ffi", TRSM, "a b", "b", .square = true),
    CALL("lapack_?sytrd_ffi", SYTRD, "a", "a s e tau info", .square = true),
    CALL("lapack_?hetrd_ffi", SYTRD, "a", "a s e tau info", .square = true),
    CALL("lapack_?gtsv_ffi", GTSV, "dl d du b", "dl d du b info"),
    CALL("LuDecomposition", GETRF, "a", "a pivots order", .finish = finish_lu),
    CALL("Qr", GEQRF, "a", "a tau"),
    CALL("ProductOfElementaryHouseholderReflectors", ORGQR, "a tau", "a"),
    CALL("Eigh", SYEVD, "a", "a s", .square = true, .finite = true, .finish = finish_eigh),
    { 0 },
};
