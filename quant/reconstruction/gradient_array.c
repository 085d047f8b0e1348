/* Derivatives of ops that move, combine or reduce elements, of pooling and of resizing. */
#include "quant/reconstruction/gradient_rule.h"

static struct tare_edge input(const struct tare_gradient_rule_call *call, size_t k) {
    return call->node->inputs[k];
}

static struct tare_edge input_shape(const struct tare_gradient_rule_call *call, size_t k) {
    return tare_gradient_shape(call->emit, input(call, k));
}

/* A node with the attribute T, of its first input, and the type of its indices. */
static struct tare_edge moved(const struct tare_gradient_rule_call *call, const char *op,
                              const struct tare_edge *inputs, size_t n_inputs, const char *index_type,
                              int index_dtype) {
    const int dtype = call->emit->status == TARE_OK ? tare_edge_dtype(inputs[0]) : TARE_DT_FLOAT;
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, dtype },
                                            { index_type, TARE_EMIT_TYPE, index_dtype },
                                            { 0 } };
    return tare_emit_node(call->emit, op, op, inputs, n_inputs, attrs);
}

static struct tare_edge as_int32(const struct tare_gradient_rule_call *call, struct tare_edge x) {
    if (call->emit->status != TARE_OK || tare_edge_dtype(x) == TARE_DT_INT32) return x;
    return tare_emit_cast(call->emit, "int32", x, TARE_DT_INT32);
}

/* ---- shapes ---- */

static void reshape(struct tare_gradient_rule_call *call) {
    if (call->wanted[0]) call->dx[0] = tare_gradient_reshape(call->emit, call->dy[0], input_shape(call, 0));
}

static void transpose(struct tare_gradient_rule_call *call) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT32 }, { 0 } };
    const struct tare_edge order = as_int32(call, input(call, 1));
    const struct tare_edge inputs[] = { call->dy[0],
                                        tare_emit_node(call->emit, "InvertPermutation", "back", &order, 1, attrs) };
    call->dx[0] = moved(call, "Transpose", inputs, 2, "Tperm", TARE_DT_INT32);
}

static void space_to_depth(struct tare_gradient_rule_call *call) {
    call->dx[0] = tare_gradient_like(call, "DepthToSpace", call->dy, 1);
}
static void depth_to_space(struct tare_gradient_rule_call *call) {
    call->dx[0] = tare_gradient_like(call, "SpaceToDepth", call->dy, 1);
}

/* ---- parts ---- */

static struct tare_edge slice(const struct tare_gradient_rule_call *call, struct tare_edge x, struct tare_edge begin,
                              struct tare_edge size) {
    const struct tare_edge inputs[] = { x, begin, size };
    return moved(call, "Slice", inputs, 3, "Index", TARE_DT_INT32);
}

