/* What a product adds to the work of its group. */
#include "tpu/cost/groups.h"
#include "tpu/cost/rows.h"

/* Of rows, of which a tensor has no other dimensions than the first and the last. */
static bool is_flat(const struct tare_shape *x) {
    return x->rank <= 2 || tare_tpu_elements(x) == (double)x->dims[0] * (double)x->dims[x->rank - 1];
}

/* Others compute what follows the product: its result has been written. */
static bool is_bare(const struct tare_fused_graph *g, const struct tare_fused_group *own) {
    bool is_sliced = own->n_users > 0;
    for (size_t i = 0; i < own->n_users && i < TARE_FUSED_USERS; i++)
        is_sliced &= g->groups[own->users[i]->position].kind == TARE_FUSED_SLICE;
    return !own->integer && !own->is_result && !own->has_epilogue && (is_sliced || !own->has_bias);
}

/* A flattened image: its values are moved into rows first, if they are not gathered there. */
static bool is_flattened(const struct tare_fused_graph *g, const struct tare_fused_op *op,
                         const struct tare_fused_group *own) {
    if (own->before && g->groups[own->before->position].kind == TARE_FUSED_GATHER) return false;
    const struct tare_shape from = tare_fused_shape(g, tare_fused_source(op->infer.node->inputs[0]));
    const struct tare_shape *x = &op->infer.inputs[0];
    return from.rank > 2 && x->rank == 2 && from.dims[from.rank - 1] != x->dims[1];
}

static void add_dense(struct tare_fused_graph *g, const struct tare_fused_op *op, struct tare_fused_group *group,
                      const struct tare_fused_group *own) {
    float *amount = group->work.amount;
    amount[TARE_TPU_DENSES]++;
    amount[TARE_TPU_BARE] += is_bare(g, own);
    amount[TARE_TPU_LOOPS] += is_flattened(g, op, own);
    if (own->level >= TARE_FUSED_FIRST_LEVELS || g->has_first[own->level]) return;
    g->has_first[own->level] = true;
    amount[TARE_TPU_FIRST]++;
}

/* A sum of integers to which only another convolution's group adds: that one makes floats of it. */
static bool is_scaled_later(const struct tare_fused_graph *g, const struct tare_fused_group *own) {
    const struct tare_fused_group *user = own->n_users == 1 ? &g->groups[own->users[0]->position] : NULL;
    return user && own->integer && !own->is_result && user->kind == TARE_FUSED_PRODUCT &&
           tare_edge_dtype(own->output) == TARE_DT_FLOAT &&
           (!user->before || &g->groups[user->before->position] != own);
}

/* Many images of few channels, which come in the order of an argument. One channel has no order. */
static bool is_turned(const struct tare_fused_op *op, const struct tare_fused_group *own) {
    const struct tare_tpu_product *product = &op->product;
    return !own->integer && own->reads_argument && product->kind == TARE_TPU_CONV && product->depth > 1 &&
           product->depth <= TARE_TPU_FEW_CHANNELS && product->rows >= TARE_TPU_MANY_IMAGES;
}

bool tare_fused_gives_sums(const struct tare_fused_group *own) {
    return own->kind == TARE_FUSED_PRODUCT && own->product.kind != TARE_TPU_DENSE && own->is_result &&
           own->n_users == 0;
}

void tare_fused_add_product(struct tare_fused_graph *g, const struct tare_fused_op *op, struct tare_fused_group *group,
                            const struct tare_fused_group *own) {
    const float tiles = (float)tare_tpu_tiles(&op->infer.outputs[0]);
    const struct tare_shape *in = &op->infer.inputs[0];
    float *amount = group->work.amount;
    struct tare_tpu_product product = op->product;
    product.is_padded = own->before && g->groups[own->before->position].kind == TARE_FUSED_PADDING;
    tare_tpu_add_product(&group->work, &product);
    if (op->product.kind == TARE_TPU_DENSE && is_flat(&op->infer.inputs[0])) {
        add_dense(g, op, group, own);
        return;
    }
    if (is_turned(op, own))
        amount[TARE_TPU_TURNED] += (float)(tare_tpu_elements(in) / (double)in->dims[in->rank - 1] / op->product.rows);
    if (is_scaled_later(g, own)) return;
    if (own->is_inner) {
        amount[TARE_TPU_INNER_TILES] += tiles;
        return;
    }
    amount[TARE_TPU_CONVS]++;
    if (op->product.groups > 1 &&
        (own->integer || tare_fused_gives_sums(own))) { /* results are moved next to each other */
        amount[TARE_TPU_LOOPS]++;
        amount[TARE_TPU_SPREAD_TILES] += (float)(op->product.places * op->product.rows);
    }
    if (tare_fused_gives_sums(own)) return;
    amount[TARE_TPU_CONV_LOOPS]++;
    amount[TARE_TPU_CONV_TILES] += tiles;
}
