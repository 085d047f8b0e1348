/* Writes SavedModels with ops of a library, and data to feed them, for command line tests:
 *
 *   op_model chain DIR LIB.so OP… / OP…
 *       the signature takes a float x; each OP (one float input and output, all attributes with defaults) takes what
 * the one before gives: those in front of the / in the main graph, those behind it in a function. MatMul is by a
 * constant op_model array FILE.npy TENSOR TENSOR as in support/tensor_text.h: "int32[2,2] 1 2 3 4" op_model samples
 * FILE.tfrecord KEY TENSOR N N records of KEY with that value
 *
 * The definitions come from the library, as they come from tf.load_op_library where such a model is made; what is
 * written does not need the library to be opened. */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "base/alloc.h"
#include "datasets/npy.h"
#include "datasets/sample.h"
#include "datasets/tfrecord.h"
#include "interpreter/plugins/plugin.h"
#include "support/tensor_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tare_status add_weights(struct tare_node *node) {
    static const float values[] = { 0.5f, -0.25f, 0.75f, 1 };
    const struct tare_shape shape = tare_shape_make(2, 2, 2);
    struct tare_tensor weights;
    struct tare_node *constant;
    TARE_TRY(tare_tensor_from(&weights, TARE_DT_FLOAT, &shape, values));
    constant = tare_graph_add_const(node->graph, "weights", &weights);
    tare_tensor_reset(&weights);
    if (!constant) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(node, (struct tare_edge){ constant, 0 }));
    return tare_node_set_type(node, "T", TARE_DT_FLOAT);
}

static tare_status add_chain(struct tare_graph *graph, struct tare_edge *edge, char *const *ops, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct tare_node *node = tare_graph_add(graph, ops[i], ops[i]);
        if (!node || !node->def) return TARE_FAIL(TARE_NOT_FOUND, "there is no op %s", ops[i]);
        TARE_TRY(tare_node_add_input(node, *edge));
        if (strcmp(ops[i], "MatMul") == 0) TARE_TRY(add_weights(node));
        TARE_TRY(tare_node_resolve(node));
        *edge = (struct tare_edge){ node, 0 };
    }
    return TARE_OK;
}

static tare_status add_call(struct tare_graph_model *model, struct tare_edge *edge, char *const *ops, size_t count) {
    const int dtype = TARE_DT_FLOAT;
    struct tare_graph *inner = tare_model_add_function(model, "inner");
    struct tare_node *arg = inner ? tare_graph_add_arg(inner, "x", dtype) : NULL;
    struct tare_node *call = tare_graph_add(model->main, "PartitionedCall", "call");
    struct tare_edge inside = { arg, 0 };
    if (!arg || !call) return TARE_NO_MEMORY;
    TARE_TRY(add_chain(inner, &inside, ops, count));
    TARE_TRY(tare_graph_add_return(inner, "y", dtype, inside));
    TARE_TRY(tare_node_set_func(call, "f", "inner"));
    TARE_TRY(tare_node_set_type_list(call, "Tin", &dtype, 1));
    TARE_TRY(tare_node_set_type_list(call, "Tout", &dtype, 1));
    TARE_TRY(tare_node_add_input(call, *edge));
    TARE_TRY(tare_node_resolve(call));
    *edge = (struct tare_edge){ call, 0 };
    return TARE_OK;
}

static tare_status add_chains(struct tare_graph_model *model, char *const *ops, size_t count) {
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_binding *bindings = TARE_NEW_ARRAY(&model->arena, struct tare_binding, 2);
    struct tare_node *x = tare_graph_add(model->main, "Placeholder", "x");
    const struct tare_shape unknown = tare_shape_make(2, -1, 2);
    struct tare_edge edge = { x, 0 };
    size_t outer = 0;
    if (!signature || !bindings || !x) return TARE_NO_MEMORY;
    while (outer < count && strcmp(ops[outer], "/") != 0)
        outer++;
    TARE_TRY(tare_node_set_type(x, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(x, "shape", &unknown));
    TARE_TRY(tare_node_resolve(x));
    bindings[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = unknown, .edge = edge };
    TARE_TRY(add_chain(model->main, &edge, ops, outer));
    if (outer < count) TARE_TRY(add_call(model, &edge, ops + outer + 1, count - outer - 1));
    bindings[1] =
        (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = edge };
    *signature =
        (struct tare_signature){ "serving_default", "tensorflow/serving/predict", bindings, 1, bindings + 1, 1, NULL };
    model->signatures = signature;
    model->n_signatures = 1;
    return TARE_OK;
}

static tare_status write_model(int argc, char *const *argv) {
    struct tare_plugins *plugins = tare_plugins_new(tare_ops_builtin());
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    tare_status status = plugins && model ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_plugins_load(plugins, argv[3]);
    if (status == TARE_OK) model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    if (status == TARE_OK) status = add_chains(model, argv + 4, (size_t)(argc - 4));
    if (status == TARE_OK) status = tare_saved_model_export(model, argv[2], NULL);
    tare_model_free(model);
    tare_plugins_free(plugins);
    return status;
}

static tare_status write_array(const char *path, const char *text) {
    struct tare_tensor tensor;
    tare_status status;
    TARE_TRY(tensor_from_text(&tensor, text));
    status = tare_npy_write(path, &tensor);
    tare_tensor_reset(&tensor);
    return status;
}

static tare_status write_samples(const char *path, const char *key, const char *text, int count) {
    struct tare_tensor tensor;
    struct tare_tfrecord_writer *writer = NULL;
    void *data = NULL;
    size_t size;
    tare_status status;
    TARE_TRY(tensor_from_text(&tensor, text));
    status = tare_sample_encode(&data, &size, &key, &tensor, 1);
    if (status == TARE_OK) status = tare_tfrecord_create(&writer, path);
    for (int i = 0; i < count && status == TARE_OK; i++)
        status = tare_tfrecord_write(writer, data, size);
    if (status == TARE_OK)
        status = tare_tfrecord_commit(writer);
    else
        tare_tfrecord_abort(writer);
    tare_free(data);
    tare_tensor_reset(&tensor);
    return status;
}

int main(int argc, char **argv) {
    tare_status status = TARE_USAGE;
    if (argc >= 5 && strcmp(argv[1], "chain") == 0)
        status = write_model(argc, argv);
    else if (argc == 4 && strcmp(argv[1], "array") == 0)
        status = write_array(argv[2], argv[3]);
    else if (argc == 6 && strcmp(argv[1], "samples") == 0)
        status = write_samples(argv[2], argv[3], argv[4], atoi(argv[5]));
    else
        TARE_FAIL(TARE_USAGE, "usage: op_model chain|array|samples … (see its source)");
    if (status != TARE_OK) fprintf(stderr, "op_model: %s\n", tare_error_text());
    return status == TARE_OK ? 0 : 1;
}
