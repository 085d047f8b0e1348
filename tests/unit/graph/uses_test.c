/* Uses and control inputs of nodes, in lists that the functions which change edges maintain. */
#include "graph/model.h"
#include "support/draw.h"
#include "support/mini_model.h"

/* Counts the returns with an edge by visiting all of them. */
static size_t returns_of(const struct tare_graph *graph, struct tare_edge edge) {
    size_t count = 0;
    for (size_t i = 0; i < graph->n_returns; i++)
        count += tare_edge_equal(graph->returns[i].edge, edge);
    return count;
}

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *graph;
    struct tare_edge x, a, b;
};

/* Returns: a, b, a, x, b, a; there are no other uses of a and b. */
static void set_up(struct fixture *f) {
    f->model = mini_model_new();
    f->graph = tare_model_add_function(f->model, "f");
    assert_non_null(f->graph);
    f->x = mini_arg(f->graph, "x", TARE_DT_FLOAT);
    f->a = mini_node(f->graph, "Relu", "a", 1, f->x);
    f->b = mini_node(f->graph, "Relu", "b", 1, f->x);
    const struct tare_edge edges[] = { f->a, f->b, f->a, f->x, f->b, f->a };
    for (size_t i = 0; i < 6; i++)
        mini_return(f->graph, "y", edges[i]);
}

static void assert_counts(const struct fixture *f, size_t a, size_t b) {
    assert_int_equal(tare_graph_count_uses(f->graph, f->a, NULL), a);
    assert_int_equal(tare_graph_count_uses(f->graph, f->b, NULL), b);
    assert_int_equal(returns_of(f->graph, f->a), a);
    assert_int_equal(returns_of(f->graph, f->b), b);
}

static void returns__are_counted_as_uses(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_counts(&f, 3, 2);
    assert_int_equal(tare_graph_count_uses(f.graph, f.x, NULL), 3);
    mini_return(f.graph, "y", f.b); /* after the lists were built */
    assert_counts(&f, 3, 3);
    tare_model_free(f.model);
}

static void a_changed_return__moves_to_the_list_of_its_new_node(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_counts(&f, 3, 2);
    tare_graph_set_return(f.graph, 2, f.b); /* in the middle of a's list */
    assert_counts(&f, 2, 3);
    tare_graph_set_return(f.graph, 0, (struct tare_edge){ NULL, 0 });
    assert_counts(&f, 1, 3);
    tare_graph_set_return(f.graph, 0, f.a);
    assert_counts(&f, 2, 3);
    tare_model_free(f.model);
}

static void removed_returns__are_not_uses(void **state) {
    static const bool removed[] = { true, false, false, true, true, false };
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_counts(&f, 3, 2);
    tare_graph_remove_returns(f.graph, removed);
    assert_int_equal(f.graph->n_returns, 3); /* b, a, a */
    assert_true(tare_edge_equal(f.graph->returns[0].edge, f.b));
    assert_counts(&f, 2, 1);
    tare_model_free(f.model);
}

static void replaced_uses__include_returns(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(tare_graph_replace_uses(f.graph, f.a, f.b, NULL), 3);
    assert_counts(&f, 0, 5);
    const struct tare_edge to[] = { f.a };
    tare_node_replace_outputs(f.b.node, to);
    assert_counts(&f, 5, 0);
    tare_model_free(f.model);
}

/* One return per node: counting and replacing take time in the uses of an edge. */
static void many_returns__are_replaced_one_by_one(void **state) {
    enum { RETURNS = 50000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = tare_model_add_function(model, "f");
    assert_non_null(graph);
    struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    (void)state;
    for (int i = 0; i < RETURNS; i++)
        mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, x));
    for (size_t i = 0; i < RETURNS; i++) {
        const struct tare_edge edge = graph->returns[i].edge;
        assert_int_equal(tare_graph_count_uses(graph, edge, NULL), 1);
        assert_int_equal(tare_graph_replace_uses(graph, edge, x, NULL), 1);
    }
    assert_int_equal(returns_of(graph, x), RETURNS);
    tare_model_free(model);
}

/* A node with `count` outputs. */
static struct tare_node *add_many_outputs(struct tare_graph *graph, struct tare_edge x, int count) {
    struct tare_node *parts = tare_graph_add(graph, "Unpack", "parts");
    assert_non_null(parts);
    mini_ok(tare_node_add_input(parts, x));
    mini_ok(tare_node_set_type(parts, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int(parts, "num", count));
    mini_ok(tare_node_resolve(parts));
    return parts;
}

static struct tare_edge output(struct tare_node *node, int index) {
    return (struct tare_edge){ node, index };
}

/* The uses of one output are found without visiting those of the others. */
static void many_outputs__are_counted_and_replaced_one_by_one(void **state) {
    enum { OUTPUTS = 50000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = tare_model_add_function(model, "f");
    assert_non_null(graph);
    const struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
    struct tare_node *parts = add_many_outputs(graph, x, OUTPUTS), *user;
    (void)state;
    for (int i = 0; i < OUTPUTS; i++) {
        mini_node(graph, "Relu", "relu", 1, output(parts, i));
        mini_return(graph, "y", output(parts, i));
    }
    for (int i = 0; i < OUTPUTS; i++) {
        assert_int_equal(tare_graph_count_uses(graph, output(parts, i), &user), 2);
        assert_ptr_equal(user, graph->nodes[i + 1]);
        assert_ptr_equal(tare_edge_first_use(output(parts, i))->user, user);
        assert_null(tare_edge_next_use(tare_edge_first_use(output(parts, i))));
        assert_int_equal(tare_graph_replace_uses(graph, output(parts, i), x, NULL), 2);
    }
    assert_null(tare_node_first_use(parts));
    tare_model_free(model);
}

/* Counts the uses of all outputs of a node as tare_node_first_use and tare_node_next_use visit them. */
static size_t visited_uses(const struct tare_node *node) {
    size_t count = 0;
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use))
        count++;
    return count;
}

