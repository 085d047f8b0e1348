/* Derivatives of element-wise ops and softmax. Operands may be broadcast. */
#include "quant/reconstruction/gradient_rule.h"

#include <string.h>

static struct tare_edge output(const struct tare_gradient_rule_call *call) {
    return (struct tare_edge){ call->node, 0 };
}

static struct tare_edge mul(const struct tare_gradient_rule_call *call, struct tare_edge a, struct tare_edge b) {
    return tare_emit_binary(call->emit, "Mul", "mul", a, b);
}

static struct tare_edge neg(const struct tare_gradient_rule_call *call, struct tare_edge a) {
    return tare_emit_unary(call->emit, "Neg", "neg", a);
}

/* The derivative with respect to input k, which may have been broadcast. */
static void set(struct tare_gradient_rule_call *call, size_t k, struct tare_edge dx) {
    call->dx[k] = tare_gradient_unbroadcast(call->emit, dx, call->node->inputs[k]);
}

/* ---- one operand ---- */

static void same(struct tare_gradient_rule_call *call) {
    call->dx[0] = call->dy[0];
}

/* Ops with a derivative op of their own: OpGrad(dy, x), (dy, y) or (y, dy). */
static void of_input(struct tare_gradient_rule_call *call, const char *op) {
    const struct tare_edge inputs[] = { call->dy[0], call->node->inputs[0] };
    call->dx[0] = tare_gradient_like(call, op, inputs, 2);
}
static void of_result(struct tare_gradient_rule_call *call, const char *op) {
    const struct tare_edge inputs[] = { call->dy[0], output(call) };
    call->dx[0] = tare_gradient_like(call, op, inputs, 2);
}
static void result_first(struct tare_gradient_rule_call *call, const char *op) {
    const struct tare_edge inputs[] = { output(call), call->dy[0] };
    call->dx[0] = tare_gradient_like(call, op, inputs, 2);
}

static void relu(struct tare_gradient_rule_call *call) {
    of_input(call, "ReluGrad");
}
static void relu6(struct tare_gradient_rule_call *call) {
    of_input(call, "Relu6Grad");
}
static void leaky_relu(struct tare_gradient_rule_call *call) {
    of_input(call, "LeakyReluGrad");
}
static void softplus(struct tare_gradient_rule_call *call) {
    of_input(call, "SoftplusGrad");
}
static void softsign(struct tare_gradient_rule_call *call) {
    of_input(call, "SoftsignGrad");
}
static void elu(struct tare_gradient_rule_call *call) {
    of_result(call, "EluGrad");
}
static void selu(struct tare_gradient_rule_call *call) {
    of_result(call, "SeluGrad");
}
static void sigmoid(struct tare_gradient_rule_call *call) {
    result_first(call, "SigmoidGrad");
}
static void tanh_of(struct tare_gradient_rule_call *call) {
    result_first(call, "TanhGrad");
}
static void root(struct tare_gradient_rule_call *call) {
    result_first(call, "SqrtGrad");
}
static void inverse_root(struct tare_gradient_rule_call *call) {
    result_first(call, "RsqrtGrad");
}

static void exponential(struct tare_gradient_rule_call *call) {
    call->dx[0] = mul(call, call->dy[0], output(call));
}

static void logarithm(struct tare_gradient_rule_call *call) {
    call->dx[0] = tare_emit_binary(call->emit, "RealDiv", "div", call->dy[0], call->node->inputs[0]);
}

static void negative(struct tare_gradient_rule_call *call) {
    call->dx[0] = neg(call, call->dy[0]);
}

static void square(struct tare_gradient_rule_call *call) {
    const struct tare_edge two = tare_emit_f32(call->emit, "two", 2);
    call->dx[0] = mul(call, call->dy[0], mul(call, two, call->node->inputs[0]));
}

/* 2 / sqrt(pi) exp(-x²) */
static void error_function(struct tare_gradient_rule_call *call) {
    const struct tare_edge x = call->node->inputs[0];
    const struct tare_edge bell = tare_emit_unary(call->emit, "Exp", "exp", neg(call, mul(call, x, x)));
    const struct tare_edge factor = tare_emit_f32(call->emit, "factor", 1.1283791670955126F);
    call->dx[0] = mul(call, call->dy[0], mul(call, factor, bell));
}

