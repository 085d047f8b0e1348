/* Straight graphs and calls: order, lifetimes, constants, faults, observation, limits. */
#include "support/mini_model.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

static const struct tare_edge none = { NULL, 0 };

static void plan__runs_only_what_the_fetch_needs(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, x);
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, a, x);
    mini_node(g, "TestFail", "never", 1, a);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 2, b), 6, 0);
    assert_string_equal(mini_log.order, "a b ");
    tare_session_free(session);
    tare_model_free(model);
}

static void plan__feed_of_an_inner_tensor_cuts_off_what_lies_above(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestFail", "a", 1, x);
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, a, a);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, a, 5, b), 10, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void plan__edge_that_is_fed_twice_must_be_fed_one_value(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT),
                     y = mini_node(model->main, "TestAdd", "y", 2, x, x);
    struct tare_edge feeds[3] = { x, y, x };
    struct tare_tensor values[3] = { mini_scalar(TARE_DT_FLOAT, 2), { 0 }, mini_scalar(TARE_DT_FLOAT, 2) }, result;
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, feeds, values, 3, &y, &result, 1, NULL, 0));
    assert_float_equal(TARE_DATA(float, &result)[0], 4, 0);
    tare_tensor_reset(&result);
    TARE_DATA(float, &values[2])[0] = 3;
    mini_fails(tare_session_run(session, feeds, values, 3, &y, &result, 1, NULL, 0),
               "x:0 is fed twice, with different values");
    tare_tensor_reset(&values[0]);
    tare_tensor_reset(&values[2]);
    tare_session_free(session);
    tare_model_free(model);
}

/* With many feeds: the sum of all placeholders, two of which are fed twice. */
static void plan__many_feeds_may_repeat_with_equal_values(void **state) {
    enum { PLACEHOLDERS = 300 };
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge feeds[PLACEHOLDERS + 2], y;
    struct tare_tensor values[PLACEHOLDERS + 2], result;
    for (int i = 0; i < PLACEHOLDERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        feeds[i] = mini_placeholder(model->main, name, TARE_DT_FLOAT);
        values[i] = mini_scalar(TARE_DT_FLOAT, i);
        y = i ? mini_node(model->main, "TestAdd", "y", 2, y, feeds[i]) : feeds[0];
    }
    for (int i = 0; i < 2; i++) {
        feeds[PLACEHOLDERS + i] = feeds[100 * i + 5];
        values[PLACEHOLDERS + i] = mini_scalar(TARE_DT_FLOAT, 100 * i + 5);
    }
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, feeds, values, PLACEHOLDERS + 2, &y, &result, 1, NULL, 0));
    assert_float_equal(TARE_DATA(float, &result)[0], PLACEHOLDERS * (PLACEHOLDERS - 1) / 2, 0);
    tare_tensor_reset(&result);
    TARE_DATA(float, &values[PLACEHOLDERS + 1])[0] = 3;
    mini_fails(tare_session_run(session, feeds, values, PLACEHOLDERS + 2, &y, &result, 1, NULL, 0),
               "x105:0 is fed twice, with different values");
    for (int i = 0; i < PLACEHOLDERS + 2; i++)
        tare_tensor_reset(&values[i]);
    tare_session_free(session);
    tare_model_free(model);
}

static void plan__controls_come_first(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestEffect", "a", 1, x);
    struct tare_edge b = mini_node(g, "TestEffect", "b", 1, x);
    mini_ok(tare_node_add_control(a.node, b.node));
    struct tare_session *session = mini_session(model);
    mini_number(session, x, 1, a);
    assert_string_equal(mini_log.order, "b a ");
    tare_session_free(session);
    tare_model_free(model);
}

