/* Builds the SavedModel of the glyph network from its weights, with the library's graph IR and exporter.
 *
 *   make_savedmodel WEIGHTS_FOLDER OUT
 *
 * The result has the form of TF2 Keras exports: variables captured as resource handles, a function tpu_func (alias
 * "tpu_func") called by a signature wrapper, an object graph and a checkpoint. */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "datasets/npy.h"
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 128, MAX_VARIABLES = 256, NAME_SIZE = 64 };

/* One line of architecture.txt. */
struct layer {
    char kind[NAME_SIZE], name[NAME_SIZE], from[NAME_SIZE];
    int height, width, channels, kernel, stride, filters, units;
    float epsilon;
};

struct builder {
    struct tare_graph_model *model;
    struct tare_graph *body; /* tpu_func */
    const char *folder;
    struct layer layers[MAX_LAYERS];
    size_t n_layers;
    struct tare_edge outputs[MAX_LAYERS]; /* of each layer */
    struct tare_variable variables[MAX_VARIABLES];
    struct tare_node *captures[MAX_VARIABLES]; /* arguments of tpu_func */
    size_t n_variables;
    int weighted; /* layers with weights so far: part of the checkpoint keys */
};

static struct tare_edge out0(struct tare_node *node) {
    return (struct tare_edge){ node, 0 };
}

/* ---- architecture.txt ---- */

static void set_option(struct layer *layer, const char *key, const char *value) {
    if (strcmp(key, "name") == 0) snprintf(layer->name, NAME_SIZE, "%s", value);
    if (strcmp(key, "from") == 0) snprintf(layer->from, NAME_SIZE, "%s", value);
    if (strcmp(key, "height") == 0) layer->height = atoi(value);
    if (strcmp(key, "width") == 0) layer->width = atoi(value);
    if (strcmp(key, "channels") == 0) layer->channels = atoi(value);
    if (strcmp(key, "kernel") == 0) layer->kernel = atoi(value);
    if (strcmp(key, "stride") == 0) layer->stride = atoi(value);
    if (strcmp(key, "filters") == 0) layer->filters = atoi(value);
    if (strcmp(key, "units") == 0) layer->units = atoi(value);
    if (strcmp(key, "epsilon") == 0) layer->epsilon = (float)atof(value);
}

static tare_status read_architecture(struct builder *b) {
    char path[512], line[512];
    FILE *file;
    snprintf(path, sizeof path, "%s/architecture.txt", b->folder);
    file = fopen(path, "r");
    if (!file) return TARE_FAIL(TARE_NOT_FOUND, "%s cannot be opened", path);
    while (fgets(line, sizeof line, file) && b->n_layers < MAX_LAYERS) {
        struct layer *layer = &b->layers[b->n_layers];
        char *save = NULL, *word = strtok_r(line, " \n", &save);
        if (!word) continue;
        snprintf(layer->kind, NAME_SIZE, "%s", word);
        while ((word = strtok_r(NULL, " \n", &save))) {
            char *equals = strchr(word, '=');
            if (!equals) continue;
            *equals = '\0';
            set_option(layer, word, equals + 1);
        }
        b->n_layers++;
    }
    fclose(file);
    return b->n_layers ? TARE_OK : TARE_FAIL(TARE_CORRUPT, "%s has no layers", path);
}

/* ---- variables ---- */

/* Reads FOLDER/<layer>_<part>.npy as a variable, captures it in tpu_func, and gives its value there. */
static tare_status add_variable(struct tare_edge *out, struct builder *b, const char *layer, const char *part) {
    struct tare_variable *variable = &b->variables[b->n_variables];
    struct tare_arena *arena = &b->model->arena;
    struct tare_node *read;
    char path[512];
    const char *arg;
    if (b->n_variables == MAX_VARIABLES) return TARE_FAIL(TARE_UNSUPPORTED, "too many variables");
    snprintf(path, sizeof path, "%s/%s_%s.npy", b->folder, layer, part);
    TARE_TRY(tare_npy_read(&variable->value, path));
    variable->shared_name = tare_arena_printf(arena, "%s/%s", layer, part);
    variable->key = tare_arena_printf(arena, "layer_with_weights-%d/%s/.ATTRIBUTES/VARIABLE_VALUE", b->weighted, part);
    variable->dtype = variable->value.dtype;
    variable->shape = variable->value.shape;
    variable->object_id = -1;
    arg = tare_arena_printf(arena, "%s_%s_resource", layer, part);
    if (!variable->shared_name || !variable->key || !arg) return TARE_NO_MEMORY;
    b->captures[b->n_variables] = tare_graph_add_arg(b->body, arg, TARE_DT_RESOURCE);
    read = tare_graph_add(b->body, "ReadVariableOp", tare_arena_printf(arena, "%s/%s/ReadVariableOp", layer, part));
    if (!b->captures[b->n_variables] || !read) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(read, out0(b->captures[b->n_variables])));
    TARE_TRY(tare_node_set_type(read, "dtype", variable->dtype));
    b->n_variables++;
    *out = out0(read);
    return tare_node_resolve(read);
}

