/* Derivatives that block reconstruction adds to graphs, compared with differences of the function itself. */
#include "quant/reconstruction/gradient.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { MOST = 512 };

/* One graph: x -> y. */
struct problem {
    struct tare_graph_model *model;
    struct tare_graph *graph;
    struct tare_edge x, y;
    struct tare_shape shape; /* of x */
    uint64_t seed;
    bool positive; /* x is between 0.5 and 1.5 instead of -1 and 1 */
};

static struct tare_edge floats(struct problem *p, const char *name, const struct tare_shape *shape) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = (float)(2 * draw_unit(&p->seed) - 1) * 1.3F + 0.05F;
    const struct tare_edge edge = { tare_graph_add_const(p->graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge of_shape(struct problem *p, int rank, const int64_t *dims) {
    struct tare_shape shape;
    mini_ok(tare_shape_from_dims(&shape, rank, dims));
    return floats(p, "w", &shape);
}

#define SHAPED(p, ...)                                                                                                 \
    of_shape(p, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })
#define INTS(p, name, ...)                                                                                             \
    mini_ints((p)->graph, name, (int)(sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)), (int32_t[]){ __VA_ARGS__ })

static void begin(struct problem *p, struct tare_shape shape) {
    memset(p, 0, sizeof *p);
    p->seed = 5;
    p->shape = shape;
    p->model = mini_model_new();
    p->graph = p->model->main;
    p->x = mini_placeholder(p->graph, "x", TARE_DT_FLOAT);
}

/* Σ y c, from the elements of y. */
static double weighed(const struct tare_tensor *y) {
    double sum = 0;
    uint64_t seed = 9;
    for (int64_t i = 0; i < y->elements; i++)
        sum += (double)TARE_CONST_DATA(float, y)[i] * (double)(float)(draw_unit(&seed) + 0.5);
    return sum;
}

static double run_at(struct tare_session *session, const struct problem *p, const struct tare_tensor *x) {
    struct tare_tensor copy, y; /* kernels may keep what they derived from a tensor */
    mini_ok(tare_tensor_copy(&copy, x));
    mini_ok(tare_session_run(session, &p->x, &copy, 1, &p->y, &y, 1, NULL, 0));
    const double sum = weighed(&y);
    tare_tensor_reset(&y);
    tare_tensor_reset(&copy);
    return sum;
}

/* The derivative of Σ y c by the added nodes. */
static struct tare_tensor derive(const struct problem *p, const struct tare_tensor *x) {
    struct tare_edge seed = mini_placeholder(p->graph, "seed", TARE_DT_FLOAT), gradient;
    const struct tare_gradient_task task = {
        .graph = p->graph, .values = &p->y, .seeds = &seed, .n_values = 1, .wanted = &p->x, .n_wanted = 1
    };
    struct tare_tensor y, values[2], result;
    struct tare_session *session;
    const char *unsupported;
    uint64_t draw = 9;
    mini_ok(tare_gradient_add(&gradient, &unsupported, &task));
    if (unsupported) fail_msg("%s has no derivative", unsupported);
    assert_non_null(gradient.node);
    session = mini_session(p->model);
    mini_ok(tare_session_run(session, &p->x, x, 1, &p->y, &y, 1, NULL, 0));
    values[0] = *x;
    mini_ok(tare_tensor_new(&values[1], TARE_DT_FLOAT, &y.shape));
    for (int64_t i = 0; i < y.elements; i++)
        TARE_DATA(float, &values[1])[i] = (float)(draw_unit(&draw) + 0.5);
    mini_ok(tare_session_run(session, (struct tare_edge[]){ p->x, seed }, values, 2, &gradient, &result, 1, NULL, 0));
    tare_tensor_reset(&values[1]);
    tare_tensor_reset(&y);
    tare_session_free(session);
    return result;
}

