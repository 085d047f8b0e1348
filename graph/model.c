/* The model: functions by name, signatures, kept tensors, and walks over the call graph. */
#include "graph/model.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/stack.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

struct tare_graph_model *tare_model_new(const struct tare_op_registry *ops) {
    struct tare_graph_model *model = tare_calloc(1, sizeof *model);
    if (!model) return NULL;
    model->main = TARE_NEW(&model->arena, struct tare_graph);
    if (!model->main) {
        tare_model_free(model);
        return NULL;
    }
    model->ops = ops;
    model->main->model = model;
    model->main->name = "";
    return model;
}

void tare_graph_free_maps(struct tare_graph *graph) {
    tare_map_free(&graph->by_name);
    tare_map_free(&graph->suffixes);
}

void tare_model_free(struct tare_graph_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->n_tensors; i++)
        tare_tensor_reset(&model->tensors[i]);
    for (size_t i = 0; i < model->n_variables; i++)
        tare_tensor_reset(&model->variables[i].value);
    for (size_t i = 0; i < model->n_tables; i++) {
        tare_tensor_reset(&model->tables[i].keys);
        tare_tensor_reset(&model->tables[i].values);
    }
    for (size_t i = 0; i < model->n_functions; i++)
        tare_graph_free_maps(model->functions[i]);
    if (model->main) tare_graph_free_maps(model->main);
    tare_model_forget_signature_uses(model);
    tare_map_free(&model->functions_by_name);
    tare_map_free(&model->unknown_outputs);
    tare_ops_free(model->custom_ops);
    if (model->release) model->release(model->release_arg);
    tare_arena_free(&model->outputs);
    tare_arena_free(&model->names);
    tare_arena_free(&model->nodes);
    tare_arena_free(&model->arena);
    tare_free(model);
}

struct tare_graph *tare_model_add_function(struct tare_graph_model *model, const char *name) {
    struct tare_graph *graph;
    if (tare_model_find_function(model, name)) {
        TARE_FAIL(TARE_INVALID_ARGUMENT, "two functions named %s", name);
        return NULL;
    }
    if (model->n_functions == model->functions_capacity) {
        size_t extra = model->n_functions + 16;
        struct tare_graph **grown =
            tare_arena_extend(&model->arena, model->functions, model->n_functions, extra, sizeof *grown);
        if (!grown) return NULL;
        model->functions = grown;
        model->functions_capacity = model->n_functions + extra;
    }
    graph = TARE_NEW(&model->arena, struct tare_graph);
    if (!graph) return NULL;
    graph->model = model;
    graph->number = ++model->n_numbered;
    graph->name = tare_arena_strdup(&model->arena, name);
    if (!graph->name || !tare_map_set(&model->functions_by_name, graph->name, graph)) return NULL;
    model->functions[model->n_functions++] = graph;
    return graph;
}

struct tare_graph *tare_model_find_function(const struct tare_graph_model *model, const char *name) {
    return tare_map_get(&model->functions_by_name, name);
}

struct tare_graph *tare_model_function_of(const struct tare_graph_model *model, const struct tare_func *func) {
    struct tare_graph *graph = func->graph;
    if (graph && graph->name == func->name && graph->model == model && !graph->removed) return graph;
    return tare_model_find_function(model, func->name);
}

const char *tare_model_unused_name(struct tare_graph_model *model, const char *stem) {
    const char *name = tare_arena_strdup(&model->arena, stem);
    for (int k = 1; name && tare_model_find_function(model, name); k++)
        name = tare_arena_printf(&model->arena, "%s_%d", stem, k);
    return name;
}

struct tare_signature *tare_model_find_signature(const struct tare_graph_model *model, const char *key) {
    for (size_t i = 0; i < model->n_signatures; i++)
        if (strcmp(model->signatures[i].key, key) == 0) return &model->signatures[i];
    return NULL;
}

/* The array of kept tensors may move; the tensors that attributes point to are arena copies that share the buffer. */
struct tare_tensor *tare_model_keep_tensor(struct tare_graph_model *model, const struct tare_tensor *tensor) {
    struct tare_tensor *view;
    if (model->n_tensors == model->tensors_capacity) {
        size_t extra = model->n_tensors + 64;
        struct tare_tensor *grown =
            tare_arena_extend(&model->arena, model->tensors, model->n_tensors, extra, sizeof *grown);
        if (!grown) return NULL;
        model->tensors = grown;
        model->tensors_capacity = model->n_tensors + extra;
    }
    view = TARE_NEW(&model->arena, struct tare_tensor);
    if (!view) return NULL;
    tare_tensor_share(&model->tensors[model->n_tensors++], tensor);
    *view = *tensor;
    return view;
}

