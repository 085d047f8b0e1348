/* Ops with a function on scalars: reductions, windows, sorting. The interpreter recognises the common functions. */
#include "convert/stablehlo/lower.h"

#include <string.h>

static const struct tare_edge no_edge;

/* All outputs of a node. */
static void set_all(struct tare_lowering *l, struct tare_node *node) {
    const struct tare_edge first = tare_lower_end(l, node);
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = (struct tare_edge){ first.node, (int)i };
}

static bool gather_operands(struct tare_lowering *l, struct tare_edge *inputs, size_t capacity) {
    if (l->op->n_operands > capacity) tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands", l->op->n_operands);
    for (size_t i = 0; i < l->op->n_operands && l->status == TARE_OK; i++)
        inputs[i] = tare_lower_in(l, i);
    return l->status == TARE_OK;
}

enum { MOST_OPERANDS = 64 };

/* A body of one op on its two arguments: the name of the op. */
static const char *body_op(const struct tare_shlo_block *body) {
    const struct tare_shlo_op *op = &body->ops[0];
    if (body->n_ops != 2 || body->n_args != 2 || op->n_operands != 2 || op->n_results != 1) return "";
    if (body->ops[1].n_operands != 1 || body->ops[1].operands[0] != &op->results[0]) return "";
    const bool both = (op->operands[0] == &body->args[0] && op->operands[1] == &body->args[1]) ||
                      (op->operands[1] == &body->args[0] && op->operands[0] == &body->args[1]);
    return both ? op->name : "";
}

/* Reductions from their neutral element are TensorFlow's, which quantization and bfloat16 know. */
static const char *plain_reduction(struct tare_lowering *l) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const char *op = l->op->n_operands == 2 ? body_op(&l->op->regions[0]) : "";
    if (dtype != TARE_DT_FLOAT && dtype != TARE_DT_DOUBLE) return NULL;
    if (strcmp(op, "vhlo.add_v1") == 0 && tare_lower_is_constant(l, 1, 0)) return "Sum";
    return NULL;
}

static void lower_reduce(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[MOST_OPERANDS];
    int64_t dims[TARE_MAX_RANK];
    const size_t n = tare_lower_ints(l, dims, TARE_MAX_RANK, "dimensions");
    const char *plain = plain_reduction(l);
    struct tare_node *node;
    (void)arg;
    if (plain) {
        tare_lower_set(l, tare_lower_binary(l, plain, tare_lower_in(l, 0), tare_lower_longs(l, dims, n)));
        return;
    }
    if (!gather_operands(l, inputs, MOST_OPERANDS)) return;
    if (!l->op->n_operands || l->op->n_operands % 2) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands (expected inputs and as many initial values)",
                        l->op->n_operands);
        return;
    }
    node = tare_lower_begin(l, "XlaVariadicReduceV2", inputs, l->op->n_operands);
    tare_lower_attr_ints(l, node, "dimensions_to_reduce", dims, n);
    tare_lower_attr_func(l, node, "reducer", tare_lower_region(l, &l->op->regions[0], NULL, false));
    set_all(l, node);
}

static struct tare_edge list(struct tare_lowering *l, const char *name) {
    int64_t values[2 * TARE_MAX_RANK];
    const size_t n = tare_lower_ints(l, values, 2 * TARE_MAX_RANK, name);
    const int64_t pairs[] = { (int64_t)n / 2, 2 };
    if (l->status != TARE_OK) return no_edge;
    return strcmp(name, "padding") == 0 ? tare_lower_longs_of(l, values, pairs, 2) : tare_lower_longs(l, values, n);
}

static void lower_reduce_window(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands != 2) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a windowed reduction of several operands");
        return;
    }
    const struct tare_edge inputs[] = {
        tare_lower_in(l, 0),       tare_lower_in(l, 1),       list(l, "window_dimensions"),
        list(l, "window_strides"), list(l, "base_dilations"), list(l, "window_dilations"),
        list(l, "padding")
    };
    struct tare_node *node = tare_lower_begin(l, "XlaReduceWindow", inputs, 7);
    tare_lower_attr_func(l, node, "computation", tare_lower_region(l, &l->op->regions[0], NULL, false));
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_select_and_scatter(struct tare_lowering *l, const void *arg) {
    (void)arg;
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), list(l, "window_dimensions"), list(l, "window_strides"),
                                        list(l, "padding"),  tare_lower_in(l, 1),          tare_lower_in(l, 2) };
    struct tare_node *node = tare_lower_begin(l, "XlaSelectAndScatter", inputs, 6);
    tare_lower_attr_func(l, node, "select", tare_lower_region(l, &l->op->regions[0], NULL, false));
    tare_lower_attr_func(l, node, "scatter", tare_lower_region(l, &l->op->regions[1], NULL, false));
    tare_lower_set(l, tare_lower_end(l, node));
}

static void lower_sort(struct tare_lowering *l, const void *arg) {
    struct tare_edge inputs[MOST_OPERANDS + 1];
    const size_t count = l->op->n_operands;
    int64_t dimension = tare_lower_int(l, "dimension");
    struct tare_node *node;
    (void)arg;
    if (!gather_operands(l, inputs, MOST_OPERANDS)) return;
    if (dimension < 0) dimension += (int64_t)tare_lower_in_type(l, 0)->rank;
    inputs[count] = tare_lower_scalar(l, TARE_DT_INT32, (double)dimension);
    node = tare_lower_begin(l, "XlaVariadicSort", inputs, count + 1);
    tare_lower_attr_func(l, node, "comparator", tare_lower_region(l, &l->op->regions[0], NULL, false));
    tare_lower_attr_bool(l, node, "is_stable", tare_lower_flag(l, "is_stable"));
    set_all(l, node);
}

const struct tare_lowering_row tare_lower_reductions[] = {
    { "reduce", lower_reduce, NULL },
    { "reduce_window", lower_reduce_window, NULL },
    { "select_and_scatter", lower_select_and_scatter, NULL },
    { "sort", lower_sort, NULL },
    { 0 },
};
