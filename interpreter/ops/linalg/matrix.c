/* Helpers of the linear algebra ops (matrix.h). Row-major matrices are column-major transposes to LAPACK. */
#include "interpreter/ops/linalg/matrix.h"

#include "interpreter/kernels/gemm_double_small.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct tare_matrices tare_matrices_of(const struct tare_tensor *tensor) {
    const int64_t *dims = tensor->shape.dims + tensor->shape.rank;
    return (struct tare_matrices){ .count = tensor->elements ? tensor->elements / (dims[-2] * dims[-1]) : 0,
                                   .rows = dims[-2],
                                   .columns = dims[-1] };
}

tare_status tare_matrix_outputs(struct tare_kernel *kernel, struct tare_matrices *input) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    *input = tare_matrices_of(&kernel->inputs[0]);
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_output(kernel, i, tare_dtype_base(kernel->node->output_dtypes[i]), &shapes[i]));
    return TARE_OK;
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

tare_status tare_matrix_open_lu(struct tare_lapack_call *lu, struct tare_kernel *kernel, int64_t n) {
    *lu = (struct tare_lapack_call){ TARE_LAPACK_GETRF, tare_matrix_type_for(kernel->inputs[0].dtype, n, n),
                                     .m = (int)n, .n = (int)n };
    TARE_TRY(tare_matrix_open(n, n));
    return tare_lapack_prepare(lu, kernel->scratch);
}

void *tare_matrix_new(struct tare_arena *memory, enum tare_lapack_type type, int64_t count) {
    return tare_arena_calloc(memory, (size_t)count + TARE_LAPACK_SLACK, tare_lapack_size(type));
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

void tare_matrix_transpose(void *to, const void *from, enum tare_lapack_type type, int64_t rows, int64_t columns,
                           bool conjugate) {
    enum { TILE = 8 }; /* columns of a power of two fall into few sets of the cache */
    switch (tare_lapack_size(type)) {
    case 4:
        TRANSPOSE(float)
        break;
    case 8:
        for (int64_t first = 0; first < columns; first += TILE)
            tare_transpose_double(tare_cpu_level(), (double *)to + first * rows, rows, (const double *)from + first,
                                  columns, rows, columns - first < TILE ? columns - first : TILE);
        break;
    default:
        TRANSPOSE(tare_complex)
        break;
    }
    if (conjugate) tare_matrix_conjugate(to, type, rows * columns);
}
#undef TRANSPOSE

void tare_matrix_load(void *to, enum tare_lapack_type type, const struct tare_tensor *from, int64_t first, int64_t rows,
                      int64_t columns, void *buffer) {
    const void *at = tare_matrix_room(from, type, first, buffer);
    if (at == buffer) tare_matrix_read(buffer, type, from, first, rows * columns);
    tare_matrix_transpose(to, at, type, rows, columns, false);
}

void tare_matrix_store(struct tare_tensor *to, int64_t first, enum tare_lapack_type type, const void *from,
                       int64_t rows, int64_t columns, void *buffer) {
    void *at = tare_matrix_room(to, type, first, buffer);
    tare_matrix_transpose(at, from, type, columns, rows, false);
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

void tare_matrix_add_real(void *x, enum tare_lapack_type type, int64_t i, double value) {
    tare_matrix_set(x, type, i, tare_matrix_at(x, type, i) + value);
}

void tare_matrix_set_identity(void *x, enum tare_lapack_type type, int64_t n) {
    memset(x, 0, (size_t)(n * n) * tare_lapack_size(type));
    for (int64_t i = 0; i < n; i++)
        tare_matrix_set(x, type, i * n + i, 1);
}

tare_complex tare_matrix_at(const void *x, enum tare_lapack_type type, int64_t i) {
    switch (type) {
    case TARE_LAPACK_S:
        return (double)((const float *)x)[i];
    case TARE_LAPACK_D:
        return ((const double *)x)[i];
    case TARE_LAPACK_C:
        return ((const _Complex float *)x)[i];
    default:
        return ((const tare_complex *)x)[i];
    }
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

static tare_complex complex_of(double re, double im) {
    const double parts[] = { re, im };
    tare_complex x;
    memcpy(&x, parts, sizeof x);
    return x;
}

tare_complex tare_matrix_eigenvalue(const struct tare_lapack_call *geev, int64_t i) {
    const tare_complex value = tare_matrix_at(geev->w, geev->type, i);
    if (tare_lapack_is_complex(geev->type)) return value;
    return complex_of(creal(value), creal(tare_matrix_at(geev->wi, geev->type, i)));
}

tare_complex tare_matrix_eigenvector(const struct tare_lapack_call *geev, const void *vectors, int64_t i, int64_t row) {
    const int64_t n = geev->n;
    const double sign = tare_lapack_is_complex(geev->type) ? 0 : creal(tare_matrix_at(geev->wi, geev->type, i));
    const tare_complex x = tare_matrix_at(vectors, geev->type, (sign < 0 ? i - 1 : i) * n + row);
    if (sign == 0) return x;
    const double y = creal(tare_matrix_at(vectors, geev->type, (sign < 0 ? i : i + 1) * n + row));
    return complex_of(creal(x), sign < 0 ? -y : y);
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

tare_status tare_matrix_infer_eigen(struct tare_infer *infer, const char *vectors) {
    struct tare_shape square = tare_shape_unknown();
    struct tare_infer inner = *infer;
    inner.outputs = &square;
    TARE_TRY(tare_matrix_infer_square(&inner));
    if (square.rank < 0) return TARE_OK;
    infer->outputs[0] = infer->outputs[1] = square;
    infer->outputs[0].rank--;
    if (vectors && !tare_node_bool(infer->node, vectors, true)) infer->outputs[1] = tare_shape_make(1, (int64_t)0);
    return TARE_OK;
}