static void plan__memory_is_reused_in_place_but_not_the_callers(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge c = mini_float(g, "c", 1);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, c); /* the caller's and */
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, c, a); /* the model's memory stay */
    struct tare_edge d = mini_node(g, "TestAdd", "d", 2, b, a); /* b is exclusive and has its last use here */
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 3), result;
    for (int i = 0; i < 2; i++) {
        mini_ok(tare_session_run(session, &x, &fed, 1, &d, &result, 1, NULL, 0));
        assert_float_equal(TARE_DATA(float, &result)[0], 9, 0);
        tare_tensor_reset(&result);
    }
    assert_float_equal(TARE_DATA(float, &fed)[0], 3, 0);
    assert_int_equal(mini_log.reused, 2);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void plan__fetched_values_are_not_written_over(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, x);
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, a, x);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), results[3];
    struct tare_edge fetches[3] = { a, b, a };
    mini_ok(tare_session_run(session, &x, &fed, 1, fetches, results, 3, NULL, 0));
    assert_float_equal(TARE_DATA(float, &results[0])[0], 2, 0);
    assert_float_equal(TARE_DATA(float, &results[1])[0], 3, 0);
    assert_float_equal(TARE_DATA(float, &results[2])[0], 2, 0);
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&results[i]);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void constants__are_computed_once_a_session(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge c = mini_float(g, "c", 2);
    struct tare_edge c2 = mini_node(g, "TestAdd", "c2", 2, c, c);
    struct tare_edge c3 = mini_node(g, "TestAdd", "c3", 2, c2, c);
    struct tare_edge y = mini_node(g, "TestAdd", "y", 2, c3, x);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 1, y), 7, 0);
    assert_float_equal(mini_number(session, x, 2, y), 8, 0);
    assert_string_equal(mini_log.order, "c2 c3 y y ");
    assert_float_equal(mini_number(session, none, 0, c3), 6, 0);
    assert_float_equal(mini_number(session, c, 10, c3), 30, 0); /* a fed constant is none */
    tare_session_free(session);
    tare_model_free(model);
}

static void constants__that_were_compressed_are_spread_out(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_shape shape = tare_shape_make(1, 3);
    struct tare_tensor splat = mini_scalar(TARE_DT_FLOAT, 4);
    splat.splat = true;
    splat.shape = shape;
    splat.elements = 3;
    struct tare_edge c = { tare_graph_add_const(g, "c", &splat), 0 };
    struct tare_edge y = mini_node(g, "TestAdd", "y", 2, c, c);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, none, 0, y);
    assert_int_equal(result.elements, 3);
    assert_false(result.splat);
    for (int i = 0; i < 3; i++)
        assert_float_equal(TARE_DATA(float, &result)[i], 8, 0);
    tare_tensor_reset(&result);
    tare_tensor_reset(&splat);
    tare_session_free(session);
    tare_model_free(model);
}

/* twice(x) = x + x, with an effect that no result needs */
static struct tare_graph *add_twice(struct tare_graph_model *model) {
    struct tare_graph *f = tare_model_add_function(model, "twice");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_node(f, "TestEffect", "effect", 1, x);
    mini_node(f, "TestAdd", "unused", 2, x, x);
    mini_return(f, "y", mini_node(f, "TestAdd", "sum", 2, x, x));
    return f;
}

static void call__runs_effects_and_results_of_a_function(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = add_twice(model);
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "y", f, 1, x);
    struct tare_edge z = mini_call(model->main, "StatefulPartitionedCall", "z", f, 1, y);
    struct tare_edge w = mini_node(model->main, "twice", "w", 1, z); /* a call by name */
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 1, w), 8, 0);
    assert_string_equal(mini_log.order, "effect sum effect sum effect sum ");
    assert_int_equal(tare_session_function_runs(session, f), 3);
    tare_session_free(session);
    tare_model_free(model);
}

static void call__refuses_wrong_dtypes_and_shapes(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_double_162");
    struct tare_shape shape = tare_shape_make(2, 2, -1);
    struct tare_edge x = mini_arg(f, "x", TARE_DT_STRING);
    mini_ok(tare_node_set_shape_list(x.node, "_output_shapes", &shape, 1));
    mini_return(f, "y", mini_node(f, "Identity", "id", 1, x));
    struct tare_session *session = mini_session(model);
    struct tare_tensor arg = mini_scalar(TARE_DT_INT32, 1), result;
    struct tare_shape scalar = tare_shape_scalar();
    arg.shape = tare_shape_make(2, 1, 1);
    mini_fails(tare_session_call(session, f, &arg, 1, &result, 1), "expected to have shape [2,?] but has shape [1,1]");
    arg.shape = scalar;
    tare_node_remove_attr(x.node, "_output_shapes");
    mini_fails(
        tare_session_call(session, f, &arg, 1, &result, 1),
        "cannot compute __inference_double_162 as input #0(zero-based) was expected to be a string tensor but is a "
        "int32 tensor");
    tare_tensor_reset(&arg);
    tare_session_free(session);
    tare_model_free(model);
}

