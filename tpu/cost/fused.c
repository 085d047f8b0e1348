/* Groups of ops that are fused, their work and their time. */
#include "tpu/cost/fused.h"
#include "base/tensor/float8.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/trips.h"
#include "interpreter/inference/infer.h"
#include "tpu/cost/product.h"
#include "tpu/cost/rows.h"
#include "tpu/cost/schedule.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64, MOST_NODES = 400000 }; /* nodes of all call paths */

struct fusing {
    struct tare_arena *arena;
    struct tare_bindings *bindings;
    struct tare_inference *inference; /* of all graphs */
    struct tare_fused_cost *total;
    void (*each)(void *arg, const struct tare_node *first, const struct tare_fused_cost *group);
    void *arg;
    int64_t batch; /* open first dimensions */
    double times;  /* that the graph runs: the trips of the loops around it */
    int depth;
    size_t visited; /* nodes, once per call path, and constants, once per use */
};

/* One op with the elementwise ops that are fused with it. */
struct group {
    struct tare_fused_cost cost;
    struct tare_tpu_work_amounts work;
    float argument_tiles; /* of the largest argument that it reads */
    bool computes;        /* a product */
    bool joins_users;     /* converts an argument for a matrix product, or pads: a part of what reads it */
};

/* One graph's nodes by position. */
struct fused_graph {
    struct fusing *f;
    const struct tare_graph *graph;
    const struct tare_shape *arg_shapes;
    struct tare_shape **shapes;
    struct tare_node **order;
    size_t n_order;
    bool *needed, *constant;         /* a result needs it; it is computed of constants alone */
    const struct tare_node **leader; /* the first op of its group */
    bool **written;                  /* by output */
    struct group *groups;            /* at their leaders */
};

/* Reading a variable is free, but its value is then read from memory. */
static bool is_transparent(const struct tare_node *node) {
    return tare_tpu_op_is_free(node->op) && node->n_inputs > 0 && node->output_dtypes && node->n_outputs > 0 &&
           tare_edge_dtype(node->inputs[0]) != TARE_DT_RESOURCE;
}

/* One value of each result of few of each input, at the same position: a bias and a batch normalization, too. */
static bool is_elementwise(const struct tare_node *node) {
    if (strcmp(node->op, "BiasAdd") == 0 || strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0)
        return true;
    return node->def && node->def->row && (node->def->row->flags & TARE_OP_ELEMENTWISE);
}

static struct tare_shape shape_of(const struct fused_graph *g, struct tare_edge edge) {
    struct tare_shape shape = tare_node_is_arg(edge.node)
                                  ? g->arg_shapes ? g->arg_shapes[edge.node->position] : tare_shape_unknown()
                                  : g->shapes[edge.node->position][edge.index];
    if (shape.rank < 0) shape = tare_shape_scalar();
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = i == 0 ? g->f->batch : 1;
    return shape;
}

static double bytes_of(const struct fused_graph *g, struct tare_edge edge) {
    const int dtype = tare_edge_dtype(edge);
    const struct tare_shape shape = shape_of(g, edge);
    double bytes = dtype == TARE_DT_RESOURCE || dtype == TARE_DT_VARIANT ? 0 : (double)tare_dtype_size(dtype);
    if (dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4) bytes /= 2;
    for (int i = 0; i < shape.rank; i++)
        bytes *= (double)shape.dims[i];
    return bytes;
}

/* The node that computes a value, skipping identities and reshapes. */
static struct tare_edge source_of(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && is_transparent(edge.node))
        edge = edge.node->inputs[0];
    return edge;
}

/* ---- groups ---- */

static tare_status want(struct fused_graph *g, const struct tare_signature *signature) {
    struct tare_node **stack = TARE_NEW_ARRAY(g->f->arena, struct tare_node *, g->graph->n_nodes + 1);
    size_t depth = 0, n_roots = signature ? signature->n_outputs : g->graph->n_returns;
    if (!stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_roots; i++) {
        struct tare_node *node = signature ? signature->outputs[i].edge.node : g->graph->returns[i].edge.node;
        if (!node || tare_node_is_arg(node) || g->needed[node->position]) continue;
        g->needed[node->position] = true;
        stack[depth++] = node;
    }
    while (depth) {
        const struct tare_node *node = stack[--depth];
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (tare_node_is_arg(before) || g->needed[before->position]) continue;
            g->needed[before->position] = true;
            stack[depth++] = before;
        }
    }
    return TARE_OK;
}

