/* What a definition says of a node: dtypes of its tensors, ranges of its arguments, whether its attributes fit. */
#include "graph/model.h"
#include "interpreter/ops/builtin.h"
#include "graph/definitions/opdef.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        if ((expression) != TARE_OK) fail_msg("%s: %s", #expression, tare_error_text());                               \
    } while (0)

static const struct tare_op rows[] = {
    { .name = "Mixed",
      .inputs = "a: T, b: N * int32, c: L, d: Ref(T)",
      .outputs = "x: Ref(T), y: L, z: N * T, w: bool",
      .attrs = "T: {float, int32}; N: int >= 0; L: list(type) >= 0" },
    { .name = "Plain",
      .inputs = "a: float",
      .outputs = "b: T",
      .attrs = "T: type = DT_INT64; size: int >= 2; mode: {'x', 'y'} = 'x'; dims: list(int) >= 1" },
};

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
};

static int set_up(void **state) {
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fixture.model = tare_model_new(tare_ops_builtin());
    if (!fixture.model) return -1;
    fixture.model->custom_ops = tare_ops_new(tare_ops_builtin());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        OK(tare_ops_add(fixture.model->custom_ops, &rows[i]));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    tare_model_free(fixture->model);
    tare_arena_free(&fixture->arena);
    return 0;
}

static struct tare_node *mixed(struct fixture *f, int64_t n) {
    struct tare_node *node = tare_graph_add(f->model->main, "Mixed", "m");
    assert_non_null(node);
    OK(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    OK(tare_node_set_int(node, "N", n));
    OK(tare_node_set_type_list(node, "L", (int[]){ TARE_DT_STRING, TARE_DT_HALF }, 2));
    return node;
}

static struct tare_node *plain(struct fixture *f) {
    struct tare_node *node = tare_graph_add(f->model->main, "Plain", "p");
    OK(tare_node_set_int(node, "size", 3));
    OK(tare_node_set_int_list(node, "dims", (int64_t[]){ 1 }, 1));
    return node;
}

static void expect_dtypes(const int *got, size_t n_got, const int *expected, size_t n_wanted) {
    assert_int_equal(n_got, n_wanted);
    for (size_t i = 0; i < n_got; i++)
        assert_int_equal(got[i], expected[i]);
}

static void dtypes__follow_every_form_of_argument(void **state) {
    struct fixture *f = *state;
    const int outputs[] = { TARE_DT_FLOAT + 100, TARE_DT_STRING, TARE_DT_HALF,
                            TARE_DT_FLOAT,       TARE_DT_FLOAT,  TARE_DT_BOOL };
    const int inputs[] = { TARE_DT_FLOAT,  TARE_DT_INT32, TARE_DT_INT32,
                           TARE_DT_STRING, TARE_DT_HALF,  TARE_DT_FLOAT + 100 };
    const struct tare_node *node = mixed(f, 2);
    int *dtypes;
    size_t count;
    OK(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count));
    expect_dtypes(dtypes, count, outputs, 6);
    OK(tare_opdef_input_dtypes(&f->arena, node, &dtypes, &count));
    expect_dtypes(dtypes, count, inputs, 6);
}

static void ranges__count_from_the_attrs(void **state) {
    struct fixture *f = *state;
    const struct tare_node *node = mixed(f, 0);
    size_t first, count;
    OK(tare_node_output_range(node, 2, &first, &count));
    assert_int_equal(first, 3);
    assert_int_equal(count, 0);
    OK(tare_node_output_range(node, 3, &first, &count));
    assert_int_equal(first, 3);
    assert_int_equal(count, 1);
    OK(tare_node_input_range(node, 2, &first, &count));
    assert_int_equal(first, 1);
    assert_int_equal(count, 2);
    assert_int_equal(tare_node_output_range(node, 4, &first, &count), TARE_INVALID_ARGUMENT);
}

static void counts__are_bounded(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = mixed(f, -1);
    int *dtypes;
    size_t count;
    assert_int_equal(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count), TARE_INVALID_ARGUMENT);
    OK(tare_node_set_int(node, "N", 1000001));
    assert_int_equal(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count), TARE_INVALID_ARGUMENT);
    OK(tare_node_set_string(node, "N", "2", 1));
    assert_int_equal(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(),
                        "Mixed 'm': AttrValue had value with type 'string' when 'int' expected for attr 'N'");
}

