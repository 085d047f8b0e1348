/* Weights that are chosen from a stack by an index of run time: experts of rows, the layer of an iteration. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 4, ROWS = 9, COLUMNS = 8, BATCH = 5 };

/* Makes all numbers positive: the outputs are then the largest ones of their experts and columns. */
static bool positive;

/* Experts and columns of scales that differ by up to 100: one scale for each expert would leave some columns nothing.
 */
static float weight_value(int64_t i) {
    static const float by_entry[COUNT] = { 0.1f, 3, 0.5f, 10 };
    const float value = (float)((i * 7919 % 2003) - 1001) / 1000.0f;
    return (positive ? fabsf(value) : value) * by_entry[i / (ROWS * COLUMNS)] * (i % COLUMNS == 3 ? 10 : 1);
}

static float input_value(int64_t i) {
    const float value = (float)((i * 104729 % 1009) - 504) / 504.0f;
    return positive ? fabsf(value) : value;
}

static struct tare_edge constant(struct tare_graph *graph, const char *name, const struct tare_shape *shape) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = weight_value(i);
    const struct tare_edge edge = { tare_graph_add_const(graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge stack(struct tare_graph *graph) {
    const struct tare_shape shape = tare_shape_make(3, COUNT, ROWS, COLUMNS);
    return constant(graph, "stack", &shape);
}

static struct tare_edge attr(struct tare_node *node, const char *name, int64_t value) {
    mini_ok(tare_node_set_int(node, name, value));
    return mini_done(node);
}

/* ---- models: y of x and an index ---- */

/* An expert for each row. */
static struct tare_edge by_row(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge w = mini_node(g, "GatherV2", "chosen", 3, stack(g), ids, mini_int(g, "axis", 0));
    const struct tare_edge row = mini_node(g, "ExpandDims", "row", 2, x, mini_int(g, "one", 1));
    return mini_node(g, "BatchMatMulV2", "product", 2, row, w);
}

static struct tare_edge by_einsum(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge w = mini_node(g, "GatherV2", "chosen", 3, stack(g), ids, mini_int(g, "axis", 0));
    struct tare_node *node = mini_open(g, "Einsum", "product", 2, x, w);
    mini_ok(tare_node_set_string(node, "equation", "bi,bio->bo", 10));
    return mini_done(node);
}

/* The second axis chooses, and the product has the chosen axis behind the others. */
static struct tare_edge by_second_axis(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(3, ROWS, COUNT, COLUMNS);
    const struct tare_edge w =
        mini_node(g, "GatherV2", "chosen", 3, constant(g, "stack", &shape), ids, mini_int(g, "axis", 1));
    struct tare_node *node = mini_open(g, "Einsum", "product", 2, x, w);
    mini_ok(tare_node_set_string(node, "equation", "bi,ieo->boe", 11));
    return mini_done(node);
}

static struct tare_edge first_id(struct tare_graph *g, struct tare_edge ids) {
    return mini_node(g, "GatherV2", "first", 3, ids, mini_int(g, "zero", 0), mini_int(g, "axis0", 0));
}

/* One expert for all rows, [1, ROWS, COLUMNS]. */
static struct tare_edge slice_of(struct tare_graph *g, struct tare_edge ids) {
    const struct tare_edge id = first_id(g, ids), zero = mini_int(g, "none", 0);
    const struct tare_edge begin = mini_node(g, "Pack", "begin", 3, id, zero, zero);
    return mini_node(g, "Slice", "chosen", 3, stack(g), begin,
                     mini_ints(g, "size", 3, (const int32_t[]){ 1, ROWS, COLUMNS }));
}

static struct tare_edge by_slice(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge matrix = mini_node(g, "Reshape", "matrix", 2, slice_of(g, ids),
                                              mini_ints(g, "shape", 2, (const int32_t[]){ ROWS, COLUMNS }));
    return mini_node(g, "MatMul", "product", 2, x, matrix);
}

/* w[id : id + 1][0] */
static struct tare_edge by_only_entry(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node =
        mini_open(g, "StridedSlice", "entry", 4, slice_of(g, ids), mini_ints(g, "from", 1, (const int32_t[]){ 0 }),
                  mini_ints(g, "to", 1, (const int32_t[]){ 1 }), mini_ints(g, "stride", 1, (const int32_t[]){ 1 }));
    return mini_node(g, "MatMul", "product", 2, x, attr(node, "shrink_axis_mask", 1));
}

static struct tare_edge by_shrinking(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge id = mini_node(g, "Sub", "negative", 2, first_id(g, ids), mini_int(g, "count", COUNT));
    const struct tare_edge begin = mini_node(g, "Pack", "begin", 1, id);
    const struct tare_edge end = mini_node(g, "AddV2", "end", 2, begin, mini_ints(g, "one", 1, (const int32_t[]){ 1 }));
    struct tare_node *node = mini_open(g, "StridedSlice", "chosen", 4, stack(g), begin, end,
                                       mini_ints(g, "stride", 1, (const int32_t[]){ 1 }));
    return mini_node(g, "MatMul", "product", 2, x, attr(node, "shrink_axis_mask", 1));
}

/* w[ids[:1]], which has an axis of one element for the index. */
static struct tare_edge only_of_vector(struct tare_graph *g, struct tare_edge ids) {
    const struct tare_edge id =
        mini_node(g, "Reshape", "vector", 2, first_id(g, ids), mini_ints(g, "one_id", 1, (const int32_t[]){ 1 }));
    return mini_node(g, "GatherV2", "chosen", 3, stack(g), id, mini_int(g, "axis", 0));
}

static struct tare_edge by_squeezing(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node = mini_open(g, "Squeeze", "matrix", 1, only_of_vector(g, ids));
    mini_ok(tare_node_set_int_list(node, "squeeze_dims", (const int64_t[]){ 0 }, 1));
    return mini_node(g, "MatMul", "product", 2, x, mini_done(node));
}

static struct tare_edge by_reshaping(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge matrix = mini_node(g, "Reshape", "matrix", 2, only_of_vector(g, ids),
                                              mini_ints(g, "shape", 2, (const int32_t[]){ ROWS, COLUMNS }));
    return mini_node(g, "MatMul", "product", 2, x, matrix);
}

static struct tare_edge by_first_of_vector(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node = mini_open(
        g, "StridedSlice", "matrix", 4, only_of_vector(g, ids), mini_ints(g, "from", 1, (const int32_t[]){ 0 }),
        mini_ints(g, "to", 1, (const int32_t[]){ 1 }), mini_ints(g, "stride", 1, (const int32_t[]){ 1 }));
    return mini_node(g, "MatMul", "product", 2, x, attr(node, "shrink_axis_mask", 1));
}

/* ---- what the model computes from entries, with numbers of rows that are not known ---- */

static struct tare_edge chosen_rows(struct tare_graph *g, struct tare_edge ids) {
    return mini_node(g, "GatherV2", "chosen", 3, stack(g), ids, mini_int(g, "axis", 0));
}

static struct tare_edge times_rows(struct tare_graph *g, struct tare_edge x, struct tare_edge w) {
    struct tare_node *node = mini_open(g, "Einsum", "product", 2, x, w);
    mini_ok(tare_node_set_string(node, "equation", "bi,bio->bo", 10));
    return mini_done(node);
}

static struct tare_edge by_number(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    return times_rows(g, x, mini_node(g, "Mul", "scaled", 2, chosen_rows(g, ids), mini_float(g, "two", 2)));
}

static struct tare_edge by_number_first(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    return times_rows(g, x, mini_node(g, "Mul", "scaled", 2, mini_float(g, "two", 2), chosen_rows(g, ids)));
}

static struct tare_edge by_column(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(1, COLUMNS);
    return times_rows(g, x, mini_node(g, "Mul", "scaled", 2, chosen_rows(g, ids), constant(g, "by_column", &shape)));
}

static struct tare_edge with_base(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    return times_rows(g, x, mini_node(g, "AddV2", "sum", 2, constant(g, "base", &shape), chosen_rows(g, ids)));
}

static struct tare_edge with_base_of_all(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    const struct tare_edge w =
        mini_node(g, "GatherV2", "chosen", 3, stack(g), first_id(g, ids), mini_int(g, "axis", 0));
    return mini_node(g, "MatMul", "product", 2, x, mini_node(g, "AddV2", "sum", 2, constant(g, "base", &shape), w));
}

static struct tare_edge by_preserved(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    static const char *const ops[] = { "StopGradient", "PreventGradient", "Snapshot", "Neg" };
    struct tare_edge w = chosen_rows(g, ids);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        w = mini_node(g, ops[i], ops[i], 1, w);
    return times_rows(g, x, w);
}

/* The last columns: w[ids][:, :, 2:]. */
static struct tare_edge by_columns(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node = mini_open(
        g, "StridedSlice", "columns", 4, chosen_rows(g, ids), mini_ints(g, "from", 3, (const int32_t[]){ 0, 0, 2 }),
        mini_ints(g, "to", 3, (const int32_t[]){ 0, 0, 0 }), mini_ints(g, "stride", 3, (const int32_t[]){ 1, 1, 1 }));
    mini_ok(tare_node_set_int(node, "begin_mask", 3));
    return times_rows(g, x, attr(node, "end_mask", 7));
}

static struct tare_edge by_half(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node = mini_open(g, "Split", "halves", 2, mini_int(g, "last", -1), chosen_rows(g, ids));
    mini_ok(tare_node_set_int(node, "num_split", 2));
    return times_rows(g, x, mini_output(mini_done(node), 1));
}

static struct tare_edge by_sizes(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_node *node =
        mini_open(g, "SplitV", "parts", 3, chosen_rows(g, ids), mini_ints(g, "sizes", 3, (const int32_t[]){ 1, 3, -1 }),
                  mini_int(g, "columns", 2));
    mini_ok(tare_node_set_int(node, "num_split", 3));
    return times_rows(g, x, mini_output(mini_done(node), 2));
}

/* w[id, :, 1:7], with the size of the second axis as -1. */
static struct tare_edge by_part_of_slice(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge begin =
        mini_node(g, "Pack", "begin", 3, first_id(g, ids), mini_int(g, "none", 0), mini_int(g, "second", 1));
    const struct tare_edge part =
        mini_node(g, "Slice", "chosen", 3, stack(g), begin, mini_ints(g, "size", 3, (const int32_t[]){ 1, -1, 6 }));
    return mini_node(
        g, "MatMul", "product", 2, x,
        mini_node(g, "Reshape", "matrix", 2, part, mini_ints(g, "shape", 2, (const int32_t[]){ ROWS, 6 })));
}

/* Matrices that the stack has as vectors. */
static struct tare_edge by_flat(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(2, COUNT, ROWS * COLUMNS);
    const struct tare_edge w =
        mini_node(g, "GatherV2", "chosen", 3, constant(g, "stack", &shape), ids, mini_int(g, "axis", 0));
    return times_rows(
        g, x,
        mini_node(g, "Reshape", "matrices", 2, w, mini_ints(g, "shape", 3, (const int32_t[]){ -1, ROWS, COLUMNS })));
}

/* w[..., id, :] of a stack that has its entries along the second axis. */
static struct tare_edge by_ellipsis(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(3, ROWS, COUNT, COLUMNS);
    const struct tare_edge id = first_id(g, ids), zero = mini_int(g, "none", 0), one = mini_int(g, "one", 1);
    const struct tare_edge next = mini_node(g, "AddV2", "next", 2, id, one);
    struct tare_node *node = mini_open(
        g, "StridedSlice", "chosen", 4, constant(g, "stack", &shape), mini_node(g, "Pack", "begin", 3, zero, id, zero),
        mini_node(g, "Pack", "end", 3, zero, next, zero), mini_ints(g, "stride", 3, (const int32_t[]){ 1, 1, 1 }));
    mini_ok(tare_node_set_int(node, "ellipsis_mask", 1));
    mini_ok(tare_node_set_int(node, "begin_mask", 4));
    mini_ok(tare_node_set_int(node, "end_mask", 4));
    return mini_node(g, "MatMul", "product", 2, x, attr(node, "shrink_axis_mask", 2));
}

/* w[id : id + 1] */
static struct tare_edge by_range(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge id = first_id(g, ids);
    const struct tare_edge next = mini_node(g, "AddV2", "next", 2, id, mini_int(g, "one", 1));
    const struct tare_edge range =
        mini_node(g, "StridedSlice", "chosen", 4, stack(g), mini_node(g, "Pack", "begin", 1, id),
                  mini_node(g, "Pack", "end", 1, next), mini_ints(g, "stride", 1, (const int32_t[]){ 1 }));
    return mini_node(
        g, "MatMul", "product", 2, x,
        mini_node(g, "Reshape", "matrix", 2, range, mini_ints(g, "shape", 2, (const int32_t[]){ ROWS, COLUMNS })));
}

/* A number for each row, [rows, 1, 1]. */
static struct tare_edge for_entries(struct tare_graph *g, struct tare_edge number) {
    const struct tare_edge rows = mini_node(g, "ExpandDims", "number_of_row", 2, number, mini_int(g, "after", -1));
    return mini_node(g, "ExpandDims", "number_of_entry", 2, rows, mini_int(g, "last", -1));
}

static struct tare_edge gate_of(struct tare_graph *g, struct tare_edge x) {
    struct tare_node *mean = mini_open(g, "Mean", "mean", 2, x, mini_int(g, "features", 1));
    return for_entries(g, mini_node(g, "Sigmoid", "gate", 1, mini_done(mean)));
}

static struct tare_edge by_gate(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    return times_rows(g, x, mini_node(g, "Mul", "gated", 2, gate_of(g, x), chosen_rows(g, ids)));
}

/* Two numbers, one before and one after a constant scale, and the entries transposed in between. */
static struct tare_edge by_gates(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge gate = gate_of(g, x), half = mini_float(g, "half", 0.5f);
    struct tare_edge w = mini_node(g, "RealDiv", "divided", 2, chosen_rows(g, ids), gate);
    w = mini_node(g, "Transpose", "turned", 2, w, mini_ints(g, "order", 3, (const int32_t[]){ 0, 2, 1 }));
    w = mini_node(g, "Mul", "gated", 2, mini_node(g, "Mul", "halved", 2, w, half), gate);
    struct tare_node *node = mini_open(g, "Einsum", "product", 2, x, w);
    mini_ok(tare_node_set_string(node, "equation", "bi,boi->bo", 10));
    return mini_done(node);
}

static struct tare_edge by_gate_of_all(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge w =
        mini_node(g, "GatherV2", "chosen", 3, stack(g), first_id(g, ids), mini_int(g, "axis", 0));
    struct tare_node *mean = mini_open(g, "Mean", "mean", 2, x, mini_ints(g, "all", 2, (const int32_t[]){ 0, 1 }));
    const struct tare_edge gate = mini_node(g, "Exp", "gate", 1, mini_done(mean));
    return mini_node(g, "MatMul", "product", 2, x, mini_node(g, "Mul", "gated", 2, w, gate));
}

static float fill;

/* The last expert is out of range: its rows have the fill. */
static struct tare_edge by_filling(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge in_range = mini_node(g, "Less", "in_range", 2, ids, mini_int(g, "count", COUNT - 1));
    return times_rows(g, x,
                      mini_node(g, "SelectV2", "filled", 3, for_entries(g, in_range), chosen_rows(g, ids),
                                mini_float(g, "fill", fill)));
}

static struct tare_edge by_masking(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge outside = mini_node(g, "GreaterEqual", "outside", 2, ids, mini_int(g, "count", COUNT - 1));
    return times_rows(
        g, x,
        mini_node(g, "SelectV2", "masked", 3, for_entries(g, outside), mini_float(g, "fill", 0), chosen_rows(g, ids)));
}

/* A loop over the first three entries: the columns are padded back to rows. */
static struct tare_edge by_iteration(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    struct tare_graph_model *model = g->model;
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    const struct tare_edge i = mini_arg(cond, "i", TARE_DT_INT32);
    mini_arg(cond, "v", TARE_DT_FLOAT);
    mini_return(cond, "go", mini_node(cond, "Less", "less", 2, i, mini_int(cond, "steps", 3)));
    const struct tare_edge k = mini_arg(body, "i", TARE_DT_INT32), v = mini_arg(body, "v", TARE_DT_FLOAT);
    const struct tare_edge zero = mini_int(body, "none", 0);
    const struct tare_edge begin = mini_node(body, "Pack", "begin", 3, k, zero, zero);
    const struct tare_edge w = mini_node(body, "XlaDynamicSlice", "chosen", 3, stack(body), begin,
                                         mini_ints(body, "size", 3, (const int32_t[]){ 1, ROWS, COLUMNS }));
    struct tare_node *squeeze = mini_open(body, "Squeeze", "matrix", 1, w);
    mini_ok(tare_node_set_int_list(squeeze, "squeeze_dims", (const int64_t[]){ 0 }, 1));
    const struct tare_edge y = mini_node(body, "MatMul", "product", 2, v, mini_done(squeeze));
    const struct tare_edge sides =
        mini_node(body, "Reshape", "sides", 2, mini_ints(body, "flat", 4, (const int32_t[]){ 0, 0, 0, ROWS - COLUMNS }),
                  mini_ints(body, "pairs", 2, (const int32_t[]){ 2, 2 }));
    (void)ids;
    mini_return(body, "next", mini_node(body, "AddV2", "next", 2, k, mini_int(body, "one", 1)));
    mini_return(body, "w", mini_node(body, "Pad", "padded", 2, mini_node(body, "Tanh", "tanh", 1, y), sides));
    struct tare_node *node = mini_open(g, "StatelessWhile", "loop", 2, mini_int(g, "start", 0), x);
    mini_ok(tare_node_set_type_list(node, "T", (const int[]){ TARE_DT_INT32, TARE_DT_FLOAT }, 2));
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    return mini_output(mini_done(node), 1);
}

/* ---- checks ---- */

typedef struct tare_edge (*maker)(struct tare_graph *g, struct tare_edge x, struct tare_edge ids);

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)arg;
    (void)edge;
    (void)setting;
    *low = -1;
    *high = 1;
    *found = true;
    return TARE_OK;
}

