/* The examples of the Cloud TPU inference converter's documents, letter for letter, on models made for them. */
#include "base/file.h"
#include "convert/saved_model.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/seed_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH SEED_BATCH
#define TPU_FUNC SEED_TPU_FUNC

/* ---- models ---- */

/* Two functions of 1,017,000 multiply-accumulates each, and 70,000 operations on the CPU. */
static struct tare_graph_model *two_functions(void) {
    static const char *const names[] = { "__inference_tpu_func_1_30", "__inference_tpu_func_2_31" };
    static const char *const aliases[] = { "tpu_func_1", "tpu_func_2" };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f[2], *top = tare_model_add_function(model, "__inference_serve_40");
    struct tare_shape shape = tare_shape_make(2, -1, 1000);
    struct tare_edge x = mini_arg(top, "x", TARE_DT_FLOAT), y[2];
    for (int i = 0; i < 2; i++) {
        struct tare_edge arg;
        f[i] = tare_model_add_function(model, names[i]);
        arg = mini_arg(f[i], "x", TARE_DT_FLOAT);
        mini_return(f[i], "y", mini_node(f[i], "MatMul", "matmul", 2, arg, seed_weight(f[i], "w", 1000, 1017)));
        seed_alias(model, f[i]->name, aliases[i]);
        y[i] = mini_call(top, "PartitionedCall", aliases[i], f[i], 1, x);
    }
    x = mini_node(top, "AddV2", "sum", 2, y[0], y[1]);
    mini_return(top, "z", mini_node(top, "MatMul", "head", 2, x, seed_weight(top, "w", 1017, 64)));
    seed_serve(model, top, &shape);
    return model;
}

/* The language model before it was refactored: all of it in one function. */
static struct tare_graph_model *language_model_in_one(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *top = tare_model_add_function(model, "__inference_model_func_5");
    struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_edge x = mini_arg(top, "input_string", TARE_DT_FLOAT);
    x = mini_node(top, "StringToNumber", "preprocess", 1, mini_node(top, "AsString", "text", 1, x));
    x = mini_node(top, "MatMul", "bert_layer", 2, x, seed_weight(top, "w", 4, 3));
    mini_return(top, "y", x);
    seed_serve(model, top, &shape);
    return model;
}

/* ---- the examples ---- */

static void the_first_example__places_and_batches(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, "\n    tpu_functions {\n      function_alias: \"tpu_func\"\n    }\n    batch_options {\n"
                        "      num_batch_threads: 2\n      max_batch_size: 8\n      batch_timeout_micros: 5000\n"
                        "      allowed_batch_sizes: 2\n      allowed_batch_sizes: 4\n      allowed_batch_sizes: 8\n"
                        "      max_enqueued_batches: 10\n    }\n");
    model = seed_load();
    assert_int_equal(seed_count(model, "TPUPartitionedCall"), 1);
    assert_int_equal(seed_count(model, "BatchFunction"), 1);
    assert_int_equal(seed_count(model, "TPUReplicateMetadata"), 1);
    tare_model_free(model);
}

static void flags__take_a_space_instead_of_the_equals_sign(void **state) {
    const char *path = seed_write(seed_toy("func_on_tpu"), "toy");
    struct process process;
    (void)state;
    snprintf(seed_out, sizeof seed_out, "%s", temp_path("converted"));
    mini_ok(tare_file_remove_tree(seed_out));
    process_run(&process, (const char *const[]){ process_tare(), "convert", "--input_model_dir", path,
                                                 "--output_model_dir", seed_out, "--converter_options_string",
                                                 "tpu_functions { function_alias: \"func_on_tpu\" }", NULL });
    assert_int_equal(process.status, 0);
    process_free(&process);
    tare_model_free(seed_load());
}

