/* Writes the SavedModel of a known network with random weights, for measuring without anybody's files:
 *
 *   network_model resnet50|mobilenetv2|dense OUT
 *
 * ResNet-50 (the stride in the 3x3 convolution) and MobileNetV2 of width 1, both for 224x224x3 and 1,000 classes, and
 * four dense layers of 4,096 units, whose weights are larger than caches. Batch
 * normalisation is in weight and bias already, as every runtime has it before the first run. The weights are the same
 * numbers every time, and large enough that the activations neither die nor grow. */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "graph/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIABLES = 256, CLASSES = 1000, UNITS = 4096, DENSE_LAYERS = 4 };

struct network {
    struct tare_shape input;
    struct tare_graph_model *model;
    struct tare_graph *body;
    struct tare_edge handles[MOST_VARIABLES];
    uint64_t random;
};

static float uniform(struct network *net, double reach) {
    net->random = net->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(((double)(net->random >> 40) / (1 << 24) * 2 - 1) * reach);
}

/* ---- variables ---- */

static tare_status add_handle(struct network *net, struct tare_variable *variable) {
    struct tare_node *node = tare_graph_add(net->model->main, "VarHandleOp", variable->shared_name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(node, "shape", &variable->shape));
    TARE_TRY(tare_node_set_string(node, "shared_name", variable->shared_name, strlen(variable->shared_name)));
    TARE_TRY(tare_node_resolve(node));
    variable->node = node;
    net->handles[net->model->n_variables++] = tare_node_output0(node);
    return TARE_OK;
}

/* A variable of random values within `reach` of zero, captured by the body; *read is its value there. */
static tare_status add_weight(struct network *net, struct tare_edge *read, struct tare_shape shape, double reach) {
    struct tare_arena *arena = &net->model->arena;
    const int number = (int)net->model->n_variables;
    struct tare_variable *variable = &net->model->variables[number];
    struct tare_node *arg = tare_graph_add_arg(net->body, "captured", TARE_DT_RESOURCE), *node;
    if (number == MOST_VARIABLES) return TARE_FAIL(TARE_INTERNAL, "too many variables");
    *variable = (struct tare_variable){
        .shared_name = tare_arena_printf(arena, "weight%d", number),
        .key = tare_arena_printf(arena, "weight%d/.ATTRIBUTES/VARIABLE_VALUE", number),
        .dtype = TARE_DT_FLOAT,
        .shape = shape,
        .object_id = -1,
    };
    if (!arg || !variable->shared_name || !variable->key) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new(&variable->value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < variable->value.elements; i++)
        TARE_DATA(float, &variable->value)[i] = uniform(net, reach);
    TARE_TRY(add_handle(net, variable));
    node = tare_graph_add(net->body, "ReadVariableOp", "read");
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(node, tare_node_output0(arg)));
    TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    *read = tare_node_output0(node);
    return tare_node_resolve(node);
}

/* ---- nodes ---- */

/* x = op(x, second), second.node may be NULL; the caller sets further attributes and resolves. */
static tare_status add_node(struct network *net, struct tare_node **node, const char *op, struct tare_edge x,
                            struct tare_edge second) {
    *node = tare_graph_add(net->body, op, op);
    if (!*node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(*node, x));
    if (second.node) TARE_TRY(tare_node_add_input(*node, second));
    return tare_node_set_type(*node, "T", TARE_DT_FLOAT);
}

static tare_status apply(struct network *net, struct tare_edge *x, const char *op, struct tare_edge second) {
    struct tare_node *node;
    TARE_TRY(add_node(net, &node, op, *x, second));
    *x = tare_node_output0(node);
    return tare_node_resolve(node);
}

/* A convolution with bias; `groups` of 1, or as many as channels. `gain` is the output's size over the input's. */
struct layer {
    int64_t in, out, kernel, stride;
    bool depthwise;
    const char *activation; /* NULL: none */
    double gain;
};

