/* Calls and control flow. Values that a region captures become further operands of the loop or branch. */
#include "convert/stablehlo/lower.h"

#include <string.h>

enum { MOST_OPERANDS = 256, MOST_BRANCHES = 256 };

/* Operands from `first` on, tuples element by element, then the captures. */
static size_t gather(struct tare_lowering *l, struct tare_edge *inputs, size_t first,
                     const struct tare_shlo_captures *captures) {
    size_t n = captures->count;
    for (size_t i = first; i < l->op->n_operands; i++)
        n += tare_lower_leaves(tare_lower_in_type(l, i));
    if (n > MOST_OPERANDS) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands and captured values", n);
        return 0;
    }
    n = 0;
    for (size_t i = first; i < l->op->n_operands; i++) {
        const struct tare_edge edge = tare_lower_in(l, i);
        for (size_t k = 0; k < tare_lower_leaves(tare_lower_in_type(l, i)); k++)
            inputs[n++] = (struct tare_edge){ edge.node, edge.index + (int)k };
    }
    for (size_t i = 0; i < captures->count; i++) {
        if (captures->values[i]->type->kind == TARE_SHLO_TUPLE)
            tare_lower_fail(l, TARE_UNSUPPORTED, "a region uses a tuple of the function around it");
        inputs[n++] = tare_lower_value(l, captures->values[i]);
    }
    return n;
}

static size_t result_leaves(const struct tare_lowering *l) {
    size_t count = 0;
    for (size_t i = 0; i < l->op->n_results; i++)
        count += tare_lower_leaves(tare_lower_out_type(l, i));
    return count;
}

/* The dtypes of all results, tuples element by element; arena memory. */
static const int *result_dtypes(struct tare_lowering *l) {
    int *dtypes = TARE_NEW_ARRAY(&l->graph->model->arena, int, result_leaves(l) + 1);
    size_t n = 0;
    if (!dtypes) l->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < l->op->n_results && dtypes; i++) {
        const struct tare_shlo_type *type = tare_lower_out_type(l, i);
        for (size_t k = 0; k < tare_lower_leaves(type); k++)
            dtypes[n++] = tare_shlo_dtype(type->kind == TARE_SHLO_TUPLE ? type->inputs.items[k] : type);
    }
    return dtypes;
}

static void check_tensor(struct tare_lowering *l, const char *what, size_t i, int dtype, int expected) {
    if (dtype != expected)
        tare_lower_fail(l, TARE_CORRUPT, "%s %zu of its function or region is %s (expected %s)", what, i,
                        tare_dtype_name(dtype), tare_dtype_name(expected));
}

void tare_lower_check_inputs(struct tare_lowering *l, const struct tare_graph *function, const struct tare_edge *inputs,
                             size_t count) {
    if (l->status != TARE_OK) return;
    if (function->n_args != count)
        tare_lower_fail(l, TARE_CORRUPT, "its function or region takes %zu tensors (expected %zu)", function->n_args,
                        count);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        check_tensor(l, "argument", i, tare_node_type(function->args[i], "T", TARE_DT_INVALID),
                     tare_edge_dtype(inputs[i]));
}

void tare_lower_check_returns(struct tare_lowering *l, const struct tare_graph *function, const int *dtypes,
                              size_t count) {
    if (l->status != TARE_OK) return;
    if (function->n_returns != count)
        tare_lower_fail(l, TARE_CORRUPT, "its function or region returns %zu tensors (expected %zu)",
                        function->n_returns, count);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        check_tensor(l, "result", i, function->returns[i].dtype, dtypes[i]);
}

static void lower_call(struct tare_lowering *l, const void *arg) {
    static const struct tare_shlo_captures none;
    struct tare_edge inputs[MOST_OPERANDS];
    if (tare_lower_inlined(l, tare_lower_text(l, arg))) return;
    struct tare_graph *function = tare_lower_function(l, tare_lower_text(l, arg));
    const size_t count = gather(l, inputs, 0, &none);
    tare_lower_check_inputs(l, function, inputs, count);
    tare_lower_check_returns(l, function, result_dtypes(l), result_leaves(l));
    if (l->status == TARE_OK) tare_lower_spread(l, tare_lower_call(l, function, inputs, count));
}

/* The decomposition of a composite computes what its name says. */
static void lower_composite(struct tare_lowering *l, const void *arg) {
    if (!tare_lower_elementary(l)) lower_call(l, arg);
}

/* StatelessWhile, StatelessIf or StatelessCase, or the stateful op if a region has side effects. */
static const char *control_op(const char *stateless, struct tare_graph *const *regions, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (regions[i] && regions[i]->is_stateful) return stateless + strlen("Stateless");
    return stateless;
}

static void end_control(struct tare_lowering *l, struct tare_node *node, struct tare_graph *const *regions,
                        size_t count) {
    tare_lower_end(l, node);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        if (regions[i]->is_stateful) {
            tare_lower_effect(l, node);
            break;
        }
    tare_lower_spread(l, node);
}

