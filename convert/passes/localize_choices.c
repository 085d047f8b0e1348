/* Moves the choice of a layer's weight from a stack (jax.lax.scan) to the product that uses it, so that quantization
 * finds the stack where the product is:
 *
 * - A stack of which an iteration uses several entries is split: lax.scan(unroll=2).
 * - A function that is called with weights that its callers chose is inlined: the two layers of an iteration of
 *   lax.scan(unroll=2). So is one that several callers call with entries that folding has taken from a stack, the
 * layers of lax.scan(unroll=True): a copy for each would have its own masks and tables.
 * - A loop that carries a part of a stack through all its iterations gets the number of the part instead, and chooses
 * from the whole stack: lax.scan in lax.scan.
 * - A weight that an iteration computes from its entries is computed for all of them (tabulate_choices.h).
 * - A loop or a branch that multiplies by an entry that was chosen outside chooses it itself (choose_inside.h).
 */
#include "convert/pass.h"
#include "base/alloc.h"
#include "convert/passes/choose_inside.h"
#include "convert/passes/copies.h"
#include "convert/passes/split_blocks.h"
#include "convert/passes/tabulate_choices.h"
#include "graph/calls.h"
#include "graph/emit.h"
#include "graph/graphs.h"
#include "graph/inline.h"

#include <string.h>

enum { DEEPEST = 16 };

/* ---- calls with chosen weights ---- */

/* Whether an edge is an entry of a constant stack, through ops that keep its elements. */
static bool is_chosen_weight(struct tare_edge edge) {
    static const char *const copies[] = { "Identity", "Reshape", "Squeeze", "ExpandDims", "Transpose", "Cast", NULL };
    static const char *const choices[] = { "Slice", "StridedSlice", "XlaDynamicSlice", "Gather", "GatherV2", NULL };
    bool chooses = false;
    for (int depth = 0; depth < DEEPEST && edge.node && edge.node->n_inputs && edge.index == 0; depth++) {
        const bool is_choice = tare_op_is_one_of(edge.node->op, choices);
        if (!is_choice && !tare_op_is_one_of(edge.node->op, copies)) return false;
        chooses |= is_choice;
        edge = edge.node->inputs[0];
        const struct tare_tensor *stack = tare_edge_constant(edge);
        if (stack) return chooses && tare_is_worth_copying(stack);
    }
    return false;
}

/* Whether an edge is a weight of its own that the caller of a shared function passes. */
static tare_status is_own_weight(bool *out, struct tare_edge edge, const struct tare_graph *callee) {
    const struct tare_tensor *weight = tare_edge_constant(edge);
    size_t callers = 0;
    if (weight && tare_is_worth_copying(weight)) TARE_TRY(tare_count_callers(&callers, callee));
    *out = callers > 1;
    return TARE_OK;
}

/* The functions that a graph calls with such weights. */
struct callees {
    const struct tare_graph **list;
    size_t count;
};

static bool is_listed(void *arg, const struct tare_graph *callee) {
    const struct callees *callees = arg;
    for (size_t i = 0; i < callees->count; i++)
        if (callees->list[i] == callee) return true;
    return false;
}

static tare_status is_passed_weight(bool *out, struct tare_edge edge, const struct tare_graph *callee, bool chosen) {
    if (!chosen) return is_own_weight(out, edge, callee);
    *out = is_chosen_weight(edge);
    return TARE_OK;
}

static tare_status inline_calls(struct tare_arena *arena, struct tare_graph *graph, bool chosen, size_t *changes) {
    struct callees callees = { TARE_NEW_ARRAY(arena, const struct tare_graph *, graph->n_nodes + 1), 0 };
    size_t count = 0;
    if (!callees.list) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const struct tare_graph *callee =
            !node->dead && tare_is_plain_call(node) ? tare_node_function(node, "f") : NULL;
        for (size_t k = 0; callee && k < node->n_inputs && !is_listed(&callees, callee); k++) {
            bool passed;
            TARE_TRY(is_passed_weight(&passed, node->inputs[k], callee, chosen));
            if (passed) callees.list[callees.count++] = callee;
        }
    }
    if (callees.count) TARE_TRY(tare_function_inline_calls(&count, graph, is_listed, &callees));
    *changes += count;
    return TARE_OK;
}

