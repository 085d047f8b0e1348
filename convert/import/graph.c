/* GraphDef and FunctionDef -> IR. Names become edges; every name and index is checked. */
#include "base/alloc.h"
#include "base/file.h"
#include "convert/import/attr_pool.h"
#include "convert/import/edges.h"
#include "convert/import/import.h"
#include "convert/source.h"
#include "graph/definitions/opdef.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors of nodes ---- */

static struct tare_import_faults *faults_of(const struct tare_graph *graph) {
    return graph->model->pool ? graph->model->pool->faults : NULL;
}

static const char *label_of(const struct tare_graph *graph) {
    return *graph->name ? graph->name : "graph";
}

/* Reports an error at the node if errors are collected. */
static tare_status at_node(const struct tare_graph *graph, const Tensorflow__NodeDef *def, tare_status status) {
    TARE_TRY(tare_import_fault(faults_of(graph), status, "%s/%s (%s)", label_of(graph), def->name, def->op));
    return TARE_OK;
}

/* ---- nodes ---- */

/* An op without a definition has the outputs that its users name; their dtypes are unknown. */
static tare_status resolve_unknown(struct tare_node *node) {
    size_t count;
    tare_unknown_outputs(node->graph->model, node->op, &count);
    node->output_dtypes = TARE_NEW_ARRAY(&node->graph->model->arena, int, count + 1);
    node->n_outputs = count;
    return node->output_dtypes ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status resolve(struct tare_node *node) {
    bool unknown = !node->def && !tare_model_find_function(node->graph->model, node->op);
    /* Where errors are collected, the validator reports wrong kinds. */
    if (node->def && !faults_of(node->graph)) TARE_TRY(tare_opdef_check_attr_kinds(node));
    return unknown ? resolve_unknown(node) : tare_node_resolve(node);
}

/* Outputs depend on op and attributes only, so nodes that share these share the outputs. */
static tare_status resolve_shared(struct tare_node *node, struct tare_shared_attrs *shared) {
    if (!node->def || node->def != shared->def) {
        TARE_TRY(resolve(node));
        if (!node->def || shared->def) return TARE_OK;
        shared->def = node->def;
        shared->output_dtypes = node->output_dtypes;
        shared->n_outputs = node->n_outputs;
    }
    node->output_dtypes = shared->output_dtypes;
    node->n_outputs = shared->n_outputs;
    return TARE_OK;
}

static void find_functions(struct tare_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++)
        node->has_no_functions &= node->attrs[i].kind != TARE_ATTR_FUNC;
}

/* The names of the definition, which all nodes of the op share, instead of those of the message: searching an attribute
 * then compares names that are in the cache. */
static void share_attr_names(const struct tare_node *node) {
    for (size_t i = 0; node->def && i < node->n_attrs; i++) {
        struct tare_attr *attr = &node->attrs[i];
        const struct tare_op_attr *defined = tare_op_def_find_attr(node->def, attr->name, strlen(attr->name));
        if (defined) attr->name = defined->name;
    }
}

static tare_status import_attrs(struct tare_node *node, const Tensorflow__NodeDef *def,
                                struct tare_shared_attrs *shared) {
    if (!shared || !shared->attrs)
        TARE_TRY(tare_import_attrs(&node->attrs, &node->n_attrs, &node->attrs_capacity, node->graph->model, def->attr,
                                   def->n_attr));
    if (!shared) {
        share_attr_names(node);
        find_functions(node);
        return resolve(node);
    }
    if (!shared->attrs) {
        shared->attrs = node->attrs;
        shared->n_attrs = node->n_attrs;
    }
    node->attrs = shared->attrs;
    node->n_attrs = node->attrs_capacity = shared->n_attrs;
    find_functions(node);
    return resolve_shared(node, shared);
}

