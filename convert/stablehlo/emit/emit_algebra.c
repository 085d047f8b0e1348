/* Complex numbers and bits, Fourier transforms, decompositions and parts of matrices. */
#include "convert/stablehlo/emit/emit.h"

#include <string.h>

#define B (&emit->build)

/* One op with the attributes, whose result is output 0. */
static tare_status emit_op(struct tare_emit *emit, const struct tare_node *node, const char *name,
                           const tare_build_value *operands, size_t count, const struct tare_build_named *attrs,
                           size_t n_attrs) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    const struct tare_shlo_type *type = tare_build_type(B, tare_emit_out_dtype(node, 0), &shape);
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = name,
                                                                              .operands = operands,
                                                                              .n_operands = count,
                                                                              .attrs = attrs,
                                                                              .n_attrs = n_attrs,
                                                                              .results = &type,
                                                                              .n_results = 1 }));
}

/* An op of the operands alone, with the type of the node's output. */
static tare_status emit_named(struct tare_emit *emit, const struct tare_node *node, const void *name) {
    tare_build_value operands[2];
    for (size_t i = 0; i < node->n_inputs && i < 2; i++)
        operands[i] = tare_emit_in(emit, node, i);
    return emit_op(emit, node, name, operands, node->n_inputs < 2 ? node->n_inputs : 2, NULL, 0);
}

static tare_build_value part_of(struct tare_emit *emit, const char *name, tare_build_value x) {
    if (!x) return NULL;
    const struct tare_shape shape = tare_build_shape(x);
    const bool is_double = tare_build_dtype(x) == TARE_DT_COMPLEX128;
    const struct tare_shlo_type *type = tare_build_type(B, is_double ? TARE_DT_DOUBLE : TARE_DT_FLOAT, &shape);
    return tare_build_value_of(B,
                               &(struct tare_build_request){
                                   .name = name, .operands = &x, .n_operands = 1, .results = &type, .n_results = 1 });
}

static tare_build_value conjugate(struct tare_emit *emit, tare_build_value x) {
    if (!x) return NULL;
    const tare_build_value imaginary = tare_build_unary(B, "negate", part_of(emit, "imag", x));
    const tare_build_value operands[] = { part_of(emit, "real", x), imaginary };
    return tare_build_value_of(
        B, &(struct tare_build_request){
               .name = "complex", .operands = operands, .n_operands = 2, .results = &x->type, .n_results = 1 });
}

static tare_status emit_conjugate(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    const bool is_complex = tare_dtype_is_complex(tare_emit_out_dtype(node, 0));
    return tare_emit_set(emit, node, 0, is_complex ? conjugate(emit, x) : x);
}

static tare_status emit_conjugate_transpose(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t axes[TARE_MAX_RANK];
    int permutation[TARE_MAX_RANK];
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(axes, &count, emit, node, 1));
    for (size_t i = 0; i < count; i++)
        permutation[i] = (int)(axes[i] < 0 ? axes[i] + (int64_t)count : axes[i]);
    const tare_build_value y = tare_build_transpose(B, x, permutation);
    return tare_emit_set(emit, node, 0, tare_dtype_is_complex(tare_emit_out_dtype(node, 0)) ? conjugate(emit, y) : y);
}

/* Of an integer: as many bits in the same type; TensorFlow's result is uint8. */
static tare_status emit_population_count(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    return tare_emit_set(emit, node, 0,
                         tare_build_convert(B, tare_build_unary(B, "popcnt", tare_emit_in(emit, node, 0)),
                                            tare_emit_out_dtype(node, 0)));
}

/* ---- Fourier transforms ---- */

/* x with `sizes` elements on its last axes: cut or filled with zeros. */
static tare_build_value resized(struct tare_emit *emit, tare_build_value x, const int64_t *sizes, size_t count) {
    int64_t low[TARE_MAX_RANK] = { 0 }, high[TARE_MAX_RANK] = { 0 };
    if (!x) return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t axis = x->type->rank - count + i;
        high[axis] = sizes[i] - x->type->dims[axis];
    }
    return tare_build_pad(B, x, tare_build_scalar(B, tare_build_dtype(x), 0), low, high, NULL);
}

/* FFT2D: its kind, followed by the number of axes. RFFT and IRFFT have the length as an input. */
static tare_status emit_fourier(struct tare_emit *emit, const struct tare_node *node, const void *kind) {
    const size_t rank = strstr(node->op, "2D") ? 2 : strstr(node->op, "3D") ? 3 : 1;
    tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t length[TARE_MAX_RANK], sizes[TARE_MAX_RANK];
    size_t count = rank;
    if (!x) return emit->build.status;
    for (size_t i = 0; i < rank; i++)
        length[i] = sizes[i] = x->type->dims[x->type->rank - rank + i];
    if (node->n_inputs > 1) {
        TARE_TRY(tare_emit_in_ints(length, &count, emit, node, 1));
        memcpy(sizes, length, sizeof sizes);
        if (strcmp(kind, "IRFFT") == 0) sizes[count - 1] = length[count - 1] / 2 + 1;
        x = resized(emit, x, sizes, count);
    }
    const struct tare_build_named attrs[] = { { "fft_length", tare_build_ints(B, length, count, 0) },
                                              { "fft_type", tare_build_enum(B, TARE_VHLO_FFT_TYPE, kind) } };
    return emit_op(emit, node, "fft", &x, 1, attrs, 2);
}

