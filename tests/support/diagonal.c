/* Models of products with diagonal weights. */
#include "support/diagonal.h"

struct tare_tensor diagonal(int side, float value) {
    const struct tare_shape shape = tare_shape_make(2, side, side);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = i % (side + 1) == 0 ? value : 0;
    return tensor;
}

struct tare_edge diagonal_variable(struct tare_graph_model *model, const char *name, int side, float value) {
    const struct tare_tensor tensor = diagonal(side, value);
    struct tare_node *handle = mini_open(model->main, "VarHandleOp", name, 0);
    mini_ok(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(handle, "shape", &tensor.shape));
    mini_add_variable(model, handle, tensor);
    model->variables[model->n_variables - 1].key = name;
    return mini_done(handle);
}

struct tare_graph *diagonal_product(struct tare_graph_model *model, const char *name) {
    struct tare_graph *f = tare_model_add_function(model, name);
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), w = mini_arg(f, "w", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "MatMul", "product", 2, x, w));
    return f;
}

float diagonal_answer(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y, int side) {
    const struct tare_shape shape = tare_shape_make(2, 1, side);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed, result;
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < side; i++)
        TARE_DATA(float, &fed)[i] = 1;
    mini_ok(tare_session_run(session, &x, &fed, 1, &y, &result, 1, NULL, 0));
    const float first = TARE_DATA(float, &result)[0];
    tare_tensor_reset(&fed);
    tare_tensor_reset(&result);
    tare_session_free(session);
    return first;
}
