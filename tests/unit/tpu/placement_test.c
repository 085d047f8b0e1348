/* half_plus_two on the TPU, node by node: docs/converted-models.md compares this form with that of a serving graph. */
#include "tpu/placement.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/batching.h"
#include "tpu/callers.h"

#include <string.h>

/* half_plus_two(x, a, b) = x a + b, called with the variables a and b */
struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_edge x, y;
    struct tare_tpu_placed *placed;
    struct tare_batching_result batching;
};

static struct tare_edge read(struct tare_graph *graph, const char *name, struct tare_edge handle) {
    struct tare_node *node = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static void set_up(struct fixture *f) {
    static const int64_t sizes[] = { 8 };
    const struct tare_batch_options batch = { .component = TARE_BATCH_TPU,
                                              .num_batch_threads = 2,
                                              .max_batch_size = 8,
                                              .batch_timeout_micros = 100000,
                                              .allowed_batch_sizes = sizes,
                                              .n_allowed = 1,
                                              .max_enqueued_batches = 3 };
    struct tare_shape open = tare_shape_make(1, -1);
    struct tare_tpu_function function;
    struct tare_node *input;
    struct tare_edge x, a, b;
    size_t changes = 0;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "half_plus_two");
    x = mini_arg(f->function, "x", TARE_DT_FLOAT);
    a = read(f->function, "Mul/ReadVariableOp", mini_arg(f->function, "a", TARE_DT_RESOURCE));
    b = read(f->function, "Add/ReadVariableOp", mini_arg(f->function, "b", TARE_DT_RESOURCE));
    mini_return(f->function, "y",
                mini_node(f->function, "AddV2", "Add", 2, mini_node(f->function, "Mul", "Mul", 2, a, x), b));
    input = mini_open(f->model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(input, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(input, "shape", &open));
    f->x = mini_done(input);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->function, 3, f->x,
                     mini_variable(f->model, "a", 0.5f), mini_variable(f->model, "b", 2));
    function = (struct tare_tpu_function){ f->function, NULL, "half_plus_two" };
    mini_ok(tare_tpu_place(&f->placed, &f->arena, f->model, &function, 1, &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_tpu_batch(&f->batching, &f->arena, f->model, &batch, 1));
    mini_ok(tare_tpu_adapt_callers(f->model, &changes));
    graph_check_dtypes(f->model);
}

static void tear_down(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void assert_text(const struct tare_node *node, const char *attr, const char *text) {
    assert_string_equal(tare_node_string(node, attr, ""), text);
}

/* As tf.function names the functions of a lambda and of "é"; the names of nodes have fewer letters. */
static void functions_of_any_name__get_nodes_with_valid_names(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *function = tare_model_add_function(model, "__inference_<lambda>_\xC3\xA9_6");
    struct tare_tpu_function chosen = { function, NULL, "lambda" };
    const struct tare_batch_options batch = { .component = TARE_BATCH_TPU,
                                              .num_batch_threads = 1,
                                              .max_batch_size = 4 };
    struct tare_batching_result batching;
    struct tare_tpu_placed *placed;
    struct tare_arena arena = { 0 };
    const struct tare_node *batcher;
    struct tare_edge x = mini_arg(function, "x", TARE_DT_FLOAT);
    (void)state;
    mini_return(function, "y", mini_node(function, "Relu", "Relu", 1, x));
    mini_ok(tare_tpu_place(&placed, &arena, model, &chosen, 1, &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_tpu_batch(&batching, &arena, model, &batch, 1));
    assert_non_null(graph_node(placed[0].replicated, "cluster___inference__lambda____6/pivot"));
    assert_text(graph_only(placed[0].replicated, "TPUReplicateMetadata"), "_tpu_replicate",
                "cluster___inference__lambda____6");
    batcher = graph_only(function, "BatchFunction");
    assert_string_equal(batcher->name, "batch/__inference__lambda____6");
    assert_text(batcher, "shared_name", "batch/__inference_<lambda>_\xC3\xA9_6");
    tare_model_free(model);
    tare_arena_free(&arena);
}

static void the_cluster__has_pivot_metadata_and_status(void **state) {
    const struct tare_node *pivot, *metadata, *status;
    struct fixture f;
    (void)state;
    set_up(&f);
    pivot = graph_node(f.placed[0].replicated, "cluster_half_plus_two/pivot");
    metadata = graph_only(f.placed[0].replicated, "TPUReplicateMetadata");
    status = graph_only(f.placed[0].replicated, "TPUCompilationResult");
    assert_text(pivot, "_pivot_for_cluster", "cluster_half_plus_two");
    assert_text(metadata, "_tpu_replicate", "cluster_half_plus_two");
    assert_text(status, "_tpu_compilation_status", "cluster_half_plus_two");
    assert_ptr_equal(metadata->controls[0], pivot);
    assert_ptr_equal(status->controls[0], metadata);
    assert_int_equal(tare_node_int(metadata, "num_replicas", 0), 1);
    assert_int_equal(tare_node_int(metadata, "num_cores_per_replica", 0), 1);
    assert_null(tare_node_find_attr(metadata, "use_spmd_for_xla_partitioning")); /* without effect on one core */
    tear_down(&f);
}

static void data_and_handles__enter_as_in_the_serving_graph(void **state) {
    const struct tare_graph *body;
    const struct tare_node *identity;
    struct fixture f;
    (void)state;
    set_up(&f);
    body = f.placed[0].replicated;
    identity = graph_node(body, "replicated_input_0");
    assert_true(tare_node_bool(identity, "_tpu_input_identity", false));
    assert_string_equal(identity->controls[0]->op, "TPUReplicateMetadata");
    assert_string_equal(identity->inputs[0].node->op, "TPUReplicatedInput");
    assert_int_equal(tare_node_int(identity->inputs[0].node, "N", 0), 1);
    assert_ptr_equal(graph_node(body, "Mul/ReadVariableOp")->inputs[0].node, body->args[1]);
    assert_ptr_equal(graph_node(body, "Add/ReadVariableOp")->inputs[0].node, body->args[2]);
    assert_text(graph_node(body, "Mul/ReadVariableOp"), "_tpu_replicate", "cluster_half_plus_two");
    tear_down(&f);
}

static void results__leave_by_a_replicated_output(void **state) {
    const struct tare_node *shard, *output, *identity;
    struct fixture f;
    (void)state;
    set_up(&f);
    shard = f.placed[0].replicated->returns[0].edge.node;
    output = shard->inputs[0].node;
    identity = output->inputs[0].node;
    assert_string_equal(shard->name, "output_0_shard_0");
    assert_null(tare_node_find_attr(shard, "_tpu_replicate"));
    assert_string_equal(output->op, "TPUReplicatedOutput");
    assert_int_equal(tare_node_int(output, "num_replicas", 0), 1);
    assert_true(tare_node_bool(identity, "_tpu_output_identity", false));
    assert_text(identity, "_tpu_replicate", "cluster_half_plus_two");
    assert_ptr_equal(identity->inputs[0].node, graph_node(f.placed[0].replicated, "Add"));
    tear_down(&f);
}

static void the_batcher__calls_the_stub_that_calls_the_tpu(void **state) {
    const struct tare_node *batcher, *call;
    const struct tare_graph *stub;
    struct fixture f;
    (void)state;
    set_up(&f);
    batcher = graph_only(f.function, "BatchFunction");
    assert_int_equal(tare_node_int(batcher, "num_batch_threads", 0), 2);
    assert_int_equal(tare_node_int(batcher, "max_batch_size", 0), 8);
    assert_int_equal(tare_node_int(batcher, "batch_timeout_micros", 0), 100000);
    assert_int_equal(tare_node_int(batcher, "max_enqueued_batches", 0), 3);
    assert_true(tare_node_bool(batcher, "enable_large_batch_splitting", false));
    assert_int_equal(tare_node_list(batcher, "Tin")->count, 1);
    assert_int_equal(tare_node_list(batcher, "Tcaptured")->count, 2);
    stub = tare_node_function(batcher, "f");
    call = graph_only(stub, "TPUPartitionedCall");
    assert_int_equal(call->n_inputs, 4);
    assert_string_equal(call->inputs[3].node->op, "TPUOrdinalSelector");
    assert_ptr_equal(tare_node_function(call, "f"), f.placed[0].replicated);
    assert_true(stub->is_stateful && f.function->is_stateful);
    tear_down(&f);
}

/* Calls that are not PartitionedCalls: by the name of the function, and as a branch. */
static void functions_called_by_another_one__are_copied_for_any_call(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f"), *outer = tare_model_add_function(model, "outer");
    struct tare_arena arena = { 0 };
    struct tare_tpu_placed *placed;
    struct tare_node *by_name, *branch;
    size_t changes = 0;
    (void)state;
    mini_return(f, "y", mini_node(f, "Neg", "neg", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    const struct tare_edge x = mini_arg(outer, "x", TARE_DT_FLOAT);
    by_name = mini_open(outer, "f", "by_name", 1, x);
    branch = mini_open(outer, "StatelessIf", "branch", 2, mini_bool(outer, "condition", true), mini_done(by_name));
    mini_ok(tare_node_set_func(branch, "then_branch", "f"));
    mini_ok(tare_node_set_func(branch, "else_branch", "f"));
    mini_ok(tare_node_set_type(branch, "Tcond", TARE_DT_BOOL));
    mini_ok(tare_node_set_type_list(branch, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(branch, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    mini_return(outer, "y", mini_done(branch));
    mini_ok(tare_tpu_place(&placed, &arena, model,
                           (struct tare_tpu_function[]){ { f, NULL, "f" }, { outer, NULL, "outer" } }, 2,
                           &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_tpu_adapt_callers(model, &changes));
    by_name = graph_node(placed[1].replicated, "by_name");
    branch = graph_node(placed[1].replicated, "branch");
    assert_string_equal(by_name->op, "f_on_tpu");
    assert_string_equal(branch->op, "StatelessIf");
    assert_string_equal(tare_node_function(branch, "then_branch")->name, "f_on_tpu");
    assert_string_equal(tare_node_function(branch, "else_branch")->name, "f_on_tpu");
    assert_non_null(graph_only(tare_model_find_function(model, "f_on_tpu"), "Neg"));
    graph_check_dtypes(model);
    tare_model_free(model);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_any_name__get_nodes_with_valid_names),
        cmocka_unit_test(the_cluster__has_pivot_metadata_and_status),
        cmocka_unit_test(data_and_handles__enter_as_in_the_serving_graph),
        cmocka_unit_test(results__leave_by_a_replicated_output),
        cmocka_unit_test(functions_called_by_another_one__are_copied_for_any_call),
        cmocka_unit_test(the_batcher__calls_the_stub_that_calls_the_tpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