/* ---- loops with parts of stacks ---- */

/* A part of a stack: the entry of its first axes. */
struct part {
    struct tare_edge stack, begin; /* of XlaDynamicSlice */
    int axes;                      /* of one entry */
    struct tare_shape shape;       /* of the part: the stack without them */
};

/* XlaDynamicSlice with one element of the first axes and all of the others, and a Reshape without the first. */
static bool find_part(struct part *part, struct tare_edge edge) {
    const struct tare_node *reshape = edge.node,
                           *slice = tare_node_is(reshape, "Reshape") ? reshape->inputs[0].node : NULL;
    if (!tare_node_is(slice, "XlaDynamicSlice")) return false;
    const struct tare_tensor *stack = tare_edge_constant(slice->inputs[0]),
                             *sizes = tare_edge_constant(slice->inputs[2]);
    const struct tare_tensor *shape = tare_edge_constant(reshape->inputs[1]);
    if (!stack || !sizes || !shape || sizes->elements != stack->shape.rank) return false;
    const int rank = stack->shape.rank, kept = (int)shape->elements;
    *part = (struct part){ .stack = slice->inputs[0], .begin = slice->inputs[1], .axes = rank - kept };
    if (part->axes < 1 || kept < 1) return false;
    part->shape.rank = kept;
    for (int i = 0; i < rank; i++) {
        const int64_t size = stack->shape.dims[i];
        if (tare_tensor_get_i64(sizes, i) != (i < part->axes ? 1 : size)) return false;
        if (i < part->axes) continue;
        part->shape.dims[i - part->axes] = size;
        if (tare_tensor_get_i64(shape, i - part->axes) != size) return false;
    }
    return true;
}

/* Whether the body chooses from the argument, carries it unchanged, and does nothing else with it. */
static bool only_chooses(const struct tare_graph *body, size_t index, int rank) {
    const struct tare_edge arg = { body->args[index], 0 };
    const struct tare_edge carried =
        index < body->n_returns ? body->returns[index].edge : (struct tare_edge){ NULL, 0 };
    size_t choices = 0;
    if (!tare_edge_equal(carried, arg)) return false;
    const size_t uses = tare_graph_count_uses(body, arg, NULL); /* makes the lists */
    for (const struct tare_use *use = tare_edge_first_use(arg); use; use = tare_edge_next_use(use)) {
        if (!use->user || use->user->dead) continue;
        const struct tare_tensor *sizes =
            tare_node_is(use->user, "XlaDynamicSlice") ? tare_edge_constant(use->user->inputs[2]) : NULL;
        if (use->input != 0 || !sizes || sizes->elements != rank) return false;
        choices++;
    }
    return choices > 0 && uses == choices + 1;
}

/* Element i of a vector, from the op that packs it where there is one. */
static struct tare_edge element_of(struct tare_emit *emit, struct tare_edge vector, int i, int dtype) {
    if (tare_node_is(vector.node, "Pack") && i < (int)vector.node->n_inputs) return vector.node->inputs[i];
    const struct tare_edge number = tare_emit_i32(emit, "part/number", i), axis = tare_emit_i32(emit, "part/axis", 0);
    const struct tare_edge inputs[] = { vector, number, axis };
    if (emit->status != TARE_OK) return vector;
    const struct tare_emit_attr attrs[] = { { "Tparams", TARE_EMIT_TYPE, tare_edge_dtype(vector) },
                                            { "Tindices", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "Taxis", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "batch_dims", TARE_EMIT_INT, 0 },
                                            { 0 } };
    const struct tare_edge element = tare_emit_node(emit, "GatherV2", "part/element", inputs, 3, attrs);
    return emit->status == TARE_OK ? tare_emit_cast(emit, "part/as", element, dtype) : element;
}

