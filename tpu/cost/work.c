/* What an op adds to the traffic and to the work of its group. */
#include "base/tensor/float8.h"
#include "tpu/cost/groups.h"
#include "tpu/cost/rows.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

/* ---- traffic ---- */

/* Constants that a value is computed from. */
static double constant_bytes(const struct tare_fused_graph *g, struct tare_edge edge, int depth) {
    double bytes = 0;
    if (++g->f->visited > TARE_FUSED_MOST_NODES) return 0;
    if (tare_fused_reads_shape(edge.node->op)) return 0;
    if (strcmp(edge.node->op, "Const") == 0 || depth > MOST_DEPTH) return tare_fused_bytes(g, edge);
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        bytes += constant_bytes(g, edge.node->inputs[i], depth + 1);
    return bytes;
}

static double weight_bytes(struct tare_fused_graph *g, struct tare_fused_group *group, struct tare_edge from) {
    const double bytes = constant_bytes(g, from, 0);
    /* A conversion writes float32 weights in bfloat16. */
    const double written = tare_edge_dtype(from) == TARE_DT_FLOAT ? fmin(bytes, tare_fused_bytes(g, from) / 2) : bytes;
    group->work.amount[TARE_TPU_WEIGHT_BYTES] += (float)written;
    return bytes;
}

/* Bytes that one input reads from memory; notes that its producer writes them. */
static double read_bytes(struct tare_fused_graph *g, const struct tare_node *user, struct tare_edge edge) {
    const struct tare_edge from = tare_fused_source(edge);
    if (tare_node_is_arg(from.node)) return tare_fused_bytes(g, from);
    if (g->constant[from.node->position]) return weight_bytes(g, tare_fused_group_of(g, user), from);
    if (tare_tpu_op_is_free(from.node->op)) return tare_fused_bytes(g, from); /* a placeholder, a variable's value */
    if (tare_fused_group_of(g, from.node) == tare_fused_group_of(g, user)) return 0;
    g->written[from.node->position][from.index] = true;
    return tare_fused_bytes(g, from);
}

/* ---- work ---- */

bool tare_fused_is_integer(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8 || dtype == TARE_DT_INT4;
}

/* The codes of a product of float8, which TensorFlow's ops take as float32. */
static bool is_float8(struct tare_edge edge) {
    const struct tare_node *cast = tare_fused_source(edge).node;
    return tare_node_is(cast, "Cast") && tare_float8_format(tare_edge_dtype(cast->inputs[0]));
}

tare_status tare_fused_read_op(struct tare_fused_op *out, const struct tare_fused_graph *g,
                               const struct tare_node *node) {
    struct tare_arena *arena = g->f->arena;
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_inputs + node->n_outputs + 1);
    int *dtypes = TARE_NEW_ARRAY(arena, int, node->n_inputs + 1);
    if (!shapes || !dtypes) return TARE_NO_MEMORY;
    *out = (struct tare_fused_op){ .integer = node->n_inputs > 1 };
    for (size_t i = 0; i < node->n_inputs; i++) {
        shapes[i] = tare_fused_shape(g, node->inputs[i]);
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
        out->cost.bytes += tare_fused_bytes(g, node->inputs[i]);
        if (i < 2) out->integer &= tare_fused_is_integer(dtypes[i]);
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct tare_edge edge = { (struct tare_node *)node, (int)i };
        shapes[node->n_inputs + i] = tare_fused_shape(g, edge);
        out->cost.bytes += tare_fused_bytes(g, edge);
    }
    out->infer = (struct tare_infer){ .node = node,
                                      .n_inputs = node->n_inputs,
                                      .n_outputs = node->n_outputs,
                                      .arena = arena,
                                      .inputs = shapes,
                                      .outputs = shapes + node->n_inputs,
                                      .input_dtypes = dtypes };
    tare_tpu_op_cost(&out->infer, &out->cost);
    out->product = tare_tpu_product_of(&out->infer, out->cost.macs);
    out->integer &= out->cost.macs > 0;
    return TARE_OK;
}

