/* Replacing XlaCallModule nodes. Their inputs are the arguments of main, after the index of the running platform where
 * the module was exported for several (tensorflow/compiler/tf2xla/kernels/xla_call_module_loader.cc). */
#include "convert/stablehlo/expand.h"
#include "convert/stablehlo/import.h"

#include "graph/emit.h"

#include <string.h>

/* The module runs as on this platform, or as on its only one. */
static const char *const preferred_platform = "CPU";

static size_t platforms_of(const struct tare_node *node, size_t *index) {
    const struct tare_attr *platforms = tare_node_list(node, "platforms");
    *index = 0;
    if (!platforms || platforms->kind != TARE_ATTR_STRING) return 0;
    for (size_t i = 0; i < platforms->count; i++)
        if (strcmp(platforms->items[i].s.data, preferred_platform) == 0) *index = i;
    return platforms->count;
}

static bool is_token(const char *name) {
    return strncmp(name, TARE_SHLO_TOKEN_NAME, strlen(TARE_SHLO_TOKEN_NAME)) == 0;
}

/* Main's arguments are the platform index (if there are several platforms), tokens anywhere, and the node's inputs; its
 * results are tokens and the node's outputs. */
struct binding {
    const struct tare_graph *function;
    bool has_index;
    size_t index; /* of the platform */
};

static tare_status check_call(const struct tare_node *node, const struct binding *b) {
    const struct tare_graph *function = b->function;
    size_t inputs = 0, outputs = 0;
    if (b->has_index && !function->n_args) return TARE_FAIL(TARE_CORRUPT, "main lacks the platform index");
    for (size_t i = b->has_index; i < function->n_args; i++) {
        const int dtype = tare_node_type(function->args[i], "T", TARE_DT_INVALID);
        if (is_token(function->args[i]->name)) continue;
        if (inputs < node->n_inputs && tare_edge_dtype(node->inputs[inputs]) != dtype)
            return TARE_FAIL(TARE_TYPE, "input %zu: expected %s, got %s", inputs, tare_dtype_name(dtype),
                             tare_dtype_name(tare_edge_dtype(node->inputs[inputs])));
        inputs++;
    }
    for (size_t i = 0; i < function->n_returns; i++) {
        if (is_token(function->returns[i].name)) continue;
        if (outputs < node->n_outputs && node->output_dtypes[outputs] != function->returns[i].dtype)
            return TARE_FAIL(TARE_TYPE, "output %zu: expected %s, got %s", outputs,
                             tare_dtype_name(function->returns[i].dtype),
                             tare_dtype_name(node->output_dtypes[outputs]));
        outputs++;
    }
    if (node->n_inputs != inputs)
        return TARE_FAIL(TARE_CORRUPT, "expected %zu inputs, got %zu", inputs, node->n_inputs);
    if (node->n_outputs != outputs)
        return TARE_FAIL(TARE_CORRUPT, "expected %zu outputs, got %zu", outputs, node->n_outputs);
    return TARE_OK;
}

/* Type lists of inputs and outputs. */
static tare_status set_call(struct tare_node *call, const struct tare_graph *function) {
    struct tare_arena *arena = &call->graph->model->arena;
    int *in = TARE_NEW_ARRAY(arena, int, call->n_inputs + 1),
        *out = TARE_NEW_ARRAY(arena, int, function->n_returns + 1);
    if (!in || !out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < call->n_inputs; i++)
        in[i] = tare_edge_dtype(call->inputs[i]);
    for (size_t i = 0; i < function->n_returns; i++)
        out[i] = function->returns[i].dtype;
    TARE_TRY(tare_node_set_type_list(call, "Tin", in, call->n_inputs));
    TARE_TRY(tare_node_set_type_list(call, "Tout", out, function->n_returns));
    TARE_TRY(tare_node_set_func(call, "f", function->name));
    return tare_node_resolve(call);
}

static void replace_controls(struct tare_node *from, struct tare_node *to) {
    struct tare_graph *graph = from->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t c = 0; c < graph->nodes[i]->n_controls; c++)
            if (graph->nodes[i]->controls[c] == from) graph->nodes[i]->controls[c] = to;
    for (size_t i = 0; i < graph->n_control_returns; i++)
        if (graph->control_returns[i].node == from) graph->control_returns[i].node = to;
}