static tare_status check_node(const struct tare_graph *graph, const Tensorflow__NodeDef *def) {
    tare_status status = TARE_OK;
    if (!*def->name)
        status = TARE_FAIL(TARE_CORRUPT, "a node without a name (op '%s')", def->op);
    else if (tare_map_get(&graph->by_name, def->name))
        status = TARE_FAIL(TARE_CORRUPT, "two nodes named %s", def->name);
    TARE_TRY(tare_import_fault(faults_of(graph), status, "%s", label_of(graph)));
    if (*def->op) return TARE_OK;
    if (faults_of(graph)) return at_node(graph, def, TARE_FAIL(TARE_CORRUPT, "a node without an op"));
    return TARE_FAIL(TARE_CORRUPT, "node %s: a node without an op", def->name);
}

static tare_status attrs_of(struct tare_node *node, const Tensorflow__NodeDef *def, struct tare_shared_attrs *shared) {
    tare_status status = import_attrs(node, def, shared);
    if (!*def->op) tare_import_mark_without_outputs(node); /* the missing op is reported */
    if (status == TARE_OK) return TARE_OK;
    if (!faults_of(node->graph)) return tare_error_prefix(status, "node %s (%s)", def->name, def->op);
    tare_import_mark_without_outputs(node);
    return at_node(node->graph, def, status);
}

static tare_status import_node(struct tare_graph *graph, const Tensorflow__NodeDef *def,
                               const struct tare_message_part *wire) {
    struct tare_attr_pool *pool = graph->model->pool;
    struct tare_shared_attrs *shared = NULL;
    struct tare_node *node;
    TARE_TRY(check_node(graph, def));
    node = tare_graph_add_read(graph, def->op, def->name);
    if (!node) return TARE_NO_MEMORY;
    if (pool) {
        tare_status status;
        node->device = *def->device ? tare_attr_pool_text(pool, def->device) : "";
        shared = tare_attr_pool_list(pool, tare_node_attr_bytes(wire), &status);
        if (!node->device || status != TARE_OK) return TARE_NO_MEMORY;
    } else {
        node->device = def->device;
        node->origin = def;
    }
    return attrs_of(node, def, shared);
}

/* ---- edges ---- */