/* ---- matrices ---- */

/* column - row of each element of the last two axes. */
static tare_build_value diagonals(struct tare_emit *emit, const struct tare_shape *shape, int dtype) {
    const tare_build_value rows = tare_build_iota(B, dtype, shape, shape->rank - 2);
    const tare_build_value columns = tare_build_iota(B, dtype, shape, shape->rank - 1);
    return tare_build_binary(B, "subtract", columns, rows);
}

static tare_build_value zeros_like(struct tare_emit *emit, tare_build_value x) {
    if (!x) return NULL;
    const struct tare_shape shape = tare_build_shape(x);
    return tare_build_splat(B, tare_build_dtype(x), &shape, 0);
}

/* The lower triangle; the rest is zero. */
static tare_status emit_cholesky(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const struct tare_build_named attr = { "lower", tare_build_bool(B, true) };
    (void)arg;
    TARE_TRY(emit_op(emit, node, "cholesky", &x, 1, &attr, 1));
    const tare_build_value root = emit->graph->values[node->position][0].value;
    const tare_build_value zero = tare_build_splat(B, TARE_DT_INT32, &shape, 0);
    const tare_build_value is_lower = tare_build_compare(B, "LE", diagonals(emit, &shape, TARE_DT_INT32), zero);
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_lower, root, zeros_like(emit, root)));
}

static tare_status emit_triangular_solve(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    struct tare_shape matrix = out;
    const char *transpose = tare_node_bool(node, "adjoint", false) ? "ADJOINT" : "NO_TRANSPOSE";
    (void)arg;
    matrix.dims[matrix.rank - 1] = matrix.dims[matrix.rank - 2];
    const tare_build_value right = tare_build_broadcast(B, tare_emit_in(emit, node, 1), &out);
    const tare_build_value operands[] = { tare_build_broadcast(B, tare_emit_in(emit, node, 0), &matrix), right };
    const struct tare_build_named attrs[] = {
        { "left_side", tare_build_bool(B, true) },
        { "lower", tare_build_bool(B, tare_node_bool(node, "lower", true)) },
        { "transpose_a", tare_build_enum(B, TARE_VHLO_TRANSPOSE, transpose) },
        { "unit_diagonal", tare_build_bool(B, false) },
    };
    return emit_op(emit, node, "triangular_solve", operands, 2, attrs, 4);
}

/* -lower ≤ column - row ≤ upper; a negative bound is none. */
static tare_status emit_band_part(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t lower, upper;
    size_t count;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(&lower, &count, emit, node, 1));
    TARE_TRY(tare_emit_in_ints(&upper, &count, emit, node, 2));
    const tare_build_value where = diagonals(emit, &shape, TARE_DT_INT64), zeros = zeros_like(emit, x);
    tare_build_value result = x;
    for (int side = 0; side < 2; side++) {
        const int64_t most = side ? upper : lower;
        if (most < 0) continue;
        const tare_build_value bound = tare_build_splat(B, TARE_DT_INT64, &shape, (double)(side ? most : -most));
        const tare_build_value is_inside = tare_build_compare(B, side ? "LE" : "GE", where, bound);
        result = tare_build_select(B, is_inside, result, zeros);
    }
    return tare_emit_set(emit, node, 0, result);
}

/* The index of the diagonal is an input of the ops' later versions; here it is the main one. */
static tare_status check_main_diagonal(struct tare_emit *emit, const struct tare_node *node, size_t k) {
    int64_t index[TARE_MAX_RANK];
    size_t count;
    if (node->n_inputs <= k) return TARE_OK;
    TARE_TRY(tare_emit_in_ints(index, &count, emit, node, k));
    for (size_t i = 0; i < count; i++)
        if (index[i] != 0) return TARE_FAIL(TARE_UNSUPPORTED, "a diagonal besides the main one");
    return TARE_OK;
}

static tare_build_value is_diagonal(struct tare_emit *emit, const struct tare_shape *shape) {
    const tare_build_value zero = tare_build_splat(B, TARE_DT_INT32, shape, 0);
    return tare_build_compare(B, "EQ", diagonals(emit, shape, TARE_DT_INT32), zero);
}

