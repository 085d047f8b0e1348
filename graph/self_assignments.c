/* Following assigned values back to the variables that they were read from. */
#include "graph/self_assignments.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/flags.h"
#include "graph/op.h"

#include <string.h>

enum { LONGEST_WAY = 256, DEEPEST_CALL = 16, MOST_STEPS = 4096 };

static bool is_assignment(const struct tare_node *node) {
    return !node->dead && tare_node_is(node, "AssignVariableOp") && node->n_inputs == 2;
}

/* Whether an op passes each input on as the output of that number. */
static bool passes_on(const struct tare_node *node) {
    return tare_node_is(node, "Identity") || tare_node_is(node, "IdentityN");
}

/* The edge that `edge` passes on, in the same graph: through Identity and IdentityN, and through calls of functions
 * that return an argument unchanged. */
static tare_status origin_of(struct tare_edge *edge, struct tare_arena *arena, int depth) {
    for (int steps = 0; steps < LONGEST_WAY && !tare_node_is_arg(edge->node); steps++) {
        struct tare_node *node = edge->node;
        struct tare_call_site site;
        struct tare_edge inside;
        if (passes_on(node)) {
            *edge = node->inputs[edge->index];
            continue;
        }
        TARE_TRY(tare_call_site(&site, arena, node));
        if (site.kind != TARE_CALL_PLAIN || depth == DEEPEST_CALL || (size_t)edge->index >= site.callees[0]->n_returns)
            return TARE_OK;
        inside = site.callees[0]->returns[edge->index].edge;
        TARE_TRY(origin_of(&inside, arena, depth + 1));
        if (!tare_node_is_arg(inside.node) || site.first + inside.node->position >= node->n_inputs) return TARE_OK;
        *edge = node->inputs[site.first + inside.node->position];
    }
    return TARE_OK;
}

/* ---- what is recognized ---- */

static bool reads(const struct tare_node *node, const struct tare_bindings *bindings,
                  const struct tare_variable *variable) {
    return tare_node_is(node, "ReadVariableOp") && tare_bindings_variable(bindings, node->inputs[0], NULL) == variable;
}

/* Whether an assignment is one of those that are looked for. */
typedef tare_status recognize(bool *out, struct tare_arena *arena, const struct tare_bindings *bindings,
                              const struct tare_variable *variable, const struct tare_node *assignment);

/* The variable gets its own value. */
static tare_status is_own_value(bool *out, struct tare_arena *arena, const struct tare_bindings *bindings,
                                const struct tare_variable *variable, const struct tare_node *assignment) {
    struct tare_edge value = assignment->inputs[1];
    TARE_TRY(origin_of(&value, arena, 0));
    *out = reads(value.node, bindings, variable);
    return TARE_OK;
}

/* Walks over all that a value is computed from. */
struct sources {
    struct tare_arena *arena;
    const struct tare_bindings *bindings;
    const struct tare_variable *variable;
    int steps;
    bool others; /* something else than the variable and constants, or the walk is too long */
};

/* A call that is being followed: arguments of its function are its inputs. */
struct inside {
    const struct inside *outer;
    const struct tare_node *call;
    size_t first;
    int depth;
};

static tare_status walk(struct sources *s, struct tare_edge edge, const struct inside *call) {
    const struct tare_node *node = edge.node;
    struct tare_call_site site;
    if (s->others || ++s->steps > MOST_STEPS) return s->others = true, TARE_OK;
    if (tare_node_is_arg(node)) {
        if (!call || call->first + node->position >= call->call->n_inputs) return s->others = true, TARE_OK;
        return walk(s, call->call->inputs[call->first + node->position], call->outer);
    }
    if (tare_node_is(node, "Const") || reads(node, s->bindings, s->variable)) return TARE_OK;
    if (passes_on(node)) return walk(s, node->inputs[edge.index], call);
    TARE_TRY(tare_call_site(&site, s->arena, node));
    if (site.kind == TARE_CALL_PLAIN) {
        const struct inside next = { call, node, site.first, call ? call->depth + 1 : 1 };
        if (next.depth > DEEPEST_CALL || (size_t)edge.index >= site.callees[0]->n_returns)
            return s->others = true, TARE_OK;
        return walk(s, site.callees[0]->returns[edge.index].edge, &next);
    }
    if (site.kind != TARE_CALL_NONE || !node->n_inputs || !node->def || !node->def->row ||
        tare_node_has_flag(node, TARE_OP_WRITES | TARE_OP_STATEFUL))
        return s->others = true, TARE_OK;
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(walk(s, node->inputs[i], call));
    return TARE_OK;
}

/* The state of a seed generator, as Keras has it, gets its successor. */
static tare_status is_next_seed(bool *out, struct tare_arena *arena, const struct tare_bindings *bindings,
                                const struct tare_variable *variable, const struct tare_node *assignment) {
    struct sources s = { .arena = arena, .bindings = bindings, .variable = variable };
    *out = false;
    if (!variable->shared_name || !strstr(variable->shared_name, "seed_generator_state")) return TARE_OK;
    TARE_TRY(walk(&s, assignment->inputs[1], NULL));
    *out = !s.others;
    return TARE_OK;
}

