/* Weights of quantization-aware training in variables that are kept: the variable takes FakeQuant's values, and its
 * integers are FakeQuant's grid. Where something else reads the variable, nothing changes. */
#include "convert/pass.h"
#include "quant/quantize.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5, COLUMNS = 3 };

enum extra { NOTHING, OTHER_RANGE, SAME_RANGE, FLOAT_USE, PER_CHANNEL };

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *function;
    struct tare_edge x, y, handle;
};

static struct tare_edge read_variable(struct tare_graph *graph, struct tare_edge handle, const char *name) {
    struct tare_node *read = mini_open(graph, "ReadVariableOp", name, 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    return mini_done(read);
}

static struct tare_edge add_variable(struct tare_graph_model *model, const char *name, const struct tare_shape *shape,
                                     float first, float step) {
    struct tare_node *handle = mini_open(model->main, "VarHandleOp", name, 0);
    struct tare_tensor value;
    mini_ok(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(handle, "shape", shape));
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = first + step * sinf((float)(i * i));
    mini_add_variable(model, handle, value);
    for (size_t v = 0; v < model->n_variables; v++)
        if (model->variables[v].node == handle) model->variables[v].key = name;
    return mini_done(handle);
}

static struct tare_edge fake(struct tare_graph *graph, const char *op, struct tare_edge x, struct tare_edge low,
                             struct tare_edge high) {
    struct tare_node *node = mini_open(graph, op, "fake", 3, x, low, high);
    mini_ok(tare_node_set_bool(node, "narrow_range", true));
    return mini_done(node);
}

/* f(x, w, low, high) = x FakeQuant(w): the range is in variables, as Keras has it. */
static void set_up(struct fixture *f, enum extra extra) {
    const char *op = extra == PER_CHANNEL ? "FakeQuantWithMinMaxVarsPerChannel" : "FakeQuantWithMinMaxVars";
    const struct tare_shape matrix = tare_shape_make(2, ROWS, COLUMNS);
    const struct tare_shape limit = extra == PER_CHANNEL ? tare_shape_make(1, COLUMNS) : tare_shape_scalar();
    const struct tare_shape rows = tare_shape_make(2, 2, ROWS);
    struct tare_edge low, high, w, read, range[2];
    struct tare_graph *g;
    f->model = mini_model_new();
    g = f->function = tare_model_add_function(f->model, "f");
    f->handle = add_variable(f->model, "kernel", &matrix, 0, 1.4f);
    low = add_variable(f->model, "kernel_min", &limit, -1.5f, 0);
    high = add_variable(f->model, "kernel_max", &limit, 1.5f, 0);
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(f->x.node, "shape", &rows));
    const struct tare_edge x = mini_arg(g, "x", TARE_DT_FLOAT);
    w = mini_arg(g, "w", TARE_DT_RESOURCE);
    range[0] = read_variable(g, mini_arg(g, "low", TARE_DT_RESOURCE), "read_low");
    range[1] = read_variable(g, mini_arg(g, "high", TARE_DT_RESOURCE), "read_high");
    read = mini_node(g, "Identity", "identity", 1, read_variable(g, w, "read"));
    struct tare_edge y = mini_node(g, "MatMul", "product", 2, x, fake(g, op, read, range[0], range[1]));
    if (extra == OTHER_RANGE || extra == SAME_RANGE) {
        read = read_variable(g, w, "read_again");
        read = fake(g, op, read, extra == SAME_RANGE ? range[0] : mini_float(g, "other", -0.5f), range[1]);
        y = mini_node(g, "AddV2", "sum", 2, y, mini_node(g, "MatMul", "product_2", 2, x, read));
    }
    if (extra == FLOAT_USE) y = mini_node(g, "AddV2", "sum", 2, y, mini_node(g, "MatMul", "product_2", 2, x, read));
    mini_return(g, "y", y);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", g, 4, f->x, f->handle, low, high);
    f->model->keep_variables_from = 1;
}

