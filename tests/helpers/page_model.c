/* Writes a small network of the kind that a page of docs/ is about, with random weights, so that a test can run the
 * commands of the page:
 *
 *   page_model text|table|audio|mask|stream DIR
 *
 * text: ids int64 [?, 8], a table, dense layers, one score; table: columns of numbers, one score; audio: input_1 [?,
 * 49, 10, 1], 12 classes; mask: image [?, 16, 16, 1], a mask of that size; stream: x [?, 16] and a state h_in [?, 32],
 * classes and h_out. Each has one function, __inference_net_1, which the signature calls. */
#include "convert/saved_model.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 4 };

struct network {
    struct tare_graph_model *model;
    struct tare_graph *body;
    struct tare_binding inputs[MOST], outputs[MOST];
    size_t n_inputs, n_outputs;
    uint64_t seed;
    int layers;
};

static char *named(struct network *n, const char *stem) {
    return (char *)(uintptr_t)tare_arena_printf(&n->model->arena, "%s_%d", stem, n->layers++);
}

static struct tare_edge input(struct network *n, const char *key, int dtype, struct tare_shape shape) {
    struct tare_node *placeholder = mini_open(n->model->main, "Placeholder", key, 0);
    mini_ok(tare_node_set_type(placeholder, "dtype", dtype));
    mini_ok(tare_node_set_shape(placeholder, "shape", &shape));
    n->inputs[n->n_inputs++] =
        (struct tare_binding){ .key = key, .dtype = dtype, .shape = shape, .edge = mini_done(placeholder) };
    return mini_arg(n->body, key, dtype);
}

static void output(struct network *n, const char *key, struct tare_edge value, struct tare_shape shape) {
    mini_return(n->body, key, value);
    n->outputs[n->n_outputs++] = (struct tare_binding){ .key = key, .dtype = TARE_DT_FLOAT, .shape = shape };
}

static struct tare_edge weight(struct network *n, struct tare_shape shape, double size) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)size * draw_one(DRAW_NORMAL, &n->seed);
    struct tare_node *constant = tare_graph_add_const(n->body, named(n, "weight"), &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ constant, 0 };
}

static struct tare_edge dense(struct network *n, struct tare_edge x, int64_t rows, int64_t columns, const char *op) {
    const struct tare_edge w = weight(n, tare_shape_make(2, rows, columns), 1.5 / (double)rows);
    const struct tare_edge product = mini_node(n->body, "MatMul", named(n, "dense"), 2, x, w);
    return mini_node(n->body, op, named(n, op), 1, product);
}

