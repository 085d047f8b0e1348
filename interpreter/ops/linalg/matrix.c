/* Helpers of the linear algebra ops (matrix.h). Row-major matrices are column-major transposes to LAPACK. */
#include "interpreter/ops/linalg/matrix.h"

#include "interpreter/kernels/gemm_double_small.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct tare_matrices tare_matrices_of(const struct tare_tensor *tensor) {
    const int64_t *end = tensor->shape.dims + tensor->shape.rank;
    return (struct tare_matrices){ end[-2], end[-1] };
}

static const int dtypes[] = { [TARE_LAPACK_S] = TARE_DT_FLOAT,
                              [TARE_LAPACK_D] = TARE_DT_DOUBLE,
                              [TARE_LAPACK_C] = TARE_DT_COMPLEX64,
                              [TARE_LAPACK_Z] = TARE_DT_COMPLEX128 };

enum tare_lapack_type tare_matrix_type(int dtype) {
    for (int type = TARE_LAPACK_D; type <= TARE_LAPACK_Z; type++)
        if (dtypes[type] == dtype) return (enum tare_lapack_type)type;
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
    return tare_lapack_real_size(type) == 8 && dtype == dtypes[type == TARE_LAPACK_D ? TARE_LAPACK_S : TARE_LAPACK_C];
}

static int64_t parts_of(enum tare_lapack_type type, int64_t count) {
    return tare_lapack_is_complex(type) ? 2 * count : count;
}

void tare_matrix_read(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first,
                      int64_t count) {
    if (from->dtype == dtypes[type]) {
        memcpy(to, tare_matrix_room(from, type, first, NULL), (size_t)count * tare_lapack_size(type));
    } else if (is_narrow(type, from->dtype)) {
        const float *floats = (const float *)from->data + parts_of(type, first);
        for (int64_t i = 0; i < parts_of(type, count); i++)
            ((double *)to)[i] = (double)floats[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            tare_matrix_set(to, type, i, tare_tensor_get_c128(from, first + i));
    }
}

void *tare_matrix_room(const struct tare_tensor *to, enum tare_lapack_type type, int64_t first, void *buffer) {
    return to->dtype == dtypes[type] ? (char *)to->data + (size_t)first * tare_lapack_size(type) : buffer;
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
            tare_tensor_set_c128(to, first + i, tare_matrix_at(from, type, i));
    }
}

/* In tiles, so that source and target lines stay in the cache. */
#define TRANSPOSE(type)                                                                                                \
    for (int64_t first = 0; first < columns; first += TILE)                                                            \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            for (int64_t j = first; j < columns && j < first + TILE; j++)                                              \
                ((type *)to)[j * rows + i] = ((const type *)from)[i * columns + j];

void tare_matrix_transpose(void *to, const void *from, enum tare_lapack_type type, int64_t rows, int64_t columns) {
    enum { TILE = 8 }; /* columns of a power of two fall into few sets of the cache */
    switch (tare_lapack_size(type)) {
    case 4:
        TRANSPOSE(float)
        break;
    case 8:
        if (rows < 4) {
            TRANSPOSE(double)
            break;
        }
        for (int64_t first = 0; first < columns; first += TILE)
            tare_transpose_double(tare_cpu_level(), (double *)to + first * rows, rows, (const double *)from + first,
                                  columns, rows, columns - first < TILE ? columns - first : TILE);
        break;
    default:
        TRANSPOSE(tare_complex)
        break;
    }
}
#undef TRANSPOSE

void tare_matrix_load(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first, int64_t rows,
                      int64_t columns, void *buffer) {
    const void *at = tare_matrix_room(from, type, first, buffer);
    if (at == buffer) tare_matrix_read(buffer, type, from, first, rows * columns);
    tare_matrix_transpose(to, at, type, rows, columns);
}

void tare_matrix_store(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t rows, int64_t columns, bool conjugate, void *buffer) {
    void *at = tare_matrix_room(to, type, first, buffer);
    tare_matrix_transpose(at, from, type, columns, rows);
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
        tare_matrix_set(x, type, i * n + i, 1);
}

