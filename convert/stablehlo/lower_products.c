/* Matrix products and convolutions. The common forms become MatMul, BatchMatMulV2, Conv2D and DepthwiseConv2dNative,
 * which every quantization method knows; the others become XlaDotV2 and XlaConvV2. */
#include "convert/stablehlo/lower.h"

#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

/* ---- products ---- */

/* The module's PrecisionConfig as a message, empty where it is the default: a TPU multiplies float32 in one pass of
 * bfloat16 unless the operands ask for more. */
static void set_precision(struct tare_lowering *l, struct tare_node *node) {
    enum { PACKED_OPERANDS = 1 << 3 | 2, OPERANDS = 2, DEFAULT = 0 };
    const struct tare_shlo_attr *config = tare_shlo_op_attr(l->op, "precision_config");
    uint8_t bytes[2 + OPERANDS] = { PACKED_OPERANDS, OPERANDS };
    bool asks = false;
    for (size_t i = 0; config && config->n_items == OPERANDS && i < OPERANDS; i++) {
        bytes[2 + i] = (uint8_t)config->items[i]->bits;
        asks |= bytes[2 + i] != DEFAULT;
    }
    tare_lower_attr_bytes(l, node, "precision_config", bytes, asks ? sizeof bytes : 0);
}

struct dims {
    int64_t values[TARE_MAX_RANK];
    size_t count;
};

static struct dims dims_of(struct tare_lowering *l, const char *name) {
    struct dims d = { .count = 0 };
    d.count = tare_lower_ints(l, d.values, TARE_MAX_RANK, name);
    return d;
}

static void put(struct tare_lowering *l, struct tare_dims_wire *wire, int field, const struct dims *d) {
    int narrow[TARE_MAX_RANK];
    for (size_t i = 0; i < d->count; i++) {
        if (d->values[i] < 0 || d->values[i] >= TARE_MAX_RANK)
            tare_lower_fail(l, TARE_CORRUPT, "a dimension is out of range");
        narrow[i] = (int)d->values[i];
    }
    if (l->status == TARE_OK) tare_dims_put_list(wire, field, narrow, (int)d->count);
}

/* Are the batch dims the leading ones, and is one dim of the last two contracted? */
static bool is_matmul(const struct dims *batch, const struct dims *contracting, size_t rank) {
    if (rank != batch->count + 2 || contracting->count != 1) return false;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->values[i] != (int64_t)i) return false;
    return contracting->values[0] >= (int64_t)batch->count;
}

static void lower_matmul(struct tare_lowering *l, bool transpose_left, bool transpose_right, bool batched) {
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    struct tare_node *node = tare_lower_begin(l, batched ? "BatchMatMulV2" : "MatMul", inputs, 2);
    tare_lower_attr_bool(l, node, batched ? "adj_x" : "transpose_a", transpose_left);
    tare_lower_attr_bool(l, node, batched ? "adj_y" : "transpose_b", transpose_right);
    tare_lower_set(l, tare_lower_end(l, node));
}

/* One letter a dimension: batch dims and contracted ones are shared. */
static void lower_einsum(struct tare_lowering *l, const struct dims d[4]) {
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    const size_t ranks[] = { tare_lower_in_type(l, 0)->rank, tare_lower_in_type(l, 1)->rank };
    char letters[2][TARE_MAX_RANK] = { { 0 } }, equation[4 * TARE_MAX_RANK + 8], *at = equation, next = 'a';
    struct tare_node *node;
    for (int pair = 0; pair < 2; pair++)
        for (size_t i = 0; i < d[2 * pair].count; i++)
            letters[0][d[2 * pair].values[i]] = letters[1][d[2 * pair + 1].values[i]] = next++;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < ranks[side]; i++) {
            if (!letters[side][i]) letters[side][i] = next++;
            *at++ = letters[side][i];
        }
        at = strcpy(at, side ? "->" : ",") + (side ? 2 : 1);
    }
    for (size_t i = 0; i < d[0].count; i++)
        *at++ = letters[0][d[0].values[i]];
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < ranks[side]; i++)
            if (!memchr(letters[!side], letters[side][i], ranks[!side])) *at++ = letters[side][i];
    node = tare_lower_begin(l, "Einsum", inputs, 2);
    tare_lower_attr_bytes(l, node, "equation", equation, (size_t)(at - equation));
    tare_lower_set(l, tare_lower_end(l, node));
}

