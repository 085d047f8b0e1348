/* Devices are removed from the functions to place; a function that others call as well keeps its own. */
#include "tpu/devices.h"
#include "graph/calls.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

static void devices_of_TPU_functions__are_removed(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *shared = tare_model_add_function(model, "shared");
    struct tare_edge x = mini_node(shared, "Relu", "relu", 1, mini_arg(shared, "x", TARE_DT_FLOAT));
    struct tare_arena arena = { 0 };
    size_t cleared = 0;
    (void)state;
    x.node->device = "/job:worker/replica:0/task:3/device:GPU:1";
    mini_return(shared, "y", x);
    x = mini_node(f, "Relu", "gpu", 1, mini_arg(f, "x", TARE_DT_FLOAT));
    x.node->device = "/device:GPU:0";
    x = mini_node(f, "Relu", "cpu", 1, x);
    x.node->device = "/job:localhost/replica:0/task:0/device:CPU:0";
    mini_return(f, "y", mini_call(f, "PartitionedCall", "call", shared, 1, x));
    mini_call(model->main, "PartitionedCall", "other", shared, 1, mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    mini_ok(tare_tpu_clear_devices(&cleared, &arena, &f, 1));
    assert_int_equal(cleared, 2);
    assert_string_equal(graph_node(f, "gpu")->device, "");
    assert_string_equal(graph_node(f, "cpu")->device, "/job:localhost/replica:0/task:0/device:CPU:0");
    assert_string_equal(graph_node(tare_node_function(graph_node(f, "call"), "f"), "relu")->device, "");
    assert_string_equal(graph_node(shared, "relu")->device, "/job:worker/replica:0/task:3/device:GPU:1");
    tare_arena_free(&arena);
    tare_model_free(model);
}

/* loaded.inner(x) works after the conversion of f, which called it, as before. */
static void a_method_that_only_a_TPU_function_called__stays_with_its_devices(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *inner = tare_model_add_function(model, "inner");
    struct tare_edge x = mini_node(inner, "Relu", "gpu", 1, mini_arg(inner, "x", TARE_DT_FLOAT));
    struct tare_concrete concrete = { .graph = inner };
    struct tare_alias alias = { "f", "f" };
    struct tare_arena arena = { 0 };
    size_t cleared = 0;
    bool *live;
    (void)state;
    x.node->device = "/device:GPU:0";
    mini_return(inner, "y", x);
    mini_return(f, "y", mini_call(f, "PartitionedCall", "call", inner, 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    model->concretes = &concrete;
    model->aliases = &alias;
    model->n_concretes = model->n_aliases = 1;
    mini_ok(tare_tpu_clear_devices(&cleared, &arena, &f, 1));
    assert_int_equal(cleared, 1);
    assert_string_equal(graph_node(inner, "gpu")->device, "/device:GPU:0");
    mini_ok(tare_model_reachable_functions(&live, &arena, model, true));
    for (size_t i = 0; i < model->n_functions; i++)
        assert_true(live[i]);
    model->n_concretes = model->n_aliases = 0;
    tare_arena_free(&arena);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_TPU_functions__are_removed),
        cmocka_unit_test(a_method_that_only_a_TPU_function_called__stays_with_its_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
