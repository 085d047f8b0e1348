/* Keras' LSTM and GRU: the product of all time steps' inputs with the kernel becomes one, and the steps stand one behind
 * the other instead of in a loop over TensorLists. Products are the ops that quantization knows, every op compiles for a
 * TPU, and each number is computed by the same operations in the same order as Keras has it. */
#include "convert/composites_internal.h"

#include <string.h>

enum { MOST_STEPS = 128 }; /* a body of so many steps stays readable and quick to compile */

/* The arguments, in Keras' order. */
enum { INPUTS, INIT_H };
enum { LSTM_INIT_C = 2, LSTM_KERNEL, LSTM_RECURRENT, LSTM_BIAS, LSTM_ARGS };
enum { GRU_KERNEL = 2, GRU_RECURRENT, GRU_BIAS, GRU_ARGS };

/* ---- checks ---- */

static bool flag(const struct tare_composing *c, const char *name) {
    const struct tare_attr *attr = tare_graph_find_attr(c->graph, name);
    return attr && attr->kind == TARE_ATTR_BOOL && attr->count && attr->items[0].b;
}

static int time_axis(const struct tare_composing *c) {
    return flag(c, "time_major") ? 0 : 1;
}

static struct tare_shape result_shape(const struct tare_composing *c, size_t i) {
    return tare_model_shape(c->shapes, c->graph->returns[i].edge);
}