/* A sum of what this group computes with what another one does. */
static bool joins_groups(const struct tare_fused_graph *g, const struct tare_node *node) {
    size_t values = 0;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *from = tare_fused_source(node->inputs[i]).node;
        values += !tare_node_is_arg(from) && !g->constant[from->position];
    }
    return values > 1;
}

/* Multiplications that a transcendental function takes, in those of a short one. */
static float curves_of(const char *op) {
    static const struct {
        const char *op;
        float curves;
    } rows[] = { { "Erf", 4 }, { "Erfc", 4 },     { "Tanh", 1 }, { "Sigmoid", 1 }, { "Exp", 1 },  { "Log", 1 },
                 { "Pow", 2 }, { "Softplus", 2 }, { "Elu", 1 },  { "Selu", 1 },    { "Log1p", 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(op, rows[i].op) == 0) return rows[i].curves;
    return 0;
}

/* A mean, say, of the last axis: of values in the lanes. */
static bool reduces_rows(const struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0], *out = &infer->outputs[0];
    const double channels = in->rank > 0 ? (double)in->dims[in->rank - 1] : 1;
    const double last = out->rank > 0 ? (double)out->dims[out->rank - 1] : 1;
    return out->rank == 0 || last != channels;
}

static bool is_first_of(const struct tare_fused_graph *g, const struct tare_node *node) {
    return g->leader[node->position] == node;
}

/* Whether an op that is counted reads the same argument: one op writes the results of all. */
static bool is_read(struct tare_fused_graph *g, const struct tare_node *argument) {
    for (size_t i = 0; i < g->n_read; i++)
        if (g->read[i] == argument) return true;
    if (g->n_read < TARE_FUSED_MOST_READ) g->read[g->n_read++] = argument;
    return false;
}

/* Each part of a concatenation is moved to its place; the axis is a scalar. */
static float parts(const struct tare_fused_op *op) {
    float tiles = 0;
    for (size_t i = 0; i < op->infer.n_inputs; i++)
        if (op->infer.inputs[i].rank > 0) tiles += (float)tare_tpu_tiles(&op->infer.inputs[i]);
    return tiles;
}

/* The first op of a group without a product. */
static void add_loop(struct tare_fused_graph *g, const struct tare_fused_op *op, struct tare_fused_group *group) {
    const struct tare_fused_group *own = &g->groups[op->infer.node->position];
    const struct tare_fused_group *before = own->before ? &g->groups[own->before->position] : NULL;
    const float results = (float)tare_tpu_tiles(&op->infer.outputs[0]);
    const float inputs = op->infer.n_inputs ? (float)tare_tpu_tiles(&op->infer.inputs[0]) : 0;
    const bool follows = before && !before->inside; /* computed at the end of the group before */
    const bool is_own = own == group;
    float *amount = group->work.amount;
    switch (own->kind) {
    case TARE_FUSED_PRODUCT:
        return;
    case TARE_FUSED_PADDING: /* an argument is brought into the layout of the padded image; few channels cost nothing */
        if (!own->gives_integers || !before || !before->reads_argument || before->before) return;
        if (group->product.depth <= TARE_TPU_FEW_CHANNELS) return;
        amount[TARE_TPU_LOOPS]++;
        amount[TARE_TPU_SPREAD_TILES] += inputs;
        return;
    case TARE_FUSED_SLICE:
        amount[TARE_TPU_LOOPS] += is_own;
        return;
    case TARE_FUSED_JOINT:
        amount[TARE_TPU_LOOPS] += is_own;
        amount[TARE_TPU_SPREAD_TILES] += group->kind == TARE_FUSED_PRODUCT ? results : parts(op);
        return;
    case TARE_FUSED_REPEAT:
        amount[TARE_TPU_LOOPS] += is_own;
        amount[TARE_TPU_SPREAD_TILES] += results;
        return;
    case TARE_FUSED_GATHER:
        amount[TARE_TPU_LOOPS]++;
        return;
    case TARE_FUSED_SOFTMAX:
        amount[TARE_TPU_LOOPS] += 1.f + (own->is_result || !follows);
        amount[TARE_TPU_REDUCED_TILES] += results;
        return;
    case TARE_FUSED_REDUCTION:
        if (!is_own) return; /* by the convolution before */
        amount[TARE_TPU_LOOPS] += reduces_rows(&op->infer) ? 1.f + !follows : 1.f;
        amount[TARE_TPU_REDUCED_TILES] += inputs;
        return;
    case TARE_FUSED_ELEMENTWISE:
        if (is_own && own->reads_argument && !own->before && is_read(g, own->argument)) return;
        amount[TARE_TPU_LOOPS] += is_own;
        if (own->reads_argument && (is_own || group->product.kind != TARE_TPU_CONV))
            amount[TARE_TPU_READ_TILES] += (float)ceil(tare_tpu_elements(&op->infer.outputs[0]) / TARE_TPU_TILE);
        else if (is_own)
            amount[TARE_TPU_LOOP_TILES] += results;
        return;
    case TARE_FUSED_OTHER:
        amount[TARE_TPU_LOOPS]++;
        amount[TARE_TPU_LOOP_TILES] += results;
        return;
    }
}