/* ---- layers ---- */

static tare_status add_op(struct tare_node **out, struct builder *b, const char *op, const char *name,
                          const struct tare_edge *inputs, size_t n_inputs) {
    *out = tare_graph_add(b->body, op, name);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++)
        TARE_TRY(tare_node_add_input(*out, inputs[i]));
    return tare_node_set_type(*out, "T", TARE_DT_FLOAT);
}

static tare_status add_convolution(struct tare_edge *out, struct builder *b, const struct layer *layer,
                                   struct tare_edge x) {
    bool depthwise = strcmp(layer->kind, "depthwise") == 0;
    const int64_t strides[] = { 1, layer->stride, layer->stride, 1 };
    struct tare_edge inputs[] = { x, { NULL, 0 } };
    struct tare_node *node;
    TARE_TRY(add_variable(&inputs[1], b, layer->name, "kernel"));
    b->weighted++;
    TARE_TRY(add_op(&node, b, depthwise ? "DepthwiseConv2dNative" : "Conv2D", layer->name, inputs, 2));
    TARE_TRY(tare_node_set_int_list(node, "strides", strides, 4));
    TARE_TRY(tare_node_set_string(node, "padding", "SAME", 4));
    *out = out0(node);
    return tare_node_resolve(node);
}

static tare_status add_batch_norm(struct tare_edge *out, struct builder *b, const struct layer *layer,
                                  struct tare_edge x) {
    static const char *const parts[] = { "gamma", "beta", "moving_mean", "moving_variance" };
    struct tare_edge inputs[5] = { x };
    struct tare_node *node;
    for (int i = 0; i < 4; i++)
        TARE_TRY(add_variable(&inputs[i + 1], b, layer->name, parts[i]));
    b->weighted++;
    TARE_TRY(add_op(&node, b, "FusedBatchNormV3", layer->name, inputs, 5));
    TARE_TRY(tare_node_set_type(node, "U", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_float(node, "epsilon", layer->epsilon));
    TARE_TRY(tare_node_set_bool(node, "is_training", false));
    *out = out0(node);
    return tare_node_resolve(node);
}

static tare_status add_dense(struct tare_edge *out, struct builder *b, const struct layer *layer, struct tare_edge x) {
    struct tare_edge inputs[] = { x, { NULL, 0 } }, biased[2];
    struct tare_node *product, *sum;
    TARE_TRY(add_variable(&inputs[1], b, layer->name, "kernel"));
    TARE_TRY(add_op(&product, b, "MatMul", layer->name, inputs, 2));
    TARE_TRY(tare_node_resolve(product));
    biased[0] = out0(product);
    TARE_TRY(add_variable(&biased[1], b, layer->name, "bias"));
    b->weighted++;
    TARE_TRY(add_op(&sum, b, "BiasAdd", tare_arena_printf(&b->model->arena, "%s/BiasAdd", layer->name), biased, 2));
    *out = out0(sum);
    return tare_node_resolve(sum);
}

static tare_status add_mean(struct tare_edge *out, struct builder *b, const struct layer *layer, struct tare_edge x) {
    const int32_t axes[] = { 1, 2 };
    struct tare_shape shape = tare_shape_make(1, 2);
    struct tare_tensor value;
    struct tare_node *constant, *node;
    struct tare_edge inputs[2] = { x };
    TARE_TRY(tare_tensor_from(&value, TARE_DT_INT32, &shape, axes));
    constant = tare_graph_add_const(b->body, tare_arena_printf(&b->model->arena, "%s/axes", layer->name), &value);
    tare_tensor_reset(&value);
    if (!constant) return TARE_NO_MEMORY;
    inputs[1] = out0(constant);
    TARE_TRY(add_op(&node, b, "Mean", layer->name, inputs, 2));
    *out = out0(node);
    return tare_node_resolve(node);
}

static tare_status add_simple(struct tare_edge *out, struct builder *b, const char *op, const struct layer *layer,
                              const struct tare_edge *inputs, size_t n_inputs) {
    struct tare_node *node;
    TARE_TRY(add_op(&node, b, op, layer->name, inputs, n_inputs));
    *out = out0(node);
    return tare_node_resolve(node);
}

static tare_status find_layer(struct tare_edge *out, const struct builder *b, const char *name) {
    for (size_t i = 0; i < b->n_layers; i++)
        if (strcmp(b->layers[i].name, name) == 0 && b->outputs[i].node) return *out = b->outputs[i], TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "no layer '%s' above", name);
}

