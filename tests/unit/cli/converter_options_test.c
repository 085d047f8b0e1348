/* What the converter's documents say of single options and of models that do not fit, run on models made for it: jit,
 * bfloat16's scope, checks and filterlist, functions batched where they cannot be, everything that a TPU would refuse.
 */
#include "base/file.h"
#include "support/graph_check.h"
#include "support/seed_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>

#define PLACE "tpu_functions { function_alias: \"tpu_func\" } "
#define BATCH_OF(component) SEED_BATCH "  experimental {\n    " component "\n  }\n}\n"

static struct tare_edge dense(struct tare_graph *f, struct tare_edge x);

/* tpu_func(x) = what `build` makes of x [None, 4]; served through a function on the CPU. */
static const char *model_of(struct tare_edge (*build)(struct tare_graph *f, struct tare_edge x), bool jit) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_graph *top = tare_model_add_function(model, "__inference_serve_24");
    struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", build(f, x));
    x = mini_arg(top, "x", TARE_DT_FLOAT);
    x = mini_call(top, "PartitionedCall", "call", f, 1, x);
    if (build == dense) x = mini_node(top, "MatMul", "product_on_the_cpu", 2, x, seed_weight(top, "v", 4, 4));
    mini_return(top, "y", mini_node(top, "Mul", "on_the_cpu", 2, x, mini_float(top, "third", 1.0f / 3)));
    seed_serve(model, top, &shape);
    seed_alias(model, f->name, "tpu_func");
    seed_alias(model, top->name, "serve");
    if (jit) {
        union tare_attr_item *item = TARE_NEW(&model->arena, union tare_attr_item);
        f->attrs = TARE_NEW(&model->arena, struct tare_attr);
        item->b = true;
        *f->attrs = (struct tare_attr){ .name = "_XlaMustCompile", .kind = TARE_ATTR_BOOL, .count = 1, .items = item };
        f->n_attrs = 1;
    }
    return seed_write(model, "options");
}

static struct tare_edge dense(struct tare_graph *f, struct tare_edge x) {
    return mini_node(f, "Relu", "relu", 1, mini_node(f, "MatMul", "matmul", 2, x, seed_weight(f, "w", 4, 4)));
}

/* The second row of a decoder: [None, 4] as images of 2 x 2, twice as large. */
static struct tare_edge up_sampled(struct tare_graph *f, struct tare_edge x) {
    static const int64_t strides[] = { 1, 2, 2, 1 };
    static const int32_t image[] = { -1, 2, 2, 1 }, rows[] = { -1, 48 }, filter[] = { 3, 3, 3, 1 };
    struct tare_edge zero = mini_int(f, "zero", 0), batch, sizes;
    struct tare_node *up;
    batch = mini_node(f, "Gather", "batch", 2, mini_node(f, "Shape", "shape", 1, x), zero);
    sizes = mini_node(f, "Pack", "sizes", 4, batch, mini_int(f, "height", 4), mini_int(f, "width", 4),
                      mini_int(f, "channels", 3));
    x = mini_node(f, "Reshape", "image", 2, x, mini_ints(f, "image/shape", 4, image));
    up = mini_open(
        f, "Conv2DBackpropInput", "up", 3, sizes,
        mini_node(f, "Reshape", "filter", 2, seed_weight(f, "w", 27, 1), mini_ints(f, "filter/shape", 4, filter)), x);
    mini_ok(tare_node_set_type(up, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int_list(up, "strides", strides, 4));
    mini_ok(tare_node_set_string(up, "padding", "SAME", 4));
    return mini_node(f, "Reshape", "flat", 2, mini_done(up), mini_ints(f, "flat/shape", 2, rows));
}

static void a_transposed_convolution__becomes_one_that_tpus_have(void **state) {
    const char *path = model_of(up_sampled, false);
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, PLACE "disable_default_optimizations: true");
    model = seed_load();
    assert_int_equal(seed_count(model, "Conv2DBackpropInput"), 0);
    assert_int_equal(seed_count(model, "XlaConvV2"), 1);
    tare_model_free(model);
    seed_answers_as(path, tare_shape_make(2, 3, 4));
    seed_converts(path, PLACE SEED_BATCH "}\n"); /* and every output follows the batch, as far as the check can see */
}

