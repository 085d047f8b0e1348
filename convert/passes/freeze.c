/* Freezing: reads of variables that nothing assigns become constants, inside the functions that contain the reads, so
 * that functions are not inlined (TPU functions must remain functions). Unused captures are dropped. If the model
 * would exceed the size limit of saved_model.pb, large variables are kept and marked as constant. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "base/map.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graphs.h"
#include "graph/op.h"
#include "quant/fake_quant.h"

#include <string.h>

/* By variable. */
struct variable_state {
    bool is_written;
    bool repeats_name; /* an earlier variable has the same name */
};

struct writes {
    struct variable_state *states;
    bool any_of_several; /* a write whose handle may be that of several variables */
};

/* Ops that take a handle or reference and do not modify the value. */
static bool only_reads(const struct tare_node *node) {
    static const char *const readers[] = { "ReadVariableOp",     "ResourceGather",
                                           "ResourceGatherNd",   "VariableShape",
                                           "VarIsInitializedOp", "IsVariableInitialized",
                                           "Identity",           "NoOp",
                                           "TPUReplicatedInput" };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(node->op, readers[i]) == 0) return true;
    return false;
}

static bool is_handle(struct tare_edge edge) {
    if (!edge.node || edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs) return false;
    return edge.node->output_dtypes[edge.index] == TARE_DT_RESOURCE ||
           tare_dtype_is_ref(edge.node->output_dtypes[edge.index]);
}

/* A reference edge may be an input of any op that reads values; only the definitions' Ref arguments may write. */
static bool takes_reference(const struct tare_node *node, size_t input) {
    if (!node->def) return true;
    for (size_t a = 0; a < node->def->n_inputs; a++) {
        size_t first, count;
        if (tare_node_input_range(node, a, &first, &count) != TARE_OK) return true;
        if (input >= first && input < first + count) return node->def->inputs[a].is_ref;
    }
    return true;
}

/* True if the node may change the variable of input `i`. A call passes the handle on: its body is examined. */
static tare_status may_write(bool *out, const struct tare_node *node, size_t i) {
    struct tare_arena arena = { 0 };
    struct tare_call_site site;
    tare_status status;
    *out = false;
    if (only_reads(node)) return TARE_OK;
    if (tare_dtype_is_ref(node->inputs[i].node->output_dtypes[node->inputs[i].index])) {
        *out = takes_reference(node, i);
        return TARE_OK;
    }
    status = tare_call_site(&site, &arena, node);
    *out = site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER;
    tare_arena_free(&arena);
    return status;
}

/* The handle of a write is that of one variable, of any of several, or unknown because nothing calls the function. */
static void add_write(const struct tare_bindings *bindings, struct tare_edge handle, struct writes *writes,
                      const struct tare_graph_model *model) {
    bool several;
    const struct tare_variable *variable = tare_bindings_variable(bindings, handle, &several);
    if (variable) writes->states[variable - model->variables].is_written = true;
    writes->any_of_several |= !variable && (several || !tare_node_is_arg(handle.node));
}

static tare_status add_writes(const struct tare_bindings *bindings, const struct tare_graph *graph,
                              struct writes *writes, const struct tare_graph_model *model) {
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const struct tare_node *node = graph->nodes[n];
        if (node->dead) continue;
        for (size_t i = 0; i < node->n_inputs; i++) {
            bool is_write;
            if (!is_handle(node->inputs[i])) continue;
            TARE_TRY(may_write(&is_write, node, i));
            if (is_write) add_write(bindings, node->inputs[i], writes, model);
        }
    }
    return TARE_OK;
}

static tare_status find_writes(const struct tare_bindings *bindings, struct variable_state *states,
                               const struct tare_graph_model *model) {
    struct writes writes = { .states = states };
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(add_writes(bindings, tare_model_graph(model, i), &writes, model));
    for (size_t v = 0; v < model->n_variables && writes.any_of_several; v++)
        states[v].is_written |= tare_bindings_is_mixed(bindings, &model->variables[v]);
    return TARE_OK;
}

static tare_status find_repeated_names(struct variable_state *states, const struct tare_graph_model *model) {
    struct tare_map names = { 0 };
    tare_status status = tare_map_reserve(&names, model->n_variables) ? TARE_OK : TARE_NO_MEMORY;
    for (size_t v = 0; v < model->n_variables && status == TARE_OK; v++) {
        struct tare_variable *variable = &model->variables[v];
        states[v].repeats_name = tare_map_get(&names, variable->shared_name) != NULL;
        if (!tare_map_set(&names, variable->shared_name, variable)) status = TARE_NO_MEMORY;
    }
    tare_map_free(&names);
    return status;
}