static bool reads_shape(const char *op) {
    return strcmp(op, "Shape") == 0 || strcmp(op, "ShapeN") == 0 || strcmp(op, "Size") == 0 || strcmp(op, "Rank") == 0;
}

/* Sizes are known to the compiler, and what is computed from them alone. */
static bool computes_sizes(const struct fused_graph *g, const struct tare_node *node) {
    static const char *const ops[] = { "Slice", "StridedSlice", "ConcatV2", "Pack", "Prod", "Unpack", "GatherV2" };
    bool is_known = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        is_known |= strcmp(node->op, ops[i]) == 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        is_known &= !tare_node_is_arg(node->inputs[i].node) && g->constant[node->inputs[i].node->position];
    return reads_shape(node->op) || is_known;
}

static tare_status choose_groups(struct fused_graph *g) {
    size_t *rank = TARE_NEW_ARRAY(g->f->arena, size_t, g->graph->n_nodes + 1); /* of the leader in the order */
    if (!rank) return TARE_NO_MEMORY;
    for (size_t o = 0; o < g->n_order; o++) {
        const struct tare_node *node = g->order[o];
        const bool joins = is_elementwise(node) || is_transparent(node);
        const struct tare_node *leader = NULL;
        g->constant[node->position] = strcmp(node->op, "Const") == 0 || (joins && node->n_inputs > 0);
        for (size_t i = 0; i < node->n_inputs; i++) {
            const struct tare_node *before = node->inputs[i].node;
            if (tare_node_is_arg(before) || !g->constant[before->position]) g->constant[node->position] = false;
            if (!joins || tare_node_is_arg(before) || g->constant[before->position] || !g->leader[before->position])
                continue;
            if (!leader || rank[before->position] >= rank[leader->position]) leader = g->leader[before->position];
            if (is_transparent(node)) break;
        }
        g->constant[node->position] |= computes_sizes(g, node);
        if (!leader && !tare_tpu_op_is_free(node->op)) leader = node;
        g->leader[node->position] = leader;
        rank[node->position] = leader && leader != node ? rank[leader->position] : o;
    }
    return TARE_OK;
}

/* ---- traffic ---- */

/* Constants that a value is computed from. */
static double constant_bytes(const struct fused_graph *g, struct tare_edge edge, int depth) {
    double bytes = 0;
    if (++g->f->visited > MOST_NODES) return 0;
    if (reads_shape(edge.node->op)) return 0;
    if (strcmp(edge.node->op, "Const") == 0 || depth > MOST_DEPTH) return bytes_of(g, edge);
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        bytes += constant_bytes(g, edge.node->inputs[i], depth + 1);
    return bytes;
}

static struct group *group_of(const struct fused_graph *g, const struct tare_node *node) {
    return &g->groups[g->leader[node->position]->position];
}

static bool is_argument(struct tare_edge edge) {
    return tare_node_is_arg(edge.node) || strncmp(edge.node->op, "Placeholder", strlen("Placeholder")) == 0;
}

static void note_argument(struct fused_graph *g, const struct tare_node *user, struct tare_edge from) {
    struct group *group = group_of(g, user);
    const struct tare_shape shape = shape_of(g, from);
    group->argument_tiles = fmaxf(group->argument_tiles, (float)tare_tpu_tiles(&shape));
}

/* Bytes that one input reads from memory; notes that its producer writes them. */
static double read_bytes(struct fused_graph *g, const struct tare_node *user, struct tare_edge edge) {
    const struct tare_edge from = source_of(edge);
    if (is_argument(from)) note_argument(g, user, from);
    if (tare_node_is_arg(from.node)) return bytes_of(g, from);
    if (g->constant[from.node->position]) {
        const double bytes = constant_bytes(g, from, 0);
        /* A conversion writes float32 weights in bfloat16. */
        const double written = tare_edge_dtype(from) == TARE_DT_FLOAT ? fmin(bytes, bytes_of(g, from) / 2) : bytes;
        group_of(g, user)->work.amount[TARE_TPU_WEIGHT_BYTES] += (float)written;
        return bytes;
    }
    if (tare_tpu_op_is_free(from.node->op)) return bytes_of(g, from); /* a fed placeholder, a variable's value */
    if (is_elementwise(user) && g->leader[from.node->position] == g->leader[user->position]) return 0;
    g->written[from.node->position][from.index] = true;
    return bytes_of(g, from);
}