/* Compares with (f(x + h) - f(x - h)) / 2h for each element, and ends the problem. */
static void check(struct problem *p, const char *what) {
    const float h = 1e-2F;
    struct tare_tensor x, gradient;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &p->shape));
    assert_true(x.elements <= MOST);
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = (float)(draw_unit(&p->seed) * 2 - 1) * (p->positive ? 0.5F : 1) + (float)p->positive;
    gradient = derive(p, &x);
    assert_int_equal(gradient.elements, x.elements);
    struct tare_session *session = mini_session(p->model);
    for (int64_t i = 0; i < x.elements; i++) {
        float *value = &TARE_DATA(float, &x)[i];
        const float before = *value;
        *value = before + h;
        const double above = run_at(session, p, &x);
        *value = before - h;
        const double below = run_at(session, p, &x);
        *value = before;
        const double expected = (above - below) / (2 * (double)h), got = (double)TARE_CONST_DATA(float, &gradient)[i];
        if (fabs(expected - got) > 0.02 + 0.02 * fabs(expected))
            fail_msg("%s: element %d has the derivative %g (expected %g)", what, (int)i, got, expected);
    }
    tare_session_free(session);
    tare_tensor_reset(&x);
    tare_tensor_reset(&gradient);
    tare_model_free(p->model);
}

static void element_wise_ops(void **state) {
    static const char *const ops[] = { "Identity", "LeakyRelu", "Softplus", "Softsign", "Elu", "Selu",   "Sigmoid",
                                       "Tanh",     "Exp",       "Neg",      "Square",   "Erf", "Softmax" };
    static const char *const positive[] = { "Sqrt", "Rsqrt", "Log", "Relu", "Relu6" };
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops + sizeof positive / sizeof *positive; i++) {
        const size_t n = sizeof ops / sizeof *ops;
        struct problem p;
        begin(&p, tare_shape_make(2, 3, 4));
        p.positive = i >= n;
        p.y = mini_node(p.graph, i < n ? ops[i] : positive[i - n], "y", 1, p.x);
        check(&p, i < n ? ops[i] : positive[i - n]);
    }
}

/* The operand is x and a constant that is broadcast, in both places; then x is broadcast. */
static void ops_with_two_operands(void **state) {
    static const char *const ops[] = { "Add",     "AddV2",  "Sub", "Mul", "RealDiv", "SquaredDifference",
                                       "Maximum", "Minimum" };
    (void)state;
    for (size_t i = 0; i < 3 * sizeof ops / sizeof *ops; i++) {
        struct problem p;
        begin(&p, i % 3 == 2 ? tare_shape_make(1, 4) : tare_shape_make(2, 3, 4));
        p.positive = strcmp(ops[i / 3], "RealDiv") == 0;
        struct tare_edge w = i % 3 == 2 ? SHAPED(&p, 3, 4) : SHAPED(&p, 4);
        if (p.positive) w = mini_node(p.graph, "AddV2", "far", 2, w, mini_float(p.graph, "two", 3));
        p.y = i % 3 == 1 ? mini_node(p.graph, ops[i / 3], "y", 2, w, p.x)
                         : mini_node(p.graph, ops[i / 3], "y", 2, p.x, w);
        check(&p, ops[i / 3]);
    }
}

/* Both operands depend on x, and a value has two users. */
static void values_with_several_users(void **state) {
    struct problem p;
    (void)state;
    begin(&p, tare_shape_make(2, 3, 4));
    const struct tare_edge t = mini_node(p.graph, "Tanh", "t", 1, p.x);
    p.y = mini_node(p.graph, "Mul", "y", 2, t, mini_node(p.graph, "AddV2", "s", 2, t, p.x));
    check(&p, "several users");
}

/* Such as the logits of two classes, of which one is zero. */
static void constants_of_a_shape__have_no_derivative(void **state) {
    static const char *const ops[] = { "ZerosLike", "OnesLike" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct problem p;
        begin(&p, tare_shape_make(2, 3, 4));
        const struct tare_edge like = mini_node(p.graph, ops[i], "like", 1, p.x);
        p.y = mini_node(p.graph, "Mul", "y", 2, p.x, mini_node(p.graph, "AddV2", "s", 2, like, p.x));
        check(&p, ops[i]);
    }
}

