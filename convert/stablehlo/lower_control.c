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

static void lower_call(struct tare_lowering *l, const void *arg) {
    static const struct tare_shlo_captures none;
    struct tare_edge inputs[MOST_OPERANDS];
    if (tare_lower_inlined(l, tare_lower_text(l, arg))) return;
    struct tare_graph *function = tare_lower_function(l, tare_lower_text(l, arg));
    const size_t count = gather(l, inputs, 0, &none);
    if (l->status != TARE_OK) return;
    if (function->n_args != count || function->n_returns != result_leaves(l)) {
        tare_lower_fail(l, TARE_CORRUPT, "the called function has other arguments or results");
        return;
    }
    tare_lower_spread(l, tare_lower_call(l, function, inputs, count));
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

static void lower_while(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_edge inputs[MOST_OPERANDS];
    (void)arg;
    tare_lower_captures(&captures, l, &l->op->regions[0]);
    tare_lower_captures(&captures, l, &l->op->regions[1]);
    const size_t count = gather(l, inputs, 0, &captures);
    struct tare_graph *const regions[] = { tare_lower_region(l, &l->op->regions[0], &captures, false),
                                           tare_lower_region(l, &l->op->regions[1], &captures, true) };
    struct tare_node *node = tare_lower_begin(l, control_op("StatelessWhile", regions, 2), inputs, count);
    tare_lower_attr_func(l, node, "cond", regions[0]);
    tare_lower_attr_func(l, node, "body", regions[1]);
    end_control(l, node, regions, 2);
}

static void set_outputs(struct tare_lowering *l, struct tare_node *node) {
    int dtypes[MOST_OPERANDS];
    if (!node || l->status != TARE_OK) return;
    if (result_leaves(l) > MOST_OPERANDS) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu results", result_leaves(l));
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < l->op->n_results; i++) {
        const struct tare_shlo_type *type = tare_lower_out_type(l, i);
        for (size_t k = 0; k < tare_lower_leaves(type); k++)
            dtypes[n++] = tare_shlo_dtype(type->kind == TARE_SHLO_TUPLE ? type->inputs.items[k] : type);
    }
    l->status = tare_node_set_type_list(node, "Tout", dtypes, n);
}

static struct tare_node *begin_branches(struct tare_lowering *l, const char *op, struct tare_edge selector,
                                        const struct tare_shlo_captures *captures) {
    struct tare_edge inputs[MOST_OPERANDS + 1];
    const size_t count = gather(l, inputs + 1, 1, captures);
    struct tare_node *node;
    inputs[0] = selector;
    node = tare_lower_begin(l, op, inputs, count + 1);
    set_outputs(l, node);
    return node;
}

static void lower_if(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    (void)arg;
    tare_lower_captures(&captures, l, &l->op->regions[0]);
    tare_lower_captures(&captures, l, &l->op->regions[1]);
    struct tare_graph *const regions[] = { tare_lower_region(l, &l->op->regions[0], &captures, false),
                                           tare_lower_region(l, &l->op->regions[1], &captures, false) };
    struct tare_node *node = begin_branches(l, control_op("StatelessIf", regions, 2), tare_lower_in(l, 0), &captures);
    tare_lower_attr_func(l, node, "then_branch", regions[0]);
    tare_lower_attr_func(l, node, "else_branch", regions[1]);
    end_control(l, node, regions, 2);
}

/* An index out of range selects the last branch, in TensorFlow as in XLA. */
static void lower_case(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_graph *branches[MOST_BRANCHES];
    const size_t count = l->op->n_regions;
    (void)arg;
    if (!count || count > MOST_BRANCHES) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a case of %zu branches (expected 1 to %d)", count, MOST_BRANCHES);
        return;
    }
    for (size_t i = 0; i < count; i++)
        tare_lower_captures(&captures, l, &l->op->regions[i]);
    for (size_t i = 0; i < count; i++)
        branches[i] = tare_lower_region(l, &l->op->regions[i], &captures, false);
    struct tare_node *node =
        begin_branches(l, control_op("StatelessCase", branches, count), tare_lower_in(l, 0), &captures);
    if (node && l->status == TARE_OK) l->status = tare_node_set_func_list(node, "branches", branches, count);
    end_control(l, node, branches, count);
}

static void lower_identity(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands < l->op->n_results) tare_lower_fail(l, TARE_CORRUPT, "fewer operands than results");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_unary(l, "Identity", tare_lower_in(l, i));
}

/* One device: its number is 0. Of several devices, manual computations know the number (lower_manual.c). */
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
