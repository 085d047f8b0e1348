/* Each fused composite is quantized by each method, placed on the TPU in bfloat16, and still computes what it should.
 */
#include "convert/pipeline.h"
#include "interpreter/validation/validate.h"
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 3, STEPS = 3, FEATURES = 8, UNITS = 6, ROWS = 40, MOST_ARGS = 6 };

/* int8 of ranges of 8 with states that go around a few times; bfloat16 has 2^-9 and the same few times. */
static const double TOLERANCE = 0.06;

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *f;  /* the composite function */
    struct tare_edge in;   /* main graph: what is fed */
    struct tare_shape fed; /* its shape when run */
    struct tare_signature signature;
    struct tare_binding input, output;
    struct tare_arena arena;
};

/* ---- building ---- */

static struct tare_edge constant(struct tare_graph *graph, const char *name, struct tare_shape shape, double size) {
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, (uint64_t)shape.dims[0] + strlen(name));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] *= (float)size;
    node = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static void begin(struct fixture *f, int dtype, struct tare_shape open, struct tare_shape fed) {
    struct tare_node *node;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->f = tare_model_add_function(f->model, "composite");
    node = mini_open(f->model->main, "Placeholder", "in", 0);
    mini_ok(tare_node_set_type(node, "dtype", dtype));
    mini_ok(tare_node_set_shape(node, "shape", &open));
    f->in = mini_done(node);
    f->fed = fed;
    f->input = (struct tare_binding){ .key = "in", .dtype = dtype, .shape = open, .edge = f->in };
}

static void implements(struct fixture *f, const char *name, size_t n, struct tare_attr *attrs) {
    union tare_attr_item *item = TARE_NEW(&f->model->arena, union tare_attr_item);
    f->f->attrs = TARE_NEW(&f->model->arena, struct tare_attr);
    f->f->n_attrs = 1;
    struct tare_attr_list *own = TARE_NEW(&f->model->arena, struct tare_attr_list);
    *own = (struct tare_attr_list){ attrs, n };
    item->func = (struct tare_func){ .name = name, .own = own };
    f->f->attrs[0] = (struct tare_attr){ .name = "_implements", .kind = TARE_ATTR_FUNC, .count = 1, .items = item };
}

/* main's nodes from here on run inside a function of their own, the one that goes to the TPU. */
static struct tare_graph *outer(struct fixture *f) {
    struct tare_graph *graph = tare_model_add_function(f->model, "tpu_func");
    mini_arg(graph, "in", f->input.dtype);
    return graph;
}

