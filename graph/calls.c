/* Call sites, and the functions that signatures reach. */
#include "graph/calls.h"
#include "graph/gradients.h"
#include "graph/graph_table.h"
#include "base/alloc.h"
#include "base/control.h"

#include <string.h>

static enum tare_call_kind kind_of(const struct tare_node *node) {
    static const struct {
        const char *op;
        enum tare_call_kind kind;
    } kinds[] = {
        { "PartitionedCall", TARE_CALL_PLAIN },
        { "StatefulPartitionedCall", TARE_CALL_PLAIN },
        { "BatchFunction", TARE_CALL_PLAIN },
        { "TPUPartitionedCall", TARE_CALL_TPU },
        { "If", TARE_CALL_BRANCH },
        { "StatelessIf", TARE_CALL_BRANCH },
        { "Case", TARE_CALL_BRANCH },
        { "StatelessCase", TARE_CALL_BRANCH },
        { "While", TARE_CALL_LOOP },
        { "StatelessWhile", TARE_CALL_LOOP },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(node->op, kinds[i].op) == 0) return kinds[i].kind;
    return TARE_CALL_OTHER;
}

struct callee_list {
    struct tare_arena *arena;
    struct tare_call_site *site;
};

static tare_status add_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct callee_list *list = arg;
    struct tare_call_site *site = list->site;
    struct tare_graph **grown = tare_arena_append(list->arena, site->callees, site->n_callees, sizeof *site->callees);
    (void)node;
    if (!grown) return TARE_NO_MEMORY;
    grown[site->n_callees++] = callee;
    site->callees = grown;
    return TARE_OK;
}

/* The order of attributes in the file has no meaning; a loop's functions are looked up by name. */
static tare_status loop_callees(struct callee_list *list, const struct tare_node *node) {
    struct tare_graph *condition = tare_node_function(node, "cond"), *body = tare_node_function(node, "body");
    if (!condition || !body) return TARE_OK;
    TARE_TRY(add_callee(list, node, condition));
    return add_callee(list, node, body);
}

tare_status tare_call_site(struct tare_call_site *out, struct tare_arena *arena, const struct tare_node *node) {
    struct callee_list list = { arena, out };
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_node_each_function(node, add_callee, &list)); /* polls tare_control_check */
    if (out->n_callees) out->kind = node->def ? kind_of(node) : TARE_CALL_PLAIN;
    if (out->kind == TARE_CALL_LOOP) {
        out->n_callees = 0;
        TARE_TRY(loop_callees(&list, node));
    }
    if (!out->n_callees) {
        out->kind = TARE_CALL_NONE;
        return TARE_OK;
    }
    out->first = out->kind == TARE_CALL_BRANCH ? 1 : 0;
    out->n_args = node->n_inputs;
    if (out->kind == TARE_CALL_BRANCH || out->kind == TARE_CALL_TPU)
        out->n_args = node->n_inputs ? node->n_inputs - 1 : 0;
    if (out->kind == TARE_CALL_OTHER) out->n_args = 0;
    return TARE_OK;
}

tare_status tare_call_set_types(struct tare_node *call, const struct tare_graph *callee) {
    struct tare_arena *arena = &call->graph->model->arena;
    int *in = TARE_NEW_ARRAY(arena, int, callee->n_args + 1), *out = TARE_NEW_ARRAY(arena, int, callee->n_returns + 1);
    if (!in || !out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_args; i++)
        in[i] = callee->args[i]->output_dtypes[0];
    for (size_t i = 0; i < callee->n_returns; i++)
        out[i] = callee->returns[i].dtype;
    TARE_TRY(tare_node_set_type_list(call, "Tin", in, callee->n_args));
    return tare_node_set_type_list(call, "Tout", out, callee->n_returns);
}

/* ---- reachability ---- */

struct reach {
    const struct tare_graph_model *model;
    struct tare_graph_table live; /* -> graph */
    struct tare_graph **stack;
    size_t depth;
    bool with_gradients;
};

