/* TensorFlow does not load a function that gathers from a variable of which its argument says nothing. */
#include "convert/export/export.h"
#include "support/mini_model.h"

/* The definition of f's argument `w`, which the main graph passes a variable [3, 5]; f reads it by `op`. */
static void export(Tensorflow__OpDef__ArgDef *arg, struct tare_arena *arena, const char *op, int dtype) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_shape shape = tare_shape_make(2, (int64_t)3, (int64_t)5);
    struct tare_node *handle = mini_open(model->main, "VarHandleOp", "v", 0), *read;
    struct tare_edge w = mini_arg(f, "w", TARE_DT_RESOURCE), i = mini_arg(f, "i", TARE_DT_INT32);
    struct tare_tensor value;
    Tensorflow__GraphDef *def;
    mini_ok(tare_tensor_new(&value, dtype, &shape));
    mini_ok(tare_node_set_type(handle, "dtype", dtype));
    mini_ok(tare_node_set_shape(handle, "shape", &shape));
    mini_add_variable(model, handle, value);
    read = mini_open(f, op, "read", 2, mini_node(f, "Identity", "same", 1, w), i);
    mini_ok(tare_node_set_type(read, "dtype", dtype));
    mini_return(f, "y", mini_done(read));
    mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, mini_done(handle),
              mini_placeholder(model->main, "indices", TARE_DT_INT32));
    mini_ok(tare_export_graph_def(&def, arena, model, NULL));
    *arg = *def->library->function[0]->signature->input_arg[0];
    tare_model_free(model);
}

static void the_variable_that_is_gathered__is_described(void **state) {
    static const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_BFLOAT16 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tare_arena arena = { 0 };
        Tensorflow__OpDef__ArgDef arg;
        export(&arg, &arena, "ResourceGatherNd", dtypes[i]);
        assert_int_equal(arg.n_handle_data, 1);
        assert_int_equal(arg.handle_data[0]->dtype, dtypes[i]);
        assert_int_equal(arg.handle_data[0]->shape->n_dim, 2);
        assert_int_equal(arg.handle_data[0]->shape->dim[1]->size, 5);
        tare_arena_free(&arena);
    }
}

/* Other ops take an unknown variable; files stay as small as they are. */
static void other_variables__are_not_described(void **state) {
    struct tare_arena arena = { 0 };
    Tensorflow__OpDef__ArgDef arg;
    (void)state;
    export(&arg, &arena, "ResourceGather", TARE_DT_FLOAT);
    assert_int_equal(arg.n_handle_data, 0);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variable_that_is_gathered__is_described),
        cmocka_unit_test(other_variables__are_not_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
