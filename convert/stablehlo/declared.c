/* Declared types of values against inferred shapes. */
#include "convert/stablehlo/declared.h"

#include "base/tensor/dtype.h"
#include "interpreter/inference/infer.h"

struct declaration {
    struct tare_edge edge;
    const struct tare_shlo_type *type;
    const struct tare_shlo_op *op; /* NULL: an argument of the function */
    size_t index;                  /* of the result */
};

struct tare_declared_graph {
    const struct tare_graph *graph;
    struct declaration *items;
    size_t count;
    struct tare_declared_graph *next; /* callers come after the functions that they call */
};

/* Of unknown rank for more dimensions than a tensor has, which fails elsewhere. */
static struct tare_shape shape_of(const struct tare_shlo_type *type) {
    struct tare_shape shape = tare_shape_unknown();
    if (type->rank > TARE_MAX_RANK) return shape;
    shape.rank = (int)type->rank;
    for (size_t i = 0; i < type->rank; i++)
        shape.dims[i] = type->dims[i] == TARE_SHLO_DYNAMIC ? TARE_UNKNOWN_DIM : type->dims[i];
    return shape;
}

/* ---- declaring ---- */

static struct tare_declared_graph *graph_of(struct tare_declarations *d, const struct tare_graph *graph) {
    struct tare_declared_graph *found = tare_map_get_n(&d->by_graph, (const char *)&graph, sizeof graph);
    if (found) return found;
    found = TARE_NEW(d->arena, struct tare_declared_graph);
    if (!found) return NULL;
    found->graph = graph;
    if (!tare_map_set_n(&d->by_graph, (const char *)&found->graph, sizeof found->graph, found)) return NULL;
    found->next = d->first;
    d->first = found;
    return found;
}

tare_status tare_declare(struct tare_declarations *d, struct tare_edge edge, const struct tare_shlo_type *type,
                         const struct tare_shlo_op *op, size_t index) {
    struct tare_declared_graph *graph;
    struct declaration *grown;
    if (type->kind != TARE_SHLO_TENSOR || !edge.node) return TARE_OK;
    if (tare_edge_dtype(edge) != tare_shlo_dtype(type))
        return TARE_FAIL(TARE_CORRUPT, "result %zu is %s by its operands and attributes (declared as %s)", index,
                         tare_dtype_name(tare_edge_dtype(edge)), tare_dtype_name(tare_shlo_dtype(type)));
    graph = graph_of(d, edge.node->graph);
    grown = graph ? tare_arena_append(d->arena, graph->items, graph->count, sizeof *grown) : NULL;
    if (!grown) return TARE_NO_MEMORY;
    graph->items = grown;
    graph->items[graph->count++] = (struct declaration){ .edge = edge, .type = type, .op = op, .index = index };
    return TARE_OK;
}

/* ---- checking ---- */

/* By position; arguments without a declaration are of unknown shape. */
static struct tare_shape *argument_shapes(struct tare_arena *arena, const struct tare_declared_graph *d) {
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, d->graph->n_args + 1);
    for (size_t i = 0; shapes && i < d->graph->n_args; i++)
        shapes[i] = tare_shape_unknown();
    for (size_t i = 0; shapes && i < d->count; i++)
        if (!d->items[i].op) shapes[d->items[i].edge.node->position] = shape_of(d->items[i].type);
    return shapes;
}

static tare_status check(const struct declaration *declared, struct tare_shape *const *shapes) {
    char computed[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    const struct tare_shape wanted = shape_of(declared->type);
    const struct tare_edge edge = declared->edge;
    if (!declared->op || tare_node_is_arg(edge.node) || edge.node->dead) return TARE_OK;
    const struct tare_shape *shape = &shapes[edge.node->position][edge.index];
    if (tare_shape_compatible(shape, &wanted)) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT,
                     "op %s at byte %zu: result %zu has the shape %s by its operands and attributes (declared as %s)",
                     declared->op->name, declared->op->offset, declared->index, tare_shape_text(computed, shape),
                     tare_shape_text(expected, &wanted));
}

static tare_status check_graph(const struct tare_declared_graph *d, struct tare_inference *inference,
                               struct tare_arena *scratch) {
    const struct tare_shape *args = argument_shapes(scratch, d);
    struct tare_shape **shapes;
    if (!args) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes_with(inference, &shapes, scratch, d->graph, args, NULL));
    for (size_t i = 0; i < d->count; i++)
        TARE_TRY(check(&d->items[i], shapes));
    return TARE_OK;
}

tare_status tare_check_declarations(const struct tare_declarations *declarations) {
    struct tare_inference *inference = tare_inference_new();
    tare_status status = inference ? TARE_OK : TARE_NO_MEMORY;
    for (const struct tare_declared_graph *d = declarations->first; d && status == TARE_OK; d = d->next) {
        struct tare_arena scratch = { 0 };
        status = check_graph(d, inference, &scratch);
        tare_arena_free(&scratch);
    }
    tare_inference_free(inference);
    return status;
}

/* ---- operands ---- */

static bool may_be_scalar(const struct tare_shlo_op *op, size_t operand) {
    return (tare_shlo_op_is(op, "select") && operand == 0) || (tare_shlo_op_is(op, "clamp") && operand != 1);
}

tare_status tare_check_alike(const struct tare_shlo_op *op) {
    char found[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    if (!op->n_results || op->results[0].type->kind != TARE_SHLO_TENSOR) return TARE_OK;
    const struct tare_shape result = shape_of(op->results[0].type);
    for (size_t i = 0; i < op->n_operands; i++) {
        if (op->operands[i]->type->kind != TARE_SHLO_TENSOR) continue;
        const struct tare_shape shape = shape_of(op->operands[i]->type);
        if (tare_shape_compatible(&shape, &result) || (shape.rank == 0 && may_be_scalar(op, i))) continue;
        return TARE_FAIL(TARE_CORRUPT, "operand %zu has the shape %s (expected the result's, %s)", i,
                         tare_shape_text(found, &shape), tare_shape_text(expected, &result));
    }
    return TARE_OK;
}
