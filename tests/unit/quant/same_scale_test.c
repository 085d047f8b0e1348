/* Ops that keep the scale, on integers: the same bits as the float op and a quantization behind it. Sums of integers
 * against their formula. */
#include "support/graph_check.h"
#include "support/mini_model.h"

#include "base/alloc.h"

#include "base/arena.h"
#include "quant/recipe.h"
#include "quant/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 4, CHANNELS = 3, COUNT = SIDE * SIDE * CHANNELS, OUT = 2 };

static const double LOW = -1.5, HIGH = 3.25; /* of every activation; values reach beyond on both sides */

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    (void)arg;
    (void)edge;
    *low = LOW;
    *high = HIGH;
    *found = true;
    return TARE_OK;
}

static float value(int64_t i) {
    return (float)(i * 61 % 127) * 0.05f - 2;
}

static struct tare_edge weight(struct tare_graph *f, const char *name, int64_t rows) {
    const struct tare_shape shape = { .rank = 2, .dims = { rows, OUT } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = (float)(i * 31 % 255 - 127);
    for (int64_t i = 0; i < OUT; i++)
        TARE_DATA(float, &tensor)[i] = 127;
    struct tare_edge edge = { tare_graph_add_const(f, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge flat(struct tare_graph *f, struct tare_edge x, int columns) {
    return mini_node(f, "Reshape", "flat", 2, x, mini_ints(f, "shape", 2, (const int32_t[]){ -1, columns }));
}

static struct tare_edge pool(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *node = mini_open(f, "MaxPool", "pool", 1, x);
    mini_ok(tare_node_set_int_list(node, "ksize", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_int_list(node, "strides", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

static struct tare_edge constant_of(struct tare_graph *f, const char *name, int dtype, const struct tare_shape *shape,
                                    const void *values) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, dtype, shape, values));
    struct tare_edge edge = { tare_graph_add_const(f, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

/* Channels apart and together in another order; one output is not used, and one passes through an IdentityN. */
static struct tare_edge split_and_join(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *split = mini_open(f, "Split", "split", 2, mini_int(f, "split_axis", 3), x), *concat;
    mini_ok(tare_node_set_int(split, "num_split", CHANNELS));
    x = mini_done(split);
    struct tare_node *both = mini_open(f, "IdentityN", "both", 2, mini_output(x, 2), x);
    mini_ok(tare_node_set_type_list(both, "T", (const int[]){ TARE_DT_FLOAT, TARE_DT_FLOAT }, 2));
    x = mini_done(both);
    concat = mini_open(f, "ConcatV2", "join", 3, mini_output(x, 1), x, mini_int(f, "join_axis", 3));
    return mini_done(concat);
}

/* Elements of x, or of x padded with a number of its own, by a mask; then the middle of it, backwards. */
static struct tare_edge choose_and_cut(struct tare_graph *f, struct tare_edge x) {
    const struct tare_shape pair = tare_shape_make(2, 4, 2), mask_shape = tare_shape_make(1, SIDE + 1);
    const int32_t pads[] = { 0, 0, 0, 0, 0, 1, 0, 0 }, none[] = { 0, 0, 0, 0, 0, 1, 0, 0 };
    const bool mask[SIDE + 1] = { true, false, true, true, false };
    const struct tare_edge padded = mini_node(
        f, "PadV2", "padded", 3, x, constant_of(f, "p", TARE_DT_INT32, &pair, pads), mini_float(f, "filler", -0.7f));
    struct tare_node *mirror =
        mini_open(f, "MirrorPad", "mirror", 2, x, constant_of(f, "m", TARE_DT_INT32, &pair, none));
    mini_ok(tare_node_set_string(mirror, "mode", "REFLECT", 7));
    const struct tare_edge chosen =
        mini_node(f, "SelectV2", "select", 3,
                  mini_node(f, "Reshape", "mask", 2, constant_of(f, "bits", TARE_DT_BOOL, &mask_shape, mask),
                            mini_ints(f, "mask_shape", 2, (const int32_t[]){ -1, 1 })),
                  padded, mini_done(mirror));
    const struct tare_edge cut =
        mini_node(f, "Slice", "slice", 3, chosen, mini_ints(f, "begin", 4, (const int32_t[]){ 0, 1, 1, 0 }),
                  mini_ints(f, "size", 4, (const int32_t[]){ 1, 2, SIDE, CHANNELS }));
    return mini_node(f, "ReverseV2", "reverse", 2, cut, mini_ints(f, "axes", 1, (const int32_t[]){ 2 }));
}

/* A reshape to [batch, -1] whose batch is asked of the activation. */
static struct tare_edge flat_by_shape(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *shape = mini_open(f, "Shape", "asked", 1, x);
    mini_ok(tare_node_set_type(shape, "out_type", TARE_DT_INT32));
    const struct tare_edge batch =
        mini_node(f, "Slice", "batch", 3, mini_done(shape), mini_ints(f, "zero", 1, (const int32_t[]){ 0 }),
                  mini_ints(f, "one", 1, (const int32_t[]){ 1 }));
    struct tare_node *dims = mini_open(f, "ConcatV2", "dims", 3, batch,
                                       mini_ints(f, "rest", 1, (const int32_t[]){ -1 }), mini_int(f, "dims_axis", 0));
    return mini_node(f, "Reshape", "by_shape", 2, x, mini_done(dims));
}

/* What stands between an activation [1, SIDE, SIDE, CHANNELS] and the layer; *rows is what the layer sums over. */
static struct tare_edge chain(struct tare_graph *f, struct tare_edge x, int which, int *rows) {
    const int32_t order[] = { 0, 3, 1, 2 }, pads[] = { 0, 0, 1, 0, 0, 2, 0, 0 };
    const struct tare_shape pair = tare_shape_make(2, 4, 2);
    struct tare_tensor tensor;
    struct tare_edge paddings;
    *rows = COUNT;
    switch (which) {
    case 0:
        *rows = COUNT / 4;
        return flat(f, mini_node(f, "Relu", "relu", 1, pool(f, x)), *rows);
    case 1:
        return flat(f, mini_node(f, "Relu6", "relu6", 1, x), *rows);
    case 2:
        return flat(f, mini_node(f, "Transpose", "transpose", 2, x, mini_ints(f, "order", 4, order)), *rows);
    case 3:
        *rows = (SIDE + 1) * (SIDE + 2) * CHANNELS;
        mini_ok(tare_tensor_from(&tensor, TARE_DT_INT32, &pair, pads));
        paddings = (struct tare_edge){ tare_graph_add_const(f, "pads", &tensor), 0 };
        tare_tensor_reset(&tensor);
        return flat(f, mini_node(f, "Pad", "pad", 2, x, paddings), *rows);
    case 4:
        *rows = SIDE * SIDE * 2;
        return flat(f, split_and_join(f, x), *rows);
    case 5:
        *rows = 2 * SIDE * CHANNELS;
        return flat(f, choose_and_cut(f, x), *rows);
    case 6:
        *rows = COUNT / 4;
        return flat_by_shape(f, pool(f, x));
    case 7: {
        struct tare_node *depth = mini_open(f, "SpaceToDepth", "depth", 1, x);
        mini_ok(tare_node_set_int(depth, "block_size", 2));
        *rows = 2 * 4 * CHANNELS;
        return flat(f, mini_node(f, "Max", "max", 2, mini_done(depth), mini_int(f, "max_axis", 1)), *rows);
    }
    default: {
        *rows = COUNT + COUNT / 4;
        struct tare_node *concat = mini_open(f, "ConcatV2", "concat", 3, flat(f, x, COUNT),
                                             flat(f, pool(f, x), COUNT / 4), mini_int(f, "axis", 1));
        return mini_done(concat);
    }
    }
}

struct outcome {
    struct tare_tensor result;
    int float_ops; /* others than those of the quantization, on float32 */
};

/* whole: chain and layer, quantized; else the chain alone (rows 0) or the layer alone. */
static struct outcome run(int which, bool with_chain, bool with_layer, const struct tare_tensor *x, int bits) {
    /* of the quantization, and of what is left of constants */
    static const char *const kinds[] = {
        "_Arg", "Const", "Div", "AddV2", "Maximum", "Minimum", "Round", "Cast", "Mul"
    };
    const struct tare_quant_ranges ranges = { .find = find };
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static, .activation_bits = bits } };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct outcome out = { .float_ops = 0 };
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    int rows = (int)x->shape.dims[x->shape.rank - 1];
    struct tare_edge y = mini_arg(f, "x", TARE_DT_FLOAT);
    if (with_chain) y = chain(f, y, which, &rows);
    if (with_layer) y = mini_node(f, "MatMul", "layer", 2, y, weight(f, "w", rows));
    mini_return(f, "y", y);
    struct tare_edge in = mini_placeholder(model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(in.node, "shape", &x->shape));
    struct tare_edge fetched = mini_call(model->main, "PartitionedCall", "call", f, 1, in);
    mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    assert_int_equal(report.quantized, with_layer);
    for (size_t i = 0; i < f->n_nodes; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            known |= strcmp(f->nodes[i]->op, kinds[k]) == 0;
        out.float_ops += !known && tare_edge_dtype((struct tare_edge){ f->nodes[i], 0 }) == TARE_DT_FLOAT;
    }
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &in, x, 1, &fetched, &out.result, 1, NULL, 0));
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return out;
}

static void same_scale_ops__give_the_same_bits_on_integers(void **state) {
    const struct tare_shape shape = tare_shape_make(4, 1, SIDE, SIDE, CHANNELS);
    struct tare_tensor x;
    (void)state;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < COUNT; i++)
        TARE_DATA(float, &x)[i] = value(i);
    for (int i = 0; i < 18; i++) {
        const int which = i / 2, bits = i % 2 ? 16 : 8;
        struct outcome whole = run(which, true, true, &x, bits), before = run(which, true, false, &x, bits);
        struct outcome expected = run(which, false, true, &before.result, bits);
        assert_int_equal(whole.float_ops, 0);
        for (int n = 0; n < OUT; n++)
            if (TARE_DATA(float, &whole.result)[n] != TARE_DATA(float, &expected.result)[n])
                fail_msg("chain %d, %d bits: element %d is %.9g (expected %.9g)", which, bits, n,
                         TARE_DATA(float, &whole.result)[n], TARE_DATA(float, &expected.result)[n]);
        tare_tensor_reset(&whole.result);
        tare_tensor_reset(&before.result);
        tare_tensor_reset(&expected.result);
    }
    tare_tensor_reset(&x);
}

/* ---- means ---- */

static struct tare_edge pointwise(struct tare_graph *f, const char *name, struct tare_edge x) {
    const struct tare_shape shape = tare_shape_make(4, 1, 1, 1, 1);
    char weight_name[32];
    snprintf(weight_name, sizeof weight_name, "%s_w", name);
    struct tare_node *conv =
        mini_open(f, "Conv2D", name, 2, x, constant_of(f, weight_name, TARE_DT_FLOAT, &shape, &(float){ 1 }));
    mini_ok(tare_node_set_int_list(conv, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(conv, "padding", "VALID", 5));
    return mini_done(conv);
}

/* The range of the mean is half as wide as that of what it is of. */
static tare_status find_average(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                                double *low, double *high) {
    (void)setting;
    const double part = strcmp(edge.node->name, "average") == 0 ? 0.5 : 1;
    (void)arg;
    *low = LOW * part;
    *high = HIGH * part;
    *found = true;
    return TARE_OK;
}

/* second(AvgPool(first(x))), or without the first layer. */
static struct tare_edge averaging(struct tare_graph_model *model, const struct tare_shape *shape, bool with_first,
                                  struct tare_edge *feed) {
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge edge = mini_arg(f, "x", TARE_DT_FLOAT);
    if (with_first) edge = pointwise(f, "first", edge);
    struct tare_node *average = mini_open(f, "AvgPool", "average", 1, edge);
    mini_ok(tare_node_set_int_list(average, "ksize", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_int_list(average, "strides", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_string(average, "padding", "VALID", 5));
    mini_return(f, "y", pointwise(f, "second", mini_done(average)));
    *feed = mini_placeholder(model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(feed->node, "shape", shape));
    return mini_call(model->main, "PartitionedCall", "call", f, 1, *feed);
}

/* first(x) -> AvgPool -> second: the mean of the first layer's codes, in its scale, is rounded once, to the scale of
 * the second. Without the first layer the pool stays float: codes made for it alone would be rounded twice for nothing.
 */
static void average__is_of_codes_that_a_layer_made(void **state) {
    const struct tare_quant_ranges ranges = { .find = find_average };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static };
    const struct tare_shape shape = tare_shape_make(4, 1, 2, 2, 1);
    const float values[] = { 0.4f, 1.23f, -0.9f, 2.02f };
    const double scale = (HIGH - LOW) / 255, zero = round(-128 - LOW / scale);
    (void)state;
    for (int with_first = 0; with_first < 2; with_first++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_arena arena = { 0 };
        struct tare_quant_report report;
        struct tare_tensor x, y;
        double sum = 0, expected;
        struct tare_edge feed;
        const struct tare_edge fetched = averaging(model, &shape, with_first, &feed);
        mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
        mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, values));
        struct tare_session *session = mini_session(model);
        mini_ok(tare_session_run(session, &feed, &x, 1, &fetched, &y, 1, NULL, 0));
        for (int i = 0; i < 4; i++)
            sum += with_first ? nearbyint((double)values[i] / scale + zero) : (double)values[i];
        expected = with_first ? (sum / 4 - zero) * scale : sum / 4;
        expected = (nearbyint(expected / (scale / 2) + zero) - zero) * (scale / 2);
        assert_float_equal(TARE_DATA(float, &y)[0], expected, 1e-5);
        assert_true((tare_graph_find(model->functions[0], "average") != NULL) == !with_first);
        tare_tensor_reset(&x);
        tare_tensor_reset(&y);
        tare_session_free(session);
        tare_model_free(model);
        tare_arena_free(&arena);
    }
}

/* Layers of 16 bits by a recipe: the operand of the mean has 16 bits, too, so the mean has no error of 8-bit codes. */
static void average__is_as_wide_as_the_layer_after_it(void **state) {
    static const char rule[] = "op=Conv2D -> static activation_bits=16";
    const struct tare_quant_ranges ranges = { .find = find_average };
    struct tare_quant_plan options = { .setting.method = &tare_method_static };
    const struct tare_shape shape = tare_shape_make(4, 1, 2, 2, 1);
    const float values[] = { 0.4f, 1.23f, -0.9f, 2.02f };
    struct tare_graph_model *model = mini_model_new();
    struct tare_arena arena = { 0 };
    struct tare_quant_recipe *recipe;
    struct tare_quant_report report;
    struct tare_tensor x, y;
    struct tare_edge feed;
    (void)state;
    const struct tare_edge fetched = averaging(model, &shape, true, &feed);
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    mini_ok(tare_quant_recipe_read(recipe, rule, strlen(rule), "rules"));
    options.recipe = recipe;
    mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    assert_null(tare_graph_find(model->functions[0], "average"));
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, values));
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &feed, &x, 1, &fetched, &y, 1, NULL, 0));
    assert_float_equal(TARE_DATA(float, &y)[0], (0.4 + 1.23 - 0.9 + 2.02) / 4, (HIGH - LOW) / 65535 * 4);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
}

