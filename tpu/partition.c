/* Two traversals of the graph in topological order, one in each direction. */
#include "tpu/partition.h"

static void reach_edge(const struct tare_tpu_partition *parts, const struct tare_node *from, const struct tare_node *to,
                       enum tare_tpu_place place) {
    bool *reached = parts->reached[place];
    if (tare_node_is_arg(from)) return;
    if (place == TARE_TPU_AFTER)
        reached[to->position] |= parts->bad[from->position] || reached[from->position];
    else
        reached[from->position] |= parts->bad[to->position] || reached[to->position];
}

static tare_status reach(struct tare_tpu_partition *parts, struct tare_arena *arena, enum tare_tpu_place place) {
    const struct tare_graph *graph = parts->graph;
    struct tare_node **order;
    parts->reached[place] = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    if (!parts->reached[place]) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    for (size_t step = 0; step < graph->n_nodes; step++) {
        const struct tare_node *node = order[place == TARE_TPU_AFTER ? step : graph->n_nodes - 1 - step];
        for (size_t k = 0; node && k < node->n_inputs; k++)
            reach_edge(parts, node->inputs[k].node, node, place);
        for (size_t k = 0; node && k < node->n_controls; k++)
            reach_edge(parts, node->controls[k], node, place);
    }
    return TARE_OK;
}

tare_status tare_tpu_partition_find(struct tare_tpu_partition *parts, struct tare_arena *arena) {
    TARE_TRY(reach(parts, arena, TARE_TPU_BEFORE));
    return reach(parts, arena, TARE_TPU_AFTER);
}

bool tare_tpu_partition_has(const struct tare_tpu_partition *parts, const struct tare_node *node,
                            enum tare_tpu_place place) {
    return !node->dead && !tare_node_is_arg(node) && !parts->bad[node->position] &&
           parts->reached[place][node->position] && !parts->reached[!place][node->position];
}