/* ---- work ---- */

static bool is_integer(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8 || dtype == TARE_DT_INT4;
}

/* The codes of a product of float8, which TensorFlow's ops take as float32. */
static bool is_float8(struct tare_edge edge) {
    const struct tare_node *cast = source_of(edge).node;
    return tare_node_is(cast, "Cast") && tare_float8_format(tare_edge_dtype(cast->inputs[0]));
}

static bool is_padding(const char *op) {
    return strcmp(op, "Pad") == 0 || strcmp(op, "PadV2") == 0 || strcmp(op, "XlaPad") == 0;
}

/* A sum of what this group computes with what another one does. */
static bool joins_groups(const struct fused_graph *g, const struct tare_node *node) {
    size_t values = 0;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *from = source_of(node->inputs[i]).node;
        values += !tare_node_is_arg(from) && !g->constant[from->position];
    }
    return values > 1;
}

/* A matrix product converts its argument itself. */
static void join_arguments(struct fused_graph *g, const struct tare_node *product, struct group *group) {
    for (size_t i = 0; i < product->n_inputs; i++) {
        const struct tare_node *from = source_of(product->inputs[i]).node;
        struct group *before;
        if (tare_node_is_arg(from) || g->constant[from->position] || !g->leader[from->position]) continue;
        before = group_of(g, from);
        if (before->computes || before->work.integer || !(before->argument_tiles > 0)) continue;
        if (!is_elementwise(g->leader[from->position])) continue;
        before->joins_users = true;
        group->argument_tiles = before->argument_tiles;
    }
}

static void add_work(struct fused_graph *g, const struct tare_node *node, const struct tare_infer *infer, double macs,
                     struct group *group) {
    const struct tare_tpu_product product = tare_tpu_product_of(infer, macs);
    const bool leads = g->leader[node->position] == node;
    const float tiles = node->n_outputs ? (float)tare_tpu_tiles(&infer->outputs[0]) : 0;
    float *amount = group->work.amount;
    if (product.kind != TARE_TPU_NO_PRODUCT) {
        group->computes = true;
        tare_tpu_add_product(&group->work, &product);
        if (product.kind == TARE_TPU_DENSE) join_arguments(g, node, group);
        if (product.kind != TARE_TPU_DENSE) amount[TARE_TPU_CONV_TILES] += tiles;
    } else if (leads) {
        group->joins_users = is_padding(node->op);
        amount[TARE_TPU_OTHER_TILES] += tiles;
    } else if (group->computes && joins_groups(g, node)) {
        amount[TARE_TPU_CONV_TILES] += tiles;
    }
}

/* What a group costs to begin, once it is complete. */
static void begin_work(const struct tare_node *leader, struct group *group) {
    float *amount = group->work.amount;
    if (group->joins_users) {
        memset(amount, 0, TARE_TPU_WORKS * sizeof *amount);
    } else if (group->computes && group->argument_tiles > 0 && !(amount[TARE_TPU_CONVS] > 0)) {
        amount[TARE_TPU_FIRST_DENSE] = 1;
    } else if (group->argument_tiles > 0 && (group->computes || is_elementwise(leader))) {
        amount[TARE_TPU_READS] = 1;
        amount[TARE_TPU_READ_TILES] = group->argument_tiles;
    } else if (!group->computes) {
        amount[TARE_TPU_OTHERS] = 1;
        amount[TARE_TPU_READ_TILES] = group->argument_tiles;
    }
}

