#include "quant/layers/widened_weight.h"
#include "base/tensor/float8.h"
#include "interpreter/inference/evaluate.h"

enum {
    MOST_NODES = 64,            /* between the constants and the product */
    LARGEST_GROWTH = 64 * 1024, /* elements that a weight may have beyond the bytes of the constants */
};

/* What determines an edge. */
struct constants {
    size_t bytes;
    bool has_float8;
    int budget; /* of nodes */
};

bool tare_widens_float8(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && tare_float8_format(tare_edge_dtype(node->inputs[0]));
}

/* Whether constants alone do. */
static bool find_constants(struct constants *constants, struct tare_edge edge) {
    const struct tare_node *node = edge.node;
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (value) constants->bytes += value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value);
    if (value) return true;
    if (constants->budget-- <= 0 || !node->n_inputs || node->n_controls) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!find_constants(constants, node->inputs[i])) return false;
    constants->has_float8 |= tare_widens_float8(node);
    return tare_node_is_computable(node);
}

tare_status tare_quant_widened_weight(struct tare_tensor *out, struct tare_edge edge) {
    struct constants constants = { .budget = MOST_NODES };
    bool done;
    if (tare_edge_constant(edge) || !find_constants(&constants, edge)) return TARE_OK;
    tare_status status = tare_edge_evaluate(&done, out, edge, NULL, NULL, 0);
    if (status != TARE_OK) return tare_error_dismiss(status); /* what fails now fails when it runs */
    if (done && !constants.has_float8 && (size_t)out->elements > constants.bytes + LARGEST_GROWTH)
        tare_tensor_reset(out);
    return TARE_OK;
}

static bool widens(int *budget, struct tare_edge edge) {
    static const char *const scaling[] = { "Cast",       "Mul",     "RealDiv",     "Reshape",  "Transpose",
                                           "ExpandDims", "Squeeze", "BroadcastTo", "Identity", NULL };
    const struct tare_node *node = edge.node;
    if ((*budget)-- <= 0 || !tare_op_is_one_of(node->op, scaling)) return false;
    if (tare_widens_float8(node)) return true;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (widens(budget, node->inputs[i])) return true;
    return false;
}

bool tare_quant_widens_at_run_time(struct tare_edge edge) {
    int budget = MOST_NODES;
    return widens(&budget, edge);
}
