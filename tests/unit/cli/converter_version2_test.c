/* Texts for version 2 of the converter: each does what it says, or is refused with the reason. */
#include "base/file.h"
#include "convert/saved_model.h"
#include "support/graph_check.h"
#include "support/seed_model.h"

#include <stdio.h>
#include <string.h>

#define PLACE "tpu_functions { function_alias: \"tpu_func\" } "
#define PLAIN "disable_default_optimizations: true "
#define LOW_PRIORITY(fields) PLACE SEED_BATCH "  low_priority_batch_options { " fields " }\n}\n"
/* mesh_shape 1,2,1,1, coordinates 0,0,0,0 and 0,1,0,0 */
#define SHARDED(more)                                                                                                  \
    PLACE PLAIN                                                                                                        \
        "xla_sharding_options { num_cores_per_replica: 2 topology: "                                                   \
        "\"\\n\\004\\001\\002\\001\\001\\020\\001\\030\\002\\042\\010\\000\\000\\000\\000\\000\\001\\000\\000\" " more \
        " }"
#define SPLIT(argument, dimension, parts)                                                                              \
    SHARDED("function_sharding_specs { function_alias: \"tpu_func\" arg_sharding_specs { arg_index: " argument         \
            " split_spec { dimension: " dimension " num_devices: " parts " } } }")

/* tpu_func(x) = x W with x [rows, 10]; `op` (NULL: none) follows, which makes strings, that are parsed again. */
static const char *model_of(int64_t rows, const char *op) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shape = tare_shape_make(2, rows, (int64_t)10);
    struct tare_edge y =
        mini_node(f, "MatMul", "matmul", 2, mini_arg(f, "x", TARE_DT_FLOAT), seed_weight(f, "w", 10, 6));
    if (op) y = mini_node(f, "StringToNumber", "parse", 1, mini_node(f, op, "print", 1, y));
    mini_return(f, "y", y);
    seed_serve(model, f, &shape);
    seed_alias(model, f->name, "tpu_func");
    return seed_write(model, "version2");
}

/* The same, with a second trace of the alias, which Keras and TensorFlow save for Python alone: nothing calls it. */
static const char *model_of_two_traces(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *traces[] = { tare_model_add_function(model, "__inference_tpu_func_10"),
                                    tare_model_add_function(model, "__inference_tpu_func_20") };
    struct tare_shape shape = tare_shape_make(2, (int64_t)8, (int64_t)10);
    for (int i = 0; i < 2; i++)
        mini_return(traces[i], "y",
                    mini_node(traces[i], "MatMul", "matmul", 2, mini_arg(traces[i], "x", TARE_DT_FLOAT),
                              seed_weight(traces[i], "w", 10, 6)));
    seed_serve(model, traces[0], &shape);
    for (int i = 0; i < 2; i++)
        seed_alias(model, traces[i]->name, "tpu_func");
    return seed_write(model, "version2");
}

static const char *model_with(const char *op) {
    return model_of(8, op);
}

static const struct tare_node *only(struct tare_graph_model *model, const char *op) {
    const struct tare_node *found = NULL;
    for (size_t f = 0; f < model->n_functions; f++)
        if (graph_count(model->functions[f], op)) found = graph_only(model->functions[f], op);
    assert_non_null(found);
    return found;
}

static void soft_placement__leaves_what_a_tpu_lacks_on_the_CPU(void **state) {
    const char *path = model_with("AsString");
    const char *const texts[] = {
        "tpu_functions { function_alias: \"tpu_func\" enable_soft_device_placement: true }",
        "xla_functions { device_type: TPU function_alias: \"tpu_func\" enable_soft_device_placement: true }",
    };
    (void)state;
    seed_refuses(path, PLACE, "'tf.AsString' op isn't compilable for TPU device.");
    for (int i = 0; i < 2; i++) {
        seed_says(path, texts[i],
                  "function 'tpu_func' is placed on the TPU in part, as function __inference_tpu_func_10_tpu; the "
                  "rest stays on the CPU: 'tf.AsString' op isn't compilable for TPU device.");
        struct tare_graph_model *model = seed_load();
        assert_true(tare_node_bool(only(model, "TPUReplicateMetadata"), "allow_soft_placement", false));
        tare_model_free(model);
    }
    seed_converts(model_with(NULL), PLACE);
    struct tare_graph_model *model = seed_load();
    assert_false(tare_node_bool(only(model, "TPUReplicateMetadata"), "allow_soft_placement", false));
    tare_model_free(model);
}

