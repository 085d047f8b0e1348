/* What the analysis cannot know is found by running records: features with a large mean that go straight into a product
 * whose columns cancel it. */
#include "workflow/bfloat16/check.h"

#include "datasets/tfrecord.h"
#include "graph/clone.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"
#include "workflow/bfloat16/places.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16, RECORDS = 6, LAYERS = 24 };

/* Columns of a small sum, which the analysis of weights alone does not take for 0. */
static struct tare_edge weights(struct tare_graph *graph) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(TARE_DATA(float, &value), WIDTH * WIDTH, DRAW_NORMAL, 7);
    for (int c = 0; c < WIDTH; c++) {
        float mean = 0;
        for (int r = 0; r < WIDTH; r++)
            mean += TARE_DATA(float, &value)[r * WIDTH + c] / WIDTH;
        for (int r = 0; r < WIDTH; r++)
            TARE_DATA(float, &value)[r * WIDTH + c] -= 0.999f * mean;
    }
    node = tare_graph_add_const(graph, "weights", &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

/* y = relu(x W) W */
static struct tare_graph_model *make_model(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_signature *s = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), in;
    x = mini_node(f, "Relu", "relu", 1, mini_node(f, "MatMul", "first", 2, x, weights(f)));
    mini_return(f, "y", mini_node(f, "MatMul", "second", 2, x, weights(f)));
    model->signatures = s;
    model->n_signatures = 1;
    s->key = "serving_default";
    s->method_name = "";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->n_inputs = s->n_outputs = 1;
    in = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    *s->inputs = (struct tare_binding){
        .key = "x", .dtype = TARE_DT_FLOAT, .edge = in, .shape = tare_shape_make(2, (int64_t)1, (int64_t)WIDTH)
    };
    *s->outputs = (struct tare_binding){ .key = "y",
                                         .dtype = TARE_DT_FLOAT,
                                         .shape = tare_shape_unknown(),
                                         .edge = mini_call(model->main, "PartitionedCall", "serve", f, 1, in) };
    return model;
}