static void several_functions__give_the_report_of_the_example(void **state) {
    static const char report[] = "-------- Conversion Report --------\n"
                                 "TPU cost of the model: 96.67% (2034/2104)\n"
                                 "CPU cost of the model:  3.33% (70/2104)\n"
                                 "\n"
                                 "Cost breakdown\n"
                                 "================================\n"
                                 "%         Cost    Name\n"
                                 "--------------------------------\n"
                                 "3.33      70      [CPU cost]\n"
                                 "48.34     1017    tpu_func_1\n"
                                 "48.34     1017    tpu_func_2\n"
                                 "--------------------------------\n";
    const char *path = seed_write(two_functions(), "two");
    struct process process;
    (void)state;
    process = seed_convert(path, "tpu_functions {\n  function_alias: \"tpu_func_1\"\n}\ntpu_functions {\n"
                                 "  function_alias: \"tpu_func_2\"\n}\ndisable_default_optimizations: true");
    assert_int_equal(process.status, 0);
    assert_string_equal(process.out, report);
    if (!strstr(process.err, "tare: signature serving_default calls 2 TPU functions a request"))
        fail_msg("no word of the second call in: %s", process.err);
    process_free(&process);
    seed_answers_as(path, tare_shape_make(2, 2, 1000));
}

/* An embedding table of 2^20 rows of 8192, one number that stands for all. */
static void a_table_larger_than_a_chip__is_said(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape ids = tare_shape_make(1, -1), scalar = tare_shape_scalar(),
                      shape = tare_shape_make(2, 1 << 20, 8192);
    struct tare_edge x = mini_arg(f, "ids", TARE_DT_INT32), table;
    struct tare_tensor value;
    struct process process;
    (void)state;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &scalar));
    TARE_DATA(float, &value)[0] = 0.5f;
    value.shape = shape;
    value.elements = (int64_t)1 << 33;
    value.splat = true;
    table = (struct tare_edge){ tare_graph_add_const(f, "table", &value), 0 };
    tare_tensor_reset(&value);
    x = mini_node(f, "GatherV2", "lookup", 3, table, x, mini_int(f, "axis", 0));
    mini_return(f, "y", mini_node(f, "Relu", "relu", 1, x));
    seed_serve(model, f, &ids);
    seed_alias(model, f->name, "tpu_func");
    process = seed_convert(seed_write(model, "table"), TPU_FUNC);
    if (process.status ||
        !strstr(process.err, "of HBM at a batch of 1, more than a chip of v2, v5e has: embedding tables "
                             "that are too large stay on the CPU with their look-ups"))
        fail_msg("exit status %d, and: %s", process.status, process.err);
    process_free(&process);
}

/* The example stands between single quotes with a backslash at the end of each line, and so does its ${TF_RECORD_FILE}.
 */
static void quantization__takes_the_example_with_its_backslashes(void **state) {
    static const char options[] = " \\\n"
                                  "    tpu_functions { \\\n"
                                  "      function_alias: \"tpu_func\" \\\n"
                                  "    } \\\n"
                                  "    external_feature_configs { \\\n"
                                  "      quantization_options { \\\n"
                                  "        signature_keys: \"serving_default\" \\\n"
                                  "        representative_datasets: { \\\n"
                                  "          key: \"serving_default\" \\\n"
                                  "          value: { \\\n"
                                  "            tfrecord_file_path: \"${TF_RECORD_FILE}\" \\\n"
                                  "          } \\\n"
                                  "        } \\\n"
                                  "      } \\\n"
                                  "    } ";
    const char *glyphs = TARE_SOURCE_DIR "/examples/glyphs/saved_model";
    struct tare_graph_model *model;
    (void)state;
    unsetenv("TF_RECORD_FILE");
    seed_refuses(glyphs, options, "tfrecord_file_path: environment variable not set: TF_RECORD_FILE");
    setenv("TF_RECORD_FILE", TARE_SOURCE_DIR "/examples/glyphs/calibration.tfrecord.gz", 1);
    seed_converts(glyphs, options);
    model = seed_load();
    assert_true(seed_count(model, "XlaConvV2") > 5);
    assert_true(tare_model_find_function(model, "tpu_fn_icv2___inference_tpu_func_101_tf_quant"));
    tare_model_free(model);
}

