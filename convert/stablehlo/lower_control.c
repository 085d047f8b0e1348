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
    struct tare_graph *function = tare_lower_function(l, tare_lower_text(l, arg));
    const size_t count = gather(l, inputs, 0, &none);
    if (l->status != TARE_OK) return;
    if (function->n_args != count || function->n_returns != l->op->n_results) {
        tare_lower_fail(l, TARE_CORRUPT, "the called function has other arguments or results");
        return;
    }
    set_all(l, tare_lower_call(l, function, inputs, count));
}

static void lower_while(struct tare_lowering *l, const void *arg) {
    struct tare_shlo_captures captures = { 0 };
    struct tare_edge inputs[MOST_OPERANDS];
    (void)arg;
    tare_lower_captures(&captures, l, &l->op->regions[0]);
    tare_lower_captures(&captures, l, &l->op->regions[1]);
    const size_t count = gather(l, inputs, 0, &captures);
    struct tare_node *node = tare_lower_begin(l, "StatelessWhile", inputs, count);
    tare_lower_attr_func(l, node, "cond", tare_lower_region(l, &l->op->regions[0], &captures, false));
    tare_lower_attr_func(l, node, "body", tare_lower_region(l, &l->op->regions[1], &captures, true));
    tare_lower_end(l, node);
    set_all(l, node);
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
    struct tare_node *node = begin_branches(l, "StatelessIf", tare_lower_in(l, 0), &captures);
    tare_lower_attr_func(l, node, "then_branch", tare_lower_region(l, &l->op->regions[0], &captures, false));
    tare_lower_attr_func(l, node, "else_branch", tare_lower_region(l, &l->op->regions[1], &captures, false));
    tare_lower_end(l, node);
    set_all(l, node);
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
    struct tare_node *node = begin_branches(l, "StatelessCase", tare_lower_in(l, 0), &captures);
    for (size_t i = 0; i < count; i++)
        branches[i] = tare_lower_region(l, &l->op->regions[i], &captures, false);
    if (node && l->status == TARE_OK) l->status = tare_node_set_func_list(node, "branches", branches, count);
    tare_lower_end(l, node);
    set_all(l, node);
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

static struct tare_edge all(struct tare_lowering *l, struct tare_edge x, size_t rank) {
    int64_t axes[TARE_MAX_RANK];
    for (size_t i = 0; i < rank && i < TARE_MAX_RANK; i++)
        axes[i] = (int64_t)i;
    return tare_lower_binary(l, "All", x, tare_lower_longs(l, axes, rank));
}

/* |x - y| <= 1e-4 in double, or both infinite and equal, or both NaN. */
static struct tare_edge nearly_equal(struct tare_lowering *l, struct tare_edge x, struct tare_edge y) {
    x = tare_lower_cast(l, x, TARE_DT_DOUBLE);
    y = tare_lower_cast(l, y, TARE_DT_DOUBLE);
    const struct tare_edge difference = tare_lower_unary(l, "Abs", tare_lower_binary(l, "Sub", x, y));
    const struct tare_edge near =
        tare_lower_binary(l, "LessEqual", difference, tare_lower_scalar(l, TARE_DT_DOUBLE, 1e-4));
    const struct tare_edge same = tare_lower_binary(l, "Equal", x, y);
    const struct tare_edge nan =
        tare_lower_binary(l, "LogicalAnd", tare_lower_unary(l, "IsNan", x), tare_lower_unary(l, "IsNan", y));
    return tare_lower_binary(l, "LogicalOr", tare_lower_binary(l, "LogicalOr", near, same), nan);
}

static struct tare_edge part(struct tare_lowering *l, const char *op, struct tare_edge x, int dtype) {
    struct tare_node *node = tare_lower_begin(l, op, &x, 1);
    tare_lower_attr_type(l, node, "Tout", dtype);
    return tare_lower_end(l, node);
}

/* check.eq(actual, expected) -> bool: integers exactly, floating numbers (parts of complex ones apart) to 1e-4. */
static void lower_check(struct tare_lowering *l) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    const struct tare_edge x = tare_lower_in(l, 0), y = tare_lower_in(l, 1);
    struct tare_edge equal;
    if (dtype == TARE_DT_COMPLEX64 || dtype == TARE_DT_COMPLEX128) {
        const int real = dtype == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE;
        equal = tare_lower_binary(l, "LogicalAnd", nearly_equal(l, part(l, "Real", x, real), part(l, "Real", y, real)),
                                  nearly_equal(l, part(l, "Imag", x, real), part(l, "Imag", y, real)));
    } else if (dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF ||
               dtype == TARE_DT_BFLOAT16) {
        equal = nearly_equal(l, x, y);
    } else {
        equal = tare_lower_binary(l, "Equal", x, y);
    }
    tare_lower_set(l, all(l, equal, rank));
}

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
    if (strcmp(target, "check.eq") == 0 && l->op->n_operands == 2 && l->op->n_results == 1)
        lower_check(l);
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