static tare_status add_conv(struct network *net, struct tare_edge *x, struct layer layer) {
    const int64_t strides[4] = { 1, layer.stride, layer.stride, 1 };
    const int64_t taps = layer.kernel * layer.kernel * (layer.depthwise ? 1 : layer.in);
    struct tare_edge weight, bias;
    struct tare_node *node;
    TARE_TRY(add_weight(net, &weight,
                        tare_shape_make(4, layer.kernel, layer.kernel, layer.in, layer.depthwise ? 1 : layer.out),
                        layer.gain * sqrt(6.0 / (double)taps)));
    TARE_TRY(add_weight(net, &bias, tare_shape_make(1, layer.out), 0.1));
    TARE_TRY(add_node(net, &node, layer.depthwise ? "DepthwiseConv2dNative" : "Conv2D", *x, weight));
    TARE_TRY(tare_node_set_int_list(node, "strides", strides, 4));
    TARE_TRY(tare_node_set_string(node, "padding", "SAME", 4));
    TARE_TRY(tare_node_resolve(node));
    *x = tare_node_output0(node);
    TARE_TRY(apply(net, x, "BiasAdd", bias));
    return layer.activation ? apply(net, x, layer.activation, (struct tare_edge){ 0 }) : TARE_OK;
}

static tare_status add_max_pool(struct network *net, struct tare_edge *x) {
    static const int64_t size[4] = { 1, 3, 3, 1 }, strides[4] = { 1, 2, 2, 1 };
    struct tare_node *node;
    TARE_TRY(add_node(net, &node, "MaxPool", *x, (struct tare_edge){ 0 }));
    TARE_TRY(tare_node_set_int_list(node, "ksize", size, 4));
    TARE_TRY(tare_node_set_int_list(node, "strides", strides, 4));
    TARE_TRY(tare_node_set_string(node, "padding", "SAME", 4));
    *x = tare_node_output0(node);
    return tare_node_resolve(node);
}

/* Mean over height and width, the classes' product, softmax. */
static tare_status add_head(struct network *net, struct tare_edge *x, int64_t channels) {
    const struct tare_shape two = tare_shape_make(1, 2);
    struct tare_tensor axes;
    struct tare_node *constant;
    struct tare_edge weight, bias;
    TARE_TRY(tare_tensor_new(&axes, TARE_DT_INT32, &two));
    TARE_DATA(int32_t, &axes)[0] = 1, TARE_DATA(int32_t, &axes)[1] = 2;
    constant = tare_graph_add_const(net->body, "axes", &axes);
    tare_tensor_reset(&axes);
    if (!constant) return TARE_NO_MEMORY;
    TARE_TRY(apply(net, x, "Mean", tare_node_output0(constant)));
    TARE_TRY(add_weight(net, &weight, tare_shape_make(2, channels, (int64_t)CLASSES), sqrt(3.0 / (double)channels)));
    TARE_TRY(add_weight(net, &bias, tare_shape_make(1, (int64_t)CLASSES), 0.1));
    TARE_TRY(apply(net, x, "MatMul", weight));
    TARE_TRY(apply(net, x, "BiasAdd", bias));
    return apply(net, x, "Softmax", (struct tare_edge){ 0 });
}

/* ---- networks ---- */

static tare_status add_bottleneck(struct network *net, struct tare_edge *x, int64_t in, int64_t inner, int64_t stride) {
    const int64_t out = inner * 4;
    struct tare_edge shortcut = *x;
    if (in != out) TARE_TRY(add_conv(net, &shortcut, (struct layer){ in, out, 1, stride, false, NULL, 0.7 }));
    TARE_TRY(add_conv(net, x, (struct layer){ in, inner, 1, 1, false, "Relu", 1 }));
    TARE_TRY(add_conv(net, x, (struct layer){ inner, inner, 3, stride, false, "Relu", 1 }));
    TARE_TRY(add_conv(net, x, (struct layer){ inner, out, 1, 1, false, NULL, 0.3 }));
    TARE_TRY(apply(net, x, "AddV2", shortcut));
    return apply(net, x, "Relu", (struct tare_edge){ 0 });
}

