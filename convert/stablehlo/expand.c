/* Replacing XlaCallModule nodes. Their inputs are the arguments of main, after the index of the running platform where
 * the module was exported for several (tensorflow/compiler/tf2xla/kernels/xla_call_module_loader.cc). */
#include "convert/stablehlo/expand.h"
#include "convert/stablehlo/import.h"

#include "graph/emit.h"

#include <string.h>

/* The platforms of a module in the order in which they are tried: those of GPUs have calls that nothing else knows. */
enum { MOST_TRIED = 3 };

struct platforms {
    size_t count; /* of the module; an index is main's first argument if there are several */
    size_t tried[MOST_TRIED], n_tried;
    const char *names[MOST_TRIED];
};

static void try_platform(struct platforms *out, const struct tare_attr *list, const char *name) {
    for (size_t i = 0; i < out->count; i++) {
        const char *of_module = list->items[i].s.data;
        if (name && strcmp(of_module, name) != 0) continue;
        out->names[out->n_tried] = of_module;
        out->tried[out->n_tried++] = i;
        return;
    }
}

static struct platforms platforms_of(const struct tare_node *node, enum tare_module_platform wanted) {
    const struct tare_attr *list = tare_node_list(node, "platforms");
    struct platforms out = { 0 };
    if (list && list->kind == TARE_ATTR_STRING) out.count = list->count;
    try_platform(&out, list, wanted == TARE_MODULES_FOR_CPU ? "CPU" : "TPU");
    try_platform(&out, list, wanted == TARE_MODULES_FOR_CPU ? "TPU" : "CPU");
    if (!out.n_tried) try_platform(&out, list, NULL);
    if (!out.n_tried) out.n_tried = 1;
    return out;
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
    tare_graph_replace_controls(node, call);
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

static tare_status expand_for(struct tare_node *node, struct binding *b) {
    struct tare_graph *function;
    TARE_TRY(import_module(&function, node, b));
    b->function = function;
    TARE_TRY(check_call(node, b));
    return replace(node, b);
}

/* The first platform whose branches can be imported; the failure is that of the platform that is wanted. */
static tare_status expand_node(struct tare_node *node, enum tare_module_platform wanted) {
    const struct platforms platforms = platforms_of(node, wanted);
    struct tare_graph_model *model = node->graph->model;
    const char *name = node->name, *reason = NULL;
    tare_status first = TARE_OK;
    for (size_t i = 0; i < platforms.n_tried; i++) {
        struct binding b = { .has_index = platforms.count > 1, .index = platforms.tried[i] };
        const tare_status status = expand_for(node, &b);
        if (status == TARE_OK && reason && !model->module_note) {
            model->module_note = tare_arena_printf(
                &model->arena,
                "the StableHLO module of %s has the branches for %s, because those for %s cannot be expanded: %s", name,
                platforms.names[i], platforms.names[0], reason);
            if (!model->module_note) return TARE_NO_MEMORY;
        }
        model->has_other_platforms |= status == TARE_OK && platforms.n_tried > 1;
        if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
        if (i == 0) {
            first = status;
            reason = tare_arena_strdup(&model->arena, tare_error_text());
            if (!reason) return TARE_NO_MEMORY;
        }
        tare_error_clear();
    }
    return TARE_FAIL(first, "%s", reason ? reason : "");
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

static tare_status expand_graph(struct tare_graph *graph, enum tare_module_platform platform) {
    bool removed = false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || !tare_node_is(node, "XlaCallModule")) continue;
        const tare_status status = expand_node(node, platform);
        if (status == TARE_NO_MEMORY) return status;
        removed = removed || status == TARE_OK;
        graph->model->n_modules += status == TARE_OK;
        if (status == TARE_OK) continue;
        TARE_TRY(note_error(node));
    }
    if (removed) tare_graph_sweep(graph);
    return TARE_OK;
}

tare_status tare_shlo_expand(struct tare_graph_model *model, enum tare_module_platform platform) {
    const size_t n_functions = model->n_functions; /* the imported ones contain no such nodes */
    TARE_TRY(expand_graph(model->main, platform));
    for (size_t i = 0; i < n_functions; i++)
        TARE_TRY(expand_graph(model->functions[i], platform));
    for (size_t i = n_functions; i < model->n_functions; i++) /* parts of compositions that became one op */
        TARE_TRY(tare_graph_remove_unreachable(model->functions[i], NULL));
    return TARE_OK;
}
