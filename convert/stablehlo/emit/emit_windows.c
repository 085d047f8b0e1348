/* Convolutions, pooling and batch normalization. */
#include "convert/stablehlo/emit/emit.h"

#include "interpreter/ops/support/dims_wire.h"
#include "interpreter/ops/support/window.h"

#include <math.h>
#include <string.h>

#define B (&emit->build)

/* What a convolution of the op has besides its operands. */
struct convolution {
    struct tare_conv_dims dims;
    int64_t stride[3], pad[3][2], lhs_dilation[3], rhs_dilation[3];
    int64_t groups, batch_groups;
    bool reverses; /* the filter */
};

/* The positions of an op's arrays: NHWC or NCHW, filters as [spatial…, in, out]. */
static struct tare_conv_dims dims_of(const struct tare_window *window) {
    struct tare_conv_dims dims = { .spatial = window->spatial };
    const int first = window->channels_first ? 2 : 1;
    dims.input_feature = dims.output_feature = window->channels_first ? 1 : window->spatial + 1;
    for (int i = 0; i < window->spatial; i++) {
        dims.input_spatial[i] = dims.output_spatial[i] = first + i;
        dims.kernel_spatial[i] = i;
    }
    dims.kernel_input = window->spatial;
    dims.kernel_output = window->spatial + 1;
    return dims;
}

static tare_build_attr axes(struct tare_emit *emit, const int *values, int count) {
    int64_t wide[TARE_MAX_RANK];
    for (int i = 0; i < count; i++)
        wide[i] = values[i];
    return tare_build_ints(B, wide, (size_t)count, 0);
}

static tare_build_value convolve(struct tare_emit *emit, const struct convolution *conv, tare_build_value lhs,
                                 tare_build_value rhs, int dtype, const struct tare_shape *out) {
    const struct tare_conv_dims *dims = &conv->dims;
    const size_t spatial = (size_t)dims->spatial;
    if (!lhs || !rhs) return NULL;
    tare_build_match_kinds(B, &lhs, &rhs);
    const struct tare_build_named attrs[] = {
        { "batch_group_count", tare_build_int(B, conv->batch_groups) },
        { "feature_group_count", tare_build_int(B, conv->groups) },
        { "input_batch_dimension", tare_build_int(B, dims->input_batch) },
        { "input_feature_dimension", tare_build_int(B, dims->input_feature) },
        { "input_spatial_dimensions", axes(emit, dims->input_spatial, dims->spatial) },
        { "kernel_input_feature_dimension", tare_build_int(B, dims->kernel_input) },
        { "kernel_output_feature_dimension", tare_build_int(B, dims->kernel_output) },
        { "kernel_spatial_dimensions", axes(emit, dims->kernel_spatial, dims->spatial) },
        { "lhs_dilation", tare_build_ints(B, conv->lhs_dilation, spatial, 0) },
        { "output_batch_dimension", tare_build_int(B, dims->output_batch) },
        { "output_feature_dimension", tare_build_int(B, dims->output_feature) },
        { "output_spatial_dimensions", axes(emit, dims->output_spatial, dims->spatial) },
        { "padding", tare_build_ints(B, conv->pad[0], 2 * spatial, 2) },
        { "rhs_dilation", tare_build_ints(B, conv->rhs_dilation, spatial, 0) },
        { "window_reversal", tare_build_bools(B, conv->reverses, spatial) },
        { "window_strides", tare_build_ints(B, conv->stride, spatial, 0) },
    };
    const struct tare_shlo_type *type = tare_build_type(B, dtype, out);
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "convolution",
                                                                .operands = (tare_build_value[]){ lhs, rhs },
                                                                .n_operands = 2,
                                                                .attrs = attrs,
                                                                .n_attrs = sizeof attrs / sizeof *attrs,
                                                                .results = &type,
                                                                .n_results = 1 });
}

/* The padding of spatial axis i of a window over `in` elements. */
static tare_status set_padding(int64_t pad[2], const struct tare_window *window, int i, int64_t in, int64_t size) {
    const int axis = 3 - window->spatial + i; /* of the window */
    int64_t out;
    TARE_TRY(tare_window_output(&out, &pad[0], window, axis, in, size));
    pad[1] = (out - 1) * window->stride[axis] + (size - 1) * window->dilation[axis] + 1 - in - pad[0];
    if (pad[1] < 0) pad[1] = 0; /* elements behind the last window */
    return TARE_OK;
}