static void dtypes__take_defaults_and_ask_for_the_rest(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = tare_graph_add(f->model->main, "Mixed", "m");
    int *dtypes;
    size_t count;
    OK(tare_opdef_output_dtypes(&f->arena, plain(f), &dtypes, &count));
    assert_int_equal(count, 1);
    assert_int_equal(dtypes[0], TARE_DT_INT64);
    assert_int_equal(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Mixed 'm': NodeDef missing attr 'L' from Op Mixed");
    OK(tare_node_set_type(node, "T", 77));
    OK(tare_node_set_type_list(node, "L", NULL, 0));
    OK(tare_node_set_int(node, "N", 1));
    assert_int_equal(tare_opdef_output_dtypes(&f->arena, node, &dtypes, &count), TARE_INVALID_ARGUMENT);
}

static void expect_fault(const struct tare_node *node, const char *text) {
    assert_int_equal(tare_opdef_check_attrs(node), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), text);
}

static void attrs__are_checked_against_the_definition(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = plain(f);
    OK(tare_opdef_check_attrs(node));
    OK(tare_node_set_int(node, "size", 1));
    expect_fault(node, "Plain 'p': Value for attr 'size' of 1 must be at least minimum 2");
    OK(tare_node_set_int(node, "size", 2));
    OK(tare_node_set_string(node, "mode", "z", 1));
    expect_fault(node, "Plain 'p': Value for attr 'mode' of \"z\" is not in the list of allowed values: \"x\", \"y\"");
    OK(tare_node_set_string(node, "mode", "y", 1));
    OK(tare_node_set_int_list(node, "dims", NULL, 0));
    expect_fault(node, "Plain 'p': Length for attr 'dims' of 0 must be at least minimum 1");
    OK(tare_node_set_int(node, "dims", 1));
    expect_fault(node, "Plain 'p': AttrValue had value with type 'int' when 'list(int)' expected for attr 'dims'");
    tare_node_remove_attr(node, "dims");
    tare_node_remove_attr(node, "size");
    expect_fault(node, "Plain 'p': NodeDef missing attrs 'size', 'dims' from Op Plain");
}

static void type_attrs__must_be_allowed(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = mixed(f, 1);
    OK(tare_opdef_check_attrs(node));
    OK(tare_node_set_type(node, "T", TARE_DT_BOOL));
    expect_fault(node, "Mixed 'm': Value for attr 'T' of bool is not in the list of allowed values: float, int32");
}

static void inputs__are_checked_in_number_and_dtype(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = plain(f), *other = plain(f);
    struct tare_tensor one;
    OK(tare_node_resolve(node));
    OK(tare_node_resolve(other));
    assert_int_equal(tare_opdef_check_inputs(node), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "NodeDef expected inputs 'float32' do not match 0 inputs specified");
    OK(tare_node_add_input(node, (struct tare_edge){ other, 0 }));
    assert_int_equal(tare_opdef_check_inputs(node), TARE_TYPE);
    assert_string_equal(tare_error_text(), "input 0 is int64 (expected float32)");
    tare_node_set_input(node, 0, (struct tare_edge){ node->inputs[0].node, 1 });
    assert_int_equal(tare_opdef_check_inputs(node), TARE_INVALID_ARGUMENT);
    OK(tare_tensor_scalar_f32(&one, 1));
    tare_node_set_input(node, 0, tare_node_output0(tare_graph_add_const(f->model->main, "one", &one)));
    tare_tensor_reset(&one);
    OK(tare_opdef_check_inputs(node));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(dtypes__follow_every_form_of_argument),
        CASE(ranges__count_from_the_attrs),
        CASE(counts__are_bounded),
        CASE(dtypes__take_defaults_and_ask_for_the_rest),
        CASE(attrs__are_checked_against_the_definition),
        CASE(type_attrs__must_be_allowed),
        CASE(inputs__are_checked_in_number_and_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
