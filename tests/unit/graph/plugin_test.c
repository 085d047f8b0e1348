/* Libraries of ops: what they may register, how their kernels and shape functions run, and how what is wrong is said.
 * The libraries are tests/plugins. */
#include "graph/plugin.h"
#include "graph/evaluate.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "support/mini_model.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tare_plugins *plugins;

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", TARE_TEST_PLUGINS, name);
    return path;
}

static int set_up(void **state) {
    (void)state;
    plugins = tare_plugins_new(tare_ops_builtin());
    return plugins ? 0 : -1;
}

static int tear_down(void **state) {
    static const char *const asked[] = { "ASKED_OP",     "ASKED_ATTR",    "ASKED_INPUT",       "ASKED_OUTPUT",
                                         "ASKED_KERNEL", "ASKED_KERNEL2", "ASKED_NULL_KERNEL", "ASKED_FAIL",
                                         "ASKED_TWICE",  "ASKED_NOTHING" };
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        unsetenv(asked[i]);
    tare_plugins_free(plugins);
    return 0;
}

static struct tare_model *new_model(void) {
    struct tare_model *model = tare_model_new();
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    assert_non_null(model);
    model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    assert_non_null(model->custom_ops);
    return model;
}

static struct tare_edge constant(struct tare_graph *graph, int dtype, struct tare_shape shape, const void *values) {
    struct tare_tensor tensor;
    struct tare_node *node;
    mini_ok(tare_tensor_from(&tensor, dtype, &shape, values));
    node = tare_graph_add_const(graph, "constant", &tensor);
    assert_non_null(node);
    tare_tensor_reset(&tensor);
    return (struct tare_edge){ node, 0 };
}

static const struct tare_edge no_feed;

/* ---- loading ---- */

static void expect_load_fault(const char *name, tare_status status, const char *text) {
    char wanted[8192];
    snprintf(wanted, sizeof wanted, "plugin %s: %s", path_of(name), text);
    assert_int_equal(tare_plugins_load(plugins, path_of(name)), status);
    assert_string_equal(tare_error_text(), wanted);
}

static void load__registers_rows_like_the_built_in_ones(void **state) {
    const struct tare_op_def *def;
    size_t builtins, all;
    (void)state;
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    tare_ops_list(tare_ops_builtin(), &builtins);
    tare_ops_list(tare_plugins_ops(plugins), &all);
    assert_int_equal(all, builtins + 15);
    def = tare_ops_find(tare_plugins_ops(plugins), "ZeroOut");
    assert_non_null(def);
    assert_non_null(def->row->run);
    assert_string_equal(def->row->inputs, "to_zero: T");
    assert_string_equal(def->row->attrs, "T: {float, double, int32} = DT_INT32; preserve_index: int = 0");
    assert_int_equal(def->attrs[0].default_value->items[0].type, TARE_DT_INT32);
    assert_string_equal(tare_plugin_path_of(def), path_of("everything"));
    assert_string_equal(tare_plugin_doc_of(def), "Keeps one element and zeroes the others.");
    assert_string_equal(tare_plugin_kernels_of(def), "T: float; T: int32");
    def = tare_ops_find(tare_plugins_ops(plugins), "SumAll");
    assert_int_equal(def->attrs[0].minimum, 2);
    assert_int_equal(def->attrs[1].allowed->count, 12);
    assert_true(tare_ops_find(tare_plugins_ops(plugins), "Bump")->is_stateful);
    assert_true(tare_ops_find(tare_plugins_ops(plugins), "Bump")->inputs[0].is_ref);
    assert_true(tare_ops_find(tare_plugins_ops(plugins), "Twice")->row->flags & TARE_OP_ELEMENTWISE);
    assert_null(tare_ops_find(tare_plugins_ops(plugins), "OnlyDefined")->row->run);
    assert_null(tare_plugin_path_of(tare_ops_find(tare_plugins_ops(plugins), "MatMul")));
    assert_null(tare_ops_find(tare_ops_builtin(), "ZeroOut"));
}

