/* GraphDef and FunctionDef -> IR. Names become edges; every name and index is checked. */
#include "convert/import.h"
#include "graph/opdef.h"

#include <stdlib.h>
#include <string.h>

/* ---- nodes ---- */

static tare_status import_node(struct tare_graph *graph, const Tensorflow__NodeDef *def) {
    struct tare_node *node;
    if (!*def->name) return TARE_FAIL(TARE_CORRUPT, "a node without a name (op '%s')", def->op);
    if (!*def->op) return TARE_FAIL(TARE_CORRUPT, "node %s: a node without an op", def->name);
    if (tare_map_get(&graph->by_name, def->name)) return TARE_FAIL(TARE_CORRUPT, "two nodes named %s", def->name);
    node = tare_graph_add(graph, def->op, def->name);
    if (!node) return TARE_NO_MEMORY;
    node->device = def->device;
    node->origin = def;
    return tare_error_prefix(tare_import_attrs(&node->attrs, &node->n_attrs, &node->attrs_capacity, graph->model,
                                               def->attr, def->n_attr),
                             "node %s (%s)", def->name, def->op);
}

/* An op that nobody defines has the outputs that its users name; their dtypes stay unknown. */
static tare_status resolve_unknown(struct tare_node *node) {
    size_t count;
    tare_unknown_outputs(node->graph->model, node->op, &count);
    node->output_dtypes = TARE_NEW_ARRAY(&node->graph->model->arena, int, count + 1);
    node->n_outputs = count;
    return node->output_dtypes ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status resolve_nodes(struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool unknown = !node->def && !tare_model_find_function(graph->model, node->op);
        TARE_TRY(tare_error_prefix(unknown ? resolve_unknown(node) : tare_node_resolve(node), "node %s (%s)", node->name,
                                   node->op));
    }
    return TARE_OK;
}

/* ---- edges ---- */

static tare_status parse_index(size_t *out, const char *text) {
    char *end;
    unsigned long value;
    if (*text < '0' || *text > '9') return TARE_FAIL(TARE_CORRUPT, "'%s' is no output number", text);
    value = strtoul(text, &end, 10);
    if (*end || value > 1000000) return TARE_FAIL(TARE_CORRUPT, "'%s' is no output number", text);
    *out = value;
    return TARE_OK;
}

static tare_status set_edge(struct tare_edge *out, struct tare_node *node, size_t index, const char *text) {
    if (index >= node->n_outputs)
        return TARE_FAIL(TARE_CORRUPT, "input %s: the node has %zu outputs", text, node->n_outputs);
    *out = (struct tare_edge){ node, (int)index };
    return TARE_OK;
}

static struct tare_node *find_node(const struct tare_graph *graph, const char *name, size_t size) {
    return tare_map_get_n(&graph->by_name, name, size);
}

/* Main graph: "node" or "node:k". */
static tare_status flat_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text) {
    const char *colon = strrchr(text, ':');
    size_t index = 0;
    struct tare_node *node;
    if (colon && parse_index(&index, colon + 1) != TARE_OK) {
        tare_error_clear();
        colon = NULL;
    }
    node = find_node(graph, text, colon ? (size_t)(colon - text) : strlen(text));
    if (!node) return TARE_FAIL(TARE_CORRUPT, "Unknown input node '%s'", text);
    return set_edge(out, node, index, text);
}

/* Flat position of output argument `name` of a node: the op's, a called function's, or one that users made up. */
static tare_status output_by_name(size_t *first, size_t *count, const struct tare_node *node, const char *name,
                                  size_t size) {
    const struct tare_graph *callee = node->def ? NULL : tare_model_find_function(node->graph->model, node->op);
    const char *const *names;
    size_t n_names;
    if (node->def) {
        for (size_t a = 0; a < node->def->n_outputs; a++)
            if (strlen(node->def->outputs[a].name) == size && memcmp(node->def->outputs[a].name, name, size) == 0)
                return tare_node_output_range(node, a, first, count);
    }
    *count = 1;
    for (size_t a = 0; callee && a < callee->n_returns; a++)
        if (strlen(callee->returns[a].name) == size && memcmp(callee->returns[a].name, name, size) == 0)
            return *first = a, TARE_OK;
    if (!node->def && !callee) {
        names = tare_unknown_outputs(node->graph->model, node->op, &n_names);
        for (size_t a = 0; a < n_names; a++)
            if (names[a] && strlen(names[a]) == size && memcmp(names[a], name, size) == 0) return *first = a, TARE_OK;
    }
    return TARE_FAIL(TARE_CORRUPT, "%s has no output '%.*s'", node->op, (int)size, name);
}

/* Function: "arg", "arg:0" or "node:out:k". */
static tare_status function_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text) {
    const char *colon = strchr(text, ':'), *second;
    size_t name_size = colon ? (size_t)(colon - text) : strlen(text), index = 0, first, count;
    struct tare_node *node = find_node(graph, text, name_size);
    if (!node) return TARE_FAIL(TARE_CORRUPT, "Unknown input node '%s'", text);
    if (strcmp(node->op, "_Arg") == 0) {
        if (colon && strcmp(colon, ":0") != 0) return TARE_FAIL(TARE_CORRUPT, "input %s: an argument has one output", text);
        *out = (struct tare_edge){ node, 0 };
        return TARE_OK;
    }
    if (!colon) return TARE_FAIL(TARE_CORRUPT, "input %s is not node:output:index", text);
    second = strchr(colon + 1, ':');
    if (second) TARE_TRY(parse_index(&index, second + 1));
    TARE_TRY(tare_error_prefix(
        output_by_name(&first, &count, node, colon + 1, second ? (size_t)(second - colon - 1) : strlen(colon + 1)),
        "input %s", text));
    if (index >= count) return TARE_FAIL(TARE_CORRUPT, "input %s: index out of range (%zu outputs)", text, count);
    return set_edge(out, node, first + index, text);
}