static void matrix_products(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        const bool a = i & 1, b = i & 2, second = i & 4, batch = i & 8;
        struct problem p;
        if (batch)
            begin(&p, second ? (b ? tare_shape_make(3, 1, 5, 4) : tare_shape_make(3, 1, 4, 5))
                             : (a ? tare_shape_make(3, 2, 4, 3) : tare_shape_make(3, 2, 3, 4)));
        else
            begin(&p, second ? (b ? tare_shape_make(2, 5, 4) : tare_shape_make(2, 4, 5))
                             : (a ? tare_shape_make(2, 4, 3) : tare_shape_make(2, 3, 4)));
        const struct tare_edge w = second ? (batch ? (a ? SHAPED(&p, 2, 4, 3) : SHAPED(&p, 2, 3, 4))
                                                   : (a ? SHAPED(&p, 4, 3) : SHAPED(&p, 3, 4)))
                                          : (b ? SHAPED(&p, 5, 4) : SHAPED(&p, 4, 5));
        struct tare_node *node = second ? mini_open(p.graph, batch ? "BatchMatMulV2" : "MatMul", "y", 2, w, p.x)
                                        : mini_open(p.graph, batch ? "BatchMatMulV2" : "MatMul", "y", 2, p.x, w);
        mini_ok(tare_node_set_bool(node, batch ? "adj_x" : "transpose_a", a));
        mini_ok(tare_node_set_bool(node, batch ? "adj_y" : "transpose_b", b));
        p.y = mini_done(node);
        check(&p, batch ? "BatchMatMulV2" : "MatMul");
    }
}

static struct tare_edge window(struct tare_node *node, int64_t stride, const char *padding) {
    const int64_t strides[] = { 1, stride, stride, 1 };
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", padding, strlen(padding)));
    return mini_done(node);
}

static void convolutions(void **state) {
    static const char *const paddings[] = { "SAME", "VALID" };
    (void)state;
    for (int i = 0; i < 16; i++) {
        const bool by_filter = i & 1, depthwise = i & 2;
        const char *op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
        struct problem p;
        begin(&p, by_filter ? tare_shape_make(4, 3, 2, 3, 2) : tare_shape_make(4, 2, 5, 6, 3));
        p.y = by_filter ? window(mini_open(p.graph, op, "y", 2, SHAPED(&p, 2, 5, 6, 3), p.x), 1 + (i >> 3 & 1),
                                 paddings[i >> 2 & 1])
                        : window(mini_open(p.graph, op, "y", 2, p.x, SHAPED(&p, 3, 2, 3, 2)), 1 + (i >> 3 & 1),
                                 paddings[i >> 2 & 1]);
        check(&p, op);
    }
}

/* By its input and by its filter; the sizes are those of a convolution with the same strides. */
static void transposed_convolutions(void **state) {
    static const char *const paddings[] = { "SAME", "VALID" };
    (void)state;
    for (int i = 0; i < 8; i++) {
        const bool by_filter = i & 1, valid = i & 2;
        const int stride = i & 4 ? 2 : 1;
        const int height = stride == 2 ? (valid ? 8 : 5) : valid ? 5 : 3, width = stride == 2 ? 7 : valid ? 5 : 4;
        struct problem p;
        begin(&p,
              by_filter ? tare_shape_make(4, 3, 2, 2, 3) : tare_shape_make(4, 2, 3, (valid && stride == 2) ? 3 : 4, 3));
        const struct tare_edge sizes = INTS(&p, "sizes", 2, height, width, 2);
        const struct tare_edge w =
            by_filter ? SHAPED(&p, 2, 3, (valid && stride == 2) ? 3 : 4, 3) : SHAPED(&p, 3, 2, 2, 3);
        p.y = window(mini_open(p.graph, "Conv2DBackpropInput", "y", 3, sizes, by_filter ? p.x : w, by_filter ? w : p.x),
                     stride, paddings[valid]);
        check(&p, "Conv2DBackpropInput");
    }
}

/* By x and by the bias, in both layouts. */
static void bias_add(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool by_bias = i & 1, channels_first = i & 2;
        struct problem p;
        begin(&p, by_bias ? tare_shape_make(1, 3) : tare_shape_make(4, 2, 3, 4, 3));
        const struct tare_edge w = by_bias ? SHAPED(&p, 2, 3, 4, 3) : SHAPED(&p, 3);
        struct tare_node *node = mini_open(p.graph, "BiasAdd", "y", 2, by_bias ? w : p.x, by_bias ? p.x : w);
        mini_ok(tare_node_set_string(node, "data_format", channels_first ? "NCHW" : "NHWC", 4));
        p.y = mini_node(p.graph, "Square", "square", 1, mini_done(node));
        check(&p, "BiasAdd");
    }
}

