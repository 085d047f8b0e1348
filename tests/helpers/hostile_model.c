/* Writes SavedModels that ask for too much, for tests of cancellation and limits:
 *
 *   hostile_model loop DIR          a While that never ends, after a MatMul
 *   hostile_model calls DIR DEPTH   functions of which each calls the next one twice: 2^DEPTH executions
 *   hostile_model product DIR SIZE  a product of two constant SIZE x SIZE matrices that nothing folds
 *   hostile_model fill DIR SIZE     a tensor of SIZE float32 elements, made when the model runs
 *   hostile_model splat DIR SIZE    a constant of SIZE float32 elements of one value, of which the file stores one
 *
 * Each has the signature serving_default with the float inputs x [?,4] and a quantizable MatMul. */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tare_edge constant(struct tare_graph *graph, const char *name, int rank, int64_t rows, int64_t columns,
                                 float value) {
    const struct tare_shape shape = rank == 2 ? tare_shape_make(2, rows, columns) : tare_shape_make(1, rows);
    struct tare_tensor tensor;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = value / (float)(1 + i % 7);
    node = tare_graph_add_const(graph, name, &tensor);
    tare_tensor_reset(&tensor);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge layer(struct tare_graph *graph, struct tare_edge x) {
    return mini_node(graph, "MatMul", "layer", 2, x, constant(graph, "weights", 2, 4, 4, 0.5f));
}

/* ---- kinds ---- */

static struct tare_edge loop(struct tare_graph_model *model, struct tare_edge x) {
    struct tare_graph *condition = tare_model_add_function(model, "always"),
                      *body = tare_model_add_function(model, "body");
    struct tare_node *node;
    struct tare_edge value;
    mini_arg(condition, "v", TARE_DT_FLOAT);
    mini_return(condition, "more", mini_bool(condition, "yes", true));
    value = mini_arg(body, "v", TARE_DT_FLOAT);
    mini_return(body, "next", mini_node(body, "Relu", "relu", 1, value));
    node = mini_open(model->main, "While", "loop", 1, layer(model->main, x));
    mini_ok(tare_node_set_type_list(node, "T", &(int){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "cond", "always"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    return mini_done(node);
}

static struct tare_edge calls(struct tare_graph_model *model, struct tare_edge x, int64_t depth) {
    struct tare_graph *inner = NULL;
    char name[32];
    for (int64_t i = depth; i >= 0; i--) {
        struct tare_graph *function;
        struct tare_edge value;
        snprintf(name, sizeof name, "level_%lld", (long long)i);
        function = tare_model_add_function(model, name);
        value = mini_arg(function, "v", TARE_DT_FLOAT);
        if (inner) {
            value = mini_call(function, "PartitionedCall", "first", inner, 1, value);
            value = mini_call(function, "PartitionedCall", "second", inner, 1, value);
        } else {
            value = layer(function, value);
        }
        mini_return(function, "y", value);
        inner = function;
    }
    return mini_call(model->main, "PartitionedCall", "call", inner, 1, x);
}

/* The factors depend on x, so that no pass computes the product. */
static struct tare_edge product(struct tare_graph_model *model, struct tare_edge x, int64_t size) {
    struct tare_graph *graph = model->main;
    struct tare_edge axes = mini_ints(graph, "axes", 2, (const int32_t[]){ 0, 1 });
    struct tare_edge sum = mini_node(graph, "Sum", "sum", 2, layer(graph, x), axes);
    struct tare_edge shape = mini_ints(graph, "shape", 2, (const int32_t[]){ (int32_t)size, (int32_t)size });
    struct tare_edge matrix = mini_node(graph, "Fill", "matrix", 2, shape, sum);
    return mini_node(graph, "MatMul", "product", 2, matrix, matrix);
}

static struct tare_edge fill(struct tare_graph_model *model, struct tare_edge x, int64_t size) {
    struct tare_graph *graph = model->main;
    struct tare_edge axes = mini_ints(graph, "axes", 2, (const int32_t[]){ 0, 1 });
    struct tare_edge sum = mini_node(graph, "Sum", "sum", 2, layer(graph, x), axes);
    struct tare_edge shape = mini_ints(graph, "shape", 2, (const int32_t[]){ (int32_t)(size / 1000), 1000 });
    struct tare_edge made = mini_node(graph, "Fill", "fill", 2, shape, sum);
    return mini_node(graph, "Sum", "total", 2, made, axes);
}

static struct tare_edge splat(struct tare_graph_model *model, struct tare_edge x, int64_t size) {
    struct tare_graph *graph = model->main;
    const struct tare_shape shape = tare_shape_make(1, size), one = tare_shape_make(1, (int64_t)1);
    struct tare_tensor tensor;
    struct tare_edge axis, total, made;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &one, &(float){ 0.25f }));
    tensor.shape = shape;
    tensor.elements = size;
    tensor.splat = true;
    made = (struct tare_edge){ tare_graph_add_const(graph, "splat", &tensor), 0 };
    tare_tensor_reset(&tensor);
    axis = mini_ints(graph, "axis", 1, (const int32_t[]){ 0 });
    total = mini_node(graph, "Max", "largest", 2, made, axis);
    return mini_node(graph, "Mul", "scaled", 2, layer(graph, x), total);
}

/* ---- the model ---- */

static struct tare_edge make(struct tare_graph_model *model, const char *kind, struct tare_edge x, int64_t size) {
    if (strcmp(kind, "loop") == 0) return loop(model, x);
    if (strcmp(kind, "calls") == 0) return calls(model, x, size);
    if (strcmp(kind, "product") == 0) return product(model, x, size);
    if (strcmp(kind, "fill") == 0) return fill(model, x, size);
    if (strcmp(kind, "splat") == 0) return splat(model, x, size);
    fprintf(stderr, "hostile_model: unknown kind %s\n", kind);
    exit(2);
}

static void add_signature(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    static struct tare_binding bindings[2];
    static struct tare_signature signature;
    bindings[0] =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1, 4), .edge = x };
    bindings[1] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    signature =
        (struct tare_signature){ "serving_default", "tensorflow/serving/predict", bindings, 1, bindings + 1, 1, NULL };
    model->signatures = &signature;
    model->n_signatures = 1;
}

int main(int argc, char **argv) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    const struct tare_shape shape = tare_shape_make(2, -1, 4);
    struct tare_node *x;
    if (!model || argc < 3) {
        fprintf(stderr, "usage: hostile_model loop|calls|product|fill|splat DIR [SIZE] (see its source)\n");
        return 2;
    }
    x = tare_graph_add(model->main, "Placeholder", "x");
    mini_ok(tare_node_set_type(x, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(x, "shape", &shape));
    mini_ok(tare_node_resolve(x));
    add_signature(model, (struct tare_edge){ x, 0 },
                  make(model, argv[1], (struct tare_edge){ x, 0 }, argc > 3 ? strtoll(argv[3], NULL, 10) : 0));
    mini_ok(tare_saved_model_export(model, argv[2], NULL));
    tare_model_free(model);
    return 0;
}