static void end(struct fixture *f, struct tare_graph *graph, struct tare_edge y) {
    mini_return(graph, "y", y);
    f->output = (struct tare_binding){ .key = "y",
                                       .dtype = TARE_DT_FLOAT,
                                       .shape = tare_shape_unknown(),
                                       .edge = mini_call(f->model->main, "PartitionedCall", "call", graph, 1, f->in) };
    f->signature = (struct tare_signature){ .key = "serving_default",
                                            .method_name = "tensorflow/serving/predict",
                                            .inputs = &f->input,
                                            .n_inputs = 1,
                                            .outputs = &f->output,
                                            .n_outputs = 1 };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void free_fixture(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

/* A body that is only there to be replaced: results of the right dtypes and shapes. */
static void recurrent(struct fixture *f, const char *name, int gates, int states, bool open) {
    static const char *const args[] = { "inputs", "init_h", "init_c" };
    const struct tare_shape fed = tare_shape_make(3, BATCH, STEPS, FEATURES), state = tare_shape_make(2, BATCH, UNITS);
    const struct tare_shape bias = gates == 4 ? tare_shape_make(1, 4 * UNITS) : tare_shape_make(2, 2, 3 * UNITS);
    struct tare_edge in[MOST_ARGS], x, call;
    struct tare_graph *graph;
    int n = 0;
    begin(f, TARE_DT_FLOAT, open ? tare_shape_make(3, -1, -1, FEATURES) : tare_shape_make(3, -1, STEPS, FEATURES), fed);
    for (int i = 0; i <= states; i++)
        mini_arg(f->f, args[i], TARE_DT_FLOAT);
    mini_arg(f->f, "kernel", TARE_DT_FLOAT);
    mini_arg(f->f, "recurrent_kernel", TARE_DT_FLOAT);
    mini_arg(f->f, "bias", TARE_DT_FLOAT);
    x = (struct tare_edge){ f->f->args[1], 0 };
    mini_return(f->f, "last_output", x);
    mini_return(f->f, "outputs",
                mini_node(f->f, "BatchMatMulV2", "all", 2, (struct tare_edge){ f->f->args[0], 0 },
                          constant(f->f, "w", tare_shape_make(3, 1, FEATURES, UNITS), 1)));
    for (int i = 0; i < states; i++)
        mini_return(f->f, "state", x);
    mini_return(f->f, "runtime", mini_float(f->f, "runtime_is", 1));
    implements(f, name, 0, NULL);
    graph = outer(f);
    in[n++] = (struct tare_edge){ graph->args[0], 0 };
    for (int i = 0; i < states; i++)
        in[n++] = constant(graph, "zero_state", state, 0);
    in[n++] = constant(graph, "kernel", tare_shape_make(2, FEATURES, gates * UNITS), 0.5);
    in[n++] = constant(graph, "recurrent", tare_shape_make(2, UNITS, gates * UNITS), 0.5);
    in[n++] = constant(graph, "bias", bias, 0.3);
    call = n == 6 ? mini_call(graph, "PartitionedCall", "layer", f->f, 6, in[0], in[1], in[2], in[3], in[4], in[5])
                  : mini_call(graph, "PartitionedCall", "layer", f->f, 5, in[0], in[1], in[2], in[3], in[4]);
    end(f, graph, mini_output(call, 1));
}

static void make_lstm(struct fixture *f) {
    recurrent(f, "standard_lstm", 4, 2, false);
}
static void make_open_lstm(struct fixture *f) {
    recurrent(f, "standard_lstm", 4, 2, true);
}
static void make_gru(struct fixture *f) {
    recurrent(f, "standard_gru", 3, 1, false);
}
static void make_open_gru(struct fixture *f) {
    recurrent(f, "standard_gru", 3, 1, true);
}

static void make_embedding(struct fixture *f) {
    struct tare_graph *graph;
    struct tare_edge table, y;
    begin(f, TARE_DT_INT32, tare_shape_make(1, -1), tare_shape_make(1, BATCH));
    mini_arg(f->f, "embs", TARE_DT_FLOAT);
    mini_arg(f->f, "ids_vec", TARE_DT_INT32);
    mini_return(f->f, "rets", (struct tare_edge){ f->f->args[0], 0 });
    implements(f, "embedding_lookup", 0, NULL);
    graph = outer(f);
    table = constant(graph, "table", tare_shape_make(2, ROWS, FEATURES), 1);
    y = mini_call(graph, "PartitionedCall", "lookup", f->f, 2, table, (struct tare_edge){ graph->args[0], 0 });
    end(f, graph, mini_node(graph, "Relu", "behind", 1, y));
}

/* A product before it and one behind it. */
static void between_products(struct fixture *f, int n) {
    struct tare_graph *graph = outer(f);
    struct tare_edge x = { graph->args[0], 0 }, gamma, beta;
    x = mini_node(graph, "MatMul", "before", 2, x, constant(graph, "w1", tare_shape_make(2, FEATURES, UNITS), 0.2));
    gamma = constant(graph, "gamma", tare_shape_make(1, UNITS), 1);
    beta = constant(graph, "beta", tare_shape_make(1, UNITS), 1);
    x = n == 3 ? mini_call(graph, "PartitionedCall", "norm", f->f, 3, x, gamma, beta)
               : mini_call(graph, "PartitionedCall", "fused", f->f, 2, x, x);
    x = mini_node(graph, "MatMul", "behind", 2, x, constant(graph, "w2", tare_shape_make(2, UNITS, UNITS), 0.5));
    end(f, graph, x);
}

static void make_layer_norm(struct fixture *f) {
    union tare_attr_item *epsilon;
    struct tare_attr *attr;
    begin(f, TARE_DT_FLOAT, tare_shape_make(2, -1, FEATURES), tare_shape_make(2, BATCH, FEATURES));
    epsilon = TARE_NEW(&f->model->arena, union tare_attr_item);
    attr = TARE_NEW(&f->model->arena, struct tare_attr);
    epsilon->f = 1e-3f;
    *attr = (struct tare_attr){ .name = "epsilon", .kind = TARE_ATTR_FLOAT, .count = 1, .items = epsilon };
    for (int i = 0; i < 3; i++)
        mini_arg(f->f, i == 0 ? "x" : i == 1 ? "gamma" : "beta", TARE_DT_FLOAT);
    mini_return(f->f, "y", (struct tare_edge){ f->f->args[0], 0 });
    implements(f, "layer_norm", 1, attr);
    between_products(f, 3);
}

/* TestAdd stands for an op of a plugin. */
static void make_user_op(struct fixture *f) {
    union tare_attr_item *yes;
    struct tare_attr *attr;
    begin(f, TARE_DT_FLOAT, tare_shape_make(2, -1, FEATURES), tare_shape_make(2, BATCH, FEATURES));
    yes = TARE_NEW(&f->model->arena, union tare_attr_item);
    attr = TARE_NEW(&f->model->arena, struct tare_attr);
    yes->b = true;
    *attr = (struct tare_attr){ .name = "tfl_fusable_op", .kind = TARE_ATTR_BOOL, .count = 1, .items = yes };
    mini_arg(f->f, "input_1", TARE_DT_FLOAT);
    mini_arg(f->f, "input_2", TARE_DT_FLOAT);
    mini_return(f->f, "y", (struct tare_edge){ f->f->args[0], 0 });
    implements(f, "TestAdd", 1, attr);
    between_products(f, 2);
}

/* ---- running ---- */

static struct tare_tensor answer(const struct fixture *f) {
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor x, y;
    mini_ok(tare_tensor_new(&x, f->input.dtype, &f->fed));
    if (f->input.dtype == TARE_DT_INT32)
        for (int64_t i = 0; i < x.elements; i++)
            TARE_DATA(int32_t, &x)[i] = (int32_t)(i * 7 % ROWS);
    else
        draw_fill(x.data, (size_t)x.elements, DRAW_NORMAL, 77);
    mini_ok(tare_session_run_signature(session, &f->model->signatures[0], &x, &y));
    tare_tensor_reset(&x);
    tare_session_free(session);
    return y;
}

static void expect_near(const char *what, struct tare_tensor *got, const struct tare_tensor *want) {
    double worst = 0, largest = 0;
    assert_true(tare_shape_equal(&got->shape, &want->shape));
    for (int64_t i = 0; i < want->elements; i++) {
        worst = fmax(worst, fabs((double)TARE_DATA(float, got)[i] - (double)TARE_CONST_DATA(float, want)[i]));
        largest = fmax(largest, fabs((double)TARE_CONST_DATA(float, want)[i]));
    }
    if (!(worst <= TOLERANCE * largest)) fail_msg("%s: %g away (expected %g of %g)", what, worst, TOLERANCE, largest);
    if (worst == 0 && strstr(what, "static")) fail_msg("%s: nothing was rounded", what);
    tare_tensor_reset(got);
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    (void)arg;
    (void)edge;
    *low = -4;
    *high = 4;
    *found = true;
    return TARE_OK;
}

static void expect_fits(const struct fixture *f) {
    struct tare_faults faults = { 0 };
    mini_ok(tare_model_validate(&faults, f->model, NULL));
    if (faults.count) fail_msg("a fault: %s", faults.items[0]);
    tare_faults_free(&faults);
    graph_check_dtypes(f->model);
}

static void place(struct fixture *f, const char *what, const struct tare_tensor *want, bool allow) {
    static const struct tare_tpu_choice choice = { TARE_TPU_BY_SIGNATURE, "serving_default", false };
    const struct tare_converter_options options = { .functions = (struct tare_tpu_choice *)(uintptr_t)&choice,
                                                    .n_functions = 1,
                                                    .bfloat16 = true,
                                                    .io_shapes = true,
                                                    .allow_incompatible = allow };
    struct tare_conversion conversion;
    struct tare_tensor got;
    mini_ok(tare_pipeline_place(&conversion, &f->arena, f->model, &options, NULL));
    assert_int_equal(conversion.composites.count, 1); /* fused while preparing, and reported all the same */
    assert_int_equal(conversion.composites.fused, 1);
    expect_fits(f);
    got = answer(f);
    expect_near(what, &got, want);
}

/* expected: layers that become int8; the float model's answer is that of the fused form. */
static void each_method(void (*make)(struct fixture *f), size_t expected, bool allow) {
    const struct tare_quant_method *const methods[] = { NULL, &tare_method_static, &tare_method_dynamic,
                                                        &tare_method_weight_only };
    const struct tare_quant_ranges ranges = { .find = find };
    struct tare_tensor want = { 0 }, got;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct tare_quant_plan options = { .setting.method = methods[i], .min_elements = 1 };
        struct tare_quant_report report = { 0 };
        char what[64];
        struct fixture f;
        make(&f);
        mini_ok(tare_pipeline_prepare(f.model, NULL));
        assert_null(tare_graph_find_attr(f.f, "_implements"));
        snprintf(what, sizeof what, "%s", methods[i] ? methods[i]->name : "bfloat16");
        if (!methods[i]) want = answer(&f);
        if (methods[i]) mini_ok(tare_quantize(&report, &f.arena, f.model, &ranges, &options));
        for (size_t k = 0; methods[i] && report.quantized < expected && k < report.count; k++)
            if (report.outcomes[k].refused)
                print_error("%s: %s\n", report.outcomes[k].node, report.outcomes[k].refused);
        if (methods[i]) assert_int_equal(report.quantized, expected);
        expect_fits(&f);
        got = answer(&f);
        expect_near(what, &got, &want);
        place(&f, what, &want, allow);
        free_fixture(&f);
    }
    tare_tensor_reset(&want);
}

static void an_lstm__is_quantized_by_each_method(void **state) {
    (void)state;
    each_method(make_lstm, STEPS, false); /* one for all inputs; the first step's state is zero, and folded */
}

static void an_lstm_of_open_length__is_quantized_by_each_method(void **state) {
    (void)state;
    each_method(make_open_lstm, 2, false);
}

static void a_gru__is_quantized_by_each_method(void **state) {
    (void)state;
    each_method(make_gru, STEPS, false);
}

static void a_gru_of_open_length__is_quantized_by_each_method(void **state) {
    (void)state;
    each_method(make_open_gru, 2, false);
}

static void an_embedding__is_quantized_by_each_method(void **state) {
    (void)state;
    each_method(make_embedding, 1, false);
}

static void a_layer_norm__is_quantized_around_by_each_method(void **state) {
    (void)state;
    each_method(make_layer_norm, 2, false);
}

/* No TPU has an op of the user's: it is placed because that is allowed, as for one with a kernel of its own. */
static void a_user_op__is_quantized_around_by_each_method(void **state) {
    (void)state;
    each_method(make_user_op, 2, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_lstm__is_quantized_by_each_method),
        cmocka_unit_test(an_lstm_of_open_length__is_quantized_by_each_method),
        cmocka_unit_test(a_gru__is_quantized_by_each_method),
        cmocka_unit_test(a_gru_of_open_length__is_quantized_by_each_method),
        cmocka_unit_test(an_embedding__is_quantized_by_each_method),
        cmocka_unit_test(a_layer_norm__is_quantized_around_by_each_method),
        cmocka_unit_test(a_user_op__is_quantized_around_by_each_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