/* Deduplicates control inputs; `edit` of a node marks that it already is a control input of the current one. */
static tare_status connect_control(struct tare_node *node, const char *text) {
    struct tare_node *before = tare_graph_find(node->graph, text + 1);
    if (!before) return TARE_FAIL(TARE_CORRUPT, "control input %s names no node", text);
    if (before->edit == node) return TARE_OK;
    before->edit = node;
    if (node->n_controls == node->controls_capacity) {
        size_t extra = node->n_controls + 1;
        struct tare_node **grown =
            tare_arena_extend(&node->graph->model->nodes, node->controls, node->n_controls, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        node->controls = grown;
        node->controls_capacity += extra;
    }
    node->controls[node->n_controls++] = before;
    return TARE_OK;
}

static tare_status connect_input(struct tare_node *node, const char *text, bool in_function) {
    struct tare_edge edge;
    if (*text == '^') return connect_control(node, text);
    if (node->n_controls) return TARE_FAIL(TARE_CORRUPT, "Non-control input '%s' after control input", text);
    TARE_TRY(in_function ? tare_import_function_edge(&edge, node->graph, text)
                         : tare_import_main_edge(&edge, node->graph, text));
    return tare_node_add_input(node, edge);
}

static tare_status connect(struct tare_node *node, const Tensorflow__NodeDef *def, bool in_function) {
    size_t n_data = 0;
    while (n_data < def->n_input && *def->input[n_data] != '^')
        n_data++;
    TARE_TRY(tare_node_reserve_inputs(node, n_data));
    for (size_t i = 0; i < def->n_input; i++) {
        tare_status status = connect_input(node, def->input[i], in_function);
        if (status == TARE_OK) continue;
        if (!faults_of(node->graph)) return tare_error_prefix(status, "node %s (%s)", def->name, def->op);
        TARE_TRY(at_node(node->graph, def, status));
    }
    return TARE_OK;
}

/* Releases the pages of a mapped file that were read. */
static void forget_wire(const uint8_t **read, const struct tare_message_part *wire) {
    enum { STRIDE = 1 << 20 };
    if (!wire->data) return;
    if (!*read || *read > wire->data) *read = wire->data;
    if ((size_t)(wire->data - *read) < STRIDE) return;
    tare_file_forget(*read, (size_t)(wire->data - *read));
    *read = wire->data;
}

static tare_status import_nodes(struct tare_graph *graph, const struct tare_node_defs *defs) {
    struct tare_node_walk walk = { .all = defs };
    const uint8_t *read = NULL;
    tare_status status;
    while ((status = tare_node_walk_next(&walk)) == TARE_OK && walk.def) {
        status = import_node(graph, walk.def, &walk.wire);
        if (status != TARE_OK) break;
        forget_wire(&read, &walk.wire);
    }
    tare_node_walk_end(&walk);
    return status;
}

static tare_status connect_nodes(struct tare_graph *graph, const struct tare_node_defs *defs, size_t first,
                                 bool in_function) {
    struct tare_node_walk walk = { .all = defs, .without_attrs = true };
    const uint8_t *read = NULL;
    tare_status status;
    for (size_t i = first; (status = tare_node_walk_next(&walk)) == TARE_OK && walk.def; i++) {
        status = connect(graph->nodes[i], walk.def, in_function);
        if (status != TARE_OK) break;
        forget_wire(&read, &walk.wire);
    }
    tare_node_walk_end(&walk);
    for (size_t i = first; i < graph->n_nodes; i++)
        graph->nodes[i]->edit = NULL;
    for (size_t i = 0; i < graph->n_args; i++)
        graph->args[i]->edit = NULL;
    return status;
}

static struct tare_node *copied(const struct tare_node *node) {
    static const char *const copies[] = { "Identity", "TPUReplicatedInput", "StopGradient", "PreventGradient", NULL };
    return node && node->n_inputs && tare_op_is_one_of(node->op, copies) ? node->inputs[0].node : NULL;
}

/* From an op that copies its operand, passes follow the operands to the first op that does not. */
static tare_status check_copies(const struct tare_graph *graph) {
    size_t *walk = tare_calloc(graph->n_nodes + 1, sizeof *walk); /* by position: the number of the walk that met it */
    tare_status status = walk ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++) {
        const struct tare_node *node = graph->nodes[i];
        for (; copied(node) && !walk[node->position]; node = copied(node))
            walk[node->position] = i + 1;
        if (copied(node) && walk[node->position] == i + 1)
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "the graph has a cycle through node %s", node->name);
    }
    tare_free(walk);
    return status;
}

static tare_status import_body(struct tare_graph *graph, const struct tare_node_defs *defs, bool in_function) {
    size_t count, first = graph->n_nodes;
    TARE_TRY(tare_node_defs_count(&count, defs));
    if (graph->model->pool && !graph->by_name.count) graph->by_name.key_at = offsetof(struct tare_node, name);
    TARE_TRY(tare_graph_reserve(graph, count));
    TARE_TRY(import_nodes(graph, defs));
    TARE_TRY(connect_nodes(graph, defs, first, in_function));
    return tare_import_fault(faults_of(graph), check_copies(graph), "%s", label_of(graph));
}

/* ---- functions ---- */