static tare_status add_layer(struct builder *b, size_t i) {
    const struct layer *layer = &b->layers[i];
    struct tare_edge *out = &b->outputs[i], pair[2] = { i ? b->outputs[i - 1] : (struct tare_edge){ NULL, 0 } };
    if (strcmp(layer->kind, "conv") == 0 || strcmp(layer->kind, "depthwise") == 0)
        return add_convolution(out, b, layer, pair[0]);
    if (strcmp(layer->kind, "bn") == 0) return add_batch_norm(out, b, layer, pair[0]);
    if (strcmp(layer->kind, "dense") == 0) return add_dense(out, b, layer, pair[0]);
    if (strcmp(layer->kind, "global_average_pool") == 0) return add_mean(out, b, layer, pair[0]);
    if (strcmp(layer->kind, "relu6") == 0) return add_simple(out, b, "Relu6", layer, pair, 1);
    if (strcmp(layer->kind, "softmax") == 0) return add_simple(out, b, "Softmax", layer, pair, 1);
    if (strcmp(layer->kind, "add") == 0) {
        TARE_TRY(find_layer(&pair[1], b, layer->from));
        return add_simple(out, b, "AddV2", layer, pair, 2);
    }
    return TARE_FAIL(TARE_UNSUPPORTED, "layer kind '%s' is not known", layer->kind);
}

/* ---- functions, main graph, signature ---- */

static tare_status add_call(struct tare_node **out, struct tare_graph *graph, const struct tare_graph *callee,
                            const struct tare_edge *inputs, size_t n_inputs) {
    struct tare_node *call = tare_graph_add(graph, "StatefulPartitionedCall", "StatefulPartitionedCall");
    int dtypes[MAX_VARIABLES + 1], result = TARE_DT_FLOAT;
    if (!call) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++) {
        TARE_TRY(tare_node_add_input(call, inputs[i]));
        dtypes[i] = tare_edge_dtype(inputs[i]);
    }
    TARE_TRY(tare_node_set_type_list(call, "Tin", dtypes, n_inputs));
    TARE_TRY(tare_node_set_type_list(call, "Tout", &result, 1));
    TARE_TRY(tare_node_set_func(call, "f", callee->name));
    *out = call;
    return tare_node_resolve(call);
}

static tare_status return_identity(struct tare_graph *function, struct tare_edge value) {
    struct tare_node *identity = tare_graph_add(function, "Identity", "Identity");
    if (!identity) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(identity, value));
    TARE_TRY(tare_node_set_type(identity, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_resolve(identity));
    return tare_graph_add_return(function, "identity", TARE_DT_FLOAT, out0(identity));
}

/* _input_shapes, as Keras exports it: the image's shape, and scalars for the handles. */
static tare_status list_input_shapes(struct tare_graph *function, const struct layer *input) {
    struct tare_arena *arena = &function->model->arena;
    const struct tare_shape image = tare_shape_make(4, -1, input->height, input->width, input->channels);
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, function->n_args);
    union tare_attr_item *items = TARE_NEW_ARRAY(arena, union tare_attr_item, function->n_args);
    struct tare_attr *attrs = tare_arena_extend(arena, function->attrs, function->n_attrs, 1, sizeof *function->attrs);
    if (!shapes || !items || !attrs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        shapes[i] = i ? tare_shape_scalar() : image;
        items[i].shape = &shapes[i];
    }
    attrs[function->n_attrs++] = (struct tare_attr){
        .name = "_input_shapes", .kind = TARE_ATTR_SHAPE, .is_list = true, .count = function->n_args, .items = items
    };
    function->attrs = attrs;
    function->attrs_capacity = function->n_attrs;
    return TARE_OK;
}

static tare_status build_body(struct builder *b) {
    b->body = tare_model_add_function(b->model, "__inference_tpu_func_101");
    if (!b->body) return TARE_NO_MEMORY;
    b->body->is_stateful = true;
    b->outputs[0].node = tare_graph_add_arg(b->body, b->layers[0].name, TARE_DT_FLOAT);
    if (!b->outputs[0].node) return TARE_NO_MEMORY;
    for (size_t i = 1; i < b->n_layers; i++)
        TARE_TRY(tare_error_prefix(add_layer(b, i), "layer %s", b->layers[i].name));
    TARE_TRY(list_input_shapes(b->body, &b->layers[0]));
    return return_identity(b->body, b->outputs[b->n_layers - 1]);
}

