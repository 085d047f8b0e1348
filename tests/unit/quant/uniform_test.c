/* The op set UNIFORM_QUANTIZED against XLA: activations on the grid have the same integers in both, and then sums,
 * biases, clipping and scaling are the same maths: the same bits. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/recipe.h"
#include "quant/quantize.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

static const double STEP = 0.03125; /* of activations; the range [-128, 127] steps has zero point 0 */

struct layer_case {
    const char *op, *activation;
    struct tare_shape x, w;
    bool bias, transpose_b, per_tensor;
    int zero_point;
    int dtype; /* 0: float32 */
    int bits;
};

static const struct layer_case *current;

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    (void)arg;
    *found = false;
    if (!tare_node_is_arg(edge.node)) return TARE_OK;
    *low = STEP * (-128 - current->zero_point);
    *high = STEP * (127 - current->zero_point);
    *found = true;
    return TARE_OK;
}

static struct tare_tensor filled(const struct tare_shape *shape, double step, int first, int range, int dtype) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype ? dtype : TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        const float value = (float)(step * (first + (int)(i * 97 % range)));
        if (dtype == TARE_DT_BFLOAT16)
            TARE_DATA(uint16_t, &tensor)[i] = tare_bfloat16_from_float(value);
        else if (dtype == TARE_DT_HALF)
            TARE_DATA(uint16_t, &tensor)[i] = tare_half_from_float(value);
        else
            TARE_DATA(float, &tensor)[i] = value;
    }
    return tensor;
}