/* x (NULL: zeros) with its diagonal replaced by a vector, which is an input. */
static tare_status emit_with_diagonal(struct tare_emit *emit, const struct tare_node *node, tare_build_value x,
                                      size_t k) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    const int64_t rows = shape.dims[shape.rank - 2];
    int dims[TARE_MAX_RANK];
    for (int i = 0; i < shape.rank; i++)
        dims[i] = i;
    const tare_build_value diagonal = resized(emit, tare_emit_in(emit, node, k), &rows, 1);
    const tare_build_value spread = tare_build_spread(B, diagonal, &shape, dims);
    if (!x) x = zeros_like(emit, spread);
    return tare_emit_set(emit, node, 0, tare_build_select(B, is_diagonal(emit, &shape), spread, x));
}

static tare_status emit_diagonal_matrix(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    TARE_TRY(check_main_diagonal(emit, node, 1));
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0);
    tare_build_value rest = NULL;
    if (node->n_inputs > 4) rest = tare_build_broadcast(B, tare_emit_in(emit, node, 4), &shape);
    return emit_with_diagonal(emit, node, rest, 0);
}

static tare_status emit_set_diagonal(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    (void)arg;
    TARE_TRY(check_main_diagonal(emit, node, 2));
    return emit_with_diagonal(emit, node, tare_emit_in(emit, node, 0), 1);
}

/* The sum of each row without what is beside the diagonal; x + -0 is x. */
static tare_status emit_diagonal(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    struct tare_shape shape = tare_emit_in_shape(emit, node, 0);
    const int dtype = tare_emit_out_dtype(node, 0);
    const double nothing = tare_dtype_is_floating(dtype) ? -0.0 : 0;
    int64_t first[TARE_MAX_RANK] = { 0 }, stride[TARE_MAX_RANK];
    (void)arg;
    TARE_TRY(check_main_diagonal(emit, node, 1));
    const int64_t columns = shape.rank - 1;
    shape.dims[shape.rank - 2] = out.dims[out.rank - 1];
    for (int i = 0; i < shape.rank; i++)
        stride[i] = 1;
    const tare_build_value x = tare_build_slice(B, tare_emit_in(emit, node, 0), first, shape.dims, stride);
    const tare_build_value rest = tare_build_splat(B, dtype, &shape, nothing);
    const tare_build_value kept = tare_build_select(B, is_diagonal(emit, &shape), x, rest);
    const tare_build_value initial = tare_build_scalar(B, dtype, nothing);
    const char *op = dtype == TARE_DT_BOOL ? "or" : "add";
    return tare_emit_set(emit, node, 0, tare_build_reduce(B, op, kept, initial, &columns, 1));
}

const struct tare_emit_row tare_emit_algebra[] = {
    { "Bitcast", emit_named, "bitcast_convert" },
    { "PopulationCount", emit_population_count, NULL },
    { "Complex", emit_named, "complex" },
    { "ComplexAbs", emit_named, "abs" },
    { "Conj", emit_conjugate, NULL },
    { "ConjugateTranspose", emit_conjugate_transpose, NULL },
    { "Imag", emit_named, "imag" },
    { "Real", emit_named, "real" },
    { "FFT", emit_fourier, "FFT" },
    { "FFT2D", emit_fourier, "FFT" },
    { "FFT3D", emit_fourier, "FFT" },
    { "IFFT", emit_fourier, "IFFT" },
    { "IFFT2D", emit_fourier, "IFFT" },
    { "IFFT3D", emit_fourier, "IFFT" },
    { "RFFT", emit_fourier, "RFFT" },
    { "RFFT2D", emit_fourier, "RFFT" },
    { "RFFT3D", emit_fourier, "RFFT" },
    { "IRFFT", emit_fourier, "IRFFT" },
    { "IRFFT2D", emit_fourier, "IRFFT" },
    { "IRFFT3D", emit_fourier, "IRFFT" },
    { "Cholesky", emit_cholesky, NULL },
    { "MatrixTriangularSolve", emit_triangular_solve, NULL },
    { "BatchMatrixBandPart", emit_band_part, NULL },
    { "MatrixBandPart", emit_band_part, NULL },
    { "MatrixDiag", emit_diagonal_matrix, NULL },
    { "MatrixDiagV2", emit_diagonal_matrix, NULL },
    { "MatrixDiagV3", emit_diagonal_matrix, NULL },
    { "MatrixDiagPart", emit_diagonal, NULL },
    { "MatrixDiagPartV2", emit_diagonal, NULL },
    { "MatrixDiagPartV3", emit_diagonal, NULL },
    { "MatrixSetDiag", emit_set_diagonal, NULL },
    { "MatrixSetDiagV2", emit_set_diagonal, NULL },
    { "MatrixSetDiagV3", emit_set_diagonal, NULL },
    { 0 },
};
