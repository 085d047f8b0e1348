/* Products whose weight comes from a stack by ops that are not followed: the reason names the op, and the stack is no
 * table, which would have one scale for each entry. */
#include "base/arena.h"
#include "graph/op.h"
#include "quant/layers/weight.h"
#include "quant/selection/scaling.h"

enum { DEEPEST = 8, MOST_VISITED = 64, MOST_CHOOSERS = 4 };

struct search {
    const struct tare_bindings *bindings;
    const struct tare_node *choosers[MOST_CHOOSERS]; /* what chooses from stacks of matrices */
    int count;
    const struct tare_node *reshape; /* between the choice and the product */
    int budget;
};

/* Axes of more than one element. */
static int count_axes(const struct tare_shape *shape) {
    int count = 0;
    for (int i = 0; i < shape->rank; i++)
        count += shape->dims[i] != 1;
    return count;
}

/* The shape of what an op chooses from, a constant or a variable behind ops that repeat it or change its axes. */
static bool find_stack(struct tare_shape *shape, struct tare_edge edge, const struct tare_bindings *bindings) {
    static const char *const copies[] = { "Identity", "Reshape",    "Tile",      "BroadcastTo",
                                          "Cast",     "ExpandDims", "Transpose", NULL };
    struct tare_node *read;
    for (int depth = 0; depth < DEEPEST; depth++) {
        const struct tare_tensor *value = tare_edge_constant(edge);
        if (value) *shape = value->shape;
        if (value || tare_quant_constant_variable(&read, shape, edge, bindings)) return true;
        if (edge.index != 0 || !tare_op_is_one_of(edge.node->op, copies)) return false;
        edge = edge.node->inputs[0];
    }
    return false;
}

/* Whether an op chooses matrices: from a stack of three axes, or from fewer rows than elements in each if these are
 * reshaped. A table of vectors is a table. */
static bool chooses_matrices(const struct search *search, const struct tare_node *node) {
    static const char *const ops[] = { "Gather", "GatherV2",     "GatherNd",        "XlaGather",
                                       "Slice",  "StridedSlice", "XlaDynamicSlice", NULL };
    struct tare_shape shape;
    if (!tare_op_is_one_of(node->op, ops) || !find_stack(&shape, node->inputs[0], search->bindings)) return false;
    if (count_axes(&shape) > 2) return true;
    return search->reshape && shape.rank == 2 && shape.dims[0] < shape.dims[1];
}

/* Ops after which a value is no weight, but an activation. */
static bool ends(const struct tare_node *node) {
    static const char *const ops[] = { "Mean",  "Sum",  "Max",  "Min",     "Prod",       "ArgMax",
                                       "Shape", "Size", "Rank", "Softmax", "LogSoftmax", NULL };
    return tare_quant_multiplies(node) || tare_op_is_one_of(node->op, ops);
}

static void visit(struct search *search, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    const struct tare_node *reshape = search->reshape;
    if (search->count == MOST_CHOOSERS || depth == DEEPEST || search->budget-- <= 0 || tare_edge_constant(edge) ||
        ends(node))
        return;
    if (!tare_quant_takes_dtype(tare_edge_dtype(edge))) return;
    if (chooses_matrices(search, node)) {
        search->choosers[search->count++] = node;
        return;
    }
    if (tare_node_is(node, "Reshape")) search->reshape = node;
    for (size_t i = 0; i < node->n_inputs; i++)
        visit(search, node->inputs[i], depth + 1);
    search->reshape = reshape;
}

/* Finds the choices behind an operand of a product, the last one that has any. */
static struct tare_edge find_choosers(struct search *search, const struct tare_node *product,
                                      const struct tare_bindings *bindings) {
    struct tare_edge operand = { NULL, 0 };
    *search = (struct search){ .count = 0 };
    for (size_t i = product->n_inputs; i-- > 0 && !search->count;) {
        *search = (struct search){ .bindings = bindings, .budget = MOST_VISITED };
        operand = product->inputs[i];
        visit(search, operand, 0);
    }
    return operand;
}

static struct tare_quant_layer *layer_of(const struct tare_quant_layer_list *list, size_t first,
                                         const struct tare_node *node) {
    for (size_t i = first; i < list->count; i++)
        if (list->layers[i].op == node) return &list->layers[i];
    return NULL;
}

static tare_status refuse_product(struct tare_quant_layer *layer, struct tare_arena *arena, struct tare_edge operand,
                                  const struct tare_model_shapes *shapes) {
    const struct tare_node *obstacle = tare_quant_obstacle(arena, operand, shapes);
    const char *reason = "its weight comes from a stack in a form that cannot be followed";
    if (obstacle)
        reason = tare_arena_printf(arena, "its weight comes from a stack, and %s '%s' between them cannot be followed",
                                   obstacle->op, obstacle->name);
    if (!reason) return TARE_NO_MEMORY;
    if (layer->refused && obstacle) layer->refused = reason;
    if (!layer->no_weight) layer->no_weight = reason;
    return TARE_OK;
}

static tare_status refuse_table(struct tare_quant_layer *table, struct tare_arena *arena,
                                const struct tare_node *product) {
    if (!table || table->no_weight) return TARE_OK;
    table->no_weight = tare_arena_printf(
        arena,
        "its entries are weights of '%s', which needs scales for columns (a recipe rule quantizes it as a table)",
        product->name);
    return table->no_weight ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_quant_find_unfollowed(struct tare_quant_layer_list *list, size_t first, struct tare_arena *arena,
                                       const struct tare_graph *graph, const struct tare_model_shapes *shapes,
                                       const struct tare_bindings *bindings) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        struct tare_quant_layer *layer;
        struct tare_edge operand;
        struct search search;
        if (node->dead || !tare_quant_multiplies(node)) continue;
        layer = layer_of(list, first, node);
        if (layer && layer->weight) continue;
        operand = find_choosers(&search, node, bindings);
        if (layer && search.count) TARE_TRY(refuse_product(layer, arena, operand, shapes));
        for (int k = 0; k < search.count; k++)
            TARE_TRY(refuse_table(layer_of(list, first, search.choosers[k]), arena, node));
    }
    return TARE_OK;
}