/* A model loaded for inspection keeps no messages: the shapes of an argument become an attribute of its node. */
static tare_status import_arg_shapes(struct tare_graph *graph, const Tensorflow__FunctionDef *def) {
    for (size_t i = 0; i < def->n_arg_attr; i++) {
        const Tensorflow__FunctionDef__ArgAttrs *attrs = def->arg_attr[i]->value;
        for (size_t k = 0; attrs && k < attrs->n_attr && def->arg_attr[i]->key < graph->n_args; k++) {
            struct tare_node *arg = graph->args[def->arg_attr[i]->key];
            struct tare_attr *grown;
            if (strcmp(attrs->attr[k]->key, "_output_shapes") != 0) continue;
            if (tare_node_find_attr(arg, "_output_shapes")) continue;
            grown = tare_arena_extend(&graph->model->arena, arg->attrs, arg->n_attrs, 1, sizeof *grown);
            if (!grown) return TARE_NO_MEMORY;
            const tare_status status =
                tare_import_attr(&grown[arg->n_attrs], graph->model, "_output_shapes", attrs->attr[k]->value);
            TARE_TRY(tare_error_dismiss(status));
            if (status != TARE_OK) continue; /* an invalid shape is ignored: it is only a hint */
            arg->attrs = grown;
            arg->attrs_capacity = ++arg->n_attrs;
        }
    }
    return TARE_OK;
}

static struct tare_node *add_arg(struct tare_graph *graph, const char *name, int dtype) {
    struct tare_attr_pool *pool = graph->model->pool;
    return pool ? tare_attr_pool_arg(pool, graph, name, dtype) : tare_graph_add_arg(graph, name, dtype);
}

/* Declares arguments and returns of all functions before any body is imported: a body may call any other function by op
 * name. */
static tare_status declare_function(struct tare_graph_model *model, const Tensorflow__FunctionDef *def) {
    const Tensorflow__OpDef *signature = def->signature;
    struct tare_graph *graph;
    if (!signature || !*signature->name) return TARE_FAIL(TARE_CORRUPT, "a function without a name");
    graph = tare_model_add_function(model, signature->name);
    if (!graph) return TARE_CORRUPT;
    if (!model->pool) graph->origin = def;
    graph->is_stateful = signature->is_stateful;
    graph->args = TARE_NEW_ARRAY(&model->arena, struct tare_node *, signature->n_input_arg);
    if (!graph->args) return TARE_NO_MEMORY;
    graph->args_capacity = signature->n_input_arg;
    for (size_t i = 0; i < signature->n_input_arg; i++) {
        const Tensorflow__OpDef__ArgDef *arg = signature->input_arg[i];
        if (tare_map_get(&graph->by_name, arg->name))
            return TARE_FAIL(TARE_CORRUPT, "two arguments named %s", arg->name);
        if (!add_arg(graph, arg->name, arg->is_ref ? (int)arg->type + TARE_DT_REF_OFFSET : (int)arg->type))
            return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < signature->n_output_arg; i++)
        TARE_TRY(tare_graph_add_return(graph, signature->output_arg[i]->name, (int)signature->output_arg[i]->type,
                                       (struct tare_edge){ NULL, 0 }));
    if (model->pool) TARE_TRY(import_arg_shapes(graph, def));
    return tare_import_attrs(&graph->attrs, &graph->n_attrs, &graph->attrs_capacity, model, def->attr, def->n_attr);
}

/* The value for output `name`, usually the i-th entry (maps have no order). */
static const char *return_text(const Tensorflow__FunctionDef *def, const struct tare_map *texts, size_t i,
                               const char *name) {
    if (i < def->n_ret && strcmp(def->ret[i]->key, name) == 0) return def->ret[i]->value;
    return tare_map_get(texts, name);
}

static tare_status import_returns(struct tare_graph *graph, const Tensorflow__FunctionDef *def) {
    struct tare_map texts = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < def->n_ret && status == TARE_OK; i++)
        if (!tare_map_get(&texts, def->ret[i]->key) && !tare_map_set(&texts, def->ret[i]->key, def->ret[i]->value))
            status = TARE_NO_MEMORY;
    for (size_t r = 0; r < graph->n_returns && status == TARE_OK; r++) {
        const struct tare_return *ret = &graph->returns[r];
        const char *text = return_text(def, &texts, r, ret->name);
        struct tare_edge edge = ret->edge;
        if (text)
            status = tare_import_fault(faults_of(graph), tare_import_function_edge(&edge, graph, text), "%s/ret %s",
                                       graph->name, ret->name);
        else
            status = tare_import_fault(faults_of(graph), TARE_FAIL(TARE_CORRUPT, "no ret for output %s", ret->name),
                                       "%s", graph->name);
        tare_graph_set_return(graph, r, edge);
        if (text) status = tare_error_prefix(status, "return %s", ret->name);
    }
    tare_map_free(&texts);
    return status;
}