/* ---- choosing functions ---- */

static void jit_compiled_functions__go_to_the_tpu_once(void **state) {
    const char *path = model_of(dense, true);
    struct tare_graph_model *model;
    (void)state;
    seed_converts(path, "tpu_functions { jit_compile_functions: true }");
    model = seed_load();
    assert_non_null(tare_model_find_function(model, "tpu_fn_icv2___inference_tpu_func_10"));
    tare_model_free(model);
    seed_refuses(path, PLACE "tpu_functions { jit_compile_functions: true }",
                 "function __inference_tpu_func_10 is given twice: by function_alias: \"tpu_func\" and by "
                 "jit_compile_functions: true");
    seed_refuses(path, "tpu_functions { jit_compile_functions: true } tpu_functions { jit_compile_functions: true }",
                 "is given twice: by jit_compile_functions: true and by jit_compile_functions: true");
    seed_refuses(path, "tpu_functions { jit_compile_functions: false }", "an entry names no function");
    seed_refuses(path, "tpu_functions { }", "an entry names no function");
    seed_refuses(path, "tpu_functions { function_alias: \"tpu_func\" signature_name: \"serving_default\" }",
                 "fields 'function_alias' and 'signature_name' of TpuFunction are both set (only one of them may be)");
    seed_says(path, "", "tare: nothing is on the TPU: tpu_functions names no function");
}

/* An alias may stand for several concrete functions; all are placed. */
static void one_alias__names_several_functions(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f[2], *top = tare_model_add_function(model, "__inference_serve_40");
    struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_edge x = mini_arg(top, "x", TARE_DT_FLOAT);
    char name[32];
    const char *path;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tare_edge arg;
        snprintf(name, sizeof name, "__inference_call_%d", i);
        f[i] = tare_model_add_function(model, tare_arena_strdup(&model->arena, name));
        arg = mini_arg(f[i], "x", TARE_DT_FLOAT);
        mini_return(f[i], "y", dense(f[i], arg));
        seed_alias(model, f[i]->name, "tpu_func");
        x = mini_call(top, "PartitionedCall", "call", f[i], 1, x);
    }
    mini_return(top, "y", x);
    seed_serve(model, top, &shape);
    path = seed_write(model, "two_concretes");
    seed_converts(path, PLACE "disable_default_optimizations: true");
    model = seed_load();
    assert_int_equal(seed_count(model, "TPUPartitionedCall"), 2);
    tare_model_free(model);
    seed_answers_as(path, tare_shape_make(2, 3, 4));
    seed_refuses(path, PLACE "tpu_functions { concrete_function_name: \"__inference_call_1\" }", "is given twice");
}

static void unknown_names__come_with_the_known_ones(void **state) {
    const char *path = model_of(dense, false);
    (void)state;
    seed_refuses(path, "tpu_functions { function_alias: \"tpu\" }",
                 "function_alias \"tpu\" does not exist (known aliases: \"tpu_func\", \"serve\")");
    seed_refuses(path, "tpu_functions { signature_name: \"predict\" }",
                 "signature_name \"predict\" does not exist (known signatures: \"serving_default\")");
    seed_refuses(path, "tpu_functions { concrete_function_name: \"f\" }",
                 "concrete_function_name \"f\" does not exist (known functions: \"__inference_");
    seed_refuses(path, PLACE BATCH_OF("function_alias: \"other\""),
                 "batch_options: function_alias \"other\" does not exist");
    seed_refuses(path, PLACE "bfloat16_optimisation: DISABLED",
                 "ConverterOptions has no field 'bfloat16_optimisation' (did you mean 'bfloat16_optimization'?)");
    seed_refuses(path, PLACE "io_shape_optimization: DISABLE",
                 "State has no value 'DISABLE' (did you mean 'DISABLED'?)");
    seed_refuses(path, PLACE "bfloat16_optimization: 7", "State has no value '7'");
}

/* ---- bfloat16 ---- */

static int dtype_in(const struct tare_graph_model *model, const char *function, const char *node) {
    const struct tare_graph *graph = tare_model_find_function(model, function);
    assert_non_null(graph);
    return tare_edge_dtype((struct tare_edge){ graph_node(graph, node), 0 });
}