static tare_status set_windows(struct convolution *conv, const struct tare_window *window, const struct tare_shape *in,
                               const struct tare_shape *filter) {
    conv->dims = dims_of(window);
    for (int i = 0; i < window->spatial; i++) {
        const int axis = 3 - window->spatial + i;
        conv->stride[i] = window->stride[axis];
        conv->rhs_dilation[i] = window->dilation[axis];
        conv->lhs_dilation[i] = 1;
        TARE_TRY(set_padding(conv->pad[i], window, i, in->dims[conv->dims.input_spatial[i]], filter->dims[i]));
    }
    conv->batch_groups = 1;
    return TARE_OK;
}

static tare_status emit_conv(struct tare_emit *emit, const struct tare_node *node, const void *three) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), filter = tare_emit_in_shape(emit, node, 1),
                            out = tare_emit_out_shape(emit, node, 0);
    struct convolution conv = { 0 };
    struct tare_window window = { 0 };
    TARE_TRY(tare_window_parse(&window, node, three ? 3 : 2));
    TARE_TRY(set_windows(&conv, &window, &in, &filter));
    conv.groups = in.dims[conv.dims.input_feature] / filter.dims[window.spatial];
    const tare_build_value kernel = tare_emit_in(emit, node, 1), x = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, convolve(emit, &conv, x, kernel, tare_emit_out_dtype(node, 0), &out));
}

/* The filter [h, w, channels, outputs per channel] is [h, w, 1, channels · outputs] with a group for each channel. */
static tare_status emit_depthwise(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), filter = tare_emit_in_shape(emit, node, 1),
                            out = tare_emit_out_shape(emit, node, 0);
    const struct tare_shape grouped = {
        .rank = 4, .dims = { filter.dims[0], filter.dims[1], 1, filter.dims[2] * filter.dims[3] }
    };
    struct convolution conv = { 0 };
    struct tare_window window = { 0 };
    (void)arg;
    TARE_TRY(tare_window_parse(&window, node, 2));
    TARE_TRY(set_windows(&conv, &window, &in, &filter));
    conv.groups = filter.dims[2];
    const tare_build_value kernel = tare_build_reshape(B, tare_emit_in(emit, node, 1), &grouped);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, convolve(emit, &conv, x, kernel, tare_emit_out_dtype(node, 0), &out));
}

/* The transpose of a convolution: of the elements `stride` apart, with the reversed filter and its channels exchanged.
 */
static tare_status emit_transposed(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape filter = tare_emit_in_shape(emit, node, 1), in = tare_emit_in_shape(emit, node, 2),
                            out = tare_emit_out_shape(emit, node, 0);
    struct convolution conv = { .batch_groups = 1, .groups = 1, .reverses = true };
    struct tare_window window = { 0 };
    (void)arg;
    TARE_TRY(tare_window_parse(&window, node, 2));
    conv.dims = dims_of(&window);
    conv.dims.kernel_input = 3;
    conv.dims.kernel_output = 2;
    for (int i = 0; i < 2; i++) {
        const int axis = 1 + i, at = conv.dims.input_spatial[i];
        conv.stride[i] = 1;
        conv.lhs_dilation[i] = window.stride[axis];
        conv.rhs_dilation[i] = window.dilation[axis];
        TARE_TRY(tare_window_transposed_padding(conv.pad[i], &window, axis, out.dims[at], filter.dims[i], in.dims[at]));
    }
    if (filter.dims[2] != out.dims[conv.dims.output_feature]) return TARE_FAIL(TARE_UNSUPPORTED, "groups");
    const tare_build_value kernel = tare_emit_in(emit, node, 1), x = tare_emit_in(emit, node, 2);
    return tare_emit_set(emit, node, 0, convolve(emit, &conv, x, kernel, tare_emit_out_dtype(node, 0), &out));
}