static void optimizations__are_disabled_as_the_example_says(void **state) {
    const char *path = seed_write(two_functions(), "two");
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, "tpu_functions { function_alias: \"tpu_func_1\" }\n# Disable both optimizations\n"
                        "disable_default_optimizations: true\n");
    seed_answers_as(path, tare_shape_make(2, 3, 1000));
    seed_converts(path, "tpu_functions { function_alias: \"tpu_func_1\" }\n# Or disable them individually\n"
                        "io_shape_optimization: DISABLED\nbfloat16_optimization: DISABLED\n");
    seed_answers_as(path, tare_shape_make(2, 3, 1000));
    model = seed_load();
    assert_int_equal(seed_count(model, "Reshape") + seed_count(model, "Cast"), 0);
    tare_model_free(model);
    seed_converts(path, "tpu_functions { function_alias: \"tpu_func_1\" }\n# Disable both optimizations\n"
                        "disable_default_optimizations: true\n\n# Or disable them individually\n"
                        "io_shape_optimization: DISABLED\nbfloat16_optimization: DISABLED\n");
    seed_answers_as(path, tare_shape_make(2, 3, 1000));
    seed_converts(path, "tpu_functions { function_alias: \"tpu_func_1\" }");
    model = seed_load();
    assert_true(seed_count(model, "Reshape") > 0 && seed_count(model, "Cast") > 0); /* both are on otherwise */
    tare_model_free(model);
}

static void a_concrete_function__does_without_alias(void **state) {
    const char *path = seed_write(seed_toy(NULL), "toy");
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, "\n    tpu_functions {\n      concrete_function_name: \"__inference_serve_24\"\n    }");
    model = seed_load();
    assert_non_null(tare_model_find_function(model, "tpu_fn_icv2___inference_serve_24"));
    tare_model_free(model);
    seed_refuses(path, TPU_FUNC,
                 "function_alias \"tpu_func\" does not exist: the model has no aliases; export it again with "
                 "SaveOptions(function_aliases");
}

static void signature_batching__batches_the_whole_model(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, TPU_FUNC BATCH "  experimental {\n    signature_name: \"serving_default\"\n  }\n}\n");
    model = seed_load();
    assert_int_equal(seed_count(model, "BatchFunction"), 1);
    assert_int_equal(graph_count(tare_model_find_function(model, "__inference_serve_24"), "BatchFunction"), 1);
    tare_model_free(model);
}

static void function_batching__batches_the_function(void **state) {
    const char *path = seed_write(seed_my_func(tare_shape_make(3, -1, 3, 2), tare_shape_make(3, -1, 2, 4)), "my_func");
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, BATCH "  experimental {\n    function_alias: \"batch_func\"\n  }\n}\n");
    model = seed_load();
    assert_int_equal(graph_count(tare_model_find_function(model, "__inference_my_func_7"), "BatchFunction"), 1);
    tare_model_free(model);
}

/* The tutorial's two requests: A and B of one row, then of two. */
static void the_tutorials_requests__are_answered(void **state) {
    const char *path = seed_write(seed_my_func(tare_shape_make(3, -1, 3, 2), tare_shape_make(3, -1, 2, 4)), "my_func");
    struct tare_graph_model *model;
    struct tare_session *session;
    (void)state;
    seed_converts(path, BATCH "  experimental {\n    function_alias: \"batch_func\"\n  }\n}\n");
    model = seed_load();
    session = mini_session(model);
    for (int64_t rows = 1; rows <= 2; rows++) {
        const struct tare_shape a = tare_shape_make(3, rows, 3, 2), b = tare_shape_make(3, rows, 2, 4);
        struct tare_tensor in[2], out;
        mini_ok(tare_tensor_new(&in[0], TARE_DT_FLOAT, &a));
        mini_ok(tare_tensor_new(&in[1], TARE_DT_FLOAT, &b));
        for (int i = 0; i < 2; i++)
            for (int64_t k = 0; k < in[i].elements; k++)
                TARE_DATA(float, &in[i])[k] = 2;
        mini_ok(tare_session_run_signature(session, &model->signatures[0], in, &out));
        assert_int_equal(out.shape.dims[0], rows);
        assert_int_equal(out.elements, rows * 3 * 4);
        for (int64_t k = 0; k < out.elements; k++)
            assert_true(TARE_DATA(float, &out)[k] == 8);
        for (int i = 0; i < 2; i++)
            tare_tensor_reset(&in[i]);
        tare_tensor_reset(&out);
    }
    tare_session_free(session);
    tare_model_free(model);
}