/* The body returns the next values of its arguments, which are the operands and then the captures. */
static void check_while(struct tare_lowering *l, struct tare_graph *const *regions, const struct tare_edge *inputs,
                        size_t count, size_t captured) {
    static const int condition = TARE_DT_BOOL;
    int dtypes[MOST_OPERANDS];
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        dtypes[i] = tare_edge_dtype(inputs[i]);
    for (size_t i = 0; i < 2; i++)
        tare_lower_check_inputs(l, regions[i], inputs, count);
    tare_lower_check_returns(l, regions[0], &condition, 1);
    tare_lower_check_returns(l, regions[1], dtypes, count);
    if (l->status == TARE_OK && result_leaves(l) != count - captured)
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", count - captured, result_leaves(l));
}

static void lower_while(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_edge inputs[MOST_OPERANDS];
    (void)arg;
    tare_lower_captures(&captures, l, &l->op->regions[0]);
    tare_lower_captures(&captures, l, &l->op->regions[1]);
    const size_t count = gather(l, inputs, 0, &captures);
    struct tare_graph *const regions[] = { tare_lower_region(l, &l->op->regions[0], &captures, false),
                                           tare_lower_region(l, &l->op->regions[1], &captures, true) };
    check_while(l, regions, inputs, count, captures.count);
    struct tare_node *node = tare_lower_begin(l, control_op("StatelessWhile", regions, 2), inputs, count);
    tare_lower_attr_func(l, node, "cond", regions[0]);
    tare_lower_attr_func(l, node, "body", regions[1]);
    end_control(l, node, regions, 2);
}

/* Starts an If or Case: each of its branches takes all operands but the selector, and returns the results. */
static struct tare_node *begin_branches(struct tare_lowering *l, const char *op, struct tare_graph *const *branches,
                                        size_t n_branches, const struct tare_shlo_captures *captures) {
    struct tare_edge inputs[MOST_OPERANDS + 1];
    const size_t count = gather(l, inputs + 1, 1, captures);
    const int *dtypes = result_dtypes(l);
    inputs[0] = tare_lower_in(l, 0);
    for (size_t i = 0; i < n_branches; i++) {
        tare_lower_check_inputs(l, branches[i], inputs + 1, count);
        tare_lower_check_returns(l, branches[i], dtypes, result_leaves(l));
    }
    struct tare_node *node = tare_lower_begin(l, control_op(op, branches, n_branches), inputs, count + 1);
    if (node && l->status == TARE_OK) l->status = tare_node_set_type_list(node, "Tout", dtypes, result_leaves(l));
    return node;
}

static void lower_if(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    (void)arg;
    tare_lower_captures(&captures, l, &l->op->regions[0]);
    tare_lower_captures(&captures, l, &l->op->regions[1]);
    struct tare_graph *const regions[] = { tare_lower_region(l, &l->op->regions[0], &captures, false),
                                           tare_lower_region(l, &l->op->regions[1], &captures, false) };
    struct tare_node *node = begin_branches(l, "StatelessIf", regions, 2, &captures);
    tare_lower_attr_func(l, node, "then_branch", regions[0]);
    tare_lower_attr_func(l, node, "else_branch", regions[1]);
    end_control(l, node, regions, 2);
}

/* An index out of range selects the last branch, in TensorFlow as in XLA. Of a known index, that of the platform, the
 * other branches are not part of the model. */
static void lower_case(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_graph *branches[MOST_BRANCHES];
    const size_t count = l->op->n_regions;
    (void)arg;
    if (!count || count > MOST_BRANCHES) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a case of %zu branches (expected 1 to %d)", count, MOST_BRANCHES);
        return;
    }
    const int64_t known = l->op->n_operands ? tare_lower_known_index(l, l->op->operands[0]) : -1;
    if (known >= 0) {
        tare_lower_region_here(l, &l->op->regions[(size_t)known < count ? (size_t)known : count - 1]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        tare_lower_captures(&captures, l, &l->op->regions[i]);
    for (size_t i = 0; i < count; i++)
        branches[i] = tare_lower_region(l, &l->op->regions[i], &captures, false);
    struct tare_node *node = begin_branches(l, "StatelessCase", branches, count, &captures);
    if (node && l->status == TARE_OK) l->status = tare_node_set_func_list(node, "branches", branches, count);
    end_control(l, node, branches, count);
}

static void lower_identity(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands < l->op->n_results) tare_lower_fail(l, TARE_CORRUPT, "fewer operands than results");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_unary(l, "Identity", tare_lower_in(l, i));
}

/* One device: its number is 0. */
static void lower_device(struct tare_lowering *l, const void *arg) {
    if (arg && tare_lower_partitions(l) > 1)
        tare_lower_fail(l, TARE_UNSUPPORTED, "communication between several devices");
    tare_lower_set(l, tare_lower_scalar(l, tare_lower_out_dtype(l, 0), 0));
}

const struct tare_lowering_row tare_lower_control[] = {
    { "call", lower_call, "callee" },
    { "composite", lower_composite, "decomposition" },
    { "while", lower_while, NULL },
    { "if", lower_if, NULL },
    { "case", lower_case, NULL },
    { "optimization_barrier", lower_identity, NULL },
    { "partition_id", lower_device, "partition" },
    { "replica_id", lower_device, NULL },
    { "custom_call", tare_lower_custom_call, NULL },
    { 0 },
};
