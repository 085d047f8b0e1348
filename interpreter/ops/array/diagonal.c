/* Diagonals and bands of matrices: MatrixDiag, MatrixDiagPart, MatrixSetDiag (all versions), MatrixBandPart, Diag
 * and DiagPart. Elements are copied by size and never computed with. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"

#include <string.h>

/* The band of diagonals k = low … high of matrices [rows, columns] (k > 0: above the main diagonal) and its packed
 * form: one row of `length` elements per diagonal, from `high` down; shorter diagonals are aligned left or right. */
struct band {
    int64_t rows, columns, low, high, length;
    bool left_above, left_below;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t diagonal_length(const struct band *band, int64_t k) {
    return least(band->rows + least(k, 0), band->columns - most(k, 0));
}

/* Index of element n of diagonal k in the packed form. */
static int64_t packed_place(const struct band *band, int64_t k, int64_t n) {
    const bool left = (k >= 0 && band->left_above) || (k <= 0 && band->left_below);
    const int64_t offset = left ? 0 : band->length - diagonal_length(band, k);
    return (band->high - k) * band->length + n + offset;
}

/* Versions 1 and 2 align left; version 3 has the attribute `align`. */
static void read_align(struct band *band, const struct tare_node *node) {
    const char *align = tare_node_string(node, "align", "LEFT_LEFT");
    band->left_above = strncmp(align, "LEFT_", 5) == 0;
    band->left_below = strcmp(align + strcspn(align, "_"), "_LEFT") == 0;
}

/* Reads k: a scalar, or the lowest and highest diagonal. Without the operand (version 1): the main diagonal. */
static tare_status read_k(struct band *band, const struct tare_tensor *k) {
    band->low = band->high = 0;
    if (!k) return TARE_OK;
    if (k->shape.rank > 1 || k->elements < 1 || k->elements > 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "diag_index must be a scalar or vector with one or two elements");
    band->low = tare_tensor_get_i64(k, 0);
    band->high = tare_tensor_get_i64(k, k->elements - 1);
    if (band->low > band->high)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "lower_diag_index must not be larger than upper_diag_index: %lld > %lld", (long long)band->low,
                         (long long)band->high);
    return TARE_OK;
}

static tare_status check_k(const struct band *band) {
    const int64_t ends[] = { band->low, band->high };
    for (int i = 0; i < 2; i++) {
        const bool inside = (-band->rows < ends[i] && ends[i] < band->columns) || ends[i] == 0;
        if (!inside)
            return TARE_FAIL(
                TARE_INVALID_ARGUMENT, "%s_diag_index is out of bound: %lld. It must be between %lld and %lld",
                i ? "upper" : "lower", (long long)ends[i], (long long)-band->rows, (long long)band->columns);
    }
    return TARE_OK;
}

static tare_status check_movable(int dtype) {
    const enum tare_dtype_class class = tare_dtype_get(dtype)->class;
    if (class == TARE_CLASS_STRING || class == TARE_CLASS_OBJECT)
        return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(dtype));
    return TARE_OK;
}

/* Address of element i of a tensor with elements of `size` bytes. */
static char *at(const struct tare_tensor *tensor, int64_t i, size_t size) {
    return (char *)tensor->data + (size_t)i * size;
}

static void fill(const struct tare_tensor *to, const struct tare_tensor *value, size_t size) {
    for (int64_t i = 0; i < to->elements; i++) {
        if (value)
            memcpy(at(to, i, size), value->data, size);
        else
            memset(at(to, i, size), 0, size);
    }
}

/* ---- MatrixDiagPart ---- */

