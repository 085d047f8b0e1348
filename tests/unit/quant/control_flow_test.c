/* Layers in bodies of loops, in branches and in functions that several callers share: quantized like those of the main
 * graph, once each. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 8, STEPS = 3 };

static float value(int64_t i) {
    return (float)((i * 7919 % 2003) - 1001) / 4000.0f;
}

/* A quarter of a number in [-1, 1] for WIDTH products: what a loop multiplies again and again stays small. */
static struct tare_edge weight(struct tare_graph *f, const char *name, int first) {
    const struct tare_shape shape = tare_shape_make(2, WIDTH, WIDTH);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = value(i + first);
    struct tare_edge edge = { tare_graph_add_const(f, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static struct tare_edge dense(struct tare_graph *f, const char *name, struct tare_edge x, int first) {
    char constant[32];
    snprintf(constant, sizeof constant, "%s_w", name);
    return mini_node(f, "MatMul", name, 2, x, weight(f, constant, first));
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    *low = -1;
    *high = 1;
    *found = !arg || strcmp(edge.node->graph->name, arg) != 0; /* `arg`: a function that no sample reached */
    return TARE_OK;
}

/* ---- models: y of x [1, WIDTH] ---- */

static struct tare_edge loop(struct tare_graph_model *model, struct tare_edge x) {
    struct tare_graph *cond = tare_model_add_function(model, "cond"), *body = tare_model_add_function(model, "body");
    const struct tare_edge i = mini_arg(cond, "i", TARE_DT_INT32);
    mini_arg(cond, "v", TARE_DT_FLOAT);
    mini_return(cond, "go", mini_node(cond, "Less", "less", 2, i, mini_int(cond, "steps", STEPS)));
    const struct tare_edge k = mini_arg(body, "i", TARE_DT_INT32), v = mini_arg(body, "v", TARE_DT_FLOAT);
    mini_return(body, "next", mini_node(body, "AddV2", "next", 2, k, mini_int(body, "one", 1)));
    mini_return(body, "w", mini_node(body, "Tanh", "tanh", 1, dense(body, "layer", v, 3)));
    struct tare_node *node = mini_open(model->main, "StatelessWhile", "loop", 2, mini_int(model->main, "zero", 0), x);
    mini_ok(tare_node_set_type_list(node, "T", (const int[]){ TARE_DT_INT32, TARE_DT_FLOAT }, 2));
    mini_ok(tare_node_set_func(node, "cond", "cond"));
    mini_ok(tare_node_set_func(node, "body", "body"));
    return mini_output(mini_done(node), 1);
}

static struct tare_graph *branch(struct tare_graph_model *model, const char *name, int first) {
    struct tare_graph *f = tare_model_add_function(model, name);
    mini_return(f, "y", dense(f, "layer", mini_arg(f, "x", TARE_DT_FLOAT), first));
    return f;
}

static struct tare_edge choice(struct tare_graph_model *model, struct tare_edge x) {
    branch(model, "yes", 5);
    branch(model, "no", 11);
    const struct tare_edge sum =
        mini_node(model->main, "Sum", "sum", 2, x, mini_ints(model->main, "axes", 2, (const int32_t[]){ 0, 1 }));
    struct tare_node *node =
        mini_open(model->main, "StatelessIf", "choice", 2,
                  mini_node(model->main, "Less", "less", 2, sum, mini_float(model->main, "half", 0.5f)), x);
    mini_ok(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
    mini_ok(tare_node_set_type_list(node, "Tin", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "yes"));
    mini_ok(tare_node_set_func(node, "else_branch", "no"));
    return mini_done(node);
}

/* Two calls of one function, one behind the other. */
static struct tare_edge shared(struct tare_graph_model *model, struct tare_edge x) {
    const struct tare_graph *f = branch(model, "shared", 7);
    x = mini_call(model->main, "PartitionedCall", "first", f, 1, x);
    return mini_call(model->main, "PartitionedCall", "second", f, 1, x);
}

/* A loop in a function that a branch calls: nothing of it is in the main graph. */
static struct tare_edge nested(struct tare_graph_model *model, struct tare_edge x) {
    struct tare_graph *f = branch(model, "inner", 13), *g = tare_model_add_function(model, "outer");
    mini_return(g, "y", mini_call(g, "PartitionedCall", "call", f, 1, mini_arg(g, "x", TARE_DT_FLOAT)));
    branch(model, "other", 17);
    struct tare_node *node =
        mini_open(model->main, "StatelessIf", "choice", 2, mini_bool(model->main, "true", true), x);
    mini_ok(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
    mini_ok(tare_node_set_type_list(node, "Tin", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "outer"));
    mini_ok(tare_node_set_func(node, "else_branch", "other"));
    return mini_done(node);
}

/* ---- checks ---- */

struct form {
    struct tare_edge (*make)(struct tare_graph_model *model, struct tare_edge x);
    size_t layers;
    const char *unreached; /* a function; NULL: none */
};

static struct tare_tensor answer(const struct form *form, const struct tare_quant_method *method,
                                 enum tare_quant_op_set op_set) {
    const struct tare_shape shape = tare_shape_make(2, 1, WIDTH);
    const struct tare_quant_ranges ranges = { .find = find, .arg = (void *)(uintptr_t)form->unreached };
    const struct tare_quant_plan options = { .setting.method = method, .op_set = op_set, .min_elements = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y;
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_tensor fed, result;
    mini_ok(tare_node_set_shape(x.node, "shape", &shape));
    y = form->make(model, x);
    if (method) {
        mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
        assert_int_equal(report.count, form->layers);
        for (size_t i = 0; i < report.count; i++)
            if (report.outcomes[i].refused) fail_msg("%s: %s", report.outcomes[i].node, report.outcomes[i].refused);
        for (size_t i = 0; i < model->n_functions; i++)
            for (size_t n = 0; n < model->functions[i]->n_nodes; n++)
                assert_true(tare_edge_dtype((struct tare_edge){ model->functions[i]->nodes[n], 0 }) != TARE_DT_FLOAT ||
                            strcmp(model->functions[i]->nodes[n]->op, "MatMul") != 0);
    }
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < WIDTH; i++)
        TARE_DATA(float, &fed)[i] = 3 * value(i + 29);
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &x, &fed, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return result;
}

static void check(const struct form *form) {
    static const double TOLERANCE = 0.02; /* of activations up to 1: int8 steps are 1/127, each product averages them */
    static const struct {
        const struct tare_quant_method *method;
        enum tare_quant_op_set op_set;
    } ways[] = { { &tare_method_static, TARE_OP_SET_XLA },
                 { &tare_method_dynamic, TARE_OP_SET_XLA },
                 { &tare_method_weight_only, TARE_OP_SET_XLA },
                 { &tare_method_static, TARE_OP_SET_TF },
                 { &tare_method_dynamic, TARE_OP_SET_TF },
                 { &tare_method_static, TARE_OP_SET_UNIFORM_QUANTIZED },
                 { &tare_method_dynamic, TARE_OP_SET_UNIFORM_QUANTIZED } };
    struct tare_tensor expected = answer(form, NULL, TARE_OP_SET_XLA);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct tare_tensor got = answer(form, ways[w].method, ways[w].op_set);
        for (int64_t i = 0; i < WIDTH; i++)
            assert_float_equal(TARE_DATA(float, &got)[i], TARE_DATA(float, &expected)[i], TOLERANCE);
        tare_tensor_reset(&got);
    }
    tare_tensor_reset(&expected);
}

static void while_body__is_quantized(void **state) {
    (void)state;
    check(&(struct form){ loop, 1, NULL });
}

static void branches__are_quantized_both(void **state) {
    (void)state;
    check(&(struct form){ choice, 2, NULL });
}

/* The range of the layers of its form: the branch may be taken later. */
static void branch_without_samples__has_the_range_of_its_form(void **state) {
    (void)state;
    check(&(struct form){ choice, 2, "no" });
}

/* A layer of another form has none. */
static void branch_without_samples__stays_float_alone(void **state) {
    const struct tare_quant_ranges ranges = { .find = find, .arg = (void *)(uintptr_t) "no" };
    const struct tare_quant_plan options = { .setting.method = &tare_method_static, .min_elements = 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    (void)state;
    (void)choice(model, mini_placeholder(model->main, "x", TARE_DT_FLOAT));
    struct tare_graph *no = tare_model_find_function(model, "no");
    struct tare_node *layer = tare_graph_find(no, "layer");
    tare_node_set_input(layer, 0, mini_node(no, "Tanh", "before", 1, (struct tare_edge){ no->args[0], 0 }));
    mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
    assert_int_equal(report.count, 2);
    for (size_t i = 0; i < report.count; i++) {
        const char *refused = report.outcomes[i].refused;
        if (refused) assert_string_equal(refused, "its input was not calibrated (did any sample reach it?)");
        assert_int_equal(refused != NULL, strcmp(report.outcomes[i].function, "no") == 0);
    }
    tare_model_free(model);
    tare_arena_free(&arena);
}

static void shared_function__is_quantized_once(void **state) {
    (void)state;
    check(&(struct form){ shared, 1, NULL });
}

static void nested_functions__are_reached(void **state) {
    (void)state;
    check(&(struct form){ nested, 2, NULL });
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_body__is_quantized),
        cmocka_unit_test(branches__are_quantized_both),
        cmocka_unit_test(branch_without_samples__has_the_range_of_its_form),
        cmocka_unit_test(branch_without_samples__stays_float_alone),
        cmocka_unit_test(shared_function__is_quantized_once),
        cmocka_unit_test(nested_functions__are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
