/* Helpers of the linear algebra ops (matrix.h). Row-major matrices are column-major transposes to LAPACK. */
#include "interpreter/ops/linalg/matrix.h"

#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct tare_matrices tare_matrices_of(const struct tare_shape *shape) {
    const int64_t *end = shape->dims + shape->rank;
    return shape->rank < 2 ? (struct tare_matrices){ TARE_UNKNOWN_DIM, TARE_UNKNOWN_DIM }
                           : (struct tare_matrices){ end[-2], end[-1] };
}

enum tare_lapack_type tare_matrix_type(int dtype) {
    for (int type = TARE_LAPACK_D; type <= TARE_LAPACK_Z; type++)
        if (tare_lapack_dtype((enum tare_lapack_type)type) == dtype) return (enum tare_lapack_type)type;
    return TARE_LAPACK_S;
}

enum tare_lapack_type tare_matrix_type_for(int dtype, int64_t rows, int64_t columns) {
    const enum tare_lapack_type type = tare_matrix_type(dtype);
    if (rows > TARE_SMALL_MOST || columns > TARE_SMALL_MOST) return type;
    return tare_lapack_is_complex(type) ? TARE_LAPACK_Z : TARE_LAPACK_D;
}

tare_status tare_matrix_open(int64_t rows, int64_t columns) {
    int64_t size;
    if (rows > INT32_MAX / 8 || columns > INT32_MAX / 8 || __builtin_mul_overflow(rows, columns, &size))
        return TARE_FAIL(TARE_UNSUPPORTED, "a matrix of %lld x %lld is too large", (long long)rows, (long long)columns);
    return tare_lapack_open();
}

void *tare_matrix_new(struct tare_arena *memory, enum tare_lapack_type type, int64_t count) {
    return tare_lapack_new(memory, count, tare_lapack_size(type));
}

/* Whether tensors of the dtype contain the floats, or pairs of floats, of a type in double. */
static bool is_narrow(enum tare_lapack_type type, int dtype) {
    return tare_lapack_real_size(type) == 8 && dtype == (type == TARE_LAPACK_D ? TARE_DT_FLOAT : TARE_DT_COMPLEX64);
}

static int64_t parts_of(enum tare_lapack_type type, int64_t count) {
    return tare_lapack_is_complex(type) ? 2 * count : count;
}