static bool in_range(const struct dims *d, size_t rank) {
    for (size_t i = 0; i < d->count; i++)
        if (d->values[i] < 0 || (size_t)d->values[i] >= rank) return false;
    return true;
}

/* `all`: batch dims of both sides, then contracted dims of both. */
static void lower_contraction(struct tare_lowering *l, const struct dims all[4]) {
    const struct dims lhs_batch = all[0], rhs_batch = all[1], lhs = all[2], rhs = all[3];
    const int left = tare_lower_in_dtype(l, 0), right = tare_lower_in_dtype(l, 1), out = tare_lower_out_dtype(l, 0);
    const size_t lhs_rank = tare_lower_in_type(l, 0)->rank, rhs_rank = tare_lower_in_type(l, 1)->rank;
    struct tare_dims_wire wire = { .size = 0 };
    if (left == right && left == out && tare_dtype_is_floating(left) && is_matmul(&lhs_batch, &lhs, lhs_rank) &&
        is_matmul(&rhs_batch, &rhs, rhs_rank)) {
        lower_matmul(l, lhs.values[0] + 2 == (int64_t)lhs_rank, rhs.values[0] + 1 == (int64_t)rhs_rank,
                     lhs_batch.count > 0);
        return;
    }
    if (!in_range(&lhs_batch, lhs_rank) || !in_range(&lhs, lhs_rank) || !in_range(&rhs_batch, rhs_rank) ||
        !in_range(&rhs, rhs_rank) || lhs.count != rhs.count || lhs_batch.count != rhs_batch.count)
        tare_lower_fail(l, TARE_CORRUPT, "the dimension numbers do not fit the operands");
    if (l->status != TARE_OK) return;
    if (left == TARE_DT_COMPLEX64 || left == TARE_DT_COMPLEX128) {
        lower_einsum(l, all);
        return;
    }
    put(l, &wire, 1, &lhs);
    put(l, &wire, 2, &rhs);
    put(l, &wire, 3, &lhs_batch);
    put(l, &wire, 4, &rhs_batch);
    const bool logical = left == TARE_DT_BOOL; /* a sum of ands: is any product 1? */
    struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    for (int i = 0; i < 2 && logical; i++)
        inputs[i] = tare_lower_cast(l, inputs[i], TARE_DT_INT32);
    struct tare_node *node = tare_lower_begin(l, "XlaDotV2", inputs, 2);
    tare_lower_attr_bytes(l, node, "dimension_numbers", wire.bytes, wire.size);
    set_precision(l, node);
    tare_lower_attr_type(l, node, "preferred_element_type", logical ? TARE_DT_INT32 : out);
    const struct tare_edge product = tare_lower_end(l, node);
    tare_lower_set(l, logical ? tare_lower_binary(l, "NotEqual", product, tare_lower_scalar(l, TARE_DT_INT32, 0))
                              : product);
}

static void lower_dot_general(struct tare_lowering *l, const void *arg) {
    const struct dims all[] = { dims_of(l, "lhs_batching_dimensions"), dims_of(l, "rhs_batching_dimensions"),
                                dims_of(l, "lhs_contracting_dimensions"), dims_of(l, "rhs_contracting_dimensions") };
    (void)arg;
    lower_contraction(l, all);
}

/* dot of vectors and matrices: the last dimension of the left operand and the first of the right one are contracted. */
static void lower_dot(struct tare_lowering *l, const void *arg) {
    const size_t lhs_rank = tare_lower_in_type(l, 0)->rank, rhs_rank = tare_lower_in_type(l, 1)->rank;
    (void)arg;
    if (!lhs_rank || lhs_rank > 2 || !rhs_rank || rhs_rank > 2) {
        tare_lower_fail(l, TARE_CORRUPT, "operands of rank %zu and %zu (expected 1 or 2)", lhs_rank, rhs_rank);
        return;
    }
    const struct dims none = { .count = 0 }, lhs = { { (int64_t)lhs_rank - 1 }, 1 }, rhs = { { 0 }, 1 };
    lower_contraction(l, (const struct dims[]){ none, none, lhs, rhs });
}

/* ---- convolutions ---- */

struct convolution {
    struct tare_conv_dims dims;
    int64_t stride[TARE_MAX_RANK], lhs_dilation[TARE_MAX_RANK], rhs_dilation[TARE_MAX_RANK], padding[2 * TARE_MAX_RANK];
    int64_t reversal[TARE_MAX_RANK], feature_groups, batch_groups;
    size_t spatial;
    bool reversed;
};

