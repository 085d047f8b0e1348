/* Models for the converter's tests; runs the converter on them. */
#include "support/seed_model.h"
#include "base/alloc.h"
#include "base/file.h"
#include "convert/saved_model.h"
#include "interpreter/validation/validate.h"
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 3 };

struct tare_edge seed_input(struct tare_graph *graph, const char *name, int dtype, struct tare_shape shape) {
    struct tare_node *node = mini_open(graph, "Placeholder", name, 0);
    mini_ok(tare_node_set_type(node, "dtype", dtype));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    return mini_done(node);
}

void seed_alias(struct tare_graph_model *model, const char *function, const char *alias) {
    struct tare_alias *grown = tare_arena_extend(&model->arena, model->aliases, model->n_aliases, 1, sizeof *grown);
    grown[model->n_aliases++] = (struct tare_alias){ function, alias };
    model->aliases = grown;
}

/* A signature with one call of `function` on inputs of these shapes. */
void seed_serve(struct tare_graph_model *model, const struct tare_graph *function, const struct tare_shape *shapes) {
    struct tare_signature *s = model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_edge in[MOST_INPUTS] = { { 0 } }, call;
    model->n_signatures = 1;
    s->key = "serving_default";
    s->method_name = "tensorflow/serving/predict";
    s->inputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, MOST_INPUTS);
    s->outputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, MOST_INPUTS);
    for (size_t i = 0; i < function->n_args; i++) {
        const char *name = function->args[i]->name;
        in[i] = seed_input(model->main, name, function->args[i]->output_dtypes[0], shapes[i]);
        s->inputs[s->n_inputs++] = (struct tare_binding){
            .key = name, .dtype = function->args[i]->output_dtypes[0], .shape = shapes[i], .edge = in[i]
        };
    }
    call = mini_call(model->main, "StatefulPartitionedCall", "StatefulPartitionedCall", function, (int)function->n_args,
                     in[0], in[1], in[2]);
    for (size_t i = 0; i < function->n_returns; i++)
        s->outputs[s->n_outputs++] = (struct tare_binding){ .key = function->returns[i].name,
                                                            .dtype = function->returns[i].dtype,
                                                            .shape = tare_shape_unknown(),
                                                            .edge = mini_output(call, (int)i) };
}

struct tare_graph_model *seed_toy(const char *alias) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_graph *top = tare_model_add_function(model, "__inference_serve_24");
    struct tare_shape shape = tare_shape_make(2, -1, 10);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "Mul", "mul", 2, x, mini_float(f, "one", 1)));
    x = mini_arg(top, "x", TARE_DT_FLOAT);
    mini_return(top, "y", mini_call(top, "PartitionedCall", "call", f, 1, x));
    seed_serve(model, top, &shape);
    if (alias) seed_alias(model, f->name, alias);
    return model;
}

struct tare_graph_model *seed_binary(const char *op, struct tare_shape a, struct tare_shape b) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_my_func_7");
    struct tare_edge A = mini_arg(f, "A", TARE_DT_FLOAT), B = mini_arg(f, "B", TARE_DT_FLOAT);
    mini_return(f, "C", mini_node(f, op, "matmul", 2, A, B));
    seed_serve(model, f, (struct tare_shape[]){ a, b });
    seed_alias(model, f->name, "batch_func");
    return model;
}

struct tare_graph_model *seed_my_func(struct tare_shape a, struct tare_shape b) {
    return seed_binary("BatchMatMulV2", a, b);
}

struct tare_graph_model *seed_language_model(void) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_3");
    struct tare_graph *top = tare_model_add_function(model, "__inference_model_func_5");
    struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_edge x = mini_arg(f, "word_ids", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "MatMul", "bert_layer", 2, x, seed_weight(f, "w", 4, 3)));
    x = mini_arg(top, "input_string", TARE_DT_STRING);
    x = mini_node(top, "StringToNumber", "preprocess", 1, x);
    mini_return(top, "y", mini_call(top, "PartitionedCall", "call", f, 1, x));
    seed_serve(model, top, &shape);
    seed_alias(model, f->name, "tpu_func");
    return model;
}