void tare_matrix_read(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first,
                      int64_t count) {
    if (from->dtype == tare_lapack_dtype(type)) {
        memcpy(to, tare_matrix_room(from, type, first, NULL), (size_t)count * tare_lapack_size(type));
    } else if (is_narrow(type, from->dtype)) {
        const float *floats = (const float *)from->data + parts_of(type, first);
        for (int64_t i = 0; i < parts_of(type, count); i++)
            ((double *)to)[i] = (double)floats[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            tare_lapack_set(to, type, i, tare_tensor_get_c128(from, first + i));
    }
}

void *tare_matrix_room(const struct tare_tensor *to, enum tare_lapack_type type, int64_t first, void *buffer) {
    return to->dtype == tare_lapack_dtype(type) ? (char *)to->data + (size_t)first * tare_lapack_size(type) : buffer;
}

void tare_matrix_write(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t count) {
    void *at = tare_matrix_room(to, type, first, NULL);
    if (at == from) return;
    if (at) {
        memcpy(at, from, (size_t)count * tare_lapack_size(type));
    } else if (is_narrow(type, to->dtype)) {
        float *floats = (float *)to->data + parts_of(type, first);
        for (int64_t i = 0; i < parts_of(type, count); i++)
            floats[i] = (float)((const double *)from)[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            tare_tensor_set_c128(to, first + i, tare_lapack_at(from, type, i));
    }
}

void tare_matrix_store(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t rows, int64_t columns, bool conjugate, void *buffer) {
    void *at = tare_matrix_room(to, type, first, buffer);
    tare_transpose(at, from, tare_lapack_size(type), columns, rows);
    if (conjugate) tare_matrix_conjugate(at, type, rows * columns);
    tare_matrix_write(to, first, type, at, rows * columns);
}

void tare_matrix_conjugate(void *x, enum tare_lapack_type type, int64_t count) {
    if (!tare_lapack_is_complex(type)) return;
    for (int64_t i = 1; i < 2 * count; i += 2) {
        if (type == TARE_LAPACK_C)
            ((float *)x)[i] = -((float *)x)[i];
        else
            ((double *)x)[i] = -((double *)x)[i];
    }
}

void tare_matrix_set_identity(void *x, enum tare_lapack_type type, int64_t n) {
    memset(x, 0, (size_t)(n * n) * tare_lapack_size(type));
    for (int64_t i = 0; i < n; i++)
        tare_lapack_set(x, type, i * n + i, 1);
}

bool tare_matrix_is_finite(const void *x, enum tare_lapack_type type, int64_t count) {
    const int64_t parts = parts_of(type, count);
    bool finite = true;
    for (int64_t i = 0; i < parts; i++) {
        if (tare_lapack_real_size(type) == 4)
            finite &= isfinite(((const float *)x)[i]) != 0;
        else
            finite &= isfinite(((const double *)x)[i]) != 0;
    }
    return finite;
}

tare_status tare_matrix_not_invertible(const char *what) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s is not invertible.", what);
}

bool tare_matrix_is_singular(const void *a, enum tare_lapack_type type, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (tare_lapack_at(a, type, i * n + i) == 0) return true;
    return false;
}

void tare_matrix_order(int *order, int rows, const int *pivots, int count) {
    for (int row = 0; row < rows; row++)
        order[row] = row;
    for (int row = 0; row < count; row++) {
        const int other = pivots[row] - 1, moved = order[row];
        order[row] = order[other];
        order[other] = moved;
    }
}

/* Exchanges lines i and pivots[i] - 1 of x [n, columns], in reverse order if `backward`. */
static void exchange(const struct tare_lapack_call *lu, char *x, int64_t columns, bool backward) {
    const size_t line = (size_t)columns * tare_lapack_size(lu->type);
    for (int k = 0; k < lu->n; k++) {
        const int i = backward ? lu->n - 1 - k : k, other = ((const int *)lu->pivots)[i] - 1;
        if (other != i) tare_lapack_swap(lu->type, (int)columns, x + (size_t)i * line, x + (size_t)other * line, 1);
    }
}

/* In memory, Aᵀ = P·L·U for LAPACK, and x is xᵀ: xᵀ·P·L·U = bᵀ, or xᵀ·Uᴴ·Lᴴ·Pᵀ = bᵀ for the adjoint. */
bool tare_matrix_solve(struct tare_lapack_call *lu, void *x, int64_t columns, bool adjoint) {
    tare_small_lapack_run(lu);
    if (tare_matrix_is_singular(lu->a, lu->type, lu->n)) return false;
    if (adjoint) exchange(lu, x, columns, false);
    tare_small_trsm(lu->type, adjoint ? "RLCU" : "RUNN", (int)columns, lu->n, lu->a, x);
    tare_small_trsm(lu->type, adjoint ? "RUCN" : "RLNU", (int)columns, lu->n, lu->a, x);
    if (!adjoint) exchange(lu, x, columns, true);
    return true;
}

/* ---- ops ---- */

static bool wants_vectors(const struct tare_node *node) {
    return tare_node_bool(node, "compute_v", true) && tare_node_bool(node, "compute_uv", true);
}

/* The dimension that a character of tare_matrix_op.shapes describes. */
static int64_t dimension_of(char c, int64_t m, int64_t n, bool full) {
    const int64_t least = m < 0 || n < 0 ? TARE_UNKNOWN_DIM : m < n ? m : n;
    if (c == '+') return n < 0 ? n : n + 1;
    if (c == 'm' || (c == 'q' && full)) return m;
    return c == 'n' || (c == 'Q' && full) ? n : least;
}

tare_status tare_matrix_infer_square(struct tare_matrices *matrix) {
    if (matrix->rows < 0) matrix->rows = matrix->columns;
    if (matrix->columns < 0) matrix->columns = matrix->rows;
    if (matrix->rows == matrix->columns) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)matrix->rows,
                     (long long)matrix->columns);
}

tare_status tare_matrix_infer(struct tare_infer *infer) {
    const struct tare_matrix_op *op = infer->node->def->row->aux;
    const struct tare_shape *input = &infer->inputs[0];
    const bool full = tare_node_bool(infer->node, "full_matrices", false), vectors = wants_vectors(infer->node);
    const char *c = op->shapes;
    if (input->rank >= 0 && input->rank < 2)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", input->rank);
    struct tare_matrices matrix = tare_matrices_of(input);
    if (!strchr(op->shapes, 'm')) TARE_TRY(tare_matrix_infer_square(&matrix));
    for (size_t k = 0; k < infer->n_outputs; k++, c += *c == ' ') {
        struct tare_shape *out = &infer->outputs[k];
        *out = k > 0 && !vectors ? tare_shape_make(1, (int64_t)0) : *input;
        if (out->rank < 2) continue;
        for (out->rank -= 2; *c && *c != ' '; c++)
            out->dims[out->rank++] = dimension_of(*c, matrix.rows, matrix.columns, full);
    }
    return TARE_OK;
}

