/* Functions that the user names, and the copies of them that passes made for their callers. */
#include "tpu/functions.h"
#include "graph/clone.h"
#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_edge calls[2];
    struct tare_signature signature;
    struct tare_binding input, output;
    struct tare_arena arena;
    struct tare_tpu_function *found;
    size_t count;
};

/* y = f(f(x)) */
static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->f = tare_model_add_function(f->model, "f");
    mini_return(f->f, "y", mini_node(f->f, "Relu", "relu", 1, mini_arg(f->f, "x", TARE_DT_FLOAT)));
    const struct tare_edge x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->calls[0] = mini_call(f->model->main, "PartitionedCall", "first", f->f, 1, x);
    f->calls[1] = mini_call(f->model->main, "PartitionedCall", "second", f->f, 1, f->calls[0]);
    f->input = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = x };
    f->output =
        (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = f->calls[1] };
    f->signature = (struct tare_signature){
        .key = "serving_default", .inputs = &f->input, .n_inputs = 1, .outputs = &f->output, .n_outputs = 1
    };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void find(struct fixture *f, enum tare_tpu_choice_kind kind, const char *name) {
    const struct tare_tpu_choice *choice;
    struct tare_tpu_choice *kept = TARE_NEW(&f->arena, struct tare_tpu_choice);
    assert_non_null(kept);
    *kept = (struct tare_tpu_choice){ kind, name, false };
    choice = kept;
    mini_ok(tare_tpu_find_functions(&f->found, &f->count, &f->arena, f->model, choice, 1));
}

static bool is_found(const struct fixture *f, const struct tare_graph *graph) {
    for (size_t i = 0; i < f->count; i++)
        if (f->found[i].graph == graph) return true;
    return false;
}

static void copies__stand_for_a_function_that_nothing_calls(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < 2; i++)
        mini_ok(tare_call_copy_function(f.calls[i].node));
    find(&f, TARE_TPU_BY_CONCRETE, "f");
    assert_int_equal(f.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(is_found(&f, tare_node_function(f.calls[i].node, "f")));
    tear_down(&f);
}

static void copies_of_copies__belong_to_the_first_function(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_ok(tare_call_copy_function(f.calls[0].node));
    mini_ok(tare_call_copy_function(f.calls[0].node));
    find(&f, TARE_TPU_BY_CONCRETE, "f");
    assert_true(is_found(&f, f.f) && is_found(&f, tare_node_function(f.calls[0].node, "f")));
    tear_down(&f);
}

static void an_alias__covers_the_function_and_its_copies(void **state) {
    struct tare_alias alias = { "f", "dense" };
    struct fixture f;
    (void)state;
    set_up(&f);
    f.model->aliases = &alias;
    f.model->n_aliases = 1;
    for (size_t i = 0; i < 2; i++)
        mini_ok(tare_call_copy_function(f.calls[i].node));
    find(&f, TARE_TPU_BY_ALIAS, "dense");
    assert_int_equal(f.count, 3); /* a loader finds the original by its alias */
    for (size_t i = 0; i < f.count; i++)
        assert_string_equal(f.found[i].label, "dense");
    tear_down(&f);
}

static void jit_compiled_functions__are_replaced_by_their_copies(void **state) {
    static union tare_attr_item yes = { .b = true };
    static struct tare_attr attr = { .name = "_XlaMustCompile", .kind = TARE_ATTR_BOOL, .count = 1, .items = &yes };
    struct fixture f;
    (void)state;
    set_up(&f);
    f.f->attrs = &attr;
    f.f->n_attrs = 1;
    for (size_t i = 0; i < 2; i++)
        mini_ok(tare_call_copy_function(f.calls[i].node));
    find(&f, TARE_TPU_BY_JIT, NULL);
    assert_int_equal(f.count, 2);
    assert_false(is_found(&f, f.f));
    tear_down(&f);
}

/* f and outer are jit-compiled: outer(x) = between(f(between(x))), between(x) = f(x). */
static void an_entry_whose_functions_call_each_other__is_replaced_by_the_outer_ones(void **state) {
    static union tare_attr_item yes = { .b = true };
    static struct tare_attr attr = { .name = "_XlaMustCompile", .kind = TARE_ATTR_BOOL, .count = 1, .items = &yes };
    const struct tare_tpu_choice jit = { TARE_TPU_BY_JIT, NULL, false };
    struct tare_graph *between, *outer;
    struct tare_edge x;
    struct fixture f;
    (void)state;
    set_up(&f);
    between = tare_model_add_function(f.model, "between");
    outer = tare_model_add_function(f.model, "outer");
    x = mini_arg(between, "x", TARE_DT_FLOAT);
    mini_return(between, "y", mini_call(between, "PartitionedCall", "call", f.f, 1, x));
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    x = mini_call(outer, "PartitionedCall", "first", between, 1, x);
    x = mini_call(outer, "PartitionedCall", "second", f.f, 1, x);
    mini_return(outer, "y", mini_call(outer, "PartitionedCall", "third", between, 1, x));
    f.f->attrs = outer->attrs = &attr;
    f.f->n_attrs = outer->n_attrs = 1;
    assert_int_equal(tare_tpu_find_functions(&f.found, &f.count, &f.arena, f.model, &jit, 1), TARE_INVALID_ARGUMENT);
    assert_string_equal(
        tare_error_text(),
        "Unable to place both \"outer\" and \"f\" on the TPU because \"outer\" indirectly calls \"f\". This behavior "
        "is unsupported because it can cause invalid graphs to be generated. (replace the entry of "
        "jit_compile_functions: true by tpu_functions { concrete_function_name: \"outer\" }: the TPU computes what "
        "\"outer\" calls)");
    find(&f, TARE_TPU_BY_CONCRETE, "outer");
    assert_int_equal(f.count, 1);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies__stand_for_a_function_that_nothing_calls),
        cmocka_unit_test(copies_of_copies__belong_to_the_first_function),
        cmocka_unit_test(an_alias__covers_the_function_and_its_copies),
        cmocka_unit_test(jit_compiled_functions__are_replaced_by_their_copies),
        cmocka_unit_test(an_entry_whose_functions_call_each_other__is_replaced_by_the_outer_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