static void the_scope__is_the_tpu_or_all(void **state) {
    static const struct {
        const char *options;
        int cpu, tpu;
    } cases[] = {
        { PLACE, TARE_DT_FLOAT, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { scope: DEFAULT }", TARE_DT_FLOAT, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { scope: TPU }", TARE_DT_FLOAT, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { scope: ALL }", TARE_DT_BFLOAT16, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization: DISABLED bfloat16_optimization_options { scope: ALL }", TARE_DT_FLOAT,
          TARE_DT_FLOAT },
        { PLACE "disable_default_optimizations: true bfloat16_optimization: ENABLED", TARE_DT_FLOAT, TARE_DT_BFLOAT16 },
        { PLACE "bfloat16_optimization_options { filterlist: \"MatMul\" filterlist: \"tf.Mul\" scope: ALL }",
          TARE_DT_FLOAT, TARE_DT_FLOAT },
    };
    const char *path = model_of(dense, false);
    (void)state;
    seed_converts(path, "xla_functions { device_type: TPU function_alias: \"tpu_func\" } experimental_options { "
                        "graph_pruning: ENABLED } bfloat16_optimization_options { scope: ALL preserve_signature: true "
                        "experimental { convert_checkpoint: true } }");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_graph_model *model;
        seed_converts(path, cases[i].options);
        model = seed_load();
        assert_int_equal(dtype_in(model, "__inference_serve_24", "product_on_the_cpu"), cases[i].cpu);
        assert_int_equal(dtype_in(model, "tpu_fn_icv2___inference_tpu_func_10", "matmul"), cases[i].tpu);
        assert_int_equal(model->signatures[0].inputs[0].dtype, TARE_DT_FLOAT);
        assert_int_equal(model->signatures[0].outputs[0].dtype, TARE_DT_FLOAT);
        tare_model_free(model);
    }
    seed_refuses(path, PLACE "bfloat16_optimization_options { filterlist: \"MatMull\" }",
                 "filterlist names \"MatMull\", which is not an op (did you mean 'MatMul'?)");
}

static struct tare_edge through_bfloat16(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *cast = mini_open(f, "Cast", "narrow", 1, x);
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_BFLOAT16));
    cast = mini_open(f, "Cast", "widen", 1, mini_node(f, "Relu", "relu", 1, mini_done(cast)));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    return dense(f, mini_done(cast));
}

static void existing_bfloat16__is_left_as_it_is_unless_the_options_say_more(void **state) {
    const char *path = model_of(through_bfloat16, false);
    (void)state;
    seed_says(path, PLACE, "node 'relu' (Relu) is bfloat16 already: all else stays float32");
    seed_refuses(path, PLACE "bfloat16_optimization: ENABLED",
                 "is bfloat16 already: the bfloat16 optimization expects a float32 model");
    seed_refuses(
        path, PLACE "bfloat16_optimization: ENABLED",
        "Found bfloat16 ops in the model. The model may have been converted before. It should not be converted "
        "again.");
    seed_converts(path, PLACE);
    struct tare_graph_model *model = seed_load();
    assert_int_equal(seed_count(model, "Cast"), 2);
    tare_model_free(model);
    seed_converts(path, PLACE "bfloat16_optimization_options { skip_safety_checks: true }");
    tare_model_free(seed_load());
    seed_converts(path, PLACE "bfloat16_optimization: DISABLED");
    tare_model_free(seed_load());
}

/* ---- batching ---- */