static tare_status count_work(struct fused_graph *g, const struct tare_node *node, struct group *group) {
    struct tare_arena *arena = g->f->arena;
    struct tare_infer infer = {
        .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs, .arena = arena
    };
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_inputs + node->n_outputs + 1);
    int *dtypes = TARE_NEW_ARRAY(arena, int, node->n_inputs + 1);
    struct tare_cost cost = { 0, 0 };
    double all = 0, read = 0;
    bool integer = node->n_inputs > 1;
    if (!shapes || !dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        shapes[i] = shape_of(g, node->inputs[i]);
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
        all += bytes_of(g, node->inputs[i]);
        read += read_bytes(g, node, node->inputs[i]);
        if (i < 2) integer = integer && is_integer(dtypes[i]);
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        shapes[node->n_inputs + i] = shape_of(g, (struct tare_edge){ (struct tare_node *)node, (int)i });
        all += bytes_of(g, (struct tare_edge){ (struct tare_node *)node, (int)i });
    }
    cost.bytes = all;
    infer.inputs = shapes;
    infer.outputs = shapes + node->n_inputs;
    infer.input_dtypes = dtypes;
    tare_tpu_op_cost(&infer, &cost);
    group->cost.macs += cost.macs;
    group->cost.integer_macs += integer ? cost.macs : 0;
    group->cost.bytes +=
        cost.bytes < all ? cost.bytes : read; /* an op that reads a part of its inputs has a cost function */
    const bool float8 = cost.macs > 0 && is_float8(node->inputs[0]) && is_float8(node->inputs[1]);
    group->work.float8 |= float8;
    group->cost.float8_macs += float8 ? cost.macs : 0;
    group->work.integer |=
        cost.macs > 0 ? integer : !group->computes && node->n_outputs && is_integer(node->output_dtypes[0]);
    add_work(g, node, &infer, cost.macs, group);
    return TARE_OK;
}

/* ---- graphs ---- */

static tare_status add_graph(struct fusing *f, const struct tare_graph *graph, const struct tare_signature *signature,
                             const struct tare_shape *arg_shapes);

static tare_status add_callees(struct fused_graph *g, const struct tare_node *node, const struct tare_call_site *site) {
    const double times = g->f->times;
    const int64_t trips = site->kind == TARE_CALL_LOOP ? tare_loop_trips(node, site) : 1;
    if (trips >= 0) g->f->times *= (double)trips;
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct tare_shape *args = TARE_NEW_ARRAY(g->f->arena, struct tare_shape, callee->n_args + 1);
        if (!args) return TARE_NO_MEMORY;
        for (size_t i = 0; i < callee->n_args; i++)
            args[i] = i < site->n_args ? shape_of(g, node->inputs[site->first + i]) : tare_shape_unknown();
        TARE_TRY(add_graph(g->f, callee, NULL, args));
    }
    g->f->times = times;
    return TARE_OK;
}

static tare_status count_nodes(struct fused_graph *g) {
    for (size_t o = 0; o < g->n_order; o++) {
        const struct tare_node *node = g->order[o];
        struct tare_call_site site;
        if (!g->needed[node->position] || g->constant[node->position] || tare_tpu_op_is_free(node->op)) continue;
        TARE_TRY(tare_call_site(&site, g->f->arena, node));
        if (site.kind != TARE_CALL_NONE) TARE_TRY(add_callees(g, node, &site));
        TARE_TRY(count_work(g, node, group_of(g, node)));
    }
    return TARE_OK;
}

static void write_results(struct fused_graph *g, const struct tare_signature *signature) {
    const size_t count = signature ? signature->n_outputs : g->graph->n_returns;
    for (size_t i = 0; i < count; i++) {
        struct tare_edge edge = signature ? signature->outputs[i].edge : g->graph->returns[i].edge;
        if (edge.node) edge = source_of(edge);
        if (!edge.node || tare_node_is_arg(edge.node)) continue;
        g->written[edge.node->position][edge.index] = true;
        if (!g->leader[edge.node->position]) continue;
        const struct tare_shape shape = shape_of(g, edge);
        group_of(g, edge.node)->work.amount[TARE_TPU_WRITTEN_TILES] += (float)tare_tpu_tiles(&shape);
    }
    for (size_t o = 0; o < g->n_order; o++) {
        struct tare_node *node = g->order[o];
        const struct tare_node *leader = g->leader[node->position];
        for (size_t k = 0; k < node->n_outputs && leader && !g->constant[node->position]; k++)
            if (g->written[node->position][k])
                g->groups[leader->position].cost.bytes += bytes_of(g, (struct tare_edge){ node, (int)k });
    }
}