/* ---- all assignments ---- */

struct finder {
    recognize *recognizes;
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_bindings *bindings;
    bool *live;                /* functions that signatures or aliases reach */
    struct tare_node **found;  /* assignments */
    struct tare_variable **of; /* their variables */
    size_t count;
    bool *written; /* by variable: otherwise, too */
};

static size_t number_of(const struct finder *f, const struct tare_variable *variable) {
    return (size_t)(variable - f->model->variables);
}

static void note_write(struct finder *f, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_variable *variable;
        if (tare_dtype_base(tare_edge_dtype(node->inputs[i])) != TARE_DT_RESOURCE) continue;
        variable = tare_bindings_variable(f->bindings, node->inputs[i], NULL);
        if (variable)
            f->written[number_of(f, variable)] = true;
        else
            for (size_t v = 0; v < f->model->n_variables; v++)
                f->written[v] |= tare_bindings_is_mixed(f->bindings, &f->model->variables[v]);
    }
}

static tare_status visit(struct finder *f, struct tare_node *node) {
    struct tare_variable *own = NULL;
    bool is_found = false;
    struct tare_node **found;
    struct tare_variable **of;
    if (node->dead || !tare_node_has_flag(node, TARE_OP_WRITES)) return TARE_OK;
    if (tare_node_has_flag(node, TARE_OP_CONTROL)) return TARE_OK; /* the functions that it calls are visited */
    if (is_assignment(node)) own = tare_bindings_variable(f->bindings, node->inputs[0], NULL);
    if (own) TARE_TRY(f->recognizes(&is_found, &f->arena, f->bindings, own, node));
    if (!is_found) return note_write(f, node), TARE_OK;
    found = tare_arena_append(&f->arena, f->found, f->count, sizeof *found);
    of = tare_arena_append(&f->arena, f->of, f->count, sizeof *of);
    if (!found || !of) return TARE_NO_MEMORY;
    found[f->count] = node;
    of[f->count++] = own;
    f->found = found;
    f->of = of;
    return TARE_OK;
}

static tare_status find(struct finder *f) {
    const struct tare_graph_model *model = f->model;
    f->written = TARE_NEW_ARRAY(&f->arena, bool, model->n_variables + 1);
    if (!f->written) return TARE_NO_MEMORY;
    TARE_TRY(tare_model_reachable_functions(&f->live, &f->arena, model, true));
    TARE_TRY(tare_bindings_new(&f->bindings, model));
    for (size_t g = 0; g < model->n_functions; g++)
        for (size_t i = 0; f->live[g] && i < model->functions[g]->n_nodes; i++)
            TARE_TRY(visit(f, model->functions[g]->nodes[i]));
    return TARE_OK;
}

static tare_status become_no_op(struct tare_node *node) {
    const bool both[] = { true, true };
    tare_node_remove_inputs(node, 0, both, 2);
    while (node->n_attrs)
        tare_node_remove_attr(node, node->attrs[0].name);
    node->op = "NoOp";
    node->def = tare_ops_find(node->graph->model->ops, node->op);
    return tare_node_resolve(node);
}

static bool has_assignments(const struct tare_graph_model *model) {
    for (size_t g = 0; g < model->n_functions; g++)
        for (size_t i = 0; i < model->functions[g]->n_nodes; i++)
            if (is_assignment(model->functions[g]->nodes[i])) return true;
    return false;
}

/* Removes the assignments that `recognizes` finds, and calls `note` (NULL: nothing) for each. */
static tare_status remove_assignments(struct tare_graph_model *model, recognize *recognizes,
                                      tare_status (*note)(void *arg, const struct tare_variable *variable), void *arg) {
    struct finder f = { .recognizes = recognizes, .model = model };
    tare_status status;
    if (!model->n_variables || !has_assignments(model)) return TARE_OK;
    status = find(&f);
    for (size_t i = 0; i < f.count && status == TARE_OK; i++) {
        if (f.written[number_of(&f, f.of[i])]) continue;
        status = become_no_op(f.found[i]);
        if (status == TARE_OK && note) status = note(arg, f.of[i]);
    }
    tare_bindings_free(f.bindings);
    tare_arena_free(&f.arena);
    return status;
}

static tare_status count_one(void *arg, const struct tare_variable *variable) {
    (void)variable;
    ++*(size_t *)arg;
    return TARE_OK;
}

tare_status tare_model_remove_self_assignments(struct tare_graph_model *model, size_t *removed) {
    return remove_assignments(model, is_own_value, removed ? count_one : NULL, removed);
}

static tare_status note_seed(void *arg, const struct tare_variable *variable) {
    struct tare_dropped_seeds *out = arg;
    if (!out->count++) out->first = variable->shared_name;
    return TARE_OK;
}

tare_status tare_model_drop_seed_states(struct tare_dropped_seeds *out, struct tare_graph_model *model) {
    *out = (struct tare_dropped_seeds){ 0 };
    return remove_assignments(model, is_next_seed, note_seed, out);
}
