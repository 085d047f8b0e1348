/* Convolutions with batch groups (XlaConvV2 with batch_group_count, as the gradients of JAX's convolutions have) become
 * convolutions with feature groups, which are quantizable layers: the groups move from the batch to the channels.
 *
 *   [groups * n, …, channels]  ->  [groups, n, …, channels]  ->  [n, …, groups, channels]  ->  [n, …, groups *
 * channels]
 *
 * The kernel is unchanged: output channel o of group g sees the channels of group g in both forms. Elements are only
 * moved: results are bit-identical. */
#include "convert/pass.h"

#include "base/arena.h"
#include "graph/emit.h"
#include "interpreter/inference/model_shapes.h"
#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

enum { FEATURE_GROUPS = 6, CONV_INPUTS };

struct conv {
    struct tare_node *node;
    struct tare_shape input;
    struct tare_conv_dims dims;
    int64_t groups;
};

/* Fills `c`; false if the node is another op, or its form cannot be changed: a Reshape infers one dimension at most. */
static bool describe(struct conv *c, struct tare_node *node, const struct tare_model_shapes *shapes) {
    int unknown = 0;
    if (node->dead || strcmp(node->op, "XlaConvV2") != 0 || node->n_inputs != CONV_INPUTS) return false;
    c->node = node;
    c->groups = tare_node_int(node, "batch_group_count", 1);
    c->input = tare_model_shape(shapes, node->inputs[0]);
    const struct tare_tensor *features = tare_edge_constant(node->inputs[FEATURE_GROUPS]);
    if (c->groups < 2 || c->input.rank < 3 || c->input.rank > 5 || !features || features->elements != 1 ||
        tare_tensor_get_i64(features, 0) != 1)
        return false;
    if (tare_conv_dims_read(&c->dims, node, "dimension_numbers", c->input.rank, TARE_CONV_XLA) != TARE_OK) {
        tare_error_clear(); /* reported when the node runs */
        return false;
    }
    for (int i = 0; i < c->input.rank; i++)
        unknown += c->input.dims[i] < 0;
    const int64_t batch = c->input.dims[c->dims.input_batch], channels = c->input.dims[c->dims.input_feature];
    return unknown <= 1 && channels >= 0 && (batch < 0 || batch % c->groups == 0) && channels <= INT32_MAX / c->groups;
}

static struct tare_edge move_groups(struct tare_emit *emit, const struct conv *c) {
    const struct tare_edge x = c->node->inputs[0];
    const int batch = c->dims.input_batch, feature = c->dims.input_feature;
    struct tare_shape split = { .rank = c->input.rank + 1 }, joined = c->input;
    int32_t order[TARE_MAX_RANK];
    int n = 0;
    joined.dims[feature] *= c->groups;
    if (joined.dims[batch] > 0) joined.dims[batch] /= c->groups;
    for (int i = 0; i < c->input.rank; i++) { /* the axes of the operand; after the batch they are one further */
        const int axis = i + (i >= batch);
        split.dims[axis] = i == batch ? joined.dims[i] : c->input.dims[i];
        if (i == feature) order[n++] = batch;
        order[n++] = axis;
    }
    split.dims[batch] = c->groups;
    const struct tare_edge inputs[] = { tare_emit_reshape(emit, "batch_groups", x, &split),
                                        tare_emit_vector(emit, "batch_groups/order", n, order) };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(x) },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    return tare_emit_reshape(emit, "feature_groups", tare_emit_node(emit, "Transpose", "moved", inputs, 2, attrs),
                             &joined);
}

static tare_status rewrite(const struct conv *c) {
    struct tare_emit emit = { .graph = c->node->graph, .prefix = c->node->name };
    const int dtype = tare_edge_dtype(c->node->inputs[FEATURE_GROUPS]);
    const struct tare_edge x = move_groups(&emit, c);
    const struct tare_edge groups = tare_emit_number(&emit, "feature_group_count", dtype, c->groups);
    TARE_TRY(emit.status);
    tare_node_set_input(c->node, 0, x);
    tare_node_set_input(c->node, FEATURE_GROUPS, groups);
    TARE_TRY(tare_node_set_int(c->node, "batch_group_count", 1));
    return tare_node_resolve(c->node);
}

/* Appends the convolutions of a graph; false without memory. */
static bool collect(struct conv **convs, size_t *count, struct tare_arena *arena, struct tare_graph *graph,
                    const struct tare_model_shapes *shapes) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct conv c;
        if (!describe(&c, graph->nodes[i], shapes)) continue;
        *convs = tare_arena_append(arena, *convs, *count, sizeof **convs);
        if (!*convs) return false;
        (*convs)[(*count)++] = c;
    }
    return true;
}

static bool has_batch_groups(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, "XlaConvV2") == 0 &&
            tare_node_int(graph->nodes[i], "batch_group_count", 1) > 1)
            return true;
    return false;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tare_arena arena = { 0 };
    struct tare_model_shapes *shapes = NULL;
    struct conv *convs = NULL;
    size_t count = 0;
    bool found = has_batch_groups(model->main);
    for (size_t i = 0; i < model->n_functions && !found; i++)
        found = has_batch_groups(model->functions[i]);
    if (!found) return TARE_OK; /* shapes are expensive */
    TARE_TRY(tare_model_shapes_new(&shapes, model));
    bool room = collect(&convs, &count, &arena, model->main, shapes);
    for (size_t i = 0; i < model->n_functions && room; i++)
        room = collect(&convs, &count, &arena, model->functions[i], shapes);
    tare_model_shapes_free(shapes);
    tare_status status = room ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = rewrite(&convs[i]);
    if (status == TARE_OK) *changes += count;
    tare_arena_free(&arena);
    return status;
}

const struct tare_pass tare_pass_split_batch_groups = {
    .name = "split_batch_groups",
    .help = "move the batch groups of convolutions to feature groups",
    .run = run,
};
