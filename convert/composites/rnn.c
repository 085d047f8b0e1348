/* Keras' LSTM and GRU: the inputs of all time steps are multiplied with the kernel in one product, and the steps are
 * unrolled, or run in a loop if there are many or their number is unknown (convert/composites/rnn_loop.c).
 * Products are the ops that quantization knows, every op compiles for a TPU, and each number is computed by the same
 * operations in the same order as Keras has it.
 *
 * The smaller form is chosen. An unrolled LSTM step is 13 nodes, about 750 bytes of the file, a loop about 3,000 bytes
 * whatever its steps, so up to three steps are unrolled. Time is no reason to unroll more: the estimate for TPUs
 * (tpu/cost/fused.h) has the same products in both forms and no more bytes for a step of the loop. */
#include "convert/composites/build.h"

#include <string.h>

enum { MOST_STEPS = 3 }; /* that are unrolled */

/* The arguments, in Keras' order: inputs, states, kernel, recurrent kernel, bias. */
enum { INPUTS, INIT_H };
enum { LSTM_KERNEL = 3, LSTM_ARGS = 6 };
enum { GRU_KERNEL = 2, GRU_ARGS = 5 };

/* ---- checks ---- */

/* The outputs are one a time step, or the last one alone. */
static tare_status check_steps(struct tare_composing *c) {
    char text[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape inputs, outputs = tare_model_shape(c->shapes, c->graph->returns[1].edge);
    int axis = tare_rnn_time_axis(c);
    if (c->reason) return TARE_OK;
    inputs = tare_composing_shape(c, INPUTS);
    if (inputs.dims[axis] == 0 || inputs.dims[2] < 1)
        return tare_composing_decline(c, "the inputs have shape %s (expected time steps, and known features)",
                                      tare_shape_text(text, &inputs));
    if (outputs.rank != 3 || (outputs.dims[axis] >= 0 && inputs.dims[axis] >= 0 && outputs.dims[axis] != 1 &&
                              outputs.dims[axis] != inputs.dims[axis]))
        return tare_composing_decline(c, "the outputs have shape %s for %lld time steps",
                                      tare_shape_text(text, &outputs), (long long)inputs.dims[axis]);
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

/* The last result is a constant that identifies the implementation; it is kept. */
static tare_status check_runtime(struct tare_composing *c, size_t result) {
    if (c->reason || tare_edge_constant(c->graph->returns[result].edge)) return TARE_OK;
    return tare_composing_decline(c, "result '%s' is not the constant that identifies the implementation",
                                  c->graph->returns[result].name);
}

static tare_status check(struct tare_composing *c, size_t n_args, size_t n_returns, size_t kernel, int gates,
                         int bias_rank) {
    if (c->graph->n_args > n_args)
        return tare_composing_decline(c,
                                      "it has %zu arguments (%zu without mask or sequence lengths, which have no fused "
                                      "form)",
                                      c->graph->n_args, n_args);
    TARE_TRY(tare_composing_want(c, n_args, n_returns));
    TARE_TRY(tare_composing_expect_arg(c, INPUTS, TARE_DT_FLOAT, 3));
    TARE_TRY(tare_composing_expect_arg(c, INIT_H, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, kernel, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, kernel + 1, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, kernel + 2, TARE_DT_FLOAT, bias_rank));
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

/* *steps has an output [batch, gates * units] a step. */
static tare_status project_steps(struct tare_node **steps, struct tare_composing *c, size_t kernel) {
    struct tare_shape x = tare_composing_shape(c, INPUTS), k = tare_composing_shape(c, kernel);
    const int axis = tare_rnn_time_axis(c);
    int32_t full[3] = { -1, -1, (int32_t)k.dims[1] };
    struct tare_edge shape, projected;
    full[axis] = (int32_t)x.dims[axis];
    TARE_TRY(tare_composing_ints(&shape, c, "projected/shape", 3, full));
    TARE_TRY(tare_rnn_project(&projected, c, tare_composing_arg(c, INPUTS), kernel, shape));
    return unpack(steps, c, projected, x.dims[axis], axis);
}

/* The outputs of all steps in the order in which they were computed; of the last one, where the layer returns no more.
 */
static tare_status pack(struct tare_edge *out, struct tare_composing *c, const struct tare_edge *outputs,
                        int64_t count) {
    struct tare_node *node;
    if (tare_rnn_keeps_last(c)) {
        outputs += count - 1;
        count = 1;
    }
    TARE_TRY(tare_composing_node(&node, c, "Pack", "outputs", (size_t)count, outputs));
    TARE_TRY(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(node, "N", count));
    TARE_TRY(tare_node_set_int(node, "axis", tare_rnn_time_axis(c)));
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

/* Unrolls the steps; *outputs are their outputs, states[] the last states. */
static tare_status build_steps(struct tare_edge *outputs, struct tare_edge *states, struct tare_composing *c,
                               const struct tare_rnn *rnn) {
    const int64_t count = tare_composing_shape(c, INPUTS).dims[tare_rnn_time_axis(c)];
    struct tare_edge weights[TARE_RNN_WEIGHTS] = { tare_composing_arg(c, rnn->kernel + 1),
                                                   tare_composing_arg(c, rnn->kernel + 2) };
    struct tare_edge made[MOST_STEPS];
    struct tare_node *steps;
    TARE_TRY(project_steps(&steps, c, rnn->kernel));
    if (rnn->prepare) TARE_TRY(rnn->prepare(c, weights));
    for (int64_t t = 0; t < count; t++) {
        struct tare_edge x = part(steps, (int)(tare_rnn_goes_backwards(c) ? count - 1 - t : t));
        TARE_TRY(rnn->step(c, weights, x, states));
        made[t] = states[0];
    }
    return pack(outputs, c, made, count);
}

/* Results: last output, outputs, the states, and the constant that identifies the implementation. */
static tare_status build(struct tare_composing *c, const struct tare_rnn *rnn) {
    const int64_t count = tare_composing_shape(c, INPUTS).dims[tare_rnn_time_axis(c)];
    struct tare_edge states[TARE_RNN_STATES];
    for (size_t i = 0; i < rnn->n_states; i++)
        states[i] = tare_composing_arg(c, INIT_H + i);
    if (count > 0 && count <= MOST_STEPS)
        TARE_TRY(build_steps(&c->results[1], states, c, rnn));
    else
        TARE_TRY(tare_rnn_build_loop(&c->results[1], states, c, rnn));
    c->results[0] = states[0];
    for (size_t i = 0; i < rnn->n_states; i++)
        c->results[2 + i] = states[i];
    return runtime(&c->results[2 + rnn->n_states], c, 2 + rnn->n_states);
}

/* ---- LSTM ---- */

/* weights: R, b; states: h, c. z = x K + h R + b; i, f, g, o = z; c = σ(f) c + σ(i) tanh(g); h = σ(o) tanh(c). */
static tare_status lstm_step(struct tare_composing *c, const struct tare_edge *weights, struct tare_edge x,
                             struct tare_edge *states) {
    struct tare_edge z, keep, take, forget, input, output;
    struct tare_node *gates;
    TARE_TRY(tare_composing_binary(&z, c, "MatMul", states[0], weights[0]));
    TARE_TRY(tare_composing_binary(&z, c, "AddV2", x, z));
    TARE_TRY(tare_composing_binary(&z, c, "BiasAdd", z, weights[1]));
    TARE_TRY(split(&gates, c, z, 4));
    TARE_TRY(unary(&input, c, "Sigmoid", part(gates, 0)));
    TARE_TRY(unary(&forget, c, "Sigmoid", part(gates, 1)));
    TARE_TRY(tare_composing_binary(&keep, c, "Mul", forget, states[1]));
    TARE_TRY(unary(&take, c, "Tanh", part(gates, 2)));
    TARE_TRY(tare_composing_binary(&take, c, "Mul", input, take));
    TARE_TRY(tare_composing_binary(&states[1], c, "AddV2", keep, take));
    TARE_TRY(unary(&output, c, "Sigmoid", part(gates, 3)));
    TARE_TRY(unary(&take, c, "Tanh", states[1]));
    return tare_composing_binary(&states[0], c, "Mul", output, take);
}

tare_status tare_composite_build_lstm(struct tare_composing *c) {
    static const struct tare_rnn lstm = { .kernel = LSTM_KERNEL, .n_states = 2, .step = lstm_step };
    return build(c, &lstm);
}

/* ---- GRU ---- */

/* The bias has a row for the inputs and one for the recurrence: weights become R, both rows, and one. */
static tare_status prepare_gru(struct tare_composing *c, struct tare_edge *weights) {
    struct tare_node *biases;
    TARE_TRY(unpack(&biases, c, weights[1], 2, 0));
    weights[1] = part(biases, 0);
    weights[2] = part(biases, 1);
    return tare_composing_float(&weights[3], c, "one", 1);
}

/* Reset after the product: z, r = σ(x + h R); candidate = tanh(x + r (h R)); h = z h + (1 - z) candidate. */
static tare_status gru_step(struct tare_composing *c, const struct tare_edge *weights, struct tare_edge x,
                            struct tare_edge *states) {
    struct tare_edge inner, update, reset, candidate, keep, take;
    struct tare_node *from_x, *from_h;
    TARE_TRY(tare_composing_binary(&x, c, "BiasAdd", x, weights[1]));
    TARE_TRY(split(&from_x, c, x, 3));
    TARE_TRY(tare_composing_binary(&inner, c, "MatMul", states[0], weights[0]));
    TARE_TRY(tare_composing_binary(&inner, c, "BiasAdd", inner, weights[2]));
    TARE_TRY(split(&from_h, c, inner, 3));
    TARE_TRY(tare_composing_binary(&update, c, "AddV2", part(from_x, 0), part(from_h, 0)));
    TARE_TRY(unary(&update, c, "Sigmoid", update));
    TARE_TRY(tare_composing_binary(&reset, c, "AddV2", part(from_x, 1), part(from_h, 1)));
    TARE_TRY(unary(&reset, c, "Sigmoid", reset));
    TARE_TRY(tare_composing_binary(&candidate, c, "Mul", reset, part(from_h, 2)));
    TARE_TRY(tare_composing_binary(&candidate, c, "AddV2", part(from_x, 2), candidate));
    TARE_TRY(unary(&candidate, c, "Tanh", candidate));
    TARE_TRY(tare_composing_binary(&keep, c, "Mul", update, states[0]));
    TARE_TRY(tare_composing_binary(&take, c, "Sub", weights[3], update));
    TARE_TRY(tare_composing_binary(&take, c, "Mul", take, candidate));
    return tare_composing_binary(&states[0], c, "AddV2", keep, take);
}

tare_status tare_composite_build_gru(struct tare_composing *c) {
    static const struct tare_rnn gru = {
        .kernel = GRU_KERNEL, .n_states = 1, .prepare = prepare_gru, .step = gru_step
    };
    return build(c, &gru);
}
