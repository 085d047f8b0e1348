/* Ops with a function on scalars: reductions, windows, sorting. The interpreter recognises the common functions. */
#include "convert/stablehlo/lower.h"

#include <math.h>
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
    if (l->op->n_operands && tare_shlo_stored_as_float(tare_lower_in_type(l, 0))) return NULL; /* each sum is rounded */
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
        const struct tare_edge axes = tare_lower_longs(l, dims, n);
        tare_lower_set(l, tare_lower_binary(l, plain, tare_lower_in(l, 0), axes));
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

/* ---- windows ---- */

/* The windows of a reduction, as int64 edges: dimensions, strides, base dilations, window dilations [rank], padding
 * [rank, 2]. */
struct windows {
    struct tare_edge sizes, strides, base, window, padding;
};

static struct tare_edge column(struct tare_lowering *l, struct tare_edge pairs, int index) {
    const struct tare_edge inputs[] = { pairs, tare_lower_scalar(l, TARE_DT_INT64, index),
                                        tare_lower_scalar(l, TARE_DT_INT64, 1) };
    return tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
}

/* x with its padding and base dilation, filled with the initial value. */
static struct tare_edge pad(struct tare_lowering *l, struct tare_edge x, struct tare_edge initial,
                            const struct windows *w) {
    const struct tare_edge one = tare_lower_scalar(l, TARE_DT_INT64, 1);
    const struct tare_edge inputs[] = { x, initial, column(l, w->padding, 0), column(l, w->padding, 1),
                                        tare_lower_binary(l, "Sub", w->base, one) };
    return tare_lower_end(l, tare_lower_begin(l, "XlaPad", inputs, 5));
}

static struct tare_edge element(struct tare_lowering *l, struct tare_edge list, size_t i) {
    const struct tare_edge inputs[] = { list, tare_lower_scalar(l, TARE_DT_INT64, (double)i),
                                        tare_lower_scalar(l, TARE_DT_INT64, 0) };
    return tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
}

static struct tare_edge count_up(struct tare_lowering *l, struct tare_edge limit) {
    const struct tare_edge inputs[] = { tare_lower_scalar(l, TARE_DT_INT64, 0), limit,
                                        tare_lower_scalar(l, TARE_DT_INT64, 1) };
    return tare_lower_end(l, tare_lower_begin(l, "Range", inputs, 3));
}

/* Positions along one dimension: stride * window + dilation * place, [windows, places]. */
static struct tare_edge positions(struct tare_lowering *l, struct tare_edge size, const struct windows *w, size_t d) {
    const struct tare_edge one = tare_lower_scalar(l, TARE_DT_INT64, 1), zero = tare_lower_scalar(l, TARE_DT_INT64, 0);
    const struct tare_edge places = element(l, w->sizes, d), stride = element(l, w->strides, d);
    const struct tare_edge dilation = element(l, w->window, d);
    const struct tare_edge reach = tare_lower_binary(l, "Mul", dilation, tare_lower_binary(l, "Sub", places, one));
    const struct tare_edge room = tare_lower_binary(l, "Sub", tare_lower_binary(l, "Sub", size, reach), one);
    const struct tare_edge count = tare_lower_binary(l, "AddV2", tare_lower_binary(l, "FloorDiv", room, stride), one);
    const struct tare_edge windows = count_up(l, tare_lower_binary(l, "Maximum", count, zero));
    const struct tare_edge starts = tare_lower_binary(l, "Mul", windows, stride);
    const struct tare_edge offsets = tare_lower_binary(l, "Mul", count_up(l, places), dilation);
    return tare_lower_binary(l, "AddV2", tare_lower_binary(l, "ExpandDims", starts, one), offsets);
}