static const char *write_samples(float mean) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)1, (int64_t)WIDTH);
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("samples");
    mini_ok(tare_tfrecord_create(&writer, path));
    for (unsigned r = 0; r < RECORDS; r++) {
        float x[WIDTH];
        draw_fill(x, WIDTH, DRAW_NORMAL, r + 1);
        for (int i = 0; i < WIDTH; i++)
            x[i] += mean;
        write_float_sample(writer, "x", &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

static struct tare_bfloat16_checked check(struct tare_graph_model *model, const char *path) {
    struct tare_tpu_choice choice = { TARE_TPU_BY_SIGNATURE, "serving_default", false };
    const struct tare_converter_options options = { .functions = &choice, .n_functions = 1, .bfloat16 = true };
    const struct tare_quantize_request request = { .data = { .items = &path, .count = path != NULL } };
    struct tare_bfloat16_checked checked;
    mini_ok(tare_workflow_bfloat16_check(&checked, &model->arena, model, &options, &request));
    return checked;
}

static void features_with_a_large_mean__are_found(void **state) {
    struct tare_graph_model *model = make_model();
    const struct tare_bfloat16_checked checked = check(model, write_samples(300));
    bool first = false;
    (void)state;
    for (size_t i = 0; i < checked.n_nodes; i++)
        first |= strcmp(checked.nodes[i].node, "first") == 0;
    assert_int_equal(checked.records, RECORDS);
    assert_int_equal(checked.n_outputs, 1);
    assert_true(checked.before < 20);
    assert_true(checked.outputs[0].sqnr > 40);
    assert_true(first);
    model->n_signatures = 0;
    tare_model_free(model);
}

/* An alias promises the layers with their assertion: the TPU gets a copy without it, of another name. */
static void nodes_of_a_copied_function__stay_float32(void **state) {
    static const char *const words[] = { "wrong" };
    struct tare_alias alias = { "layers", "kept" };
    struct tare_graph_model *model = make_model();
    struct tare_graph *f = tare_model_find_function(model, "f"), *layers;
    struct tare_bfloat16_checked checked;
    struct tare_edge call;
    (void)state;
    mini_ok(tare_function_move_body(&layers, f, "layers"));
    mini_node(layers, "Assert", "assert", 2, mini_bool(layers, "ok", true), mini_strings(layers, "text", 1, words));
    call = mini_call(f, "PartitionedCall", "call", layers, 1, (struct tare_edge){ f->args[0], 0 });
    tare_graph_set_return(f, 0, call);
    model->aliases = &alias;
    model->n_aliases = 1;
    checked = check(model, write_samples(300));
    assert_true(checked.before < 20);
    assert_true(checked.outputs[0].sqnr > 40);
    assert_string_equal(checked.nodes[0].function, "layers");
    model->n_signatures = model->n_aliases = 0;
    tare_model_free(model);
}

static void centred_features__are_rounded(void **state) {
    struct tare_graph_model *model = make_model();
    const struct tare_bfloat16_checked checked = check(model, write_samples(0));
    (void)state;
    assert_int_equal(checked.n_nodes, 0);
    assert_true(checked.outputs[0].sqnr > 40 && checked.outputs[0].sqnr < 60);
    model->n_signatures = 0;
    tare_model_free(model);
}

/* Layers tanh(0.6 x W), which amplify what the first ones add: no node is the cause alone. */
static struct tare_graph_model *make_deep_model(void) {
    struct tare_graph_model *model = make_model();
    struct tare_graph *f = tare_model_find_function(model, "f");
    struct tare_edge x = { f->args[0], 0 };
    for (int i = 0; i < LAYERS; i++) {
        const char *product = tare_arena_printf(&model->arena, "product_%d", i);
        x = mini_node(f, "MatMul", product, 2, x, weights(f));
        x = mini_node(f, "Mul", tare_arena_printf(&model->arena, "scaled_%d", i), 2, x,
                      mini_float(f, tare_arena_printf(&model->arena, "gain_%d", i), 0.6F));
        x = mini_node(f, "Tanh", tare_arena_printf(&model->arena, "tanh_%d", i), 1, x);
    }
    tare_graph_set_return(f, 0, x);
    return model;
}

static void rounding_that_adds_up__leaves_the_first_products_in_float32(void **state) {
    struct tare_graph_model *model = make_deep_model();
    const struct tare_bfloat16_checked checked = check(model, write_samples(0));
    bool first = false;
    (void)state;
    for (size_t i = 0; i < checked.n_nodes; i++)
        first |= strcmp(checked.nodes[i].node, "product_0") == 0;
    assert_true(checked.before < 30);
    assert_true(checked.outputs[0].sqnr >= 30);
    assert_true(first);
    assert_true(checked.n_nodes < LAYERS);
    model->n_signatures = 0;
    tare_model_free(model);
}

static void without_records__nothing_is_run(void **state) {
    struct tare_graph_model *model = make_model();
    const struct tare_bfloat16_checked checked = check(model, NULL);
    (void)state;
    assert_int_equal(checked.records, 0);
    assert_int_equal(checked.n_outputs, 0);
    model->n_signatures = 0;
    tare_model_free(model);
}

/* Values of two records that differ by 2 and are read with an error of 1, at any level. */
static void signal__does_not_depend_on_the_level(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 3);
    (void)state;
    for (double level = 0; level <= 1e14; level = level > 0 ? 100 * level : 1e6) {
        struct tare_bf16_place place = { .count = 2, .compared = 2, .noise = 6 };
        for (int r = 0; r < 2; r++)
            mini_ok(tare_tensor_from(&place.values[r], TARE_DT_DOUBLE, &shape,
                                     (double[]){ level + 2 * r, 0.5 * level - 2 * r, 2 * level + 2 * r }));
        assert_float_equal(tare_bf16_place_sqnr(&place), 0, 1e-9); /* 3 elements with squares 1 + 1 */
        for (int r = 0; r < 2; r++)
            tare_tensor_reset(&place.values[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_with_a_large_mean__are_found),
        cmocka_unit_test(nodes_of_a_copied_function__stay_float32),
        cmocka_unit_test(centred_features__are_rounded),
        cmocka_unit_test(rounding_that_adds_up__leaves_the_first_products_in_float32),
        cmocka_unit_test(without_records__nothing_is_run),
        cmocka_unit_test(signal__does_not_depend_on_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