static struct tare_tensor run(struct fixture *f) {
    const struct tare_shape shape = tare_shape_make(2, 2, ROWS);
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor fed, result;
    mini_ok(tare_tensor_new(&fed, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < fed.elements; i++)
        TARE_DATA(float, &fed)[i] = cosf((float)i);
    mini_ok(tare_session_run(session, &f->x, &fed, 1, &f->y, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    return result;
}

/* Runs the passes; the outputs keep their bits. Returns the number of FakeQuants that were removed. */
static size_t prepare(struct fixture *f) {
    struct tare_tensor before = run(f), after;
    size_t frozen = 0, changes = 0;
    mini_ok(tare_pass_freeze.run(f->model, &frozen));
    mini_ok(tare_pass_fold_fake_quant.run(f->model, &changes));
    after = run(f);
    assert_memory_equal(before.data, after.data, tare_tensor_bytes(&before));
    tare_tensor_reset(&before);
    tare_tensor_reset(&after);
    graph_check_dtypes(f->model);
    return changes;
}

static void fake_quants_of_a_kept_variable__round_its_value(void **state) {
    (void)state;
    for (enum extra extra = NOTHING; extra <= SAME_RANGE; extra += SAME_RANGE) {
        struct fixture f;
        set_up(&f, extra);
        assert_int_equal(prepare(&f), extra == SAME_RANGE ? 2 : 1);
        assert_int_equal(graph_count(f.function, "FakeQuantWithMinMaxVars"), 0);
        assert_true(f.model->variables[0].constant);
        for (int64_t i = 0; i < ROWS * COLUMNS; i++) { /* multiples of 3 / 254 */
            const double code = (double)TARE_DATA(float, &f.model->variables[0].value)[i] / (3.0 / 254);
            assert_true(fabs(code - nearbyint(code)) < 1e-4);
        }
        tare_model_free(f.model);
    }
}

/* Ranges per channel are kept variables themselves. */
static void fake_quants_per_channel__take_ranges_from_kept_variables(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, PER_CHANNEL);
    assert_int_equal(prepare(&f), 1);
    assert_int_equal(graph_count(f.function, "FakeQuantWithMinMaxVarsPerChannel"), 0);
    assert_true(f.model->variables[1].constant);
    tare_model_free(f.model);
}

static void variables_with_other_uses__keep_their_values(void **state) {
    static const enum extra extras[] = { OTHER_RANGE, FLOAT_USE };
    (void)state;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        struct fixture f;
        set_up(&f, extras[i]);
        assert_int_equal(prepare(&f), 0);
        assert_true(TARE_DATA(float, &f.model->variables[0].value)[1] == 1.4f * sinf(1));
        tare_model_free(f.model);
    }
}

/* Every method quantizes the layer, the variable holds the integers, and no weight is rounded a second time. */
static void quantized__the_variable_has_the_integers_of_the_grid(void **state) {
    static const struct tare_quant_method *const methods[] = { &tare_method_weight_only, &tare_method_dynamic };
    (void)state;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        const struct tare_quant_plan options = { .setting.method = methods[m], .min_elements = 1 };
        struct tare_quant_report report;
        struct tare_arena arena = { 0 };
        struct fixture f;
        set_up(&f, NOTHING);
        prepare(&f);
        mini_ok(tare_quantize(&report, &arena, f.model, NULL, &options));
        assert_int_equal(report.quantized, 1);
        assert_true(report.outcomes[0].weight_sqnr_db > 120);
        assert_int_equal(f.model->variables[0].dtype, TARE_DT_INT8);
        tare_arena_free(&arena);
        tare_model_free(f.model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fake_quants_of_a_kept_variable__round_its_value),
        cmocka_unit_test(fake_quants_per_channel__take_ranges_from_kept_variables),
        cmocka_unit_test(variables_with_other_uses__keep_their_values),
        cmocka_unit_test(quantized__the_variable_has_the_integers_of_the_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