static void safety_checks__can_be_turned_off(void **state) {
    const char *path = model_with("AsString");
    (void)state;
    seed_refuses(path, PLACE "enable_device_placement_safety_checks: true", "isn't compilable for TPU device");
    seed_says(path, PLACE "enable_device_placement_safety_checks: false", "isn't compilable for TPU device");
    tare_model_free(seed_load());
}

static void cluster_names__are_shared_on_request(void **state) {
    struct tare_graph_model *model;
    (void)state;
    seed_converts(model_with(NULL), PLACE "enable_shared_replicate_cluster_name: true");
    model = seed_load();
    assert_string_equal(tare_node_string(only(model, "TPUCompilationResult"), "_tpu_compilation_status", ""),
                        "cluster");
    tare_model_free(model);
    seed_converts(model_with(NULL), PLACE);
    model = seed_load();
    assert_string_equal(tare_node_string(only(model, "TPUCompilationResult"), "_tpu_compilation_status", ""),
                        "cluster___inference_tpu_func_10");
    tare_model_free(model);
}

static void low_priority__has_a_queue_of_its_own(void **state) {
    const char *path = model_of(-1, NULL);
    struct tare_graph_model *model;
    const struct tare_node *batch;
    (void)state;
    seed_converts(path, LOW_PRIORITY("max_batch_size: 8 batch_timeout_micros: 7 allowed_batch_sizes: [2, 8] "
                                     "mixed_priority_batching_policy: PRIORITY_ISOLATION"));
    model = seed_load();
    batch = only(model, "BatchFunction");
    assert_int_equal(tare_node_int(batch, "low_priority_max_batch_size", 0), 8);
    assert_int_equal(tare_node_int(batch, "low_priority_batch_timeout_micros", 0), 7);
    assert_int_equal(tare_node_int(batch, "low_priority_max_enqueued_batches", 0), 10); /* 0 would refuse requests */
    assert_int_equal(tare_node_find_attr(batch, "low_priority_allowed_batch_sizes")->count, 2);
    assert_string_equal(tare_node_string(batch, "mixed_priority_policy", ""), "priority_isolation");
    tare_model_free(model);
    seed_refuses(path, LOW_PRIORITY("max_batch_size: 8 allowed_batch_sizes: [2, 4]"),
                 "low_priority_batch_options: final entry in allowed_batch_sizes must equal max_batch_size (got 4, 8)");
    seed_refuses(path, LOW_PRIORITY("max_batch_size: 8 allowed_batch_sizes: [8, 8]"),
                 "low_priority_batch_options: allowed_batch_sizes entries must be monotonically increasing");
    seed_refuses(path, LOW_PRIORITY("max_batch_size: 16 allowed_batch_sizes: [0, 4, 16]"),
                 "low_priority_batch_options: allowed_batch_sizes entries must be monotonically increasing (expected "
                 "more than 0, got 0)");
    seed_refuses(path, LOW_PRIORITY("allowed_batch_sizes: [2, 4, 8]"),
                 "low_priority_batch_options: max_batch_size must be positive (got 0)");
    seed_refuses(path, LOW_PRIORITY("max_batch_size: 8 batch_timeout_micros: -1"),
                 "low_priority_batch_options: batch_timeout_micros must be non-negative (got -1)");
    seed_refuses(path, LOW_PRIORITY("max_batch_size: 8 max_enqueued_batches: -1"),
                 "low_priority_batch_options: max_enqueued_batches must be non-negative (got -1)");
    seed_converts(path, LOW_PRIORITY("max_batch_size: 32")); /* more than the other queue's 8 */
    model = seed_load();
    assert_int_equal(tare_node_int(only(model, "BatchFunction"), "low_priority_max_batch_size", 0), 32);
    tare_model_free(model);
}

