/* Moves constants into the functions that receive them as arguments: the weights of a loop, read outside and carried
 * through every iteration, become constants of its body; so do constants that all callers pass identically. A function
 * that receives different weights from its callers is copied for each. Quantization and constant folding then find the
 * constants where they are used, and the arguments are removed.
 *
 * The constant value of an argument is a fixed point over all call sites and, for loops, over the body's results.
 */
#include "convert/pass.h"
#include "base/alloc.h"
#include "convert/passes/copies.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "graph/gradients.h"
#include "graph/graphs.h"
#include "graph/op.h"

#include <string.h>

enum { SMALL = 1024 }; /* elements of constants that are compared by value */

/* What is known of one argument: nothing yet, one constant, or several values. Stored in the node's scratch pointer. */
struct value {
    const struct tare_node *constant;
    bool several;
};

struct localize {
    struct tare_graph_model *model;
    struct tare_arena arena;
    size_t *changes;
};

static struct value *value_of(const struct tare_node *arg) {
    return (struct value *)(uintptr_t)arg->edit;
}

/* Strings are not moved: a loader replaces the paths of asset files. */
static struct value resolve(struct tare_edge edge) {
    while (edge.node && strcmp(edge.node->op, "Identity") == 0 && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    if (edge.node && strcmp(edge.node->op, "Const") == 0 && tare_edge_dtype(edge) != TARE_DT_STRING)
        return (struct value){ edge.node, false };
    if (edge.node && tare_node_is_arg(edge.node) && edge.node->edit) return *value_of(edge.node);
    return (struct value){ NULL, true };
}

static bool same_constant(const struct tare_node *a, const struct tare_node *b) {
    const struct tare_tensor *x = a == b ? NULL : tare_node_tensor(a, "value"),
                             *y = x ? tare_node_tensor(b, "value") : NULL;
    if (a == b) return true;
    if (!x || !y || x->dtype != y->dtype || x->splat != y->splat || !tare_shape_equal(&x->shape, &y->shape))
        return false;
    if (x->data == y->data) return true;
    return tare_dtype_size(x->dtype) && x->elements < SMALL &&
           memcmp(x->data, y->data, (size_t)(x->splat ? 1 : x->elements) * tare_dtype_size(x->dtype)) == 0;
}

static bool meet(struct value *value, struct value other) {
    if (value->several || (!other.several && !other.constant)) return false;
    if (!other.several && !value->constant) {
        value->constant = other.constant;
        return true;
    }
    if (!other.several && same_constant(value->constant, other.constant)) return false;
    return value->several = true;
}

/* ---- the constant values of arguments ---- */

static void meet_all(const struct tare_graph *function, size_t count) {
    for (size_t i = 0; i < count && i < function->n_args; i++)
        value_of(function->args[i])->several = true;
}

/* Arguments that a caller of the SavedModel passes: all except those bound by the object graph. */
static tare_status open_values(struct localize *l) {
    const struct tare_graph_model *model = l->model;
    for (size_t f = 0; f < model->n_functions; f++) {
        struct tare_graph *function = model->functions[f];
        for (size_t i = 0; i < function->n_args; i++)
            if (!(function->args[i]->edit = TARE_NEW(&l->arena, struct value))) return TARE_NO_MEMORY;
    }
    for (size_t c = 0; c < model->n_concretes; c++) {
        const struct tare_concrete *concrete = &model->concretes[c];
        const size_t bound = concrete->n_bound < concrete->graph->n_args ? concrete->n_bound : concrete->graph->n_args;
        const size_t first = concrete->graph->n_args - bound;
        meet_all(concrete->graph, first);
        for (size_t i = 0; i < bound; i++) {
            struct value captured = { NULL, true };
            for (size_t o = 0; o < model->n_object_constants; o++)
                if (model->object_constants[o].object_id == concrete->bound[i])
                    captured = resolve((struct tare_edge){ model->object_constants[o].node, 0 });
            meet(value_of(concrete->graph->args[first + i]), captured);
        }
    }
    for (size_t i = 0; i < model->n_aliases; i++) {
        const struct tare_graph *function = tare_model_find_function(model, model->aliases[i].function);
        bool described = false;
        for (size_t c = 0; c < model->n_concretes; c++)
            described |= model->concretes[c].graph == function;
        if (function && !described) meet_all(function, function->n_args);
    }
    return TARE_OK;
}

static tare_status pass_site(const struct tare_node *node, bool *changed) {
    struct tare_arena scratch = { 0 };
    struct tare_call_site site;
    const struct tare_graph *body;
    tare_status status = tare_call_site(&site, &scratch, node);
    body = site.kind == TARE_CALL_LOOP && site.n_callees == 2 ? site.callees[1] : NULL;
    for (size_t c = 0; c < site.n_callees && status == TARE_OK; c++) {
        const struct tare_graph *callee = site.callees[c];
        for (size_t i = 0; i < callee->n_args; i++) {
            struct value *value = value_of(callee->args[i]);
            if (site.kind == TARE_CALL_OTHER || i >= site.n_args || !value) {
                *changed |= value && meet(value, (struct value){ NULL, true });
                continue;
            }
            *changed |= meet(value, resolve(node->inputs[site.first + i]));
            if (body && i < body->n_returns) *changed |= meet(value, resolve(body->returns[i].edge));
        }
    }
    tare_arena_free(&scratch);
    return status;
}

static tare_status settle(struct localize *l) {
    bool changed = true;
    TARE_TRY(open_values(l));
    while (changed) {
        changed = false;
        for (size_t g = 0; g <= l->model->n_functions; g++) {
            const struct tare_graph *graph = tare_model_graph(l->model, g);
            for (size_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i]->dead) TARE_TRY(pass_site(graph->nodes[i], &changed));
        }
    }
    return TARE_OK;
}

