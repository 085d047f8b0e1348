/* Which groups become parts of others. */
#include "tpu/cost/groups.h"
#include "tpu/cost/rows.h"

static struct tare_fused_group *group_at(const struct tare_fused_graph *g, const struct tare_node *leader) {
    return &g->groups[leader->position];
}

/* ---- what reads what ---- */

/* The same values in another type are the same output. */
static void note_output(struct tare_fused_group *group, struct tare_edge output) {
    while (!tare_node_is_arg(output.node) &&
           (tare_node_is(output.node, "Cast") || tare_node_is(output.node, "ClipByValue")))
        output = tare_fused_source(output.node->inputs[0]);
    if (!group->output.node) group->output = output;
    group->has_more_outputs |= group->output.node != output.node || group->output.index != output.index;
}

static void note_user(struct tare_fused_group *group, const struct tare_node *user) {
    for (size_t i = 0; i < group->n_users && i < TARE_FUSED_USERS; i++)
        if (group->users[i] == user) return;
    if (group->n_users < TARE_FUSED_USERS) group->users[group->n_users] = user;
    group->n_users++;
}

static void note_level(struct tare_fused_group *user, const struct tare_fused_group *before) {
    const bool is_short = before->kind == TARE_FUSED_ELEMENTWISE || before->kind == TARE_FUSED_SLICE;
    const int level = before->level + (is_short ? 0 : before->kind == TARE_FUSED_PRODUCT ? 1 : TARE_FUSED_FIRST_LEVELS);
    if (level > user->level) user->level = level;
}

/* An activation function, or a sum with as many values: the op of the product computes it. A bias may
 * be added later. */
static void note_epilogue(struct tare_fused_graph *g, const struct tare_node *node) {
    const struct tare_shape shape = tare_fused_shape(g, (struct tare_edge){ (struct tare_node *)node, 0 });
    struct tare_fused_group *group = group_at(g, g->leader[node->position]);
    size_t values = 0;
    if (g->leader[node->position] == node || !tare_fused_is_elementwise(node) || tare_node_is(node, "Cast")) return;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_shape input = tare_fused_shape(g, node->inputs[i]);
        values += tare_tpu_elements(&input) == tare_tpu_elements(&shape);
    }
    group->has_bias |= values == 1 && node->n_inputs > 1;
    group->has_epilogue |= values != 1 || node->n_inputs == 1;
}

static void note_uses(struct tare_fused_graph *g, const struct tare_node *node) {
    struct tare_fused_group *user = group_at(g, g->leader[node->position]);
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_edge from = tare_fused_source(node->inputs[i]);
        const struct tare_node *leader = tare_node_is_arg(from.node) ? NULL : g->leader[from.node->position];
        if (tare_node_is_arg(from.node) || (!leader && !g->constant[from.node->position])) {
            user->reads_argument = true;
            user->argument = from.node;
        }
        if (!leader || g->constant[from.node->position] || leader == g->leader[node->position]) continue;
        note_output(group_at(g, leader), from);
        group_at(g, leader)->gives_integers |= tare_fused_is_integer(tare_edge_dtype(from));
        note_user(group_at(g, leader), g->leader[node->position]);
        if (user->kind != TARE_FUSED_PRODUCT || g->leader[node->position] == node)
            note_level(user, group_at(g, leader));
        if (g->leader[node->position] == node && i == 0) user->before = leader;
    }
}

/* How many of the convolution's products read the same value: taps, by what the stride leaves. */
static double again(const struct tare_fused_op *op) {
    const double positions = op->product.places * op->product.rows;
    const struct tare_shape *in = &op->infer.inputs[0];
    const double channels = in->rank > 0 ? (double)in->dims[in->rank - 1] : 1;
    return op->product.taps * positions * channels / tare_tpu_elements(in);
}

static tare_status note_kind(struct tare_fused_graph *g, const struct tare_node *node) {
    struct tare_fused_group *group = group_at(g, g->leader[node->position]);
    struct tare_fused_op op;
    if (g->leader[node->position] != node) return TARE_OK;
    if (tare_fused_is_elementwise(node)) {
        group->kind = TARE_FUSED_ELEMENTWISE;
        return TARE_OK;
    }
    TARE_TRY(tare_fused_read_op(&op, g, node));
    group->kind = op.product.kind == TARE_TPU_NO_PRODUCT ? tare_fused_kind_of(node) : TARE_FUSED_PRODUCT;
    group->product = op.product;
    group->integer = op.integer;
    group->again = again(&op);
    return TARE_OK;
}

