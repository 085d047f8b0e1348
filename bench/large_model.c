/* Writes a SavedModel with large variables, for measuring how fast and in how much memory `tare convert` goes over it:
 * a chain of square matrix products whose weights are captured variables.
 *
 *   large_model OUT [VARIABLES [SIDE]]      8 variables of 8192 x 8192 float32 are 2 GiB */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIABLES = 64 };

struct builder {
    struct tare_graph_model *model;
    struct tare_graph *body;
    struct tare_edge handles[MOST_VARIABLES];
    int count;
    int64_t side;
};

/* One buffer is every variable's value: only the files are large. */
static tare_status add_variables(struct builder *b) {
    struct tare_shape shape = tare_shape_make(2, b->side, b->side);
    struct tare_tensor value;
    b->model->variables = TARE_NEW_ARRAY(&b->model->arena, struct tare_variable, (size_t)b->count);
    if (!b->model->variables) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)((i * 2654435761u) >> 8 & 0xffff) * 1e-6f;
    for (int v = 0; v < b->count; v++) {
        struct tare_variable *variable = &b->model->variables[b->model->n_variables++];
        struct tare_node *node;
        *variable = (struct tare_variable){
            .shared_name = tare_arena_printf(&b->model->arena, "layer%d/kernel", v),
            .key = tare_arena_printf(&b->model->arena, "layer%d/kernel/.ATTRIBUTES/VARIABLE_VALUE", v),
            .dtype = TARE_DT_FLOAT,
            .shape = shape,
            .object_id = -1,
        };
        if (!variable->shared_name || !variable->key) return TARE_NO_MEMORY;
        tare_tensor_share(&variable->value, &value);
        node = tare_graph_add(b->model->main, "VarHandleOp", variable->shared_name);
        if (!node) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
        TARE_TRY(tare_node_set_shape(node, "shape", &shape));
        TARE_TRY(tare_node_set_string(node, "shared_name", variable->shared_name, strlen(variable->shared_name)));
        TARE_TRY(tare_node_resolve(node));
        variable->node = node;
        b->handles[v] = tare_node_output0(node);
    }
    tare_tensor_reset(&value);
    return TARE_OK;
}

static tare_status add_layer(struct builder *b, struct tare_edge *x, int v) {
    struct tare_node *arg = tare_graph_add_arg(b->body, "kernel", TARE_DT_RESOURCE), *read, *product;
    if (!arg) return TARE_NO_MEMORY;
    read = tare_graph_add(b->body, "ReadVariableOp", "read");
    if (!read) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(read, tare_node_output0(arg)));
    TARE_TRY(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_resolve(read));
    product = tare_graph_add(b->body, "MatMul", tare_arena_printf(&b->model->arena, "layer%d", v));
    if (!product) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(product, *x));
    TARE_TRY(tare_node_add_input(product, tare_node_output0(read)));
    TARE_TRY(tare_node_set_type(product, "T", TARE_DT_FLOAT));
    *x = tare_node_output0(product);
    return tare_node_resolve(product);
}

static tare_status add_body(struct builder *b) {
    struct tare_edge x;
    b->body = tare_model_add_function(b->model, "__inference_tpu_func_1");
    if (!b->body) return TARE_NO_MEMORY;
    b->body->is_stateful = true;
    x = tare_node_output0(tare_graph_add_arg(b->body, "x", TARE_DT_FLOAT));
    if (!x.node) return TARE_NO_MEMORY;
    for (int v = 0; v < b->count; v++)
        TARE_TRY(add_layer(b, &x, v));
    return tare_graph_add_return(b->body, "y", TARE_DT_FLOAT, x);
}

static tare_status add_signature(struct builder *b) {
    struct tare_shape shape = tare_shape_make(2, -1, b->side);
    struct tare_arena *arena = &b->model->arena;
    struct tare_signature *signature = TARE_NEW(arena, struct tare_signature);
    struct tare_binding *bindings = TARE_NEW_ARRAY(arena, struct tare_binding, 2);
    struct tare_alias *alias = TARE_NEW(arena, struct tare_alias);
    struct tare_node *x = tare_graph_add(b->model->main, "Placeholder", "serving_default_x");
    struct tare_node *call = tare_graph_add(b->model->main, "StatefulPartitionedCall", "StatefulPartitionedCall");
    int dtypes[MOST_VARIABLES + 1] = { TARE_DT_FLOAT };
    if (!signature || !bindings || !alias || !x || !call) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(x, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(x, "shape", &shape));
    TARE_TRY(tare_node_resolve(x));
    TARE_TRY(tare_node_add_input(call, tare_node_output0(x)));
    for (int v = 0; v < b->count; v++) {
        TARE_TRY(tare_node_add_input(call, b->handles[v]));
        dtypes[v + 1] = TARE_DT_RESOURCE;
    }
    TARE_TRY(tare_node_set_type_list(call, "Tin", dtypes, (size_t)b->count + 1));
    TARE_TRY(tare_node_set_type_list(call, "Tout", dtypes, 1));
    TARE_TRY(tare_node_set_func(call, "f", b->body->name));
    TARE_TRY(tare_node_resolve(call));
    bindings[0] =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = tare_node_output0(x) };
    bindings[1] =
        (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = tare_node_output0(call) };
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .inputs = &bindings[0],
                                          .n_inputs = 1,
                                          .outputs = &bindings[1],
                                          .n_outputs = 1 };
    *alias = (struct tare_alias){ b->body->name, "tpu_func" };
    b->model->signatures = signature;
    b->model->aliases = alias;
    b->model->n_signatures = b->model->n_aliases = 1;
    return TARE_OK;
}

static tare_status make(struct builder *b, const char *out) {
    const struct tare_export_options overwrite = { .overwrite = true };
    TARE_TRY(add_variables(b));
    TARE_TRY(add_body(b));
    TARE_TRY(add_signature(b));
    return tare_saved_model_export(b->model, out, &overwrite);
}

int main(int argc, char **argv) {
    struct builder b = { .count = argc > 2 ? atoi(argv[2]) : 8, .side = argc > 3 ? atol(argv[3]) : 8192 };
    tare_status status;
    if (argc < 2 || b.count < 1 || b.count > MOST_VARIABLES || b.side < 1) {
        fprintf(stderr, "usage: large_model OUT [VARIABLES [SIDE]]\n");
        return 2;
    }
    b.model = tare_model_new(tare_ops_builtin());
    status = b.model ? make(&b, argv[1]) : TARE_NO_MEMORY;
    if (status != TARE_OK) fprintf(stderr, "large_model: %s\n", tare_error_text());
    tare_model_free(b.model);
    return status != TARE_OK;
}