/* Fields 11 to 13 of version 2, and the older message around them. */
static void a_component_to_batch__is_named_directly(void **state) {
    static const char *const components[] = {
        "function_alias: \"tpu_func\"",
        "concrete_function_name: \"__inference_tpu_func_10\"",
        "signature_name: \"serving_default\"",
        "experimental { function_alias: \"tpu_func\" }",
        "function_alias: \"tpu_func\" experimental { }",
    };
    const char *path = model_of(-1, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof components / sizeof *components; i++) {
        char text[512];
        struct tare_graph_model *model;
        snprintf(text, sizeof text, "%s batch_options { num_batch_threads: 4 max_batch_size: 32 %s }", PLACE,
                 components[i]);
        seed_converts(path, text);
        model = seed_load();
        assert_int_equal(tare_node_int(only(model, "BatchFunction"), "max_batch_size", 0), 32);
        tare_model_free(model);
    }
    seed_refuses(path, PLACE "batch_options { num_batch_threads: 4 max_batch_size: 32 function_alias: \"other\" }",
                 "other");
    seed_refuses(path, PLACE "batch_options { 1: 4 max_batch_size: 32 }",
                 "a field by its number, 1 (expected num_batch_threads)");
    seed_refuses(path, PLACE "999: 4", "a field by its number, 999 (expected the name of a field)");
}

/* The sharding is a wire message: the tile dimensions are its bytes 4 and 5. */
static void arguments__are_split_along_the_dimension_that_is_named(void **state) {
    const char *path = model_with(NULL);
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, SPLIT("0", "1", "2"));
    model = seed_load();
    const struct tare_attr *sharding = tare_node_find_attr(only(model, "XlaSharding"), "sharding");
    assert_memory_equal(sharding->items[0].s.data, "\x08\x03\x1a\x02\x01\x02\x22\x02\x00\x01", 10);
    tare_model_free(model);
    seed_converts(path, SHARDED("use_shardy_partitioner: true")); /* rows, as nothing is named */
    model = seed_load();
    sharding = tare_node_find_attr(only(model, "XlaSharding"), "sharding");
    assert_memory_equal(sharding->items[0].s.data, "\x08\x03\x1a\x02\x02\x01\x22\x02\x00\x01", 10);
    assert_true(tare_node_bool(only(model, "TPUReplicateMetadata"), "use_shardy_partitioner", false));
    tare_model_free(model);
    seed_refuses(
        path,
        SHARDED("function_sharding_specs { function_alias: \"tpu_fun\" arg_sharding_specs { arg_index: 0 "
                "split_spec { dimension: 0 num_devices: 2 } } }"),
        "tare: function_sharding_specs: function_alias \"tpu_fun\" does not exist (known aliases: \"tpu_func\")");
    seed_refuses(path, SPLIT("1", "0", "2"), "arg_index is 1 (expected at most 0)");
    seed_refuses(path, SPLIT("0", "2", "2"), "dimension 2 of argument 0, [8,10], cannot be split into 2 parts");
    seed_refuses(path, SPLIT("0", "0", "4"), "num_devices is 4 (expected num_cores_per_replica, 2)");
    seed_refuses(path, SHARDED("sharding_specs { var_name_regex: \"w\" }"), "sharding of variables (sharding_specs)");
    seed_refuses(path, SHARDED("experimental { policy_based_sharding_spec { policy: FIRST_DIM } }"),
                 "sharding of variables (policy_based_sharding_spec)");
}

static void a_trace_that_nothing_calls__is_not_split(void **state) {
    const char *path = model_of_two_traces();
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, SPLIT("0", "1", "2"));
    model = seed_load();
    only(model, "XlaSharding");
    tare_model_free(model);
    seed_refuses(path, SPLIT("0", "2", "2"), "dimension 2 of argument 0, [8,10], cannot be split into 2 parts");
}