static void concat(struct tare_gradient_rule_call *call) {
    struct tare_edge shapes[TARE_GRADIENT_INPUTS + 1];
    const size_t count = call->node->n_inputs - 1;
    const struct tare_emit_attr attrs[] = { { "N", TARE_EMIT_INT, (int64_t)count },
                                            { "shape_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    struct tare_edge offsets;
    shapes[0] = as_int32(call, input(call, count));
    for (size_t i = 0; i < count; i++)
        shapes[i + 1] = input_shape(call, i);
    offsets = tare_emit_node(call->emit, "ConcatOffset", "offsets", shapes, count + 1, attrs);
    for (size_t i = 0; i < count; i++)
        if (call->wanted[i])
            call->dx[i] = slice(call, call->dy[0], (struct tare_edge){ offsets.node, (int)i }, shapes[i + 1]);
}

/* The parts without derivative are zeros. */
static void split(struct tare_gradient_rule_call *call) {
    struct tare_edge parts[TARE_GRADIENT_OUTPUTS + 1];
    const size_t count = call->node->n_outputs;
    const struct tare_emit_attr attrs[] = { { "N", TARE_EMIT_INT, (int64_t)count },
                                            { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const size_t value = tare_node_is(call->node, "Split") ? 1 : 0;
    for (size_t i = 0; i < count; i++)
        parts[i] = call->dy[i].node
                       ? call->dy[i]
                       : tare_emit_unary(call->emit, "ZerosLike", "zero", (struct tare_edge){ call->node, (int)i });
    parts[count] = as_int32(call, input(call, value ? 0 : 2));
    call->dx[value] = tare_emit_node(call->emit, "ConcatV2", "concat", parts, count + 1, attrs);
}

/* The first column of the paddings is where the input begins. */
static void pad(struct tare_gradient_rule_call *call) {
    const struct tare_edge paddings[] = { as_int32(call, input(call, 1)),
                                          tare_emit_vector(call->emit, "first", 2, (const int32_t[]){ 0, 0 }),
                                          tare_emit_vector(call->emit, "column", 2, (const int32_t[]){ -1, 1 }) };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const struct tare_shape flat = { .rank = 1, .dims = { -1 } };
    const struct tare_edge low = tare_emit_node(call->emit, "Slice", "low", paddings, 3, attrs);
    if (call->wanted[0])
        call->dx[0] =
            slice(call, call->dy[0], tare_emit_reshape(call->emit, "begin", low, &flat), input_shape(call, 0));
}

static void strided_slice(struct tare_gradient_rule_call *call) {
    static const char *const masks[] = { "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                         "shrink_axis_mask" };
    struct tare_emit_attr attrs[8] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                       { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 } };
    const struct tare_edge inputs[] = { input_shape(call, 0), as_int32(call, input(call, 1)),
                                        as_int32(call, input(call, 2)), as_int32(call, input(call, 3)), call->dy[0] };
    for (int i = 0; i < 5; i++)
        attrs[i + 2] = (struct tare_emit_attr){ masks[i], TARE_EMIT_INT, tare_node_int(call->node, masks[i], 0) };
    call->dx[0] = tare_emit_node(call->emit, "StridedSliceGrad", "slice", inputs, 5, attrs);
}

/* ---- reductions ---- */

/* dy with the reduced axes, broadcast to the shape of the input. */
static struct tare_edge spread(struct tare_gradient_rule_call *call) {
    const struct tare_edge x[] = { input(call, 0), as_int32(call, input(call, 1)) };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, true },
                                            { 0 } };
    const struct tare_edge kept = tare_emit_node(call->emit, "Sum", "kept", x, 2, attrs);
    const struct tare_edge inputs[] = {
        tare_gradient_reshape(call->emit, call->dy[0], tare_gradient_shape(call->emit, kept)), input_shape(call, 0)
    };
    return moved(call, "BroadcastTo", inputs, 2, "Tidx", TARE_DT_INT32);
}

static struct tare_edge size_of(struct tare_gradient_rule_call *call, struct tare_edge x) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    return tare_emit_cast(call->emit, "float", tare_emit_node(call->emit, "Size", "size", &x, 1, attrs), TARE_DT_FLOAT);
}

static void sum(struct tare_gradient_rule_call *call) {
    call->dx[0] = spread(call);
}

static void mean(struct tare_gradient_rule_call *call) {
    const struct tare_edge share =
        tare_emit_binary(call->emit, "RealDiv", "share", size_of(call, (struct tare_edge){ call->node, 0 }),
                         size_of(call, input(call, 0)));
    call->dx[0] = tare_emit_binary(call->emit, "Mul", "mean", spread(call), share);
}

/* ---- pooling and resizing ---- */

static void max_pool(struct tare_gradient_rule_call *call) {
    const struct tare_edge inputs[] = { input(call, 0), { call->node, 0 }, call->dy[0] };
    call->dx[0] = tare_gradient_like(call, "MaxPoolGrad", inputs, 3);
}

static void average_pool(struct tare_gradient_rule_call *call) {
    const struct tare_edge inputs[] = { input_shape(call, 0), call->dy[0] };
    call->dx[0] = tare_gradient_like(call, "AvgPoolGrad", inputs, 2);
}

static void resize_bilinear(struct tare_gradient_rule_call *call) {
    const struct tare_edge inputs[] = { call->dy[0], input(call, 0) };
    call->dx[0] = tare_gradient_like(call, "ResizeBilinearGrad", inputs, 2);
}

static void resize_nearest(struct tare_gradient_rule_call *call) {
    const struct tare_edge size =
        slice(call, input_shape(call, 0), tare_emit_vector(call->emit, "height", 1, (const int32_t[]){ 1 }),
              tare_emit_vector(call->emit, "two", 1, (const int32_t[]){ 2 }));
    const struct tare_edge inputs[] = { call->dy[0], size };
    call->dx[0] = tare_gradient_like(call, "ResizeNearestNeighborGrad", inputs, 2);
}

const struct tare_gradient_rule tare_gradient_rules_array[] = {
    { "Reshape", reshape },
    { "Squeeze", reshape },
    { "ExpandDims", reshape },
    { "Transpose", transpose },
    { "SpaceToDepth", space_to_depth },
    { "DepthToSpace", depth_to_space },
    { "ConcatV2", concat },
    { "Split", split },
    { "SplitV", split },
    { "Pad", pad },
    { "PadV2", pad },
    { "StridedSlice", strided_slice },
    { "Sum", sum },
    { "Mean", mean },
    { "MaxPool", max_pool },
    { "AvgPool", average_pool },
    { "ResizeBilinear", resize_bilinear },
    { "ResizeNearestNeighbor", resize_nearest },
    { 0 },
};