/* XlaConvV2 has the op's own parameters as inputs. */
static tare_status emit_xla_conv(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    struct convolution conv = { .batch_groups = tare_node_int(node, "batch_group_count", 1) };
    int64_t pads[TARE_MAX_RANK], *const lists[] = { conv.stride, pads, conv.lhs_dilation, conv.rhs_dilation,
                                                    &conv.groups };
    size_t count;
    (void)arg;
    TARE_TRY(tare_conv_dims_read(&conv.dims, node, "dimension_numbers", out.rank, TARE_CONV_XLA));
    for (size_t i = 0; i < 5; i++) {
        const struct tare_tensor *constant = tare_emit_in_constant(emit, node, 2 + i);
        if (constant && constant->elements > (i == 4 ? 1 : i == 1 ? 2 * 3 : 3))
            return TARE_FAIL(TARE_UNSUPPORTED, "more than three spatial axes");
        TARE_TRY(tare_emit_in_ints(lists[i], &count, emit, node, 2 + i));
    }
    for (int i = 0; i < conv.dims.spatial; i++)
        memcpy(conv.pad[i], pads + 2 * i, sizeof conv.pad[i]);
    const tare_build_value kernel = tare_emit_in(emit, node, 1), x = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, convolve(emit, &conv, x, kernel, tare_emit_out_dtype(node, 0), &out));
}

/* ---- pooling ---- */

struct pooling {
    int64_t size[TARE_MAX_RANK], stride[TARE_MAX_RANK], pad[TARE_MAX_RANK][2];
};

static tare_status set_pooling(struct pooling *pool, const struct tare_window *window, const struct tare_shape *in) {
    const struct tare_conv_dims dims = dims_of(window);
    for (int i = 0; i < in->rank; i++) {
        pool->size[i] = pool->stride[i] = 1;
        pool->pad[i][0] = pool->pad[i][1] = 0;
    }
    pool->size[dims.input_feature] = window->size_of_channels;
    pool->stride[dims.input_feature] = window->stride_of_channels;
    for (int i = 0; i < window->spatial; i++) {
        const int axis = 3 - window->spatial + i, at = dims.input_spatial[i];
        pool->size[at] = window->size[axis];
        pool->stride[at] = window->stride[axis];
        TARE_TRY(set_padding(pool->pad[at], window, i, in->dims[at], window->size[axis]));
    }
    return TARE_OK;
}

static tare_build_value pooled(struct tare_emit *emit, const char *name, const struct pooling *pool, tare_build_value x,
                               double initial, const struct tare_shape *out) {
    int64_t ones[TARE_MAX_RANK];
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    if (!x) return NULL;
    const size_t rank = x->type->rank;
    const int dtype = tare_build_dtype(x);
    const tare_build_value first = tare_build_scalar(B, dtype, initial);
    if (!first) return NULL;
    for (size_t i = 0; i < rank; i++)
        ones[i] = 1;
    const struct tare_shlo_type *const types[] = { first->type, first->type };
    const tare_build_value args = tare_build_arguments(B, &body, types, 2);
    if (!args) return NULL;
    tare_build_begin(B, &block);
    const tare_build_value result = tare_build_binary(B, name, &args[0], &args[1]);
    tare_build_end(B, &body, &result, 1);
    const struct tare_build_named attrs[] = {
        { "base_dilations", tare_build_ints(B, ones, rank, 0) },
        { "padding", tare_build_ints(B, pool->pad[0], 2 * rank, 2) },
        { "window_dilations", tare_build_ints(B, ones, rank, 0) },
        { "window_dimensions", tare_build_ints(B, pool->size, rank, 0) },
        { "window_strides", tare_build_ints(B, pool->stride, rank, 0) },
    };
    const struct tare_shlo_type *type = tare_build_type(B, dtype, out);
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "reduce_window",
                                                                .operands = (tare_build_value[]){ x, first },
                                                                .n_operands = 2,
                                                                .attrs = attrs,
                                                                .n_attrs = 5,
                                                                .results = &type,
                                                                .n_results = 1,
                                                                .regions = &body,
                                                                .n_regions = 1 });
}

