/* Writes a SavedModel of one op, and arrays to feed it, for command line tests:
 *
 *   op_model model DIR LIB.so OP ATTRS INPUT…     the signature serving_default takes the op's inputs and gives its outputs,
 *                                                 by the names of its definition (NAME_0, NAME_1 … for lists); each INPUT
 *                                                 is the shape of one: "[2,?]"
 *   op_model array FILE.npy TENSOR                TENSOR as in support/tensor_text.h: "int32[2,2] 1 2 3 4"
 *
 * The definition comes from the library, as it comes from tf.load_op_library where such a model is made; what is written
 * does not need the library to be opened. */
#include "convert/saved_model.h"
#include "datasets/npy.h"
#include "graph/opdef.h"
#include "graph/plugin.h"
#include "support/attrs_text.h"
#include "support/tensor_text.h"

#include <stdio.h>
#include <string.h>

/* The name of flat tensor i of a side. */
static const char *tensor_name(struct tare_model *model, const struct tare_node *node, size_t i, bool output) {
    size_t n = output ? node->def->n_outputs : node->def->n_inputs, first, count;
    for (size_t a = 0; a < n; a++) {
        const struct tare_op_arg *arg = output ? &node->def->outputs[a] : &node->def->inputs[a];
        if ((output ? tare_node_output_range : tare_node_input_range)(node, a, &first, &count) != TARE_OK) return NULL;
        if (i < first || i >= first + count) continue;
        if (!arg->number_attr && !arg->type_list_attr) return arg->name;
        return tare_arena_printf(&model->arena, "%s_%zu", arg->name, i - first);
    }
    return NULL;
}

static tare_status add_input(struct tare_node *node, struct tare_binding *binding, size_t i, int dtype,
                             const char *shape) {
    struct tare_model *model = node->graph->model;
    const char *end;
    struct tare_node *placeholder;
    TARE_TRY(shape_from_text(&binding->shape, shape, &end));
    binding->key = tensor_name(model, node, i, false);
    binding->dtype = dtype;
    placeholder = binding->key ? tare_graph_add(model->main, "Placeholder", binding->key) : NULL;
    if (!placeholder) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(placeholder, "dtype", dtype));
    TARE_TRY(tare_node_set_shape(placeholder, "shape", &binding->shape));
    TARE_TRY(tare_node_resolve(placeholder));
    binding->edge = (struct tare_edge){ placeholder, 0 };
    return tare_node_add_input(node, binding->edge);
}

static tare_status add_op(struct tare_model *model, struct tare_opspec_memory *memory, const char *op, const char *attrs,
                          char *const *shapes, size_t n_shapes) {
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    struct tare_node *node = tare_graph_add(model->main, op, "op");
    int *dtypes;
    size_t count;
    if (!signature || !node) return TARE_NO_MEMORY;
    if (!node->def) return TARE_FAIL(TARE_NOT_FOUND, "the library has no op %s", op);
    TARE_TRY(attrs_from_text(node, memory, *attrs ? attrs : NULL));
    TARE_TRY(tare_opdef_check_attrs(node));
    TARE_TRY(tare_opdef_input_dtypes(&model->arena, node, &dtypes, &count));
    if (count != n_shapes) return TARE_FAIL(TARE_USAGE, "%zu inputs (wanted %zu)", n_shapes, count);
    *signature = (struct tare_signature){ .key = "serving_default", .method_name = "tensorflow/serving/predict" };
    signature->inputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, count + 1);
    if (!signature->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(add_input(node, &signature->inputs[i], i, dtypes[i], shapes[i]));
    signature->n_inputs = count;
    TARE_TRY(tare_node_resolve(node));
    signature->outputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, node->n_outputs + 1);
    if (!signature->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_outputs; i++)
        signature->outputs[i] = (struct tare_binding){ .key = tensor_name(model, node, i, true),
                                                       .dtype = tare_dtype_base(node->output_dtypes[i]),
                                                       .shape = tare_shape_unknown(),
                                                       .edge = { node, (int)i } };
    signature->n_outputs = node->n_outputs;
    model->signatures = signature;
    model->n_signatures = 1;
    return TARE_OK;
}

static tare_status write_model(int argc, char *const *argv) {
    struct tare_plugins *plugins = tare_plugins_new(tare_ops_builtin());
    struct tare_model *model = tare_model_new();
    struct tare_opspec_memory memory = { 0 };
    tare_status status = plugins && model ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_plugins_load(plugins, argv[3]);
    if (status == TARE_OK) model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    if (status == TARE_OK)
        status = add_op(model, &memory, argv[4], argv[5], argv + 6, (size_t)(argc - 6));
    if (status == TARE_OK) status = tare_saved_model_export(model, argv[2], NULL);
    tare_model_free(model);
    tare_opspec_memory_free(&memory);
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

int main(int argc, char **argv) {
    tare_status status = TARE_USAGE;
    if (argc >= 6 && strcmp(argv[1], "model") == 0)
        status = write_model(argc, argv);
    else if (argc == 4 && strcmp(argv[1], "array") == 0)
        status = write_array(argv[2], argv[3]);
    else
        TARE_FAIL(TARE_USAGE, "usage: op_model model DIR LIB.so OP ATTRS SHAPE… | op_model array FILE.npy TENSOR");
    if (status != TARE_OK) fprintf(stderr, "op_model: %s\n", tare_error_text());
    return status == TARE_OK ? 0 : 1;
}