static const struct tare_quant_ranges ranges = { .find = find };

struct fixture {
    struct tare_graph_model *model;
    struct tare_edge feeds[2], y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static int columns = COLUMNS; /* of the chosen weight */
static bool one_scale;

static bool open_batch; /* the number of rows is not known */

/* The network in a function that the main graph calls. */
static void open_fixture(struct fixture *f, maker make) {
    const int64_t batch = open_batch ? -1 : BATCH;
    const struct tare_shape shape = tare_shape_make(2, batch, ROWS), of_ids = tare_shape_make(1, batch);
    *f = (struct fixture){ .model = mini_model_new() };
    struct tare_graph *g = tare_model_add_function(f->model, "f");
    const struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT), ids = mini_arg(g, "ids", TARE_DT_INT32);
    mini_return(g, "y", make(g, x, ids));
    f->feeds[0] = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->feeds[1] = mini_placeholder(f->model->main, "ids", TARE_DT_INT32);
    mini_ok(tare_node_set_shape(f->feeds[0].node, "shape", &shape));
    mini_ok(tare_node_set_shape(f->feeds[1].node, "shape", &of_ids));
    f->y = mini_call(f->model->main, "PartitionedCall", "call", g, 2, f->feeds[0], f->feeds[1]);
}

static void close_fixture(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

/* Quantizes with a plan (NULL: not), asserts one quantized layer, and runs. */
static struct tare_tensor answer(maker make, const struct tare_quant_plan *plan, const struct tare_quant_ranges *by) {
    const struct tare_shape shape = tare_shape_make(2, BATCH, ROWS), of_ids = tare_shape_make(1, BATCH);
    const int32_t ids[BATCH] = { 2, 0, 3, 1, 2 };
    struct tare_tensor fed[2], result;
    struct fixture f;
    open_fixture(&f, make);
    if (plan) {
        mini_ok(tare_quantize(&f.report, &f.arena, f.model, by, plan));
        assert_int_equal(f.report.count, 1); /* the choice of an entry is no layer of its own */
        if (f.report.outcomes[0].refused) fail_msg("%s", f.report.outcomes[0].refused);
        if (!one_scale) assert_int_equal(f.report.outcomes[0].n_weight_scales % (COUNT * columns), 0);
    }
    mini_ok(tare_tensor_new(&fed[0], TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < fed[0].elements; i++)
        TARE_DATA(float, &fed[0])[i] = input_value(i);
    mini_ok(tare_tensor_from(&fed[1], TARE_DT_INT32, &of_ids, ids));
    struct tare_session *session = mini_session(f.model);
    mini_ok(tare_session_run(session, f.feeds, fed, 2, &f.y, &result, 1, NULL, 0));
    for (int i = 0; i < 2; i++)
        tare_tensor_reset(&fed[i]);
    tare_session_free(session);
    close_fixture(&f);
    return result;
}

/* Each output is near that of the float model, compared with the largest of its expert and column. */
static void check(maker make, const struct tare_quant_plan *plan, double tolerance) {
    struct tare_tensor expected = answer(make, NULL, &ranges), got = answer(make, plan, &ranges), largest;
    positive = true;
    largest = answer(make, NULL, &ranges);
    positive = false;
    assert_true(tare_shape_equal(&expected.shape, &got.shape));
    for (int64_t i = 0; i < expected.elements; i++) {
        const double e = (double)TARE_CONST_DATA(float, &expected)[i], g = (double)TARE_CONST_DATA(float, &got)[i];
        if (!(fabs(g - e) <= tolerance * fabs((double)TARE_CONST_DATA(float, &largest)[i])))
            fail_msg("%s of %d bits, element %d: %g instead of %g (%g)", plan->setting.method->name, plan->setting.bits,
                     (int)i, g, e, (double)TARE_CONST_DATA(float, &largest)[i]);
    }
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    tare_tensor_reset(&largest);
}

static void check_methods(maker make, double factor) {
    static const struct tare_quant_method *const methods[] = { &tare_method_weight_only, &tare_method_dynamic,
                                                               &tare_method_static };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct tare_quant_plan plan = { .setting.method = methods[i], .min_elements = 1 };
        check(make, &plan, 0.03 * factor);
    }
    check(make,
          &(struct tare_quant_plan){ .setting = { .method = &tare_method_static, .activation_bits = 16 },
                                     .min_elements = 1 },
          0.02 * factor);
    check(make,
          &(struct tare_quant_plan){ .setting = { .method = &tare_method_weight_only, .bits = 4 }, .min_elements = 1 },
          0.3 * factor);
    check(make,
          &(struct tare_quant_plan){
              .setting = { .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = 32 },
              .min_elements = 1 },
          0.03 * factor);
}

static void experts_of_rows__have_scales_per_expert_and_column(void **state) {
    (void)state;
    check_methods(by_row, 1);
}

static void einsum_with_chosen_weights__is_a_layer(void **state) {
    (void)state;
    check_methods(by_einsum, 1);
}

static void chosen_axis__may_be_any_axis_of_the_stack(void **state) {
    (void)state;
    check_methods(by_second_axis, 2);
}

static void slice_by_computed_begin__is_a_layer(void **state) {
    (void)state;
    check_methods(by_slice, 1);
    check_methods(by_only_entry, 1);
    check_methods(by_ellipsis, 2);
    check_methods(by_range, 1);
}

static void vector_of_one_index__is_removed_with_its_axis(void **state) {
    (void)state;
    check_methods(by_squeezing, 1);
    check_methods(by_reshaping, 1);
    check_methods(by_first_of_vector, 1);
}

static void entries_that_are_scaled__are_layers_of_any_batch(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_batch = i > 0;
        check_methods(by_number, 1);
        check_methods(by_number_first, 1);
        check_methods(by_column, 1);
        check_methods(with_base, 1);
        check_methods(with_base_of_all, 1);
    }
    open_batch = false;
}

