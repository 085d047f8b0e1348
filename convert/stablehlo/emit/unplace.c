/* The computation of a converted model without its placement: TPU calls and batchers are replaced by plain calls. */
#include "convert/stablehlo/emit/emit.h"
#include "graph/calls.h"
#include "graph/inline.h"
#include "interpreter/inference/infer.h"

/* The nodes that compute the signature's outputs, by position: a graph has those of all signatures. */
static tare_status find_own(bool **out, struct tare_arena *arena, const struct tare_graph *graph,
                            const struct tare_signature *signature, struct tare_node *const *order) {
    bool *own = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    if (!own) return TARE_NO_MEMORY;
    for (size_t i = 0; i < signature->n_outputs; i++)
        if (signature->outputs[i].edge.node) own[signature->outputs[i].edge.node->position] = true;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct tare_node *node = order[i];
        for (size_t k = 0; node && own[node->position] && k < node->n_inputs; k++)
            if (!tare_node_is_arg(node->inputs[k].node)) own[node->inputs[k].node->position] = true;
    }
    *out = own;
    return TARE_OK;
}

/* TPU call number `number`, from 1, of the signature in the order of execution; NULL: there are fewer. */
static tare_status find_call(struct tare_node **out, struct tare_arena *arena, const struct tare_graph *graph,
                             const struct tare_signature *signature, size_t number) {
    struct tare_node **order;
    bool *own;
    *out = NULL;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    TARE_TRY(find_own(&own, arena, graph, signature, order));
    for (size_t i = 0; i < graph->n_nodes && !*out; i++) {
        struct tare_node *node = order[i];
        if (node && own[node->position] && tare_node_is(node, "TPUPartitionedCall") && --number == 0) *out = node;
    }
    return TARE_OK;
}

/* A placeholder of the shape that the call's input has, which replaces it; not for constants, which the compiler sees.
 */
static tare_status cut_input(struct tare_binding *out, struct tare_node *call, size_t i,
                             struct tare_shape *const *shapes) {
    struct tare_arena *arena = &call->graph->model->arena;
    const struct tare_edge from = call->inputs[i];
    struct tare_node *node =
        tare_graph_add(call->graph, "Placeholder", tare_arena_printf(arena, "%s/arg%zu", call->name, i));
    if (!node) return TARE_NO_MEMORY;
    *out = (struct tare_binding){ .key = tare_arena_printf(arena, "arg%zu", i),
                                  .dtype = tare_dtype_base(tare_edge_dtype(from)),
                                  .shape = shapes[from.node->position][from.index] };
    if (!out->key) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", out->dtype));
    TARE_TRY(tare_node_set_shape(node, "shape", &out->shape));
    TARE_TRY(tare_node_resolve(node));
    out->edge = tare_node_output0(node);
    tare_node_set_input(call, i, out->edge);
    return TARE_OK;
}

static tare_status cut_output(struct tare_binding *out, struct tare_node *call, size_t i) {
    struct tare_arena *arena = &call->graph->model->arena;
    struct tare_node *node =
        tare_graph_add(call->graph, "Identity", tare_arena_printf(arena, "%s/result%zu", call->name, i));
    if (!node) return TARE_NO_MEMORY;
    *out = (struct tare_binding){ .key = tare_arena_printf(arena, "result%zu", i), .dtype = call->output_dtypes[i] };
    if (!out->key) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "T", out->dtype));
    TARE_TRY(tare_node_add_input(node, (struct tare_edge){ call, (int)i }));
    TARE_TRY(tare_node_resolve(node));
    out->edge = tare_node_output0(node);
    return TARE_OK;
}

static tare_status cut_call(const struct tare_signature **out, struct tare_arena *arena, struct tare_node *call) {
    struct tare_arena *own = &call->graph->model->arena;
    struct tare_signature *signature = TARE_NEW(own, struct tare_signature);
    const size_t n_inputs = call->n_inputs - 1; /* the last is the core */
    struct tare_shape **shapes;
    if (!signature) return TARE_NO_MEMORY;
    signature->key = tare_node_function(call, "f")->name;
    signature->inputs = TARE_NEW_ARRAY(own, struct tare_binding, n_inputs + 1);
    signature->outputs = TARE_NEW_ARRAY(own, struct tare_binding, call->n_outputs + 1);
    if (!signature->inputs || !signature->outputs) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes(&shapes, arena, call->graph, NULL));
    for (size_t i = 0; i < n_inputs; i++)
        if (!tare_edge_constant(call->inputs[i]) && tare_edge_dtype(call->inputs[i]) != TARE_DT_RESOURCE)
            TARE_TRY(cut_input(&signature->inputs[signature->n_inputs++], call, i, shapes));
    for (size_t i = 0; i < call->n_outputs; i++)
        TARE_TRY(cut_output(&signature->outputs[signature->n_outputs++], call, i));
    *out = signature;
    return TARE_OK;
}

tare_status tare_emit_unplace(const struct tare_signature **signature, struct tare_arena *arena,
                              struct tare_graph_model *model, const struct tare_signature *whole, size_t tpu_call) {
    *signature = whole;
    TARE_TRY(tare_model_inline_placed(model, false));
    if (tpu_call) {
        struct tare_node *call;
        TARE_TRY(find_call(&call, arena, model->main, whole, tpu_call));
        if (!call)
            return TARE_FAIL(TARE_NOT_FOUND, "signature %s has no TPU call %zu (tare convert places functions)",
                             whole->key, tpu_call);
        TARE_TRY(cut_call(signature, arena, call));
    }
    return tare_model_inline_placed(model, true);
}
