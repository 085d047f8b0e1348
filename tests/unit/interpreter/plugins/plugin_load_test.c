/* Loading libraries of ops: what they may register, and how what is wrong with them is said. The libraries are
 * tests/plugins. */
#include "base/alloc.h"
#include "interpreter/ops/builtin.h"
#include "support/plugin_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- loading ---- */

static void expect_load_fault(const char *name, tare_status status, const char *text) {
    char expected[8192];
    snprintf(expected, sizeof expected, "plugin %s: %s", plugin_path(name), text);
    assert_int_equal(tare_plugins_load(plugins, plugin_path(name)), status);
    assert_string_equal(tare_error_text(), expected);
}

static void load__registers_rows_like_the_built_in_ones(void **state) {
    const struct tare_op_def *def, *const *list;
    struct tare_arena arena = { 0 };
    size_t builtins, all;
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    mini_ok(tare_ops_list_all(&list, &builtins, &arena, tare_ops_builtin()));
    mini_ok(tare_ops_list_all(&list, &all, &arena, tare_plugins_ops(plugins)));
    tare_arena_free(&arena);
    assert_int_equal(all, builtins + 15);
    def = tare_ops_find(tare_plugins_ops(plugins), "ZeroOut");
    assert_non_null(def);
    assert_non_null(def->row->run);
    assert_string_equal(def->row->inputs, "to_zero: T");
    assert_string_equal(def->row->attrs, "T: {float, double, int32} = DT_INT32; preserve_index: int = 0");
    assert_int_equal(def->attrs[0].default_value->items[0].type, TARE_DT_INT32);
    assert_string_equal(tare_plugin_path_of(def), plugin_path("everything"));
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
        "is not a library of ops: no function tare_op_library_abi (TARE_OP_LIBRARY in <tare/op.h> makes it)");
    expect_load_fault(
        "no_register", TARE_INVALID_ARGUMENT,
        "is not a library of ops: no function tare_op_library_register (TARE_OP_LIBRARY in <tare/op.h> makes "
        "it)");
    expect_load_fault("other_abi", TARE_UNSUPPORTED,
                      "was built for op ABI 2.0 (this tare has 1.1): build it with this tare's <tare/op.h>");
    expect_load_fault("newer_abi", TARE_UNSUPPORTED,
                      "was built for op ABI 1.2 (this tare has 1.1): build it with this tare's <tare/op.h>");
    setenv("ASKED_NOTHING", "1", 1);
    expect_load_fault("asked", TARE_INVALID_ARGUMENT, "registers no op");
}

static void load_faults__twice(void **state) {
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
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
    plugin_tear_down(NULL);
    plugin_set_up(NULL);
}

static void load_faults__duplicates(void **state) {
    char other[8192];
    (void)state;
    expect_asked_fault("ASKED_TWICE", "1", "Op Foo is already registered by the same library");
    expect_asked_fault("ASKED_OP", "MatMul", "Op MatMul is already registered: it is built in");
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    snprintf(other, sizeof other, "Op OnlyDefined is already registered by %s", plugin_path("everything"));
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
    mini_ok(tare_plugins_load(plugins, plugin_path("asked")));
    assert_non_null(tare_ops_find(tare_plugins_ops(plugins), "OutfeedEnqueue")->row->run);
    tare_plugins_free(plugins);
    plugin_set_up(NULL);
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
          "kernels \"T: float\" and \"T: float\" of Op Foo serve the same types (expected one for each)" },
        { "T: type", "", "T: float",
          "kernels \"\" and \"T: float\" of Op Foo serve the same types (expected one for each)" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("ASKED_ATTR", cases[i].attr, 1);
        if (cases[i].kernel2) setenv("ASKED_KERNEL2", cases[i].kernel2, 1);
        expect_asked_fault("ASKED_KERNEL", cases[i].kernel, cases[i].text);
    }
    expect_asked_fault("ASKED_NULL_KERNEL", "1", "kernel \"\" of Op Foo has no function");
}
/* When the n-th allocation fails, loading does so cleanly. */
static void load__survives_lack_of_memory(void **state) {
    int64_t n;
    (void)state;
    for (n = 1; n < 100000; n++) {
        tare_status status;
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
        tare_alloc_fail_at(n);
        status = tare_plugins_load(plugins, plugin_path("everything"));
        tare_alloc_fail_at(0);
        if (status == TARE_OK) break;
        assert_true(*tare_error_text());
    }
    assert_in_range(n, 3, 99999); /* the table of ops, its growth, the arena's block */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PLUGIN_CASE(load__registers_rows_like_the_built_in_ones),
        PLUGIN_CASE(load_faults__of_the_file),
        PLUGIN_CASE(load_faults__twice),
        PLUGIN_CASE(load_faults__said_by_the_library),
        PLUGIN_CASE(load_faults__duplicates),
        PLUGIN_CASE(load__kernels_for_a_known_definition),
        PLUGIN_CASE(load_faults__malformed_specifications_say_where),
        PLUGIN_CASE(load_faults__kernels),
        PLUGIN_CASE(load__survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
