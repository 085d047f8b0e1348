/* Kernels of libraries: chosen by dtype, their attributes, states, lists, references, functions and threads. */
#include "interpreter/inference/evaluate.h"
#include "support/plugin_fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct tare_edge no_feed;

static struct tare_node *squares(struct tare_graph_model *model, int64_t chunk, int64_t fail_at);

/* ---- kernels ---- */

static void kernel__is_chosen_by_dtype(void **state) {
    static const float floats[] = { 1.5f, 2.5f, 3.5f, 4.5f };
    static const int32_t ints[] = { 5, 4, 3, 2 };
    struct tare_graph_model *model = plugin_model();
    struct tare_edge f = mini_node(model->main, "ZeroOut", "f", 1,
                                   plugin_constant(model->main, TARE_DT_FLOAT, tare_shape_make(2, 2, 2), floats));
    struct tare_node *i = mini_open(model->main, "ZeroOut", "i", 1,
                                    plugin_constant(model->main, TARE_DT_INT32, tare_shape_make(1, 4), ints));
    struct tare_session *session;
    struct tare_tensor result;
    (void)state;
    mini_ok(tare_node_set_int(i, "preserve_index", 2));
    session = mini_session(model);
    result = mini_run(session, no_feed, 0, f);
    assert_int_equal(result.shape.rank, 2);
    assert_memory_equal(result.data, ((float[]){ 1.5f, 0, 0, 0 }), 16);
    tare_tensor_reset(&result);
    result = mini_run(session, no_feed, 0, mini_done(i));
    assert_memory_equal(result.data, ((int32_t[]){ 0, 0, 3, 0 }), 16);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

static void kernel__checks_its_attributes_and_inputs(void **state) {
    static const int32_t ints[] = { 5, 4, 3, 2 };
    struct tare_graph_model *model = plugin_model();
    struct tare_edge x = plugin_constant(model->main, TARE_DT_INT32, tare_shape_make(1, 4), ints);
    struct tare_node *early = mini_open(model->main, "ZeroOut", "early", 1, x);
    struct tare_node *late = mini_open(model->main, "ZeroOut", "late", 1, x);
    int64_t *states;
    void *library;
    (void)state;
    mini_ok(tare_node_set_int(early, "preserve_index", -1));
    mini_ok(tare_node_set_int(late, "preserve_index", 4));
    plugin_run_fails(model, mini_done(early), "early (ZeroOut): Need preserve_index >= 0, got -1");
    plugin_run_fails(model, mini_done(late), "late (ZeroOut): preserve_index out of range");
    library = dlopen(plugin_path("everything"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    states = dlsym(library, "everything_states");
    assert_non_null(states);
    assert_int_equal(*states, 0); /* what was made has been ended */
    dlclose(library);
    tare_model_free(model);
}

/* A dtype that the definition allows and no kernel serves. */
static void kernel__lack_of_one_is_known_before_the_run(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_DOUBLE);
    struct tare_edge y = mini_node(model->main, "ZeroOut", "y", 1, p);
    struct tare_binding input = { .key = "p", .dtype = TARE_DT_DOUBLE, .edge = p, .shape = { .rank = -1 } };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_DOUBLE, .edge = y, .shape = { .rank = -1 } };
    struct tare_signature signature = { "serving_default", "", &input, 1, &output, 1, NULL };
    char expected[8192];
    (void)state;
    model->signatures = &signature;
    model->n_signatures = 1;
    snprintf(
        expected, sizeof expected,
        "1 op cannot be run; load it with --plugin LIB.so: ZeroOut: no kernel for T: float64 (%s has: T: float; T: "
        "int32), used by y",
        plugin_path("everything"));
    assert_int_equal(tare_session_check_ops(model, &signature), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(), expected);
    tare_model_free(model);
}

/* What a session runs before the first signature counts, too. */
static void lacking__initialisers_are_looked_at(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_FLOAT);
    struct tare_binding input = { .key = "p", .dtype = TARE_DT_FLOAT, .edge = p, .shape = { .rank = -1 } };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .edge = p, .shape = { .rank = -1 } };
    struct tare_signature signature = { "serving_default", "", &input, 1, &output, 1, NULL };
    (void)state;
    model->signatures = &signature;
    model->n_signatures = 1;
    mini_ok(tare_session_check_ops(model, &signature));
    model->init_node = mini_node(model->main, "OnlyDefined", "init", 1, mini_float(model->main, "x", 1)).node;
    assert_int_equal(tare_session_check_ops(model, &signature), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(),
                        "1 op cannot be run; load it with --plugin LIB.so: OnlyDefined: used by init");
    struct tare_node *call = tare_graph_add(model->main, "XlaCallModule", "call");
    model->table_inits = &call;
    model->n_table_inits = 1;
    model->module_error = "its module cannot be expanded"; /* for which no library helps */
    assert_int_equal(tare_session_check_ops(model, &signature), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(),
                        "2 ops cannot be run; load those except XlaCallModule with --plugin LIB.so: OnlyDefined: used "
                        "by init; XlaCallModule: used by call; its module cannot be expanded");
    tare_model_free(model);
}