static void call__says_which_functions_recurse(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "F"), *h = tare_model_add_function(model, "G");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), y = mini_arg(h, "y", TARE_DT_FLOAT);
    mini_ok(tare_graph_add_return(h, "r", TARE_DT_FLOAT, y));
    struct tare_edge call_g = mini_call(f, "PartitionedCall", "call_g", h, 1, x);
    mini_return(f, "r", call_g);
    struct tare_edge call_f = mini_call(h, "PartitionedCall", "call_f", f, 1, y);
    tare_graph_set_return(h, 0, call_f);
    struct tare_session *session = mini_session(model);
    struct tare_tensor arg = mini_scalar(TARE_DT_FLOAT, 1), result;
    mini_fails(tare_session_call(session, f, &arg, 1, &result, 1), "recursive function F (F calls G calls F)");
    tare_tensor_reset(&arg);
    tare_session_free(session);
    tare_model_free(model);
}

static void fault__names_function_node_and_op(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "inner");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "TestFail", "bad", 1, x));
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "y", f, 1, p);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), result;
    for (int i = 0; i < 2; i++) {
        mini_fails(tare_session_run(session, &p, &fed, 1, &y, &result, 1, NULL, 0),
                   "inner/bad (TestFail): it was asked to");
        assert_string_equal(tare_error_text(), "inner/bad (TestFail): it was asked to");
    }
    mini_fails(tare_session_run(session, NULL, NULL, 0, &y, &result, 1, NULL, 0), "p (Placeholder): no value was fed");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void fault__wrong_dtypes_are_found_before_the_run(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT), n = mini_placeholder(g, "n", TARE_DT_INT32);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, n);
    struct tare_edge b = mini_node(g, "TestAdd", "b", 1, x);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), result;
    mini_fails(tare_session_run(session, &x, &fed, 1, &a, &result, 1, NULL, 0),
               "a (TestAdd): input 0 is float32 (expected int32)");
    mini_fails(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0), "b (TestAdd): 1 inputs (expected 2)");
    mini_fails(tare_session_run(session, &n, &fed, 1, &n, &result, 1, NULL, 0), "feed n:0 is float32 (expected int32)");
    assert_int_equal(mini_log.runs, 0);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void fault__ops_without_kernel_are_listed_and_named(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "inner");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y", mini_node(f, "TestNothing", "gap", 1, x));
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_FLOAT);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "y", f, 1, p);
    struct tare_binding input = { .key = "p", .dtype = TARE_DT_FLOAT, .edge = p, .shape = { .rank = -1 } };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .edge = y, .shape = { .rank = -1 } };
    struct tare_signature signature = { "serving_default", "", &input, 1, &output, 1, NULL };
    struct tare_strbuf text = { 0 };
    model->signatures = &signature;
    model->n_signatures = 1;
    size_t missing;
    mini_ok(tare_session_missing_ops(&missing, model, NULL, &text));
    assert_int_equal(missing, 1);
    assert_string_equal(tare_strbuf_text(&text), "TestNothing: used by inner/gap\n");
    tare_strbuf_free(&text);
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 1), result;
    mini_fails(tare_session_run_signature(session, &signature, &fed, &result),
               "signature 'serving_default': inner/gap (TestNothing): this op has a definition, but no kernel");
    tare_tensor_reset(&fed);
    fed = mini_scalar(TARE_DT_INT32, 1);
    mini_fails(tare_session_run_signature(session, &signature, &fed, &result), "input 'p' is int32 (expected float32)");
    tare_tensor_reset(&fed);
    fed = mini_scalar(TARE_DT_FLOAT, 1);
    input.shape = tare_shape_make(1, -1);
    mini_fails(tare_session_run_signature(session, &signature, &fed, &result), "input 'p' has shape [] (expected [?])");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void fault__cycles_are_named(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, x);
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, a, x);
    tare_node_set_input(a.node, 1, b);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    mini_fails(tare_session_run(session, NULL, NULL, 0, &b, &result, 1, NULL, 0), "cycle");
    tare_session_free(session);
    tare_model_free(model);
}

struct seen {
    int asked, count;
    char names[256];
};