static void fields_for_gpus__are_refused(void **state) {
    const char *path = model_with(NULL);
    (void)state;
    seed_refuses(path, "xla_functions { device_type: GPU function_alias: \"tpu_func\" }", "device_type is GPU");
    seed_refuses(path, "xla_functions { function_alias: \"tpu_func\" }", "device_type is not set");
    seed_refuses(path, PLACE "xla_io_optimization: ENABLED", "xla_io_optimization is for GPUs");
    seed_refuses(path, PLACE "xla_io_optimization_options { input_packing_threshold: 1 }",
                 "xla_io_optimization_options is for GPUs");
    seed_refuses(path, PLACE "non_xla_device_placement_options { place_variables_on_cpu: ENABLED }",
                 "non_xla_device_placement_options is for GPUs (expected tpu_functions");
    seed_refuses(path, PLACE "bfloat16_optimization_options { scope: GPU }", "scope is GPU");
    seed_refuses(path, PLACE "bfloat16_optimization_options { scope: 3 }", "scope is GPU");
    seed_converts(path, PLACE "xla_io_optimization: DISABLED experimental_options { graph_pruning: ENABLED }");
    tare_model_free(seed_load());
    seed_refuses(path, PLACE "experimental_options { graph_pruning: DISABLED }", "graph_pruning is DISABLED");
}

static void bfloat16_fields__have_the_texts_of_the_converter(void **state) {
    const char *path = model_with(NULL);
    (void)state;
    seed_refuses(path, PLACE "bfloat16_optimization_options { preserve_signature: true }",
                 "The preserve_signature flag is only supported for the ALL scope. All other scopes preserve the "
                 "signature by default.");
    seed_refuses(path, PLACE "bfloat16_optimization_options { scope: ALL enable_cast_outside: true }",
                 "Cannot enable bfloat16 enable_cast_outside if the bfloat16 scope is not TPU or GPU.");
    seed_converts(path, PLACE "bfloat16_optimization_options { scope: ALL preserve_signature: true experimental { "
                              "convert_checkpoint: true } }");
    tare_model_free(seed_load());
}

/* The dtype in which the argument of the function on the TPU crosses, and whether its shape changes. */
static void argument__is(const char *text, int dtype, bool flattened) {
    seed_converts(model_with(NULL), text);
    struct tare_graph_model *model = seed_load();
    const struct tare_node *call = only(model, "TPUPartitionedCall");
    assert_int_equal(tare_edge_dtype(call->inputs[0]), dtype);
    assert_int_equal(graph_count(call->graph, "Reshape") > 0, flattened);
    tare_model_free(model);
}

static void casts__are_outside_by_either_option(void **state) {
    (void)state;
    argument__is(PLACE, TARE_DT_BFLOAT16, true);
    argument__is(PLACE "io_shape_optimization: DISABLED", TARE_DT_FLOAT, false);
    argument__is(PLACE "io_shape_optimization: DISABLED bfloat16_optimization_options { enable_cast_outside: true }",
                 TARE_DT_BFLOAT16, false);
}