/* The numbers of the part, then the places of `begin`, as one vector of `count`. */
static struct tare_edge first_of(struct tare_emit *emit, struct tare_edge numbers, struct tare_edge begin, int axes,
                                 int count) {
    const int dtype = tare_edge_dtype(begin);
    struct tare_edge inputs[TARE_MAX_RANK];
    for (int i = 0; i < count; i++)
        inputs[i] = element_of(emit, i < axes ? numbers : begin, i < axes ? i : i - axes, dtype);
    const struct tare_emit_attr attrs[] = {
        { "T", TARE_EMIT_TYPE, dtype }, { "N", TARE_EMIT_INT, count }, { "axis", TARE_EMIT_INT, 0 }, { 0 }
    };
    return emit->status == TARE_OK ? tare_emit_node(emit, "Pack", "part/begin", inputs, (size_t)count, attrs) : begin;
}

/* A choice in the body from the whole stack: the numbers of the part, then its own. */
static tare_status choose_from_stack(struct tare_graph *body, struct tare_node *slice, struct tare_edge stack,
                                     struct tare_edge numbers, const struct part *part) {
    struct tare_emit emit = { .graph = body, .prefix = slice->name };
    const struct tare_tensor *own = tare_edge_constant(slice->inputs[2]);
    struct tare_shape sizes = { 0 }, shape = { 0 };
    int64_t list[TARE_MAX_RANK];
    for (int i = 0; i < part->axes; i++)
        list[sizes.rank++] = 1;
    for (int i = 0; i < (int)own->elements; i++)
        list[sizes.rank++] = shape.dims[shape.rank++] = tare_tensor_get_i64(own, i);
    const int dtype = tare_edge_dtype(slice->inputs[1]);
    const struct tare_shape vector = { .rank = 1, .dims = { sizes.rank } };
    const struct tare_edge begin = first_of(&emit, numbers, slice->inputs[1], part->axes, sizes.rank);
    struct tare_edge length = tare_emit_longs(&emit, "part/sizes", &vector, list);
    if (dtype != TARE_DT_INT64) length = tare_emit_cast(&emit, "part/sizes_as", length, dtype);
    const struct tare_edge inputs[] = { stack, begin, length };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(stack) },
                                            { "Tindices", TARE_EMIT_TYPE, dtype },
                                            { 0 } };
    const struct tare_edge chosen = tare_emit_node(&emit, "XlaDynamicSlice", "part/chosen", inputs, 3, attrs);
    const struct tare_edge result = tare_emit_reshape(&emit, "part/entry", chosen, &shape);
    TARE_TRY(emit.status);
    tare_graph_replace_uses(body, (struct tare_edge){ slice, 0 }, result, NULL);
    tare_node_remove(slice);
    return TARE_OK;
}

/* The numbers of the part, as a vector outside of the loop. */
static struct tare_edge numbers_of(struct tare_emit *emit, const struct part *part) {
    const struct tare_shape vector = { .rank = 1, .dims = { 1 } };
    const int32_t none = 0, count = part->axes;
    const struct tare_edge first = tare_emit_ints(emit, "part/first", &vector, &none);
    const struct tare_edge inputs[] = { part->begin, first, tare_emit_ints(emit, "part/count", &vector, &count) };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(part->begin) },
                                            { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    return tare_emit_node(emit, "Slice", "part/numbers", inputs, 3, attrs);
}