static tare_status connect(struct tare_node *node, const Tensorflow__NodeDef *def, bool in_function) {
    if (def->n_input) {
        node->inputs = TARE_NEW_ARRAY(&node->graph->model->arena, struct tare_edge, def->n_input);
        if (!node->inputs) return TARE_NO_MEMORY;
        node->inputs_capacity = def->n_input;
    }
    for (size_t i = 0; i < def->n_input; i++) {
        const char *text = def->input[i];
        struct tare_edge edge;
        if (*text == '^') {
            struct tare_node *before = tare_graph_find(node->graph, text + 1);
            if (!before) return TARE_FAIL(TARE_CORRUPT, "control input %s names no node", text);
            TARE_TRY(tare_node_add_control(node, before));
            continue;
        }
        if (node->n_controls) return TARE_FAIL(TARE_CORRUPT, "Non-control input '%s' after control input", text);
        TARE_TRY(in_function ? function_edge(&edge, node->graph, text) : flat_edge(&edge, node->graph, text));
        TARE_TRY(tare_node_add_input(node, edge));
    }
    return TARE_OK;
}

static tare_status import_body(struct tare_graph *graph, Tensorflow__NodeDef *const *defs, size_t n_defs,
                               bool in_function) {
    for (size_t i = 0; i < n_defs; i++) TARE_TRY(import_node(graph, defs[i]));
    TARE_TRY(resolve_nodes(graph));
    for (size_t i = 0; i < n_defs; i++)
        TARE_TRY(tare_error_prefix(connect(graph->nodes[i], defs[i], in_function), "node %s (%s)", defs[i]->name,
                                   defs[i]->op));
    return TARE_OK;
}

/* ---- functions ---- */

/* Arguments and return dtypes come first for all functions: a body may call any other by op name. */
static tare_status declare_function(struct tare_model *model, const Tensorflow__FunctionDef *def) {
    const Tensorflow__OpDef *signature = def->signature;
    struct tare_graph *graph;
    if (!signature || !*signature->name) return TARE_FAIL(TARE_CORRUPT, "a function without a name");
    graph = tare_model_add_function(model, signature->name);
    if (!graph) return TARE_CORRUPT;
    graph->origin = def;
    graph->is_stateful = signature->is_stateful;
    for (size_t i = 0; i < signature->n_input_arg; i++) {
        const Tensorflow__OpDef__ArgDef *arg = signature->input_arg[i];
        if (tare_map_get(&graph->by_name, arg->name)) return TARE_FAIL(TARE_CORRUPT, "two arguments named %s", arg->name);
        if (!tare_graph_add_arg(graph, arg->name, arg->is_ref ? (int)arg->type + TARE_DT_REF_OFFSET : (int)arg->type))
            return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < signature->n_output_arg; i++)
        TARE_TRY(tare_graph_add_return(graph, signature->output_arg[i]->name, (int)signature->output_arg[i]->type,
                                       (struct tare_edge){ NULL, 0 }));
    return tare_import_attrs(&graph->attrs, &graph->n_attrs, &graph->attrs_capacity, model,
                             def->attr, def->n_attr);
}

static tare_status import_returns(struct tare_graph *graph, const Tensorflow__FunctionDef *def) {
    for (size_t r = 0; r < graph->n_returns; r++) {
        struct tare_return *ret = &graph->returns[r];
        const char *text = NULL;
        for (size_t i = 0; i < def->n_ret && !text; i++)
            if (strcmp(def->ret[i]->key, ret->name) == 0) text = def->ret[i]->value;
        if (!text) return TARE_FAIL(TARE_CORRUPT, "no ret for output %s", ret->name);
        TARE_TRY(tare_error_prefix(function_edge(&ret->edge, graph, text), "return %s", ret->name));
    }
    graph->control_returns = TARE_NEW_ARRAY(&graph->model->arena, struct tare_control_return, def->n_control_ret + 1);
    if (!graph->control_returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < def->n_control_ret; i++) {
        struct tare_node *node = tare_graph_find(graph, def->control_ret[i]->value);
        if (!node) return TARE_FAIL(TARE_CORRUPT, "control_ret %s names no node", def->control_ret[i]->value);
        graph->control_returns[graph->n_control_returns++] =
            (struct tare_control_return){ def->control_ret[i]->key, node };
    }
    return TARE_OK;
}

static tare_status define_function(struct tare_graph *graph, const Tensorflow__FunctionDef *def) {
    TARE_TRY(import_body(graph, def->node_def, def->n_node_def, true));
    return import_returns(graph, def);
}

tare_status tare_import_graphs(struct tare_model *model, const Tensorflow__GraphDef *graph_def) {
    const Tensorflow__FunctionDefLibrary *library = graph_def->library;
    size_t n_functions = library ? library->n_function : 0;
    for (size_t i = 0; i < n_functions; i++)
        TARE_TRY(tare_error_prefix(declare_function(model, library->function[i]), "function %s",
                                   library->function[i]->signature ? library->function[i]->signature->name : "?"));
    for (size_t i = 0; i < n_functions; i++)
        TARE_TRY(tare_error_prefix(define_function(model->functions[i], library->function[i]), "function %s",
                                   model->functions[i]->name));
    TARE_TRY(import_body(model->main, graph_def->node, graph_def->n_node, false));
    return tare_model_check_recursion(model);
}

tare_status tare_import_tensor_name(struct tare_edge *out, const struct tare_model *model, const char *name) {
    return flat_edge(out, model->main, name);
}