tare_status tare_node_each_function(const struct tare_node *node,
                                    tare_status (*fn)(void *arg, const struct tare_node *node,
                                                      struct tare_graph *callee),
                                    void *arg) {
    const struct tare_graph_model *model = node->graph->model;
    struct tare_graph *callee = node->def ? NULL : tare_model_find_function(model, node->op);
    TARE_TRY(tare_control_check());
    TARE_TRY(tare_stack_check()); /* analyses follow calls by recursion */
    if (callee) TARE_TRY(fn(arg, node, callee));
    if (node->has_no_functions) return TARE_OK;
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct tare_attr *attr = &node->attrs[i];
        if (attr->kind != TARE_ATTR_FUNC) continue;
        for (size_t k = 0; k < attr->count; k++) {
            callee = tare_model_function_of(model, &attr->items[k].func);
            if (callee) TARE_TRY(fn(arg, node, callee));
        }
    }
    return TARE_OK;
}

/* A function that the walk has reached. */
struct recursion_state {
    bool on_path;
    size_t height; /* functions in the longest chain of calls from it on */
};

/* Depth-first walk of the call graph; `path` is the chain of callers. */
struct recursion_walk {
    struct tare_arena arena;
    struct tare_map states; /* by name: struct recursion_state */
    const struct tare_graph **path;
    size_t depth, height; /* height: of the callees of the last function on the path, so far */
};

static tare_status report_recursion(const struct recursion_walk *walk, size_t first) {
    char text[512];
    size_t used = 0;
    for (size_t i = first; i < walk->depth && used < sizeof text - 1; i++) {
        int n = snprintf(text + used, sizeof text - used, "%s calls ", walk->path[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    text[sizeof text - 1] = '\0';
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "recursive function %s (%s%s)", walk->path[first]->name, text,
                     walk->path[first]->name);
}

static tare_status check_height(size_t height) {
    if (height <= TARE_MOST_NESTED_CALLS) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep (more than %d calls)", TARE_MOST_NESTED_CALLS);
}

static tare_status walk_calls(void *arg, const struct tare_node *node, struct tare_graph *callee);

static tare_status walk_function(struct recursion_walk *walk, struct recursion_state *state, struct tare_graph *graph) {
    const size_t height_of_others = walk->height;
    TARE_TRY(check_height(walk->depth + 1)); /* bounds the stack on a hostile file */
    state->on_path = true;
    walk->path[walk->depth++] = graph;
    walk->height = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        TARE_TRY(tare_node_each_function(graph->nodes[i], walk_calls, walk));
    walk->depth--;
    state->on_path = false;
    state->height = walk->height + 1;
    walk->height = height_of_others;
    return check_height(state->height); /* also where the callees were reached before this function */
}

static tare_status walk_calls(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct recursion_walk *walk = arg;
    struct recursion_state *state = tare_map_get(&walk->states, callee->name);
    (void)node;
    for (size_t i = 0; state && state->on_path && i < walk->depth; i++)
        if (walk->path[i] == callee) return report_recursion(walk, i);
    if (!state) {
        state = TARE_NEW(&walk->arena, struct recursion_state);
        if (!state || !tare_map_set(&walk->states, callee->name, state)) return TARE_NO_MEMORY;
        TARE_TRY(walk_function(walk, state, callee));
    }
    if (walk->height < state->height) walk->height = state->height;
    return TARE_OK;
}

tare_status tare_model_check_recursion(const struct tare_graph_model *model) {
    struct recursion_walk walk = { 0 };
    tare_status status = TARE_OK;
    walk.path = tare_calloc(TARE_MOST_NESTED_CALLS, sizeof *walk.path);
    if (!walk.path) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        status = walk_calls(&walk, NULL, model->functions[i]);
    tare_map_free(&walk.states);
    tare_arena_free(&walk.arena);
    tare_free(walk.path);
    return status;
}

tare_status tare_model_add_stand_in(struct tare_graph_model *model, struct tare_node *node, const char *original) {
    if (node->stand_in > 0) {
        model->stand_ins[node->stand_in - 1].original = original;
        return TARE_OK;
    }
    if (model->n_stand_ins == UINT32_MAX) return TARE_NO_MEMORY;
    struct tare_stand_in *grown = tare_arena_append(&model->arena, model->stand_ins, model->n_stand_ins, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[model->n_stand_ins++] = (struct tare_stand_in){ node, original };
    node->stand_in = (uint32_t)model->n_stand_ins;
    model->stand_ins = grown;
    return TARE_OK;
}