/* Loop input k, a part of a stack. */
static tare_status enter_loop(struct tare_node *loop, size_t k, const struct part *part, struct tare_graph *condition,
                              struct tare_graph *body) {
    const struct tare_call_site site = { .kind = TARE_CALL_LOOP,
                                         .callees = (struct tare_graph *[]){ condition, body },
                                         .n_callees = 2 };
    struct tare_emit emit = { .graph = loop->graph, .prefix = loop->name };
    struct tare_edge numbers = numbers_of(&emit, part);
    struct tare_node *slices[64];
    size_t count = 0;
    TARE_TRY(emit.status);
    tare_graph_replace_uses(loop->graph, (struct tare_edge){ loop, (int)k }, loop->inputs[k], NULL);
    TARE_TRY(tare_pass_value(loop, &site, "part_number", numbers));
    tare_node_set_input(loop, k, part->stack);
    for (const struct tare_use *use = tare_edge_first_use((struct tare_edge){ body->args[k], 0 }); use;
         use = tare_edge_next_use(use))
        if (use->user && !use->user->dead && count < sizeof slices / sizeof *slices) slices[count++] = use->user;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(choose_from_stack(body, slices[i], (struct tare_edge){ body->args[k], 0 },
                                   (struct tare_edge){ body->args[body->n_args - 1], 0 }, part));
    return TARE_OK;
}

static tare_status enter_loops(struct tare_graph *graph, size_t *changes) {
    const size_t n_nodes = graph->n_nodes;
    for (size_t i = 0; i < n_nodes; i++) {
        struct tare_node *loop = graph->nodes[i];
        if (loop->dead || (!tare_node_is(loop, "StatelessWhile") && !tare_node_is(loop, "While"))) continue;
        struct tare_graph *condition = tare_node_function(loop, "cond"), *body = tare_node_function(loop, "body");
        if (!condition || !body) continue;
        const size_t n_inputs = loop->n_inputs;
        size_t callers = 0;
        for (size_t k = 0; k < n_inputs && k < body->n_args && k < condition->n_args; k++) {
            struct part part;
            if (!find_part(&part, loop->inputs[k]) || !only_chooses(body, k, part.shape.rank)) continue;
            if (tare_graph_count_uses(condition, (struct tare_edge){ condition->args[k], 0 }, NULL)) continue;
            if (!callers) TARE_TRY(tare_count_callers(&callers, condition));
            if (callers == 1) TARE_TRY(tare_count_callers(&callers, body));
            if (callers != 2) break; /* another loop has one of the functions */
            TARE_TRY(enter_loop(loop, k, &part, condition, body));
            ++*changes;
        }
    }
    return TARE_OK;
}

/* ---- the pass ---- */

static tare_status run_once(struct tare_arena *arena, struct tare_graph_model *model, size_t *changes) {
    for (size_t g = 0; g <= model->n_functions; g++)
        TARE_TRY(tare_split_blocks(tare_model_graph(model, g), changes));
    for (size_t g = 0; g <= model->n_functions; g++)
        TARE_TRY(inline_calls(arena, tare_model_graph(model, g), true, changes));
    TARE_TRY(tare_tabulate_choices(model, changes));
    for (size_t g = 0; g <= model->n_functions; g++)
        TARE_TRY(enter_loops(tare_model_graph(model, g), changes));
    return tare_choose_inside(model, changes);
}

/* Stacks that folding made (a reshaped one) become constants of the loops first; so do those of inner loops, and
 * entries that need no choice, after each round. */
static tare_status run(struct tare_graph_model *model, size_t *changes) {
    size_t found, localized = 0;
    do {
        struct tare_arena arena = { 0 };
        tare_status status = TARE_OK;
        found = 0;
        for (size_t g = 0; g <= model->n_functions && status == TARE_OK; g++)
            status = inline_calls(&arena, tare_model_graph(model, g), false, &found);
        if (status == TARE_OK) status = tare_pass_localize_constants.run(model, &localized);
        if (status == TARE_OK) status = run_once(&arena, model, &found);
        tare_arena_free(&arena);
        if (status == TARE_OK && found) status = tare_pass_fold_constants.run(model, &localized);
        TARE_TRY(status);
        *changes += found;
    } while (found);
    return TARE_OK;
}

const struct tare_pass tare_pass_localize_choices = {
    .name = "localize_choices",
    .help = "choose the weights of layers in loops where they are used",
    .run = run,
};