static struct tare_edge constant(struct tare_graph *graph, const char *name, const struct tare_shape *shape,
                                 double step, int dtype) {
    struct tare_tensor value = filled(shape, step, -127, 255, dtype);
    struct tare_edge edge = { tare_graph_add_const(graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge layer(struct tare_graph *f, const struct layer_case *c, struct tare_edge x) {
    struct tare_node *op = mini_open(f, c->op, "layer", 2, x, constant(f, "w", &c->w, 0.01, c->dtype));
    struct tare_edge y;
    if (strcmp(c->op, "MatMul") == 0) {
        mini_ok(tare_node_set_bool(op, "transpose_b", c->transpose_b));
    } else if (strcmp(c->op, "Einsum") == 0) {
        mini_ok(tare_node_set_string(op, "equation", "abcd,cde->abe", 13));
    } else if (strcmp(c->op, "Conv3D") == 0) {
        mini_ok(tare_node_set_int_list(op, "strides", (const int64_t[]){ 1, 2, 1, 2, 1 }, 5));
        mini_ok(tare_node_set_string(op, "padding", "SAME", 4));
    } else if (strcmp(c->op, "BatchMatMulV2") != 0) {
        mini_ok(tare_node_set_int_list(op, "strides", (const int64_t[]){ 1, 2, 2, 1 }, 4));
        mini_ok(tare_node_set_string(op, "padding", "SAME", 4));
    }
    y = mini_done(op);
    if (c->bias) {
        const bool depthwise = strcmp(c->op, "DepthwiseConv2dNative") == 0;
        struct tare_shape shape = tare_shape_make(1, 0);
        shape.dims[0] = depthwise ? c->w.dims[2] * c->w.dims[3] : c->w.dims[c->transpose_b ? 0 : c->w.rank - 1];
        y = mini_node(f, "BiasAdd", "bias", 2, y, constant(f, "b", &shape, 0.3, c->dtype));
    }
    return c->activation ? mini_node(f, c->activation, "clamp", 1, y) : y;
}

/* The case's answer, quantized by a method in an op set; *op counts nodes of that op. */
static struct tare_tensor answer(const struct layer_case *c, const struct tare_quant_method *method,
                                 enum tare_quant_op_set op_set, const char *op, size_t *count) {
    const struct tare_quant_ranges ranges = { .find = find };
    const struct tare_quant_plan options = {
        .setting = { .method = method,
                     .bits = c->bits,
                     .granularity = c->per_tensor ? TARE_PER_TENSOR : TARE_PER_CHANNEL },
        .op_set = op_set,
        .depthwise = true,
        .min_elements = 1,
    };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_tensor fed = filled(&c->x, STEP, -128 - c->zero_point, 256, c->dtype), result;
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    current = c;
    mini_return(f, "y", layer(f, c, mini_arg(f, "x", fed.dtype)));
    struct tare_edge x = mini_placeholder(model->main, "in", fed.dtype);
    mini_ok(tare_node_set_shape(x.node, "shape", &c->x));
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "call", f, 1, x);
    mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    if (report.quantized != 1) fail_msg("%s: %s", c->op, report.outcomes[0].refused);
    *count = 0;
    for (size_t i = 0; i < f->n_nodes; i++)
        *count += strcmp(f->nodes[i]->op, op) == 0;
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &x, &fed, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return result;
}

static void check_static(const struct layer_case *c, const char *op) {
    size_t count;
    struct tare_tensor a = answer(c, &tare_method_static, TARE_OP_SET_XLA, op, &count);
    assert_int_equal(count, 0);
    struct tare_tensor b = answer(c, &tare_method_static, TARE_OP_SET_UNIFORM_QUANTIZED, op, &count);
    assert_int_equal(count, 1);
    assert_true(tare_shape_equal(&a.shape, &b.shape));
    assert_int_equal(a.dtype, c->dtype ? c->dtype : TARE_DT_FLOAT);
    assert_int_equal(b.dtype, a.dtype);
    for (int64_t i = 0; i < a.elements; i++)
        if (tare_tensor_get_f64(&a, i) != tare_tensor_get_f64(&b, i))
            fail_msg("%s, zero point %d: element %lld is %.9g (expected %.9g)", c->op, c->zero_point, (long long)i,
                     tare_tensor_get_f64(&b, i), tare_tensor_get_f64(&a, i));
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void static_range__equals_xla(void **state) {
    (void)state;
    for (int zero_point = -128; zero_point <= 127; zero_point += 85)
        for (int i = 0; i < 6; i++) {
            const char *activation = i % 3 == 0 ? NULL : i % 3 == 1 ? "Relu" : NULL;
            struct layer_case c = { "Conv2D",
                                    activation,
                                    tare_shape_make(4, 2, 5, 6, 3),
                                    tare_shape_make(4, 3, 3, 3, 4),
                                    i % 2,
                                    false,
                                    i > 3,
                                    zero_point,
                                    0,
                                    0 };
            check_static(&c, "UniformQuantizedConvolution");
            c.op = "DepthwiseConv2dNative";
            c.w = tare_shape_make(4, 3, 3, 3, 2);
            check_static(&c, "UniformQuantizedConvolution");
            c = (struct layer_case){ "MatMul",
                                     activation,
                                     tare_shape_make(2, 3, 7),
                                     tare_shape_make(2, 7, 5),
                                     i % 2,
                                     false,
                                     i > 3,
                                     zero_point,
                                     0,
                                     0 };
            check_static(&c, "UniformQuantizedDot");
            c.w = tare_shape_make(2, 5, 7);
            c.transpose_b = true;
            check_static(&c, "UniformQuantizedDot");
            c = (struct layer_case){ "Conv3D",
                                     activation,
                                     tare_shape_make(5, 2, 3, 4, 5, 2),
                                     tare_shape_make(5, 2, 3, 2, 2, 3),
                                     i % 2,
                                     false,
                                     i > 3,
                                     zero_point,
                                     0,
                                     0 };
            check_static(&c, "UniformQuantizedConvolution");
            c = (struct layer_case){ "BatchMatMulV2",
                                     activation,
                                     tare_shape_make(3, 2, 3, 7),
                                     tare_shape_make(2, 7, 5),
                                     i % 2,
                                     false,
                                     i > 3,
                                     zero_point,
                                     0,
                                     0 };
            check_static(&c, "UniformQuantizedDot");
            c = (struct layer_case){ "Einsum",
                                     activation,
                                     tare_shape_make(4, 2, 3, 4, 5),
                                     tare_shape_make(3, 4, 5, 6),
                                     i % 2,
                                     false,
                                     i > 3,
                                     zero_point,
                                     0,
                                     0 };
            check_static(&c, "UniformQuantizedDot");
        }
}

/* Two integers a byte in both, unpacked alike; an odd number of rows has one of zeros behind it. */
static void static_range_of_4_bits__equals_xla(void **state) {
    struct layer_case c = {
        "Conv2D", "Relu", tare_shape_make(4, 2, 5, 6, 3), tare_shape_make(4, 3, 3, 3, 4), true, false, false, 5, 0, 4
    };
    (void)state;
    check_static(&c, "UniformQuantizedConvolution");
    c.op = "Einsum";
    c.x = tare_shape_make(4, 2, 3, 4, 5);
    c.w = tare_shape_make(3, 4, 5, 6);
    check_static(&c, "UniformQuantizedDot");
    c.op = "MatMul";
    c.x = tare_shape_make(2, 3, 7);
    c.w = tare_shape_make(2, 5, 7);
    c.transpose_b = true;
    check_static(&c, "UniformQuantizedDot");
}

/* As TensorFlow does, but where a rule asks for it. */
static void tables__are_quantized_by_a_rule_alone(void **state) {
    static const char RULE[] = "op=GatherV2 -> dynamic\n";
    const struct tare_shape shape = tare_shape_make(2, 40, 32), count = tare_shape_make(1, 3);
    (void)state;
    for (int by_rule = 0; by_rule < 2; by_rule++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *g = tare_model_add_function(model, "f");
        struct tare_arena arena = { 0 };
        struct tare_quant_report report;
        struct tare_quant_plan options = { .setting.method = &tare_method_dynamic,
                                           .op_set = TARE_OP_SET_UNIFORM_QUANTIZED };
        const int32_t entries[] = { 3, 39, 0 };
        struct tare_quant_recipe *recipe;
        struct tare_tensor got, read;
        mini_ok(tare_tensor_from(&read, TARE_DT_INT32, &count, entries));
        mini_ok(tare_quant_recipe_new(&recipe, &arena));
        mini_ok(tare_quant_recipe_read(recipe, RULE, strlen(RULE), "rules"));
        if (by_rule) options.recipe = recipe;
        struct tare_edge y = mini_node(g, "GatherV2", "lookup", 3, constant(g, "table", &shape, 0.25, 0),
                                       mini_arg(g, "entries", TARE_DT_INT32), mini_int(g, "axis", 0));
        mini_return(g, "y", y);
        const struct tare_edge fed = mini_placeholder(model->main, "in", TARE_DT_INT32);
        y = mini_call(model->main, "PartitionedCall", "call", g, 1, fed);
        mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
        assert_int_equal(report.quantized, by_rule);
        if (!by_rule)
            assert_string_equal(report.outcomes[0].refused,
                                "Weight-only op is skipped. (quantize it by a recipe rule)");
        struct tare_session *session = mini_session(model);
        mini_ok(tare_session_run(session, &fed, &read, 1, &y, &got, 1, NULL, 0));
        for (int64_t i = 0; i < got.elements; i++) { /* a step is at most 127 * 0.25 / 127 */
            const int64_t at = entries[i / 32] * 32 + i % 32;
            assert_float_equal(TARE_DATA(float, &got)[i], 0.25 * (-127 + (double)(at * 97 % 255)), by_rule ? 0.13 : 0);
        }
        tare_tensor_reset(&got);
        tare_tensor_reset(&read);
        tare_session_free(session);
        tare_model_free(model);
        tare_arena_free(&arena);
    }
}

/* 8 bits of the activations' grid are numbers of both. */
static void static_range_of_narrow_floats__equals_xla(void **state) {
    const int dtypes[] = { TARE_DT_BFLOAT16, TARE_DT_HALF };
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct layer_case c = { "Conv2D",
                                i / 2 ? "Relu" : NULL,
                                tare_shape_make(4, 2, 5, 6, 3),
                                tare_shape_make(4, 3, 3, 3, 4),
                                i / 2,
                                false,
                                i / 2,
                                0,
                                dtypes[i % 2],
                                0 };
        check_static(&c, "UniformQuantizedConvolution");
        c.op = "MatMul";
        c.x = tare_shape_make(2, 3, 7);
        c.w = tare_shape_make(2, 7, 5);
        check_static(&c, "UniformQuantizedDot");
    }
}

/* One row whose range is that of its values in both: the scale's last bit and the rounding's differ. */
static void dynamic_range_of_narrow_floats__is_near_xla(void **state) {
    struct layer_case c = {
        "MatMul", NULL, tare_shape_make(2, 1, 7), tare_shape_make(2, 7, 5), false, false, false, 3, TARE_DT_BFLOAT16, 0
    };
    size_t count;
    (void)state;
    struct tare_tensor a = answer(&c, &tare_method_dynamic, TARE_OP_SET_XLA, "XlaDotV2", &count);
    struct tare_tensor b =
        answer(&c, &tare_method_dynamic, TARE_OP_SET_UNIFORM_QUANTIZED, "UniformQuantizedDotHybrid", &count);
    assert_int_equal(count, 1);
    assert_int_equal(b.dtype, TARE_DT_BFLOAT16);
    for (int64_t i = 0; i < a.elements; i++)
        assert_float_equal(tare_tensor_get_f64(&a, i), tare_tensor_get_f64(&b, i),
                           7 * STEP * 1.27 + fabs(tare_tensor_get_f64(&a, i)) / 128);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void relu6__is_cut_within_half_a_step(void **state) {
    const struct layer_case c = {
        "MatMul", "Relu6", tare_shape_make(2, 3, 7), tare_shape_make(2, 7, 5), true, false, false, -128, 0, 0
    };
    size_t count;
    float most = 0;
    (void)state;
    struct tare_tensor y =
        answer(&c, &tare_method_static, TARE_OP_SET_UNIFORM_QUANTIZED, "UniformQuantizedClipByValue", &count);
    assert_int_equal(count, 1);
    for (int64_t i = 0; i < y.elements; i++) {
        assert_true(TARE_DATA(float, &y)[i] >= 0);
        if (TARE_DATA(float, &y)[i] > most) most = TARE_DATA(float, &y)[i];
    }
    assert_float_equal(most, 6, 0.5 * STEP * 0.01);
    tare_tensor_reset(&y);
}

static void dynamic_range__is_near_xla(void **state) {
    const struct layer_case c = {
        "MatMul", NULL, tare_shape_make(2, 1, 7), tare_shape_make(2, 7, 5), false, false, false, 3, 0, 0
    };
    size_t count;
    (void)state;
    struct tare_tensor a = answer(&c, &tare_method_dynamic, TARE_OP_SET_XLA, "XlaDotV2", &count);
    assert_int_equal(count, 1);
    struct tare_tensor b =
        answer(&c, &tare_method_dynamic, TARE_OP_SET_UNIFORM_QUANTIZED, "UniformQuantizedDotHybrid", &count);
    assert_int_equal(count, 1);
    for (int64_t i = 0; i < a.elements; i++) /* one row: the same range; rounding differs by a step at most */
        assert_float_equal(TARE_DATA(float, &a)[i], TARE_DATA(float, &b)[i], 7 * STEP * 1.27);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void weight_only__has_no_such_form(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only,
                                             .op_set = TARE_OP_SET_UNIFORM_QUANTIZED };
    struct tare_graph_model *model = mini_model_new();
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    const struct tare_shape shape = tare_shape_make(2, 2, 2);
    (void)state;
    mini_node(model->main, "MatMul", "layer", 2, mini_placeholder(model->main, "x", TARE_DT_FLOAT),
              constant(model->main, "w", &shape, 1, 0));
    mini_fails(tare_quantize(&report, &arena, model, NULL, &options),
               "TF/Uniform quantized opset does not support weight-only.");
    tare_error_clear();
    tare_model_free(model);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_range__equals_xla),
        cmocka_unit_test(static_range_of_4_bits__equals_xla),
        cmocka_unit_test(tables__are_quantized_by_a_rule_alone),
        cmocka_unit_test(static_range_of_narrow_floats__equals_xla),
        cmocka_unit_test(dynamic_range_of_narrow_floats__is_near_xla),
        cmocka_unit_test(relu6__is_cut_within_half_a_step),
        cmocka_unit_test(dynamic_range__is_near_xla),
        cmocka_unit_test(weight_only__has_no_such_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
