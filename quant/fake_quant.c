/* Ranges of FakeQuant ops. */
#include "quant/fake_quant.h"

#include <string.h>

static bool is_fake(const struct tare_node *node) {
    return strncmp(node->op, "FakeQuant", 9) == 0;
}

static bool range_of(double *low, double *high, const struct tare_node *node) {
    const struct tare_tensor *ends[2];
    if (tare_node_int(node, "num_bits", 8) != 8) return false;
    if (strcmp(node->op, "FakeQuantWithMinMaxArgs") == 0) {
        *low = (double)tare_node_float(node, "min", -6);
        *high = (double)tare_node_float(node, "max", 6);
        return *low <= *high;
    }
    if (strcmp(node->op, "FakeQuantWithMinMaxVars") != 0 || node->n_inputs != 3) return false;
    for (size_t i = 0; i < 2; i++) {
        ends[i] = tare_edge_constant(node->inputs[i + 1]);
        if (!ends[i] || ends[i]->elements != 1) return false;
    }
    *low = tare_tensor_get_f64(ends[0], 0);
    *high = tare_tensor_get_f64(ends[1], 0);
    return *low <= *high;
}

bool tare_quant_fake_range(double *low, double *high, struct tare_edge edge) {
    const struct tare_node *first = NULL; /* in the order of the graph */
    if (is_fake(edge.node)) return range_of(low, high, edge.node);
    if (tare_graph_index_uses(edge.node->graph) != TARE_OK) return false;
    for (const struct tare_use *use = tare_node_first_use(edge.node); use; use = use->next) {
        const struct tare_node *node = use->user;
        double ends[2];
        if (node->dead || use->input != 0 || !is_fake(node) || node->inputs[0].index != edge.index ||
            !range_of(&ends[0], &ends[1], node) || (first && first->position < node->position))
            continue;
        first = node;
        *low = ends[0];
        *high = ends[1];
    }
    return first != NULL;
}

static bool has_fakes(const struct tare_graph *graph) {
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (!graph->nodes[n]->dead && is_fake(graph->nodes[n])) return true;
    return false;
}

bool tare_quant_is_trained(const struct tare_model *model) {
    bool found = has_fakes(model->main);
    for (size_t i = 0; i < model->n_functions && !found; i++)
        found = has_fakes(model->functions[i]);
    return found;
}
