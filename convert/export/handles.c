/* What arguments say of the variables that they are handles of, where TensorFlow cannot load a function without: its
 * shape function of ResourceGatherNd takes a handle of an unknown variable for a scalar. Functions that were inlined,
 * or whose variables became bfloat16, do not have it from their file. */
#include "convert/export/export.h"
#include "graph/bindings.h"
#include "proto/tensor_message.h"

static struct tare_edge before_identities(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && tare_node_is(edge.node, "Identity") && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge;
}

static tare_status describe(Tensorflow__OpDef__ArgDef **arg, struct tare_arena *arena,
                            const struct tare_variable *variable) {
    Tensorflow__OpDef__ArgDef *described = TARE_NEW(arena, Tensorflow__OpDef__ArgDef);
    Tensorflow__ResourceHandleProto__DtypeAndShape *data =
        TARE_NEW(arena, Tensorflow__ResourceHandleProto__DtypeAndShape);
    if (!described || !data) return TARE_NO_MEMORY;
    tensorflow__resource_handle_proto__dtype_and_shape__init(data);
    data->dtype = (Tensorflow__DataType)variable->dtype;
    data->shape = tare_shape_to_message(arena, &variable->shape);
    *described = **arg; /* the file's message stays as it is */
    described->handle_data = TARE_NEW_ARRAY(arena, Tensorflow__ResourceHandleProto__DtypeAndShape *, 1);
    if (!data->shape || !described->handle_data) return TARE_NO_MEMORY;
    described->handle_data[0] = data;
    described->n_handle_data = 1;
    *arg = described;
    return TARE_OK;
}

static tare_status describe_arguments(const Tensorflow__FunctionDef *def, struct tare_arena *arena,
                                      const struct tare_graph *graph, const struct tare_bindings *bindings) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        Tensorflow__OpDef__ArgDef **arg;
        const struct tare_variable *variable;
        struct tare_edge handle;
        if (node->dead || !tare_node_is(node, "ResourceGatherNd")) continue;
        handle = before_identities(node->inputs[0]);
        if (!tare_node_is_arg(handle.node)) continue;
        arg = &def->signature->input_arg[handle.node->position];
        variable = tare_bindings_variable(bindings, handle, NULL);
        if (variable && !(*arg)->n_handle_data) TARE_TRY(describe(arg, arena, variable));
    }
    return TARE_OK;
}

static bool gathers(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_node_is(graph->nodes[i], "ResourceGatherNd")) return true;
    return false;
}

tare_status tare_export_handles(const Tensorflow__FunctionDefLibrary *library, struct tare_arena *arena,
                                const struct tare_graph_model *model) {
    struct tare_bindings *bindings = NULL;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < model->n_functions; i++) {
        if (!gathers(model->functions[i])) continue;
        if (!bindings) TARE_CHECK(tare_bindings_new(&bindings, model));
        TARE_CHECK(describe_arguments(library->function[i], arena, model->functions[i], bindings));
    }
done:
    tare_bindings_free(bindings);
    return status;
}