static struct tare_edge convolution(struct network *n, struct tare_edge x, int64_t in, int64_t out, const char *op) {
    static const int64_t strides[] = { 1, 1, 1, 1 };
    const struct tare_edge w = weight(n, tare_shape_make(4, 3LL, 3LL, in, out), 0.3);
    struct tare_node *node = mini_open(n->body, "Conv2D", named(n, "conv"), 2, x, w);
    mini_ok(tare_node_set_int_list(node, "strides", strides, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    const struct tare_edge product = mini_done(node);
    return mini_node(n->body, op, named(n, op), 1, product);
}

static struct tare_edge flat(struct network *n, struct tare_edge x, int32_t columns) {
    const int32_t shape[] = { -1, columns };
    const struct tare_edge to = mini_ints(n->body, named(n, "shape"), 2, shape);
    return mini_node(n->body, "Reshape", named(n, "flat"), 2, x, to);
}

static struct tare_edge joined(struct network *n, int count, const struct tare_edge *parts) {
    const struct tare_edge axis = mini_int(n->body, named(n, "axis"), 1);
    return count == 2 ? mini_node(n->body, "ConcatV2", named(n, "joined"), 3, parts[0], parts[1], axis)
                      : mini_node(n->body, "ConcatV2", named(n, "joined"), 4, parts[0], parts[1], parts[2], axis);
}

static void build_text(struct network *n) {
    const struct tare_edge ids = input(n, "ids", TARE_DT_INT64, tare_shape_make(2, -1LL, 8LL));
    const struct tare_edge table = weight(n, tare_shape_make(2, 200LL, 16LL), 1);
    const struct tare_edge axis = mini_int(n->body, named(n, "axis"), 0);
    struct tare_edge x = mini_node(n->body, "GatherV2", "embedding", 3, table, ids, axis);
    x = dense(n, flat(n, x, 128), 128, 32, "Relu");
    output(n, "score", dense(n, x, 32, 1, "Sigmoid"), tare_shape_make(2, -1LL, 1LL));
}

static void build_table(struct network *n) {
    static const char *const columns[] = { "age", "cholesterol", "oldpeak" };
    struct tare_edge parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = input(n, columns[i], TARE_DT_FLOAT, tare_shape_make(2, -1LL, 1LL));
    struct tare_edge x = dense(n, joined(n, 3, parts), 3, 64, "Relu");
    x = dense(n, x, 64, 64, "Relu");
    output(n, "score", dense(n, x, 64, 1, "Sigmoid"), tare_shape_make(2, -1LL, 1LL));
}

static void build_audio(struct network *n) {
    struct tare_edge x = input(n, "input_1", TARE_DT_FLOAT, tare_shape_make(4, -1LL, 49LL, 10LL, 1LL));
    x = flat(n, convolution(n, x, 1, 4, "Relu"), 1960);
    output(n, "dense", dense(n, x, 1960, 12, "Softmax"), tare_shape_make(2, -1LL, 12LL));
}

static void build_mask(struct network *n) {
    const struct tare_shape shape = tare_shape_make(4, -1LL, 16LL, 16LL, 1LL);
    struct tare_edge x = input(n, "image", TARE_DT_FLOAT, shape);
    x = convolution(n, x, 1, 12, "Relu");
    x = convolution(n, x, 12, 12, "Relu");
    output(n, "mask", convolution(n, x, 12, 1, "Sigmoid"), shape);
}

static void build_stream(struct network *n) {
    struct tare_edge parts[2];
    parts[0] = input(n, "h_in", TARE_DT_FLOAT, tare_shape_make(2, -1LL, 32LL));
    parts[1] = input(n, "x", TARE_DT_FLOAT, tare_shape_make(2, -1LL, 16LL));
    const struct tare_edge state = dense(n, joined(n, 2, parts), 48, 32, "Tanh");
    output(n, "h_out", state, tare_shape_make(2, -1LL, 32LL));
    output(n, "scores", dense(n, state, 32, 8, "Softmax"), tare_shape_make(2, -1LL, 8LL));
}

/* The call of the function, and the signature. */
static void serve(struct network *n) {
    struct tare_signature *signature = TARE_NEW(&n->model->arena, struct tare_signature);
    struct tare_alias *alias = TARE_NEW(&n->model->arena, struct tare_alias);
    struct tare_node *call = mini_open(n->model->main, "PartitionedCall", "call", 0);
    int in[MOST], out[MOST];
    for (size_t i = 0; i < n->n_inputs; i++) {
        mini_ok(tare_node_add_input(call, n->inputs[i].edge));
        in[i] = n->inputs[i].dtype;
    }
    for (size_t i = 0; i < n->n_outputs; i++)
        out[i] = TARE_DT_FLOAT;
    mini_ok(tare_node_set_func(call, "f", n->body->name));
    mini_ok(tare_node_set_type_list(call, "Tin", in, n->n_inputs));
    mini_ok(tare_node_set_type_list(call, "Tout", out, n->n_outputs));
    mini_ok(tare_node_resolve(call));
    for (size_t i = 0; i < n->n_outputs; i++)
        n->outputs[i].edge = (struct tare_edge){ call, (int)i };
    *alias = (struct tare_alias){ n->body->name, "tpu_func" };
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .inputs = n->inputs,
                                          .n_inputs = n->n_inputs,
                                          .outputs = n->outputs,
                                          .n_outputs = n->n_outputs };
    n->model->signatures = signature;
    n->model->aliases = alias;
    n->model->n_signatures = n->model->n_aliases = 1;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*build)(struct network *);
    } kinds[] = { { "text", build_text },
                  { "table", build_table },
                  { "audio", build_audio },
                  { "mask", build_mask },
                  { "stream", build_stream } };
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++) {
        struct network n = { .model = mini_model_new(), .seed = 7 };
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            n.body = tare_model_add_function(n.model, "__inference_net_1");
            kinds[i].build(&n);
            serve(&n);
            mini_ok(tare_saved_model_export(n.model, argv[2], NULL));
            tare_model_free(n.model);
            return 0;
        }
        tare_model_free(n.model);
    }
    fprintf(stderr, "usage: page_model text|table|audio|mask|stream DIR\n");
    return 2;
}