static void close_values(struct localize *l) {
    for (size_t f = 0; f < l->model->n_functions; f++)
        for (size_t i = 0; i < l->model->functions[f]->n_args; i++)
            l->model->functions[f]->args[i]->edit = NULL;
}

/* ---- constants into bodies ---- */

/* Nothing waits for a constant: a function that TensorFlow has frozen waits for its former reads, now arguments. */
static void drop_waiting(struct tare_graph *function, const struct tare_node *arg, size_t *changes) {
    for (size_t i = 0; i < function->n_nodes; i++) {
        struct tare_node *node = function->nodes[i];
        size_t kept = 0;
        for (size_t k = 0; k < node->n_controls && !node->dead; k++)
            if (node->controls[k] != arg) node->controls[kept++] = node->controls[k];
        if (node->dead || kept == node->n_controls) continue;
        node->control_set = NULL;
        *changes += node->n_controls - kept;
        node->n_controls = kept;
    }
}

/* A return of the argument itself is not changed: a loop still carries it. */
static tare_status localize_arg(struct localize *l, struct tare_graph *function, struct tare_node *arg, size_t index) {
    const struct value *value = value_of(arg);
    const struct tare_edge edge = { arg, 0 };
    const struct tare_tensor *tensor;
    struct tare_node *constant;
    size_t uses;
    bool handed_on;
    if (!value || value->several || !value->constant) return TARE_OK;
    drop_waiting(function, arg, l->changes);
    tensor = tare_node_tensor(value->constant, "value");
    handed_on = index < function->n_returns && function->returns[index].edge.node == arg;
    uses = tare_graph_count_uses(function, edge, NULL);
    if (!tensor || tensor->dtype != tare_edge_dtype(edge) || uses <= (size_t)handed_on) return TARE_OK;
    constant = tare_graph_add_const(function, arg->name, tensor);
    if (!constant) return TARE_NO_MEMORY;
    tare_graph_replace_uses(function, edge, (struct tare_edge){ constant, 0 }, NULL);
    if (handed_on) tare_graph_set_return(function, index, edge);
    ++*l->changes;
    return TARE_OK;
}

static tare_status localize_all(struct localize *l) {
    for (size_t f = 0; f < l->model->n_functions; f++) {
        struct tare_graph *function = l->model->functions[f];
        for (size_t i = 0; i < function->n_args; i++)
            TARE_TRY(localize_arg(l, function, function->args[i], i));
    }
    return TARE_OK;
}

/* ---- a copy for each caller ---- */

static bool is_weight(struct tare_edge edge) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    return value && tare_is_worth_copying(value);
}

/* A plain call that passes a weight to an argument with several values. */
static bool shares_callee(const struct tare_node *node) {
    const struct tare_graph *callee = tare_is_plain_call(node) ? tare_node_function(node, "f") : NULL;
    if (callee && tare_graph_keeps_gradients(callee)) return false;
    for (size_t i = 0; callee && i < node->n_inputs && i < callee->n_args; i++)
        if (is_weight(node->inputs[i]) && value_of(callee->args[i]) && value_of(callee->args[i])->several) return true;
    return false;
}

static tare_status copy_for_callers(struct localize *l, size_t *copies) {
    const size_t n_functions = l->model->n_functions;
    for (size_t g = 0; g <= n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(l->model, g);
        for (size_t i = 0; i < graph->n_nodes && *copies < TARE_MOST_COPIES; i++) {
            if (graph->nodes[i]->dead || !shares_callee(graph->nodes[i])) continue;
            TARE_TRY(tare_call_copy_function(graph->nodes[i]));
            ++*copies;
        }
    }
    return TARE_OK;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct localize l = { .model = model, .changes = changes };
    size_t copies = 0, before, removed = 0;
    tare_status status;
    do { /* weights that a function or its copy passes on are constants there only afterwards */
        before = copies;
        TARE_CHECK(settle(&l)); /* each copy has one caller */
        TARE_CHECK(localize_all(&l));
        TARE_CHECK(copy_for_callers(&l, &copies));
    } while (copies > before);
    TARE_CHECK(tare_model_remove_unused_args(&removed, model));
    *changes += copies;
done:
    close_values(&l);
    tare_arena_free(&l.arena);
    return status;
}

const struct tare_pass tare_pass_localize_constants = {
    .name = "localize_constants",
    .help = "move constants that are passed as arguments into functions, loops and branches",
    .run = run,
};