static void ops_that_keep_or_negate_entries__are_followed(void **state) {
    (void)state;
    open_batch = true;
    check_methods(by_preserved, 1);
    open_batch = false;
}

static void parts_of_entries__are_weights_of_their_own(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_batch = i > 0;
        columns = 6;
        check_methods(by_columns, 1);
        check_methods(by_part_of_slice, 1);
        columns = 4;
        check_methods(by_half, 1);
        check_methods(by_sizes, 1);
        columns = COLUMNS;
    }
    open_batch = false;
}

static void stacks_of_flat_matrices__are_split_into_rows(void **state) {
    (void)state;
    open_batch = true;
    check_methods(by_flat, 1);
    open_batch = false;
}

static void numbers_for_entries__multiply_the_result(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_batch = i > 0;
        check_methods(by_gate, 1);
        check_methods(by_gates, 1);
        check_methods(by_gate_of_all, 1);
        check_methods(by_masking, 1);
        fill = 0;
        check_methods(by_filling, 1);
    }
    open_batch = false;
}

/* One scale for all experts: the outputs of the largest ones are near those of the float model. */
static void numbers_for_entries__multiply_a_scale_of_all(void **state) {
    const struct tare_quant_plan plan = {
        .setting = { .method = &tare_method_weight_only, .granularity = TARE_PER_TENSOR }, .min_elements = 1
    };
    struct tare_tensor expected, got;
    double error = 0, size = 0;
    (void)state;
    one_scale = true;
    expected = answer(by_gate, NULL, &ranges);
    got = answer(by_gate, &plan, &ranges);
    one_scale = false;
    for (int64_t i = 0; i < expected.elements; i++) {
        const double e = (double)TARE_CONST_DATA(float, &expected)[i];
        error += pow((double)TARE_CONST_DATA(float, &got)[i] - e, 2);
        size += e * e;
    }
    assert_true(size > 0 && error < 0.001 * size);
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
}