/* ---- sums ---- */

enum { WIDTH = 6 };

/* Ranges of the residual model by the edge's node. */
static tare_status find_residual(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting,
                                 bool *found, double *low, double *high) {
    (void)setting;
    const char *name = edge.node->name;
    (void)arg;
    *low = strcmp(name, "relu") == 0 ? 0 : strcmp(name, "branch") == 0 ? -9 : -4;
    *high = strcmp(name, "relu") == 0 ? 7 : strcmp(name, "branch") == 0 ? 11 : 4;
    *found = strcmp(name, "sum") != 0;
    return TARE_OK;
}

static void identity(struct tare_tensor *out, float scale, float off) {
    const struct tare_shape shape = tare_shape_make(2, WIDTH, WIDTH);
    mini_ok(tare_tensor_new(out, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        TARE_DATA(float, out)[i] = i % (WIDTH + 1) == 0 ? scale : off;
}

static struct tare_edge dense(struct tare_graph *f, const char *name, struct tare_edge x, float scale, float off) {
    struct tare_tensor w;
    char weight_name[32];
    snprintf(weight_name, sizeof weight_name, "%s_w", name);
    identity(&w, scale, off);
    struct tare_edge c = { tare_graph_add_const(f, weight_name, &w), 0 };
    tare_tensor_reset(&w);
    return mini_node(f, "MatMul", name, 2, x, c);
}

static double quantized(double x, double low, double high, double *scale, double *zero) {
    *scale = (high - low) / 255;
    *zero = round(-128 - low / *scale); /* half away from zero */
    return fmin(fmax(nearbyint(x / *scale + *zero), -128), 127);
}

/* y = dense(relu(x + branch(x))): the addends, the sum and what reads it are integers; near the formula in double. */
static void integer_adds__each_addend_has_its_scale(void **state) {
    const struct tare_quant_ranges ranges = { .find = find_residual };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static, .integer_adds = true };
    const struct tare_shape shape = tare_shape_make(2, 1, WIDTH);
    const float values[WIDTH] = { -3.5f, -1, 0, 0.7f, 2.2f, 3.9f };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    struct tare_tensor x, y;
    size_t divisions = 0;
    double scale, zero;
    (void)state;
    struct tare_edge in = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_edge sum = mini_node(f, "AddV2", "sum", 2, in, dense(f, "branch", in, 2, 0));
    mini_return(f, "y", dense(f, "last", mini_node(f, "Relu", "relu", 1, sum), 1, 0));
    struct tare_edge feed = mini_placeholder(model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(feed.node, "shape", &shape));
    struct tare_edge fetched = mini_call(model->main, "PartitionedCall", "call", f, 1, feed);
    mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    assert_int_equal(report.quantized, 2);
    for (size_t i = 0; i < f->n_nodes; i++)
        divisions += strcmp(f->nodes[i]->op, "Div") == 0;
    assert_int_equal(divisions, 1); /* x alone is quantized from float */
    assert_null(tare_graph_find(f, "relu"));
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, values));
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &feed, &x, 1, &fetched, &y, 1, NULL, 0));
    for (int i = 0; i < WIDTH; i++) {
        double q = quantized(values[i], -4, 4, &scale, &zero);
        const double real = (q - zero) * scale;
        q = quantized(real * 2, -9, 11, &scale, &zero);
        const double both = real + (q - zero) * scale;
        q = quantized(both, 0, 7, &scale, &zero);
        q = fmax(q, zero);
        assert_float_equal(TARE_DATA(float, &y)[i], (q - zero) * scale, 1e-5);
    }
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
}

