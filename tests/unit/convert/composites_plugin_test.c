/* Composite functions that a library fuses: its op by the annotation's name, and its rewrites. */
#include "convert/composites/composites.h"
#include "convert/saved_model.h"
#include "convert/validation/validate.h"
#include "support/graph_check.h"
#include "support/plugin_fixture.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_edge x;
    struct tare_composites found;
    struct tare_signature signature;
    struct tare_binding input, outputs[2];
};

static struct tare_edge same(struct tare_graph *graph, struct tare_edge x, int dtype) {
    struct tare_node *node;
    if (tare_edge_dtype(x) == dtype) return mini_node(graph, "Identity", "same", 1, x);
    node = mini_open(graph, "Cast", "cast", 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* main: y = composite(x [, x]), with a body that returns its arguments in another dtype. */
static void set_up_of(struct fixture *f, size_t n, struct tare_shape shape, int takes, int returns) {
    struct tare_node *placeholder, *call;
    struct tare_edge x[2];
    memset(f, 0, sizeof *f);
    mini_ok(tare_plugins_load(plugins, plugin_path("fused")));
    f->model = tare_model_new(tare_plugins_ops(plugins));
    assert_non_null(f->model);
    f->function = tare_model_add_function(f->model, "composite");
    for (size_t i = 0; i < n; i++)
        x[i] = mini_arg(f->function, i ? "b" : "a", takes);
    for (size_t i = 0; i < n; i++)
        mini_return(f->function, i ? "second" : "first", same(f->function, x[i], returns));
    placeholder = mini_open(f->model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(placeholder, "dtype", takes));
    mini_ok(tare_node_set_shape(placeholder, "shape", &shape));
    f->x = mini_done(placeholder);
    call = mini_call(f->model->main, "PartitionedCall", "call", f->function, (int)n, f->x, f->x).node;
    f->input = (struct tare_binding){ .key = "x", .dtype = takes, .shape = shape, .edge = f->x };
    for (size_t i = 0; i < n; i++)
        f->outputs[i] = (struct tare_binding){
            .key = i ? "b" : "a", .dtype = returns, .shape = tare_shape_unknown(), .edge = { call, (int)i }
        };
    f->signature = (struct tare_signature){ "serving_default", "", &f->input, 1, f->outputs, n, NULL };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void set_up(struct fixture *f, size_t n, struct tare_shape shape) {
    set_up_of(f, n, shape, TARE_DT_FLOAT, TARE_DT_FLOAT);
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void annotate(struct fixture *f, const char *name, const struct tare_attr *attrs, size_t n) {
    union tare_attr_item *item = TARE_NEW(&f->arena, union tare_attr_item);
    struct tare_attr *grown =
        tare_arena_extend(&f->model->arena, f->function->attrs, f->function->n_attrs, 1, sizeof *grown);
    struct tare_attr_list *own = TARE_NEW(&f->arena, struct tare_attr_list);
    *own = (struct tare_attr_list){ (struct tare_attr *)(uintptr_t)attrs, n };
    item->func = (struct tare_func){ .name = name, .own = own };
    grown[f->function->n_attrs++] =
        (struct tare_attr){ .name = "_implements", .kind = TARE_ATTR_FUNC, .count = 1, .items = item };
    f->function->attrs = grown;
}

static void scale_by(struct fixture *f, const char *name, float factor) {
    union tare_attr_item *item = TARE_NEW(&f->arena, union tare_attr_item);
    struct tare_attr *attr = TARE_NEW(&f->arena, struct tare_attr);
    item->f = factor;
    *attr = (struct tare_attr){ .name = "factor", .kind = TARE_ATTR_FLOAT, .count = 1, .items = item };
    annotate(f, name, attr, 1);
}

/* Outputs of the signature for x = 3. */
static void check_outputs(const struct tare_graph_model *model, const struct tare_shape *shape, size_t n,
                          const float *wanted) {
    const struct tare_signature *signature = tare_model_find_signature(model, "serving_default");
    struct tare_session *session = mini_session(model);
    struct tare_tensor x, y[2] = { 0 };
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = 3;
    mini_ok(tare_session_run_signature(session, signature, &x, y));
    for (size_t i = 0; i < n; i++) {
        assert_float_equal(TARE_CONST_DATA(float, &y[i])[0], wanted[i], 0);
        tare_tensor_reset(&y[i]);
    }
    tare_tensor_reset(&x);
    tare_session_free(session);
}

static void fuse(struct fixture *f) {
    mini_ok(tare_composites_fuse(&f->found, f->model));
    assert_int_equal(f->found.count, 1);
}

static void check_file(const char *path) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)2);
    const struct tare_saved_model_options options = { .ops = tare_plugins_ops(plugins) };
    struct tare_graph_model *read;
    mini_ok(tare_saved_model_load(&read, path, &options));
    check_outputs(read, &shape, 2, (float[]){ 13, 3 });
    tare_model_free(read);
}

/* The example of TensorFlow's page about fused ops, fused and written. */
static void write_fused(const char *path) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)2);
    union tare_attr_item items[2] = { { .b = true }, { .i = 10 } };
    const struct tare_attr attrs[] = {
        { .name = "tfl_fusable_op", .kind = TARE_ATTR_BOOL, .count = 1, .items = &items[0] },
        { .name = "example_option", .kind = TARE_ATTR_INT, .count = 1, .items = &items[1] }
    };
    struct fixture f;
    set_up(&f, 2, shape);
    annotate(&f, "my_custom_fused_op", attrs, 2);
    fuse(&f);
    assert_null(f.found.items[0].reason);
    assert_non_null(graph_only(f.function, "my_custom_fused_op"));
    check_outputs(f.model, &shape, 2, (float[]){ 13, 3 });
    mini_ok(tare_saved_model_export(f.model, path, NULL));
    tear_down(&f);
}

