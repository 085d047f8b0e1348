/* Kinds of ops, and the groups that they form. */
#include "graph/flags.h"
#include "tpu/cost/groups.h"
#include "tpu/cost/rows.h"

#include <string.h>

/* ---- values ---- */

struct tare_shape tare_fused_shape(const struct tare_fused_graph *g, struct tare_edge edge) {
    struct tare_shape shape = tare_node_is_arg(edge.node)
                                  ? g->arg_shapes ? g->arg_shapes[edge.node->position] : tare_shape_unknown()
                                  : g->shapes[edge.node->position][edge.index];
    if (shape.rank < 0) shape = tare_shape_scalar();
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = i == 0 ? g->f->batch : 1;
    return shape;
}

double tare_fused_bytes(const struct tare_fused_graph *g, struct tare_edge edge) {
    const int dtype = tare_edge_dtype(edge);
    const struct tare_shape shape = tare_fused_shape(g, edge);
    double bytes = dtype == TARE_DT_RESOURCE || dtype == TARE_DT_VARIANT ? 0 : (double)tare_dtype_size(dtype);
    if (dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4) bytes /= 2;
    return bytes * tare_tpu_elements(&shape);
}

/* ---- kinds ---- */

static bool is_one_of(const char *op, const char *const *ops) {
    while (*ops && strcmp(op, *ops) != 0)
        ops++;
    return *ops != NULL;
}

/* Reading a variable is free, but its value is then read from memory. */
static bool is_view(const struct tare_node *node) {
    static const char *const ops[] = { "ExpandDims", "Squeeze", "Transpose", NULL };
    return (tare_tpu_op_is_free(node->op) || is_one_of(node->op, ops)) && node->n_inputs > 0 && node->output_dtypes &&
           node->n_outputs > 0 && tare_edge_dtype(node->inputs[0]) != TARE_DT_RESOURCE;
}

/* One value of each result of few of each input, at the same position: a bias and a batch normalization, too. */
bool tare_fused_is_elementwise(const struct tare_node *node) {
    static const char *const ops[] = { "BiasAdd", "Select", "SelectV2", NULL };
    if (is_one_of(node->op, ops) || strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0) return true;
    return tare_node_has_flag(node, TARE_OP_ELEMENTWISE);
}

enum tare_fused_kind tare_fused_kind_of(const struct tare_node *node) {
    static const char *const reductions[] = { "Mean", "Sum", "Max", "Min", "Prod", "EuclideanNorm", NULL };
    static const char *const softmaxes[] = { "Softmax", "LogSoftmax", NULL };
    static const char *const slices[] = { "Slice", "StridedSlice", "Split", "SplitV", "Unpack", NULL };
    static const char *const paddings[] = { "Pad", "PadV2", "XlaPad", NULL };
    static const char *const joints[] = { "ConcatV2", "Pack", "MirrorPad", NULL };
    static const char *const repeats[] = { "Tile",           "BroadcastTo",    "ResizeNearestNeighbor",
                                           "ResizeBilinear", "SpaceToDepth",   "DepthToSpace",
                                           "BatchToSpaceND", "SpaceToBatchND", NULL };
    static const char *const gathers[] = { "Gather", "GatherV2", "GatherNd", "ResourceGather", NULL };
    if (tare_fused_is_elementwise(node)) return TARE_FUSED_ELEMENTWISE;
    if (is_one_of(node->op, reductions)) return TARE_FUSED_REDUCTION;
    if (is_one_of(node->op, softmaxes)) return TARE_FUSED_SOFTMAX;
    if (is_one_of(node->op, slices)) return TARE_FUSED_SLICE;
    if (is_one_of(node->op, paddings)) return TARE_FUSED_PADDING;
    if (is_one_of(node->op, joints)) return TARE_FUSED_JOINT;
    if (is_one_of(node->op, repeats)) return TARE_FUSED_REPEAT;
    return is_one_of(node->op, gathers) ? TARE_FUSED_GATHER : TARE_FUSED_OTHER;
}

struct tare_edge tare_fused_source(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && is_view(edge.node))
        edge = edge.node->inputs[0];
    return edge;
}

bool tare_fused_reads_shape(const char *op) {
    static const char *const ops[] = { "Shape", "ShapeN", "Size", "Rank", NULL };
    return is_one_of(op, ops);
}

/* ---- groups ---- */

static bool multiplies(const struct tare_node *node) {
    return strstr(node->op, "Conv") || strstr(node->op, "MatMul") || strcmp(node->op, "XlaDotV2") == 0;
}

/* Sizes are known to the compiler, and what is computed from them alone. */
static bool computes_sizes(const struct tare_fused_graph *g, const struct tare_node *node) {
    static const char *const ops[] = { "Slice",  "StridedSlice", "ConcatV2", "Pack",  "Prod",
                                       "Unpack", "GatherV2",     "Fill",     "Range", NULL };
    bool is_known = is_one_of(node->op, ops);
    for (size_t i = 0; i < node->n_inputs; i++)
        is_known &= !tare_node_is_arg(node->inputs[i].node) && g->constant[node->inputs[i].node->position];
    return tare_fused_reads_shape(node->op) || is_known;
}