static tare_status relate(struct tare_fused_graph *g, const struct tare_signature *signature) {
    const size_t count = signature ? signature->n_outputs : g->graph->n_returns;
    for (size_t o = 0; o < g->n_order; o++) {
        if (!tare_fused_is_counted(g, g->order[o])) continue;
        TARE_TRY(note_kind(g, g->order[o]));
        note_uses(g, g->order[o]);
        note_epilogue(g, g->order[o]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct tare_edge edge = tare_fused_result(g, signature, i);
        if (!edge.node || tare_node_is_arg(edge.node) || !g->leader[edge.node->position]) continue;
        group_at(g, g->leader[edge.node->position])->is_result = true;
        note_output(group_at(g, g->leader[edge.node->position]), edge);
    }
    return TARE_OK;
}

/* ---- parts ---- */

static bool convolves(const struct tare_fused_group *group) {
    return group->kind == TARE_FUSED_PRODUCT && group->product.kind != TARE_TPU_DENSE;
}

/* The operands of a product of integers are what another op has written. What is added to or multiplies the product's
 * floats is computed with it. */
static bool computes_its_inputs(const struct tare_fused_graph *g, const struct tare_fused_group *group,
                                const struct tare_node *leader) {
    const struct tare_fused_group *user = tare_fused_group_of(g, leader);
    switch (user->kind) {
    case TARE_FUSED_PRODUCT:
        return !user->integer || !group->gives_integers;
    case TARE_FUSED_ELEMENTWISE:
    case TARE_FUSED_REDUCTION:
    case TARE_FUSED_SLICE:
    case TARE_FUSED_PADDING:
    case TARE_FUSED_JOINT:
        return true;
    default:
        return false;
    }
}

/* A convolution with more columns than a matrix unit would convert a float argument again for each of its tiles. */
static bool is_read_again(const struct tare_fused_graph *g, const struct tare_fused_group *group) {
    enum { COLUMNS = 128 };
    if (!group->reads_argument || group->before) return false;
    for (size_t i = 0; i < group->n_users && i < TARE_FUSED_USERS; i++) {
        const struct tare_fused_group *user = group_at(g, group->users[i]);
        if (convolves(user) && !user->integer && user->product.columns > COLUMNS) return true;
    }
    return false;
}

static bool is_part_of_users(const struct tare_fused_graph *g, const struct tare_fused_group *group) {
    const bool is_cheap = group->reads_argument && !group->before;
    const bool is_few =
        group->n_users == 1 || (!group->has_more_outputs && (group->n_users <= TARE_FUSED_USERS || is_cheap));
    if (group->is_result || group->n_users == 0) return false;
    if (group->kind == TARE_FUSED_PADDING) return true;
    if (group->kind != TARE_FUSED_ELEMENTWISE && group->kind != TARE_FUSED_SLICE && group->kind != TARE_FUSED_JOINT)
        return false;
    if (!is_few && group->kind != TARE_FUSED_SLICE) return false;
    if (group->kind == TARE_FUSED_ELEMENTWISE && (group->gives_integers || is_read_again(g, group))) return false;
    for (size_t i = 0; i < group->n_users && i < TARE_FUSED_USERS; i++)
        if (!computes_its_inputs(g, group, group->users[i])) return false;
    return true;
}

/* A mean of all positions: the channels remain. */
static bool keeps_channels(const struct tare_fused_graph *g, const struct tare_node *node) {
    const struct tare_shape in = tare_fused_shape(g, node->inputs[0]);
    const struct tare_shape out = tare_fused_shape(g, (struct tare_edge){ (struct tare_node *)node, 0 });
    const double channels = in.rank > 0 ? (double)in.dims[in.rank - 1] : 1;
    return in.rank > 2 && tare_tpu_elements(&out) == (double)in.dims[0] * channels;
}

/* Whether the convolution before is computed inside. Images of few channels are moved into the lanes first. */
static bool holds(const struct tare_fused_group *group, const struct tare_fused_group *before) {
    enum { LEAST_CHANNELS = 5, MOST_TIMES = 3 * 3 };
    if (!convolves(before) || before->n_users != 1 || before->is_result || before->has_more_outputs) return false;
    if (before->is_inner || before->has_inner) return false;
    if (group->integer || before->integer) return group->product.taps == 1 && before->product.taps > 1;
    if (before->product.depth < LEAST_CHANNELS && before->product.kind == TARE_TPU_CONV)
        return group->again > 1 && group->again < MOST_TIMES && before->product.rows >= TARE_TPU_MANY_IMAGES;
    return group->again <= MOST_TIMES;
}

/* The convolution before, and the paddings between. */
static struct tare_fused_group *before_of(const struct tare_fused_graph *g, const struct tare_fused_group *group) {
    struct tare_fused_group *before = group->before ? group_at(g, group->before) : NULL;
    while (before && before->inside && before->kind == TARE_FUSED_PADDING)
        before = before->before ? group_at(g, before->before) : NULL;
    return before;
}

static bool begins_group(const struct tare_fused_graph *g, const struct tare_node *node) {
    return tare_fused_is_counted(g, node) && g->leader[node->position] == node;
}

static void join_loops(struct tare_fused_graph *g) {
    for (size_t o = g->n_order; o-- > 0;) {
        const struct tare_node *node = g->order[o];
        struct tare_fused_group *group = group_at(g, node);
        if (!begins_group(g, node)) continue;
        if (is_part_of_users(g, group))
            group->inside = group->users[0];
        else if (group->kind == TARE_FUSED_REDUCTION && group->before && convolves(group_at(g, group->before)) &&
                 keeps_channels(g, node))
            group->inside = group->before;
    }
}

static void join_convolutions(struct tare_fused_graph *g) {
    for (size_t o = 0; o < g->n_order; o++) {
        struct tare_fused_group *group = group_at(g, g->order[o]), *before;
        if (!begins_group(g, g->order[o]) || !convolves(group)) continue;
        before = before_of(g, group);
        if (!before || !holds(group, before)) continue;
        before->is_inner = true;
        group->has_inner = true;
    }
}

tare_status tare_fused_join(struct tare_fused_graph *g, const struct tare_signature *signature) {
    TARE_TRY(relate(g, signature));
    join_loops(g);
    join_convolutions(g);
    return TARE_OK;
}