/* Converting again: batching is added to what is on the TPU, and the next time updated. */
static void existing_batching__is_added_and_updated(void **state) {
    static const char options[] = BATCH "}\ndisable_default_optimizations=True\n";
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    struct tare_export_options export = { .overwrite = true };
    struct process process;
    struct tare_graph_model *model;
    char again[512];
    (void)state;
    seed_converts(path, TPU_FUNC);
    model = seed_load();
    snprintf(again, sizeof again, "%s", temp_path("again"));
    mini_ok(tare_saved_model_export(model, again, &export));
    tare_model_free(model);
    process = seed_convert(again, options);
    assert_int_equal(process.status, 0);
    assert_non_null(strstr(process.err, "the model has been converted for TPU before: 1 TPUPartitionedCall "
                                        "(tpu_fn_icv2___inference_tpu_func_10)"));
    process_free(&process);
    model = seed_load();
    assert_int_equal(seed_count(model, "BatchFunction"), 1);
    mini_ok(tare_saved_model_export(model, again, &export));
    tare_model_free(model);
    seed_converts(again, "batch_options { num_batch_threads: 4 max_batch_size: 16 batch_timeout_micros: 70 }");
    model = seed_load();
    for (size_t f = 0; f < model->n_functions; f++)
        if (graph_count(model->functions[f], "BatchFunction"))
            assert_int_equal(tare_node_int(graph_only(model->functions[f], "BatchFunction"), "max_batch_size", 0), 16);
    assert_int_equal(seed_count(model, "BatchFunction"), 1);
    tare_model_free(model);
    seed_refuses(again, TPU_FUNC, "function __inference_tpu_func_10 is on the TPU already");
}

/* ---- sharding ---- */

#define SHARDED(cores, topology, more)                                                                                 \
    "tpu_functions { function_alias: \"tpu_func\" } disable_default_optimizations: true "                              \
    "xla_sharding_options { num_cores_per_replica: " cores " topology: \"" topology "\" " more " }"
/* mesh_shape = [1,2,1,1], device_coordinates = flatten([0,0,0,0], [0,1,0,0]) */
#define PF_1X2X1 "\\n\\004\\001\\002\\001\\001\\020\\001\\030\\002\\042\\010\\000\\000\\000\\000\\000\\001\\000\\000"
/* mesh_shape = [1,1,1,2], device_coordinates = flatten([0,0,0,0], [0,0,0,1]) */
#define DF_1X1 "\\n\\004\\001\\001\\001\\002\\020\\001\\030\\002\\042\\010\\000\\000\\000\\000\\000\\000\\000\\001"
/* mesh_shape = [2,2,1,2], device_coordinates = flatten([0,0,0,0],[0,0,0,1],[0,1,0,0],[0,1,0,1] [1,0,0,0],[1,0,0,1],…)
 */
#define DF_2X2                                                                                                         \
    "\\n\\004\\002\\002\\001\\002\\020\\001\\030\\010\\042\\040\\000\\000\\000\\000\\000\\000\\000\\001\\000\\001\\00" \
    "0\\000\\000\\001\\000\\001"                                                                                       \
    "\\001\\000\\000\\000\\001\\000\\000\\001\\001\\001\\000\\000\\001\\001\\000\\001"

/* tpu_func(x) = x W with x [8, 10]: eight rows split between two or eight cores. */
static const char *eight_rows(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shape = tare_shape_make(2, 8, 10);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "MatMul", "matmul", 2, x, seed_weight(f, "w", 10, 6)));
    seed_serve(model, f, &shape);
    seed_alias(model, f->name, "tpu_func");
    return seed_write(model, "eight_rows");
}

