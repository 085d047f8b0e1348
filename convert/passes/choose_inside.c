/* A weight that a loop or a branch receives is a formula of constants and of numbers of entries: slices, conversions,
 * scales. The formula is copied into the function, and only the numbers are passed. */
#include "convert/passes/choose_inside.h"
#include "base/alloc.h"
#include "convert/passes/copies.h"
#include "graph/graphs.h"
#include "interpreter/inference/model_shapes.h"
#include "quant/layer.h"
#include "quant/selection/selection.h"

enum { DEEPEST = 24, MOST_NUMBERS = 8 };

static const char *const keepers[] = { "Identity",  "Reshape", "Squeeze",     "ExpandDims",
                                       "Transpose", "Cast",    "BroadcastTo", NULL };
static const char *const choices[] = { "Slice", "StridedSlice", "XlaDynamicSlice", "Gather", "GatherV2", NULL };
static const char *const scales[] = { "Mul", "RealDiv", "Div", "Sub", "AddV2", NULL };

/* ---- formulas ---- */

struct formula {
    struct tare_edge numbers[MOST_NUMBERS];
    size_t n_numbers;
    bool chooses;
};

/* The place of a number; formula->n_numbers: it has none. */
static size_t place_of(const struct formula *formula, struct tare_edge number) {
    size_t place = 0;
    while (place < formula->n_numbers && !tare_quant_same_number(formula->numbers[place], number))
        place++;
    return place;
}

/* A number, or a vector that packs some. */
static bool add_numbers(struct formula *formula, struct tare_edge edge, int depth) {
    if (tare_edge_constant(edge)) return true;
    if (!tare_dtype_is_integer(tare_edge_dtype(edge))) return false;
    if (depth == 0 && tare_node_is(edge.node, "Pack")) {
        for (size_t i = 0; i < edge.node->n_inputs; i++)
            if (!add_numbers(formula, edge.node->inputs[i], depth + 1)) return false;
        return true;
    }
    if (place_of(formula, edge) < formula->n_numbers) return true;
    if (formula->n_numbers == MOST_NUMBERS) return false;
    formula->numbers[formula->n_numbers++] = edge;
    return true;
}

/* False: the edge is something else, or depends on other values. */
static bool read_formula(struct formula *formula, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    if (tare_edge_constant(edge)) return true;
    if (depth == DEEPEST || edge.index != 0 || tare_node_is_arg(node) || node->n_controls || !node->n_inputs)
        return false;
    const bool is_choice = tare_op_is_one_of(node->op, choices), scales_it = tare_op_is_one_of(node->op, scales);
    if (!is_choice && !scales_it && !tare_op_is_one_of(node->op, keepers)) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_edge input = node->inputs[i];
        if (i == 0 || scales_it ? read_formula(formula, input, depth + 1) : tare_edge_constant(input) != NULL) continue;
        if (!is_choice || i == 0 || !add_numbers(formula, input, 0)) return false;
    }
    formula->chooses |= is_choice;
    return true;
}

/* The number of a formula among the arguments of the function; its own constants. */
static struct tare_edge copy_formula(tare_status *status, struct tare_graph *function, struct tare_edge edge,
                                     const struct formula *formula, struct tare_node *const *args) {
    const struct tare_edge nothing = { NULL, 0 };
    const struct tare_tensor *value = tare_edge_constant(edge);
    const size_t place = place_of(formula, edge);
    struct tare_node *copy;
    if (place < formula->n_numbers) return (struct tare_edge){ args[place], 0 };
    copy = value ? tare_graph_add_const(function, edge.node->name, value)
                 : tare_graph_add(function, edge.node->op, edge.node->name);
    if (!copy) *status = TARE_NO_MEMORY;
    if (value || *status != TARE_OK) return copy ? (struct tare_edge){ copy, 0 } : nothing;
    for (size_t i = 0; i < edge.node->n_inputs && *status == TARE_OK; i++) {
        const struct tare_edge input = copy_formula(status, function, edge.node->inputs[i], formula, args);
        if (*status == TARE_OK) *status = tare_node_add_input(copy, input);
    }
    if (*status == TARE_OK) *status = tare_node_copy_attrs(copy, edge.node);
    if (*status == TARE_OK) *status = tare_node_resolve(copy);
    return (struct tare_edge){ copy, 0 };
}

/* ---- uses ---- */