static tare_status part_shape(struct tare_shape *out, struct band *band, const struct tare_shape *input) {
    if (input->rank < 2) return TARE_FAIL(TARE_SHAPE, "input must be at least 2-dim, received rank %d", input->rank);
    band->rows = input->dims[input->rank - 2];
    band->columns = input->dims[input->rank - 1];
    TARE_TRY(check_k(band));
    band->length = least(band->rows + least(band->high, 0), band->columns - most(band->low, 0));
    *out = *input;
    out->rank = input->rank - 2;
    if (band->high > band->low) out->dims[out->rank++] = band->high - band->low + 1;
    out->dims[out->rank++] = band->length;
    return TARE_OK;
}

static tare_status infer_part(struct tare_infer *infer) {
    struct band band;
    const struct tare_shape *input = &infer->inputs[0];
    const struct tare_tensor *k = infer->n_inputs > 1 ? infer->input_values[1] : NULL;
    if (input->rank < 0) return TARE_OK;
    if (input->rank < 2) return TARE_FAIL(TARE_SHAPE, "input must be at least 2-dim, received rank %d", input->rank);
    if (infer->n_inputs > 1 && !k) return TARE_OK;
    TARE_TRY(read_k(&band, k));
    const bool known = input->dims[input->rank - 2] >= 0 && input->dims[input->rank - 1] >= 0;
    if (known) return part_shape(&infer->outputs[0], &band, input);
    infer->outputs[0] = *input;
    infer->outputs[0].rank = input->rank - 2;
    if (band.high > band.low) infer->outputs[0].dims[infer->outputs[0].rank++] = band.high - band.low + 1;
    infer->outputs[0].dims[infer->outputs[0].rank++] = TARE_UNKNOWN_DIM;
    return TARE_OK;
}

static tare_status run_part(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const size_t size = tare_dtype_size(input->dtype);
    struct band band;
    struct tare_shape shape;
    read_align(&band, kernel->node);
    TARE_TRY(check_movable(input->dtype));
    TARE_TRY(read_k(&band, kernel->n_inputs > 1 ? &kernel->inputs[1] : NULL));
    TARE_TRY(part_shape(&shape, &band, &input->shape));
    if (kernel->n_inputs > 2 && kernel->inputs[2].elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding_value must be a scalar");
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    const struct tare_tensor *output = &kernel->outputs[0];
    fill(output, kernel->n_inputs > 2 ? &kernel->inputs[2] : NULL, size);
    const int64_t matrix = band.rows * band.columns, packed = (band.high - band.low + 1) * band.length;
    for (int64_t m = 0; m * packed < output->elements; m++) {
        for (int64_t k = band.low; k <= band.high; k++) {
            for (int64_t n = 0; n < diagonal_length(&band, k); n++) {
                const int64_t i = n + most(-k, 0), j = n + most(k, 0);
                memcpy(at(output, m * packed + packed_place(&band, k, n), size),
                       at(input, m * matrix + i * band.columns + j, size), size);
            }
        }
    }
    return TARE_OK;
}

/* ---- MatrixDiag ---- */

/* Derives the number of matrices and the diagonal length from the shape of the packed diagonals. */
static tare_status packed_length(struct band *band, const struct tare_shape *diagonal) {
    const int64_t count = band->high - band->low + 1;
    const int extra = count > 1 ? 2 : 1;
    if (diagonal->rank < extra)
        return TARE_FAIL(TARE_SHAPE, "diagonal must be at least %d-dim, received rank %d", extra, diagonal->rank);
    const int64_t given = count > 1 ? diagonal->dims[diagonal->rank - 2] : 1;
    if (given >= 0 && given != count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "The number of diagonals provided in the input does not match the lower_diag_index and "
                         "upper_diag_index range (expected %lld, got %lld)",
                         (long long)count, (long long)given);
    band->length = diagonal->dims[diagonal->rank - 1];
    return TARE_OK;
}

/* Sets rows and columns; -1 selects the smallest size that the diagonals allow. */
static tare_status size_matrix(struct band *band, int64_t rows, int64_t columns) {
    const int64_t min_rows = band->length - least(band->high, 0), min_columns = band->length + most(band->low, 0);
    if ((rows != -1 && rows < min_rows) || (columns != -1 && columns < min_columns))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "The number of %s is too small",
                         rows != -1 && rows < min_rows ? "rows" : "columns");
    if (rows == -1 && columns == -1) rows = columns = most(min_rows, min_columns);
    band->rows = rows == -1 ? min_rows : rows;
    band->columns = columns == -1 ? min_columns : columns;
    if (band->rows != min_rows && band->columns != min_columns)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "The number of rows or columns is not consistent with the specified "
                                                "d_lower, d_upper, and diagonal");
    return TARE_OK;
}