/* tpu_func(x) = (x W v) U with the variable v, which is also a variance if has_norm. */
static const char *model_of_a_variable(bool has_norm) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shape = tare_shape_make(2, 8, 10);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), handle = mini_arg(f, "v", TARE_DT_RESOURCE), y, v;
    struct tare_node *read = mini_open(f, "ReadVariableOp", "read", 1, handle);
    struct tare_signature *s = model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    y = mini_node(f, "MatMul", "first", 2, x, seed_weight(f, "w", 10, 6));
    v = mini_done(read);
    y = mini_node(f, "Mul", "scaled", 2, y, v);
    if (has_norm) {
        const struct tare_edge variance = mini_node(f, "AddV2", "variance", 2, v, mini_float(f, "e", 0.1f));
        y = mini_node(f, "Mul", "normalized", 2, y, mini_node(f, "Rsqrt", "rsqrt", 1, variance));
    }
    mini_return(f, "y", mini_node(f, "MatMul", "second", 2, y, seed_weight(f, "u", 6, 4)));
    v = mini_variable(model, "v", 0.3f);
    model->variables[0].key = "v/.ATTRIBUTES/VARIABLE_VALUE";
    x = seed_input(model->main, "x", TARE_DT_FLOAT, shape);
    y = mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, x, v);
    *s = (struct tare_signature){ .key = "serving_default", .method_name = "tensorflow/serving/predict" };
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    model->n_signatures = s->n_inputs = s->n_outputs = 1;
    *s->inputs = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = x };
    *s->outputs =
        (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, 8, 4), .edge = y };
    seed_alias(model, f->name, "tpu_func");
    return seed_write(model, "variable");
}

/* The converted model with the variables of the model that it was made from. */
static void put_back_variables(const char *path) {
    struct process process;
    char to[600], from[600];
    snprintf(to, sizeof to, "%s/variables", seed_out);
    snprintf(from, sizeof from, "%s/variables", path);
    mini_ok(tare_file_remove_tree(to));
    process_run(&process, (const char *const[]){ "/bin/cp", "-r", from, to, NULL });
    assert_int_equal(process.status, 0);
    process_free(&process);
}

/* And then a checkpoint of the input model fits. */
static void stored_values__stay_float32_without_convert_checkpoint(void **state) {
    static const struct {
        const char *options;
        int dtype;
    } cases[] = {
        { PLACE, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { experimental { convert_checkpoint: true } }", TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { experimental { convert_checkpoint: false } }", TARE_DT_FLOAT },
        { PLACE "bfloat16_optimization_options { filterlist: \"VarHandleOp\" }", TARE_DT_FLOAT },
    };
    const char *path = model_of_a_variable(false);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_graph_model *model;
        seed_converts(path, cases[i].options);
        model = seed_load();
        assert_int_equal(model->variables[0].dtype, cases[i].dtype);
        tare_model_free(model);
        put_back_variables(path);
        if (cases[i].dtype == TARE_DT_FLOAT)
            tare_model_free(seed_load());
        else
            mini_fails(tare_saved_model_load(&model, seed_out, NULL), "the checkpoint has float32 (expected bfloat16)");
    }
}

/* Folding would make constants of all variables, and round them. */
static void variables_of_the_filterlist__stay_beside_batch_normalizations(void **state) {
    static const char *const ops[] = { "VarHandleOp", "tf.VarHandleOp", "ReadVariableOp", "tf.ReadVariableOp" };
    const char *path = model_of_a_variable(true);
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, PLACE);
    model = seed_load();
    assert_int_equal(model->n_variables, 0);
    tare_model_free(model);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char options[256];
        snprintf(options, sizeof options, PLACE "bfloat16_optimization_options { filterlist: \"%s\" }", ops[i]);
        seed_converts(path, options);
        model = seed_load();
        assert_int_equal(model->n_variables, 1);
        assert_int_equal(model->variables[0].dtype, TARE_DT_FLOAT);
        tare_model_free(model);
    }
}

/* serving_default calls one function of x W, with an open number of rows, "other" and perhaps an alias the other one.
 */
static const char *model_of_two_signatures(bool has_alias) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *functions[] = { tare_model_add_function(model, "__inference_served_10"),
                                       tare_model_add_function(model, "__inference_tpu_func_20") };
    struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)10);
    struct tare_signature *signatures;
    for (int i = 0; i < 2; i++)
        mini_return(functions[i], "y",
                    mini_node(functions[i], "MatMul", "matmul", 2, mini_arg(functions[i], "x", TARE_DT_FLOAT),
                              seed_weight(functions[i], "w", 10, 6)));
    seed_serve(model, functions[0], &shape);
    signatures = TARE_NEW_ARRAY(&model->arena, struct tare_signature, 2);
    signatures[0] = signatures[1] = model->signatures[0];
    signatures[1].key = "other";
    signatures[1].outputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, 1);
    signatures[1].outputs[0] = signatures[0].outputs[0];
    signatures[1].outputs[0].edge =
        mini_call(model->main, "PartitionedCall", "other", functions[1], 1, signatures[0].inputs[0].edge);
    model->signatures = signatures;
    model->n_signatures = 2;
    if (has_alias) seed_alias(model, functions[1]->name, "tpu_func");
    return seed_write(model, "two_signatures");
}