static void the_documents_topologies__are_taken_and_run(void **state) {
    static const struct {
        const char *options;
        int cores;
    } cases[] = { { SHARDED("2", PF_1X2X1, ""), 2 },
                  { SHARDED("2", DF_1X1,
                            "device_assignment: 0 device_assignment: 0 device_assignment: 0 "
                            "device_assignment: 1 device_assignment: [0, 0, 0, 0]"),
                    2 },
                  { SHARDED("8", DF_2X2, ""), 8 } };
    const char *path = eight_rows();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_graph_model *model;
        struct tare_node *metadata;
        seed_converts(path, cases[i].options);
        model = seed_load();
        metadata =
            graph_only(tare_model_find_function(model, "tpu_fn_icv2___inference_tpu_func_10"), "TPUReplicateMetadata");
        assert_int_equal(tare_node_int(metadata, "num_cores_per_replica", 0), cases[i].cores);
        assert_true(tare_node_bool(metadata, "use_spmd_for_xla_partitioning", false));
        assert_int_equal(seed_count(model, "XlaSharding"), 1);
        /* devices that are assigned leave nothing to select */
        assert_int_equal(seed_count(model, "TPUOrdinalSelector"),
                         strstr(cases[i].options, "device_assignment") ? 0 : 1);
        tare_model_free(model);
        seed_answers_as(path, tare_shape_make(2, 8, 10));
    }
}

static void an_open_batch__is_not_split_and_that_is_said(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    (void)state;
    seed_says(path, SHARDED("2", DF_1X1, ""), "tare: no input is split between the 2 cores of a replica");
    seed_answers_as(path, tare_shape_make(2, 8, 10));
}

/* All sizes of the batcher divide by two: whatever reaches the TPU does. */
static void an_open_batch__is_split_behind_a_batcher_whose_sizes_divide(void **state) {
    static const struct {
        const char *sizes;
        size_t split;
    } cases[] = { { "allowed_batch_sizes: 2 allowed_batch_sizes: 8", 1 },
                  { "allowed_batch_sizes: 1 allowed_batch_sizes: 8", 0 },
                  { "", 0 } };
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[1024];
        struct tare_graph_model *model;
        snprintf(options, sizeof options, "%s batch_options { num_batch_threads: 2 max_batch_size: 8 %s }",
                 SHARDED("2", DF_1X1, ""), cases[i].sizes);
        seed_converts(path, options);
        model = seed_load();
        assert_int_equal(seed_count(model, "XlaSharding"), cases[i].split);
        tare_model_free(model);
        seed_answers_as(path, tare_shape_make(2, 3, 10));
    }
}

/* What the FAQ asks the user to do by hand, done: the strings stay on the CPU, the layer goes to the TPU. */
static void a_model_with_strings__is_split_when_asked(void **state) {
    static const char *const more[] = { "disable_default_optimizations: true",
                                        "disable_default_optimizations: true " BATCH "}" };
    const char *path = seed_write(language_model_in_one(), "language_model");
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_graph_model *model;
        struct process process;
        snprintf(seed_out, sizeof seed_out, "%s", temp_path("converted"));
        mini_ok(tare_file_remove_tree(seed_out));
        process_run(&process, (const char *const[]){ process_tare(), "convert", "--input_model_dir", path,
                                                     "--output_model_dir", seed_out, "--tpu_functions", "auto",
                                                     "--converter_options_string", more[i], NULL });
        if (process.status != 0) fail_msg("%s", process.err);
        assert_non_null(
            strstr(process.err,
                   "is placed on the TPU in part, as function __inference_model_func_5_tpu; the rest stays on the CPU: "
                   "'tf.AsString' op isn't compilable for TPU device. (node 'text' in function "));
        assert_non_null(strstr(process.out, "__inference_model_func_5_tpu\n"));
        process_free(&process);
        model = seed_load();
        assert_int_equal(
            graph_count(tare_model_find_function(model, "tpu_fn_icv2___inference_model_func_5_tpu"), "MatMul"), 1);
        assert_int_equal(seed_count(model, "BatchFunction"), i);
        tare_model_free(model);
        seed_answers_as(path, tare_shape_make(2, 3, 4));
    }
}

