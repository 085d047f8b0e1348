/* Derivatives of matrix products, convolutions and what usually follows them. */
#include "quant/reconstruction/gradient_rule.h"

/* ---- matrix products ---- */

static struct tare_edge product(const struct tare_gradient_rule_call *call, const char *op, struct tare_edge a,
                                bool transpose_a, struct tare_edge b, bool transpose_b) {
    const bool matrix = op[0] == 'M';
    const struct tare_edge inputs[] = { a, b };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { matrix ? "transpose_a" : "adj_x", TARE_EMIT_BOOL, transpose_a },
                                            { matrix ? "transpose_b" : "adj_y", TARE_EMIT_BOOL, transpose_b },
                                            { 0 } };
    return tare_emit_node(call->emit, op, "product", inputs, 2, attrs);
}

/* y = op(a) op(b): dop(a) = dy op(b)', dop(b) = op(a)' dy, each transposed again where the operand was. */
static void differentiate(struct tare_gradient_rule_call *call, const char *op, bool a, bool b) {
    const struct tare_edge x = call->node->inputs[0], w = call->node->inputs[1], dy = call->dy[0];
    if (call->wanted[0]) call->dx[0] = a ? product(call, op, w, b, dy, true) : product(call, op, dy, false, w, !b);
    if (call->wanted[1]) call->dx[1] = b ? product(call, op, dy, true, x, a) : product(call, op, x, !a, dy, false);
}

static void matmul(struct tare_gradient_rule_call *call) {
    differentiate(call, "MatMul", tare_node_bool(call->node, "transpose_a", false),
                  tare_node_bool(call->node, "transpose_b", false));
}

/* Axes of batches may have been broadcast. */
static void batch_matmul(struct tare_gradient_rule_call *call) {
    differentiate(call, "BatchMatMulV2", tare_node_bool(call->node, "adj_x", false),
                  tare_node_bool(call->node, "adj_y", false));
    for (size_t k = 0; k < 2; k++)
        if (call->wanted[k]) call->dx[k] = tare_gradient_unbroadcast(call->emit, call->dx[k], call->node->inputs[k]);
}

static void bias_add(struct tare_gradient_rule_call *call) {
    const struct tare_edge dy[] = { call->dy[0] };
    if (call->wanted[0]) call->dx[0] = call->dy[0];
    if (call->wanted[1]) call->dx[1] = tare_gradient_like(call, "BiasAddGrad", dy, 1);
}

/* ---- convolutions ---- */

static void convolution(struct tare_gradient_rule_call *call, const char *by_input, const char *by_filter) {
    const struct tare_edge x = call->node->inputs[0], w = call->node->inputs[1];
    const struct tare_edge of_input[] = { tare_gradient_shape(call->emit, x), w, call->dy[0] };
    const struct tare_edge of_filter[] = { x, tare_gradient_shape(call->emit, w), call->dy[0] };
    if (call->wanted[0]) call->dx[0] = tare_gradient_like(call, by_input, of_input, 3);
    if (call->wanted[1]) call->dx[1] = tare_gradient_like(call, by_filter, of_filter, 3);
}

static void conv2d(struct tare_gradient_rule_call *call) {
    convolution(call, "Conv2DBackpropInput", "Conv2DBackpropFilter");
}

static void depthwise(struct tare_gradient_rule_call *call) {
    convolution(call, "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter");
}

/* A transposed convolution: (sizes, filter, x). */
static void transposed_conv2d(struct tare_gradient_rule_call *call) {
    const struct tare_edge w = call->node->inputs[1], x = call->node->inputs[2];
    const struct tare_edge of_input[] = { call->dy[0], w };
    const struct tare_edge of_filter[] = { call->dy[0], tare_gradient_shape(call->emit, w), x };
    if (call->wanted[2]) call->dx[2] = tare_gradient_like(call, "Conv2D", of_input, 2);
    if (call->wanted[1]) call->dx[1] = tare_gradient_like(call, "Conv2DBackpropFilter", of_filter, 3);
}

/* Inference with constant statistics: y = (x - mean) scale / sqrt(variance + epsilon) + offset. */
static void batch_norm(struct tare_gradient_rule_call *call) {
    const struct tare_edge scale = call->node->inputs[1], variance = call->node->inputs[4];
    struct tare_edge factor;
    if (tare_node_bool(call->node, "is_training", true) ||
        tare_node_string(call->node, "data_format", "NHWC")[1] == 'C')
        return;
    factor = tare_emit_binary(call->emit, "AddV2", "variance", variance,
                              tare_emit_f32(call->emit, "epsilon", tare_node_float(call->node, "epsilon", 1e-4F)));
    factor =
        tare_emit_binary(call->emit, "Mul", "factor", scale, tare_emit_unary(call->emit, "Rsqrt", "inverse", factor));
    call->dx[0] = tare_emit_binary(call->emit, "Mul", "input", call->dy[0], factor);
}

const struct tare_gradient_rule tare_gradient_rules_product[] = {
    { "MatMul", matmul },
    { "BatchMatMul", batch_matmul },
    { "BatchMatMulV2", batch_matmul },
    { "BiasAdd", bias_add },
    { "Conv2D", conv2d },
    { "DepthwiseConv2dNative", depthwise },
    { "Conv2DBackpropInput", transposed_conv2d },
    { "FusedBatchNorm", batch_norm },
    { "FusedBatchNormV2", batch_norm },
    { "FusedBatchNormV3", batch_norm },
    { 0 },
};