static void a_fused_op__may_have_a_name_in_lower_case(void **state) {
    const char *path = temp_path("fused_model");
    (void)state;
    write_fused(path);
    check_file(path);
}

/* The file defines the op, so that only running it takes the library; that TensorFlow has no such op is a violation, as
 * for every op of a library. */
static void a_fused_op__is_read_copied_and_validated_without_its_library(void **state) {
    char path[4096];
    const char *copy;
    struct tare_faults faults = { 0 };
    struct tare_graph_model *read;
    struct tare_session *session;
    struct tare_tensor x, y[2] = { 0 };
    const struct tare_shape shape = tare_shape_make(1, (int64_t)2);
    (void)state;
    snprintf(path, sizeof path, "%s", temp_path("fused_written"));
    write_fused(path);
    copy = temp_path("fused_copy");
    mini_ok(tare_saved_model_load(&read, path, NULL));
    const struct tare_node *node = graph_only(read->functions[0], "my_custom_fused_op");
    assert_non_null(node);
    assert_int_equal(node->n_outputs, 2);
    mini_ok(tare_saved_model_export(read, copy, NULL));
    mini_ok(tare_saved_model_validate(&faults, copy, NULL));
    assert_int_equal(faults.count, 1);
    assert_string_equal(faults.items[0], "composite/my_custom_fused_op (my_custom_fused_op): unknown op");
    tare_faults_free(&faults);
    session = mini_session(read);
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, (float[]){ 3, 3 }));
    mini_fails(tare_session_run_signature(session, read->signatures, &x, y), "my_custom_fused_op");
    tare_session_free(session);
    tare_tensor_reset(&x);
    tare_model_free(read);
    check_file(copy);
}

