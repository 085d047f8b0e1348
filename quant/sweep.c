/* Removes nodes, constants and variables that nothing uses after a rewrite. */
#include "quant/sweep.h"
#include "graph/model.h"
#include "graph/shared_constants.h"

#include <string.h>

struct sweeper {
    const struct tare_quant_work *work;
    struct tare_map layers; /* key: the bytes of the pointer to an op of a rewritten layer -> struct tare_quant_layer */
    struct tare_node **fences; /* by layer: a NoOp that waits for what the layer waited for, or NULL */
};

static tare_status add_op(struct sweeper *sweeper, struct tare_node *const *op, struct tare_quant_layer *layer) {
    if (!*op || tare_map_set_n(&sweeper->layers, (const char *)op, sizeof *op, layer)) return TARE_OK;
    return TARE_NO_MEMORY;
}

static tare_status add_ops(struct sweeper *sweeper) {
    for (size_t i = 0; i < sweeper->work->n_layers; i++) {
        struct tare_quant_layer *layer = &sweeper->work->layers[i];
        if (layer->refused) continue;
        TARE_TRY(add_op(sweeper, &layer->op, layer));
        TARE_TRY(add_op(sweeper, &layer->bias, layer));
        TARE_TRY(add_op(sweeper, &layer->clamp, layer));
    }
    return TARE_OK;
}

static tare_status wait_for(struct tare_node *node, struct tare_node *before) {
    if (!before || before->dead || tare_node_is_arg(before) || tare_node_is(before, "Const")) return TARE_OK;
    return tare_node_add_control(node, before);
}

/* The node waits for the operands of the layer, and for what its ops waited for. */
static tare_status wait_for_operands(struct tare_node *node, const struct tare_quant_layer *layer) {
    struct tare_node *const ops[] = { layer->op, layer->bias, layer->clamp };
    for (size_t i = 0; i < layer->op->n_inputs; i++)
        TARE_TRY(wait_for(node, layer->op->inputs[i].node));
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t i = 0; ops[k] && i < ops[k]->n_controls; i++)
            TARE_TRY(wait_for(node, ops[k]->controls[i]));
    return TARE_OK;
}

static const struct tare_quant_layer *layer_of(const struct sweeper *sweeper, const struct tare_node *op) {
    return tare_map_get_n(&sweeper->layers, (const char *)&op, sizeof op);
}

static bool waits_for_layer(const struct sweeper *sweeper, const struct tare_quant_layer *layer) {
    const struct tare_node *const ops[] = { layer->op, layer->bias, layer->clamp };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t i = 0; ops[k] && i < ops[k]->n_controls; i++)
            if (layer_of(sweeper, ops[k]->controls[i])) return true;
    return false;
}

/* Where a layer waits for another one, which may wait for a third one, a NoOp collects what it waited for: in each node
 * that waits, the lists would grow with the length of the chain. */
static tare_status wait_for_layer(const struct sweeper *sweeper, struct tare_node *node,
                                  const struct tare_quant_layer *layer) {
    struct tare_node **fence = &sweeper->fences[layer - sweeper->work->layers];
    if (!*fence && !waits_for_layer(sweeper, layer)) return wait_for_operands(node, layer);
    if (*fence) return *fence == node ? TARE_OK : tare_node_add_control(node, *fence);
    *fence = tare_graph_add(layer->op->graph, "NoOp", "operands");
    if (!*fence) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_resolve(*fence));
    TARE_TRY(wait_for_operands(*fence, layer));
    return tare_node_add_control(node, *fence);
}

/* The list grows by what is added, which may be an op of another layer. */
static tare_status change_controls(const struct sweeper *sweeper, struct tare_node *node) {
    for (size_t i = 0; i < node->n_controls && !node->dead; i++) {
        const struct tare_quant_layer *layer = layer_of(sweeper, node->controls[i]);
        if (layer) TARE_TRY(wait_for_layer(sweeper, node, layer));
    }
    return TARE_OK;
}

static void remove_unused(struct tare_node *op) {
    if (op && !tare_graph_count_uses_to(op->graph, (struct tare_edge){ op, 0 }, 1, NULL)) tare_node_remove(op);
}

static tare_status change_all_controls(const struct sweeper *sweeper, struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        TARE_TRY(change_controls(sweeper, graph->nodes[i]));
    return TARE_OK;
}

static tare_status remove_unreachable(const struct sweeper *sweeper, struct tare_graph *graph) {
    (void)sweeper;
    return tare_graph_remove_unreachable(graph, NULL);
}

/* Layers of one stack (two in an iteration of a loop, say) have the same scales and corrections. */
static tare_status share_constants(const struct sweeper *sweeper, struct tare_graph *graph) {
    (void)sweeper;
    return tare_graph_share_constants(graph);
}

/* Calls `fn` for each graph with rewritten layers: those of a graph are contiguous. */
static tare_status each_graph(const struct sweeper *sweeper,
                              tare_status (*fn)(const struct sweeper *sweeper, struct tare_graph *graph)) {
    const struct tare_graph *last = NULL;
    for (size_t i = 0; i < sweeper->work->n_layers; i++) {
        struct tare_graph *graph = sweeper->work->layers[i].op->graph;
        if (sweeper->work->layers[i].refused || graph == last) continue;
        TARE_TRY(fn(sweeper, graph));
        last = graph;
    }
    return TARE_OK;
}

/* The last op of a layer first: it is a use of the one before. */
static void remove_ops(const struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        if (layer->refused) continue;
        remove_unused(layer->clamp);
        remove_unused(layer->bias);
        remove_unused(layer->op);
    }
}

tare_status tare_quant_sweep(const struct tare_quant_work *work) {
    struct sweeper sweeper = {
        .work = work,
        .fences = TARE_NEW_ARRAY(work->arena, struct tare_node *, work->n_layers + 1),
    };
    tare_status status = sweeper.fences ? add_ops(&sweeper) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = each_graph(&sweeper, change_all_controls);
    if (status == TARE_OK) remove_ops(work);
    if (status == TARE_OK) status = each_graph(&sweeper, share_constants);
    if (status == TARE_OK) status = each_graph(&sweeper, remove_unreachable);
    tare_map_free(&sweeper.layers);
    return status;
}