static void functions__are_named_or_found(void **state) {
    const char *path = seed_write(seed_toy("tpu_func"), "toy");
    struct process process;
    (void)state;
    process_run(&process,
                (const char *const[]){ process_tare(), "convert", "--dry-run", "--input_model_dir", path,
                                       "--tpu_functions", "auto", "--converter_options_string", SEED_TPU_FUNC, NULL });
    assert_int_equal(process.status, 2);
    assert_non_null(
        strstr(process.err, "--tpu_functions auto and tpu_functions in the options are mutually exclusive"));
    process_free(&process);
}

static void what_cannot_be_sharded__is_refused(void **state) {
    const char *path = eight_rows();
    (void)state;
    seed_refuses(path,
                 "tpu_functions { function_alias: \"tpu_func\" } xla_sharding_options { num_cores_per_replica: 2 }",
                 "num_cores_per_replica is 2, which needs a topology");
    seed_refuses(path, SHARDED("4", DF_1X1, ""), "num_cores_per_replica is 4, but the topology has 2 devices");
    seed_refuses(path, SHARDED("2", DF_1X1, "device_assignment: 3"), "device_assignment has 1 entries (expected 8");
    seed_refuses(path, SHARDED("2", DF_1X1, "device_assignment: [0, 0, 0, 0, 0, 0, 0, 7]"), "outside of the mesh");
    seed_refuses(path, SHARDED("2", "\\n\\002\\001\\002", ""), "mesh_shape has 2 entries (expected 4: x, y, z, core)");
    seed_refuses(path, SHARDED("2", "\\377", ""), "topology is no TopologyProto");
    seed_refuses(path, SHARDED("-1", DF_1X1, ""), "num_cores_per_replica is -1 (expected 1 or more)");
    seed_refuses(path, SHARDED("2", "\\n\\004\\001\\001\\001\\002", ""),
                 "device_coordinates has 0 entries (expected four a device");
    seed_refuses(path,
                 SHARDED("2", "\\n\\004\\001\\001\\001\\002\\042\\010\\000\\000\\000\\000\\000\\000\\000\\000", ""),
                 "are both at [0,0,0,0]");
    seed_refuses(
        path,
        SHARDED("2",
                "\\n\\004\\001\\001\\001\\002\\020\\002\\030\\002\\042\\010\\000\\000\\000\\000\\000\\000\\000\\001",
                ""),
        "device_coordinates names 2 devices (expected 2 tasks with 2 each)");
    seed_refuses(path, "tpu_functions { function_alias: \"tpu_func\" } xla_sharding_options { device_assignment: 0 }",
                 "device_assignment is given without num_cores_per_replica and topology");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_example__places_and_batches),
        cmocka_unit_test(flags__take_a_space_instead_of_the_equals_sign),
        cmocka_unit_test(several_functions__give_the_report_of_the_example),
        cmocka_unit_test(a_table_larger_than_a_chip__is_said),
        cmocka_unit_test(quantization__takes_the_example_with_its_backslashes),
        cmocka_unit_test(optimizations__are_disabled_as_the_example_says),
        cmocka_unit_test(a_concrete_function__does_without_alias),
        cmocka_unit_test(signature_batching__batches_the_whole_model),
        cmocka_unit_test(function_batching__batches_the_function),
        cmocka_unit_test(the_tutorials_requests__are_answered),
        cmocka_unit_test(existing_batching__is_added_and_updated),
        cmocka_unit_test(the_documents_topologies__are_taken_and_run),
        cmocka_unit_test(an_open_batch__is_not_split_and_that_is_said),
        cmocka_unit_test(an_open_batch__is_split_behind_a_batcher_whose_sizes_divide),
        cmocka_unit_test(a_model_with_strings__is_split_when_asked),
        cmocka_unit_test(functions__are_named_or_found),
        cmocka_unit_test(what_cannot_be_sharded__is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