static void batch_norm(void **state) {
    static const char *const ops[] = { "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3" };
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct problem p;
        begin(&p, tare_shape_make(4, 2, 3, 4, 3));
        const struct tare_edge variance =
            mini_node(p.graph, "AddV2", "variance", 2, mini_node(p.graph, "Square", "squares", 1, SHAPED(&p, 3)),
                      mini_float(p.graph, "half", 0.5F));
        struct tare_node *node =
            mini_open(p.graph, ops[i], "y", 5, p.x, SHAPED(&p, 3), SHAPED(&p, 3), SHAPED(&p, 3), variance);
        mini_ok(tare_node_set_bool(node, "is_training", false));
        mini_ok(tare_node_set_float(node, "epsilon", 0.25F));
        p.y = mini_node(p.graph, "Square", "square", 1, mini_done(node));
        check(&p, ops[i]);
    }
}

/* Larger and smaller, with the corners of pixels or of images aligned, or none. */
static void resize_bilinear(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct problem p;
        begin(&p, tare_shape_make(4, 2, 4, 5, 2));
        struct tare_node *node =
            mini_open(p.graph, "ResizeBilinear", "y", 2, p.x, i & 1 ? INTS(&p, "size", 3, 3) : INTS(&p, "size", 7, 9));
        mini_ok(tare_node_set_bool(node, "half_pixel_centers", i / 2 == 1));
        mini_ok(tare_node_set_bool(node, "align_corners", i / 2 == 2));
        p.y = mini_node(p.graph, "Square", "square", 1, mini_done(node));
        check(&p, "ResizeBilinear");
    }
}

static void pools(void **state) {
    static const char *const ops[] = { "AvgPool", "MaxPool" };
    const int64_t ksize[] = { 1, 2, 2, 1 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct problem p;
        begin(&p, tare_shape_make(4, 1, 4, 4, 2));
        struct tare_node *node = mini_open(p.graph, ops[i], "y", 1, p.x);
        mini_ok(tare_node_set_int_list(node, "ksize", ksize, 4));
        p.y = window(node, 2, "VALID");
        check(&p, ops[i]);
    }
}

static void ops_that_move_elements(void **state) {
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct problem p;
        struct tare_node *node;
        begin(&p, tare_shape_make(4, 2, 4, 4, 3));
        switch (i) {
        case 0:
            p.y = mini_node(p.graph, "Reshape", "y", 2, p.x, INTS(&p, "s", 2, -1));
            break;
        case 1:
            p.y = mini_node(p.graph, "Transpose", "y", 2, p.x, INTS(&p, "s", 3, 1, 0, 2));
            break;
        case 2:
            p.y = mini_node(p.graph, "ConcatV2", "y", 3, SHAPED(&p, 2, 4, 4, 1), p.x, mini_int(p.graph, "axis", 3));
            break;
        case 3:
            p.y = mini_node(
                p.graph, "Pad", "y", 2, p.x,
                mini_node(p.graph, "Reshape", "r", 2, INTS(&p, "p", 0, 0, 1, 2, 2, 0, 0, 0), INTS(&p, "s", 4, 2)));
            break;
        case 4:
            p.y = mini_node(p.graph, "StridedSlice", "y", 4, p.x, INTS(&p, "b", 0, 1, 0), INTS(&p, "e", 2, 4, 4),
                            INTS(&p, "s", 1, 2, 1));
            break;
        case 5:
        case 6:
            node = mini_open(p.graph, i == 5 ? "Mean" : "Sum", "y", 2, p.x, INTS(&p, "axes", 1, 2));
            mini_ok(tare_node_set_bool(node, "keep_dims", i == 6));
            p.y = mini_done(node);
            break;
        case 7:
            node = mini_open(p.graph, "SpaceToDepth", "y", 1, p.x);
            mini_ok(tare_node_set_int(node, "block_size", 2));
            p.y = mini_done(node);
            break;
        default:
            p.y = mini_node(p.graph, "ResizeNearestNeighbor", "y", 2, p.x, INTS(&p, "size", 8, 8));
        }
        p.y = mini_node(p.graph, "Square", "square", 1, p.y);
        check(&p, p.y.node->inputs[0].node->op);
    }
}