static tare_status build_wrapper(struct tare_graph **out, struct builder *b) {
    struct tare_graph *wrapper = tare_model_add_function(b->model, "__inference_signature_wrapper_202");
    struct tare_edge inputs[MAX_VARIABLES + 1];
    struct tare_node *call;
    if (!wrapper) return TARE_NO_MEMORY;
    wrapper->is_stateful = true;
    for (size_t i = 0; i < b->body->n_args; i++) {
        struct tare_node *arg =
            tare_graph_add_arg(wrapper, i ? "unknown" : b->layers[0].name, b->body->args[i]->output_dtypes[0]);
        if (!arg) return TARE_NO_MEMORY;
        inputs[i] = out0(arg);
    }
    TARE_TRY(add_call(&call, wrapper, b->body, inputs, b->body->n_args));
    *out = wrapper;
    TARE_TRY(list_input_shapes(wrapper, &b->layers[0]));
    return return_identity(wrapper, out0(call));
}

static tare_status add_handle(struct tare_edge *out, struct builder *b, struct tare_variable *variable) {
    struct tare_node *node = tare_graph_add(b->model->main, "VarHandleOp", variable->shared_name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", variable->dtype));
    TARE_TRY(tare_node_set_shape(node, "shape", &variable->shape));
    TARE_TRY(tare_node_set_string(node, "shared_name", variable->shared_name, strlen(variable->shared_name)));
    variable->node = node;
    *out = out0(node);
    return tare_node_resolve(node);
}

static tare_status build_main(struct builder *b, const struct tare_graph *wrapper) {
    const struct layer *input = &b->layers[0];
    struct tare_shape in = tare_shape_make(4, -1, input->height, input->width, input->channels);
    struct tare_shape out = tare_shape_make(2, -1, b->layers[b->n_layers - 2].units);
    struct tare_edge inputs[MAX_VARIABLES + 1];
    struct tare_arena *arena = &b->model->arena;
    struct tare_signature *signature = TARE_NEW(arena, struct tare_signature);
    struct tare_binding *bindings = TARE_NEW_ARRAY(arena, struct tare_binding, 2);
    struct tare_alias *alias = TARE_NEW(arena, struct tare_alias);
    struct tare_node *placeholder = tare_graph_add(b->model->main, "Placeholder", "serving_default_image"), *call;
    if (!signature || !bindings || !alias || !placeholder) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(placeholder, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(placeholder, "shape", &in));
    TARE_TRY(tare_node_resolve(placeholder));
    inputs[0] = out0(placeholder);
    b->model->variables = tare_arena_extend(arena, b->variables, b->n_variables, 1, sizeof *b->variables);
    if (!b->model->variables) return TARE_NO_MEMORY;
    b->model->n_variables = b->n_variables;
    for (size_t i = 0; i < b->n_variables; i++)
        TARE_TRY(add_handle(&inputs[i + 1], b, &b->model->variables[i]));
    TARE_TRY(add_call(&call, b->model->main, wrapper, inputs, b->n_variables + 1));
    bindings[0] = (struct tare_binding){ .key = input->name, .dtype = TARE_DT_FLOAT, .shape = in, .edge = inputs[0] };
    bindings[1] = (struct tare_binding){
        .key = b->layers[b->n_layers - 1].name, .dtype = TARE_DT_FLOAT, .shape = out, .edge = out0(call)
    };
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .inputs = &bindings[0],
                                          .n_inputs = 1,
                                          .outputs = &bindings[1],
                                          .n_outputs = 1 };
    *alias = (struct tare_alias){ b->body->name, "tpu_func" };
    b->model->signatures = signature;
    b->model->n_signatures = 1;
    b->model->aliases = alias;
    b->model->n_aliases = 1;
    return TARE_OK;
}

static tare_status make(struct builder *b, const char *out) {
    const struct tare_export_options overwrite = { .overwrite = true };
    struct tare_graph *wrapper;
    TARE_TRY(read_architecture(b));
    TARE_TRY(build_body(b));
    TARE_TRY(build_wrapper(&wrapper, b));
    TARE_TRY(build_main(b, wrapper));
    return tare_saved_model_export(b->model, out, &overwrite);
}

int main(int argc, char **argv) {
    static struct builder builder;
    tare_status status;
    if (argc != 3) {
        fprintf(stderr, "usage: make_savedmodel WEIGHTS_FOLDER OUT\n");
        return 2;
    }
    builder.folder = argv[1];
    builder.model = tare_model_new(tare_ops_builtin());
    status = builder.model ? make(&builder, argv[2]) : TARE_NO_MEMORY;
    tare_model_free(builder.model);
    if (status != TARE_OK) fprintf(stderr, "make_savedmodel: %s\n", tare_error_text());
    return status != TARE_OK;
}