/* Several variables may have one name: all but the first are distinguished by their position. */
static tare_status constant_for(struct tare_node **out, struct tare_graph *graph, const struct tare_variable *variable,
                                const struct variable_state *states) {
    struct tare_graph_model *model = graph->model;
    const size_t v = (size_t)(variable - model->variables);
    const char *name = states[v].repeats_name
                           ? tare_arena_printf(&model->arena, "%s/frozen_%zu", variable->shared_name, v)
                           : tare_arena_printf(&model->arena, "%s/frozen", variable->shared_name);
    struct tare_node *node;
    if (!name) return TARE_NO_MEMORY;
    node = tare_graph_find(graph, name);
    if (!node) node = tare_graph_add_const(graph, name, &variable->value);
    *out = node;
    return node ? TARE_OK : TARE_NO_MEMORY;
}

/* ResourceGather(handle, indices) becomes GatherV2(constant, indices, 0); the constant may be the read of a variable.
 */
static tare_status freeze_gather(struct tare_node *node, struct tare_node *constant) {
    struct tare_graph *graph = node->graph;
    struct tare_tensor zero = { 0 };
    struct tare_node *axis, *gather = tare_graph_add(graph, "GatherV2", node->name);
    tare_status status = gather ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_tensor_scalar_i32(&zero, 0);
    axis = status == TARE_OK ? tare_graph_add_const(graph, "axis", &zero) : NULL;
    tare_tensor_reset(&zero);
    if (!axis) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(gather, (struct tare_edge){ constant, 0 }));
    TARE_TRY(tare_node_add_input(gather, node->inputs[1]));
    TARE_TRY(tare_node_add_input(gather, (struct tare_edge){ axis, 0 }));
    TARE_TRY(tare_node_set_type(gather, "Tparams", tare_node_type(node, "dtype", TARE_DT_FLOAT)));
    TARE_TRY(tare_node_set_type(gather, "Tindices", tare_node_type(node, "Tindices", TARE_DT_INT32)));
    TARE_TRY(tare_node_set_type(gather, "Taxis", TARE_DT_INT32));
    TARE_TRY(tare_node_set_int(gather, "batch_dims", tare_node_int(node, "batch_dims", 0)));
    TARE_TRY(tare_node_resolve(gather));
    for (size_t i = 0; i < node->n_controls; i++)
        TARE_TRY(tare_node_add_control(gather, node->controls[i]));
    tare_graph_replace_uses(graph, (struct tare_edge){ node, 0 }, (struct tare_edge){ gather, 0 }, NULL);
    tare_node_remove(node);
    return TARE_OK;
}

/* A removed read may be a control input of other nodes; reading a constant needs no ordering, so the control is
 * dropped. */
static tare_status freeze_read(struct tare_node *node, const struct tare_variable *variable,
                               const struct variable_state *states) {
    struct tare_node *constant;
    if (strcmp(node->op, "ReadVariableOp") == 0) {
        TARE_TRY(constant_for(&constant, node->graph, variable, states));
        tare_graph_replace_uses(node->graph, (struct tare_edge){ node, 0 }, (struct tare_edge){ constant, 0 }, NULL);
        tare_node_remove(node);
        return TARE_OK;
    }
    if (strcmp(node->op, "ResourceGather") == 0) {
        TARE_TRY(constant_for(&constant, node->graph, variable, states));
        return freeze_gather(node, constant);
    }
    return TARE_OK;
}

static bool is_constant(const struct tare_graph_model *model, const struct variable_state *states,
                        const struct tare_variable *variable) {
    return variable && variable->value.dtype != TARE_DT_INVALID && variable->value.dtype != TARE_DT_STRING &&
           !states[variable - model->variables].is_written;
}

static bool can_freeze(const struct tare_graph_model *model, const struct variable_state *states,
                       const struct tare_variable *variable) {
    return is_constant(model, states, variable) && !variable->constant;
}

/* A protobuf message is limited to 2 GiB, which also includes existing constants and names. */
static const int64_t MOST_FROZEN = 1LL << 30, LARGE = 64 * 1024;

/* Marks the variables that are kept. Reference variables are values themselves and cannot be kept; a single number has
 * no size to save, and quantization needs FakeQuant's ranges as constants: only a model that is trained keeps it. */
