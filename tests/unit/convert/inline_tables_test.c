/* Functions that hold one table: inlined where nothing else calls them. */
#include "support/mini_model.h"

#include "convert/pass.h"

enum { ENTRIES = 16, WIDTH = 8 };

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *outer, *look, *project;
    struct tare_tensor table;
};

static struct tare_edge add_table(struct fixture *f, struct tare_graph *graph) {
    return (struct tare_edge){ tare_graph_add_const(graph, "table", &f->table), 0 };
}

static void open_fixture(struct fixture *f) {
    const struct tare_shape shape = tare_shape_make(2, ENTRIES, WIDTH);
    *f = (struct fixture){ .model = mini_model_new() };
    mini_ok(tare_tensor_new(&f->table, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < f->table.elements; i++)
        TARE_DATA(float, &f->table)[i] = (float)(i % 11);
    f->look = tare_model_add_function(f->model, "look");
    const struct tare_edge ids = mini_arg(f->look, "ids", TARE_DT_INT32);
    mini_return(f->look, "entries",
                mini_node(f->look, "GatherV2", "gather", 3, add_table(f, f->look), ids, mini_int(f->look, "axis", 0)));
    f->project = tare_model_add_function(f->model, "project");
    struct tare_node *product = mini_open(f->project, "MatMul", "product", 2, mini_arg(f->project, "x", TARE_DT_FLOAT),
                                          add_table(f, f->project));
    mini_ok(tare_node_set_bool(product, "transpose_b", true));
    mini_return(f->project, "logits", mini_done(product));
    f->outer = tare_model_add_function(f->model, "outer");
    const struct tare_edge all = mini_arg(f->outer, "ids", TARE_DT_INT32);
    const struct tare_edge entries = mini_call(f->outer, "PartitionedCall", "first", f->look, 1, all);
    mini_return(f->outer, "logits", mini_call(f->outer, "PartitionedCall", "second", f->project, 1, entries));
    const struct tare_edge fed = mini_placeholder(f->model->main, "ids", TARE_DT_INT32);
    mini_call(f->model->main, "PartitionedCall", "call", f->outer, 1, fed);
}

static void close_fixture(struct fixture *f) {
    tare_tensor_reset(&f->table);
    tare_model_free(f->model);
}

static size_t run_pass(struct fixture *f) {
    size_t changes = 0;
    mini_ok(tare_pass_inline_tables.run(f->model, &changes));
    return changes;
}

static void functions_with_one_table__are_inlined(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f);
    assert_int_equal(run_pass(&f), 2);
    assert_non_null(tare_graph_find(f.outer, "first/gather"));
    assert_non_null(tare_graph_find(f.outer, "second/product"));
    assert_null(tare_graph_find(f.outer, "second"));
    close_fixture(&f);
}

static void function_with_two_callers__stays(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f);
    const struct tare_edge x = mini_arg(f.outer, "x", TARE_DT_FLOAT);
    mini_return(f.outer, "others", mini_call(f.outer, "PartitionedCall", "third", f.project, 1, x));
    assert_int_equal(run_pass(&f), 0);
    close_fixture(&f);
}

static void function_that_is_compiled__stays(void **state) {
    struct fixture f;
    (void)state;
    union tare_attr_item yes = { .b = true };
    open_fixture(&f);
    struct tare_attr attr = { .name = "_XlaMustCompile", .kind = TARE_ATTR_BOOL, .count = 1, .items = &yes };
    f.look->attrs = &attr;
    f.look->n_attrs = 1;
    assert_int_equal(run_pass(&f), 0);
    close_fixture(&f);
}

static void functions_without_a_look_up__stay(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f);
    tare_node_set_input(tare_graph_find(f.look, "gather"), 0, mini_float(f.look, "other", 1));
    assert_int_equal(run_pass(&f), 0);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_with_one_table__are_inlined),
        cmocka_unit_test(function_with_two_callers__stays),
        cmocka_unit_test(function_that_is_compiled__stays),
        cmocka_unit_test(functions_without_a_look_up__stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
