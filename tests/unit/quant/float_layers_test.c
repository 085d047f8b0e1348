/* Layers that stay in float whatever their form. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/layer.h"

#include <string.h>

enum { ROWS = 8, COLUMNS = 4 };

/* The outcome for x [?, 8] times a constant [8, 4]; with `cluster`, in that cluster of a TPU computation. */
static struct tare_quant_outcome outcome(struct tare_arena *arena, const char *cluster) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    struct tare_graph_model *model = mini_model_new();
    struct tare_quant_report report;
    struct tare_tensor weight;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y;
    mini_ok(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        TARE_DATA(float, &weight)[i] = (float)(i * 37 % 101 - 50) / 23;
    y = mini_node(model->main, "MatMul", "product", 2, x,
                  (struct tare_edge){ tare_graph_add_const(model->main, "w", &weight), 0 });
    tare_tensor_reset(&weight);
    if (cluster) mini_ok(tare_node_set_string(y.node, "_tpu_replicate", cluster, strlen(cluster)));
    mini_ok(tare_quantize(&report, arena, model, NULL, &options));
    assert_int_equal(report.count, 1);
    tare_model_free(model);
    return report.outcomes[0];
}

/* Quantized, its new ops would be outside of the cluster, and the model would not be valid. */
static void layer_of_a_converted_model__stays_float(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_quant_outcome result = outcome(&arena, NULL);
    (void)state;
    assert_null(result.refused);
    result = outcome(&arena, "cluster");
    assert_non_null(result.refused);
    assert_string_equal(result.refused, "it is part of a TPU computation (quantize the model before it is converted)");
    tare_arena_free(&arena);
}

/* As in a function whose callers pass different weights. */
static void layer_with_a_weight_of_unknown_shape__stays_float(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static }, .min_elements = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    (void)state;
    mini_node(model->main, "MatMul", "product", 2, mini_placeholder(model->main, "x", TARE_DT_FLOAT),
              mini_placeholder(model->main, "w", TARE_DT_FLOAT));
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    assert_int_equal(report.count, 1);
    assert_string_equal(report.outcomes[0].refused, "the rank of an operand is not known");
    tare_arena_free(&arena);
    tare_model_free(model);
}

/* ---- control flow of TensorFlow 1 ---- */

static struct tare_edge small_weight(struct tare_graph *graph) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    struct tare_tensor weight;
    mini_ok(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        TARE_DATA(float, &weight)[i] = (float)(i * 37 % 101 - 50) / 23;
    const struct tare_edge edge = { tare_graph_add_const(graph, "w", &weight), 0 };
    tare_tensor_reset(&weight);
    return edge;
}

static struct tare_edge enter(struct tare_graph *graph, const char *name, struct tare_edge x) {
    struct tare_node *node = mini_open(graph, "Enter", name, 1, x);
    mini_ok(tare_node_set_string(node, "frame_name", "while", 5));
    mini_ok(tare_node_set_bool(node, "is_constant", true));
    return mini_done(node);
}

static struct tare_edge through(struct tare_graph *graph, const char *op, struct tare_edge w) {
    if (strcmp(op, "Enter") == 0) return mini_node(graph, "Identity", "copy", 1, enter(graph, "enter", w));
    return mini_node(graph, "Switch", "switch", 2, w, mini_placeholder(graph, "go", TARE_DT_BOOL));
}

/* The reason names the control flow, not a second activation or a variable. */
static void weights_outside_of_frames__are_named(void **state) {
    static const char *const ops[] = { "Enter", "Switch" };
    static const char *const reasons[] = { "TensorFlow 1 loop", "TensorFlow 1 conditional" };
    static const struct tare_quant_method *const methods[] = { &tare_method_static, &tare_method_weight_only };
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct tare_quant_plan options = { .setting = { .method = methods[i / 2] }, .min_elements = 1 };
        struct tare_graph_model *model = mini_model_new();
        struct tare_graph *graph = model->main;
        struct tare_arena arena = { 0 };
        struct tare_quant_report report;
        struct tare_edge x = mini_placeholder(graph, "x", TARE_DT_FLOAT);
        mini_ok(tare_node_set_shape(x.node, "shape", &(struct tare_shape){ .rank = 2, .dims = { 1, ROWS } }));
        if (i % 2 == 0) x = enter(graph, "enter/x", x);
        mini_node(graph, "MatMul", "product", 2, x, through(graph, ops[i % 2], small_weight(graph)));
        mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
        assert_int_equal(report.count, 1);
        assert_non_null(report.outcomes[0].refused);
        if (!strstr(report.outcomes[0].refused, reasons[i % 2])) fail_msg("%s", report.outcomes[0].refused);
        tare_arena_free(&arena);
        tare_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_of_a_converted_model__stays_float),
        cmocka_unit_test(layer_with_a_weight_of_unknown_shape__stays_float),
        cmocka_unit_test(weights_outside_of_frames__are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