static tare_status create_outputs(struct tare_kernel *kernel, int64_t *elements) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, tare_dtype_base(kernel->node->output_dtypes[i]), &shapes[i]));
        *elements += kernel->outputs[i].elements;
    }
    return TARE_OK;
}

/* LAPACK sees conj(A) of a Hermitian matrix that is not loaded by columns, whose triangles are exchanged. */
static void read_options(struct tare_matrix_batch *b, const struct tare_matrix_op *op) {
    const struct tare_node *node = b->kernel->node;
    const char vectors = op->routine != TARE_LAPACK_GESDD               ? 'V'
                         : tare_node_bool(node, "full_matrices", false) ? 'A'
                                                                        : 'S';
    b->vectors = wants_vectors(node);
    b->adjoint = tare_node_bool(node, "adjoint", false);
    b->call.routine = op->routine;
    b->call.uplo = tare_node_bool(node, "lower", true) ? 'U' : 'L';
    b->call.left = 'N';
    b->call.job = b->vectors ? vectors : 'N';
}

/* Prepares the call for matrices of input 0 in the type in which they are computed. */
static tare_status open_batch(struct tare_matrix_batch *b, const struct tare_matrix_op *op) {
    const struct tare_tensor *input = &b->kernel->inputs[0];
    const struct tare_matrices matrix = tare_matrices_of(&input->shape);
    TARE_TRY(tare_matrix_open(matrix.rows, matrix.columns));
    b->count = 1, b->size = matrix.rows * matrix.columns;
    for (int d = 0; d < input->shape.rank - 2; d++)
        b->count *= input->shape.dims[d];
    int64_t elements = b->size;
    for (size_t i = 0; i < b->kernel->n_outputs; i++)
        if (b->kernel->outputs[i].elements / b->count > elements) elements = b->kernel->outputs[i].elements / b->count;
    b->call.m = (int)matrix.rows, b->call.n = (int)matrix.columns;
    b->call.type = tare_matrix_type_for(input->dtype, matrix.rows, matrix.columns);
    b->buffer = tare_matrix_new(b->kernel->scratch, b->call.type, elements);
    if (!b->buffer) return TARE_NO_MEMORY;
    read_options(b, op);
    TARE_TRY(tare_lapack_prepare(&b->call, b->kernel->scratch));
    return tare_lapack_allocate(&b->call, op->arrays ? op->arrays : "", b->kernel->scratch);
}

static void load(struct tare_matrix_batch *b, const struct tare_matrix_op *op, int64_t i) {
    const struct tare_tensor *input = &b->kernel->inputs[0];
    const void *rows = tare_matrix_room(input, b->call.type, i * b->size, b->buffer);
    if (!op->by_columns || rows == b->buffer)
        tare_matrix_read(op->by_columns ? b->buffer : b->call.a, b->call.type, input, i * b->size, b->size);
    if (op->by_columns) tare_transpose(b->call.a, rows, tare_lapack_size(b->call.type), b->call.m, b->call.n);
}

tare_status tare_matrix_run(struct tare_kernel *kernel) {
    const struct tare_matrix_op *op = kernel->op->aux;
    struct tare_matrix_batch b = { .kernel = kernel };
    int64_t elements = 0;
    TARE_TRY(create_outputs(kernel, &elements));
    if (elements == 0) return TARE_OK;
    TARE_TRY(open_batch(&b, op));
    for (int64_t i = 0; i < b.count; i++) {
        load(&b, op, i);
        TARE_TRY(op->run(&b, i));
    }
    return TARE_OK;
}

int tare_matrix_run_finite(struct tare_matrix_batch *b) {
    if (tare_small_lapack_try(&b->call)) return *(int *)b->call.info;
    if (!tare_matrix_is_finite(b->call.a, b->call.type, b->size)) return -1;
    return tare_lapack_run(&b->call);
}

void tare_matrix_put(struct tare_matrix_batch *b, size_t k, int64_t i, const void *from) {
    const int64_t count = b->kernel->outputs[k].elements / b->count;
    tare_matrix_write(&b->kernel->outputs[k], i * count, b->call.type, from, count);
}

void tare_matrix_put_reals(struct tare_matrix_batch *b, int64_t first, const void *from, int64_t count) {
    const enum tare_lapack_type real = tare_lapack_real_size(b->call.type) == 4 ? TARE_LAPACK_S : TARE_LAPACK_D;
    tare_matrix_write(&b->kernel->outputs[0], first, real, from, count);
}