/* Nothing is changed then, and the conversion goes on. */
static void a_fused_op__that_does_not_fit_is_declined(void **state) {
    static const struct {
        size_t inputs, attrs;
        enum tare_attr_kind kind;
        const char *reason;
    } cases[] = {
        { 2, 2, TARE_ATTR_FLOAT, "attribute 'example_option' of op 'my_custom_fused_op' is float (expected int)" },
        { 2, 1, TARE_ATTR_INT, "op 'my_custom_fused_op' requires the attribute 'example_option'" },
        { 1, 2, TARE_ATTR_INT, "op 'my_custom_fused_op' has 2 inputs and 2 outputs, the function 1 and 1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        union tare_attr_item items[2] = { { .b = true }, { .i = 10 } };
        const struct tare_attr attrs[] = {
            { .name = "tfl_fusable_op", .kind = TARE_ATTR_BOOL, .count = 1, .items = &items[0] },
            { .name = "example_option", .kind = cases[i].kind, .count = 1, .items = &items[1] }
        };
        struct fixture f;
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
        set_up(&f, cases[i].inputs, tare_shape_make(1, (int64_t)2));
        const size_t nodes = f.function->n_nodes;
        annotate(&f, "my_custom_fused_op", attrs, cases[i].attrs);
        fuse(&f);
        assert_non_null(f.found.items[0].reason);
        assert_string_equal(f.found.items[0].reason, cases[i].reason);
        assert_int_equal(f.function->n_nodes, nodes);
        tear_down(&f);
    }
}

/* What only a node of the op shows is found by one in a model of its own. */
static void a_fused_op__of_other_types_is_declined(void **state) {
    static const struct {
        int takes, returns;
        const char *reason;
    } cases[] = {
        { TARE_DT_INT32, TARE_DT_FLOAT, "input 0 of op 'my_custom_fused_op' is float32, of the function int32" },
        { TARE_DT_FLOAT, TARE_DT_HALF, "output 0 of op 'my_custom_fused_op' is float32, of the function float16" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        union tare_attr_item items[2] = { { .b = true }, { .i = 10 } };
        const struct tare_attr attrs[] = {
            { .name = "tfl_fusable_op", .kind = TARE_ATTR_BOOL, .count = 1, .items = &items[0] },
            { .name = "example_option", .kind = TARE_ATTR_INT, .count = 1, .items = &items[1] }
        };
        struct fixture f;
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
        set_up_of(&f, 2, tare_shape_make(1, (int64_t)2), cases[i].takes, cases[i].returns);
        annotate(&f, "my_custom_fused_op", attrs, 2);
        fuse(&f);
        assert_non_null(f.found.items[0].reason);
        assert_non_null(strstr(f.found.items[0].reason, cases[i].reason));
        assert_int_equal(graph_count(f.function, "my_custom_fused_op"), 0);
        tear_down(&f);
    }
}

static void a_rewrite__matches_a_prefix_and_an_exact_name(void **state) {
    static const char *const names[] = { "vendor_scale_v1", "vendor_scale_", "other_scale" };
    const struct tare_shape vector = tare_shape_make(1, (int64_t)2);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        plugin_tear_down(NULL);
        plugin_set_up(NULL);
        set_up(&f, 1, vector);
        scale_by(&f, names[i], 2);
        fuse(&f);
        assert_null(f.found.items[0].reason);
        graph_check_dtypes(f.model);
        assert_int_equal(f.function->n_nodes, 2); /* nothing of the old body and of the rewrite that declined */
        check_outputs(f.model, &vector, 1, (float[]){ 6 });
        tear_down(&f);
    }
}

/* Of several implementations the first that does not decline is used. */
static void rewrites__are_tried_in_order(void **state) {
    const struct tare_shape matrix = tare_shape_make(2, (int64_t)2, (int64_t)2);
    struct fixture f;
    (void)state;
    set_up(&f, 1, matrix);
    scale_by(&f, "vendor_scale_v1", 2);
    fuse(&f);
    assert_non_null(graph_only(f.function, "Neg"));
    check_outputs(f.model, &matrix, 1, (float[]){ -3 });
    tear_down(&f);
}

static void a_function__that_all_decline_stays_with_the_first_reason(void **state) {
    const struct tare_shape vector = tare_shape_make(1, (int64_t)2);
    struct fixture f;
    (void)state;
    set_up(&f, 2, vector);
    scale_by(&f, "vendor_scale_v1", 2);
    fuse(&f);
    assert_string_equal(f.found.items[0].reason, "the fast implementation is for matrices");
    assert_int_equal(f.function->n_nodes, 2);
    check_outputs(f.model, &vector, 2, (float[]){ 3, 3 });
    tear_down(&f);
}

static void expect_failure(const char *name, const char *text) {
    struct fixture f;
    plugin_tear_down(NULL);
    plugin_set_up(NULL);
    set_up(&f, 1, tare_shape_make(1, (int64_t)2));
    annotate(&f, name, NULL, 0);
    mini_fails(tare_composites_fuse(&f.found, f.model), text);
    tear_down(&f);
}

static void faults_of_a_rewrite__name_the_library(void **state) {
    (void)state;
    expect_failure("sets_nothing", "fused.so: composite 'sets_nothing': the rewrite sets no result 0");
    expect_failure("adds_an_unknown_op", "there is no op 'NoSuchOp'");
    expect_failure("verifies_its_interface", "verifies_its_interface has two arguments, not 1");
    expect_failure("other_scale", "the annotation has no attribute 'factor'");
}

static void a_name__of_a_fused_op_is_an_identifier(void **state) {
    (void)state;
    setenv("ASKED_OP", "my op", 1);
    mini_fails(tare_plugins_load(plugins, plugin_path("fused")),
               "Invalid name: my op (expected letters, digits and _)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PLUGIN_CASE(a_fused_op__may_have_a_name_in_lower_case),
        PLUGIN_CASE(a_fused_op__is_read_copied_and_validated_without_its_library),
        PLUGIN_CASE(a_fused_op__of_other_types_is_declined),
        PLUGIN_CASE(a_fused_op__that_does_not_fit_is_declined),
        PLUGIN_CASE(a_rewrite__matches_a_prefix_and_an_exact_name),
        PLUGIN_CASE(rewrites__are_tried_in_order),
        PLUGIN_CASE(a_function__that_all_decline_stays_with_the_first_reason),
        PLUGIN_CASE(faults_of_a_rewrite__name_the_library),
        PLUGIN_CASE(a_name__of_a_fused_op_is_an_identifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