const char *seed_write(struct tare_graph_model *model, const char *name) {
    static char paths[16][512];
    static size_t next;
    char *path = paths[next++ % 16];
    struct tare_export_options export = { .overwrite = true };
    snprintf(path, 512, "%s", temp_path(name));
    mini_ok(tare_saved_model_export(model, path, &export));
    tare_model_free(model);
    return path;
}

struct tare_edge seed_weight(struct tare_graph *graph, const char *name, int rows, int columns) {
    struct tare_shape shape = tare_shape_make(2, rows, columns);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, (uint64_t)rows);
    node = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

char seed_out[512];

struct process seed_convert(const char *model, const char *options) {
    char in[600], out[600], text[4096];
    struct process process;
    snprintf(seed_out, sizeof seed_out, "%s", temp_path("converted"));
    mini_ok(tare_file_remove_tree(seed_out));
    snprintf(in, sizeof in, "--input_model_dir=%s", model);
    snprintf(out, sizeof out, "--output_model_dir=%s", seed_out);
    snprintf(text, sizeof text, "--converter_options_string=%s", options);
    process_run(&process, (const char *const[]){ process_tare(), "convert", in, out, text, NULL });
    return process;
}

struct tare_graph_model *seed_load(void) {
    struct tare_faults faults = { 0 };
    struct tare_graph_model *model;
    mini_ok(tare_saved_model_load(&model, seed_out, NULL));
    mini_ok(tare_model_validate(&faults, model, NULL));
    if (faults.count) fail_msg("a fault in the converted model: %s", faults.items[0]);
    tare_faults_free(&faults);
    graph_check_dtypes(model);
    return model;
}

void seed_converts(const char *model, const char *options) {
    struct process process = seed_convert(model, options);
    if (process.status) fail_msg("exit status %d for\n%s\n%s", process.status, options, process.err);
    if (!strstr(process.out, "-------- Conversion Report --------\n")) fail_msg("no report in: %s", process.out);
    process_free(&process);
}

void seed_refuses(const char *model, const char *options, const char *words) {
    struct process process = seed_convert(model, options);
    if (process.status != 1) fail_msg("exit status %d (expected 1) for\n%s\n%s", process.status, options, process.err);
    if (!strstr(process.err, words)) fail_msg("no '%s' in: %s", words, process.err);
    assert_int_equal(tare_file_kind_of(seed_out), TARE_FILE_NONE); /* no output remains */
    process_free(&process);
}

size_t seed_count(const struct tare_graph_model *model, const char *op) {
    size_t count = graph_count(model->main, op);
    for (size_t f = 0; f < model->n_functions; f++)
        count += graph_count(model->functions[f], op);
    return count;
}

/* y of the only signature for x = 1, 2, 3 … in the given shape. */
struct tare_tensor seed_answer(const struct tare_graph_model *model, struct tare_shape shape) {
    struct tare_session *session = mini_session(model);
    struct tare_tensor x, y;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = (float)(i + 1) * 0.37f;
    mini_ok(tare_session_run_signature(session, &model->signatures[0], &x, &y));
    tare_session_free(session);
    tare_tensor_reset(&x);
    return y;
}

void seed_answers_as(const char *path, struct tare_shape shape) {
    struct tare_graph_model *converted = seed_load(), *original;
    struct tare_tensor got = seed_answer(converted, shape), want;
    mini_ok(tare_saved_model_load(&original, path, NULL));
    want = seed_answer(original, shape);
    assert_int_equal(got.elements, want.elements);
    assert_memory_equal(got.data, want.data, (size_t)want.elements * sizeof(float));
    tare_tensor_reset(&got);
    tare_tensor_reset(&want);
    tare_model_free(original);
    tare_model_free(converted);
}

void seed_says(const char *model, const char *options, const char *words) {
    struct process process = seed_convert(model, options);
    if (process.status) fail_msg("exit status %d for\n%s\n%s", process.status, options, process.err);
    if (!strstr(process.err, words)) fail_msg("no '%s' in: %s", words, process.err);
    process_free(&process);
}