static void fill_of_an_index_out_of_range__is_kept(void **state) {
    const struct tare_quant_plan plan = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const int32_t out_of_range = 2; /* the row */
    struct tare_tensor got;
    (void)state;
    fill = NAN;
    got = answer(by_filling, &plan, &ranges);
    for (int64_t i = 0; i < got.elements; i++)
        assert_true(isnan(TARE_CONST_DATA(float, &got)[i]) == (i / COLUMNS == out_of_range));
    tare_tensor_reset(&got);
}

static void negative_index__counts_from_the_end(void **state) {
    (void)state;
    check_methods(by_shrinking, 1);
}

static void layers_of_a_loop__have_scales_per_iteration(void **state) {
    (void)state;
    check_methods(by_iteration, 3);
}

/* ---- ranges by iteration ---- */

/* The range of all iterations is useless, that of each one is right. */
static tare_status find_wide(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                             double *low, double *high) {
    (void)arg;
    (void)edge;
    (void)setting;
    *low = -200;
    *high = 400;
    *found = true;
    return TARE_OK;
}

static tare_status find_entry(void *arg, struct tare_edge edge, int64_t entry, const struct tare_quant_setting *setting,
                              bool *found, double *low, double *high) {
    (void)arg;
    (void)edge;
    (void)setting;
    *low = entry == 1 ? -1 : -1.2;
    *high = 1;
    *found = entry < 3; /* the fourth iteration is never reached */
    return TARE_OK;
}