void tare_matrix_set(void *x, enum tare_lapack_type type, int64_t i, tare_complex value) {
    switch (type) {
    case TARE_LAPACK_S:
        ((float *)x)[i] = (float)creal(value);
        break;
    case TARE_LAPACK_D:
        ((double *)x)[i] = creal(value);
        break;
    case TARE_LAPACK_C:
        ((_Complex float *)x)[i] = (_Complex float)value;
        break;
    default:
        ((tare_complex *)x)[i] = value;
        break;
    }
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

double tare_matrix_epsilon(enum tare_lapack_type type) {
    return tare_lapack_real_size(type) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

bool tare_matrix_is_singular(const void *a, enum tare_lapack_type type, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (tare_matrix_at(a, type, i * n + i) == 0) return true;
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

void tare_matrix_exchange(void *x, enum tare_lapack_type type, int line, int count, int step, const int *pivots,
                          int first, int last, bool backward) {
    const size_t bytes = (size_t)line * tare_lapack_size(type);
    for (int k = first; k < last; k++) {
        const int i = backward ? first + last - 1 - k : k, other = pivots[i] - 1;
        if (other != i)
            tare_lapack_swap(type, count, (char *)x + (size_t)i * bytes, (char *)x + (size_t)other * bytes, step);
    }
}

/* In memory, Aᵀ = P·L·U for LAPACK, and x is xᵀ: xᵀ·P·L·U = bᵀ, or xᵀ·Uᴴ·Lᴴ·Pᵀ = bᵀ for the adjoint. */
bool tare_matrix_solve(struct tare_lapack_call *lu, void *x, int64_t columns, bool adjoint) {
    const char *forms[] = { adjoint ? "RLCU" : "RUNN", adjoint ? "RUCN" : "RLNU" };
    tare_small_lapack_run(lu);
    if (tare_matrix_is_singular(lu->a, lu->type, lu->n)) return false;
    if (adjoint) tare_matrix_exchange(x, lu->type, (int)columns, (int)columns, 1, lu->pivots, 0, lu->n, false);
    tare_small_trsm(lu->type, forms[0], (int)columns, lu->n, lu->a, x);
    tare_small_trsm(lu->type, forms[1], (int)columns, lu->n, lu->a, x);
    if (!adjoint) tare_matrix_exchange(x, lu->type, (int)columns, (int)columns, 1, lu->pivots, 0, lu->n, true);
    return true;
}

tare_complex tare_matrix_eigenvalue(const struct tare_lapack_call *geev, int64_t i) {
    const tare_complex value = tare_matrix_at(geev->w, geev->type, i);
    if (tare_lapack_is_complex(geev->type)) return value;
    return __builtin_complex(creal(value), creal(tare_matrix_at(geev->wi, geev->type, i)));
}

tare_complex tare_matrix_eigenvector(const struct tare_lapack_call *geev, const void *vectors, int64_t i, int64_t row) {
    const int64_t n = geev->n;
    const double sign = tare_lapack_is_complex(geev->type) ? 0 : creal(tare_matrix_at(geev->wi, geev->type, i));
    const tare_complex x = tare_matrix_at(vectors, geev->type, (sign < 0 ? i - 1 : i) * n + row);
    if (sign == 0) return x;
    const double y = creal(tare_matrix_at(vectors, geev->type, (sign < 0 ? i : i + 1) * n + row));
    return __builtin_complex(creal(x), sign < 0 ? -y : y);
}

/* ---- batches ---- */

static tare_status create_outputs(struct tare_kernel *kernel, int64_t *elements) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, tare_dtype_base(kernel->node->output_dtypes[i]), &shapes[i]));
        *elements += kernel->outputs[i].elements;
    }
    return TARE_OK;
}

