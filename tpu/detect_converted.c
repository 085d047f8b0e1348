/* Detects models that were converted before. */
#include "tpu/detect_converted.h"
#include "graph/calls.h"
#include "tpu/closure.h"

#include <string.h>

static void count_graph(struct tare_tpu_converted *out, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const struct tare_graph *callee;
        if (node->dead) continue;
        out->batchers += strcmp(node->op, "BatchFunction") == 0;
        if (strcmp(node->op, "TPUPartitionedCall") != 0) continue;
        callee = tare_node_function(node, "f");
        if (!out->tpu_calls++) out->first = callee ? callee->name : "a function that is missing";
    }
}

tare_status tare_tpu_detect_converted(struct tare_tpu_converted *out, struct tare_arena *arena,
                                      const struct tare_graph_model *model) {
    bool *live;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_model_reachable_functions(&live, arena, model, true));
    count_graph(out, model->main);
    for (size_t f = 0; f < model->n_functions; f++)
        if (live[f]) count_graph(out, model->functions[f]);
    return TARE_OK;
}

static const struct tare_node *find(const struct tare_tpu_closure *closure, const char *op) {
    for (size_t m = 0; m < closure->count; m++) {
        const struct tare_graph *graph = closure->members[m].graph;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, op) == 0) return graph->nodes[i];
    }
    return NULL;
}

static tare_status refuse(const struct tare_graph *entry, const struct tare_tpu_closure *closure) {
    const struct tare_node *node = find(closure, "TPUPartitionedCall");
    if (!node) node = find(closure, "TPUReplicateMetadata");
    if (node)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "function %s is on the TPU already (node '%s' (%s) in %s): convert the model as it was exported, or "
            "use batch_options without tpu_functions to add or update batching",
            entry->name, node->name, node->op, node->graph->name);
    node = find(closure, "BatchFunction");
    if (!node) return TARE_OK;
    return TARE_FAIL(
        TARE_INVALID_ARGUMENT,
        "function %s cannot go to the TPU: node '%s' (BatchFunction) in %s batches requests, which only the CPU "
        "can do (place the function that it calls instead)",
        entry->name, node->name, node->graph->name);
}

tare_status tare_tpu_refuse_converted(struct tare_arena *arena, struct tare_graph *const *functions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct tare_tpu_closure closure;
        TARE_TRY(tare_tpu_closure(&closure, arena, &functions[i], 1));
        TARE_TRY(refuse(functions[i], &closure));
    }
    return TARE_OK;
}