static void add_groups(struct fused_graph *g) {
    struct tare_fused_cost *total = g->f->total;
    for (size_t o = 0; o < g->n_order; o++) {
        struct group *group = &g->groups[g->order[o]->position];
        struct tare_fused_cost *cost = &group->cost;
        if (!(cost->bytes > 0) && !(cost->macs > 0)) continue;
        begin_work(g->order[o], group);
        const enum tare_tpu_rate rate = cost->integer_macs > 0  ? TARE_TPU_INT8
                                        : cost->float8_macs > 0 ? TARE_TPU_FLOAT8
                                                                : TARE_TPU_BFLOAT16;
        for (int c = 0; c < TARE_TPU_CHIPS; c++) {
            cost->least[c] = g->f->times * tare_tpu_chip_seconds(&tare_tpu_chips[c], cost->macs, rate, cost->bytes);
            cost->seconds[c] = g->f->times * tare_tpu_work_seconds(&group->work, c, cost->bytes);
            total->least[c] += cost->least[c];
            total->seconds[c] += cost->seconds[c];
        }
        cost->macs *= g->f->times;
        cost->integer_macs *= g->f->times;
        cost->float8_macs *= g->f->times;
        cost->bytes *= g->f->times;
        total->macs += cost->macs;
        total->integer_macs += cost->integer_macs;
        total->float8_macs += cost->float8_macs;
        total->bytes += cost->bytes;
        if (g->f->each) g->f->each(g->f->arg, g->order[o], cost);
    }
}

static tare_status set_up(struct fused_graph *g) {
    struct tare_arena *arena = g->f->arena;
    const size_t n = g->graph->n_nodes + 1;
    const struct tare_shape **handles = tare_bindings_handles(g->f->bindings, arena, g->graph);
    if (!handles) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes_with(g->f->inference, &g->shapes, arena, g->graph, g->arg_shapes, handles));
    TARE_TRY(tare_graph_order(&g->order, arena, g->graph));
    while (g->n_order < g->graph->n_nodes && g->order[g->n_order])
        g->n_order++;
    g->needed = TARE_NEW_ARRAY(arena, bool, n);
    g->constant = TARE_NEW_ARRAY(arena, bool, n);
    g->leader = TARE_NEW_ARRAY(arena, const struct tare_node *, n);
    g->written = TARE_NEW_ARRAY(arena, bool *, n);
    g->groups = TARE_NEW_ARRAY(arena, struct group, n);
    if (!g->needed || !g->constant || !g->leader || !g->written || !g->groups) return TARE_NO_MEMORY;
    for (size_t i = 0; i < g->graph->n_nodes; i++) {
        g->written[i] = TARE_NEW_ARRAY(arena, bool, g->graph->nodes[i]->n_outputs + 1);
        if (!g->written[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status check_visited(const struct fusing *f) {
    if (f->visited <= MOST_NODES) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "with its functions inlined the graph has more than %d nodes", (int)MOST_NODES);
}

static tare_status add_graph(struct fusing *f, const struct tare_graph *graph, const struct tare_signature *signature,
                             const struct tare_shape *arg_shapes) {
    struct fused_graph g = { .f = f, .graph = graph, .arg_shapes = arg_shapes };
    if (f->depth >= TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    f->visited += graph->n_nodes;
    TARE_TRY(check_visited(f));
    f->depth++;
    TARE_TRY(set_up(&g));
    TARE_TRY(want(&g, signature));
    TARE_TRY(choose_groups(&g));
    TARE_TRY(count_nodes(&g));
    write_results(&g, signature);
    add_groups(&g);
    f->depth--;
    return check_visited(f);
}

tare_status tare_tpu_fused_graph_cost(struct tare_fused_cost *out, struct tare_arena *arena,
                                      struct tare_bindings *bindings, struct tare_inference *inference,
                                      const struct tare_graph *graph, const struct tare_shape *args) {
    struct fusing f = {
        .arena = arena, .bindings = bindings, .inference = inference, .total = out, .batch = 1, .times = 1
    };
    *out = (struct tare_fused_cost){ 0 };
    return add_graph(&f, graph, NULL, args);
}

tare_status
tare_tpu_fused_cost(struct tare_fused_cost *out, struct tare_arena *arena, const struct tare_graph_model *model,
                    const struct tare_signature *signature, int64_t batch,
                    void (*each)(void *arg, const struct tare_node *first, const struct tare_fused_cost *group),
                    void *arg) {
    struct fusing f = { .arena = arena, .total = out, .each = each, .arg = arg, .batch = batch, .times = 1 };
    tare_status status;
    *out = (struct tare_fused_cost){ 0 };
    TARE_TRY(tare_bindings_new(&f.bindings, model));
    f.inference = tare_inference_new();
    status = f.inference ? add_graph(&f, model->main, signature, NULL) : TARE_NO_MEMORY;
    tare_inference_free(f.inference);
    tare_bindings_free(f.bindings);
    return status;
}