static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    struct seen *seen = arg;
    (void)output;
    seen->asked++;
    return strcmp(node->name, "sum") == 0 || strcmp(node->name, "c") == 0 || strcmp(node->name, "p") == 0 ||
           tare_node_is_arg(node);
}

static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct seen *seen = arg;
    (void)output;
    assert_int_equal(value->dtype, TARE_DT_FLOAT);
    seen->count++;
    strcat(seen->names, node->name);
    strcat(seen->names, " ");
    return TARE_OK;
}

static void observation__shows_wanted_nodes_constants_and_feeds_too(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = add_twice(model);
    struct tare_edge x = mini_placeholder(model->main, "p", TARE_DT_FLOAT);
    struct tare_edge c = mini_float(model->main, "c", 1);
    struct tare_edge s = mini_node(model->main, "TestAdd", "s", 2, x, c);
    struct tare_edge y = mini_call(model->main, "PartitionedCall", "y", f, 1, s);
    struct tare_session *session = mini_session(model);
    struct seen seen = { 0 };
    mini_number(session, x, 1, y);
    tare_session_observe(session, see, accepts, &seen);
    mini_number(session, x, 1, y);
    int asked = seen.asked;
    mini_number(session, x, 1, y);
    assert_string_equal(seen.names, "p c x sum p c x sum ");
    assert_int_equal(seen.asked, asked);
    tare_session_observe(session, NULL, NULL, NULL);
    mini_number(session, x, 1, y);
    assert_int_equal(seen.count, 8);
    tare_session_free(session);
    tare_model_free(model);
}

static void limit__memory_is_refused_before_it_is_taken(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_session_options options = { .memory_limit = 100000 };
    struct tare_shape shape = tare_shape_make(1, 20000);
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, x); /* 80 kB */
    struct tare_edge b = mini_node(g, "TestAdd", "b", 2, x, a);
    struct tare_session *session;
    struct tare_tensor fed, result;
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    memset(fed.data, 0, tare_tensor_bytes(&fed));
    mini_ok(tare_session_new(&session, model, &options));
    mini_ok(tare_session_run(session, &x, &fed, 1, &a, &result, 1, NULL, 0));
    tare_tensor_reset(&result);
    mini_fails(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0), "b (TestAdd)");
    assert_non_null(strstr(tare_error_text(), "memory limit"));
    mini_ok(tare_session_run(session, &x, &fed, 1, &a, &result, 1, NULL, 0));
    tare_tensor_reset(&result);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void options__numerics_and_profile(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_session_options options = { .check_numerics = true, .profile = true };
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge a = mini_node(g, "TestAdd", "a", 2, x, x);
    struct tare_session *session;
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 3e38), result;
    struct tare_profile_row *rows;
    struct tare_arena arena = { 0 };
    size_t count;
    mini_ok(tare_session_new(&session, model, &options));
    assert_float_equal(mini_number(session, x, 1, a), 2, 0);
    mini_fails(tare_session_run(session, &x, &fed, 1, &a, &result, 1, NULL, 0),
               "a (TestAdd): output 0 has an infinity at element 0");
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    assert_int_equal(count, 1);
    assert_ptr_equal(rows[0].node, a.node);
    assert_int_equal(rows[0].calls, 2);
    tare_arena_free(&arena);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void batch_function__runs_each_call_as_a_batch(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    add_twice(model);
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    int float_type = TARE_DT_FLOAT;
    struct tare_node *node = mini_open(model->main, "BatchFunction", "b", 1, x);
    mini_ok(tare_node_set_func(node, "f", "twice"));
    mini_ok(tare_node_set_type_list(node, "Tin", &float_type, 1));
    mini_ok(tare_node_set_type_list(node, "Tcaptured", &float_type, 0));
    mini_ok(tare_node_set_type_list(node, "Tout", &float_type, 1));
    mini_ok(tare_node_set_int(node, "num_batch_threads", 1));
    mini_ok(tare_node_set_int(node, "max_batch_size", 2));
    mini_ok(tare_node_set_int(node, "batch_timeout_micros", 0));
    struct tare_edge b = mini_done(node);
    struct tare_session *session = mini_session(model);
    float values[3] = { 1, 2, 3 };
    struct tare_shape two = tare_shape_make(1, 2), three = tare_shape_make(1, 3), empty = tare_shape_make(2, 0, 4);
    struct tare_tensor fed, result;
    mini_ok(tare_tensor_from(&fed, TARE_DT_FLOAT, &two, values));
    mini_ok(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0));
    assert_float_equal(TARE_DATA(float, &result)[1], 4, 0);
    tare_tensor_reset(&result);
    tare_tensor_reset(&fed);
    mini_ok(tare_tensor_from(&fed, TARE_DT_FLOAT, &three, values));
    mini_fails(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0),
               "Task size 3 is larger than maximum batch size 2");
    tare_tensor_reset(&fed);
    mini_ok(tare_tensor_from(&fed, TARE_DT_FLOAT, &empty, values));
    mini_ok(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0));
    assert_int_equal(result.shape.rank, 1);
    assert_int_equal(result.elements, 0);
    tare_tensor_reset(&result);
    tare_tensor_reset(&fed);
    fed = mini_scalar(TARE_DT_FLOAT, 1);
    mini_fails(tare_session_run(session, &x, &fed, 1, &b, &result, 1, NULL, 0),
               "Batching input tensors must have at least one dimension (got x has shape [])");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