static void outputs_added_after_their_uses__have_lists(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = tare_model_add_function(model, "f");
    assert_non_null(graph);
    struct tare_node *parts = add_many_outputs(graph, mini_arg(graph, "x", TARE_DT_FLOAT), 1);
    (void)state;
    mini_ok(tare_graph_index_uses(graph));
    for (int i = 0; i < 6; i++) { /* of outputs that the node has only afterwards, too */
        mini_open(graph, "Relu", "relu", 1, output(parts, i % 3));
        mini_return(graph, "y", output(parts, i % 3));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(tare_graph_count_uses(graph, output(parts, i), NULL), 4);
        assert_int_equal(visited_uses(parts), 6);
        mini_ok(tare_node_set_int(parts, "num", 3));
        mini_ok(tare_node_resolve(parts));
    }
    assert_int_equal(tare_graph_replace_uses(graph, output(parts, 1), output(parts, 2), NULL), 4);
    assert_int_equal(tare_graph_count_uses(graph, output(parts, 2), NULL), 8);
    assert_int_equal(tare_graph_count_uses(graph, output(parts, 1), NULL), 0);
    tare_model_free(model);
}

static void exchanged_outputs__exchange_their_uses(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = tare_model_add_function(model, "f");
    assert_non_null(graph);
    struct tare_node *parts = add_many_outputs(graph, mini_arg(graph, "x", TARE_DT_FLOAT), 2);
    const struct tare_edge exchanged[] = { output(parts, 1), output(parts, 0) };
    (void)state;
    const struct tare_edge a = mini_node(graph, "Relu", "a", 1, output(parts, 0));
    const struct tare_edge b = mini_node(graph, "Relu", "b", 1, output(parts, 1));
    mini_return(graph, "y", output(parts, 1));
    tare_node_replace_outputs(parts, exchanged);
    assert_int_equal(a.node->inputs[0].index, 1);
    assert_int_equal(b.node->inputs[0].index, 0);
    assert_int_equal(graph->returns[0].edge.index, 0);
    assert_int_equal(tare_graph_count_uses(graph, output(parts, 0), NULL), 2);
    assert_int_equal(tare_graph_count_uses(graph, output(parts, 1), NULL), 1);
    tare_model_free(model);
}

static bool has_control(const struct tare_node *node, const struct tare_node *before) {
    for (size_t i = 0; i < node->n_controls; i++)
        if (node->controls[i] == before) return true;
    return false;
}

