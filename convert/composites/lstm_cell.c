/* Lingvo's LSTM cell, "LSTMCellSimple": f(inputs, weight, bias, projection) -> output.
 *
 * weight [features + outputs, gates * cells] multiplies the inputs followed by the previous output; its column blocks
 * are the gates cell (g), input (i), forget (f) and output (o). projection [cells, outputs] multiplies the result; one
 * of another rank stands for none. The function has no argument for a state, so the cell begins with a state of zeros:
 * the weight's rows for the previous output and the forget gate's term have no effect, and c = σ(i) tanh(g); y = (σ(o)
 * tanh(c)) projection. With the option CoupleInputForgetGates there is no block i, and i is 1 - σ(f). The interface,
 * the order of the gates and the zero states are those of TensorFlow Lite's conversion
 * (tensorflow/compiler/mlir/lite/utils/lstm_utils.cc), which limits c to ±10: |c| < 1 here. */
#include "convert/composites/build.h"

#include <string.h>

enum { INPUTS, WEIGHT, BIAS, PROJECTION, ARGS };

static bool is_coupled(const struct tare_composing *c) {
    return strchr(c->name, ',') != NULL; /* "LSTMCellSimple,CoupleInputForgetGates" */
}

static int64_t count_gates(const struct tare_composing *c) {
    return is_coupled(c) ? 3 : 4;
}

static bool has_projection(const struct tare_composing *c) {
    return tare_composing_shape(c, PROJECTION).rank == 2;
}

/* ---- checks ---- */

static tare_status check_sizes(struct tare_composing *c) {
    const struct tare_shape x = tare_composing_shape(c, INPUTS), w = tare_composing_shape(c, WEIGHT);
    const struct tare_shape b = tare_composing_shape(c, BIAS), p = tare_composing_shape(c, PROJECTION);
    const int64_t gates = count_gates(c);
    int64_t outputs;
    if (c->reason) return TARE_OK;
    if (x.dims[1] < 1 || w.dims[0] < 1 || w.dims[1] < gates || w.dims[1] % gates || b.dims[0] != w.dims[1])
        return tare_composing_decline(c, "weight and bias are not %lld gates of one size, or features are unknown",
                                      (long long)gates);
    outputs = has_projection(c) ? p.dims[1] : w.dims[1] / gates;
    if (has_projection(c) && (p.dims[0] != w.dims[1] / gates || outputs < 1))
        return tare_composing_decline(c, "the projection has %lld rows for %lld cells", (long long)p.dims[0],
                                      (long long)(w.dims[1] / gates));
    if (w.dims[0] != x.dims[1] + outputs)
        return tare_composing_decline(c, "the weight has %lld rows for %lld features and %lld outputs",
                                      (long long)w.dims[0], (long long)x.dims[1], (long long)outputs);
    return TARE_OK;
}

tare_status tare_composite_check_lstm_cell(struct tare_composing *c) {
    TARE_TRY(tare_composing_verify(c, ARGS, 1));
    TARE_TRY(tare_composing_expect_arg(c, INPUTS, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, WEIGHT, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, BIAS, TARE_DT_FLOAT, 1));
    TARE_TRY(tare_composing_expect_arg(c, PROJECTION, TARE_DT_FLOAT, -1));
    return c->reason ? TARE_OK : check_sizes(c);
}

/* ---- building ---- */

static tare_status gate(struct tare_edge *out, struct tare_composing *c, const char *op, const struct tare_node *gates,
                        int64_t block) {
    const struct tare_edge part = { (struct tare_node *)(uintptr_t)gates, (int)block };
    return tare_composing_op(out, c, op, op, 1, &part);
}

/* The gates' sums for a previous output of zeros: x times the first rows of the weight, and the bias. */
static tare_status build_gates(struct tare_node **out, struct tare_composing *c) {
    const int32_t zeros[] = { 0, 0 };
    const int32_t size[] = { (int32_t)tare_composing_shape(c, INPUTS).dims[1], -1 };
    struct tare_edge slice[3] = { tare_composing_arg(c, WEIGHT) }, axis, z;
    TARE_TRY(tare_composing_ints(&slice[1], c, "begin", 2, zeros));
    TARE_TRY(tare_composing_ints(&slice[2], c, "size", 2, size));
    TARE_TRY(tare_composing_op(&z, c, "Slice", "weight_of_inputs", 3, slice));
    TARE_TRY(tare_composing_binary(&z, c, "MatMul", tare_composing_arg(c, INPUTS), z));
    TARE_TRY(tare_composing_binary(&z, c, "BiasAdd", z, tare_composing_arg(c, BIAS)));
    TARE_TRY(tare_composing_int(&axis, c, "split_dim", 1));
    TARE_TRY(tare_composing_node(out, c, "Split", "gates", 2, (struct tare_edge[]){ axis, z }));
    TARE_TRY(tare_node_set_type(*out, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(*out, "num_split", count_gates(c)));
    return tare_node_resolve(*out);
}

static tare_status build_input_gate(struct tare_edge *out, struct tare_composing *c, const struct tare_node *gates) {
    struct tare_edge one;
    TARE_TRY(gate(out, c, "Sigmoid", gates, 1)); /* i, or f where they are coupled */
    if (!is_coupled(c)) return TARE_OK;
    TARE_TRY(tare_composing_float(&one, c, "one", 1));
    return tare_composing_binary(out, c, "Sub", one, *out);
}

tare_status tare_composite_build_lstm_cell(struct tare_composing *c) {
    struct tare_edge take, candidate, output, cell;
    struct tare_node *gates;
    TARE_TRY(build_gates(&gates, c));
    TARE_TRY(gate(&candidate, c, "Tanh", gates, 0));
    TARE_TRY(build_input_gate(&take, c, gates));
    TARE_TRY(tare_composing_binary(&cell, c, "Mul", take, candidate));
    TARE_TRY(gate(&output, c, "Sigmoid", gates, count_gates(c) - 1));
    TARE_TRY(tare_composing_op(&cell, c, "Tanh", "Tanh", 1, &cell));
    TARE_TRY(tare_composing_binary(&c->results[0], c, "Mul", output, cell));
    if (!has_projection(c)) return TARE_OK;
    return tare_composing_binary(&c->results[0], c, "MatMul", c->results[0], tare_composing_arg(c, PROJECTION));
}