/* Each dimension of x becomes two, the windows and the places in them. */
static struct tare_edge gather_windows(struct tare_lowering *l, struct tare_edge x, const struct windows *w,
                                       size_t rank) {
    struct tare_node *node = tare_lower_begin(l, "Shape", &x, 1);
    tare_lower_attr_type(l, node, "out_type", TARE_DT_INT64);
    const struct tare_edge shape = tare_lower_end(l, node);
    for (size_t d = 0; d < rank; d++) {
        const struct tare_edge inputs[] = { x, positions(l, element(l, shape, d), w, d),
                                            tare_lower_scalar(l, TARE_DT_INT64, 2 * (double)d) };
        x = tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
    }
    return x;
}

/* Several operands: no op of TensorFlow reduces windows of them together, so the windows are gathered, and all places
 * of a window are reduced. */
static void reduce_gathered(struct tare_lowering *l, size_t count, struct tare_graph *reducer,
                            const struct windows *w) {
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    struct tare_edge inputs[MOST_OPERANDS];
    int64_t places[TARE_MAX_RANK];
    if (2 * count > MOST_OPERANDS || 2 * rank > TARE_MAX_RANK) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a windowed reduction of %zu operands of rank %zu", count, rank);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        inputs[count + i] = tare_lower_in(l, count + i);
        inputs[i] = gather_windows(l, pad(l, tare_lower_in(l, i), inputs[count + i], w), w, rank);
    }
    for (size_t d = 0; d < rank; d++)
        places[d] = 2 * (int64_t)d + 1;
    struct tare_node *node = tare_lower_begin(l, "XlaVariadicReduceV2", inputs, 2 * count);
    tare_lower_attr_ints(l, node, "dimensions_to_reduce", places, rank);
    tare_lower_attr_func(l, node, "reducer", reducer);
    set_all(l, node);
}

/* True if the function changes no float when its other argument is the initial value (operand 1), so that windows
 * without the padding have the same result as those with it. */
static bool is_neutral(const struct tare_lowering *l, const struct tare_shlo_block *body) {
    static const struct {
        const char *op;
        double initial;
    } neutral[] = { { "vhlo.add_v1", 0 },
                    { "vhlo.multiply_v1", 1 },
                    { "vhlo.maximum_v1", -INFINITY },
                    { "vhlo.minimum_v1", INFINITY } };
    const char *op = body_op(body);
    if (tare_lower_has_quantized(l->op)) return false;
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
        if (strcmp(op, neutral[i].op) == 0) return tare_lower_is_constant(l, 1, neutral[i].initial);
    return false;
}

/* Padding and what base dilation inserts are the initial value; XlaReduceWindow leaves them out of the windows.
 * `neutral`: that is no difference. */
static void reduce_windows(struct tare_lowering *l, size_t count, struct tare_graph *reducer, const struct windows *w,
                           bool neutral) {
    struct tare_edge x, base = w->base, padding = w->padding;
    if (count != 1) {
        reduce_gathered(l, count, reducer, w);
        return;
    }
    x = tare_lower_in(l, 0);
    if (!neutral) {
        x = pad(l, x, tare_lower_in(l, 1), w);
        base = tare_lower_unary(l, "OnesLike", base);
        padding = tare_lower_unary(l, "ZerosLike", padding);
    }
    const struct tare_edge inputs[] = { x, tare_lower_in(l, 1), w->sizes, w->strides, base, w->window, padding };
    struct tare_node *node = tare_lower_begin(l, "XlaReduceWindow", inputs, 7);
    tare_lower_attr_func(l, node, "computation", reducer);
    tare_lower_set(l, tare_lower_end(l, node));
}

/* True if all integers of a list attribute have this value. */
static bool all_are(struct tare_lowering *l, const char *name, int64_t value) {
    int64_t values[2 * TARE_MAX_RANK];
    const size_t n = tare_lower_ints(l, values, 2 * TARE_MAX_RANK, name);
    for (size_t i = 0; i < n; i++)
        if (values[i] != value) return false;
    return true;
}