/* Aliases keep their functions, which are not quantized. */
static void signature_keys__quantize_what_the_named_signatures_call(void **state) {
    static const char *const texts[] = {
        PLACE "external_feature_configs { quantization_options { quantization_method: WEIGHT_ONLY "
              "signature_keys: \"serving_default\" min_num_elements_for_weights: 1 } }",
        PLACE "external_feature_configs { quantization_options { quantization_method: DYNAMIC_RANGE "
              "min_num_elements_for_weights: 1 } }",
    };
    const char *path = model_of_two_signatures(true);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tare_graph_model *model;
        seed_converts(path, texts[i]);
        model = seed_load();
        assert_int_equal(model->n_signatures, 1);
        assert_int_equal(seed_count(model, "XlaDotV2"), 1);
        assert_int_equal(seed_count(model, "MatMul"), 1);
        tare_model_free(model);
    }
}

static void a_signature_that_signature_keys_leaves_out__is_named(void **state) {
#define QUANTIZED(keys)                                                                                                \
    "external_feature_configs { quantization_options { quantization_method: WEIGHT_ONLY "                              \
    "min_num_elements_for_weights: 1 " keys " } } "
#define REMEDY                                                                                                         \
    " is not in the quantized model: signature_keys of quantization_options leaves out signature \"other\" (set "      \
    "signature_keys: [\"serving_default\", \"other\"], each with a data set if there are representative_datasets)"
    static const char batched[] =
        "batch_options { num_batch_threads: 1 max_batch_size: 8 experimental { signature_name: \"other\" } } ";
    const char *path = model_of_two_signatures(false);
    char text[1024];
    (void)state;
    snprintf(text, sizeof text, "%s%s", QUANTIZED(""), batched);
    seed_refuses(path, text, "batch_options: signature_name \"other\"" REMEDY);
    seed_refuses(path, QUANTIZED("signature_keys: \"serving_default\"") "tpu_functions { signature_name: \"other\" }",
                 "signature_name \"other\"" REMEDY);
    seed_refuses(path, QUANTIZED("") "tpu_functions { concrete_function_name: \"__inference_tpu_func_20\" }",
                 "concrete_function_name \"__inference_tpu_func_20\"" REMEDY);
    snprintf(text, sizeof text, "%s%s", QUANTIZED("signature_keys: [\"serving_default\", \"other\"]"), batched);
    seed_converts(path, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soft_placement__leaves_what_a_tpu_lacks_on_the_CPU),
        cmocka_unit_test(safety_checks__can_be_turned_off),
        cmocka_unit_test(cluster_names__are_shared_on_request),
        cmocka_unit_test(low_priority__has_a_queue_of_its_own),
        cmocka_unit_test(a_component_to_batch__is_named_directly),
        cmocka_unit_test(arguments__are_split_along_the_dimension_that_is_named),
        cmocka_unit_test(a_trace_that_nothing_calls__is_not_split),
        cmocka_unit_test(fields_for_gpus__are_refused),
        cmocka_unit_test(stored_values__stay_float32_without_convert_checkpoint),
        cmocka_unit_test(variables_of_the_filterlist__stay_beside_batch_normalizations),
        cmocka_unit_test(bfloat16_fields__have_the_texts_of_the_converter),
        cmocka_unit_test(casts__are_outside_by_either_option),
        cmocka_unit_test(signature_keys__quantize_what_the_named_signatures_call),
        cmocka_unit_test(a_signature_that_signature_keys_leaves_out__is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