static void add_work(struct tare_fused_graph *g, const struct tare_fused_op *op, struct tare_fused_group *group) {
    const struct tare_node *node = op->infer.node;
    const struct tare_fused_group *own = &g->groups[g->leader[node->position]->position];
    const float tiles = node->n_outputs ? (float)tare_tpu_tiles(&op->infer.outputs[0]) : 0;
    float *amount = group->work.amount;
    if (own->n_users == 0 && !own->is_result) return; /* only its shape is read */
    const bool becomes_integer = node->n_outputs && tare_fused_is_integer(node->output_dtypes[0]);
    if (op->product.kind != TARE_TPU_NO_PRODUCT)
        tare_fused_add_product(g, op, group, own);
    else if (is_first_of(g, node))
        add_loop(g, op, group);
    else if (own->integer && group->work.amount[TARE_TPU_CONVS] > 0 && joins_groups(g, node))
        amount[TARE_TPU_CONV_TILES] += tiles / 4; /* what is added is converted; in bfloat16 it costs nothing */
    else if (own->kind == TARE_FUSED_REDUCTION && becomes_integer)
        amount[TARE_TPU_LOOPS]++; /* a mean is quantized by another op */
    if (!tare_fused_gives_sums(own)) amount[TARE_TPU_CURVE_TILES] += curves_of(node->op) * tiles;
}

tare_status tare_fused_count(struct tare_fused_graph *g, const struct tare_node *node, bool is_call) {
    struct tare_fused_group *group = tare_fused_group_of(g, node);
    struct tare_fused_op op;
    double all = 0, read = 0;
    TARE_TRY(tare_fused_read_op(&op, g, node));
    for (size_t i = 0; i < node->n_inputs; i++) {
        all += tare_fused_bytes(g, node->inputs[i]);
        read += read_bytes(g, node, node->inputs[i]);
    }
    for (size_t i = 0; i < node->n_outputs; i++)
        all += tare_fused_bytes(g, (struct tare_edge){ (struct tare_node *)node, (int)i });
    /* An op that reads a part of its inputs has a cost function. */
    group->cost.bytes += op.cost.bytes < all ? op.cost.bytes : read;
    group->cost.macs += op.cost.macs;
    group->cost.integer_macs += op.integer ? op.cost.macs : 0;
    if (op.cost.macs > 0 && is_float8(node->inputs[0]) && is_float8(node->inputs[1])) {
        group->work.float8 = true;
        group->cost.float8_macs += op.cost.macs;
    }
    if (op.cost.macs > 0) group->work.integer |= op.integer;
    if (!is_call) add_work(g, &op, group);
    return TARE_OK;
}