/* The largest error of the loop's outputs. */
static double error_by_ranges(const struct tare_quant_ranges *by, bool shared, int activation_bits) {
    const struct tare_quant_plan plan = { .setting = { .method = &tare_method_static,
                                                       .activation_bits = activation_bits },
                                          .min_elements = 1,
                                          .shared_ranges = shared };
    struct tare_tensor expected = answer(by_iteration, NULL, &ranges), got = answer(by_iteration, &plan, by);
    double most = 0;
    for (int64_t i = 0; i < expected.elements; i++)
        most = fmax(most, fabs((double)TARE_CONST_DATA(float, &got)[i] - (double)TARE_CONST_DATA(float, &expected)[i]));
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    return most;
}

static void iterations__have_ranges_of_their_own(void **state) {
    const struct tare_quant_ranges by_entry = { .find = find_wide, .find_entry = find_entry };
    (void)state;
    for (int bits = 8; bits <= 16; bits += 8) {
        const double own = error_by_ranges(&by_entry, false, bits);
        assert_true(own > 0 && own < 0.1);
    }
    assert_true(error_by_ranges(&by_entry, true, 8) > 0.3); /* --shared-ranges */
}

static void counters_of_loops__are_observed(void **state) {
    struct tare_edge_list list;
    struct fixture f;
    (void)state;
    open_fixture(&f, by_iteration);
    mini_ok(tare_quant_observed_edges(&list, &f.arena, f.model));
    assert_int_equal(list.n_counters, 2); /* of the activation and of the result */
    assert_string_equal(list.counters[1].edge.node->name, "product");
    assert_int_equal(list.counters[0].counter.count, COUNT);
    assert_int_equal(list.counters[0].counter.n_terms, 1);
    assert_string_equal(list.counters[0].counter.terms[0].arg->name, "i");
    assert_string_equal(list.counters[0].edge.node->name, "v");
    close_fixture(&f);
}

