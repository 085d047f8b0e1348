#include "convert/passes/split_blocks.h"
#include "convert/passes/copies.h"
#include "graph/emit.h"
#include "graph/op.h"

#include <string.h>

enum { MOST_ENTRIES = 64 }; /* of a block */

/* XlaDynamicSlice of the stack, a Reshape without its first axis, and what takes an entry of that. */
struct block {
    struct tare_node *slice, *reshape;
    const struct tare_tensor *stack, *sizes;
    struct tare_node *takers[MOST_ENTRIES];
    int64_t entries[MOST_ENTRIES]; /* that they take */
    size_t n_takers;
};

static bool is_only_use(struct tare_edge edge) {
    return tare_graph_count_uses(edge.node->graph, edge, NULL) == 1;
}

static bool find_slice(struct block *block, struct tare_node *slice) {
    if (slice->dead || !tare_node_is(slice, "XlaDynamicSlice")) return false;
    const struct tare_tensor *stack = tare_edge_constant(slice->inputs[0]),
                             *sizes = tare_edge_constant(slice->inputs[2]);
    if (!stack || stack->splat || !tare_is_worth_copying(stack) || stack->shape.rank < 3 || !sizes ||
        sizes->elements != stack->shape.rank || !is_only_use(slice->inputs[0]))
        return false;
    for (int i = 0; i < stack->shape.rank; i++)
        if (tare_tensor_get_i64(sizes, i) != (i ? stack->shape.dims[i] : 1)) return false;
    *block = (struct block){ .slice = slice, .stack = stack, .sizes = sizes };
    return stack->shape.dims[1] > 1 && stack->shape.dims[1] <= MOST_ENTRIES;
}

static bool find_reshape(struct block *block) {
    const struct tare_edge chosen = { block->slice, 0 };
    if (!is_only_use(chosen)) return false;
    const struct tare_use *use = tare_edge_first_use(chosen);
    if (!use->user || use->input != 0 || !tare_node_is(use->user, "Reshape")) return false;
    block->reshape = use->user;
    const struct tare_tensor *shape = tare_edge_constant(block->reshape->inputs[1]);
    const int rank = block->stack->shape.rank;
    if (!shape || shape->elements != rank - 1) return false;
    for (int i = 1; i < rank; i++)
        if (tare_tensor_get_i64(shape, i - 1) != block->stack->shape.dims[i]) return false;
    return true;
}

/* Whether a StridedSlice takes one entry of the first axis, and the others whole. */
static bool takes_entry(int64_t *entry, const struct tare_node *node, const struct tare_shape *stack) {
    static const char *const masks[] = { "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                         "shrink_axis_mask" };
    const struct tare_tensor *bounds[3];
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        if (tare_node_int(node, masks[i], 0)) return false;
    for (size_t k = 0; k < 3; k++) {
        bounds[k] = tare_edge_constant(node->inputs[k + 1]);
        if (!bounds[k] || bounds[k]->elements != stack->rank - 1) return false;
    }
    *entry = tare_tensor_get_i64(bounds[0], 0);
    for (int i = 0; i < stack->rank - 1; i++) {
        const int64_t first = i ? 0 : *entry, last = i ? stack->dims[i + 1] : *entry + 1;
        if (tare_tensor_get_i64(bounds[0], i) != first || tare_tensor_get_i64(bounds[1], i) != last ||
            tare_tensor_get_i64(bounds[2], i) != 1)
            return false;
    }
    return *entry >= 0 && *entry < stack->dims[1];
}

static bool find_takers(struct block *block) {
    const struct tare_edge entries = { block->reshape, 0 };
    const size_t uses = tare_graph_count_uses(block->reshape->graph, entries, NULL); /* makes the lists */
    for (const struct tare_use *use = tare_edge_first_use(entries); use; use = tare_edge_next_use(use)) {
        if (!use->user || block->n_takers == MOST_ENTRIES || use->input != 0 ||
            !tare_node_is(use->user, "StridedSlice"))
            return false;
        if (!takes_entry(&block->entries[block->n_takers], use->user, &block->stack->shape)) return false;
        block->takers[block->n_takers++] = use->user;
    }
    return block->n_takers > 0 && block->n_takers == uses;
}

/* The entries `entry` of all blocks: [n, 1, …]. */
static tare_status entries_of(struct tare_tensor *out, const struct tare_tensor *stack, int64_t entry) {
    struct tare_shape shape = stack->shape;
    shape.dims[1] = 1;
    TARE_TRY(tare_tensor_new(out, stack->dtype, &shape));
    const size_t size = tare_tensor_bytes(out) / (size_t)shape.dims[0];
    for (int64_t i = 0; i < shape.dims[0]; i++)
        memcpy((char *)out->data + (size_t)i * size,
               (const char *)stack->data + (size_t)(i * stack->shape.dims[1] + entry) * size, size);
    return TARE_OK;
}

/* The entry of the current block, chosen from a stack of its own; of one block: the entry itself. */
static struct tare_edge chosen_entry(struct tare_emit *emit, const struct block *block, int64_t entry) {
    struct tare_shape one = block->stack->shape;
    struct tare_tensor stack = { 0 }, sizes = { 0 };
    tare_status status = entries_of(&stack, block->stack, entry);
    if (status == TARE_OK) status = tare_tensor_copy(&sizes, block->sizes);
    if (status == TARE_OK) tare_tensor_set_i64(&sizes, 1, 1);
    if (emit->status == TARE_OK) emit->status = status;
    struct tare_edge chosen = tare_emit_const(emit, "entries", &stack);
    if (one.dims[0] > 1) {
        const struct tare_edge inputs[] = { chosen, block->slice->inputs[1], tare_emit_const(emit, "sizes", &sizes) };
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, block->stack->dtype },
                                                { "Tindices", TARE_EMIT_TYPE, block->sizes->dtype },
                                                { 0 } };
        chosen = tare_emit_node(emit, "XlaDynamicSlice", "entry", inputs, 3, attrs);
    }
    tare_tensor_reset(&stack);
    tare_tensor_reset(&sizes);
    one.dims[1] = 1;
    memmove(one.dims, one.dims + 1, (size_t)(one.rank - 1) * sizeof *one.dims);
    one.rank--;
    return tare_emit_reshape(emit, "one", chosen, &one);
}

static tare_status split(const struct block *block) {
    struct tare_edge made[MOST_ENTRIES] = { { 0 } };
    for (size_t i = 0; i < block->n_takers; i++) {
        struct tare_node *taker = block->takers[i];
        struct tare_edge *own = &made[block->entries[i]];
        struct tare_emit emit = { .graph = taker->graph, .prefix = taker->name };
        if (!own->node) *own = chosen_entry(&emit, block, block->entries[i]);
        TARE_TRY(emit.status);
        tare_graph_replace_uses(taker->graph, (struct tare_edge){ taker, 0 }, *own, NULL);
        tare_node_remove(taker);
    }
    tare_node_remove(block->reshape);
    tare_node_remove(block->slice);
    return TARE_OK;
}

tare_status tare_split_blocks(struct tare_graph *graph, size_t *changes) {
    const size_t n_nodes = graph->n_nodes;
    for (size_t i = 0; i < n_nodes; i++) {
        struct block block;
        if (!find_slice(&block, graph->nodes[i]) || !find_reshape(&block) || !find_takers(&block)) continue;
        TARE_TRY(split(&block));
        ++*changes;
    }
    return TARE_OK;
}