static void a_function_called_on_the_tpu__is_not_batched(void **state) {
    const char *path = model_of(dense, false);
    (void)state;
    seed_refuses(path, "tpu_functions { function_alias: \"serve\" } " BATCH_OF("function_alias: \"tpu_func\""),
                 "batching cannot run on the TPU");
    seed_converts(path, PLACE BATCH_OF("function_alias: \"serve\"")); /* the CPU's part is batched with it */
    tare_model_free(seed_load());
    seed_converts(path, PLACE BATCH_OF("concrete_function_name: \"__inference_tpu_func_10\""));
    tare_model_free(seed_load());
    seed_refuses(path, PLACE BATCH_OF("function_alias: \"serve\"") BATCH_OF("function_alias: \"tpu_func\""),
                 "a batch inside a batch");
    seed_refuses(path, PLACE BATCH_OF("function_alias: \"serve\"") BATCH_OF("function_alias: \"serve\""),
                 "two batch_options apply to it");
    seed_refuses(
        path,
        BATCH_OF("signature_name: \"serving_default\"") "batch_options { num_batch_threads: 1 max_batch_size: 2 } "
                                                        "batch_options { num_batch_threads: 1 max_batch_size: 2 }",
        "2 entries are for every TPU function (expected one)");
    seed_refuses(path, SEED_BATCH "}\n", "there is nothing to batch");
}

/* ---- what a TPU refuses ---- */

struct refused {
    struct tare_edge (*build)(struct tare_graph *f, struct tare_edge x);
    const char *words;
};

static struct tare_edge to_string_and_back(struct tare_graph *f, struct tare_edge x) {
    return mini_node(f, "StringToNumber", "parse", 1, mini_node(f, "AsString", "print", 1, x));
}

static struct tare_edge dynamic_shape(struct tare_graph *f, struct tare_edge x) {
    const int32_t all[] = { -1 };
    struct tare_edge flat = mini_node(f, "Reshape", "flat", 2, x, mini_ints(f, "all", 1, all));
    struct tare_node *size = mini_open(f, "Cast", "size", 1, flat);
    mini_ok(tare_node_set_type(size, "DstT", TARE_DT_INT32));
    return mini_node(f, "Reshape", "reshape", 2, x, mini_done(size));
}

static struct tare_edge custom(struct tare_graph *f, struct tare_edge x) {
    return mini_node(f, "TestEffect", "mine", 1, x);
}

static struct tare_edge sparse(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *where = mini_open(f, "Where", "where", 1, x);
    struct tare_edge indices = mini_done(where), values = mini_node(f, "GatherNd", "values", 2, x, indices);
    struct tare_node *shape = mini_open(f, "Shape", "shape", 1, x), *dense_shape;
    mini_ok(tare_node_set_type(shape, "out_type", TARE_DT_INT64));
    dense_shape = mini_done(shape).node;
    struct tare_node *reorder = mini_open(f, "SparseReduceSum", "sum", 4, indices, values,
                                          (struct tare_edge){ dense_shape, 0 }, mini_int(f, "axis", 1));
    return mini_done(reorder);
}

static void what_a_tpu_lacks__is_refused_with_function_node_and_way_out(void **state) {
    static const struct refused cases[] = {
        { to_string_and_back, "'tf.AsString' op isn't compilable for TPU device. (node 'print' in function "
                              "__inference_tpu_func_10; keep it on the CPU" },
        { to_string_and_back, "'tf.StringToNumber' op isn't compilable for TPU device." },
        { dynamic_shape,
          "input 'shape' of node 'reshape' (Reshape) in function __inference_tpu_func_10 must be a compile-time "
          "constant, but 'x' (_Arg) makes it dynamic (compute it from constants and shapes" },
        { custom,
          "'tf.TestEffect' op isn't compilable for TPU device. (node 'mine' in function __inference_tpu_func_10" },
        { sparse,
          "'tf.SparseReduceSum' op isn't compilable for TPU device. (node 'sum' in function __inference_tpu_func_10; "
          "call tf.sparse.to_dense on the CPU" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = model_of(cases[i].build, false);
        struct process process;
        seed_refuses(path, PLACE, cases[i].words);
        process_run(&process,
                    (const char *const[]){ process_tare(), "convert", "--input_model_dir", path, "--dry-run",
                                           "--allow-incompatible", "--converter_options_string", PLACE, NULL });
        if (process.status || !strstr(process.err, "warning: ") || !strstr(process.err, cases[i].words))
            fail_msg("exit status %d with --allow-incompatible, and: %s", process.status, process.err);
        process_free(&process);
    }
}

static struct tare_edge in_float64(struct tare_graph *f, struct tare_edge x) {
    struct tare_node *cast = mini_open(f, "Cast", "widen", 1, x);
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_DOUBLE));
    cast = mini_open(f, "Cast", "narrow", 1, mini_node(f, "Exp", "exp", 1, mini_done(cast)));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    return mini_done(cast);
}