static struct tare_edge token(struct tare_graph *graph) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor value;
    struct tare_edge edge = { 0 };
    if (tare_tensor_new(&value, TARE_DT_BOOL, &scalar) != TARE_OK) return edge;
    TARE_DATA(uint8_t, &value)[0] = 0;
    edge.node = tare_graph_add_const(graph, "token", &value);
    tare_tensor_reset(&value);
    return edge;
}

static tare_status add_inputs(struct tare_node *call, const struct tare_node *node, const struct binding *b) {
    struct tare_emit emit = { .graph = node->graph, .prefix = node->name };
    size_t next = 0;
    for (size_t i = 0; i < b->function->n_args; i++) {
        const struct tare_node *arg = b->function->args[i];
        struct tare_edge input;
        if (b->has_index && i == 0)
            input =
                tare_emit_number(&emit, "platform_index", tare_node_type(arg, "T", TARE_DT_INT32), (int64_t)b->index);
        else if (is_token(arg->name))
            input = token(call->graph);
        else
            input = node->inputs[next++];
        TARE_TRY(emit.status);
        if (!input.node) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(call, input));
    }
    return TARE_OK;
}

static tare_status replace(struct tare_node *node, const struct binding *b) {
    struct tare_graph *graph = node->graph;
    struct tare_node *call =
        tare_graph_add(graph, b->function->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall", node->name);
    int next = 0;
    if (!call) return TARE_NO_MEMORY;
    TARE_TRY(add_inputs(call, node, b));
    for (size_t i = 0; i < node->n_controls; i++)
        TARE_TRY(tare_node_add_control(call, node->controls[i]));
    TARE_TRY(set_call(call, b->function));
    for (size_t i = 0; i < b->function->n_returns; i++)
        if (!is_token(b->function->returns[i].name))
            tare_graph_replace_uses(graph, (struct tare_edge){ node, next++ }, (struct tare_edge){ call, (int)i },
                                    NULL);
    replace_controls(node, call);
    tare_node_remove(node);
    return TARE_OK;
}

static tare_status import_module(struct tare_graph **out, struct tare_node *node, const struct binding *b) {
    const struct tare_attr *attr = tare_node_find_attr(node, "module");
    const struct tare_shlo_import_options options = {
        .stem = "stablehlo", .caller = node, .has_platform = b->has_index, .platform = b->index
    };
    struct tare_shlo_module *module;
    tare_status status;
    if (!attr || attr->is_list || attr->kind != TARE_ATTR_STRING)
        return TARE_FAIL(TARE_CORRUPT, "attribute 'module' is missing");
    TARE_TRY(tare_shlo_read(&module, (const uint8_t *)attr->items[0].s.data, attr->items[0].s.size));
    status = tare_shlo_import(out, node->graph->model, module, &options);
    tare_shlo_free(module);
    return status;
}

static tare_status expand_node(struct tare_node *node) {
    struct tare_graph *function;
    struct binding b = { 0 };
    b.has_index = platforms_of(node, &b.index) > 1;
    TARE_TRY(import_module(&function, node, &b));
    b.function = function;
    TARE_TRY(check_call(node, &b));
    return replace(node, &b);
}

/* Keeps the first reason; the node stays, so that the model can be copied, converted and inspected. */
static tare_status note_error(const struct tare_node *node) {
    struct tare_graph_model *model = node->graph->model;
    if (!model->module_error) {
        model->module_error = tare_arena_printf(&model->arena, "the StableHLO module of %s cannot be expanded: %s",
                                                node->name, tare_error_text());
        if (!model->module_error) return TARE_NO_MEMORY;
    }
    tare_error_clear();
    return TARE_OK;
}

static tare_status expand_graph(struct tare_graph *graph) {
    bool removed = false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || !tare_node_is(node, "XlaCallModule")) continue;
        const tare_status status = expand_node(node);
        if (status == TARE_NO_MEMORY) return status;
        removed = removed || status == TARE_OK;
        graph->model->n_modules += status == TARE_OK;
        if (status == TARE_OK) continue;
        TARE_TRY(note_error(node));
    }
    if (removed) tare_graph_sweep(graph);
    return TARE_OK;
}

tare_status tare_shlo_expand(struct tare_graph_model *model) {
    const size_t n_functions = model->n_functions; /* the imported ones contain no such nodes */
    TARE_TRY(expand_graph(model->main));
    for (size_t i = 0; i < n_functions; i++)
        TARE_TRY(expand_graph(model->functions[i]));
    for (size_t i = n_functions; i < model->n_functions; i++) /* parts of compositions that became one op */
        TARE_TRY(tare_graph_remove_unreachable(model->functions[i], NULL));
    return TARE_OK;
}
