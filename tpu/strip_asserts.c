/* Removes assertions and handle identities from the functions to place. */
#include "tpu/strip_asserts.h"
#include "tpu/closure.h"

#include <string.h>

static bool is_assertion(const struct tare_node *node) {
    return strcmp(node->op, "Assert") == 0;
}

static bool is_handle_identity(const struct tare_node *node) {
    return strcmp(node->op, "Identity") == 0 && node->n_inputs == 1 && node->n_outputs == 1 &&
           tare_dtype_base(node->output_dtypes[0]) == TARE_DT_VARIANT;
}

static bool has_work(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && (is_assertion(graph->nodes[i]) || is_handle_identity(graph->nodes[i])))
            return true;
    return false;
}

/* Replaces control inputs from `gone` by the control inputs of `gone`. */
static tare_status hand_on_controls(struct tare_graph *graph, const struct tare_node *gone) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool waits = false;
        for (size_t k = 0; !node->dead && k < node->n_controls; k++)
            waits |= node->controls[k] == gone;
        if (!waits) continue;
        for (size_t k = 0; k < gone->n_controls; k++)
            if (!gone->controls[k]->dead) TARE_TRY(tare_node_add_control(node, gone->controls[k]));
        for (size_t k = 0; is_handle_identity(gone) && k < gone->n_inputs; k++)
            if (!tare_node_is_arg(gone->inputs[k].node)) TARE_TRY(tare_node_add_control(node, gone->inputs[k].node));
    }
    return TARE_OK;
}

static tare_status clean(struct tare_tpu_stripped *out, struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool assertion = is_assertion(node);
        if (node->dead || (!assertion && !is_handle_identity(node))) continue;
        TARE_TRY(hand_on_controls(graph, node));
        if (!assertion) tare_graph_replace_uses(graph, (struct tare_edge){ node, 0 }, node->inputs[0], NULL);
        tare_node_remove(node);
        out->assertions += assertion;
        out->identities += !assertion;
    }
    tare_graph_sweep(graph);
    return tare_graph_remove_unreachable(graph, NULL); /* the messages, and nodes that only the assertions used */
}

tare_status tare_tpu_strip_asserts(struct tare_tpu_stripped *out, struct tare_arena *arena,
                                   struct tare_graph *const *functions, size_t count) {
    struct tare_tpu_closure closure;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_tpu_closure(&closure, arena, functions, count));
    for (size_t m = 0; m < closure.count; m++)
        closure.members[m].changes = has_work(closure.members[m].graph);
    TARE_TRY(tare_tpu_closure_own(&closure, arena, &out->copies));
    for (size_t m = 0; m < closure.count; m++)
        if (has_work(closure.members[m].graph)) TARE_TRY(clean(out, closure.members[m].graph));
    return TARE_OK;
}