static void attributes__of_every_kind(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *plain = tare_graph_add(model->main, "Describe", "plain");
    struct tare_node *set =
        mini_open(model->main, "Describe", "set", 2, mini_float(model->main, "x", 1), mini_float(model->main, "y", 1));
    struct tare_session *session;
    struct tare_tensor result;
    (void)state;
    mini_ok(tare_node_set_int(plain, "N", 0));
    mini_ok(tare_node_set_int(set, "i", -2));
    mini_ok(tare_node_set_float(set, "f", 0.25f));
    mini_ok(tare_node_set_bool(set, "b", false));
    mini_ok(tare_node_set_type(set, "ty", TARE_DT_HALF));
    mini_ok(tare_node_set_string(set, "s", "x\0y", 3));
    mini_ok(tare_node_set_int_list(set, "ints", (int64_t[]){ 9 }, 1));
    session = mini_session(model);
    result = mini_run(session, no_feed, 0, mini_done(plain));
    assert_string_equal(TARE_CONST_DATA(struct tare_str, &result)[0].data,
                        "foo 3 0 1 1 3 [1 2] 3:5 f 2 3 5 7 b in=0+0 plain");
    tare_tensor_reset(&result);
    result = mini_run(session, no_feed, 0, mini_done(set));
    assert_string_equal(TARE_CONST_DATA(struct tare_str, &result)[0].data,
                        "x 3 -2 0.25 0 19 [1 2] 3:5 f 9 b in=0+2 set");
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

static void attributes__a_compressed_tensor_is_written_out(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *node = tare_graph_add(model->main, "Describe", "node");
    const struct tare_shape shape = tare_shape_make(1, 1000);
    struct tare_tensor splat;
    struct tare_session *session;
    (void)state;
    mini_ok(tare_tensor_scalar_i32(&splat, 8));
    splat.splat = true;
    splat.shape = shape;
    splat.elements = 1000;
    mini_ok(tare_node_set_tensor(node, "te", &splat));
    mini_ok(tare_node_set_int(node, "N", 0));
    session = mini_session(model);
    tare_tensor_reset(&splat);
    splat = mini_run(session, no_feed, 0, mini_done(node));
    assert_non_null(strstr(TARE_CONST_DATA(struct tare_str, &splat)[0].data, " 3:8 "));
    tare_tensor_reset(&splat);
    tare_session_free(session);
    tare_model_free(model);
}

static void faults__of_a_kernel(void **state) {
    static const struct {
        const char *how, *text;
    } cases[] = {
        { "unknown", "ask (Ask): the op has no attribute 'nothing'" },
        { "kind", "ask (Ask): attr 'ints' is of type list(int) (asked for float)" },
        { "entry", "ask (Ask): attr 'ints' has no entry 2 (it has 2)" },
        { "length", "ask (Ask): attr 'how' is of type string (asked for the length of a list)" },
        { "input", "ask (Ask): the node has no input 1 (it has 1)" },
        { "twice", "ask (Ask): output 0 is made twice" },
        { "silent", "ask (Ask): the kernel failed with code 77 and no text" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_graph_model *model = plugin_model();
        struct tare_node *node = mini_open(model->main, "Ask", "ask", 1, mini_float(model->main, "x", 1));
        mini_ok(tare_node_set_string(node, "how", cases[i].how, strlen(cases[i].how)));
        plugin_run_fails(model, mini_done(node), cases[i].text);
        tare_model_free(model);
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
    }
}

static void faults__an_output_that_was_not_made(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *node = mini_open(model->main, "Ask", "ask", 1, mini_float(model->main, "x", 1));
    char expected[8192];
    (void)state;
    mini_ok(tare_node_set_string(node, "how", "nothing", 7));
    snprintf(expected, sizeof expected, "ask (Ask): the kernel of %s did not make output 0", plugin_path("everything"));
    plugin_run_fails(model, mini_done(node), expected);
    tare_model_free(model);
}

static void lists__of_one_type_and_of_several(void **state) {
    struct tare_graph_model *model = plugin_model();
    static const float rows[] = { 1, 2 };
    struct tare_edge row = plugin_constant(model->main, TARE_DT_FLOAT, tare_shape_make(2, 1, 2), rows);
    struct tare_edge sum = mini_node(model->main, "SumAll", "sum", 3, row, row, row);
    struct tare_node *parts = tare_graph_add(model->main, "ReverseParts", "parts");
    struct tare_session *session;
    struct tare_tensor result;
    (void)state;
    mini_ok(tare_node_add_input(parts, mini_float(model->main, "one", 1)));
    mini_ok(tare_node_add_input(parts, mini_int(model->main, "two", 2)));
    mini_ok(tare_node_set_type_list(parts, "Tin", (int[]){ TARE_DT_FLOAT, TARE_DT_INT32 }, 2));
    mini_ok(tare_node_set_type_list(parts, "Tout", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT }, 2));
    mini_done(parts);
    session = mini_session(model);
    result = mini_run(session, no_feed, 0, sum);
    assert_memory_equal(result.data, ((float[]){ 3, 6 }), 8);
    tare_tensor_reset(&result);
    assert_float_equal(mini_number(session, no_feed, 0, (struct tare_edge){ parts, 0 }), 2, 0);
    assert_float_equal(mini_number(session, no_feed, 0, (struct tare_edge){ parts, 1 }), 1, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void lists__too_short_and_of_a_wrong_type(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_edge x = mini_float(model->main, "x", 1);
    struct tare_edge sum = mini_node(model->main, "SumAll", "sum", 1, x);
    struct tare_edge mixed = mini_node(model->main, "OnlyFloats", "mixed", 2, x, mini_int(model->main, "i", 1));
    char expected[8192];
    (void)state;
    plugin_run_fails(model, sum, "sum (SumAll): SumAll 'sum': Value for attr 'N' of 1 must be at least minimum 2");
    snprintf(expected, sizeof expected, "mixed (OnlyFloats): no kernel for Tin: float32 int32 (%s has: Tin: float)",
             plugin_path("everything"));
    plugin_run_fails(model, mixed, expected);
    tare_model_free(model);
}

static void ref__is_read_assigned_and_forwarded(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *variable = tare_graph_add(model->main, "VariableV2", "v");
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_edge bumped, read;
    struct tare_session *session;
    (void)state;
    mini_ok(tare_node_set_type(variable, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(variable, "shape", &scalar));
    mini_ok(tare_node_resolve(variable));
    model->variables = TARE_NEW_ARRAY(&model->arena, struct tare_variable, 1);
    model->variables[0] = (struct tare_variable){
        .node = variable, .shared_name = "v", .dtype = TARE_DT_FLOAT, .shape = scalar, .object_id = -1
    };
    mini_ok(tare_tensor_scalar_f32(&model->variables[0].value, 40));
    model->n_variables = 1;
    bumped = mini_node(model->main, "Bump", "bumped", 1, (struct tare_edge){ variable, 0 });
    read = mini_node(model->main, "Identity", "read", 1, bumped);
    session = mini_session(model);
    assert_float_equal(mini_number(session, no_feed, 0, read), 41, 0);
    assert_float_equal(mini_number(session, no_feed, 0, read), 42, 0);
    tare_session_free(session);
    tare_tensor_reset(&model->variables[0].value);
    tare_model_free(model);
}

static void ref__without_a_value_says_so(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *variable = tare_graph_add(model->main, "VariableV2", "v");
    struct tare_shape scalar = tare_shape_scalar();
    (void)state;
    mini_ok(tare_node_set_type(variable, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(variable, "shape", &scalar));
    mini_ok(tare_node_resolve(variable));
    model->variables = TARE_NEW_ARRAY(&model->arena, struct tare_variable, 1);
    model->variables[0] = (struct tare_variable){
        .node = variable, .shared_name = "v", .dtype = TARE_DT_FLOAT, .shape = scalar, .object_id = -1
    };
    model->n_variables = 1;
    plugin_run_fails(model, mini_node(model->main, "Bump", "bumped", 1, (struct tare_edge){ variable, 0 }),
                     "bumped (Bump): variable 'v' is not initialised");
    tare_model_free(model);
}

/* f(a, x) = a + x, applied `times` times from a = x. */
static struct tare_node *apply(struct tare_graph_model *model, int64_t times) {
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge a = mini_arg(f, "a", TARE_DT_FLOAT), x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_node *node;
    mini_return(f, "y", mini_node(f, "AddV2", "sum", 2, a, x));
    node = mini_open(model->main, "Apply", "apply", 1, mini_float(model->main, "x", 5));
    mini_ok(tare_node_set_func(node, "f", "f"));
    mini_ok(tare_node_set_int(node, "times", times));
    mini_done(node);
    return node;
}

static void function__is_called_with_tensors(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *node = apply(model, 3);
    struct tare_session *session = mini_session(model);
    (void)state;
    assert_float_equal(mini_number(session, no_feed, 0, (struct tare_edge){ node, 0 }), 20, 0);
    assert_float_equal(mini_number(session, no_feed, 0, (struct tare_edge){ node, 0 }), 20, 0);
    assert_false(tare_node_is_pure(node)); /* only a session can call */
    tare_session_free(session);
    tare_model_free(model);
}

static void function__must_be_there_and_fit(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *node = apply(model, 1);
    struct tare_graph *one = tare_model_add_function(model, "one");
    (void)state;
    mini_return(one, "y", mini_arg(one, "x", TARE_DT_FLOAT));
    mini_ok(tare_node_set_func(node, "f", "one"));
    plugin_run_fails(model, (struct tare_edge){ node, 0 },
                     "apply (Apply): a call of one with 2 arguments and 1 results (expected 1 and 1)");
    mini_ok(tare_node_set_func(node, "f", "nothing"));
    plugin_run_fails(model, (struct tare_edge){ node, 0 },
                     "apply (Apply): attr 'f' names the function nothing, which is not there");
    tare_model_free(model);
}

/* Constants are folded by kernels of libraries, too, outside of any session. */
static void kernel__folds_constants(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_node *node = squares(model, 1000, -1);
    const struct tare_tensor *input = tare_edge_constant(node->inputs[0]);
    struct tare_tensor result = { 0 };
    (void)state;
    assert_true(tare_node_is_pure(node));
    mini_ok(tare_node_evaluate(node, input, &result));
    assert_float_equal(TARE_CONST_DATA(float, &result)[100], 10000, 0);
    tare_tensor_reset(&result);
    tare_model_free(model);
}

static void numbers_and_strings(void **state) {
    static const uint16_t halves[] = { 0x3c00, 0x4248 }, brain[] = { 0x3f80 };
    static const char *const words[] = { "a", "" };
    struct tare_graph_model *model = plugin_model();
    struct tare_graph *g = model->main;
    struct tare_edge h = mini_node(g, "Twice", "h", 1, plugin_constant(g, TARE_DT_HALF, tare_shape_make(1, 2), halves));
    struct tare_edge b =
        mini_node(g, "Twice", "b", 1, plugin_constant(g, TARE_DT_BFLOAT16, tare_shape_make(1, 1), brain));
    struct tare_edge s = mini_node(g, "Shout", "s", 1, mini_strings(g, "words", 2, words));
    struct tare_edge f =
        mini_node(g, "Flatten", "f", 1, plugin_constant(g, TARE_DT_FLOAT, tare_shape_make(2, 1, 1), &(float){ 3 }));
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, no_feed, 0, h);
    (void)state;
    assert_memory_equal(result.data, ((uint16_t[]){ 0x4000, 0x4648 }), 4);
    tare_tensor_reset(&result);
    result = mini_run(session, no_feed, 0, b);
    assert_int_equal(TARE_CONST_DATA(uint16_t, &result)[0], 0x4000);
    tare_tensor_reset(&result);
    result = mini_run(session, no_feed, 0, s);
    assert_int_equal(TARE_CONST_DATA(struct tare_str, &result)[0].size, 2);
    assert_memory_equal(TARE_CONST_DATA(struct tare_str, &result)[0].data, "a!", 2);
    assert_memory_equal(TARE_CONST_DATA(struct tare_str, &result)[1].data, "!", 1);
    tare_tensor_reset(&result);
    result = mini_run(session, no_feed, 0, f);
    assert_int_equal(result.shape.rank, 1);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- threads ---- */

enum { MANY = 10007 };

static struct tare_session *session_of_threads(const struct tare_graph_model *model, int threads) {
    const struct tare_session_options options = { .op_threads = threads };
    struct tare_session *session;
    mini_ok(tare_session_new(&session, model, &options));
    return session;
}

static struct tare_node *squares(struct tare_graph_model *model, int64_t chunk, int64_t fail_at) {
    static float values[MANY];
    struct tare_node *node;
    for (int i = 0; i < MANY; i++)
        values[i] = (float)i;
    node = mini_open(model->main, "SquareInRanges", "squares", 1,
                     plugin_constant(model->main, TARE_DT_FLOAT, tare_shape_make(1, MANY), values));
    mini_ok(tare_node_set_int(node, "chunk", chunk));
    mini_ok(tare_node_set_int(node, "fail_at", fail_at));
    mini_done(node);
    return node;
}

static void parallel_for__covers_every_item_once(void **state) {
    static const int64_t chunks[] = { 1, 7, 1000, MANY, 20000 };
    (void)state;
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++)
        for (int threads = 1; threads <= 3; threads++) {
            struct tare_graph_model *model = plugin_model();
            struct tare_node *node = squares(model, chunks[k], -1);
            struct tare_session *session = session_of_threads(model, threads);
            struct tare_tensor result = mini_run(session, no_feed, 0, (struct tare_edge){ node, 0 });
            for (int i = 0; i < MANY; i++)
                assert_float_equal(TARE_CONST_DATA(float, &result)[i], (float)i * (float)i, 0);
            tare_tensor_reset(&result);
            tare_session_free(session);
            tare_model_free(model);
            plugin_tear_down(NULL);
            plugin_set_up(NULL);
        }
}

static void parallel_for__the_first_range_that_fails_counts(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct tare_graph_model *model = plugin_model();
        struct tare_node *node = squares(model, 100, 9000); /* ranges up to the one of item 9000 fail */
        struct tare_session *session = session_of_threads(model, threads);
        struct tare_edge fetch = { node, 0 };
        struct tare_tensor result;
        assert_int_equal(tare_session_run(session, NULL, NULL, 0, &fetch, &result, 1, NULL, 0), TARE_INVALID_ARGUMENT);
        assert_string_equal(tare_error_text(), "squares (SquareInRanges): range 0 to 100");
        tare_session_free(session);
        tare_model_free(model);
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
    }
}

static void parallel_for__runs_ranges_at_the_same_time(void **state) {
    struct tare_graph_model *model = plugin_model();
    struct tare_edge meet = mini_node(model->main, "Meet", "meet", 1, mini_float(model->main, "x", 5));
    struct tare_session *session = session_of_threads(model, 2);
    (void)state;
    assert_float_equal(mini_number(session, no_feed, 0, meet), 5, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void parallel_for__needs_a_range(void **state) {
    struct tare_graph_model *model = plugin_model();
    (void)state;
    plugin_run_fails(model, (struct tare_edge){ squares(model, 0, -1), 0 },
                     "squares (SquareInRanges): 10007 items in ranges of 0");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PLUGIN_CASE(kernel__is_chosen_by_dtype),
        PLUGIN_CASE(kernel__checks_its_attributes_and_inputs),
        PLUGIN_CASE(kernel__lack_of_one_is_known_before_the_run),
        PLUGIN_CASE(lacking__initialisers_are_looked_at),
        PLUGIN_CASE(attributes__of_every_kind),
        PLUGIN_CASE(attributes__a_compressed_tensor_is_written_out),
        PLUGIN_CASE(faults__of_a_kernel),
        PLUGIN_CASE(faults__an_output_that_was_not_made),
        PLUGIN_CASE(lists__of_one_type_and_of_several),
        PLUGIN_CASE(lists__too_short_and_of_a_wrong_type),
        PLUGIN_CASE(ref__is_read_assigned_and_forwarded),
        PLUGIN_CASE(ref__without_a_value_says_so),
        PLUGIN_CASE(function__is_called_with_tensors),
        PLUGIN_CASE(function__must_be_there_and_fit),
        PLUGIN_CASE(kernel__folds_constants),
        PLUGIN_CASE(numbers_and_strings),
        PLUGIN_CASE(parallel_for__covers_every_item_once),
        PLUGIN_CASE(parallel_for__the_first_range_that_fails_counts),
        PLUGIN_CASE(parallel_for__runs_ranges_at_the_same_time),
        PLUGIN_CASE(parallel_for__needs_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