static tare_status build_resnet50(struct network *net, struct tare_edge *x) {
    static const int blocks[4] = { 3, 4, 6, 3 };
    int64_t channels = 64;
    TARE_TRY(add_conv(net, x, (struct layer){ 3, 64, 7, 2, false, "Relu", 1 }));
    TARE_TRY(add_max_pool(net, x));
    for (int stage = 0; stage < 4; stage++) {
        const int64_t inner = (int64_t)64 << stage;
        for (int i = 0; i < blocks[stage]; i++, channels = inner * 4)
            TARE_TRY(add_bottleneck(net, x, channels, inner, i == 0 && stage > 0 ? 2 : 1));
    }
    return add_head(net, x, channels);
}

static tare_status add_inverted(struct network *net, struct tare_edge *x, int64_t in, int64_t out, int64_t expansion,
                                int64_t stride) {
    const struct tare_edge shortcut = *x;
    const int64_t inner = in * expansion;
    if (expansion > 1) TARE_TRY(add_conv(net, x, (struct layer){ in, inner, 1, 1, false, "Relu6", 1 }));
    TARE_TRY(add_conv(net, x, (struct layer){ inner, inner, 3, stride, true, "Relu6", 1 }));
    TARE_TRY(add_conv(net, x, (struct layer){ inner, out, 1, 1, false, NULL, 0.8 }));
    return stride == 1 && in == out ? apply(net, x, "AddV2", shortcut) : TARE_OK;
}