/* A request chooses: the samples say nothing of the entries that they do not choose. */
static void choices_outside_of_loops__have_one_range(void **state) {
    static const maker makers[] = { by_row, by_slice, by_shrinking };
    struct tare_edge_list list;
    struct fixture f;
    (void)state;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        open_fixture(&f, makers[i]);
        mini_ok(tare_quant_observed_edges(&list, &f.arena, f.model));
        assert_int_equal(list.n_counters, 0);
        close_fixture(&f);
    }
}

/* ---- what is no stack of weights ---- */

static struct tare_edge vectors(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(2, 20, ROWS);
    const struct tare_edge w =
        mini_node(g, "GatherV2", "rows", 3, constant(g, "table", &shape), ids, mini_int(g, "axis", 0));
    struct tare_node *node = mini_open(g, "MatMul", "product", 2, x, w);
    mini_ok(tare_node_set_bool(node, "transpose_b", true));
    return mini_done(node);
}

static void entries_that_are_vectors__stay_a_table(void **state) {
    const struct tare_quant_plan plan = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct fixture f;
    (void)state;
    open_fixture(&f, vectors);
    mini_ok(tare_quantize(&f.report, &f.arena, f.model, &ranges, &plan));
    assert_int_equal(f.report.count, 2);
    assert_string_equal(f.report.outcomes[0].op, "GatherV2");
    assert_null(f.report.outcomes[0].refused);
    assert_non_null(f.report.outcomes[1].refused);
    assert_non_null(strstr(f.report.outcomes[1].refused, "the entries of its stack are vectors"));
    close_fixture(&f);
}

