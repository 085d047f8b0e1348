/* Normalizations by statistics of their own (instance and group norms) of products of inputs: they remove the
 * mean of the inputs, which is not known. */
#include "tpu/exact/internal.h"
#include "base/tensor/tensor.h"

#include <string.h>

enum { MOST_STEPS = 32 };

static bool varies(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_value_fact(v->facts, edge)->varies;
}

/* The operand of the node that varies; no node: there are several. */
static struct tare_edge only_varying(const struct tare_exact_values *v, const struct tare_node *node) {
    struct tare_edge found = { NULL, 0 };
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (!varies(v, node->inputs[i]) || !tare_exact_carries_floats(tare_edge_dtype(node->inputs[i]))) continue;
        if (found.node && !tare_edge_equal(found, node->inputs[i])) return (struct tare_edge){ NULL, 0 };
        found = node->inputs[i];
    }
    return found;
}

/* A mean over the channels of a product alone, as a layer norm takes it, leaves what the mean of the inputs is in each
 * channel. Ranks are not known: an axis of 2 or more is taken for the last. */
static bool is_over_channels(const struct tare_exact_values *v, const struct tare_node *mean) {
    const struct tare_tensor *axes = mean->n_inputs > 1 ? tare_edge_constant(mean->inputs[1]) : NULL;
    struct tare_edge edge = mean->inputs[0];
    const double axis = axes && axes->elements == 1 ? tare_tensor_get_f64(axes, 0) : 0;
    if (axis != 1) return axis == -1 || axis > 1;
    for (int step = 0; step < MOST_STEPS && edge.node && !tare_node_is_arg(edge.node); step++) {
        if (tare_node_has_flag(edge.node, TARE_OP_MOVE)) return false;
        if (tare_node_has_flag(edge.node, TARE_OP_PRODUCT)) return tare_node_is(edge.node, "MatMul");
        edge = only_varying(v, edge.node);
    }
    return false;
}

/* The product before arithmetic of one value: moves, biases, activations, squares, means. *averages: set where a mean
 * of each channel is on the way. NULL: something else. */
static const struct tare_node *product_before(const struct tare_exact_values *v, struct tare_edge edge,
                                              bool *averages) {
    for (int step = 0; step < MOST_STEPS && edge.node && !tare_node_is_arg(edge.node); step++) {
        if (tare_node_has_flag(edge.node, TARE_OP_PRODUCT)) return edge.node;
        if (!tare_passes_values(edge.node)) return NULL;
        if (tare_op_is_one_of(edge.node->op, (const char *const[]){ "Mean", "Sum", NULL }))
            *averages |= !is_over_channels(v, edge.node);
        edge = only_varying(v, edge.node);
    }
    return NULL;
}

/* What callers pass, where one does. */
static struct tare_edge passed(const struct tare_exact_values *v, struct tare_edge arg) {
    const struct tare_exact_caller *caller = tare_exact_view_of(v, arg.node->graph)->callers;
    if (!caller || arg.node->position >= caller->site.n_args) return (struct tare_edge){ NULL, 0 };
    return caller->node->inputs[caller->site.first + arg.node->position];
}

/* x / 127.5 − 1, (x − mean) / deviation: the model removes the mean of its inputs itself. */
static bool is_centered(const struct tare_exact_values *v, struct tare_edge edge) {
    static const char *const ops[] = { "AddV2", "Add", "Sub", "BiasAdd", NULL };
    for (int step = 0; step < MOST_STEPS && edge.node; step++) {
        if (tare_node_is_arg(edge.node)) {
            edge = passed(v, edge);
        } else if (tare_op_is_one_of(edge.node->op, ops) ||
                   strncmp(edge.node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0) {
            return true;
        } else {
            edge = only_varying(v, edge.node);
        }
    }
    return false;
}

static bool is_product_of_inputs(const struct tare_exact_values *v, const struct tare_node *product) {
    const struct tare_edge edge = { (struct tare_node *)(uintptr_t)product, 0 };
    return product && tare_fact_is_linear(tare_value_fact(v->facts, edge)) && !is_centered(v, only_varying(v, product));
}

/* x − mean(x), (x − mean(x))², E[x²] − E[x]² of a product x of inputs. */
bool tare_exact_normalizes_product(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                   const struct tare_node *node) {
    const struct tare_node *terms[2];
    bool averages = false;
    (void)view;
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "Sub", "SquaredDifference", NULL })) return false;
    for (int i = 0; i < 2; i++)
        terms[i] = product_before(v, node->inputs[i], &averages);
    return averages && terms[0] == terms[1] && is_product_of_inputs(v, terms[0]);
}
