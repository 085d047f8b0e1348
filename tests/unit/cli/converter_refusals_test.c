/* Every error that the documents of the Cloud TPU inference converter name, provoked. */
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/seed_model.h"
#include "support/temp.h"

#include <sys/stat.h>

#define BATCH SEED_BATCH
#define TPU_FUNC SEED_TPU_FUNC

/* A TPU function that reaches another one through a function on the CPU. */
static struct tare_graph_model *indirect(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = tare_model_add_function(model, "__inference_tpu_func_4_68");
    struct tare_graph *between = tare_model_add_function(model, "__inference_between_57");
    struct tare_graph *outer = tare_model_add_function(model, "__inference_tpu_func_2_46");
    struct tare_shape shape = tare_shape_make(2, -1, 3);
    struct tare_edge x = mini_arg(inner, "x", TARE_DT_FLOAT);
    mini_return(inner, "y", mini_node(inner, "Relu", "relu", 1, x));
    x = mini_arg(between, "x", TARE_DT_FLOAT);
    mini_return(between, "y", mini_call(between, "PartitionedCall", "call", inner, 1, x));
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    mini_return(outer, "y", mini_call(outer, "PartitionedCall", "call", between, 1, x));
    seed_serve(model, outer, &shape);
    seed_alias(model, inner->name, "tpu_func_4");
    seed_alias(model, outer->name, "tpu_func_2");
    seed_alias(model, between->name, "between");
    return model;
}

static void an_indirect_call__is_refused_in_the_documents_words(void **state) {
    const char *path = seed_write(indirect(), "indirect");
    (void)state;
    seed_refuses(
        path, "tpu_functions { function_alias: \"tpu_func_2\" } tpu_functions { function_alias: \"tpu_func_4\" }",
        "Unable to place both \"__inference_tpu_func_2_46\" and \"__inference_tpu_func_4_68\" on the TPU because "
        "\"__inference_tpu_func_2_46\" indirectly calls \"__inference_tpu_func_4_68\". This behavior is unsupported "
        "because it can cause invalid graphs to be generated. (leave out the entry of function_alias: \"tpu_func_4\": "
        "the TPU computes what \"__inference_tpu_func_2_46\" calls)");
    seed_converts(path, "tpu_functions { function_alias: \"tpu_func_2\" } disable_default_optimizations: true");
    seed_answers_as(path, tare_shape_make(2, 2, 3));
    seed_converts(path,
                  "tpu_functions { function_alias: \"between\" } tpu_functions { function_alias: \"tpu_func_4\" } "
                  "disable_default_optimizations: true"); /* a direct call works */
    seed_answers_as(path, tare_shape_make(2, 2, 3));
}

static void a_string_model__is_refused_whole_and_split(void **state) {
    const char *path = seed_write(seed_language_model(), "language");
    struct process process;
    struct tare_graph_model *model;
    (void)state;
    seed_refuses(path, "tpu_functions { signature_name: \"serving_default\" }",
                 "'tf.StringToNumber' op isn't compilable for TPU device.");
    seed_refuses(path, "tpu_functions { signature_name: \"serving_default\" }",
                 "parameter 'input_string' of TPU function __inference_model_func_5 is string");
    seed_converts(path, TPU_FUNC);
    model = seed_load();
    assert_int_equal(graph_count(tare_model_find_function(model, "__inference_model_func_5"), "StringToNumber"), 1);
    tare_model_free(model);
    process_run(&process, (const char *const[]){ process_tare(), "convert", path, temp_path("strings"),
                                                 "--allow-incompatible", "--converter_options_string",
                                                 "tpu_functions { signature_name: \"serving_default\" }", NULL });
    assert_int_equal(process.status, 0);
    assert_non_null(strstr(process.err, "warning: 'tf.StringToNumber' op isn't compilable for TPU device."));
    process_free(&process);
}

static void a_function_named_twice__says_by_which_names(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    (void)state;
    seed_refuses(path, TPU_FUNC "tpu_functions { concrete_function_name: \"__inference_tpu_func_10\" }",
                 "function __inference_tpu_func_10 is given twice: by function_alias: \"tpu_func\" and by "
                 "concrete_function_name: \"__inference_tpu_func_10\"");
    seed_refuses(path, "tpu_functions { function_alias: \"tpu\" }", "does not exist (known aliases: \"tpu_func\")");
    seed_refuses(path, "tpu_functions { jit_compile_functions: true }", "no function was traced with jit_compile=True");
    seed_refuses(path, "tpu_functions { function_alis: \"tpu_func\" }", "function_alias"); /* the nearest name */
}

static void bad_allowed_batch_sizes__are_refused(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    (void)state;
    seed_refuses(path,
                 TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 allowed_batch_sizes: 4 "
                          "allowed_batch_sizes: 4 }",
                 "allowed_batch_sizes entries must be monotonically increasing");
    seed_refuses(
        path,
        TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 allowed_batch_sizes: 4 "
                 "disable_large_batch_splitting: true }",
        "final entry in allowed_batch_sizes must equal max_batch_size when enable_large_batch_splitting is False");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 allowed_batch_sizes: 16 }",
                 "final entry in allowed_batch_sizes must be at most max_batch_size (got 16, 8)");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 batch_timeout_micros: -1 }",
                 "batch_timeout_micros must be non-negative (got -1)");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 max_enqueued_batches: -1 }",
                 "max_enqueued_batches must be non-negative (got -1)");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: 1 }", "max_batch_size must be positive (got 0)");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: 1 allowed_batch_sizes: [2, 4, 8] }",
                 "max_batch_size must be positive (got 0)");
    seed_refuses(path,
                 TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 16 allowed_batch_sizes: [0, 4, 16] }",
                 "allowed_batch_sizes entries must be monotonically increasing (expected more than 0, got 0)");
    seed_refuses(path, TPU_FUNC "batch_options { max_batch_size: 8 }", "num_batch_threads must be positive (got 0)");
    seed_refuses(path, TPU_FUNC "batch_options { num_batch_threads: -1 max_batch_size: 8 }",
                 "num_batch_threads must be positive (got -1)");
    seed_converts(path, TPU_FUNC "batch_options { num_batch_threads: 1 max_batch_size: 8 allowed_batch_sizes: 4 }");
}