/* Whether a product multiplies by the edge, in this function or in one that it is passed to. */
static tare_status is_multiplied(bool *out, struct tare_arena *arena, struct tare_edge edge, int depth) {
    (void)tare_graph_count_uses(edge.node->graph, edge, NULL); /* makes the lists */
    if (depth == DEEPEST) return TARE_OK;
    for (const struct tare_use *use = tare_edge_first_use(edge); use && !*out; use = tare_edge_next_use(use)) {
        struct tare_node *user = use->user;
        struct tare_call_site site;
        if (!user || user->dead) continue;
        *out = tare_quant_multiplies(user);
        const bool follows =
            tare_op_is_one_of(user->op, scales) ||
            (use->input == 0 && (tare_op_is_one_of(user->op, keepers) || tare_op_is_one_of(user->op, choices)));
        if (follows) TARE_TRY(is_multiplied(out, arena, (struct tare_edge){ user, 0 }, depth + 1));
        TARE_TRY(tare_call_site(&site, arena, user));
        for (size_t c = 0; c < site.n_callees && use->input >= site.first && !*out; c++)
            if (use->input - site.first < site.callees[c]->n_args)
                TARE_TRY(is_multiplied(
                    out, arena, (struct tare_edge){ site.callees[c]->args[use->input - site.first], 0 }, depth + 1));
    }
    return TARE_OK;
}

tare_status tare_count_callers(size_t *callers, const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    struct tare_arena arena = { 0 };
    tare_status status = TARE_OK;
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(model, g);
        for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++) {
            struct tare_call_site site = { .n_callees = 0 };
            if (!graph->nodes[i]->dead) status = tare_call_site(&site, &arena, graph->nodes[i]);
            for (size_t c = 0; c < site.n_callees; c++)
                *callers += site.callees[c] == function;
        }
    }
    tare_arena_free(&arena);
    return status;
}

/* Whether no other node calls the functions of the site, so that they may get another argument. */
static tare_status owns_callees(bool *out, const struct tare_call_site *site) {
    *out = true;
    for (size_t c = 0; c < site->n_callees && *out; c++) {
        size_t callers = 0;
        TARE_TRY(tare_count_callers(&callers, site->callees[c]));
        *out = callers == 1;
    }
    return TARE_OK;
}

/* ---- passing ---- */

static const char *types_of(const struct tare_call_site *site) {
    return site->kind == TARE_CALL_LOOP ? "T" : "Tin";
}

static tare_status add_type(struct tare_node *node, const char *name, int dtype) {
    const struct tare_attr *types = tare_node_list(node, name);
    const size_t count = types ? types->count : 0;
    int *dtypes = tare_malloc((count + 1) * sizeof *dtypes);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        dtypes[i] = types->items[i].type;
    dtypes[count] = dtype;
    const tare_status status = tare_node_set_type_list(node, name, dtypes, count + 1);
    tare_free(dtypes);
    return status;
}

tare_status tare_pass_value(struct tare_node *node, const struct tare_call_site *site, const char *name,
                            struct tare_edge value) {
    const int dtype = tare_edge_dtype(value);
    TARE_TRY(add_type(node, types_of(site), dtype));
    TARE_TRY(tare_node_add_input(node, value));
    for (size_t c = 0; c < site->n_callees; c++) {
        struct tare_graph *callee = site->callees[c];
        struct tare_node *arg = tare_graph_add_arg(callee, name, dtype);
        if (!arg) return TARE_NO_MEMORY;
        if (site->kind == TARE_CALL_LOOP && c == 1) {
            const char *next = tare_arena_printf(&callee->model->arena, "%s_of_next", name);
            if (!next) return TARE_NO_MEMORY;
            TARE_TRY(tare_graph_add_return(callee, next, dtype, (struct tare_edge){ arg, 0 }));
        }
        TARE_TRY(tare_graph_drop_arg_shapes(callee));
    }
    tare_node_remove_attr(node, "output_shapes");
    tare_node_remove_attr(node, "_output_shapes");
    return tare_node_resolve(node);
}

/* Whether argument k has the same value in every iteration of the loop. */
static bool is_kept(const struct tare_call_site *site, size_t k) {
    const struct tare_graph *body = site->callees[site->n_callees - 1];
    if (site->kind != TARE_CALL_LOOP) return true;
    return k < body->n_returns && body->returns[k].edge.node == body->args[k];
}

/* The number of the argument by which the functions get a value: that of the same value, or a new one. */
static tare_status find_argument(size_t *out, struct tare_node *node, struct tare_call_site *site,
                                 struct tare_edge value) {
    for (*out = 0; *out < site->n_args; ++*out)
        if (is_kept(site, *out) && tare_quant_same_number(node->inputs[site->first + *out], value)) return TARE_OK;
    site->n_args++;
    return tare_pass_value(node, site, "part_number", value);
}

