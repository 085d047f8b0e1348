/* The dtypes of the outputs of ops that have no definition: what their users declare as inputs. */
#include "convert/import/import.h"
#include "graph/definitions/opdef.h"

static bool is_unknown(struct tare_edge edge) {
    return edge.node && (size_t)edge.index < edge.node->n_outputs && edge.node->output_dtypes &&
           edge.node->output_dtypes[edge.index] == TARE_DT_INVALID;
}

/* Only ops without a definition have outputs of unknown dtype, and each such node has a list of its own. */
static void set_type(struct tare_edge edge, int dtype) {
    if (is_unknown(edge)) edge.node->output_dtypes[edge.index] = tare_dtype_base(dtype);
}

/* A user whose attributes are invalid declares nothing; its error is found where it is checked. */
static tare_status set_inputs(const struct tare_node *user, struct tare_arena *scratch) {
    bool any = false;
    int *dtypes;
    size_t count;
    for (size_t i = 0; i < user->n_inputs; i++)
        any |= is_unknown(user->inputs[i]);
    if (!any || !user->def) return TARE_OK;
    const tare_status status = tare_opdef_input_dtypes(scratch, user, &dtypes, &count);
    if (status != TARE_OK) return tare_error_dismiss(status);
    for (size_t i = 0; i < user->n_inputs && i < count; i++)
        set_type(user->inputs[i], dtypes[i]);
    return TARE_OK;
}

static tare_status set_types(const struct tare_graph *graph, struct tare_arena *scratch) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        TARE_TRY(set_inputs(graph->nodes[i], scratch));
    for (size_t i = 0; i < graph->n_returns; i++)
        set_type(graph->returns[i].edge, graph->returns[i].dtype);
    return TARE_OK;
}

tare_status tare_import_unknown_types(const struct tare_graph_model *model) {
    struct tare_arena scratch = { 0 };
    tare_status status = TARE_OK;
    if (!model->unknown_outputs.count) return TARE_OK;
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        status = set_types(model->functions[i], &scratch);
    if (status == TARE_OK) status = set_types(model->main, &scratch);
    tare_arena_free(&scratch);
    return status;
}
