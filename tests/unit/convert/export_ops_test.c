/* A saved model brings the definitions of ops that no release has. */
#include "convert/saved_model.h"
#include "interpreter/ops/builtin.h"
#include "graph/definitions/op_compat.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <string.h>

static const struct tare_op row = {
    .name = "Example>Mix",
    .inputs = "a: N * T, b: L, r: Ref(int32)",
    .outputs = "x: T, y: L",
    .attrs = "N: int >= 2; T: {float, half} = DT_HALF; L: list(type) >= 0 = [DT_INT32]; mode: {'a', 'b'} = 'a'; "
             "s: shape = { dim { size: 2 } }; t: tensor = { dtype: DT_FLOAT float_val: 1.5 }; f: func = { name: 'g' }; "
             "e: list(string) = []; any: type",
    .flags = TARE_OP_STATEFUL,
};

/* A model with one node of the op, exported to `path`. */
static void export(const char *path) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    struct tare_node *node, *variable;
    struct tare_edge x, parts[3];
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .shape = { .rank = -1 } };
    struct tare_signature signature = { "serving_default", "", NULL, 0, &output, 1, NULL };
    model->custom_ops = tare_ops_new(tare_ops_builtin());
    mini_ok(tare_ops_add(model->custom_ops, &row));
    x = mini_float(model->main, "x", 1);
    variable = tare_graph_add(model->main, "VariableV2", "v");
    mini_ok(tare_node_set_type(variable, "dtype", TARE_DT_INT32));
    mini_ok(tare_node_set_shape(variable, "shape", &scalar));
    mini_ok(tare_node_resolve(variable));
    parts[0] = x;
    parts[1] = mini_int(model->main, "i", 2);
    parts[2] = (struct tare_edge){ variable, 0 };
    node = tare_graph_add(model->main, "Example>Mix", "mix");
    mini_ok(tare_node_add_input(node, x));
    for (size_t i = 0; i < 3; i++)
        mini_ok(tare_node_add_input(node, parts[i]));
    mini_ok(tare_node_set_int(node, "N", 2));
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(node, "any", TARE_DT_FLOAT));
    mini_ok(tare_node_resolve(node));
    output.edge = (struct tare_edge){ node, 0 };
    model->signatures = &signature;
    model->n_signatures = 1;
    mini_ok(tare_saved_model_export(model, path, NULL));
    tare_model_free(model);
}

static void expect_same(const struct tare_op_def *a, const struct tare_op_def *b) {
    struct tare_op_changes changes = { 0 };
    mini_ok(tare_op_compare(&changes, a, b));
    mini_ok(tare_op_compare(&changes, b, a));
    for (size_t i = 0; i < changes.count; i++)
        print_error("%s\n", changes.items[i]);
    assert_int_equal(changes.count, 0);
    assert_int_equal(a->n_attrs, b->n_attrs);
    assert_int_equal(a->is_stateful, b->is_stateful);
    tare_op_changes_free(&changes);
}

static void definition__goes_with_the_model(void **state) {
    struct tare_op_registry *registry = tare_ops_new(NULL);
    const char *first = temp_path("first"), *second = temp_path("second");
    const struct tare_op_def *written, *read;
    struct tare_graph_model *model;
    (void)state;
    mini_ok(tare_ops_add(registry, &row));
    written = tare_ops_find(registry, row.name);
    export(first);
    mini_ok(tare_saved_model_load(&model, first, NULL));
    read = tare_ops_find(model->custom_ops, row.name);
    assert_non_null(read);
    assert_null(read->row);
    expect_same(written, read);
    assert_null(tare_ops_find(tare_ops_builtin(), row.name));
    mini_ok(tare_saved_model_export(model, second, NULL)); /* a definition from a file goes on with it */
    tare_model_free(model);
    mini_ok(tare_saved_model_load(&model, second, NULL));
    read = tare_ops_find(model->custom_ops, row.name);
    assert_non_null(read);
    expect_same(written, read);
    tare_model_free(model);
    tare_ops_free(registry);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(definition__goes_with_the_model) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