static void mark_large(struct tare_graph_model *model, const struct variable_state *states) {
    int64_t from = model->keep_variables_from, all = 0;
    const bool keeps_numbers = model->keep_gradients && !tare_quant_is_trained(model);
    for (size_t v = 0; v < model->n_variables; v++)
        if (is_constant(model, states, &model->variables[v]))
            all += (int64_t)tare_tensor_bytes(&model->variables[v].value);
    if (from == 0 && all > MOST_FROZEN) from = LARGE;
    for (size_t v = 0; v < model->n_variables && from > 0; v++) {
        struct tare_variable *variable = &model->variables[v];
        const bool trains = keeps_numbers && tare_dtype_is_floating(variable->dtype);
        variable->constant = variable->node && variable->node->n_outputs &&
                             !tare_dtype_is_ref(variable->node->output_dtypes[0]) && variable->key &&
                             is_constant(model, states, variable) && (variable->value.elements != 1 || trains) &&
                             (int64_t)tare_tensor_bytes(&variable->value) >= from;
    }
}

/* A lookup in a table that also stays a variable reads all of it. */
static tare_status gather_read(struct tare_node *node, const struct tare_variable *variable) {
    struct tare_node *read;
    if (strcmp(node->op, "ResourceGather") != 0 || tare_node_int(node, "batch_dims", 0) != 0) return TARE_OK;
    read = tare_graph_add(node->graph, "ReadVariableOp",
                          tare_arena_printf(&node->graph->model->arena, "%s/read", node->name));
    if (!read) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(read, node->inputs[0]));
    TARE_TRY(tare_node_set_type(read, "dtype", variable->dtype));
    TARE_TRY(tare_node_resolve(read));
    return freeze_gather(node, read);
}

static tare_status freeze_graph(const struct tare_bindings *bindings, struct tare_graph *graph,
                                const struct variable_state *states, size_t *changes) {
    size_t count = graph->n_nodes; /* nodes that this pass adds need no visit */
    for (size_t n = 0; n < count; n++) {
        struct tare_node *node = graph->nodes[n];
        struct tare_variable *variable;
        if (node->dead || !node->n_inputs || !is_handle(node->inputs[0])) continue;
        variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
        if (variable && variable->constant) TARE_TRY(gather_read(node, variable));
        if (!can_freeze(graph->model, states, variable)) continue;
        TARE_TRY(freeze_read(node, variable, states));
        *changes += node->dead;
    }
    tare_graph_sweep(graph);
    return TARE_OK;
}

/* TF1: the reference itself is used wherever its value is needed. */
static tare_status freeze_references(struct tare_graph_model *model, const struct variable_state *states,
                                     size_t *changes) {
    for (size_t v = 0; v < model->n_variables; v++) {
        struct tare_variable *variable = &model->variables[v];
        struct tare_node *constant;
        if (!variable->node || !can_freeze(model, states, variable) || !variable->node->n_outputs ||
            !tare_dtype_is_ref(variable->node->output_dtypes[0]))
            continue;
        TARE_TRY(constant_for(&constant, model->main, variable, states));
        *changes += tare_graph_replace_uses(model->main, (struct tare_edge){ variable->node, 0 },
                                            (struct tare_edge){ constant, 0 }, NULL);
    }
    return TARE_OK;
}

/* A variable whose handle is unused is removed from the checkpoint. */
static void mark_frozen(struct tare_graph_model *model, const struct variable_state *states) {
    for (size_t v = 0; v < model->n_variables; v++) {
        struct tare_variable *variable = &model->variables[v];
        if (!variable->node || !can_freeze(model, states, variable)) continue;
        variable->removed = tare_graph_count_uses(model->main, (struct tare_edge){ variable->node, 0 }, NULL) == 0;
    }
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tare_bindings *bindings = NULL;
    size_t removed = 0;
    struct variable_state *states = tare_calloc(model->n_variables + 1, sizeof *states);
    tare_status status = TARE_NO_MEMORY;
    if (!states) return status;
    TARE_CHECK(find_repeated_names(states, model));
    TARE_CHECK(tare_bindings_new(&bindings, model));
    TARE_CHECK(find_writes(bindings, states, model));
    mark_large(model, states);
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_CHECK(freeze_graph(bindings, tare_model_graph(model, i), states, changes));
    TARE_CHECK(freeze_references(model, states, changes));
    TARE_CHECK(tare_model_remove_unused_args(&removed, model));
    mark_frozen(model, states);
done:
    tare_bindings_free(bindings);
    tare_free(states);
    return status;
}

const struct tare_pass tare_pass_freeze = {
    .name = "freeze",
    .help = "turn variables that nothing assigns into constants",
    .run = run,
};