/* y (dy - sum(dy y)) over the last axis. */
static void softmax(struct tare_gradient_rule_call *call) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, true },
                                            { 0 } };
    const struct tare_edge inputs[] = { mul(call, call->dy[0], output(call)),
                                        tare_emit_vector(call->emit, "axis", 1, (const int32_t[]){ -1 }) };
    const struct tare_edge sum = tare_emit_node(call->emit, "Sum", "sum", inputs, 2, attrs);
    call->dx[0] = mul(call, output(call), tare_emit_binary(call->emit, "Sub", "sub", call->dy[0], sum));
}

/* ---- two operands ---- */

static void add(struct tare_gradient_rule_call *call) {
    for (size_t k = 0; k < 2; k++)
        if (call->wanted[k]) set(call, k, call->dy[0]);
}

static void subtract(struct tare_gradient_rule_call *call) {
    if (call->wanted[0]) set(call, 0, call->dy[0]);
    if (call->wanted[1]) set(call, 1, neg(call, call->dy[0]));
}

static void multiply(struct tare_gradient_rule_call *call) {
    for (size_t k = 0; k < 2; k++)
        if (call->wanted[k]) set(call, k, mul(call, call->dy[0], call->node->inputs[1 - k]));
}

static void divide(struct tare_gradient_rule_call *call) {
    const struct tare_edge dx = tare_emit_binary(call->emit, "RealDiv", "div", call->dy[0], call->node->inputs[1]);
    if (call->wanted[0]) set(call, 0, dx);
    if (call->wanted[1]) set(call, 1, neg(call, mul(call, dx, output(call))));
}

static void squared_difference(struct tare_gradient_rule_call *call) {
    const struct tare_edge two = tare_emit_f32(call->emit, "two", 2);
    const struct tare_edge difference =
        tare_emit_binary(call->emit, "Sub", "sub", call->node->inputs[0], call->node->inputs[1]);
    const struct tare_edge dx = mul(call, call->dy[0], mul(call, two, difference));
    if (call->wanted[0]) set(call, 0, dx);
    if (call->wanted[1]) set(call, 1, neg(call, dx));
}

/* The operand that the result was taken from; the first one if they are equal. */
static void choose(struct tare_gradient_rule_call *call, const char *comparison) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT }, { 0 } };
    const struct tare_edge first = tare_emit_node(call->emit, comparison, "first", call->node->inputs, 2, attrs);
    const struct tare_edge zero = tare_emit_unary(call->emit, "ZerosLike", "zero", call->dy[0]);
    for (size_t k = 0; k < 2; k++) {
        const struct tare_edge inputs[] = { first, k ? zero : call->dy[0], k ? call->dy[0] : zero };
        if (call->wanted[k]) set(call, k, tare_emit_node(call->emit, "SelectV2", "select", inputs, 3, attrs));
    }
}

static void maximum(struct tare_gradient_rule_call *call) {
    choose(call, "GreaterEqual");
}
static void minimum(struct tare_gradient_rule_call *call) {
    choose(call, "LessEqual");
}

const struct tare_gradient_rule tare_gradient_rules_elementwise[] = {
    { "Identity", same },
    { "Relu", relu },
    { "Relu6", relu6 },
    { "LeakyRelu", leaky_relu },
    { "Softplus", softplus },
    { "Softsign", softsign },
    { "Elu", elu },
    { "Selu", selu },
    { "Sigmoid", sigmoid },
    { "Tanh", tanh_of },
    { "Sqrt", root },
    { "Rsqrt", inverse_root },
    { "Exp", exponential },
    { "Log", logarithm },
    { "Neg", negative },
    { "Square", square },
    { "Erf", error_function },
    { "Softmax", softmax },
    { "Add", add },
    { "AddV2", add },
    { "Sub", subtract },
    { "Mul", multiply },
    { "RealDiv", divide },
    { "SquaredDifference", squared_difference },
    { "Maximum", maximum },
    { "Minimum", minimum },
    { 0 },
};