/* x multiplied with itself, as a function of its own. */
static struct tare_edge call_product(struct tare_graph_model *model, struct tare_edge x, int number) {
    char name[32];
    snprintf(name, sizeof name, "product%d", number);
    struct tare_graph *function = tare_model_add_function(model, name);
    assert_non_null(function);
    const struct tare_edge arg = mini_arg(function, "x", TARE_DT_FLOAT);
    mini_return(function, "y", mini_node(function, "MatMul", "y", 2, arg, arg));
    return mini_call(model->main, "PartitionedCall", name, function, 1, x);
}

/* The scratch memory of a product is half a MiB. */
static void scratch__is_not_kept_for_each_function(void **state) {
    enum { CALLS = 200, MOST_BYTES_PER_CALL = 64 << 10 };
    static const struct tare_shape shape = { .rank = 2, .dims = { 4, 4 } };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = x;
    struct tare_tensor value, result;
    (void)state;
    for (int i = 0; i < CALLS; i++)
        y = call_product(model, y, i);
    tare_alloc_set_limit((size_t)1 << 40); /* memory in use is counted only with a limit */
    const size_t before = tare_alloc_in_use();
    struct tare_session *session = mini_session(model);
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int run = 0; run < 2; run++) {
        mini_ok(tare_session_run(session, &x, &value, 1, &y, &result, 1, NULL, 0));
        tare_tensor_reset(&result);
    }
    assert_in_range(tare_alloc_in_use() - before, 0, (size_t)CALLS * MOST_BYTES_PER_CALL);
    tare_tensor_reset(&value);
    tare_session_free(session);
    tare_model_free(model);
    tare_alloc_set_limit(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan__runs_only_what_the_fetch_needs),
        cmocka_unit_test(plan__feed_of_an_inner_tensor_cuts_off_what_lies_above),
        cmocka_unit_test(plan__edge_that_is_fed_twice_must_be_fed_one_value),
        cmocka_unit_test(plan__many_feeds_may_repeat_with_equal_values),
        cmocka_unit_test(plan__controls_come_first),
        cmocka_unit_test(plan__memory_is_reused_in_place_but_not_the_callers),
        cmocka_unit_test(plan__fetched_values_are_not_written_over),
        cmocka_unit_test(constants__are_computed_once_a_session),
        cmocka_unit_test(constants__that_were_compressed_are_spread_out),
        cmocka_unit_test(call__runs_effects_and_results_of_a_function),
        cmocka_unit_test(call__refuses_wrong_dtypes_and_shapes),
        cmocka_unit_test(call__says_which_functions_recurse),
        cmocka_unit_test(fault__names_function_node_and_op),
        cmocka_unit_test(fault__wrong_dtypes_are_found_before_the_run),
        cmocka_unit_test(fault__ops_without_kernel_are_listed_and_named),
        cmocka_unit_test(fault__cycles_are_named),
        cmocka_unit_test(observation__shows_wanted_nodes_constants_and_feeds_too),
        cmocka_unit_test(limit__memory_is_refused_before_it_is_taken),
        cmocka_unit_test(scratch__is_not_kept_for_each_function),
        cmocka_unit_test(options__numerics_and_profile),
        cmocka_unit_test(batch_function__runs_each_call_as_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