static tare_status build_mobilenetv2(struct network *net, struct tare_edge *x) {
    /* expansion, channels, blocks, stride of the first */
    static const int stages[7][4] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                                      { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    int64_t channels = 32;
    TARE_TRY(add_conv(net, x, (struct layer){ 3, 32, 3, 2, false, "Relu6", 1 }));
    for (int s = 0; s < 7; s++) {
        for (int i = 0; i < stages[s][2]; i++, channels = stages[s][1])
            TARE_TRY(add_inverted(net, x, channels, stages[s][1], stages[s][0], i == 0 ? stages[s][3] : 1));
    }
    TARE_TRY(add_conv(net, x, (struct layer){ channels, 1280, 1, 1, false, "Relu6", 1 }));
    return add_head(net, x, 1280);
}

static tare_status add_dense(struct network *net, struct tare_edge *x, int64_t columns) {
    struct tare_edge weight, bias;
    TARE_TRY(add_weight(net, &weight, tare_shape_make(2, (int64_t)UNITS, columns), sqrt(6.0 / UNITS)));
    TARE_TRY(add_weight(net, &bias, tare_shape_make(1, columns), 0.1));
    TARE_TRY(apply(net, x, "MatMul", weight));
    return apply(net, x, "BiasAdd", bias);
}

static tare_status build_dense(struct network *net, struct tare_edge *x) {
    for (int i = 0; i < DENSE_LAYERS; i++) {
        TARE_TRY(add_dense(net, x, UNITS));
        TARE_TRY(apply(net, x, "Relu", (struct tare_edge){ 0 }));
    }
    TARE_TRY(add_dense(net, x, CLASSES));
    return apply(net, x, "Softmax", (struct tare_edge){ 0 });
}

static const struct {
    const char *name;
    tare_status (*build)(struct network *net, struct tare_edge *x);
    struct tare_shape input;
} networks[] = {
    { "resnet50", build_resnet50, { .rank = 4, .dims = { -1, 224, 224, 3 } } },
    { "mobilenetv2", build_mobilenetv2, { .rank = 4, .dims = { -1, 224, 224, 3 } } },
    { "dense", build_dense, { .rank = 2, .dims = { -1, UNITS } } },
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* ---- the model ---- */

static tare_status add_call(struct network *net, struct tare_node *image, struct tare_node **call) {
    int dtypes[MOST_VARIABLES + 1] = { TARE_DT_FLOAT };
    *call = tare_graph_add(net->model->main, "StatefulPartitionedCall", "StatefulPartitionedCall");
    if (!*call) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(*call, tare_node_output0(image)));
    for (size_t v = 0; v < net->model->n_variables; v++) {
        TARE_TRY(tare_node_add_input(*call, net->handles[v]));
        dtypes[v + 1] = TARE_DT_RESOURCE;
    }
    TARE_TRY(tare_node_set_type_list(*call, "Tin", dtypes, net->model->n_variables + 1));
    TARE_TRY(tare_node_set_type_list(*call, "Tout", dtypes, 1));
    TARE_TRY(tare_node_set_func(*call, "f", net->body->name));
    return tare_node_resolve(*call);
}

static tare_status add_signature(struct network *net) {
    struct tare_arena *arena = &net->model->arena;
    struct tare_signature *signature = TARE_NEW(arena, struct tare_signature);
    struct tare_binding *bindings = TARE_NEW_ARRAY(arena, struct tare_binding, 2);
    struct tare_node *image = tare_graph_add(net->model->main, "Placeholder", "serving_default_image"), *call;
    if (!signature || !bindings || !image) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(image, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(image, "shape", &net->input));
    TARE_TRY(tare_node_resolve(image));
    TARE_TRY(add_call(net, image, &call));
    bindings[0] = (struct tare_binding){
        .key = "image", .dtype = TARE_DT_FLOAT, .shape = net->input, .edge = tare_node_output0(image)
    };
    bindings[1] = (struct tare_binding){ .key = "probabilities",
                                         .dtype = TARE_DT_FLOAT,
                                         .shape = tare_shape_make(2, (int64_t)-1, (int64_t)CLASSES),
                                         .edge = tare_node_output0(call) };
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .inputs = &bindings[0],
                                          .n_inputs = 1,
                                          .outputs = &bindings[1],
                                          .n_outputs = 1 };
    net->model->signatures = signature;
    net->model->n_signatures = 1;
    return TARE_OK;
}

static tare_status make(struct network *net, int which, const char *out) {
    const struct tare_export_options overwrite = { .overwrite = true };
    struct tare_edge x;
    net->model->variables = TARE_NEW_ARRAY(&net->model->arena, struct tare_variable, MOST_VARIABLES);
    net->body = tare_model_add_function(net->model, "__inference_network_1");
    if (!net->model->variables || !net->body) return TARE_NO_MEMORY;
    net->body->is_stateful = true;
    x = tare_node_output0(tare_graph_add_arg(net->body, "image", TARE_DT_FLOAT));
    if (!x.node) return TARE_NO_MEMORY;
    net->input = networks[which].input;
    TARE_TRY(networks[which].build(net, &x));
    TARE_TRY(tare_graph_add_return(net->body, "probabilities", TARE_DT_FLOAT, x));
    TARE_TRY(add_signature(net));
    return tare_saved_model_export(net->model, out, &overwrite);
}

int main(int argc, char **argv) {
    struct network net = { .random = 1 };
    int which = 0;
    tare_status status;
    while (argc == 3 && which < N_NETWORKS && strcmp(argv[1], networks[which].name) != 0)
        which++;
    if (argc != 3 || which == N_NETWORKS) {
        fprintf(stderr, "usage: network_model resnet50|mobilenetv2|dense OUT\n");
        return 2;
    }
    net.model = tare_model_new(tare_ops_builtin());
    status = net.model ? make(&net, which, argv[2]) : TARE_NO_MEMORY;
    if (status != TARE_OK) fprintf(stderr, "network_model: %s\n", tare_error_text());
    tare_model_free(net.model);
    return status != TARE_OK;
}
