/* Writes a random network as a SavedModel, and records for it:
 *
 *   random_network SEED MODEL_DIR RECORDS
 *
 * It has the shape of a Keras export: a function with the alias "net" and captured variables, called by the signature;
 * _input_shapes on every function; a weight may be a variable (read in an inner function, and once more in the outer
 * one for a control edge), a constant, or carried through a loop; FakeQuant may be next to a layer or behind Reshape,
 * ExpandDims and Squeeze; an LSTM-like loop may carry variables that it does not use; a Keras LSTM may be a composite.
 * The same seed writes the same network. The standard output has one line that lists the parts, and the step of the
 * outputs: that of the FakeQuant that computes them, or 0. */
#include "convert/saved_model.h"
#include "datasets/sample.h"
#include "datasets/tfrecord.h"
#include "base/alloc.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIABLES = 24, RECORDS = 12 };

struct network {
    struct tare_graph_model *model;
    struct tare_graph *body;
    uint64_t seed;
    struct tare_edge handles[MOST_VARIABLES]; /* VarHandleOp in the main graph */
    struct tare_edge args[MOST_VARIABLES];    /* the function's arguments for them */
    size_t n_variables;
    struct tare_edge x;
    int64_t width; /* of x, which is [batch, width] between layers */
    double step;   /* of the FakeQuant that computes x; 0: something else computes it */
    int n_fakes;   /* FakeQuants */
    int layer;
};

static int draw(struct network *n, int count) {
    return (int)(draw_unit(&n->seed) * count) % count;
}

static char *named(struct network *n, const char *stem) {
    return (char *)(uintptr_t)tare_arena_printf(&n->model->arena, "%s_%d", stem, n->layer);
}

static struct tare_tensor drawn(struct network *n, const struct tare_shape *shape, double size) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)size * draw_one(DRAW_NORMAL, &n->seed);
    return value;
}

/* ---- weights ---- */

static struct tare_edge add_variable(struct network *n, const char *name, const struct tare_shape *shape, double size) {
    struct tare_node *handle = mini_open(n->model->main, "VarHandleOp", name, 0);
    assert_true(n->n_variables < MOST_VARIABLES);
    mini_ok(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(handle, "shape", shape));
    mini_add_variable(n->model, handle, drawn(n, shape, size));
    n->model->variables[n->n_variables].key =
        tare_arena_printf(&n->model->arena, "layers/%s/.ATTRIBUTES/VARIABLE_VALUE", name);
    n->handles[n->n_variables] = mini_done(handle);
    n->args[n->n_variables] =
        mini_arg(n->body, tare_arena_printf(&n->model->arena, "%s_resource", name), TARE_DT_RESOURCE);
    return n->args[n->n_variables++];
}