/* The four demands of the op on shapes, found when converting instead of when serving. */
static void shapes_that_cannot_be_batched__are_refused(void **state) {
    static const char options[] = BATCH "  experimental { function_alias: \"batch_func\" }\n}\n";
    struct tare_shape open = tare_shape_make(3, -1, 2, 4);
    (void)state;
    seed_refuses(seed_write(seed_binary("AddV2", tare_shape_scalar(), open), "bad"), options,
                 "Batching input tensors must have at least one dimension");
    seed_refuses(seed_write(seed_my_func(tare_shape_make(3, 1, 3, 2), open), "bad"), options,
                 "Dimensions of inputs should match");
    seed_refuses(seed_write(seed_binary("AddV2", tare_shape_make(3, 1, 2, 4), tare_shape_make(3, 5, 2, 4)), "bad"),
                 options,
                 "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size");
}

static void an_output_without_the_batch__is_refused(void **state) {
    static const int32_t axes[] = { 0, 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_total_7");
    struct tare_shape shape = tare_shape_make(2, -1, 10);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), sum;
    struct tare_node *node = mini_open(f, "Sum", "sum", 2, x, mini_ints(f, "axes", 2, axes));
    (void)state;
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    sum = mini_done(node);
    mini_return(f, "y", sum);
    seed_serve(model, f, &shape);
    seed_alias(model, f->name, "batch_func");
    seed_refuses(
        seed_write(model, "total"), BATCH "  experimental { function_alias: \"batch_func\" }\n}\n",
        "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input tensors");
}

static void a_tensorflow_1_model__is_refused_with_the_way_out(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_signature *s = model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_edge x = seed_input(model->main, "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 3));
    (void)state;
    model->n_signatures = s->n_inputs = s->n_outputs = 1;
    s->key = "serving_default";
    s->method_name = "tensorflow/serving/predict";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    *s->inputs = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = x };
    *s->outputs = (struct tare_binding){ .key = "y",
                                         .dtype = TARE_DT_FLOAT,
                                         .shape = tare_shape_unknown(),
                                         .edge = mini_node(model->main, "Relu", "y", 1, x) };
    seed_refuses(
        seed_write(model, "tf1"), "tpu_functions { signature_name: \"serving_default\" }",
        "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to TensorFlow 2");
}

static void an_empty_graph__is_read_but_not_converted(void **state) {
    static const char text[] = "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {"
                               " } object_graph_def { nodes { user_object { identifier: '_generic_user_object' } } } }";
    struct process process;
    (void)state;
    assert_int_equal(mkdir(temp_path("empty"), 0700), 0);
    temp_file("empty/saved_model.pbtxt", text, sizeof text - 1);
    process_run(&process, (const char *const[]){ process_tare(), "inspect", temp_path("empty"), NULL });
    assert_int_equal(process.status, 0);
    assert_non_null(strstr(process.out, "functions   0"));
    process_free(&process);
    seed_refuses(temp_path("empty"), TPU_FUNC, "this one has no functions to place on the TPU");
}

/* A file without an object graph, whatever names the functions that it has. */
static void a_tensorflow_1_model_with_functions__is_refused_the_same_way(void **state) {
    static const char *const functions[] = { "tpu_functions { signature_name: \"serving_default\" }",
                                             "tpu_functions { function_alias: \"tpu_func\" }",
                                             "tpu_functions { concrete_function_name: \"f\" }",
                                             "tpu_functions { jit_compile_functions: true }",
                                             "xla_functions { device_type: TPU jit_compile_functions: true }" };
    static const char text[] = "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {"
                               " node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
                               " library { function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT }"
                               " output_arg { name: 'y' type: DT_FLOAT } } ret { key: 'y' value: 'x' }"
                               " attr { key: '_XlaMustCompile' value { b: true } } } } } }";
    (void)state;
    assert_int_equal(mkdir(temp_path("tf1_functions"), 0700), 0);
    temp_file("tf1_functions/saved_model.pbtxt", text, sizeof text - 1);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        seed_refuses(temp_path("tf1_functions"), functions[i],
                     "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to "
                     "TensorFlow 2 (this one has no object graph: ");
    struct process process; /* and before samples are read */
    process_run(&process, (const char *const[]){ process_tare(), "convert", temp_path("tf1_functions"),
                                                 temp_path("tf1_out"), "--data", "none.tfrecord", NULL });
    assert_int_equal(process.status, 1);
    assert_non_null(strstr(process.err, "TensorFlow 2 (this one has no object graph: "));
    process_free(&process);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_indirect_call__is_refused_in_the_documents_words),
        cmocka_unit_test(a_string_model__is_refused_whole_and_split),
        cmocka_unit_test(a_function_named_twice__says_by_which_names),
        cmocka_unit_test(bad_allowed_batch_sizes__are_refused),
        cmocka_unit_test(shapes_that_cannot_be_batched__are_refused),
        cmocka_unit_test(an_output_without_the_batch__is_refused),
        cmocka_unit_test(a_tensorflow_1_model__is_refused_with_the_way_out),
        cmocka_unit_test(an_empty_graph__is_read_but_not_converted),
        cmocka_unit_test(a_tensorflow_1_model_with_functions__is_refused_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
