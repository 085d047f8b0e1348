#include "quant/layers/widened_weight.h"
#include "base/alloc.h"
#include "base/tensor/float8.h"
#include "interpreter/inference/evaluate.h"

enum { MOST_NODES = 16 }; /* between the constants and the product */

/* Whether constants determine the edge, *widened: a conversion from float8 is among its nodes. */
static bool is_constant(bool *widened, int *budget, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    if (tare_edge_constant(edge)) return true;
    if ((*budget)-- <= 0 || !node->n_inputs || node->n_controls || !tare_node_is_pure(node)) return false;
    if (tare_node_is(node, "Cast") && tare_float8_format(tare_edge_dtype(node->inputs[0]))) *widened = true;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!is_constant(widened, budget, node->inputs[i])) return false;
    return true;
}

static tare_status value_of(struct tare_tensor *out, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    const struct tare_tensor *constant = tare_edge_constant(edge);
    if (constant && constant->splat) return tare_tensor_copy(out, constant);
    if (constant) {
        tare_tensor_share(out, constant);
        return TARE_OK;
    }
    const size_t count = node->n_inputs + node->n_outputs;
    struct tare_tensor *values = tare_calloc(count, sizeof *values), *results = values ? values + node->n_inputs : NULL;
    tare_status status = values ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs && status == TARE_OK; i++)
        status = value_of(&values[i], node->inputs[i]);
    if (status == TARE_OK) status = tare_node_evaluate(node, values, results);
    if (status == TARE_OK) tare_tensor_share(out, &results[edge.index]);
    for (size_t i = 0; i < count && values; i++)
        tare_tensor_reset(&values[i]);
    tare_free(values);
    return status;
}

tare_status tare_quant_widened_weight(struct tare_tensor *out, struct tare_edge edge) {
    int budget = MOST_NODES;
    bool widened = false;
    if (tare_edge_constant(edge) || !is_constant(&widened, &budget, edge) || !widened) return TARE_OK;
    return value_of(out, edge);
}

static bool widens(int *budget, struct tare_edge edge) {
    static const char *const scaling[] = { "Cast",       "Mul",     "RealDiv",     "Reshape",  "Transpose",
                                           "ExpandDims", "Squeeze", "BroadcastTo", "Identity", NULL };
    const struct tare_node *node = edge.node;
    if ((*budget)-- <= 0 || !tare_op_is_one_of(node->op, scaling)) return false;
    if (tare_node_is(node, "Cast") && tare_float8_format(tare_edge_dtype(node->inputs[0]))) return true;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (widens(budget, node->inputs[i])) return true;
    return false;
}

bool tare_quant_widens_at_run_time(struct tare_edge edge) {
    int budget = MOST_NODES;
    return widens(&budget, edge);
}