static void ops_that_change_the_rank_or_the_layout(void **state) {
    const int64_t axis = 2;
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct problem p;
        struct tare_node *node;
        begin(&p, i == 1 ? tare_shape_make(4, 2, 4, 1, 3) : tare_shape_make(4, 2, 2, 3, 4));
        switch (i) {
        case 0:
            node = mini_open(p.graph, "DepthToSpace", "y", 1, p.x);
            mini_ok(tare_node_set_int(node, "block_size", 2));
            p.y = mini_done(node);
            break;
        case 1:
            node = mini_open(p.graph, "Squeeze", "y", 1, p.x);
            mini_ok(tare_node_set_int_list(node, "squeeze_dims", &axis, 1));
            p.y = mini_done(node);
            break;
        case 2:
            p.y = mini_node(p.graph, "ExpandDims", "y", 2, p.x, mini_int(p.graph, "axis", -2));
            break;
        case 3:
            p.y = mini_node(
                p.graph, "PadV2", "y", 3, p.x,
                mini_node(p.graph, "Reshape", "r", 2, INTS(&p, "p", 1, 0, 0, 2, 0, 0, 3, 1), INTS(&p, "s", 4, 2)),
                mini_float(p.graph, "value", 0.7F));
            break;
        default: /* an order that is not its own inverse */
            p.y = mini_node(p.graph, "Transpose", "y", 2, p.x, INTS(&p, "s", 2, 0, 3, 1));
        }
        p.y = mini_node(p.graph, "Mul", "weighed", 2, p.y, mini_node(p.graph, "Tanh", "t", 1, p.y));
        check(&p, p.y.node->inputs[0].node->op);
    }
}

/* Each part alone is used, of three of different sizes. */
static void parts_of_different_sizes(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct problem p;
        struct tare_node *node;
        begin(&p, tare_shape_make(2, 3, 7));
        node = mini_open(p.graph, "SplitV", "parts", 3, p.x, INTS(&p, "sizes", 1, -1, 4), mini_int(p.graph, "axis", 1));
        mini_ok(tare_node_set_int(node, "num_split", 3));
        mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
        mini_ok(tare_node_set_type(node, "Tlen", TARE_DT_INT32));
        mini_ok(tare_node_resolve(node));
        p.y = mini_node(p.graph, "Square", "y", 1, (struct tare_edge){ node, i });
        check(&p, "SplitV");
    }
}

/* Only one of two parts is used. */
static void parts_of_a_split(void **state) {
    struct problem p;
    struct tare_node *node;
    (void)state;
    begin(&p, tare_shape_make(2, 3, 4));
    node = mini_open(p.graph, "Split", "parts", 2, mini_int(p.graph, "axis", 1), p.x);
    mini_ok(tare_node_set_int(node, "num_split", 2));
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_resolve(node));
    p.y = mini_node(p.graph, "Square", "y", 1, (struct tare_edge){ node, 1 });
    check(&p, "Split");
}

static void ops_without_rule__are_named(void **state) {
    struct problem p;
    struct tare_edge seed, gradient;
    const char *unsupported;
    (void)state;
    begin(&p, tare_shape_make(2, 3, 4));
    p.y = mini_node(p.graph, "Floor", "y", 1, mini_node(p.graph, "Relu", "r", 1, p.x));
    seed = mini_placeholder(p.graph, "seed", TARE_DT_FLOAT);
    const struct tare_gradient_task task = {
        .graph = p.graph, .values = &p.y, .seeds = &seed, .n_values = 1, .wanted = &p.x, .n_wanted = 1
    };
    mini_ok(tare_gradient_add(&gradient, &unsupported, &task));
    assert_string_equal(unsupported, "Floor");
    assert_true(tare_gradient_has_rule("Relu"));
    assert_false(tare_gradient_has_rule("Floor"));
    tare_model_free(p.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_wise_ops),
        cmocka_unit_test(ops_with_two_operands),
        cmocka_unit_test(values_with_several_users),
        cmocka_unit_test(constants_of_a_shape__have_no_derivative),
        cmocka_unit_test(matrix_products),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(transposed_convolutions),
        cmocka_unit_test(bias_add),
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(resize_bilinear),
        cmocka_unit_test(pools),
        cmocka_unit_test(ops_that_move_elements),
        cmocka_unit_test(ops_that_change_the_rank_or_the_layout),
        cmocka_unit_test(parts_of_different_sizes),
        cmocka_unit_test(parts_of_a_split),
        cmocka_unit_test(ops_without_rule__are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