tare_status tare_matrix_open_batch(struct tare_matrix_batch *b, struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_matrices matrix = tare_matrices_of(input);
    int64_t elements = 0;
    b->kernel = kernel;
    TARE_TRY(create_outputs(kernel, &elements));
    if (elements == 0) return TARE_OK;
    TARE_TRY(tare_matrix_open(matrix.rows, matrix.columns));
    b->count = 1, b->size = elements = matrix.rows * matrix.columns;
    for (int d = 0; d < input->shape.rank - 2; d++)
        b->count *= input->shape.dims[d];
    for (size_t i = 0; i < kernel->n_outputs; i++)
        if (kernel->outputs[i].elements / b->count > elements) elements = kernel->outputs[i].elements / b->count;
    b->call.m = (int)matrix.rows, b->call.n = (int)matrix.columns;
    b->call.type = tare_matrix_type_for(input->dtype, matrix.rows, matrix.columns);
    b->buffer = tare_matrix_new(kernel->scratch, b->call.type, elements);
    return b->buffer ? tare_lapack_prepare(&b->call, kernel->scratch) : TARE_NO_MEMORY;
}

void tare_matrix_next(struct tare_matrix_batch *b, int64_t i) {
    tare_matrix_read(b->call.a, b->call.type, &b->kernel->inputs[0], i * b->size, b->size);
}

void tare_matrix_next_by_columns(struct tare_matrix_batch *b, int64_t i) {
    tare_matrix_load(b->call.a, b->call.type, &b->kernel->inputs[0], i * b->size, b->call.m, b->call.n, b->buffer);
}

bool tare_matrix_run_finite(struct tare_matrix_batch *b) {
    if (tare_small_lapack_try(&b->call)) return true;
    if (!tare_matrix_is_finite(b->call.a, b->call.type, b->size)) return false;
    tare_lapack_run(&b->call);
    return true;
}

void tare_matrix_put(struct tare_matrix_batch *b, size_t k, int64_t i, const void *from) {
    const int64_t count = b->kernel->outputs[k].elements / b->count;
    tare_matrix_write(&b->kernel->outputs[k], i * count, b->call.type, from, count);
}

void tare_matrix_put_reals(struct tare_matrix_batch *b, int64_t first, const void *from, int64_t count) {
    const enum tare_lapack_type real = tare_lapack_real_size(b->call.type) == 4 ? TARE_LAPACK_S : TARE_LAPACK_D;
    tare_matrix_write(&b->kernel->outputs[0], first, real, from, count);
}

/* ---- shapes ---- */

tare_status tare_matrix_infer_dims(int64_t *rows, int64_t *columns, const struct tare_infer *infer, size_t i) {
    const struct tare_shape *shape = &infer->inputs[i];
    *rows = *columns = TARE_UNKNOWN_DIM;
    if (shape->rank < 0) return TARE_OK;
    if (shape->rank < 2) return TARE_FAIL(TARE_SHAPE, "input %zu must have rank >= 2, got rank %d", i, shape->rank);
    *rows = shape->dims[shape->rank - 2];
    *columns = shape->dims[shape->rank - 1];
    return TARE_OK;
}

tare_status tare_matrix_infer(struct tare_shape *out, const struct tare_infer *infer, size_t i, int64_t rows,
                              int64_t columns) {
    *out = infer->inputs[i];
    if (out->rank < 0) return TARE_OK;
    if (out->rank < 2) return TARE_FAIL(TARE_SHAPE, "input %zu must have rank >= 2, got rank %d", i, out->rank);
    out->dims[out->rank - 2] = rows;
    out->dims[out->rank - 1] = columns;
    return TARE_OK;
}

tare_status tare_matrix_infer_square(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    infer->outputs[0] = *input;
    if (input->rank < 0) return TARE_OK;
    if (input->rank < 2) return TARE_FAIL(TARE_SHAPE, "Input matrix must have rank >= 2, got rank %d", input->rank);
    int64_t *rows = &infer->outputs[0].dims[input->rank - 2], *columns = &infer->outputs[0].dims[input->rank - 1];
    if (*rows >= 0 && *columns >= 0 && *rows != *columns)
        return TARE_FAIL(TARE_SHAPE, "Input matrix must be square (got %lld x %lld)", (long long)*rows,
                         (long long)*columns);
    if (*rows < 0) *rows = *columns;
    *columns = *rows;
    return TARE_OK;
}