static struct tare_edge with_other_use(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge y = by_row(g, x, ids);
    mini_return(g, "other", mini_node(g, "Tanh", "tanh", 1, y.node->inputs[1]));
    return y;
}

static void entries_with_other_uses__are_also_a_table(void **state) {
    const struct tare_quant_plan plan = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct fixture f;
    (void)state;
    open_fixture(&f, with_other_use);
    mini_ok(tare_quantize(&f.report, &f.arena, f.model, &ranges, &plan));
    assert_int_equal(f.report.count, 2);
    assert_int_equal(f.report.quantized, 2);
    close_fixture(&f);
}

static struct tare_edge not_followed(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    return times_rows(g, x, mini_node(g, "Softplus", "positive", 1, chosen_rows(g, ids)));
}

static struct tare_edge flat_not_followed(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_shape shape = tare_shape_make(2, COUNT, ROWS * COLUMNS);
    const struct tare_edge flat =
        mini_node(g, "GatherV2", "chosen", 3, constant(g, "stack", &shape), ids, mini_int(g, "axis", 0));
    const struct tare_edge w =
        mini_node(g, "Reshape", "matrices", 2, flat, mini_ints(g, "shape", 3, (const int32_t[]){ -1, ROWS, COLUMNS }));
    return mini_node(g, "BatchMatMulV2", "squares", 2, mini_node(g, "ExpandDims", "row", 2, x, mini_int(g, "one", 1)),
                     mini_node(g, "Softplus", "positive", 1, w));
}