static tare_status choose(struct tare_node *node, struct tare_call_site *site, size_t k) {
    struct formula formula = { .n_numbers = 0 };
    const struct tare_edge weight = node->inputs[site->first + k];
    size_t places[MOST_NUMBERS];
    if (!read_formula(&formula, weight, 0)) return TARE_OK;
    for (size_t i = 0; i < formula.n_numbers; i++)
        TARE_TRY(find_argument(&places[i], node, site, formula.numbers[i]));
    if (site->kind == TARE_CALL_LOOP)
        tare_graph_replace_uses(node->graph, (struct tare_edge){ node, (int)k }, weight, NULL);
    for (size_t c = site->kind == TARE_CALL_LOOP; c < site->n_callees; c++) {
        struct tare_graph *callee = site->callees[c];
        const struct tare_edge arg = { callee->args[k], 0 };
        struct tare_node *args[MOST_NUMBERS];
        tare_status status = TARE_OK;
        if (tare_graph_count_uses(callee, arg, NULL) == (site->kind == TARE_CALL_LOOP)) continue;
        for (size_t i = 0; i < formula.n_numbers; i++)
            args[i] = callee->args[places[i]];
        const struct tare_edge inside = copy_formula(&status, callee, weight, &formula, args);
        TARE_TRY(status);
        tare_graph_replace_uses(callee, arg, inside, NULL);
        if (site->kind == TARE_CALL_LOOP) tare_graph_set_return(callee, k, arg);
    }
    return TARE_OK;
}

/* ---- candidates ---- */

struct search {
    struct tare_arena arena;
    struct tare_graph_model *model;
    struct tare_model_shapes *shapes; /* NULL until a formula is found */
    struct found {
        struct tare_node *node;
        size_t k;
        struct found *next;
    } * first, **last;
};

/* Whether quantization can follow the formula of a weight to its stack. */
static tare_status is_weight(bool *out, struct search *search, struct tare_edge edge) {
    enum { LEAST_ELEMENTS = 64 };
    struct formula formula = { .n_numbers = 0 };
    struct tare_quant_selection *selection;
    int64_t elements = 0;
    *out = false;
    if (!read_formula(&formula, edge, 0) || !formula.chooses || !formula.n_numbers) return TARE_OK;
    if (!search->shapes) TARE_TRY(tare_model_shapes_new(&search->shapes, search->model));
    TARE_TRY(tare_quant_find_selection(&selection, &search->arena, edge, search->shapes));
    if (!selection || selection->index_rank || selection->n_factors || selection->operand.rank < 2) return TARE_OK;
    TARE_TRY(tare_shape_elements(&elements, &selection->operand));
    *out = elements >= LEAST_ELEMENTS;
    return TARE_OK;
}

static tare_status find_at(struct search *search, struct tare_node *node) {
    struct tare_call_site site;
    bool owned = false;
    TARE_TRY(tare_call_site(&site, &search->arena, node));
    if (site.kind != TARE_CALL_LOOP && site.kind != TARE_CALL_BRANCH) return TARE_OK;
    for (size_t k = 0; k < site.n_args; k++) {
        bool found, multiplied = false;
        TARE_TRY(is_weight(&found, search, node->inputs[site.first + k]));
        if (!found || !is_kept(&site, k)) continue;
        if (!owned) TARE_TRY(owns_callees(&owned, &site));
        if (!owned) return TARE_OK;
        for (size_t c = 0; c < site.n_callees && !multiplied; c++)
            if (k < site.callees[c]->n_args)
                TARE_TRY(
                    is_multiplied(&multiplied, &search->arena, (struct tare_edge){ site.callees[c]->args[k], 0 }, 0));
        if (!multiplied) continue;
        struct found *one = TARE_NEW(&search->arena, struct found);
        if (!one) return TARE_NO_MEMORY;
        *one = (struct found){ node, k, NULL };
        *search->last = one;
        search->last = &one->next;
    }
    return TARE_OK;
}

static tare_status find_all(struct search *search) {
    for (size_t g = 0; g <= search->model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(search->model, g);
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(find_at(search, graph->nodes[i]));
    }
    return TARE_OK;
}

tare_status tare_choose_inside(struct tare_graph_model *model, size_t *changes) {
    struct search search = { .model = model };
    struct tare_call_site site;
    tare_status status;
    search.last = &search.first;
    status = find_all(&search);
    for (const struct found *one = search.first; one && status == TARE_OK; one = one->next, ++*changes) {
        status = tare_call_site(&site, &search.arena, one->node);
        if (status == TARE_OK) status = choose(one->node, &site, one->k);
    }
    tare_model_shapes_free(search.shapes);
    tare_arena_free(&search.arena);
    return status;
}
