/* Checks that a node matches its definition; kernels rely on it. */
#include "interpreter/execution/plan.h"
#include "graph/definitions/opdef.h"

static tare_status check_input(const struct tare_node *node, size_t i, int expected) {
    struct tare_edge edge = node->inputs[i];
    int got;
    if (!edge.node) return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is not connected", i);
    if (edge.node->dead || edge.node->graph != node->graph)
        return TARE_FAIL(TARE_INTERNAL, "input %zu is %s, which is not in the graph", i, edge.node->name);
    if (edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is output %d of %s (got %zu outputs)", i, edge.index,
                         edge.node->name, edge.node->n_outputs);
    if (expected == TARE_DT_INVALID) return TARE_OK;
    got = edge.node->output_dtypes[edge.index];
    if (tare_dtype_base(got) != tare_dtype_base(expected))
        return TARE_FAIL(TARE_TYPE, "input %zu is %s (expected %s)", i, tare_dtype_name(got),
                         tare_dtype_name(expected));
    if (tare_dtype_is_ref(expected) && !tare_dtype_is_ref(got))
        return TARE_FAIL(TARE_TYPE, "input %zu is a value (expected a reference to a variable)", i);
    return TARE_OK;
}

tare_status tare_plan_check_node(struct tare_arena *arena, const struct tare_node *node) {
    int *dtypes = NULL;
    size_t count = node->n_inputs;
    if (node->def) {
        TARE_TRY(tare_opdef_check_attrs(node));
        TARE_TRY(tare_opdef_input_dtypes(arena, node, &dtypes, &count));
        if (count != node->n_inputs)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu inputs (expected %zu)", node->n_inputs, count);
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(check_input(node, i, dtypes ? dtypes[i] : TARE_DT_INVALID));
    return TARE_OK;
}
