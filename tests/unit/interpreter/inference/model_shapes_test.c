/* Shapes of the variables of loops: those that each turn keeps are known, the others are not. */
#include "interpreter/inference/model_shapes.h"
#include "support/mini_model.h"

enum { VARIABLES = 5 };

/* A loop over i (scalar), a table that it reads, a state of its own, a tensor that grows, and one that takes the shape
 * of the one that grows. */
static struct tare_graph *loop(struct tare_graph_model *model) {
    const char *const names[VARIABLES] = { "i", "table", "state", "grows", "follows" };
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    struct tare_edge in[VARIABLES], args[VARIABLES], values[VARIABLES], row;
    int dtypes[VARIABLES];
    for (int k = 0; k < VARIABLES; k++) {
        const struct tare_shape shapes[] = { tare_shape_scalar(), tare_shape_make(3, -1, 8, 4),
                                             tare_shape_make(2, -1, 4), tare_shape_make(2, 1, 4),
                                             tare_shape_make(2, 1, 4) };
        dtypes[k] = k ? TARE_DT_FLOAT : TARE_DT_INT32;
        in[k] = mini_placeholder(model->main, names[k], dtypes[k]);
        mini_ok(tare_node_set_shape(in[k].node, "shape", &shapes[k]));
        mini_arg(cond, names[k], dtypes[k]);
        args[k] = mini_arg(body, names[k], dtypes[k]);
        values[k] = args[k];
    }
    mini_return(cond, "go",
                mini_node(cond, "Less", "less", 2, (struct tare_edge){ cond->args[0], 0 }, mini_int(cond, "steps", 3)));
    values[0] = mini_node(body, "AddV2", "next", 2, args[0], mini_int(body, "one", 1));
    row = mini_node(body, "GatherV2", "row", 3, args[1], args[0], mini_int(body, "axis", 1));
    values[1] = mini_node(body, "Identity", "same", 1, args[1]);
    values[2] = mini_node(body, "Tanh", "tanh", 1, mini_node(body, "AddV2", "sum", 2, args[2], row));
    values[3] = mini_node(body, "ConcatV2", "more", 3, args[3], args[3], mini_int(body, "rows", 0));
    values[4] = mini_node(body, "Relu", "copy", 1, args[3]);
    for (int k = 0; k < VARIABLES; k++)
        mini_return(body, names[k], values[k]);
    struct tare_node *node =
        mini_open(model->main, "StatelessWhile", "loop", VARIABLES, in[0], in[1], in[2], in[3], in[4]);
    mini_ok(tare_node_set_type_list(node, "T", dtypes, VARIABLES));
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    mini_done(node);
    return body;
}

static void variables_of_loops__have_the_shape_that_each_turn_keeps(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_graph *body = loop(model);
    const struct tare_shape expected[VARIABLES] = { tare_shape_scalar(), tare_shape_make(3, -1, 8, 4),
                                                    tare_shape_make(2, -1, 4), tare_shape_unknown(),
                                                    tare_shape_unknown() };
    const struct tare_shape row = tare_shape_make(2, -1, 4);
    struct tare_model_shapes *shapes;
    struct tare_shape got;
    char text[TARE_SHAPE_TEXT_SIZE];
    (void)state;
    mini_ok(tare_model_shapes_new(&shapes, model));
    for (int k = 0; k < VARIABLES; k++) {
        got = tare_model_shape(shapes, (struct tare_edge){ body->args[k], 0 });
        if (got.rank != expected[k].rank || (got.rank > 0 && !tare_shape_equal(&got, &expected[k])))
            fail_msg("%s has the shape %s", body->args[k]->name, tare_shape_text(text, &got));
    }
    got = tare_model_shape(shapes, (struct tare_edge){ tare_graph_find(body, "row"), 0 });
    if (!tare_shape_equal(&got, &row)) fail_msg("row has the shape %s", tare_shape_text(text, &got));
    tare_model_shapes_free(shapes);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_of_loops__have_the_shape_that_each_turn_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
