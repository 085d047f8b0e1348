/* Calls, control flow and custom calls. Values that a region captures become further operands of the loop or branch. */
#include "convert/stablehlo/lower.h"

#include <string.h>

enum { MOST_OPERANDS = 256, MOST_BRANCHES = 256 };

static void set_all(struct tare_lowering *l, struct tare_node *node) {
    for (size_t i = 0; i < l->op->n_results && node && l->status == TARE_OK; i++)
        l->outputs[i] = (struct tare_edge){ node, (int)i };
}

/* Operands from `first` on, then the captures. */
static size_t gather(struct tare_lowering *l, struct tare_edge *inputs, size_t first,
                     const struct tare_shlo_captures *captures) {
    size_t n = 0;
    if (l->op->n_operands - first + captures->count > MOST_OPERANDS) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands and %zu captured values", l->op->n_operands,
                        captures->count);
        return 0;
    }
    for (size_t i = first; i < l->op->n_operands; i++)
        inputs[n++] = tare_lower_in(l, i);
    for (size_t i = 0; i < captures->count; i++)
        inputs[n++] = tare_lower_value(l, captures->values[i]);
    return n;
}

static void lower_call(struct tare_lowering *l, const void *arg) {
    static const struct tare_shlo_captures none;
    struct tare_edge inputs[MOST_OPERANDS];
    if (tare_lower_inlined(l, tare_lower_text(l, arg))) return;
    struct tare_graph *function = tare_lower_function(l, tare_lower_text(l, arg));
    const size_t count = gather(l, inputs, 0, &none);
    if (l->status != TARE_OK) return;
    if (function->n_args != count || function->n_returns != l->op->n_results) {
        tare_lower_fail(l, TARE_CORRUPT, "the called function has other arguments or results");
        return;
    }
    set_all(l, tare_lower_call(l, function, inputs, count));
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
    set_all(l, node);
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
    if (l->op->n_results > MOST_OPERANDS) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu results", l->op->n_results);
        return;
    }
    for (size_t i = 0; i < l->op->n_results; i++)
        dtypes[i] = tare_lower_out_dtype(l, i);
    l->status = tare_node_set_type_list(node, "Tout", dtypes, l->op->n_results);
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

/* One device: its number is 0. */
static void lower_device(struct tare_lowering *l, const void *arg) {
    (void)arg;
    tare_lower_set(l, tare_lower_scalar(l, tare_lower_out_dtype(l, 0), 0));
}

/* ---- custom calls ---- */

/* Annotations of sharding and placement, which have no effect on one device. */
static bool is_annotation(const char *target) {
    static const char *const targets[] = { "Sharding",
                                           "SPMDFullToShardShape",
                                           "SPMDShardToFullShape",
                                           "xla.sdy.FuncResultSharding",
                                           "annotate_device_placement",
                                           "stablehlo.shape_refinement_operand_wrapper" };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(target, targets[i]) == 0) return true;
    return false;
}

static void lower_custom_call(struct tare_lowering *l, const void *arg) {
    const char *target = tare_lower_text(l, "call_target_name");
    if (strcmp(target, "shape_assertion") == 0 && !l->op->n_results) return; /* not evaluated (docs/unsupported.md) */
    if (tare_lower_is_check(target))
        tare_lower_check(l, target);
    else if (is_annotation(target))
        lower_identity(l, arg);
    else
        tare_lower_fail(l, TARE_UNSUPPORTED, "custom call '%s' is not supported", target);
}

const struct tare_lowering_row tare_lower_control[] = {
    { "call", lower_call, "callee" },
    { "composite", lower_call, "decomposition" },
    { "while", lower_while, NULL },
    { "if", lower_if, NULL },
    { "case", lower_case, NULL },
    { "optimization_barrier", lower_identity, NULL },
    { "partition_id", lower_device, NULL },
    { "replica_id", lower_device, NULL },
    { "custom_call", lower_custom_call, NULL },
    { 0 },
};