static tare_status reach_function(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct reach *reach = arg;
    (void)node;
    if (tare_graph_table_get(&reach->live, callee)) return TARE_OK;
    reach->stack[reach->depth++] = callee; /* at most once a function */
    return tare_graph_table_set(&reach->live, callee, callee) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status reach_named(struct reach *reach, const char *name) {
    struct tare_graph *graph = tare_model_find_function(reach->model, name);
    return graph ? reach_function(reach, NULL, graph) : TARE_OK;
}

/* Nodes of the main graph that others wait for. */
struct backward {
    bool *seen; /* by position */
    struct tare_node **stack;
    size_t depth;
};

static void need(struct backward *b, struct tare_node *node) {
    if (!node || node->dead || b->seen[node->position]) return;
    b->seen[node->position] = true;
    b->stack[b->depth++] = node;
}

static tare_status start_with_initializers(struct backward *b, struct tare_arena *arena,
                                           const struct tare_graph_model *model) {
    b->seen = TARE_NEW_ARRAY(arena, bool, model->main->n_nodes + 1);
    b->stack = TARE_NEW_ARRAY(arena, struct tare_node *, model->main->n_nodes + 1);
    b->depth = 0;
    if (!b->seen || !b->stack) return TARE_NO_MEMORY;
    need(b, model->init_node);
    for (size_t i = 0; i < model->n_table_inits; i++)
        need(b, model->table_inits[i]);
    return TARE_OK;
}

static void follow(struct backward *b) {
    while (b->depth) {
        const struct tare_node *node = b->stack[--b->depth];
        for (size_t i = 0; i < node->n_inputs; i++)
            need(b, node->inputs[i].node);
        for (size_t i = 0; i < node->n_controls; i++)
            need(b, node->controls[i]);
    }
}

tare_status tare_model_initialized_nodes(bool **out, struct tare_arena *arena, const struct tare_graph_model *model) {
    const struct tare_graph *main = model->main;
    struct backward b;
    *out = TARE_NEW_ARRAY(arena, bool, main->n_nodes + 1);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(start_with_initializers(&b, arena, model));
    follow(&b);
    for (size_t i = 0; i < main->n_nodes; i++) {
        const struct tare_node *node = main->nodes[i];
        const bool assigns = tare_node_is(node, "Assign") || tare_node_is(node, "AssignVariableOp");
        if (b.seen[i] && assigns && node->n_inputs) (*out)[node->inputs[0].node->position] = true;
    }
    return TARE_OK;
}

tare_status tare_model_served_nodes(bool **out, struct tare_arena *arena, const struct tare_graph_model *model) {
    struct backward b;
    TARE_TRY(start_with_initializers(&b, arena, model));
    for (size_t s = 0; s < model->n_signatures; s++) {
        const struct tare_signature *signature = &model->signatures[s];
        for (size_t i = 0; i < signature->n_outputs; i++)
            need(&b, signature->outputs[i].edge.node);
    }
    follow(&b);
    *out = b.seen;
    return TARE_OK;
}

static tare_status reach_main(struct reach *reach, struct tare_arena *arena) {
    const struct tare_graph *main = reach->model->main;
    bool *served;
    TARE_TRY(tare_model_served_nodes(&served, arena, reach->model));
    for (size_t i = 0; i < main->n_nodes; i++)
        if (served[i]) TARE_TRY(tare_node_each_function(main->nodes[i], reach_function, reach));
    return TARE_OK;
}

static tare_status reach_callees(struct reach *reach) {
    while (reach->depth) {
        const struct tare_graph *graph = reach->stack[--reach->depth];
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const struct tare_node *node = graph->nodes[i];
            struct tare_graph *gradient;
            if (node->dead) continue;
            TARE_TRY(tare_node_each_function(node, reach_function, reach));
            gradient = reach->with_gradients ? tare_node_gradient(node) : NULL;
            if (gradient) TARE_TRY(reach_function(reach, NULL, gradient));
        }
    }
    return TARE_OK;
}

bool tare_function_must_compile(const struct tare_graph *function) {
    const struct tare_attr *attr = tare_graph_find_attr(function, "_XlaMustCompile");
    return attr && attr->kind == TARE_ATTR_BOOL && attr->count && attr->items[0].b;
}

tare_status tare_function_is_compiled(bool *out, const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    struct reach reach = { .model = model };
    struct tare_arena arena = { 0 };
    tare_status status = TARE_OK;
    reach.stack = TARE_NEW_ARRAY(&arena, struct tare_graph *, model->n_functions + 1);
    if (!reach.stack) status = TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        if (tare_function_must_compile(model->functions[i])) status = reach_function(&reach, NULL, model->functions[i]);
    if (status == TARE_OK) status = reach_callees(&reach);
    *out = tare_graph_table_get(&reach.live, function);
    tare_graph_table_free(&reach.live);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_model_reachable_functions(bool **out, struct tare_arena *arena, const struct tare_graph_model *model,
                                           bool with_aliases) {
    struct reach reach = { .model = model, .with_gradients = with_aliases };
    bool *live = TARE_NEW_ARRAY(arena, bool, model->n_functions + 1);
    tare_status status = TARE_NO_MEMORY;
    reach.stack = TARE_NEW_ARRAY(arena, struct tare_graph *, model->n_functions + 1);
    if (!live || !reach.stack) goto done;
    TARE_CHECK(reach_main(&reach, arena));
    for (size_t i = 0; i < model->n_aliases && with_aliases; i++)
        TARE_CHECK(reach_named(&reach, model->aliases[i].function));
    for (size_t i = 0; i < model->n_concretes && with_aliases; i++)
        if (model->concretes[i].keep) TARE_CHECK(reach_function(&reach, NULL, model->concretes[i].graph));
    TARE_CHECK(reach_callees(&reach));
    for (size_t i = 0; i < model->n_functions; i++)
        live[i] = tare_graph_table_get(&reach.live, model->functions[i]);
    *out = live;
done:
    tare_graph_table_free(&reach.live);
    return status;
}

void tare_model_keep_method(struct tare_graph_model *model, const struct tare_graph *function) {
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == function) model->concretes[i].keep = true;
}

void tare_model_remove_functions(struct tare_graph_model *model, const bool *live) {
    size_t kept = 0, concretes = 0, aliases = 0;
    struct tare_map by_name = { 0 };
    for (size_t i = 0; i < model->n_functions; i++) {
        if (live[i]) {
            model->functions[kept++] = model->functions[i];
            continue;
        }
        model->functions[i]->removed = true;
        tare_graph_free_maps(model->functions[i]);
    }
    model->n_functions = kept;
    for (size_t i = 0; i < kept; i++)
        if (!tare_map_set(&by_name, model->functions[i]->name, model->functions[i])) break;
    if (by_name.count == kept) { /* out of memory: the old map only knows too many */
        tare_map_free(&model->functions_by_name);
        model->functions_by_name = by_name;
    }
    for (size_t i = 0; i < model->n_concretes; i++)
        if (tare_model_find_function(model, model->concretes[i].graph->name))
            model->concretes[concretes++] = model->concretes[i];
    model->n_concretes = concretes;
    for (size_t i = 0; i < model->n_aliases; i++)
        if (tare_model_find_function(model, model->aliases[i].function)) model->aliases[aliases++] = model->aliases[i];
    model->n_aliases = aliases;
}
