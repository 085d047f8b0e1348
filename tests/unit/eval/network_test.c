/* A network is listed in the order of execution: layers, where branches meet, and what each of them reads. */
#include "eval/network.h"

#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_edge x;
    struct tare_explanation layers[4];
    struct tare_explanation_list list;
    struct tare_network network;
};

static void begin(struct fixture *f) {
    *f = (struct fixture){ .model = mini_model_new() };
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->list.items = f->layers;
}

static void explain(struct fixture *f, const char *function, const char *node) {
    f->layers[f->list.count++] = (struct tare_explanation){ .function = function, .node = node, .op = "TestEffect" };
}

/* The units as "name(source source)", with a '>' for each level of depth and "+op" for what follows. */
static void expect(struct fixture *f, struct tare_edge result, const char *expected) {
    struct tare_binding input = { .key = "in", .dtype = TARE_DT_FLOAT, .edge = f->x };
    struct tare_binding output = { .key = "out", .dtype = TARE_DT_FLOAT, .edge = result };
    const struct tare_signature signature = { "test", "", &input, 1, &output, 1, NULL };
    char text[512] = "";
    mini_ok(tare_network_make(&f->network, &f->arena, f->model, &signature, &f->list));
    for (size_t i = 0; i < f->network.count; i++) {
        const struct tare_network_unit *unit = &f->network.units[i];
        for (int d = 0; d < unit->depth; d++)
            strcat(text, ">");
        strcat(strcat(text, unit->node), "(");
        for (size_t s = 0; s < unit->n_sources; s++)
            strcat(strcat(text, s ? " " : ""), f->network.units[unit->sources[s]].node);
        strcat(text, ")");
        for (size_t k = 0; k < unit->n_followed; k++)
            strcat(strcat(text, "+"), unit->followed[k]);
        strcat(text, " ");
    }
    assert_string_equal(text, expected);
}

static void end(struct fixture *f) {
    tare_arena_free(&f->arena);
    tare_model_free(f->model);
}

static void an_op_of_one_unit__belongs_to_it(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge layer = mini_node(g, "TestEffect", "layer", 1, f.x);
    struct tare_edge bias = mini_node(g, "TestAdd", "bias", 2, layer, mini_float(g, "b", 1));
    struct tare_edge same = mini_node(g, "TestAdd", "twice", 2, bias, layer); /* both values are the layer's */
    explain(&f, "", "layer");
    expect(&f, mini_node(g, "Identity", "id", 1, mini_node(g, "Relu", "relu", 1, same)),
           "in() layer(in)+TestAdd+Relu out(layer) ");
    assert_true(f.network.units[1].layer == &f.layers[0] && f.network.units[1].kind == TARE_NETWORK_LAYER);
    end(&f);
}

static void branches__meet_in_a_unit(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge layer = mini_node(g, "TestEffect", "layer", 1, f.x);
    struct tare_edge sum = mini_node(g, "TestAdd", "sum", 2, layer, f.x);
    explain(&f, "", "layer");
    expect(&f, sum, "in() layer(in) sum(in layer) out(sum) ");
    assert_int_equal(f.network.units[2].kind, TARE_NETWORK_MERGE);
    end(&f);
}

static void shapes_and_unused_nodes__are_no_connections(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge layer = mini_node(g, "TestEffect", "layer", 1, f.x);
    struct tare_edge shape = mini_node(g, "Shape", "shape", 1, f.x);
    mini_node(g, "TestEffect", "unused", 1, f.x);
    explain(&f, "", "layer");
    explain(&f, "", "unused");
    expect(&f, mini_node(g, "Reshape", "reshape", 2, layer, shape), "in() layer(in) out(layer) ");
    end(&f);
}

/* A function that is called twice has its layers twice; a node of the caller with a layer's name is no layer. */
static void calls__are_replaced_by_their_functions(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main, *function = tare_model_add_function(f.model, "block");
    struct tare_edge arg = mini_arg(function, "x", TARE_DT_FLOAT);
    struct tare_edge inner = mini_node(function, "TestEffect", "layer", 1, arg);
    mini_return(function, "y", mini_node(function, "TestAdd", "sum", 2, inner, arg));
    struct tare_edge once = mini_call(g, "PartitionedCall", "a", function, 1, f.x);
    struct tare_edge twice = mini_call(g, "StatefulPartitionedCall", "b", function, 1, once);
    explain(&f, "block", "layer");
    expect(&f, mini_node(g, "TestEffect", "layer", 1, twice),
           "in() layer(in) sum(in layer) layer(sum) sum(sum layer)+TestEffect out(sum) ");
    end(&f);
}

static void branches_of_a_choice__follow_it_one_level_deeper(void **state) {
    (void)state;
    const int types[] = { TARE_DT_FLOAT };
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main;
    for (int i = 0; i < 2; i++) {
        struct tare_graph *function = tare_model_add_function(f.model, i ? "else" : "then");
        struct tare_edge arg = mini_arg(function, "x", TARE_DT_FLOAT);
        mini_return(function, "y", mini_node(function, "TestEffect", "layer", 1, arg));
        explain(&f, i ? "else" : "then", "layer");
    }
    struct tare_node *choice = mini_open(g, "StatelessIf", "choice", 2, mini_bool(g, "p", true), f.x);
    mini_ok(tare_node_set_type_list(choice, "Tout", types, 1));
    mini_ok(tare_node_set_func(choice, "then_branch", "then"));
    mini_ok(tare_node_set_func(choice, "else_branch", "else"));
    expect(&f, mini_done(choice), "in() choice(in) >layer(choice) >layer(choice) out(choice) ");
    assert_int_equal(f.network.units[1].kind, TARE_NETWORK_CALL);
    end(&f);
}

static void costs__go_to_the_unit_that_an_op_was_made_from(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge a = mini_node(g, "TestEffect", "dense", 1, f.x);
    struct tare_edge b = mini_node(g, "TestEffect", "dense/inner", 1, a);
    explain(&f, "", "dense");
    explain(&f, "", "dense/inner");
    expect(&f, b, "in() dense(in) dense/inner(dense) out(dense/inner) ");
    tare_network_add_cost(&f.network, "dense", 1);
    tare_network_add_cost(&f.network, "dense/XlaDotV2", 2);
    tare_network_add_cost(&f.network, "dense/inner/XlaDotV2", 4);
    tare_network_add_cost(&f.network, "dense_1", 8);
    tare_network_add_cost(&f.network, "in", 16);
    assert_true(f.network.units[1].seconds == 3 && f.network.units[2].seconds == 4 && f.network.units[0].seconds == 0);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_of_one_unit__belongs_to_it),
        cmocka_unit_test(branches__meet_in_a_unit),
        cmocka_unit_test(shapes_and_unused_nodes__are_no_connections),
        cmocka_unit_test(calls__are_replaced_by_their_functions),
        cmocka_unit_test(branches_of_a_choice__follow_it_one_level_deeper),
        cmocka_unit_test(costs__go_to_the_unit_that_an_op_was_made_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