static tare_status emit_max_pool(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    struct tare_window window = { 0 };
    struct pooling pool;
    (void)arg;
    TARE_TRY(tare_window_parse(&window, node, in.rank - 2));
    TARE_TRY(set_pooling(&pool, &window, &in));
    return tare_emit_set(emit, node, 0,
                         pooled(emit, "maximum", &pool, tare_emit_in(emit, node, 0), -(double)INFINITY, &out));
}

/* The sum of each window divided by the number of its elements that are inside. */
static tare_status emit_average_pool(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    struct tare_window window = { 0 };
    struct pooling pool;
    bool is_padded = false;
    double elements = 1;
    (void)arg;
    TARE_TRY(tare_window_parse(&window, node, in.rank - 2));
    TARE_TRY(set_pooling(&pool, &window, &in));
    for (int i = 0; i < in.rank; i++) {
        is_padded |= pool.pad[i][0] || pool.pad[i][1];
        elements *= (double)pool.size[i];
    }
    if (!x) return TARE_OK;
    const int dtype = tare_build_dtype(x), wide = dtype == TARE_DT_DOUBLE ? dtype : TARE_DT_FLOAT;
    const tare_build_value sum = pooled(emit, "add", &pool, tare_build_convert(B, x, wide), 0, &out);
    const tare_build_value counts = is_padded ? pooled(emit, "add", &pool, tare_build_splat(B, wide, &in, 1), 0, &out)
                                              : tare_build_splat(B, wide, &out, elements);
    return tare_emit_set(emit, node, 0, tare_build_convert(B, tare_build_binary(B, "divide", sum, counts), dtype));
}

/* ---- batch normalization ---- */

/* (x - mean) · (scale / √(variance + ε)) + offset; its other outputs are for training. */
static tare_status emit_batch_norm(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, 0), channels = tare_emit_in_shape(emit, node, 1);
    const int axis = strncmp(tare_node_string(node, "data_format", "NHWC"), "NC", 2) == 0 ? 1 : shape.rank - 1;
    const double epsilon = (double)tare_node_float(node, "epsilon", 1e-4F);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    (void)arg;
    if (tare_node_bool(node, "is_training", true)) return TARE_FAIL(TARE_UNSUPPORTED, "statistics of the batch");
    if (!x) return TARE_OK;
    const int dtype = tare_build_dtype(x);
    const tare_build_value least = tare_build_splat(B, TARE_DT_FLOAT, &channels, epsilon);
    const tare_build_value variance = tare_build_binary(B, "add", tare_emit_in(emit, node, 4), least);
    const tare_build_value scale = tare_emit_in(emit, node, 1);
    const tare_build_value factor = tare_build_binary(B, "multiply", tare_build_unary(B, "rsqrt", variance), scale);
    const tare_build_value mean = tare_build_spread(B, tare_emit_in(emit, node, 3), &shape, &axis);
    const tare_build_value centred = tare_build_binary(B, "subtract", tare_build_convert(B, x, TARE_DT_FLOAT), mean);
    const tare_build_value scaled =
        tare_build_binary(B, "multiply", centred, tare_build_spread(B, factor, &shape, &axis));
    const tare_build_value value =
        tare_build_binary(B, "add", scaled, tare_build_spread(B, tare_emit_in(emit, node, 2), &shape, &axis));
    return tare_emit_set(emit, node, 0, tare_build_convert(B, value, dtype));
}

const struct tare_emit_row tare_emit_windows[] = {
    { "Conv2D", emit_conv, NULL },
    { "Conv3D", emit_conv, "three" },
    { "DepthwiseConv2dNative", emit_depthwise, NULL },
    { "Conv2DBackpropInput", emit_transposed, NULL },
    { "XlaConv", emit_xla_conv, NULL },
    { "XlaConvV2", emit_xla_conv, NULL },
    { "MaxPool", emit_max_pool, NULL },
    { "MaxPool3D", emit_max_pool, NULL },
    { "AvgPool", emit_average_pool, NULL },
    { "AvgPool3D", emit_average_pool, NULL },
    { "FusedBatchNorm", emit_batch_norm, NULL },
    { "FusedBatchNormV2", emit_batch_norm, NULL },
    { "FusedBatchNormV3", emit_batch_norm, NULL },
    { 0 },
};