static struct tare_edge read_variable(struct tare_graph *graph, struct tare_edge handle) {
    struct tare_node *read = mini_open(graph, "ReadVariableOp", "ReadVariableOp", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_done(read);
}

static struct tare_edge weight(struct network *n, const struct tare_shape *shape) {
    const double size = 0.4;
    struct tare_tensor value;
    struct tare_node *node;
    if (draw(n, 3))
        return read_variable(
            n->body, add_variable(n, tare_arena_printf(&n->model->arena, "kernel_%zu", n->n_variables), shape, size));
    value = drawn(n, shape, size);
    node = tare_graph_add_const(n->body, named(n, "weight"), &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge fake_quant(struct network *n, struct tare_edge x, float range) {
    struct tare_node *node;
    n->n_fakes++;
    if (draw(n, 2)) {
        node = mini_open(n->body, "FakeQuantWithMinMaxArgs", named(n, "fake"), 1, x);
        mini_ok(tare_node_set_float(node, "min", -range));
        mini_ok(tare_node_set_float(node, "max", range));
        return mini_done(node);
    }
    return mini_node(n->body, "FakeQuantWithMinMaxVars", named(n, "fake"), 3, x,
                     mini_float(n->body, named(n, "low"), -range), mini_float(n->body, named(n, "high"), range));
}

/* ---- layers, [batch, width] -> [batch, width] ---- */

static struct tare_edge activation(struct network *n, struct tare_edge x) {
    static const char *const ops[] = { "Relu", "Relu6", "Tanh", "Sigmoid", "Identity" };
    return mini_node(n->body, ops[draw(n, 5)], named(n, "act"), 1, x);
}

static struct tare_edge reshape(struct network *n, struct tare_edge x, int rank, const int32_t *dims) {
    return mini_node(n->body, "Reshape", named(n, "Reshape"), 2, x, mini_ints(n->body, named(n, "shape"), rank, dims));
}

static struct tare_edge bias(struct network *n, struct tare_edge x, int64_t units) {
    const struct tare_shape shape = tare_shape_make(1, units);
    return mini_node(n->body, "BiasAdd", named(n, "BiasAdd"), 2, x, weight(n, &shape));
}

static void dense(struct network *n) {
    const int64_t units = 4 * (1 + draw(n, 4));
    const struct tare_shape shape = tare_shape_make(2, n->width, units);
    const int quantized = draw(n, 3); /* 0: no FakeQuant */
    struct tare_edge x = n->x, w = weight(n, &shape);
    if (quantized) x = fake_quant(n, x, 4);
    if (quantized == 2) { /* behind a shape that comes back */
        x = mini_node(n->body, "ExpandDims", named(n, "expand"), 2, x, mini_int(n->body, named(n, "axis"), 1));
        x = reshape(n, x, 2, (int32_t[]){ -1, (int32_t)n->width });
    }
    if (quantized) w = fake_quant(n, w, 1.5f);
    x = mini_node(n->body, "MatMul", named(n, "MatMul"), 2, x, w);
    x = activation(n, draw(n, 2) ? bias(n, x, units) : x);
    n->x = quantized ? fake_quant(n, x, 6) : x;
    n->step = quantized ? 12.0 / 255 : 0;
    n->width = units;
}

/* [batch, width] as an image [batch, 2, 2, width / 4]. */
static void convolution(struct network *n) {
    const int64_t depth = n->width / 4, units = 4 * (1 + draw(n, 2));
    const struct tare_shape shape = tare_shape_make(4, 2LL, 2LL, depth, units);
    const int64_t ones[] = { 1, 1, 1, 1 };
    struct tare_edge x = draw(n, 2) ? fake_quant(n, n->x, 4) : n->x; /* before the Reshape */
    struct tare_node *conv;
    x = reshape(n, x, 4, (int32_t[]){ -1, 2, 2, (int32_t)depth });
    conv = mini_open(n->body, "Conv2D", named(n, "Conv2D"), 2, x, weight(n, &shape));
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    mini_ok(tare_node_set_int_list(conv, "strides", ones, 4));
    x = activation(n, bias(n, mini_done(conv), units));
    n->width = 4 * units;
    n->x = reshape(n, x, 2, (int32_t[]){ -1, (int32_t)n->width });
}

/* A call of an inner function that reads the weight; the outer one reads it for a control edge. */
static void nested(struct network *n) {
    const struct tare_shape shape = tare_shape_make(2, n->width, 8LL);
    struct tare_graph *outer = n->body, *inner = tare_model_add_function(n->model, named(n, "__inference_inner"));
    const struct tare_edge handle = add_variable(n, named(n, "nested"), &shape, 0.4);
    const struct tare_edge x = mini_arg(inner, "inputs", TARE_DT_FLOAT);
    const struct tare_edge resource = mini_arg(inner, "resource", TARE_DT_RESOURCE);
    const struct tare_edge read = read_variable(outer, handle);
    struct tare_edge y;
    mini_return(inner, "identity", mini_node(inner, "MatMul", "MatMul", 2, x, read_variable(inner, resource)));
    y = mini_call(outer, draw(n, 2) ? "StatefulPartitionedCall" : "PartitionedCall", named(n, "call"), inner, 2, n->x,
                  handle);
    n->x = mini_node(outer, "Identity", named(n, "Identity"), 1, y);
    mini_ok(tare_node_add_control(n->x.node, read.node));
    n->width = 8;
}

/* for i in 3: h = tanh(x W + h U); carries a variable that the body does not use. */
static void loop(struct network *n) {
    const struct tare_shape by_x = tare_shape_make(2, n->width, 8LL), by_h = tare_shape_make(2, 8LL, 8LL);
    struct tare_graph *condition = tare_model_add_function(n->model, named(n, "while_cond"));
    struct tare_graph *body = tare_model_add_function(n->model, named(n, "while_body"));
    const struct tare_edge w = add_variable(n, named(n, "lstm_kernel"), &by_x, 0.4);
    const struct tare_edge u = add_variable(n, named(n, "lstm_recurrent"), &by_h, 0.4);
    const struct tare_edge unused = add_variable(n, named(n, "lstm_unused"), &by_h, 0.4);
    const struct tare_edge zeros = read_variable(n->body, u);
    const int types[] = { TARE_DT_INT32,    TARE_DT_FLOAT,    TARE_DT_FLOAT,
                          TARE_DT_RESOURCE, TARE_DT_RESOURCE, TARE_DT_RESOURCE };
    const char *const names[] = { "i", "h", "x", "w", "u", "unused" };
    struct tare_edge c[6], b[6], first, next;
    struct tare_node *node;
    for (int i = 0; i < 6; i++) {
        c[i] = mini_arg(condition, names[i], types[i]);
        b[i] = mini_arg(body, names[i], types[i]);
    }
    mini_return(condition, "identity", mini_node(condition, "Less", "less", 2, c[0], mini_int(condition, "three", 3)));
    next = mini_node(body, "AddV2", "sum", 2, mini_node(body, "MatMul", "xw", 2, b[2], read_variable(body, b[3])),
                     mini_node(body, "MatMul", "hu", 2, b[1], read_variable(body, b[4])));
    mini_return(body, "i", mini_node(body, "AddV2", "add", 2, b[0], mini_int(body, "one", 1)));
    mini_return(body, "h", mini_node(body, "Tanh", "tanh", 1, next));
    for (int i = 2; i < 6; i++)
        mini_return(body, names[i], b[i]);
    first = mini_node(n->body, "MatMul", named(n, "first"), 2, n->x, read_variable(n->body, w));
    node = mini_open(n->body, "While", named(n, "while"), 6, mini_int(n->body, named(n, "zero"), 0), first, n->x, w, u,
                     unused);
    mini_ok(tare_node_set_type_list(node, "T", types, 6));
    mini_ok(tare_node_set_func(node, "cond", condition->name));
    mini_ok(tare_node_set_func(node, "body", body->name));
    n->x = mini_node(n->body, "Identity", named(n, "h"), 1, mini_output(mini_done(node), 1));
    mini_ok(tare_node_add_control(n->x.node, zeros.node));
    n->width = 8;
}

/* ---- a composite layer ---- */

enum { UNITS = 4, MOST_STEPS = 4 };

static struct tare_edge two(struct tare_graph *g, const char *op, struct tare_edge a, struct tare_edge b) {
    return mini_node(g, op, op, 2, a, b);
}

static struct tare_edge split_gates(struct tare_graph *g, struct tare_edge z) {
    struct tare_node *node = mini_open(g, "Split", "gates", 2, mini_int(g, "axis", 1), z);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int(node, "num_split", 4));
    return mini_done(node);
}

/* One step of an LSTM as Keras computes it; states: h, c. */
static void lstm_step(struct tare_graph *g, struct tare_edge x, const struct tare_edge *weights,
                      struct tare_edge *states) {
    struct tare_edge z = two(g, "AddV2", two(g, "MatMul", x, weights[0]), two(g, "MatMul", states[0], weights[1]));
    const struct tare_edge gates = split_gates(g, two(g, "BiasAdd", z, weights[2]));
    const struct tare_edge keep = two(g, "Mul", mini_node(g, "Sigmoid", "f", 1, mini_output(gates, 1)), states[1]);
    const struct tare_edge take = two(g, "Mul", mini_node(g, "Sigmoid", "i", 1, mini_output(gates, 0)),
                                      mini_node(g, "Tanh", "g", 1, mini_output(gates, 2)));
    states[1] = two(g, "AddV2", keep, take);
    states[0] =
        two(g, "Mul", mini_node(g, "Sigmoid", "o", 1, mini_output(gates, 3)), mini_node(g, "Tanh", "c", 1, states[1]));
}

static void annotate_as_lstm(struct tare_graph_model *model, struct tare_graph *g) {
    static const char name[] = "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13";
    struct tare_attr *attrs = tare_arena_extend(&model->arena, g->attrs, g->n_attrs, 1, sizeof *attrs);
    union tare_attr_item *item = TARE_NEW(&model->arena, union tare_attr_item);
    assert_true(attrs && item);
    item->s = (struct tare_str){ name, sizeof name - 1 };
    attrs[g->n_attrs++] =
        (struct tare_attr){ .name = "api_implements", .kind = TARE_ATTR_STRING, .count = 1, .items = item };
    g->attrs = attrs;
}

/* The function (inputs [batch, steps, features], h, c, kernel, recurrent kernel, bias) -> (last output, outputs, h, c,
 * constant), annotated as Keras does it. */
static struct tare_graph *lstm_function(struct network *n, int steps) {
    static const char *const names[] = { "inputs", "init_h", "init_c", "kernel", "recurrent_kernel", "bias" };
    struct tare_graph *g = tare_model_add_function(n->model, named(n, "__inference_standard_lstm"));
    struct tare_edge args[6], states[2], outputs[MOST_STEPS];
    struct tare_node *unpack, *pack;
    for (int i = 0; i < 6; i++)
        args[i] = mini_arg(g, names[i], TARE_DT_FLOAT);
    unpack = mini_open(g, "Unpack", "steps", 1, args[0]);
    mini_ok(tare_node_set_int(unpack, "num", steps));
    mini_ok(tare_node_set_int(unpack, "axis", 1));
    mini_done(unpack);
    memcpy(states, &args[1], sizeof states);
    for (int t = 0; t < steps; t++) {
        lstm_step(g, (struct tare_edge){ unpack, t }, &args[3], states);
        outputs[t] = states[0];
    }
    pack = steps == 2 ? mini_open(g, "Pack", "outputs", 2, outputs[0], outputs[1])
                      : mini_open(g, "Pack", "outputs", 4, outputs[0], outputs[1], outputs[2], outputs[3]);
    mini_ok(tare_node_set_int(pack, "axis", 1));
    mini_return(g, "last_output", states[0]);
    mini_return(g, "outputs", mini_done(pack));
    mini_return(g, "new_h", states[0]);
    mini_return(g, "new_c", states[1]);
    mini_return(g, "runtime", mini_float(g, "runtime_is", 1));
    annotate_as_lstm(n->model, g);
    return g;
}

/* Two steps are unrolled when the function is fused, four become a loop. */
static void composite(struct network *n) {
    const int steps = draw(n, 2) ? 2 : 4;
    const int64_t features = n->width / steps;
    const struct tare_shape kernel = tare_shape_make(2, features, 4LL * UNITS);
    const struct tare_shape recurrent = tare_shape_make(2, (int64_t)UNITS, 4LL * UNITS);
    const struct tare_shape bias = tare_shape_make(1, 4LL * UNITS);
    struct tare_graph *g = n->body;
    const struct tare_edge x = reshape(n, n->x, 3, (int32_t[]){ -1, steps, (int32_t)features });
    const struct tare_edge rows =
        mini_node(g, "Slice", named(n, "rows"), 3, n->x, mini_ints(g, named(n, "begin"), 2, (int32_t[]){ 0, 0 }),
                  mini_ints(g, named(n, "size"), 2, (int32_t[]){ -1, UNITS }));
    const struct tare_edge zeros = mini_node(g, "Mul", named(n, "zeros"), 2, rows, mini_float(g, named(n, "zero"), 0));
    const struct tare_edge w = weight(n, &kernel), r = weight(n, &recurrent), b = weight(n, &bias);
    const struct tare_edge y =
        mini_call(g, "PartitionedCall", named(n, "lstm"), lstm_function(n, steps), 6, x, zeros, zeros, w, r, b);
    n->width = (int64_t)steps * UNITS;
    n->x = reshape(n, mini_output(y, 1), 2, (int32_t[]){ -1, (int32_t)n->width });
}

/* ---- the model ---- */

/* mini_arg has given every function _input_shapes of unknown shapes; those of the served function are known. */
static void set_input_shapes(struct tare_graph *function, const struct tare_shape *first) {
    struct tare_attr *attr = (struct tare_attr *)(uintptr_t)tare_graph_find_attr(function, "_input_shapes");
    struct tare_shape shapes[MOST_VARIABLES + 1];
    struct tare_node holder = { .graph = function };
    assert_non_null(attr);
    for (size_t i = 0; i < function->n_args; i++) {
        shapes[i] = i ? tare_shape_scalar() : *first;
        mini_ok(tare_node_set_shape_list(function->args[i], "_output_shapes", &shapes[i], 1));
    }
    mini_ok(tare_node_set_shape_list(&holder, "_input_shapes", shapes, function->n_args));
    *attr = holder.attrs[0];
}

static void serve(struct network *n, const struct tare_shape *shape) {
    struct tare_graph_model *model = n->model;
    struct tare_signature *s = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_alias *alias = TARE_NEW(&model->arena, struct tare_alias);
    struct tare_node *placeholder = mini_open(model->main, "Placeholder", "x", 0), *call;
    mini_ok(tare_node_set_type(placeholder, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(placeholder, "shape", shape));
    const struct tare_edge x = mini_done(placeholder);
    call = mini_open(model->main, "StatefulPartitionedCall", "StatefulPartitionedCall", 1, x);
    int types[MOST_VARIABLES + 1] = { TARE_DT_FLOAT };
    const int out[] = { TARE_DT_FLOAT };
    for (size_t i = 0; i < n->n_variables; i++) {
        mini_ok(tare_node_add_input(call, n->handles[i]));
        types[i + 1] = TARE_DT_RESOURCE;
    }
    mini_ok(tare_node_set_func(call, "f", n->body->name));
    mini_ok(tare_node_set_type_list(call, "Tin", types, n->n_variables + 1));
    mini_ok(tare_node_set_type_list(call, "Tout", out, 1));
    *s = (struct tare_signature){
        .key = "serving_default", .method_name = "tensorflow/serving/predict", .n_inputs = 1, .n_outputs = 1
    };
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->inputs[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = *shape, .edge = x };
    s->outputs[0] = (struct tare_binding){
        .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1LL, n->width), .edge = mini_done(call)
    };
    *alias = (struct tare_alias){ n->body->name, "net" };
    model->signatures = s;
    model->aliases = alias;
    model->n_signatures = model->n_aliases = 1;
}

static struct tare_graph_model *build(uint64_t seed, int64_t *width) {
    static void (*const layers[])(struct network *) = { dense, dense, convolution, nested, loop, composite };
    static const char *const names[] = { "dense", "dense", "convolution", "nested", "loop", "composite" };
    struct network n = { .model = mini_model_new(), .seed = seed * 0x9e3779b97f4a7c15u + 1 };
    struct tare_shape shape;
    *width = n.width = 8 * (1 + draw(&n, 3));
    shape = tare_shape_make(2, -1LL, n.width);
    n.body = tare_model_add_function(n.model, "__inference_net_1");
    n.body->is_stateful = true;
    n.x = mini_arg(n.body, "x", TARE_DT_FLOAT);
    printf("seed %llu:", (unsigned long long)seed);
    for (int count = 2 + draw(&n, 3); n.layer < count; n.layer++) {
        const int which = draw(&n, 6);
        printf(" %s", names[which]);
        n.step = 0;
        layers[which](&n);
    }
    if (draw(&n, 2)) {
        n.x = mini_node(n.body, "Softmax", "softmax", 1, n.x);
        n.step = 0;
    }
    printf("; %zu variables; %d FakeQuants; output step %.4f\n", n.n_variables, n.n_fakes, n.step);
    mini_return(n.body, "y", mini_node(n.body, "Identity", "Identity", 1, n.x));
    set_input_shapes(n.body, &shape);
    serve(&n, &shape);
    return n.model;
}

static void write_records(const char *path, uint64_t seed, int64_t width) {
    static const char *const keys[] = { "x" };
    const struct tare_shape shape = tare_shape_make(2, 1LL, width);
    struct tare_tfrecord_writer *writer;
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int r = 0; r < RECORDS; r++) {
        struct tare_tensor x;
        void *data;
        size_t size;
        mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
        draw_fill(x.data, (size_t)width, DRAW_NORMAL, seed + (uint64_t)r);
        mini_ok(tare_sample_encode(&data, &size, keys, &x, 1));
        mini_ok(tare_tfrecord_write(writer, data, size));
        tare_tensor_reset(&x);
        tare_free(data);
    }
    mini_ok(tare_tfrecord_commit(writer));
}

int main(int argc, char **argv) {
    const struct tare_export_options export = { .overwrite = true };
    struct tare_graph_model *model;
    int64_t width;
    if (argc != 4) {
        fprintf(stderr, "usage: random_network SEED MODEL_DIR RECORDS\n");
        return 2;
    }
    model = build(strtoull(argv[1], NULL, 10), &width);
    mini_ok(tare_saved_model_export(model, argv[2], &export));
    write_records(argv[3], strtoull(argv[1], NULL, 10), width);
    tare_model_free(model);
    return 0;
}