/* An elementwise op has as many results as what the group before it computes, or is not a part of it. Slices
 * and concatenations, which have many users, remain by themselves. */
static bool continues(const struct tare_fused_graph *g, const struct tare_node *node, struct tare_edge from) {
    const struct tare_shape before = tare_fused_shape(g, from);
    const struct tare_shape after = tare_fused_shape(g, (struct tare_edge){ (struct tare_node *)node, 0 });
    if (is_view(node)) return true;
    if (tare_fused_kind_of(g->leader[from.node->position]) == TARE_FUSED_SLICE) return false;
    if (tare_fused_kind_of(g->leader[from.node->position]) == TARE_FUSED_JOINT) return false;
    return tare_tpu_elements(&before) == tare_tpu_elements(&after);
}

/* Whether a node is computed from another group, as far as a look back over few nodes tells. What is of an earlier
 * rank is not. */
static bool depends_on(const struct tare_fused_graph *g, const struct tare_node *node, const struct tare_node *leader,
                       const size_t *rank, int *budget) {
    if (tare_node_is_arg(node) || g->constant[node->position]) return false;
    if (rank[node->position] < rank[leader->position]) return false;
    if (g->leader[node->position] == leader || --*budget < 0) return true;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (depends_on(g, node->inputs[i].node, leader, rank, budget)) return true;
    return false;
}

/* A sum of a product and of what another group without one computes is a part of the product's. */
static bool is_preferred(const struct tare_fused_graph *g, const size_t *rank, struct tare_edge product,
                         struct tare_edge other) {
    enum { MOST_LOOKED_AT = 200 };
    const struct tare_node *leader = g->leader[product.node->position];
    int budget = MOST_LOOKED_AT;
    return tare_fused_kind_of(leader) == TARE_FUSED_OTHER && multiplies(leader) &&
           tare_fused_is_elementwise(g->leader[other.node->position]) &&
           !depends_on(g, other.node, leader, rank, &budget);
}

tare_status tare_fused_choose(struct tare_fused_graph *g) {
    size_t *rank = TARE_NEW_ARRAY(g->f->arena, size_t, g->graph->n_nodes + 1); /* of the leader in the order */
    if (!rank) return TARE_NO_MEMORY;
    for (size_t o = 0; o < g->n_order; o++) {
        const struct tare_node *node = g->order[o];
        const bool joins = node->n_outputs > 0 && (tare_fused_is_elementwise(node) || is_view(node));
        const struct tare_node *leader = NULL;
        struct tare_edge latest = { NULL, 0 };
        g->constant[node->position] = strcmp(node->op, "Const") == 0 || (joins && node->n_inputs > 0);
        for (size_t i = 0; i < node->n_inputs; i++) {
            const struct tare_node *before = node->inputs[i].node;
            const bool is_constant = !tare_node_is_arg(before) && g->constant[before->position];
            if (!is_constant && !(is_view(node) && i > 0)) g->constant[node->position] = false;
            if (!joins || tare_node_is_arg(before) || is_constant || !g->leader[before->position]) continue;
            const bool is_later = !leader || rank[before->position] >= rank[leader->position];
            if (!leader || (is_later ? !is_preferred(g, rank, latest, node->inputs[i])
                                     : is_preferred(g, rank, node->inputs[i], latest))) {
                leader = g->leader[before->position];
                latest = node->inputs[i];
            }
            if (is_view(node)) break;
        }
        g->constant[node->position] |= computes_sizes(g, node);
        if (leader && !continues(g, node, latest)) leader = NULL;
        if (!leader && !is_view(node) && !tare_tpu_op_is_free(node->op)) leader = node;
        g->leader[node->position] = leader;
        rank[node->position] = leader && leader != node ? rank[leader->position] : o;
    }
    return TARE_OK;
}

bool tare_fused_is_counted(const struct tare_fused_graph *g, const struct tare_node *node) {
    return g->needed[node->position] && !g->constant[node->position] && g->leader[node->position] &&
           !tare_tpu_op_is_free(node->op);
}

struct tare_fused_group *tare_fused_group_of(const struct tare_fused_graph *g, const struct tare_node *node) {
    struct tare_fused_group *group = &g->groups[g->leader[node->position]->position];
    while (group->inside)
        group = &g->groups[group->inside->position];
    return group;
}

struct tare_edge tare_fused_result(const struct tare_fused_graph *g, const struct tare_signature *signature, size_t i) {
    const struct tare_edge edge = signature ? signature->outputs[i].edge : g->graph->returns[i].edge;
    return edge.node ? tare_fused_source(edge) : edge;
}
