/* A function that is called with different variables as weights is copied for each caller, before freezing: its reads
 * then have one value, which quantization and folding find. Of weights that are passed as values, and not as handles of
 * variables, localize_constants does the same.
 *
 * A round copies what is called with known variables. The callees of a copy receive known variables only then, so
 * rounds repeat until there is nothing to copy.
 */
#include "convert/pass.h"
#include "convert/passes/copies.h"
#include "graph/bindings.h"
#include "graph/clone.h"
#include "graph/gradients.h"
#include "graph/graphs.h"

static bool is_weight(const struct tare_variable *variable) {
    return variable && tare_is_worth_copying(&variable->value);
}

/* A plain call that passes a weight to an argument for which other calls pass other variables. */
static bool shares_callee(const struct tare_bindings *bindings, const struct tare_node *node) {
    const struct tare_graph *callee = tare_is_plain_call(node) ? tare_node_function(node, "f") : NULL;
    if (callee && tare_graph_keeps_gradients(callee)) return false;
    for (size_t i = 0; callee && i < node->n_inputs && i < callee->n_args; i++) {
        bool several = false;
        if (tare_edge_dtype(node->inputs[i]) != TARE_DT_RESOURCE) continue;
        if (!is_weight(tare_bindings_variable(bindings, node->inputs[i], NULL))) continue;
        tare_bindings_variable(bindings, (struct tare_edge){ callee->args[i], 0 }, &several);
        if (several) return true;
    }
    return false;
}

static tare_status copy_callees(struct tare_graph *graph, const struct tare_bindings *bindings, size_t *copies) {
    for (size_t i = 0; i < graph->n_nodes && *copies < TARE_MOST_COPIES; i++) {
        if (graph->nodes[i]->dead || !shares_callee(bindings, graph->nodes[i])) continue;
        TARE_TRY(tare_call_copy_function(graph->nodes[i]));
        ++*copies;
    }
    return TARE_OK;
}

static tare_status run_round(struct tare_graph_model *model, size_t *copies) {
    const size_t n_functions = model->n_functions; /* not the copies, whose callers are not bound yet */
    struct tare_bindings *bindings;
    tare_status status = tare_bindings_new(&bindings, model);
    TARE_CHECK(status);
    for (size_t f = 0; f <= n_functions; f++)
        TARE_CHECK(copy_callees(tare_model_graph(model, f), bindings, copies));
done:
    tare_bindings_free(bindings);
    return status;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    size_t copies = 0, before;
    do {
        before = copies;
        TARE_TRY(run_round(model, &copies));
    } while (copies > before);
    *changes += copies;
    return TARE_OK;
}

const struct tare_pass tare_pass_split_callers = {
    .name = "split_callers",
    .help = "copy functions that are called with different variables, for each caller",
    .run = run,
};