static int read_dim(struct tare_lowering *l, const char *name) {
    const int64_t dim = tare_lower_int(l, name);
    if (dim < 0 || dim >= TARE_MAX_RANK) tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' is out of range", name);
    return l->status == TARE_OK ? (int)dim : 0;
}

static void read_spatial(struct tare_lowering *l, int *out, size_t count, const char *name) {
    const struct dims d = dims_of(l, name);
    if (d.count != count)
        tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' has %zu values (expected %zu)", name, d.count, count);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++) {
        if (d.values[i] < 0 || d.values[i] >= TARE_MAX_RANK)
            tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' is out of range", name);
        out[i] = (int)d.values[i];
    }
}

static void read_window(struct tare_lowering *l, int64_t *out, size_t count, const char *name) {
    if (tare_lower_ints(l, out, count, name) != count)
        tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' has too few values", name);
}

/* The padding of dynamic_conv is operand 2; an attribute of that name in its first version has no meaning. */
static bool is_dynamic(const struct tare_lowering *l) {
    return tare_shlo_op_is(l->op, "dynamic_conv");
}

static void read_convolution(struct convolution *c, struct tare_lowering *l) {
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    memset(c, 0, sizeof *c);
    if (rank < 2 || rank > 5) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a convolution of rank %zu (expected 2 to 5)", rank);
        return;
    }
    c->spatial = rank - 2;
    c->dims.spatial = (int)c->spatial;
    c->dims.input_batch = read_dim(l, "input_batch_dimension");
    c->dims.input_feature = read_dim(l, "input_feature_dimension");
    c->dims.kernel_input = read_dim(l, "kernel_input_feature_dimension");
    c->dims.kernel_output = read_dim(l, "kernel_output_feature_dimension");
    c->dims.output_batch = read_dim(l, "output_batch_dimension");
    c->dims.output_feature = read_dim(l, "output_feature_dimension");
    read_spatial(l, c->dims.input_spatial, c->spatial, "input_spatial_dimensions");
    read_spatial(l, c->dims.kernel_spatial, c->spatial, "kernel_spatial_dimensions");
    read_spatial(l, c->dims.output_spatial, c->spatial, "output_spatial_dimensions");
    read_window(l, c->stride, c->spatial, "window_strides");
    read_window(l, c->lhs_dilation, c->spatial, "lhs_dilation");
    read_window(l, c->rhs_dilation, c->spatial, "rhs_dilation");
    read_window(l, c->reversal, c->spatial, "window_reversal");
    if (!is_dynamic(l)) read_window(l, c->padding, 2 * c->spatial, "padding");
    c->feature_groups = tare_lower_int(l, "feature_group_count");
    c->batch_groups = tare_lower_int(l, "batch_group_count");
    for (size_t i = 0; i < c->spatial; i++)
        c->reversed = c->reversed || c->reversal[i];
}

/* [batch, spatial…, feature] and [spatial…, input, output], in two dimensions, without dilation of the input. Conv2D
 * rejects windows that do not fit, of which StableHLO has no outputs. */
static bool is_conv2d(const struct convolution *c, struct tare_lowering *l) {
    const struct tare_conv_dims *d = &c->dims;
    const int dtype = tare_lower_in_dtype(l, 0);
    if (c->spatial != 2 || c->reversed || c->batch_groups != 1 || !tare_dtype_is_floating(dtype)) return false;
    if (dtype != tare_lower_in_dtype(l, 1) || dtype != tare_lower_out_dtype(l, 0)) return false;
    if (d->input_batch || d->output_batch || d->input_feature != 3 || d->output_feature != 3) return false;
    if (d->kernel_input != 2 || d->kernel_output != 3) return false;
    for (int i = 0; i < 2; i++)
        if (d->input_spatial[i] != i + 1 || d->output_spatial[i] != i + 1 || d->kernel_spatial[i] != i ||
            c->lhs_dilation[i] != 1 || c->padding[2 * i] < 0 || c->padding[2 * i + 1] < 0 ||
            tare_lower_out_type(l, 0)->dims[i + 1] == 0)
            return false;
    return true;
}