static void load_faults__of_the_file(void **state) {
    (void)state;
    assert_int_equal(tare_plugins_load(plugins, "/nowhere/lib.so"), TARE_IO);
    assert_non_null(strstr(tare_error_text(), "plugin /nowhere/lib.so: cannot be loaded: "));
    assert_non_null(strstr(tare_error_text(), "No such file"));
    assert_int_equal(tare_plugins_load(plugins, "bare.so"), TARE_IO);
    assert_non_null(strstr(tare_error_text(), "./bare.so")); /* here, not in the system's folders */
    expect_load_fault(
        "no_entry", TARE_INVALID_ARGUMENT,
        "is no library of ops: no function tare_op_library_abi (TARE_OP_LIBRARY in <tare/op.h> makes it)");
    expect_load_fault(
        "no_register", TARE_INVALID_ARGUMENT,
        "is no library of ops: no function tare_op_library_register (TARE_OP_LIBRARY in <tare/op.h> makes "
        "it)");
    expect_load_fault("other_abi", TARE_UNSUPPORTED,
                      "was built for op ABI 2.0 (this tare has 1.0): build it with this tare's <tare/op.h>");
    expect_load_fault("newer_abi", TARE_UNSUPPORTED,
                      "was built for op ABI 1.1 (this tare has 1.0): build it with this tare's <tare/op.h>");
    setenv("ASKED_NOTHING", "1", 1);
    expect_load_fault("asked", TARE_INVALID_ARGUMENT, "registers no op");
}

static void load_faults__twice(void **state) {
    (void)state;
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    expect_load_fault("everything", TARE_INVALID_ARGUMENT, "is loaded twice");
}

static void load_faults__said_by_the_library(void **state) {
    (void)state;
    setenv("ASKED_FAIL", "needs the file weights.bin", 1);
    expect_load_fault("asked", TARE_INVALID_ARGUMENT, "needs the file weights.bin");
}

/* One library, one thing wrong with it. */
static void expect_asked_fault(const char *variable, const char *value, const char *text) {
    setenv(variable, value, 1);
    expect_load_fault("asked", TARE_INVALID_ARGUMENT, text);
    tear_down(NULL);
    set_up(NULL);
}

static void load_faults__duplicates(void **state) {
    char other[8192];
    (void)state;
    expect_asked_fault("ASKED_TWICE", "1", "Op Foo is already registered by the same library");
    expect_asked_fault("ASKED_OP", "MatMul", "Op MatMul is already registered: it is built in");
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    snprintf(other, sizeof other, "Op OnlyDefined is already registered by %s", path_of("everything"));
    expect_asked_fault("ASKED_OP", "OnlyDefined", other);
}

/* An op that tare knows by definition alone may get its kernels from a library, if the definition is the same. */
static void load__kernels_for_a_known_definition(void **state) {
    const struct tare_op_def *known = tare_ops_find(tare_ops_builtin(), "OutfeedEnqueue");
    (void)state;
    assert_non_null(known);
    assert_null(known->row);
    setenv("ASKED_OP", "OutfeedEnqueue", 1);
    setenv("ASKED_ATTR", "dtype: type", 1);
    setenv("ASKED_INPUT", "input: dtype", 1);
    setenv("ASKED_KERNEL", "dtype: float", 1);
    mini_ok(tare_plugins_load(plugins, path_of("asked")));
    assert_non_null(tare_ops_find(tare_plugins_ops(plugins), "OutfeedEnqueue")->row->run);
    tare_plugins_free(plugins);
    set_up(NULL);
    setenv("ASKED_ATTR", "N: int = 2", 1);
    unsetenv("ASKED_KERNEL");
    setenv("ASKED_INPUT", "input: N * float", 1);
    expect_load_fault("asked", TARE_INVALID_ARGUMENT,
                      "Op OutfeedEnqueue is TensorFlow's, and this is another one: Attr 'dtype' removed");
}

