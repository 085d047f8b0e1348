/* Tuples, tokens, communication, and ops that only rename, select or resize. A tuple is several outputs of one node, of
 * which the first stands for the tuple; a token is a scalar false without meaning, because effects have control edges.
 */
#include "convert/stablehlo/lower.h"

#include <string.h>

enum { MOST_OPERANDS = 256 };

/* ---- tuples ---- */

static void lower_tuple(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[MOST_OPERANDS];
    (void)arg;
    if (l->op->n_operands > MOST_OPERANDS) tare_lower_fail(l, TARE_UNSUPPORTED, "%zu elements", l->op->n_operands);
    for (size_t i = 0; i < l->op->n_operands && l->status == TARE_OK; i++) {
        if (tare_lower_in_type(l, i)->kind == TARE_SHLO_TUPLE)
            tare_lower_fail(l, TARE_UNSUPPORTED, "a tuple in a tuple");
        inputs[i] = tare_lower_in(l, i);
    }
    if (!l->op->n_operands) inputs[0] = tare_lower_scalar(l, TARE_DT_BOOL, 0);
    const size_t count = l->op->n_operands ? l->op->n_operands : 1;
    tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "IdentityN", inputs, count)));
}

static void lower_tuple_element(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_type *type = tare_lower_in_type(l, 0);
    const struct tare_edge tuple = tare_lower_in(l, 0);
    const int64_t index = tare_lower_int(l, "index");
    (void)arg;
    if (type->kind != TARE_SHLO_TUPLE || index < 0 || (size_t)index >= type->inputs.count)
        tare_lower_fail(l, TARE_CORRUPT, "element %lld of a tuple of %zu", (long long)index, type->inputs.count);
    tare_lower_set(l, (struct tare_edge){ tuple.node, tuple.index + (int)index });
}

/* ---- tokens ---- */

static void lower_token(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(l, tare_lower_scalar(l, TARE_DT_BOOL, 0));
}

/* ---- collective ops ---- */

static bool same_type(const struct tare_shlo_type *a, const struct tare_shlo_type *b) {
    if (a->kind != b->kind || a->rank != b->rank || tare_shlo_dtype(a) != tare_shlo_dtype(b)) return false;
    for (size_t d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d]) return false;
    return true;
}

/* Operands that are sent: the root of a broadcast or reduction may be a further operand. */
static size_t count_sent(const struct tare_lowering *l) {
    const struct tare_shlo_attr *root = tare_shlo_op_attr(l->op, "has_dynamic_root");
    const bool has_root = root && root->kind == TARE_SHLO_ATTR_BOOL && root->bits;
    return l->op->n_operands - (has_root && l->op->n_operands > 0);
}

/* True if each result has the type of its operand, which a group of one process leaves unchanged. */
static bool keeps_types(const struct tare_lowering *l) {
    if (count_sent(l) != l->op->n_results) return false;
    for (size_t i = 0; i < l->op->n_results; i++)
        if (!same_type(tare_lower_in_type(l, i), tare_lower_out_type(l, i))) return false;
    return true;
}

static const struct tare_shlo_attr *pairs_of(const struct tare_lowering *l, const char *name) {
    const struct tare_shlo_attr *pairs = tare_shlo_op_attr(l->op, name);
    return pairs && pairs->kind == TARE_SHLO_ATTR_TENSOR && pairs->type->rank == 2 ? pairs : NULL;
}

static void lower_each(struct tare_lowering *l, bool fits, const char *op) {
    if (!fits) tare_lower_fail(l, TARE_UNSUPPORTED, "communication between several devices");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_unary(l, op, tare_lower_in(l, i));
}

/* The model runs on one device: a group of one process receives what it sends. */
static void lower_collective(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *groups = pairs_of(l, "replica_groups");
    (void)arg;
    lower_each(l, groups && groups->type->dims[1] <= 1 && keeps_types(l), "Identity");
}