/* It works, but not as fast as it looks: said, not refused. */
static void float64__is_a_warning(void **state) {
    (void)state;
    seed_says(model_of(in_float64, false), PLACE,
              "warning: float64 is computed in software on a TPU: node 'widen' (Cast) in function "
              "__inference_tpu_func_10 and 1 "
              "other (use float32)");
}

/* tpu_func(x) = x + v, with v counting calls. */
static void a_written_variable__is_a_warning(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), handle = mini_arg(f, "counter", TARE_DT_RESOURCE), v, y;
    struct tare_node *node = mini_open(f, "AssignAddVariableOp", "count", 2, handle, mini_float(f, "one", 1));
    struct tare_signature *s;
    (void)state;
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_done(node);
    node = mini_open(f, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_return(f, "y", mini_node(f, "AddV2", "add", 2, x, mini_done(node)));
    f->is_stateful = true;
    v = mini_variable(model, "counter", 0);
    model->variables[0].key = "counter/.ATTRIBUTES/VARIABLE_VALUE";
    x = seed_input(model->main, "x", TARE_DT_FLOAT, shape);
    y = mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, x, v);
    s = model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    model->n_signatures = s->n_inputs = s->n_outputs = 1;
    s->key = "serving_default";
    s->method_name = "tensorflow/serving/predict";
    *s->inputs = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = x };
    *s->outputs = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = y };
    seed_alias(model, f->name, "tpu_func");
    seed_says(seed_write(model, "counter"), PLACE,
              "warning: node 'count' (AssignAddVariableOp) in function __inference_tpu_func_10 writes a variable: an "
              "inference "
              "TPU copies variables once and discards what is written (keep it on the CPU");
    model = seed_load();
    assert_int_equal(model->variables[0].dtype, TARE_DT_FLOAT); /* what is written stays as it is */
    tare_model_free(model);
}

/* A signature with a sparse input: on the TPU, and batched. */
static void a_sparse_input__is_refused(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shapes[] = { tare_shape_make(1, 2), tare_shape_make(2, -1, 2), tare_shape_make(1, -1) };
    const struct tare_composite_tensor x = { "x", "SparseTensor" };
    struct tare_binding parts[3];
    const char *path;
    struct tare_edge values;
    (void)state;
    mini_arg(f, "dense_shape", TARE_DT_INT64); /* in the order of the names, as TensorFlow flattens them */
    mini_arg(f, "indices", TARE_DT_INT64);
    values = mini_arg(f, "values", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "Relu", "relu", 1, values));
    seed_serve(model, f, shapes);
    seed_alias(model, f->name, "tpu_func");
    for (size_t i = 0; i < 3; i++) { /* indices, values, dense_shape */
        parts[i] = model->signatures[0].inputs[(i + 1) % 3];
        parts[i].whole = &x;
        parts[i].part = i;
    }
    model->signatures[0].inputs = parts;
    path = seed_write(model, "sparse");
    seed_refuses(
        path, "tpu_functions { signature_name: \"serving_default\" }",
        "input 'x' of signature serving_default is a SparseTensor, which TPU function __inference_tpu_func_10 must not "
        "take (call tf.sparse.to_dense on the CPU");
    seed_refuses(path, BATCH_OF("signature_name: \"serving_default\""), "SparseTensor");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transposed_convolution__becomes_one_that_tpus_have),
        cmocka_unit_test(jit_compiled_functions__go_to_the_tpu_once),
        cmocka_unit_test(one_alias__names_several_functions),
        cmocka_unit_test(unknown_names__come_with_the_known_ones),
        cmocka_unit_test(the_scope__is_the_tpu_or_all),
        cmocka_unit_test(existing_bfloat16__is_left_as_it_is_unless_the_options_say_more),
        cmocka_unit_test(a_function_called_on_the_tpu__is_not_batched),
        cmocka_unit_test(what_a_tpu_lacks__is_refused_with_function_node_and_way_out),
        cmocka_unit_test(float64__is_a_warning),
        cmocka_unit_test(a_written_variable__is_a_warning),
        cmocka_unit_test(a_sparse_input__is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