static void load_faults__malformed_specifications_say_where(void **state) {
    static const struct {
        const char *variable, *value, *text;
    } cases[] = {
        { "ASKED_ATTR", "a int",
          "Trouble parsing '<name>:' from Attr(\"a int\") for Op Foo (at character 1 of \"a int\")" },
        { "ASKED_ATTR", "a: numbers",
          "Trouble parsing type string at 'numbers' from Attr(\"a: numbers\") for Op Foo (at character 4 of \"a: "
          "numbers\")" },
        { "ASKED_ATTR", "a: {int32, flot}",
          "Unrecognized type string 'flot' from Attr(\"a: {int32, flot}\") for Op Foo (at character 12 of \"a: {int32, "
          "flot}\")" },
        { "ASKED_ATTR", "a: {'\\q'}",
          "Trouble unescaping \"\\q\", got error: Invalid escape sequence from Attr(\"a: {'\\q'}\") for Op Foo (at "
          "character 5 of \"a: {'\\q'}\")" },
        { "ASKED_ATTR", "a: {'b, c}",
          "Trouble parsing allowed string at ''b, c}' from Attr(\"a: {'b, c}\") for Op Foo (at character 5 of \"a: "
          "{'b, "
          "c}\")" },
        { "ASKED_ATTR", "a: list int",
          "Expected ( after 'list', not: 'int' from Attr(\"a: list int\") for Op Foo (at character 9 of \"a: list "
          "int\")" },
        { "ASKED_ATTR", "a: list(list(int))",
          "Trouble parsing type string at 'list(int))' from Attr(\"a: list(list(int))\") for Op Foo (at character 9 of "
          "\"a: list(list(int))\")" },
        { "ASKED_ATTR", "a: int >= two",
          "Could not parse integer lower limit after '>=', found 'two' instead from Attr(\"a: int >= two\") for Op Foo "
          "(at character 11 of \"a: int >= two\")" },
        { "ASKED_ATTR", "i: int = zero",
          "Could not parse default value 'zero' from Attr(\"i: int = zero\") for Op Foo (at character 10 of \"i: int = "
          "zero\")" },
        { "ASKED_ATTR", "i: int = 0; j: int",
          "Could not parse default value '0; j: int' from Attr(\"i: int = 0; j: int\") for Op Foo (at character 10 of "
          "\"i: int = 0; j: int\")" },
        { "ASKED_ATTR", "int32: type", "Attr can't have name int32 that matches a data type; in OpDef: Foo" },
        { "ASKED_ATTR", "a: int >= 2 = 1",
          "Value for attr 'a' of 1 must be at least minimum 2 for attr 'a' in Op 'Foo'; in OpDef: Foo" },
        { "ASKED_INPUT", "to_zero int32",
          "Trouble parsing 'name:' from Input(\"to_zero int32\") for Op Foo (at character 1 of \"to_zero int32\")" },
        { "ASKED_INPUT", "in: T",
          "Reference to unknown attr 'T' from Input(\"in: T\") for Op Foo (at character 5 of \"in: T\")" },
        { "ASKED_INPUT", "in: N * int32",
          "Reference to unknown attr 'N' from Input(\"in: N * int32\") for Op Foo (at character 5 of \"in: N * "
          "int32\")" },
        { "ASKED_OUTPUT", "out: Ref(int32",
          "Did not find closing ')' for 'Ref(', instead found: '' from Output(\"out: Ref(int32\") for Op Foo (at "
          "character 15 of \"out: Ref(int32\")" },
        { "ASKED_OUTPUT", "out: int32, more: int32",
          "Extra ', more: int32' unparsed at the end from Output(\"out: int32, more: int32\") for Op Foo (at character "
          "11 of \"out: int32, more: int32\")" },
        { "ASKED_OP", "zero_out", "Invalid name: zero_out (Did you use CamelCase?); in OpDef: zero_out" },
        { "ASKED_OP", "", "Invalid name:  (Did you use CamelCase?); in OpDef: " },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_asked_fault(cases[i].variable, cases[i].value, cases[i].text);
}

static void load_faults__kernels(void **state) {
    static const struct {
        const char *attr, *kernel, *kernel2, *text;
    } cases[] = {
        { "T: {float, int32}", "T: double", NULL,
          "Kernel for float64, but attr 'T' does not allow it (allowed: float, int32), at 'double' from Kernel(\"T: "
          "double\") for Op Foo (at character 4 of \"T: double\")" },
        { "T: type", "T: flot", NULL,
          "Unrecognized type string 'flot' from Kernel(\"T: flot\") for Op Foo (at character 4 of \"T: flot\")" },
        { "T: type", "T: float_ref", NULL,
          "Unrecognized type string 'float_ref' from Kernel(\"T: float_ref\") for Op Foo (at character 4 of \"T: "
          "float_ref\")" },
        { "T: type", "U: float", NULL,
          "Reference to unknown attr 'U' from Kernel(\"U: float\") for Op Foo (at character 1 of \"U: float\")" },
        { "N: int", "N: float", NULL,
          "Kernels are chosen by attrs of type type or list(type), not by 'N' from Kernel(\"N: float\") for Op Foo (at "
          "character 1 of \"N: float\")" },
        { "T: type", "T float", NULL,
          "Expected : after the attr name, not: 'float' from Kernel(\"T float\") for Op Foo (at character 3 of \"T "
          "float\")" },
        { "T: type", "T: float int32", NULL,
          "Expected , or the end, not: 'int32' from Kernel(\"T: float int32\") for Op Foo (at character 10 of \"T: "
          "float "
          "int32\")" },
        { "T: type", "T: float", "T: float",
          "kernels \"T: float\" and \"T: float\" of Op Foo serve the same types (wanted one for each)" },
        { "T: type", "", "T: float",
          "kernels \"\" and \"T: float\" of Op Foo serve the same types (wanted one for each)" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("ASKED_ATTR", cases[i].attr, 1);
        if (cases[i].kernel2) setenv("ASKED_KERNEL2", cases[i].kernel2, 1);
        expect_asked_fault("ASKED_KERNEL", cases[i].kernel, cases[i].text);
    }
    expect_asked_fault("ASKED_NULL_KERNEL", "1", "kernel \"\" of Op Foo has no function");
}

static struct tare_node *squares(struct tare_model *model, int64_t chunk, int64_t fail_at);

/* ---- kernels ---- */

static void kernel__is_chosen_by_dtype(void **state) {
    static const float floats[] = { 1.5f, 2.5f, 3.5f, 4.5f };
    static const int32_t ints[] = { 5, 4, 3, 2 };
    struct tare_model *model = new_model();
    struct tare_edge f = mini_node(model->main, "ZeroOut", "f", 1,
                                   constant(model->main, TARE_DT_FLOAT, tare_shape_make(2, 2, 2), floats));
    struct tare_node *i =
        mini_open(model->main, "ZeroOut", "i", 1, constant(model->main, TARE_DT_INT32, tare_shape_make(1, 4), ints));
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

/* Which failure the run of one op gives. */
static void expect_run_fault(struct tare_model *model, struct tare_edge fetch, const char *text) {
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    if (tare_session_run(session, NULL, NULL, 0, &fetch, &result, 1, NULL, 0) == TARE_OK)
        fail_msg("no fault: %s", text);
    assert_string_equal(tare_error_text(), text);
    tare_session_free(session);
}

static void kernel__checks_its_attributes_and_inputs(void **state) {
    static const int32_t ints[] = { 5, 4, 3, 2 };
    struct tare_model *model = new_model();
    struct tare_edge x = constant(model->main, TARE_DT_INT32, tare_shape_make(1, 4), ints);
    struct tare_node *early = mini_open(model->main, "ZeroOut", "early", 1, x);
    struct tare_node *late = mini_open(model->main, "ZeroOut", "late", 1, x);
    int64_t *states;
    void *library;
    (void)state;
    mini_ok(tare_node_set_int(early, "preserve_index", -1));
    mini_ok(tare_node_set_int(late, "preserve_index", 4));
    expect_run_fault(model, mini_done(early), "early (ZeroOut): Need preserve_index >= 0, got -1");
    expect_run_fault(model, mini_done(late), "late (ZeroOut): preserve_index out of range");
    library = dlopen(path_of("everything"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    states = dlsym(library, "everything_states");
    assert_non_null(states);
    assert_int_equal(*states, 0); /* what was made has been ended */
    dlclose(library);
    tare_model_free(model);
}

/* A dtype that the definition allows and no kernel serves. */
static void kernel__lack_of_one_is_known_before_the_run(void **state) {
    struct tare_model *model = new_model();
    struct tare_edge p = mini_placeholder(model->main, "p", TARE_DT_DOUBLE);
    struct tare_edge y = mini_node(model->main, "ZeroOut", "y", 1, p);
    struct tare_binding input = { .key = "p", .dtype = TARE_DT_DOUBLE, .edge = p, .shape = { .rank = -1 } };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_DOUBLE, .edge = y, .shape = { .rank = -1 } };
    struct tare_signature signature = { "serving_default", "", &input, 1, &output, 1, NULL };
    char wanted[8192];
    (void)state;
    model->signatures = &signature;
    model->n_signatures = 1;
    snprintf(
        wanted, sizeof wanted,
        "1 op cannot be run; bring it with --plugin LIB.so: ZeroOut: no kernel for T: float64 (%s has: T: float; T: "
        "int32), used by y",
        path_of("everything"));
    assert_int_equal(tare_session_check_ops(model, &signature), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(), wanted);
    tare_model_free(model);
}

/* What a session runs before the first signature counts, too. */
static void lacking__initialisers_are_looked_at(void **state) {
    struct tare_model *model = new_model();
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
                        "1 op cannot be run; bring it with --plugin LIB.so: OnlyDefined: used by init");
    tare_model_free(model);
}

static void attributes__of_every_kind(void **state) {
    struct tare_model *model = new_model();
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
    struct tare_model *model = new_model();
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
        { "unknown", "ask (Ask): the op has no attr 'nothing'" },
        { "kind", "ask (Ask): attr 'ints' is of type list(int) (asked for float)" },
        { "entry", "ask (Ask): attr 'ints' has no entry 2 (it has 2)" },
        { "length", "ask (Ask): attr 'how' is of type string (asked for the length of a list)" },
        { "input", "ask (Ask): the node has no input 1 (it has 1)" },
        { "twice", "ask (Ask): output 0 is made twice" },
        { "silent", "ask (Ask): the kernel failed with code 77 and no text" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_model *model = new_model();
        struct tare_node *node = mini_open(model->main, "Ask", "ask", 1, mini_float(model->main, "x", 1));
        mini_ok(tare_node_set_string(node, "how", cases[i].how, strlen(cases[i].how)));
        expect_run_fault(model, mini_done(node), cases[i].text);
        tare_model_free(model);
        tear_down(NULL);
        set_up(NULL);
    }
}

static void faults__an_output_that_was_not_made(void **state) {
    struct tare_model *model = new_model();
    struct tare_node *node = mini_open(model->main, "Ask", "ask", 1, mini_float(model->main, "x", 1));
    char wanted[8192];
    (void)state;
    mini_ok(tare_node_set_string(node, "how", "nothing", 7));
    snprintf(wanted, sizeof wanted, "ask (Ask): the kernel of %s did not make output 0", path_of("everything"));
    expect_run_fault(model, mini_done(node), wanted);
    tare_model_free(model);
}

static void lists__of_one_type_and_of_several(void **state) {
    struct tare_model *model = new_model();
    static const float rows[] = { 1, 2 };
    struct tare_edge row = constant(model->main, TARE_DT_FLOAT, tare_shape_make(2, 1, 2), rows);
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
    struct tare_model *model = new_model();
    struct tare_edge x = mini_float(model->main, "x", 1);
    struct tare_edge sum = mini_node(model->main, "SumAll", "sum", 1, x);
    struct tare_edge mixed = mini_node(model->main, "OnlyFloats", "mixed", 2, x, mini_int(model->main, "i", 1));
    char wanted[8192];
    (void)state;
    expect_run_fault(model, sum, "sum (SumAll): SumAll 'sum': Value for attr 'N' of 1 must be at least minimum 2");
    snprintf(wanted, sizeof wanted, "mixed (OnlyFloats): no kernel for Tin: float32 int32 (%s has: Tin: float)",
             path_of("everything"));
    expect_run_fault(model, mixed, wanted);
    tare_model_free(model);
}

static void ref__is_read_assigned_and_forwarded(void **state) {
    struct tare_model *model = new_model();
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
    struct tare_model *model = new_model();
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
    expect_run_fault(model, mini_node(model->main, "Bump", "bumped", 1, (struct tare_edge){ variable, 0 }),
                     "bumped (Bump): variable 'v' is not initialised");
    tare_model_free(model);
}

/* f(a, x) = a + x, applied `times` times from a = x. */
static struct tare_node *apply(struct tare_model *model, int64_t times) {
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
    struct tare_model *model = new_model();
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
    struct tare_model *model = new_model();
    struct tare_node *node = apply(model, 1);
    struct tare_graph *one = tare_model_add_function(model, "one");
    (void)state;
    mini_return(one, "y", mini_arg(one, "x", TARE_DT_FLOAT));
    mini_ok(tare_node_set_func(node, "f", "one"));
    expect_run_fault(model, (struct tare_edge){ node, 0 },
                     "apply (Apply): a call of one with 2 arguments and 1 results (wanted 1 and 1)");
    mini_ok(tare_node_set_func(node, "f", "nothing"));
    expect_run_fault(model, (struct tare_edge){ node, 0 },
                     "apply (Apply): attr 'f' names the function nothing, which is not there");
    tare_model_free(model);
}

/* Constants are folded by kernels of libraries, too, outside of any session. */
static void kernel__folds_constants(void **state) {
    struct tare_model *model = new_model();
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
    struct tare_model *model = new_model();
    struct tare_graph *g = model->main;
    struct tare_edge h = mini_node(g, "Twice", "h", 1, constant(g, TARE_DT_HALF, tare_shape_make(1, 2), halves));
    struct tare_edge b = mini_node(g, "Twice", "b", 1, constant(g, TARE_DT_BFLOAT16, tare_shape_make(1, 1), brain));
    struct tare_edge s = mini_node(g, "Shout", "s", 1, mini_strings(g, "words", 2, words));
    struct tare_edge f =
        mini_node(g, "Flatten", "f", 1, constant(g, TARE_DT_FLOAT, tare_shape_make(2, 1, 1), &(float){ 3 }));
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

static struct tare_session *session_of_threads(const struct tare_model *model, int threads) {
    const struct tare_session_options options = { .op_threads = threads };
    struct tare_session *session;
    mini_ok(tare_session_new(&session, model, &options));
    return session;
}

static struct tare_node *squares(struct tare_model *model, int64_t chunk, int64_t fail_at) {
    static float values[MANY];
    struct tare_node *node;
    for (int i = 0; i < MANY; i++)
        values[i] = (float)i;
    node = mini_open(model->main, "SquareInRanges", "squares", 1,
                     constant(model->main, TARE_DT_FLOAT, tare_shape_make(1, MANY), values));
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
            struct tare_model *model = new_model();
            struct tare_node *node = squares(model, chunks[k], -1);
            struct tare_session *session = session_of_threads(model, threads);
            struct tare_tensor result = mini_run(session, no_feed, 0, (struct tare_edge){ node, 0 });
            for (int i = 0; i < MANY; i++)
                assert_float_equal(TARE_CONST_DATA(float, &result)[i], (float)i * (float)i, 0);
            tare_tensor_reset(&result);
            tare_session_free(session);
            tare_model_free(model);
            tear_down(NULL);
            set_up(NULL);
        }
}

static void parallel_for__the_first_range_that_fails_counts(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct tare_model *model = new_model();
        struct tare_node *node = squares(model, 100, 9000); /* ranges up to the one of item 9000 fail */
        struct tare_session *session = session_of_threads(model, threads);
        struct tare_edge fetch = { node, 0 };
        struct tare_tensor result;
        assert_int_equal(tare_session_run(session, NULL, NULL, 0, &fetch, &result, 1, NULL, 0), TARE_INVALID_ARGUMENT);
        assert_string_equal(tare_error_text(), "squares (SquareInRanges): range 0 to 100");
        tare_session_free(session);
        tare_model_free(model);
        tear_down(NULL);
        set_up(NULL);
    }
}

static void parallel_for__runs_ranges_at_the_same_time(void **state) {
    struct tare_model *model = new_model();
    struct tare_edge meet = mini_node(model->main, "Meet", "meet", 1, mini_float(model->main, "x", 5));
    struct tare_session *session = session_of_threads(model, 2);
    (void)state;
    assert_float_equal(mini_number(session, no_feed, 0, meet), 5, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void parallel_for__needs_a_range(void **state) {
    struct tare_model *model = new_model();
    (void)state;
    expect_run_fault(model, (struct tare_edge){ squares(model, 0, -1), 0 },
                     "squares (SquareInRanges): 10007 items in ranges of 0");
    tare_model_free(model);
}

/* ---- shape functions ---- */

static void print_shape(struct tare_strbuf *text, const struct tare_shape *shape) {
    char buffer[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_puts(text, tare_shape_text(buffer, shape));
}

/* What the shape function `how` makes of two shapes (rank -1: unknown; b may be the vector [value]). */
static void expect_shape(const char *how, struct tare_shape a, struct tare_shape b, const char *wanted) {
    struct tare_model *model = tare_model_new();
    struct tare_node *node;
    struct tare_strbuf got = { 0 };
    struct tare_shape args[2] = { a, b }, **shapes;
    struct tare_arena arena = { 0 };
    struct tare_edge x, y;
    struct tare_graph *f;
    model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    f = tare_model_add_function(model, "f");
    x = mini_arg(f, "a", TARE_DT_FLOAT);
    y = mini_arg(f, "b", TARE_DT_INT32);
    node = mini_open(f, "Shapes", "node", 2, x, y);
    mini_ok(tare_node_set_string(node, "how", how, strlen(how)));
    mini_return(f, "r", mini_done(node));
    if (tare_graph_infer_shapes(&shapes, &arena, f, args) == TARE_OK)
        print_shape(&got, &shapes[node->position][0]);
    else
        tare_strbuf_puts(&got, tare_error_text());
    if (!strstr(tare_strbuf_text(&got), wanted))
        fail_msg("%s: got %s (wanted %s)", how, tare_strbuf_text(&got), wanted);
    tare_strbuf_free(&got);
    tare_arena_free(&arena);
    tare_model_free(model);
}

static struct tare_shape vector(int size) {
    return tare_shape_make(1, size);
}

static void shapes__ranks(void **state) {
    const struct tare_shape unknown = tare_shape_unknown(), known = tare_shape_make(2, 3, -1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    expect_shape("same", known, unknown, "[3,?]");
    expect_shape("same", unknown, unknown, "<unknown>");
    expect_shape("with_rank", known, unknown, "[3,?]");
    expect_shape("with_rank", unknown, unknown, "[?,?]");
    expect_shape("with_rank", vector(3), unknown, "Shape must be rank 2 but is rank 1");
    expect_shape("at_least", vector(3), unknown, "Shape must be at least rank 2 but is rank 1");
    expect_shape("at_least", unknown, unknown, "<unknown>");
    expect_shape("at_most", tare_shape_make(3, 1, 1, 1), unknown, "Shape must be at most rank 2 but is rank 3");
    expect_shape("at_most", vector(3), unknown, "[3]");
    expect_shape("scalar", unknown, unknown, "[]");
    expect_shape("rank_only", unknown, unknown, "[?,?,?]");
    expect_shape("matrix", known, unknown, "[3,3]");
    expect_shape("matrix", unknown, unknown, "[?,3]");
}

static void shapes__of_two(void **state) {
    const struct tare_shape unknown = tare_shape_unknown(), a = tare_shape_make(2, 3, -1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    expect_shape("merge", a, tare_shape_make(2, -1, 4), "[3,4]");
    expect_shape("merge", unknown, a, "[3,?]");
    expect_shape("merge", a, tare_shape_make(2, 2, 4), "node");
    expect_shape("broadcast", a, tare_shape_make(2, 1, 4), "[3,4]");
    expect_shape("broadcast", a, unknown, "<unknown>");
    expect_shape("concatenate", a, vector(5), "[3,?,5]");
    expect_shape("concatenate", a, unknown, "<unknown>");
    expect_shape("subshape", tare_shape_make(4, 1, 2, 3, 4), unknown, "[2,3]");
    expect_shape("subshape", unknown, unknown, "<unknown>");
    expect_shape("tail", tare_shape_make(4, 1, 2, 3, 4), unknown, "[3,4]");
    expect_shape("tail", vector(1), unknown, "dims -2 to 2147483647 of a shape of rank 1");
    expect_shape("replace", a, unknown, "[3,7]");
    expect_shape("replace", tare_shape_scalar(), unknown, "dim -1 of a shape of rank 0");
}

static void shapes__dims(void **state) {
    const struct tare_shape unknown = vector(-1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, path_of("everything")));
    expect_shape("dim_add", vector(3), vector(4), "[7]");
    expect_shape("dim_add", vector(0), unknown, "[?]");
    expect_shape("dim_subtract", vector(7), vector(4), "[3]");
    expect_shape("dim_subtract", vector(3), vector(4), "Negative dimension size caused by subtracting 4 from 3");
    expect_shape("dim_subtract", vector(3), unknown, "[?]");
    expect_shape("dim_multiply", vector(3), vector(4), "[12]");
    expect_shape("dim_multiply", vector(0), unknown, "[0]");
    expect_shape("dim_multiply", vector(1), unknown, "[?]");
    expect_shape("dim_divide", vector(9), vector(4), "[2]");
    expect_shape("dim_divide", vector(9), vector(0), "Divisor must be positive but is 0");
    expect_shape("dim_exactly", vector(8), vector(4), "[2]");
    expect_shape("dim_exactly", vector(9), vector(4), "Dimension size must be evenly divisible by 4 but is 9");
    expect_shape("dim_merge", vector(9), unknown, "[9]");
    expect_shape("dim_merge", vector(9), vector(4), "Dimensions must be equal, but are 9 and 4");
    expect_shape("dim_value", unknown, unknown, "[4]");
    expect_shape("dim_value", vector(3), unknown, "Dimensions must be equal, but are 3 and 4");
}

/* A shape that depends on an input's value. */
static void shapes__from_values(void **state) {
    struct tare_model *model = new_model();
    static const int32_t dims[] = { 5, 6 };
    struct tare_edge x = mini_float(model->main, "x", 1);
    static const char *const hows[] = { "from_input", "value" }, *const wanted[] = { "[5,6]", "[5]" };
    struct tare_arena arena = { 0 };
    struct tare_shape **shapes;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_strbuf got = { 0 };
        struct tare_node *node =
            mini_open(model->main, "Shapes", "node", 2, x, mini_ints(model->main, "dims", 2, dims));
        mini_ok(tare_node_set_string(node, "how", hows[i], strlen(hows[i])));
        mini_done(node);
        mini_ok(tare_graph_infer_shapes(&shapes, &arena, model->main, NULL));
        print_shape(&got, &shapes[node->position][0]);
        assert_string_equal(tare_strbuf_text(&got), wanted[i]);
        tare_strbuf_free(&got);
    }
    tare_arena_free(&arena);
    tare_model_free(model);
}

/* When the n-th allocation fails, loading does so cleanly. */
static void load__survives_lack_of_memory(void **state) {
    int64_t n;
    (void)state;
    for (n = 1; n < 100000; n++) {
        tare_status status;
        tear_down(NULL);
        set_up(NULL);
        tare_alloc_fail_at(n);
        status = tare_plugins_load(plugins, path_of("everything"));
        tare_alloc_fail_at(0);
        if (status == TARE_OK) break;
        assert_true(*tare_error_text());
    }
    assert_in_range(n, 3, 99999); /* the table of ops, its growth, the arena's block */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(load__registers_rows_like_the_built_in_ones),
        CASE(load_faults__of_the_file),
        CASE(load_faults__twice),
        CASE(load_faults__said_by_the_library),
        CASE(load_faults__duplicates),
        CASE(load__kernels_for_a_known_definition),
        CASE(load_faults__malformed_specifications_say_where),
        CASE(load_faults__kernels),
        CASE(kernel__is_chosen_by_dtype),
        CASE(kernel__checks_its_attributes_and_inputs),
        CASE(kernel__lack_of_one_is_known_before_the_run),
        CASE(lacking__initialisers_are_looked_at),
        CASE(attributes__of_every_kind),
        CASE(attributes__a_compressed_tensor_is_written_out),
        CASE(faults__of_a_kernel),
        CASE(faults__an_output_that_was_not_made),
        CASE(lists__of_one_type_and_of_several),
        CASE(lists__too_short_and_of_a_wrong_type),
        CASE(ref__is_read_assigned_and_forwarded),
        CASE(ref__without_a_value_says_so),
        CASE(function__is_called_with_tensors),
        CASE(function__must_be_there_and_fit),
        CASE(kernel__folds_constants),
        CASE(numbers_and_strings),
        CASE(parallel_for__covers_every_item_once),
        CASE(parallel_for__the_first_range_that_fails_counts),
        CASE(parallel_for__runs_ranges_at_the_same_time),
        CASE(parallel_for__needs_a_range),
        CASE(shapes__ranks),
        CASE(shapes__of_two),
        CASE(shapes__dims),
        CASE(shapes__from_values),
        CASE(load__survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