static void control_inputs__have_no_duplicates(void **state) {
    enum { CONTROLS = 40 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *nodes[CONTROLS], *fence = mini_open(model->main, "NoOp", "fence", 0);
    (void)state;
    for (int i = 0; i < CONTROLS; i++)
        nodes[i] = mini_open(model->main, "NoOp", "before", 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < CONTROLS; i++)
            mini_ok(tare_node_add_control(fence, nodes[i]));
    assert_int_equal(fence->n_controls, CONTROLS);
    for (int i = 0; i < CONTROLS; i++)
        assert_ptr_equal(fence->controls[i], nodes[i]);
    tare_model_free(model);
}

/* Sweeping removes control inputs from the list directly. */
static void a_removed_control_input__can_be_added_again(void **state) {
    enum { CONTROLS = 40 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *nodes[CONTROLS], *fence = mini_open(model->main, "NoOp", "fence", 0);
    (void)state;
    for (int i = 0; i < CONTROLS; i++) {
        nodes[i] = mini_open(model->main, "NoOp", "before", 0);
        mini_ok(tare_node_add_control(fence, nodes[i]));
    }
    tare_node_remove(nodes[3]);
    tare_graph_sweep(model->main);
    assert_int_equal(fence->n_controls, CONTROLS - 1);
    assert_false(has_control(fence, nodes[3]));
    nodes[3]->dead = false;
    mini_ok(tare_node_add_control(fence, nodes[3]));
    mini_ok(tare_node_add_control(fence, nodes[4]));
    assert_int_equal(fence->n_controls, CONTROLS);
    assert_true(has_control(fence, nodes[3]));
    tare_model_free(model);
}

static void many_control_inputs__are_added_in_linear_time(void **state) {
    enum { CONTROLS = 200000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *fence = mini_open(model->main, "NoOp", "fence", 0);
    (void)state;
    for (int i = 0; i < CONTROLS; i++)
        mini_ok(tare_node_add_control(fence, mini_open(model->main, "NoOp", "before", 0)));
    assert_int_equal(fence->n_controls, CONTROLS);
    tare_model_free(model);
}

static void many_control_returns__are_added_in_linear_time(void **state) {
    enum { RETURNS = 200000 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *graph = tare_model_add_function(model, "f");
    assert_non_null(graph);
    (void)state;
    for (int i = 0; i < RETURNS; i++) {
        struct tare_node *effect = mini_open(graph, "NoOp", "effect", 0);
        mini_ok(tare_graph_add_control_return(graph, effect->name, effect));
    }
    assert_int_equal(graph->n_control_returns, RETURNS);
    for (int i = 0; i < RETURNS; i++)
        assert_ptr_equal(graph->control_returns[i].node, graph->nodes[i]);
    tare_model_free(model);
}

enum { SIGNATURE_OUTPUTS = 60, NODES = 4, PARTS = 5 };

/* A model with so many signature outputs that their uses are in lists. */
struct served {
    struct tare_graph_model *model;
    struct tare_node *nodes[NODES];
    struct tare_binding outputs[SIGNATURE_OUTPUTS];
};

/* The outputs of the signature become all edges in turn, by other means than the functions of the graph. */
static void spread(struct served *s) {
    for (size_t i = 0; i < SIGNATURE_OUTPUTS; i++)
        s->outputs[i].edge = output(s->nodes[i % NODES], (int)(i / NODES % PARTS));
    tare_model_forget_signature_uses(s->model);
}

static void set_up_served(struct served *s) {
    *s = (struct served){ .model = mini_model_new() };
    const struct tare_edge x = tare_node_output0(mini_open(s->model->main, "Placeholder", "x", 0));
    for (size_t n = 0; n < NODES; n++)
        s->nodes[n] = add_many_outputs(s->model->main, x, PARTS);
    s->model->signatures = TARE_NEW(&s->model->arena, struct tare_signature);
    assert_non_null(s->model->signatures);
    s->model->n_signatures = 1;
    *s->model->signatures =
        (struct tare_signature){ .key = "s", .outputs = s->outputs, .n_outputs = SIGNATURE_OUTPUTS };
    spread(s);
}

/* Counts the signature's outputs with an edge by visiting all of them. */
static size_t outputs_with(const struct served *s, struct tare_edge edge) {
    size_t count = 0;
    for (size_t i = 0; i < SIGNATURE_OUTPUTS; i++)
        count += tare_edge_equal(s->outputs[i].edge, edge);
    return count;
}

static struct tare_edge draw_edge(const struct served *s, uint64_t *seed) {
    return output(s->nodes[draw_bits(seed) % NODES], (int)(draw_bits(seed) % PARTS));
}

/* All outputs of a node become those of the same or another node, in another order. */
static void replace_all(struct served *s, uint64_t *seed) {
    const struct tare_edge from = draw_edge(s, seed), to = draw_edge(s, seed);
    struct tare_edge all[PARTS];
    for (int i = 0; i < PARTS; i++)
        all[i] = output(to.node, (i + to.index) % PARTS);
    tare_node_replace_outputs(from.node, all);
}

static void outputs_of_signatures__are_counted_and_replaced(void **state) {
    struct served s;
    uint64_t seed = 3;
    (void)state;
    set_up_served(&s);
    for (int turn = 0; turn < 400; turn++) {
        const struct tare_edge from = draw_edge(&s, &seed), to = draw_edge(&s, &seed);
        const size_t expected = outputs_with(&s, from);
        if (turn % 20 == 19)
            spread(&s);
        else if (turn % 5 == 4)
            replace_all(&s, &seed);
        else
            assert_int_equal(tare_graph_replace_uses(s.model->main, from, to, NULL), expected);
        for (size_t n = 0; n < NODES; n++)
            for (int i = 0; i < PARTS; i++)
                assert_int_equal(tare_graph_count_uses(s.model->main, output(s.nodes[n], i), NULL),
                                 outputs_with(&s, output(s.nodes[n], i)));
    }
    s.model->n_signatures = 0;
    tare_model_free(s.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns__are_counted_as_uses),
        cmocka_unit_test(a_changed_return__moves_to_the_list_of_its_new_node),
        cmocka_unit_test(removed_returns__are_not_uses),
        cmocka_unit_test(replaced_uses__include_returns),
        cmocka_unit_test(many_returns__are_replaced_one_by_one),
        cmocka_unit_test(many_outputs__are_counted_and_replaced_one_by_one),
        cmocka_unit_test(outputs_added_after_their_uses__have_lists),
        cmocka_unit_test(exchanged_outputs__exchange_their_uses),
        cmocka_unit_test(control_inputs__have_no_duplicates),
        cmocka_unit_test(a_removed_control_input__can_be_added_again),
        cmocka_unit_test(many_control_inputs__are_added_in_linear_time),
        cmocka_unit_test(many_control_returns__are_added_in_linear_time),
        cmocka_unit_test(outputs_of_signatures__are_counted_and_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