static tare_status read_count(int64_t *out, const struct tare_tensor *operand) {
    *out = -1;
    if (!operand) return TARE_OK;
    if (operand->elements != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_rows and num_cols must be scalars");
    *out = tare_tensor_get_i64(operand, 0);
    return *out < -1 ? TARE_FAIL(TARE_INVALID_ARGUMENT, "num_rows or num_cols is %lld", (long long)*out) : TARE_OK;
}

static tare_status matrix_shape(struct tare_shape *out, struct band *band, const struct tare_shape *diagonal,
                                const struct tare_tensor *k, const struct tare_tensor *rows,
                                const struct tare_tensor *columns) {
    int64_t n_rows, n_columns;
    TARE_TRY(read_k(band, k));
    TARE_TRY(packed_length(band, diagonal));
    TARE_TRY(read_count(&n_rows, rows));
    TARE_TRY(read_count(&n_columns, columns));
    *out = *diagonal;
    out->rank = diagonal->rank - (band->high > band->low ? 2 : 1);
    if (out->rank + 2 > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "the result has rank %d", out->rank + 2);
    if (band->length < 0) {
        band->rows = n_rows;
        band->columns = n_columns;
    } else {
        TARE_TRY(size_matrix(band, n_rows, n_columns));
    }
    out->dims[out->rank++] = band->rows;
    out->dims[out->rank++] = band->columns;
    return TARE_OK;
}

static tare_status infer_diag(struct tare_infer *infer) {
    struct band band;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    if (infer->n_inputs == 1) return matrix_shape(&infer->outputs[0], &band, &infer->inputs[0], NULL, NULL, NULL);
    if (!infer->input_values[1] || !infer->input_values[2] || !infer->input_values[3]) return TARE_OK;
    return matrix_shape(&infer->outputs[0], &band, &infer->inputs[0], infer->input_values[1], infer->input_values[2],
                        infer->input_values[3]);
}

static void put_band(const struct tare_tensor *output, const struct tare_tensor *diagonal, const struct band *band,
                     size_t size) {
    const int64_t matrix = band->rows * band->columns, packed = (band->high - band->low + 1) * band->length;
    for (int64_t m = 0; m * matrix < output->elements; m++) {
        for (int64_t k = band->low; k <= band->high; k++) {
            for (int64_t n = 0; n < diagonal_length(band, k); n++) {
                const int64_t i = n + most(-k, 0), j = n + most(k, 0);
                memcpy(at(output, m * matrix + i * band->columns + j, size),
                       at(diagonal, m * packed + packed_place(band, k, n), size), size);
            }
        }
    }
}

static tare_status run_diag(struct tare_kernel *kernel) {
    const struct tare_tensor *diagonal = &kernel->inputs[0];
    const bool plain = kernel->n_inputs == 1;
    struct band band;
    struct tare_shape shape;
    read_align(&band, kernel->node);
    TARE_TRY(check_movable(diagonal->dtype));
    TARE_TRY(matrix_shape(&shape, &band, &diagonal->shape, plain ? NULL : &kernel->inputs[1],
                          plain ? NULL : &kernel->inputs[2], plain ? NULL : &kernel->inputs[3]));
    if (!plain && kernel->inputs[4].elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding_value must be a scalar");
    TARE_TRY(tare_kernel_output(kernel, 0, diagonal->dtype, &shape));
    fill(&kernel->outputs[0], plain ? NULL : &kernel->inputs[4], tare_dtype_size(diagonal->dtype));
    put_band(&kernel->outputs[0], diagonal, &band, tare_dtype_size(diagonal->dtype));
    return TARE_OK;
}

/* ---- MatrixSetDiag ---- */

static tare_status infer_set(struct tare_infer *infer) {
    const int rank = infer->inputs[0].rank;
    if (rank >= 0 && rank < 2) return TARE_FAIL(TARE_SHAPE, "input must be at least 2-dim, received rank %d", rank);
    return tare_infer_same(infer);
}

static tare_status run_set(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *diagonal = &kernel->inputs[1];
    struct band band;
    struct tare_shape expected;
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    read_align(&band, kernel->node);
    TARE_TRY(check_movable(input->dtype));
    TARE_TRY(read_k(&band, kernel->n_inputs > 2 ? &kernel->inputs[2] : NULL));
    TARE_TRY(part_shape(&expected, &band, &input->shape));
    if (!tare_shape_equal(&expected, &diagonal->shape))
        return TARE_FAIL(TARE_SHAPE, "diagonal has shape %s (expected %s)", tare_shape_text(a, &diagonal->shape),
                         tare_shape_text(b, &expected));
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    if (input->elements == 0) return TARE_OK;
    if (kernel->outputs[0].data != input->data) memcpy(kernel->outputs[0].data, input->data, tare_tensor_bytes(input));
    put_band(&kernel->outputs[0], diagonal, &band, tare_dtype_size(input->dtype));
    return TARE_OK;
}

/* ---- MatrixBandPart ---- */

static tare_status read_limit(int64_t *out, const struct tare_tensor *operand, int64_t size, const char *name) {
    if (operand->elements != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be scalar", name);
    *out = tare_tensor_get_i64(operand, 0);
    if (*out > size)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be negative or less or equal to %lld, got: %lld", name,
                         (long long)size, (long long)*out);
    return TARE_OK;
}

static tare_status run_band(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const size_t size = tare_dtype_size(input->dtype);
    const int rank = input->shape.rank;
    int64_t lower = 0, upper = 0;
    TARE_TRY(check_movable(input->dtype));
    if (rank < 2) return TARE_FAIL(TARE_SHAPE, "input must be at least 2-dim, received rank %d", rank);
    const int64_t rows = input->shape.dims[rank - 2], columns = input->shape.dims[rank - 1];
    TARE_TRY(read_limit(&lower, &kernel->inputs[1], rows, "num_lower"));
    TARE_TRY(read_limit(&upper, &kernel->inputs[2], columns, "num_upper"));
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    const struct tare_tensor *output = &kernel->outputs[0];
    for (int64_t row = 0; row * columns < input->elements; row++) {
        const int64_t i = row % rows;
        const int64_t first = lower < 0 ? 0 : least(columns, most(0, i - lower));
        const int64_t end = upper < 0 ? columns : most(first, least(columns, i + upper + 1));
        char *to = at(output, row * columns, size);
        if (output->data != input->data) memcpy(to, at(input, row * columns, size), (size_t)columns * size);
        memset(to, 0, (size_t)first * size);
        memset(to + (size_t)end * size, 0, (size_t)(columns - end) * size);
    }
    return TARE_OK;
}

/* ---- Diag, DiagPart: a tensor as the diagonal of a tensor of twice its rank ---- */

static tare_status infer_tensor_diag(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    if (input->rank < 0) return TARE_OK;
    if (input->rank == 0 || 2 * input->rank > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "Input must have rank between 1 and %d (got %d)", TARE_MAX_RANK / 2, input->rank);
    infer->outputs[0] = *input;
    for (int d = 0; d < input->rank; d++)
        infer->outputs[0].dims[infer->outputs[0].rank++] = input->dims[d];
    return TARE_OK;
}

static tare_status infer_tensor_part(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    if (input->rank < 0) return TARE_OK;
    if (input->rank == 0 || input->rank % 2 != 0)
        return TARE_FAIL(TARE_SHAPE, "input must have even and non-zero rank (got %d)", input->rank);
    infer->outputs[0].rank = input->rank / 2;
    for (int d = 0; d < input->rank / 2; d++) {
        const int64_t a = input->dims[d], b = input->dims[d + input->rank / 2];
        if (a >= 0 && b >= 0 && a != b)
            return TARE_FAIL(TARE_SHAPE, "Invalid shape: dimensions %d and %d do not match (%lld and %lld)", d,
                             d + input->rank / 2, (long long)a, (long long)b);
        infer->outputs[0].dims[d] = a >= 0 ? a : b;
    }
    return TARE_OK;
}

static tare_status shape_by_inference(struct tare_shape *out, const struct tare_kernel *kernel) {
    const struct tare_tensor *value = &kernel->inputs[0];
    *out = tare_shape_unknown();
    struct tare_infer infer = { .node = kernel->node,
                                .n_inputs = 1,
                                .input_dtypes = &value->dtype,
                                .inputs = &value->shape,
                                .input_values = &value,
                                .n_outputs = 1,
                                .outputs = out,
                                .arena = kernel->scratch };
    return kernel->op->infer(&infer);
}

static tare_status run_tensor_diag(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const size_t size = tare_dtype_size(input->dtype);
    struct tare_shape shape;
    TARE_TRY(shape_by_inference(&shape, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    fill(&kernel->outputs[0], NULL, size);
    for (int64_t i = 0; i < input->elements; i++)
        memcpy(at(&kernel->outputs[0], i * (input->elements + 1), size), at(input, i, size), size);
    return TARE_OK;
}

static tare_status run_tensor_part(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const size_t size = tare_dtype_size(input->dtype);
    struct tare_shape shape;
    TARE_TRY(shape_by_inference(&shape, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    const int64_t n = kernel->outputs[0].elements;
    for (int64_t i = 0; i < n; i++)
        memcpy(at(&kernel->outputs[0], i, size), at(input, i * (n + 1), size), size);
    return TARE_OK;
}

#define ROW(op_name, infer_fn, run_fn)                                                                                 \
    { .name = op_name, .infer = infer_fn, .run = run_fn, .flags = TARE_OP_MOVE }
#define SET_ROW(op_name)                                                                                               \
    { .name = op_name, .infer = infer_set, .run = run_set, .flags = TARE_OP_MOVE | TARE_OP_IN_PLACE }

const struct tare_op tare_ops_diagonal[] = {
    ROW("MatrixDiag", infer_diag, run_diag),
    ROW("BatchMatrixDiag", infer_diag, run_diag),
    ROW("MatrixDiagV2", infer_diag, run_diag),
    ROW("MatrixDiagV3", infer_diag, run_diag),
    ROW("MatrixDiagPart", infer_part, run_part),
    ROW("BatchMatrixDiagPart", infer_part, run_part),
    ROW("MatrixDiagPartV2", infer_part, run_part),
    ROW("MatrixDiagPartV3", infer_part, run_part),
    SET_ROW("MatrixSetDiag"),
    SET_ROW("BatchMatrixSetDiag"),
    SET_ROW("MatrixSetDiagV2"),
    SET_ROW("MatrixSetDiagV3"),
    { .name = "MatrixBandPart", .infer = infer_set, .run = run_band, .flags = TARE_OP_IN_PLACE },
    { .name = "BatchMatrixBandPart", .infer = infer_set, .run = run_band, .flags = TARE_OP_IN_PLACE },
    { .name = "Diag", .infer = infer_tensor_diag, .run = run_tensor_diag, .flags = TARE_OP_MOVE },
    { .name = "DiagPart", .infer = infer_tensor_part, .run = run_tensor_part, .flags = TARE_OP_MOVE },
    { 0 },
};