static void lower_conv2d(struct tare_lowering *l, const struct convolution *c) {
    const int64_t strides[] = { 1, c->stride[0], c->stride[1], 1 },
                  dilations[] = { 1, c->rhs_dilation[0], c->rhs_dilation[1], 1 };
    const int64_t pads[] = { 0, 0, c->padding[0], c->padding[1], c->padding[2], c->padding[3], 0, 0 };
    const struct tare_shlo_type *kernel = tare_lower_in_type(l, 1);
    const bool none = !(c->padding[0] | c->padding[1] | c->padding[2] | c->padding[3]);
    const bool depthwise =
        c->feature_groups > 1 && kernel->dims[2] == 1 && tare_lower_in_type(l, 0)->dims[3] == c->feature_groups;
    struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    if (depthwise) { /* the multiplier's channels follow each other: [h, w, 1, c * m] is [h, w, c, m] */
        const int64_t shape[] = { kernel->dims[0], kernel->dims[1], c->feature_groups,
                                  kernel->dims[3] / c->feature_groups };
        inputs[1] = tare_lower_reshape(l, inputs[1], tare_lower_longs(l, shape, 4));
    }
    struct tare_node *node = tare_lower_begin(l, depthwise ? "DepthwiseConv2dNative" : "Conv2D", inputs, 2);
    tare_lower_attr_ints(l, node, "strides", strides, 4);
    tare_lower_attr_ints(l, node, "dilations", dilations, 4);
    tare_lower_attr_bytes(l, node, "padding", none ? "VALID" : "EXPLICIT", none ? 5 : 8);
    if (!none) tare_lower_attr_ints(l, node, "explicit_paddings", pads, 8);
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_xla_conv(struct tare_lowering *l, struct convolution *c) {
    const int64_t pairs[] = { (int64_t)c->spatial, 2 };
    struct tare_dims_wire wire = { .size = 0 };
    int64_t axes[TARE_MAX_RANK];
    size_t n = 0;
    struct tare_edge kernel = tare_lower_in(l, 1);
    for (size_t i = 0; i < c->spatial; i++)
        if (c->reversal[i]) axes[n++] = c->dims.kernel_spatial[i];
    if (n) kernel = tare_lower_binary(l, "ReverseV2", kernel, tare_lower_longs(l, axes, n));
    tare_conv_dims_write(&wire, &c->dims, TARE_CONV_XLA);
    const struct tare_edge inputs[] = { tare_lower_in(l, 0),
                                        kernel,
                                        tare_lower_longs(l, c->stride, c->spatial),
                                        is_dynamic(l) ? tare_lower_cast(l, tare_lower_in(l, 2), TARE_DT_INT64)
                                                      : tare_lower_longs_of(l, c->padding, pairs, 2),
                                        tare_lower_longs(l, c->lhs_dilation, c->spatial),
                                        tare_lower_longs(l, c->rhs_dilation, c->spatial),
                                        tare_lower_scalar(l, TARE_DT_INT64, (double)c->feature_groups) };
    struct tare_node *node = tare_lower_begin(l, "XlaConvV2", inputs, 7);
    tare_lower_attr_bytes(l, node, "dimension_numbers", wire.bytes, wire.size);
    set_precision(l, node);
    tare_lower_attr_int(l, node, "batch_group_count", c->batch_groups);
    tare_lower_attr_type(l, node, "preferred_element_type", tare_lower_out_dtype(l, 0));
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_convolution(struct tare_lowering *l, const void *arg) {
    struct convolution c;
    (void)arg;
    read_convolution(&c, l);
    if (l->status != TARE_OK) return;
    const bool grouped =
        c.feature_groups > 1 && tare_lower_in_type(l, 0)->rank == 4 &&
        (tare_lower_in_type(l, 1)->dims[2] != 1 || tare_lower_in_type(l, 0)->dims[3] != c.feature_groups);
    if (is_conv2d(&c, l) && !grouped && !is_dynamic(l))
        lower_conv2d(l, &c);
    else
        lower_xla_conv(l, &c);
}

/* ---- linear algebra ---- */

static struct tare_edge adjoint(struct tare_lowering *l, struct tare_edge x, size_t rank) {
    int64_t order[TARE_MAX_RANK];
    for (size_t i = 0; i < rank && i < TARE_MAX_RANK; i++)
        order[i] = (int64_t)i;
    order[rank - 2] = (int64_t)rank - 1;
    order[rank - 1] = (int64_t)rank - 2;
    return tare_lower_binary(l, "ConjugateTranspose", x, tare_lower_longs(l, order, rank));
}

/* Cholesky reads the lower triangle. */
static void lower_cholesky(struct tare_lowering *l, const void *arg) {
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    const bool lower = tare_lower_flag(l, "lower");
    struct tare_edge x = tare_lower_in(l, 0);
    (void)arg;
    if (rank < 2) {
        tare_lower_fail(l, TARE_CORRUPT, "a matrix of rank %zu", rank);
        return;
    }
    if (!lower) x = adjoint(l, x, rank);
    x = tare_lower_unary(l, "Cholesky", x);
    tare_lower_set(l, lower ? x : adjoint(l, x, rank));
}

/* MatrixTriangularSolve solves from the left: X op(A) = B is op(A)^H X^H = B^H. */
static void lower_triangular_solve(struct tare_lowering *l, const void *arg) {
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    const char *transpose = tare_lower_text(l, "transpose_a");
    const bool left = tare_lower_flag(l, "left_side");
    bool lower = tare_lower_flag(l, "lower"), adjoint_a = strcmp(transpose, "NO_TRANSPOSE") != 0;
    struct tare_edge a = tare_lower_in(l, 0), b = tare_lower_in(l, 1);
    const int dtype = tare_lower_in_dtype(l, 0);
    const bool is_complex = tare_dtype_is_complex(dtype);
    (void)arg;
    if (rank < 2) {
        tare_lower_fail(l, TARE_CORRUPT, "a matrix of rank %zu", rank);
        return;
    }
    if (strcmp(transpose, "TRANSPOSE") == 0 && is_complex) a = tare_lower_unary(l, "Conj", a);
    if (tare_lower_flag(l, "unit_diagonal")) {
        const struct tare_edge diagonal = tare_lower_unary(l, "MatrixDiagPart", a);
        a = tare_lower_binary(l, "MatrixSetDiag", a, tare_lower_unary(l, "OnesLike", diagonal));
    }
    if (!left) {
        b = adjoint(l, b, rank);
        adjoint_a = !adjoint_a;
    }
    const struct tare_edge inputs[] = { a, b };
    struct tare_node *node = tare_lower_begin(l, "MatrixTriangularSolve", inputs, 2);
    tare_lower_attr_bool(l, node, "lower", lower);
    tare_lower_attr_bool(l, node, "adjoint", adjoint_a);
    const struct tare_edge x = tare_lower_end(l, node);
    tare_lower_set(l, left ? x : adjoint(l, x, rank));
}

static void lower_fft(struct tare_lowering *l, const void *arg) {
    static const char *const ops[4][3] = { { "FFT", "FFT2D", "FFT3D" },
                                           { "IFFT", "IFFT2D", "IFFT3D" },
                                           { "RFFT", "RFFT2D", "RFFT3D" },
                                           { "IRFFT", "IRFFT2D", "IRFFT3D" } };
    static const char *const types[] = { "FFT", "IFFT", "RFFT", "IRFFT" };
    const char *type = tare_lower_text(l, "fft_type");
    const struct dims length = dims_of(l, "fft_length");
    size_t k = 0;
    (void)arg;
    while (k < 3 && strcmp(type, types[k]) != 0)
        k++;
    if (!length.count || length.count > 3) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a transform of %zu dimensions (expected 1 to 3)", length.count);
        return;
    }
    const struct tare_edge inputs[] = {
        tare_lower_in(l, 0), tare_lower_cast(l, tare_lower_longs(l, length.values, length.count), TARE_DT_INT32)
    };
    struct tare_node *node = tare_lower_begin(l, ops[k][length.count - 1], inputs, k < 2 ? 1 : 2);
    if (k == 2) tare_lower_attr_type(l, node, "Tcomplex", tare_lower_out_dtype(l, 0));
    if (k == 3) tare_lower_attr_type(l, node, "Treal", tare_lower_out_dtype(l, 0));
    tare_lower_set(l, tare_lower_end(l, node));
}

const struct tare_lowering_row tare_lower_products[] = {
    { "dot", lower_dot, NULL },
    { "dot_general", lower_dot_general, NULL },
    { "convolution", lower_convolution, NULL },
    { "dynamic_conv", lower_convolution, NULL },
    { "cholesky", lower_cholesky, NULL },
    { "triangular_solve", lower_triangular_solve, NULL },
    { "fft", lower_fft, NULL },
    { 0 },
};