static struct tare_edge of_two(struct tare_graph *g, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge a = chosen_rows(g, ids), b = chosen_rows(g, ids);
    return times_rows(g, x, mini_node(g, "ConcatV2", "both", 3, a, b, mini_int(g, "columns", 2)));
}

static void ops_that_are_not_followed__leave_stack_and_product_float(void **state) {
    static const maker makers[] = { not_followed, flat_not_followed, of_two };
    const struct tare_quant_plan plan = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    struct fixture f;
    (void)state;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        open_fixture(&f, makers[i]);
        mini_ok(tare_quantize(&f.report, &f.arena, f.model, &ranges, &plan));
        assert_int_equal(f.report.quantized, 0);
        for (size_t k = 0; k < f.report.count; k++) {
            const struct tare_quant_outcome *o = &f.report.outcomes[k];
            if (strcmp(o->op, "GatherV2") == 0)
                assert_non_null(strstr(o->refused, "its entries are weights of"));
            else
                assert_non_null(strstr(o->refused, i == 2 ? "and ConcatV2 'both' between them cannot be followed"
                                                          : "and Softplus 'positive' between them cannot be followed"));
        }
        close_fixture(&f);
    }
}

static void other_op_sets__leave_it_float(void **state) {
    const struct tare_quant_plan plan = { .setting.method = &tare_method_dynamic,
                                          .op_set = TARE_OP_SET_TF,
                                          .min_elements = 1 };
    struct fixture f;
    (void)state;
    open_fixture(&f, by_slice);
    mini_ok(tare_quantize(&f.report, &f.arena, f.model, NULL, &plan));
    assert_int_equal(f.report.quantized, 0);
    assert_non_null(strstr(f.report.outcomes[0].refused, "only the op set xla has"));
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_of_rows__have_scales_per_expert_and_column),
        cmocka_unit_test(einsum_with_chosen_weights__is_a_layer),
        cmocka_unit_test(chosen_axis__may_be_any_axis_of_the_stack),
        cmocka_unit_test(slice_by_computed_begin__is_a_layer),
        cmocka_unit_test(vector_of_one_index__is_removed_with_its_axis),
        cmocka_unit_test(entries_that_are_scaled__are_layers_of_any_batch),
        cmocka_unit_test(ops_that_keep_or_negate_entries__are_followed),
        cmocka_unit_test(parts_of_entries__are_weights_of_their_own),
        cmocka_unit_test(stacks_of_flat_matrices__are_split_into_rows),
        cmocka_unit_test(numbers_for_entries__multiply_the_result),
        cmocka_unit_test(numbers_for_entries__multiply_a_scale_of_all),
        cmocka_unit_test(fill_of_an_index_out_of_range__is_kept),
        cmocka_unit_test(negative_index__counts_from_the_end),
        cmocka_unit_test(layers_of_a_loop__have_scales_per_iteration),
        cmocka_unit_test(iterations__have_ranges_of_their_own),
        cmocka_unit_test(counters_of_loops__are_observed),
        cmocka_unit_test(choices_outside_of_loops__have_one_range),
        cmocka_unit_test(entries_that_are_vectors__stay_a_table),
        cmocka_unit_test(entries_with_other_uses__are_also_a_table),
        cmocka_unit_test(ops_that_are_not_followed__leave_stack_and_product_float),
        cmocka_unit_test(other_op_sets__leave_it_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