/* ---- failures ---- */

/* last(AvgPool(Relu(x + branch(x)))) on [1, 2, 2, 1]: predicates on ranges decide the form of the sum and the mean. */
static struct tare_graph_model *sum_and_mean(void) {
    const struct tare_shape shape = tare_shape_make(4, 1, 2, 2, 1);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    const struct tare_edge in = mini_arg(f, "x", TARE_DT_FLOAT);
    const struct tare_edge sum = mini_node(f, "AddV2", "sum", 2, in, pointwise(f, "branch", in));
    const struct tare_edge middle = pointwise(f, "middle", mini_node(f, "Relu", "relu", 1, sum));
    struct tare_node *average = mini_open(f, "AvgPool", "average", 1, middle);
    mini_ok(tare_node_set_int_list(average, "ksize", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_int_list(average, "strides", (const int64_t[]){ 1, 2, 2, 1 }, 4));
    mini_ok(tare_node_set_string(average, "padding", "VALID", 5));
    mini_return(f, "y", pointwise(f, "last", mini_done(average)));
    const struct tare_edge feed = mini_placeholder(model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(feed.node, "shape", &shape));
    mini_call(model->main, "PartitionedCall", "call", f, 1, feed);
    return model;
}

struct source {
    size_t calls, failing; /* the number of the call that fails, from 1; 0: none */
};

static tare_status find_or_fail(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                                double *low, double *high) {
    struct source *source = arg;
    if (++source->calls == source->failing) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    return find(NULL, edge, setting, found, low, high);
}

static tare_status quantize_sum_and_mean(struct source *source, int64_t failing_allocation, int64_t *allocations,
                                         size_t *adds) {
    const struct tare_quant_ranges ranges = { .find = find_or_fail, .arg = source };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static, .integer_adds = true };
    struct tare_graph_model *model = sum_and_mean();
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    tare_alloc_fail_at(failing_allocation);
    const tare_status status = tare_quantize(&report, &arena, model, &ranges, &options);
    *allocations = tare_alloc_count();
    tare_alloc_fail_at(0);
    *adds = graph_count(model->functions[0], "AddV2");
    if (status == TARE_OK) assert_int_equal(report.quantized, 3);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

static void a_range_that_cannot_be_computed__fails_the_quantization(void **state) {
    struct source source = { 0 };
    int64_t allocations;
    size_t adds;
    (void)state;
    mini_ok(quantize_sum_and_mean(&source, 0, &allocations, &adds));
    const size_t calls = source.calls;
    assert_true(calls > 4);
    for (size_t i = 1; i <= calls; i++) {
        source = (struct source){ .failing = i };
        assert_int_equal(quantize_sum_and_mean(&source, 0, &allocations, &adds), TARE_NO_MEMORY);
        assert_int_equal(source.calls, i);
    }
}

/* An allocation whose failure changes nothing may fail; otherwise the quantization fails, too. */
static void an_allocation_that_fails__does_not_change_the_form(void **state) {
    struct source source = { 0 };
    int64_t allocations, count;
    size_t adds, expected, failures = 0;
    (void)state;
    mini_ok(quantize_sum_and_mean(&source, 0, &allocations, &expected));
    assert_true(allocations > 20);
    for (int64_t n = 1; n <= allocations; n++) {
        const tare_status status = quantize_sum_and_mean(&source, n, &count, &adds);
        failures += status == TARE_NO_MEMORY;
        if (status != TARE_NO_MEMORY && !(status == TARE_OK && adds == expected))
            fail_msg("allocation %lld: status %s, %zu additions (expected %zu)", (long long)n, tare_status_name(status),
                     adds, expected);
    }
    assert_true(failures > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_scale_ops__give_the_same_bits_on_integers),
        cmocka_unit_test(average__is_of_codes_that_a_layer_made),
        cmocka_unit_test(average__is_as_wide_as_the_layer_after_it),
        cmocka_unit_test(integer_adds__each_addend_has_its_scale),
        cmocka_unit_test(a_range_that_cannot_be_computed__fails_the_quantization),
        cmocka_unit_test(an_allocation_that_fails__does_not_change_the_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