/* A process to which none sends receives zeros. */
static void lower_collective_permute(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *pairs = pairs_of(l, "source_target_pairs");
    const int64_t count = pairs ? pairs->type->dims[0] : 0;
    bool alone = pairs && count <= 1 && tare_lower_partitions(l) == 1 && (count == 0 || pairs->type->dims[1] == 2) &&
                 keeps_types(l);
    (void)arg;
    for (int i = 0; i < 2 && alone && count; i++)
        alone = tare_shlo_tensor_integer(pairs, (size_t)i) == 0;
    lower_each(l, alone, count ? "Identity" : "ZerosLike");
}

/* ---- map ---- */

/* Ops that mean the same for a tensor as for each of its elements. */
bool tare_lower_is_elementwise(const struct tare_shlo_op *op) {
    for (const struct tare_lowering_row *row = tare_lower_elementwise; row->name; row++)
        if (tare_shlo_op_is(op, row->name)) return !tare_shlo_op_is(op, "bitcast_convert");
    return tare_shlo_op_is(op, "constant") || tare_shlo_op_is(op, "return");
}

/* The function is called for whole tensors, which requires that all of its ops work element by element. */
static void lower_map(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_edge inputs[MOST_OPERANDS];
    const struct tare_shlo_block *body = &l->op->regions[0];
    size_t count = l->op->n_operands;
    (void)arg;
    for (size_t i = 0; i < body->n_ops; i++)
        if (!tare_lower_is_elementwise(&body->ops[i]))
            tare_lower_fail(l, TARE_UNSUPPORTED, "op %s in the function of a map", body->ops[i].name);
    tare_lower_captures(&captures, l, body);
    if (!count || count + captures.count > MOST_OPERANDS) tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands", count);
    if (l->status != TARE_OK) return;
    for (size_t i = 0; i < count; i++)
        inputs[i] = tare_lower_in(l, i);
    for (size_t i = 0; i < captures.count; i++)
        inputs[count++] = tare_lower_value(l, captures.values[i]);
    struct tare_graph *function = tare_lower_region(l, body, &captures, false);
    const int dtype = tare_lower_out_dtype(l, 0);
    tare_lower_check_inputs(l, function, inputs, count);
    tare_lower_check_returns(l, function, &dtype, 1);
    if (l->status != TARE_OK) return;
    struct tare_node *call = tare_lower_call(l, function, inputs, count);
    /* a result that does not depend on the arguments is a scalar */
    tare_lower_set(
        l, tare_lower_binary(l, "BroadcastTo", (struct tare_edge){ call, 0 }, tare_lower_unary(l, "Shape", inputs[0])));
}

/* ---- selecting and resizing ---- */

static void lower_einsum(struct tare_lowering *l, const void *arg) {
    const char *equation = tare_lower_text(l, "einsum_config");
    struct tare_edge inputs[2];
    (void)arg;
    for (size_t i = 0; i < l->op->n_operands && i < 2; i++)
        inputs[i] = tare_lower_in(l, i);
    struct tare_node *node = tare_lower_begin(l, "Einsum", inputs, l->op->n_operands);
    tare_lower_attr_bytes(l, node, "equation", equation, strlen(equation));
    tare_lower_set(l, tare_lower_end(l, node));
}

/* Rows of dimension `dim` by index, for each element of the first batch_dims dimensions. */
static void lower_torch_index_select(struct tare_lowering *l, const void *arg) {
    const struct tare_edge index = tare_lower_cast(l, tare_lower_in(l, 1), TARE_DT_INT64);
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), index,
                                        tare_lower_scalar(l, TARE_DT_INT32, (double)tare_lower_int(l, "dim")) };
    struct tare_node *node = tare_lower_begin(l, "GatherV2", inputs, 3);
    (void)arg;
    tare_lower_attr_int(l, node, "batch_dims", tare_lower_int(l, "batch_dims"));
    tare_lower_set(l, tare_lower_end(l, node));
}