static void lower_reduce_window(struct tare_lowering *l, const void *arg) {
    const struct windows w = { list(l, "window_dimensions"), list(l, "window_strides"), list(l, "base_dilations"),
                               list(l, "window_dilations"), list(l, "padding") };
    (void)arg;
    if (!l->op->n_operands || l->op->n_operands != 2 * l->op->n_results) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, l->op->n_results);
        return;
    }
    const bool unpadded = all_are(l, "padding", 0) && all_are(l, "base_dilations", 1);
    reduce_windows(l, l->op->n_results, tare_lower_region(l, &l->op->regions[0], NULL, false), &w,
                   unpadded || is_neutral(l, &l->op->regions[0]));
}

/* stablehlo.dynamic_reduce_window(inputs…, initial values…, dimensions, strides, base dilations, window dilations,
 * padding) with the function as the called computation. */
void tare_lower_dynamic_reduce_window(struct tare_lowering *l, const void *arg) {
    const size_t count = l->op->n_results;
    struct tare_edge lists[5];
    (void)arg;
    if (!count || l->op->n_operands != 2 * count + 5) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, count);
        return;
    }
    for (size_t i = 0; i < 5; i++)
        lists[i] = tare_lower_cast(l, tare_lower_in(l, 2 * count + i), TARE_DT_INT64);
    const struct windows w = { lists[0], lists[1], lists[2], lists[3], lists[4] };
    reduce_windows(l, count, tare_lower_called(l), &w, false);
}

/* A function of int8 numbers around one of bools, of which XlaSelectAndScatter has no form. Its result is of `dtype`.
 */
static struct tare_graph *as_int8(struct tare_lowering *l, struct tare_graph *function, int dtype) {
    struct tare_graph_model *model = l->graph->model;
    if (l->status != TARE_OK) return NULL;
    const char *name = tare_model_unused_name(model, function->name);
    struct tare_lowering inner = *l;
    struct tare_edge inputs[2];
    inner.graph = name ? tare_model_add_function(model, name) : NULL;
    if (!inner.graph) {
        l->status = TARE_NO_MEMORY;
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        struct tare_node *arg = tare_graph_add_arg(inner.graph, i ? "y" : "x", TARE_DT_INT8);
        if (!arg) inner.status = TARE_NO_MEMORY;
        inputs[i] = tare_lower_cast(&inner, (struct tare_edge){ arg, 0 }, TARE_DT_BOOL);
    }
    struct tare_node *call = tare_lower_call(&inner, function, inputs, 2);
    const struct tare_edge result = tare_lower_cast(&inner, (struct tare_edge){ call, 0 }, dtype);
    l->status = inner.status;
    if (l->status == TARE_OK) l->status = tare_graph_add_return(inner.graph, "z", dtype, result);
    return inner.graph;
}

static void lower_select_and_scatter(struct tare_lowering *l, const void *arg) {
    const bool is_bool = tare_lower_in_dtype(l, 0) == TARE_DT_BOOL;
    struct tare_edge operands[3];
    struct tare_graph *select = tare_lower_region(l, &l->op->regions[0], NULL, false);
    struct tare_graph *scatter = tare_lower_region(l, &l->op->regions[1], NULL, false);
    (void)arg;
    for (size_t i = 0; i < 3; i++) {
        operands[i] = tare_lower_in(l, i);
        if (is_bool) operands[i] = tare_lower_cast(l, operands[i], TARE_DT_INT8);
    }
    if (is_bool) select = as_int8(l, select, TARE_DT_BOOL);
    if (is_bool) scatter = as_int8(l, scatter, TARE_DT_INT8);
    const struct tare_edge inputs[] = {
        operands[0], list(l, "window_dimensions"), list(l, "window_strides"), list(l, "padding"), operands[1],
        operands[2]
    };
    struct tare_node *node = tare_lower_begin(l, "XlaSelectAndScatter", inputs, 6);
    tare_lower_attr_func(l, node, "select", select);
    tare_lower_attr_func(l, node, "scatter", scatter);
    const struct tare_edge result = tare_lower_end(l, node);
    tare_lower_set(l, is_bool ? tare_lower_cast(l, result, TARE_DT_BOOL) : result);
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