/* The inputs' time steps and the outputs' must be known and as many. */
static tare_status check_steps(struct tare_composing *c) {
    char text[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape inputs = tare_composing_shape(c, INPUTS), outputs = result_shape(c, 1);
    int axis = time_axis(c);
    if (c->reason) return TARE_OK;
    if (inputs.dims[axis] < 1 || inputs.dims[2] < 1)
        return tare_composing_decline(c, "the inputs have shape %s (wanted known time steps and features)",
                                      tare_shape_text(text, &inputs));
    if (inputs.dims[axis] > MOST_STEPS)
        return tare_composing_decline(c, "%lld time steps (at most %d are laid out one behind the other)",
                                      (long long)inputs.dims[axis], MOST_STEPS);
    if (outputs.rank != 3 || (outputs.dims[axis] >= 0 && outputs.dims[axis] != 1 && outputs.dims[axis] != inputs.dims[axis]))
        return tare_composing_decline(c, "the outputs have shape %s for %lld time steps", tare_shape_text(text, &outputs),
                                      (long long)inputs.dims[axis]);
    return TARE_OK;
}

/* Weights have to come as gates of one size: [features, gates * units]. */
static tare_status check_weights(struct tare_composing *c, size_t kernel, size_t recurrent, int gates) {
    struct tare_shape k = tare_composing_shape(c, kernel), r = tare_composing_shape(c, recurrent);
    if (c->reason) return TARE_OK;
    if (r.dims[0] < 1 || r.dims[1] != gates * r.dims[0] || k.dims[1] != r.dims[1])
        return tare_composing_decline(c, "kernel and recurrent kernel are not %d gates of one size", gates);
    return TARE_OK;
}

/* The last result tells which implementation ran: a constant, which is kept. */
static tare_status check_runtime(struct tare_composing *c, size_t result) {
    if (c->reason || tare_edge_constant(c->graph->returns[result].edge)) return TARE_OK;
    return tare_composing_decline(c, "result '%s' is not the constant that tells the implementation",
                                  c->graph->returns[result].name);
}

static tare_status check(struct tare_composing *c, size_t n_args, size_t n_returns, size_t kernel, int gates,
                         int bias_rank) {
    if (c->graph->n_args > n_args)
        return tare_composing_decline(c, "it has %zu arguments (%zu without mask or sequence lengths, which have no fused "
                                         "form)",
                                      c->graph->n_args, n_args);
    TARE_TRY(tare_composing_want(c, n_args, n_returns));
    TARE_TRY(tare_composing_want_arg(c, INPUTS, TARE_DT_FLOAT, 3));
    TARE_TRY(tare_composing_want_arg(c, INIT_H, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_want_arg(c, kernel, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_want_arg(c, kernel + 1, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_want_arg(c, kernel + 2, TARE_DT_FLOAT, bias_rank));
    TARE_TRY(check_steps(c));
    TARE_TRY(check_weights(c, kernel, kernel + 1, gates));
    return check_runtime(c, n_returns - 1);
}

tare_status tare_composite_check_lstm(struct tare_composing *c) {
    return check(c, LSTM_ARGS, 5, LSTM_KERNEL, 4, 1);
}

tare_status tare_composite_check_gru(struct tare_composing *c) {
    return check(c, GRU_ARGS, 4, GRU_KERNEL, 3, 2);
}

/* ---- building ---- */

static tare_status binary(struct tare_edge *out, struct tare_composing *c, const char *op, struct tare_edge a,
                          struct tare_edge b) {
    return tare_composing_op(out, c, op, op, 2, (struct tare_edge[]){ a, b });
}

static tare_status unary(struct tare_edge *out, struct tare_composing *c, const char *op, struct tare_edge a) {
    return tare_composing_op(out, c, op, op, 1, &a);
}

/* value, in `count` parts along axis 1. */
static tare_status split(struct tare_node **out, struct tare_composing *c, struct tare_edge value, int count) {
    struct tare_edge axis;
    TARE_TRY(tare_composing_int(&axis, c, "split_dim", 1));
    TARE_TRY(tare_composing_node(out, c, "Split", "gates", 2, (struct tare_edge[]){ axis, value }));
    TARE_TRY(tare_node_set_type(*out, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(*out, "num_split", count));
    return tare_node_resolve(*out);
}

static tare_status unpack(struct tare_node **out, struct tare_composing *c, struct tare_edge value, int64_t count,
                          int axis) {
    TARE_TRY(tare_composing_node(out, c, "Unpack", "steps", 1, &value));
    TARE_TRY(tare_node_set_int(*out, "num", count));
    TARE_TRY(tare_node_set_int(*out, "axis", axis));
    return tare_node_resolve(*out);
}

/* One product for all steps: *steps has an output [batch, gates * units] a step. */
static tare_status project(struct tare_node **steps, struct tare_composing *c, size_t kernel) {
    struct tare_shape x = tare_composing_shape(c, INPUTS), k = tare_composing_shape(c, kernel);
    int axis = time_axis(c);
    int32_t flat[2] = { -1, (int32_t)x.dims[2] }, full[3] = { -1, -1, (int32_t)k.dims[1] };
    struct tare_edge shape, rows;
    full[axis] = (int32_t)x.dims[axis];
    TARE_TRY(tare_composing_ints(&shape, c, "rows/shape", 2, flat));
    TARE_TRY(tare_composing_op(&rows, c, "Reshape", "rows", 2,
                               (struct tare_edge[]){ tare_composing_arg(c, INPUTS), shape }));
    TARE_TRY(binary(&rows, c, "MatMul", rows, tare_composing_arg(c, kernel)));
    TARE_TRY(tare_composing_ints(&shape, c, "projected/shape", 3, full));
    TARE_TRY(tare_composing_op(&rows, c, "Reshape", "projected", 2, (struct tare_edge[]){ rows, shape }));
    return unpack(steps, c, rows, x.dims[axis], axis);
}

/* The outputs of all steps in the order in which they were computed; of the last one, where the layer returns no more. */
static tare_status pack(struct tare_edge *out, struct tare_composing *c, const struct tare_edge *outputs, int64_t count) {
    struct tare_node *node;
    if (result_shape(c, 1).dims[time_axis(c)] == 1) {
        outputs += count - 1;
        count = 1;
    }
    TARE_TRY(tare_composing_node(&node, c, "Pack", "outputs", (size_t)count, outputs));
    TARE_TRY(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(node, "N", count));
    TARE_TRY(tare_node_set_int(node, "axis", time_axis(c)));
    *out = (struct tare_edge){ node, 0 };
    return tare_node_resolve(node);
}

static tare_status runtime(struct tare_edge *out, struct tare_composing *c, size_t result) {
    const struct tare_tensor *value = tare_edge_constant(c->graph->returns[result].edge);
    *out = (struct tare_edge){ tare_graph_add_const(c->graph, "runtime", value), 0 };
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

static struct tare_edge part(struct tare_node *node, int i) {
    return (struct tare_edge){ node, i };
}

/* ---- LSTM ---- */

/* z = x K + h R + b; i, f, g, o = z; state = σ(f) state + σ(i) tanh(g); h = σ(o) tanh(state). */
static tare_status lstm_step(struct tare_composing *c, struct tare_edge x, struct tare_edge *h, struct tare_edge *state) {
    struct tare_edge z, keep, take, forget, input, output;
    struct tare_node *gates;
    TARE_TRY(binary(&z, c, "MatMul", *h, tare_composing_arg(c, LSTM_RECURRENT)));
    TARE_TRY(binary(&z, c, "AddV2", x, z));
    TARE_TRY(binary(&z, c, "BiasAdd", z, tare_composing_arg(c, LSTM_BIAS)));
    TARE_TRY(split(&gates, c, z, 4));
    TARE_TRY(unary(&input, c, "Sigmoid", part(gates, 0)));
    TARE_TRY(unary(&forget, c, "Sigmoid", part(gates, 1)));
    TARE_TRY(binary(&keep, c, "Mul", forget, *state));
    TARE_TRY(unary(&take, c, "Tanh", part(gates, 2)));
    TARE_TRY(binary(&take, c, "Mul", input, take));
    TARE_TRY(binary(state, c, "AddV2", keep, take));
    TARE_TRY(unary(&output, c, "Sigmoid", part(gates, 3)));
    TARE_TRY(unary(&take, c, "Tanh", *state));
    return binary(h, c, "Mul", output, take);
}

tare_status tare_composite_build_lstm(struct tare_composing *c) {
    struct tare_edge h = tare_composing_arg(c, INIT_H), state = tare_composing_arg(c, LSTM_INIT_C), outputs[MOST_STEPS];
    int64_t count = tare_composing_shape(c, INPUTS).dims[time_axis(c)];
    bool backwards = flag(c, "go_backwards");
    struct tare_node *steps;
    TARE_TRY(project(&steps, c, LSTM_KERNEL));
    for (int64_t t = 0; t < count; t++) {
        TARE_TRY(lstm_step(c, part(steps, (int)(backwards ? count - 1 - t : t)), &h, &state));
        outputs[t] = h;
    }
    TARE_TRY(pack(&c->results[1], c, outputs, count));
    c->results[0] = c->results[2] = h;
    c->results[3] = state;
    return runtime(&c->results[4], c, 4);
}

/* ---- GRU ---- */

struct gru {
    struct tare_edge input_bias, recurrent_bias, one;
};

/* Reset after the product: z, r = σ(x + h R); candidate = tanh(x + r (h R)); h = z h + (1 - z) candidate. */
static tare_status gru_step(struct tare_composing *c, const struct gru *gru, struct tare_edge x, struct tare_edge *h) {
    struct tare_edge inner, update, reset, candidate, keep, take;
    struct tare_node *from_x, *from_h;
    TARE_TRY(binary(&x, c, "BiasAdd", x, gru->input_bias));
    TARE_TRY(split(&from_x, c, x, 3));
    TARE_TRY(binary(&inner, c, "MatMul", *h, tare_composing_arg(c, GRU_RECURRENT)));
    TARE_TRY(binary(&inner, c, "BiasAdd", inner, gru->recurrent_bias));
    TARE_TRY(split(&from_h, c, inner, 3));
    TARE_TRY(binary(&update, c, "AddV2", part(from_x, 0), part(from_h, 0)));
    TARE_TRY(unary(&update, c, "Sigmoid", update));
    TARE_TRY(binary(&reset, c, "AddV2", part(from_x, 1), part(from_h, 1)));
    TARE_TRY(unary(&reset, c, "Sigmoid", reset));
    TARE_TRY(binary(&candidate, c, "Mul", reset, part(from_h, 2)));
    TARE_TRY(binary(&candidate, c, "AddV2", part(from_x, 2), candidate));
    TARE_TRY(unary(&candidate, c, "Tanh", candidate));
    TARE_TRY(binary(&keep, c, "Mul", update, *h));
    TARE_TRY(binary(&take, c, "Sub", gru->one, update));
    TARE_TRY(binary(&take, c, "Mul", take, candidate));
    return binary(h, c, "AddV2", keep, take);
}

tare_status tare_composite_build_gru(struct tare_composing *c) {
    struct tare_edge h = tare_composing_arg(c, INIT_H), outputs[MOST_STEPS];
    int64_t count = tare_composing_shape(c, INPUTS).dims[time_axis(c)];
    bool backwards = flag(c, "go_backwards");
    struct tare_node *steps, *biases;
    struct gru gru;
    TARE_TRY(project(&steps, c, GRU_KERNEL));
    TARE_TRY(unpack(&biases, c, tare_composing_arg(c, GRU_BIAS), 2, 0));
    gru.input_bias = part(biases, 0);
    gru.recurrent_bias = part(biases, 1);
    TARE_TRY(tare_composing_float(&gru.one, c, "one", 1));
    for (int64_t t = 0; t < count; t++) {
        TARE_TRY(gru_step(c, &gru, part(steps, (int)(backwards ? count - 1 - t : t)), &h));
        outputs[t] = h;
    }
    TARE_TRY(pack(&c->results[1], c, outputs, count));
    c->results[0] = c->results[2] = h;
    return runtime(&c->results[3], c, 3);
}
