/* Finding what can be quantized. */
#include "quant/spot.h"
#include "graph/op.h"

#include <string.h>

static bool is_op(const struct tare_node *node, const char *op) { return strcmp(node->op, op) == 0; }

static bool is_weighted(const struct tare_node *node) {
    return is_op(node, "Conv2D") || is_op(node, "DepthwiseConv2dNative") || is_op(node, "MatMul");
}

/* The only user of an edge, when it is `op` and takes the edge as input 0; NULL otherwise. */
static struct tare_node *sole_user(struct tare_edge edge, const char *op) {
    struct tare_node *user;
    if (tare_graph_count_uses(edge.node->graph, edge, &user) != 1 || !user || !is_op(user, op)) return NULL;
    return user->inputs[0].node == edge.node && user->inputs[0].index == edge.index ? user : NULL;
}

static void find_bias(struct tare_quant_spot *spot) {
    struct tare_node *bias = sole_user(spot->output, "BiasAdd");
    const struct tare_tensor *value = bias ? tare_edge_constant(bias->inputs[1]) : NULL;
    if (!value || value->dtype != TARE_DT_FLOAT || value->elements != spot->channels) return;
    spot->bias = bias;
    spot->bias_value = value;
    spot->output = (struct tare_edge){ bias, 0 };
}

static void find_activation(struct tare_quant_spot *spot) {
    static const struct {
        const char *op;
        enum tare_spot_activation activation;
    } kinds[] = { { "Relu", TARE_SPOT_RELU }, { "Relu6", TARE_SPOT_RELU6 } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !spot->clamp; i++) {
        spot->clamp = sole_user(spot->output, kinds[i].op);
        if (spot->clamp) spot->activation = kinds[i].activation;
    }
    if (spot->clamp) spot->output = (struct tare_edge){ spot->clamp, 0 };
}

static const char *refuse_layout(const struct tare_node *op) {
    if (tare_node_type(op, "T", TARE_DT_FLOAT) != TARE_DT_FLOAT) return "only float32 ops are quantized";
    if (strcmp(tare_node_string(op, "data_format", "NHWC"), "NHWC") != 0) return "data_format must be NHWC";
    return NULL;
}

/* The weight's channels; NULL, or why the weight does not do. */
static const char *describe_weight(struct tare_quant_spot *spot) {
    const struct tare_shape *shape;
    spot->weight = tare_edge_constant(spot->op->inputs[1]);
    if (!spot->weight) return "Non-constant weights are not supported at the moment, except matmul and einsum.";
    if (spot->weight->dtype != TARE_DT_FLOAT || spot->weight->elements == 0) return "the weight is not float32";
    shape = &spot->weight->shape;
    spot->inner = 1;
    if (is_op(spot->op, "Conv2D")) {
        if (shape->rank != 4) return "the filter's rank is not 4";
        spot->channels = shape->dims[3];
    } else if (is_op(spot->op, "DepthwiseConv2dNative")) {
        if (shape->rank != 4) return "the filter's rank is not 4";
        spot->channels = shape->dims[2] * shape->dims[3];
    } else {
        bool transposed = tare_node_bool(spot->op, "transpose_b", false);
        if (shape->rank != 2) return "the weight's rank is not 2";
        spot->channels = shape->dims[transposed ? 0 : 1];
        if (transposed) spot->inner = shape->dims[1];
    }
    return NULL;
}

static const char *refuse(struct tare_quant_spot *spot, const struct tare_spot_options *options) {
    const char *reason = refuse_layout(spot->op);
    if (!reason && is_op(spot->op, "DepthwiseConv2dNative") && !options->depthwise)
        reason = "DepthwiseConv2D doesn't get any benefit of quantization in XLA.";
    if (!reason) reason = describe_weight(spot);
    if (!reason && spot->weight->elements < options->min_elements) reason = "the weight has too few elements";
    return reason;
}

tare_status tare_quant_find_spots(struct tare_quant_spot **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph *graph, const struct tare_spot_options *options) {
    struct tare_node **order;
    struct tare_quant_spot *spots = TARE_NEW_ARRAY(arena, struct tare_quant_spot, graph->n_nodes + 1);
    size_t found = 0;
    if (!spots) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++) {
        struct tare_quant_spot *spot = &spots[found];
        if (!is_weighted(order[i]) || order[i]->n_inputs < 2) continue;
        spot->op = order[i];
        spot->input = order[i]->inputs[0];
        spot->output = (struct tare_edge){ order[i], 0 };
        spot->refused = refuse(spot, options);
        if (!spot->refused) {
            find_bias(spot);
            find_activation(spot);
        }
        found++;
    }
    *out = spots;
    *count = found;
    return TARE_OK;
}