/* The first `size` entries of a dimension. */
static void lower_set_dimension_size(struct tare_lowering *l, const void *arg) {
    const int64_t dimension = tare_lower_int(l, "dimension");
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    int64_t all[TARE_MAX_RANK], begin[TARE_MAX_RANK] = { 0 };
    (void)arg;
    if (dimension < 0 || (size_t)dimension >= rank || rank > TARE_MAX_RANK) {
        tare_lower_fail(l, TARE_CORRUPT, "attribute 'dimension' is out of range");
        return;
    }
    for (size_t d = 0; d < rank; d++)
        all[d] = d == (size_t)dimension ? 0 : -1;
    const struct tare_edge size = tare_lower_cast(l, tare_lower_in(l, 1), TARE_DT_INT64);
    for (size_t d = 0; d < rank; d++)
        begin[d] = d == (size_t)dimension;
    const struct tare_edge one_hot = tare_lower_longs(l, begin, rank);
    const struct tare_edge from_all = tare_lower_binary(l, "Mul", one_hot, size);
    const struct tare_edge sizes = tare_lower_binary(l, "AddV2", tare_lower_longs(l, all, rank), from_all);
    memset(begin, 0, sizeof begin);
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), tare_lower_longs(l, begin, rank), sizes };
    tare_lower_set(l, tare_lower_end(l, tare_lower_begin(l, "Slice", inputs, 3)));
}

/* ---- Shardy ---- */

static void lower_nothing(struct tare_lowering *l, const void *arg) {
    (void)l;
    (void)arg;
}

static void lower_same(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands != l->op->n_results) tare_lower_fail(l, TARE_CORRUPT, "fewer operands than results");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_in(l, i);
}

/* A named region that is otherwise a part of the function around it. */
static void lower_named(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_body_here(l, &l->op->regions[0]);
}

/* What each device of a mesh does with its part of the operands: of one device, all of them. */
static void lower_manual(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_block *body = &l->op->regions[0];
    const struct tare_shlo_op *end = body->n_ops ? &body->ops[body->n_ops - 1] : NULL;
    bool alone = tare_lower_partitions(l) == 1;
    for (size_t i = 0; i < body->n_args && i < l->op->n_operands; i++)
        alone = alone && same_type(body->args[i].type, tare_lower_in_type(l, i));
    for (size_t i = 0; end && i < end->n_operands && i < l->op->n_results; i++)
        alone = alone && same_type(end->operands[i]->type, tare_lower_out_type(l, i));
    if (!alone) tare_lower_fail(l, TARE_UNSUPPORTED, "communication between several devices");
    lower_named(l, arg);
}

const struct tare_lowering_row tare_lower_structure[] = {
    { "tuple", lower_tuple, NULL },
    { "get_tuple_element", lower_tuple_element, NULL },
    { "after_all", lower_token, NULL },
    { "create_token", lower_token, NULL },
    { "all_gather", lower_collective, NULL },
    { "all_reduce", lower_collective, NULL },
    { "all_to_all", lower_collective, NULL },
    { "collective_broadcast", lower_collective, NULL },
    { "collective_permute", lower_collective_permute, NULL },
    { "collective_reduce", lower_collective, NULL },
    { "cross-replica-sum", lower_collective, NULL },
    { "reduce_scatter", lower_collective, NULL },
    { "map", lower_map, NULL },
    { "einsum", lower_einsum, NULL },
    { "unary_einsum", lower_einsum, NULL },
    { "torch_index_select", lower_torch_index_select, NULL },
    { "set_dimension_size", lower_set_dimension_size, NULL },
    { "data_flow_edge", lower_same, NULL },
    { "manual_computation", lower_manual, NULL },
    { "mesh", lower_nothing, NULL },
    { "named_computation", lower_named, NULL },
    { "propagation_barrier", lower_same, NULL },
    { "reshard", lower_same, NULL },
    { "sharding_constraint", lower_same, NULL },
    { "sharding_group", lower_nothing, NULL },
    { "unrealized_conversion_cast", lower_same, NULL },
    { 0 },
};
