/* Modules of small graphs: what is known before a model runs. */
#include "support/mini_model.h"

#include "convert/stablehlo/emit/emit.h"

/* The shape of the result of an emitted model with one output. */
static struct tare_shape emitted_shape(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    struct tare_binding input = { .key = "x", .dtype = TARE_DT_FLOAT, .edge = x, .shape = tare_shape_make(2, 2, 3) };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .edge = y };
    struct tare_signature signature = { "serving_default", "", &input, 1, &output, 1, NULL };
    const struct tare_emit_options options = { .batch = 1, .version = TARE_VHLO_VERSION(1, 5, 0) };
    struct tare_emit emit = { 0 };
    struct tare_shlo_module *module;
    struct tare_shape shape = tare_shape_unknown();
    model->signatures = &signature;
    model->n_signatures = 1;
    mini_ok(tare_emit_module(&module, &emit, model, &options));
    const struct tare_shlo_type *type = tare_shlo_op_attr(tare_shlo_function(module, "main"), "function_type")->type;
    mini_ok(tare_shape_from_dims(&shape, (int)type->outputs.items[0]->rank, type->outputs.items[0]->dims));
    tare_shlo_free(module);
    tare_emit_free(&emit);
    model->signatures = NULL;
    model->n_signatures = 0;
    return shape;
}

/* pad(x, [[5, 5], [5, 5]] + [[5, 5], [5, 5]]), where the summand is stored as one number */
static void a_constant_of_one_value__is_computed_with_as_all_of_them(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *main = model->main;
    struct tare_tensor fives;
    char text[TARE_SHAPE_TEXT_SIZE];
    (void)state;
    const struct tare_edge x = mini_placeholder(main, "x", TARE_DT_FLOAT);
    mini_ok(tare_tensor_scalar_i32(&fives, 5));
    fives.shape = tare_shape_make(2, 2, 2);
    fives.elements = 4;
    fives.splat = true;
    const struct tare_edge constant = { tare_graph_add_const(main, "fives", &fives), 0 };
    tare_tensor_reset(&fives);
    struct tare_node *pad = mini_open(main, "Pad", "pad", 2, x, mini_node(main, "AddV2", "sum", 2, constant, constant));
    mini_ok(tare_node_set_type(pad, "Tpaddings", TARE_DT_INT32));
    const struct tare_shape found = emitted_shape(model, x, mini_done(pad));
    assert_string_equal(tare_shape_text(text, &found), "[22,23]");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_of_one_value__is_computed_with_as_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
