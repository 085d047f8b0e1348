/* Ops that XLA alone has, in what stays on the CPU: TensorFlow has no CPU kernel for them, so that the first request
 * would fail. Other ops of XLA (XlaDotV2 …) have kernels that compile them when they run. */
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "tpu/compatibility_internal.h"

#include <string.h>

static const char *const ops[] = { "XlaAllReduce",
                                   "XlaCustomCall",
                                   "XlaCustomCallV2",
                                   "XlaReduceScatter",
                                   "XlaRemoveDynamicDimensionSize",
                                   "XlaSetBound",
                                   "XlaSetDynamicDimensionSize",
                                   "XlaSpmdFullToShardShape",
                                   NULL };

struct walk {
    struct tare_arena *arena;
    struct tare_tpu_finding *found;
    size_t count;
    struct tare_graph_table seen;
    struct tare_graph **stack; /* functions whose nodes are to be looked at */
    size_t depth;
};

static tare_status push(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct walk *walk = arg;
    if (tare_node_is(node, "TPUPartitionedCall") || tare_node_bool(node, "_XlaMustCompile", false)) return TARE_OK;
    if (tare_function_must_compile(callee) || tare_graph_table_get(&walk->seen, callee)) return TARE_OK;
    walk->stack[walk->depth++] = callee; /* at most once a function */
    return tare_graph_table_set(&walk->seen, callee, callee) ? TARE_OK : TARE_NO_MEMORY;
}

static const char *remedy(const struct tare_node *node, const char *target) {
    if (tare_tpu_calls_open_shape(node)) return "its results have open shapes: export the model for a fixed batch size";
    return strncmp(target, "lapack_", strlen("lapack_")) == 0 ? TARE_TPU_OTHER_PLATFORM
                                                              : "place the function that has it on the TPU";
}

static tare_status add(struct walk *walk, const struct tare_node *node) {
    const char *target = tare_node_string(node, "call_target_name", "");
    struct tare_tpu_finding *grown = tare_arena_append(walk->arena, walk->found, walk->count, sizeof *grown);
    const char *text = tare_arena_printf(
        walk->arena, "'tf.%s' op%s%s has no kernel for CPUs, and node '%s' in function %s stays on the CPU (%s)",
        node->op, *target ? " calling " : "", target, node->name, node->graph->name, remedy(node, target));
    if (!grown || !text) return TARE_NO_MEMORY;
    walk->found = grown;
    grown[walk->count++] = (struct tare_tpu_finding){ TARE_TPU_NO_CPU_KERNEL, node->graph, node, text };
    return TARE_OK;
}

static tare_status check_node(struct walk *walk, const struct tare_node *node) {
    if (tare_op_is_one_of(node->op, ops)) TARE_TRY(add(walk, node));
    return tare_node_each_function(node, push, walk);
}

static tare_status run(struct walk *walk, const struct tare_graph_model *model) {
    const struct tare_graph *main = model->main;
    bool *served;
    walk->stack = TARE_NEW_ARRAY(walk->arena, struct tare_graph *, model->n_functions + 1);
    if (!walk->stack) return TARE_NO_MEMORY;
    TARE_TRY(tare_model_served_nodes(&served, walk->arena, model));
    for (size_t i = 0; i < main->n_nodes; i++)
        if (served[i]) TARE_TRY(check_node(walk, main->nodes[i]));
    while (walk->depth) {
        const struct tare_graph *graph = walk->stack[--walk->depth];
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(check_node(walk, graph->nodes[i]));
    }
    return TARE_OK;
}

tare_status tare_tpu_check_left(struct tare_tpu_finding **out, size_t *count, struct tare_arena *arena,
                                const struct tare_graph_model *model) {
    struct walk walk = { .arena = arena };
    const tare_status status = run(&walk, model);
    tare_graph_table_free(&walk.seen);
    *out = walk.found;
    *count = walk.count;
    return status;
}