static tare_status import_control_returns(struct tare_graph *graph, const Tensorflow__FunctionDef *def) {
    struct tare_attr_pool *pool = graph->model->pool;
    graph->control_returns = TARE_NEW_ARRAY(&graph->model->arena, struct tare_control_return, def->n_control_ret + 1);
    if (!graph->control_returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < def->n_control_ret; i++) {
        struct tare_node *node = tare_graph_find(graph, def->control_ret[i]->value);
        const char *key = pool ? tare_attr_pool_text(pool, def->control_ret[i]->key) : def->control_ret[i]->key;
        if (!key) return TARE_NO_MEMORY;
        if (!node) {
            TARE_TRY(
                tare_import_fault(pool ? pool->faults : NULL,
                                  TARE_FAIL(TARE_CORRUPT, "control_ret %s names no node", def->control_ret[i]->value),
                                  "%s", graph->name));
            continue;
        }
        graph->control_returns[graph->n_control_returns++] = (struct tare_control_return){ key, node };
    }
    return TARE_OK;
}

static tare_status define_function(struct tare_graph *graph, const Tensorflow__FunctionDef *def,
                                   const struct tare_node_defs *nodes) {
    TARE_TRY(import_body(graph, nodes, true));
    TARE_TRY(import_returns(graph, def));
    TARE_TRY(import_control_returns(graph, def));
    if (graph->model->pool) tare_map_free(&graph->by_name); /* only passes look up nodes of functions by name */
    return TARE_OK;
}

/* ---- all functions and the main graph ---- */

static tare_status import_functions(struct tare_graph_model *model, const struct tare_saved_model *source,
                                    struct tare_arena *scratch) {
    size_t n_functions = tare_import_function_count(source);
    Tensorflow__FunctionDef *def;
    struct tare_node_defs nodes;
    tare_status status;
    for (size_t i = 0; i < n_functions; i++) {
        TARE_TRY(tare_import_function(&def, &nodes, scratch, source, i));
        status = declare_function(model, def);
        if (status != TARE_OK && source->faults) {
            source->faults->no_graph = true;
            TARE_TRY(tare_import_fault(source->faults, status, "library"));
            return TARE_FAIL(TARE_CORRUPT, "an error of a function");
        }
        TARE_TRY(tare_error_prefix(status, "function %s", def->signature ? def->signature->name : "?"));
    }
    for (size_t i = 0; i < n_functions; i++) {
        TARE_TRY(tare_import_function(&def, &nodes, scratch, source, i));
        TARE_TRY(tare_error_prefix(define_function(model->functions[i], def, &nodes), "function %s",
                                   model->functions[i]->name));
    }
    return TARE_OK;
}

tare_status tare_import_graphs(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const struct tare_node_defs nodes = tare_node_defs_of_graph(source->meta->graph_def, source->wire);
    struct tare_arena scratch = { 0 };
    tare_status status = import_functions(model, source, &scratch);
    tare_arena_free(&scratch);
    TARE_TRY(status);
    TARE_TRY(import_body(model->main, &nodes, false));
    if (source->faults && source->faults->count) {
        source->faults->no_graph = true;
        return TARE_FAIL(TARE_CORRUPT, "%zu errors of nodes", source->faults->count);
    }
    TARE_TRY(tare_import_unknown_types(model));
    return tare_model_check_recursion(model);
}
