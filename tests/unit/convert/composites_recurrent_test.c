/* Annotated recurrent layers: fused into one op or a loop, with the same bits, in the smaller form. */
#include "convert/saved_model.h"
#include "graph/clone.h"
#include "graph/inline.h"
#include "support/composite.h"
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/temp.h"
#include "tpu/cost/fused.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* ---- recurrent layers: the same operations, one step at a time ---- */

enum { BATCH = 2, STEPS = 3, FEATURES = 4, UNITS = 5 };

static struct tare_edge mini_split(struct tare_graph *g, struct tare_edge value, int count) {
    struct tare_node *node = mini_open(g, "Split", "split", 2, mini_int(g, "axis", 1), value);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int(node, "num_split", count));
    return mini_done(node);
}

static struct tare_edge mini_unpack(struct tare_graph *g, struct tare_edge value, int count, int axis) {
    struct tare_node *node = mini_open(g, "Unpack", "unpack", 1, value);
    mini_ok(tare_node_set_int(node, "num", count));
    mini_ok(tare_node_set_int(node, "axis", axis));
    return mini_done(node);
}

static struct tare_edge two(struct tare_graph *g, const char *op, struct tare_edge a, struct tare_edge b) {
    return mini_node(g, op, op, 2, a, b);
}

static struct tare_edge mini_pack(struct tare_graph *g, const struct tare_edge *h, int axis) {
    struct tare_node *node = mini_open(g, "Pack", "pack", 3, h[0], h[1], h[2]);
    mini_ok(tare_node_set_int(node, "axis", axis));
    return mini_done(node);
}

static void lstm_body(struct composite *f, bool backwards) {
    struct tare_graph *g = f->function;
    struct tare_edge x = mini_arg(g, "inputs", TARE_DT_FLOAT), h = mini_arg(g, "init_h", TARE_DT_FLOAT);
    struct tare_edge state = mini_arg(g, "init_c", TARE_DT_FLOAT), kernel = mini_arg(g, "kernel", TARE_DT_FLOAT);
    struct tare_edge recurrent = mini_arg(g, "recurrent_kernel", TARE_DT_FLOAT),
                     bias = mini_arg(g, "bias", TARE_DT_FLOAT);
    struct tare_edge steps = mini_unpack(g, x, STEPS, 1), outputs[STEPS];
    for (int t = 0; t < STEPS; t++) {
        struct tare_edge z = two(g, "MatMul", mini_output(steps, backwards ? STEPS - 1 - t : t), kernel), s, keep, take;
        z = two(g, "BiasAdd", two(g, "AddV2", z, two(g, "MatMul", h, recurrent)), bias);
        s = mini_split(g, z, 4);
        keep = two(g, "Mul", mini_node(g, "Sigmoid", "f", 1, mini_output(s, 1)), state);
        take = two(g, "Mul", mini_node(g, "Sigmoid", "i", 1, s), mini_node(g, "Tanh", "g", 1, mini_output(s, 2)));
        state = two(g, "AddV2", keep, take);
        h = two(g, "Mul", mini_node(g, "Sigmoid", "o", 1, mini_output(s, 3)), mini_node(g, "Tanh", "c", 1, state));
        outputs[t] = h;
    }
    mini_return(g, "last_output", h);
    mini_return(g, "outputs", mini_pack(g, outputs, 1));
    mini_return(g, "new_h", h);
    mini_return(g, "new_c", state);
    mini_return(g, "runtime", mini_float(g, "runtime_is", 1));
    composite_annotate(f, composite_text_attr(f, "api_implements", "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13"));
    composite_annotate(f, composite_text_attr(f, "api_preferred_device", "CPU"));
    composite_annotate(f, composite_bool_attr(f, "time_major", false));
    composite_annotate(f, composite_bool_attr(f, "go_backwards", backwards));
}

static const struct tare_shape lstm_shapes[] = {
    { .rank = 3, .dims = { BATCH, STEPS, FEATURES } }, { .rank = 2, .dims = { BATCH, UNITS } },
    { .rank = 2, .dims = { BATCH, UNITS } },           { .rank = 2, .dims = { FEATURES, 4 * UNITS } },
    { .rank = 2, .dims = { UNITS, 4 * UNITS } },       { .rank = 1, .dims = { 4 * UNITS } }
};

static void a_keras_lstm__is_fused_bit_for_bit(void **state) {
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct tare_graph_model *clone;
        struct composite f;
        composite_set_up(&f);
        lstm_body(&f, backwards);
        composite_call_with(&f, lstm_shapes);
        assert_int_equal(graph_count(f.function, "MatMul"), 2 * STEPS);
        composite_expect_same_values(&f, lstm_shapes, "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13");
        assert_int_equal(graph_count(f.function, "MatMul"), 1 + STEPS); /* one product for all inputs */
        composite_fuse(&f);
        assert_int_equal(f.found.count, 0); /* it is no composite any more */
        assert_int_equal(f.model->composites.fused, 1);
        mini_ok(tare_model_clone(&clone, f.model));
        assert_string_equal(clone->composites.items[0].function, f.function->name);
        tare_model_free(clone);
        composite_tear_down(&f);
    }
}

/* The same with an open number of time steps: a loop, and the same bits. */
static void a_keras_lstm__of_open_length_becomes_a_loop(void **state) {
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct tare_shape open[6];
        struct tare_tensor before[5], after[5];
        struct composite f;
        composite_set_up(&f);
        lstm_body(&f, backwards);
        memcpy(open, lstm_shapes, sizeof open);
        open[0].dims[0] = open[0].dims[1] = -1;
        composite_call_with(&f, open);
        composite_compute(&f, lstm_shapes, before);
        composite_fuse(&f);
        composite_expect_fused(&f, "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13");
        assert_int_equal(graph_count(f.function, "StatelessWhile"), 1);
        assert_int_equal(graph_count(f.function, "MatMul"), 1);
        composite_compute(&f, lstm_shapes, after);
        for (size_t i = 0; i < 5; i++) {
            assert_true(tare_shape_equal(&before[i].shape, &after[i].shape));
            assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
            tare_tensor_reset(&before[i]);
            tare_tensor_reset(&after[i]);
        }
        composite_tear_down(&f);
    }
}

/* A Keras LSTM of `steps` steps; what its body computes does not matter here. */
static void lstm_of(struct composite *f, struct tare_shape *shapes, int64_t steps) {
    const struct tare_shape weight = tare_shape_make(3, 1, FEATURES, UNITS);
    struct tare_tensor value;
    struct tare_edge x, h;
    composite_set_up(f);
    memcpy(shapes, lstm_shapes, sizeof lstm_shapes);
    shapes[0].dims[1] = steps;
    x = mini_arg(f->function, "inputs", TARE_DT_FLOAT);
    h = mini_arg(f->function, "init_h", TARE_DT_FLOAT);
    for (int i = 2; i < 6; i++)
        mini_arg(f->function, "more", TARE_DT_FLOAT);
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &weight));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, 9);
    mini_return(f->function, "last_output", h);
    mini_return(f->function, "outputs",
                mini_node(f->function, "BatchMatMulV2", "all", 2, x,
                          (struct tare_edge){ tare_graph_add_const(f->function, "w", &value), 0 }));
    mini_return(f->function, "new_h", h);
    mini_return(f->function, "new_c", h);
    mini_return(f->function, "runtime", mini_float(f->function, "runtime_is", 1));
    composite_annotate(f, composite_text_attr(f, "_implements", "standard_lstm"));
    composite_call_with(f, shapes);
    composite_fuse(f);
    composite_expect_fused(f, "standard_lstm");
    tare_tensor_reset(&value);
}

static void a_keras_lstm__of_many_steps_becomes_a_loop(void **state) {
    enum { MANY = 17 };
    struct tare_tensor results[5];
    struct tare_shape shapes[6];
    struct composite f;
    (void)state;
    lstm_of(&f, shapes, MANY);
    assert_int_equal(graph_count(f.function, "StatelessWhile"), 1);
    composite_compute(&f, shapes, results);
    assert_int_equal(results[1].shape.dims[1], MANY);
    assert_memory_equal((float *)results[1].data + (MANY - 1) * UNITS, results[0].data, UNITS * sizeof(float));
    for (size_t i = 0; i < 5; i++)
        tare_tensor_reset(&results[i]);
    composite_tear_down(&f);
}

/* Bytes of the graph of an LSTM of `steps` steps; *is_loop: its form. */
static int64_t written_size(int64_t steps, bool *is_loop) {
    const struct tare_export_options options = { .overwrite = true };
    struct tare_shape shapes[6];
    struct stat file;
    struct composite f;
    lstm_of(&f, shapes, steps);
    *is_loop = graph_count(f.function, "StatelessWhile") == 1;
    mini_ok(tare_saved_model_export(f.model, temp_path("lstm"), &options));
    assert_int_equal(stat(temp_path("lstm/saved_model.pb"), &file), 0);
    composite_tear_down(&f);
    return file.st_size;
}

/* The smaller form is chosen: steps are unrolled while that takes fewer bytes than the loop, whose size does not depend
 * on their number. */
static void a_keras_lstm__has_the_smaller_form(void **state) {
    bool is_loop;
    const int64_t loop = written_size(128, &is_loop);
    (void)state;
    assert_true(is_loop);
    for (int64_t steps = 1; steps <= 6; steps++) {
        const int64_t size = written_size(steps, &is_loop);
        if (is_loop != (steps > 3) || size > loop + 8)
            fail_msg("%lld steps: %lld bytes %s, the loop of 128 steps has %lld", (long long)steps, (long long)size,
                     is_loop ? "as a loop" : "unrolled", (long long)loop);
    }
}

/* ---- the time of a step on a TPU ---- */

/* The outputs of all time steps. */
static struct tare_edge find_outputs(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->name, "call/outputs") == 0)
            return (struct tare_edge){ graph->nodes[i], 0 };
    fail_msg("no node call/outputs");
    return (struct tare_edge){ NULL, 0 };
}

/* Estimated cost of the whole layer, in which a loop's body counts as often as it runs. */
static struct tare_fused_cost estimate(int64_t steps) {
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT };
    const struct tare_signature signature = { .key = "s", .outputs = &output, .n_outputs = 1 };
    struct tare_shape shapes[6];
    struct tare_fused_cost all;
    struct composite f;
    lstm_of(&f, shapes, steps);
    mini_ok(tare_model_inline_calls(f.model));
    output.edge = find_outputs(f.model->main);
    mini_ok(tare_tpu_fused_cost(&all, &f.arena, f.model, &signature, 1, NULL, NULL));
    composite_tear_down(&f);
    return all;
}

/* A loop does the same products and moves no more bytes: the estimate gives no reason to unroll. */
static void a_step_of_the_loop__is_estimated_to_take_no_longer(void **state) {
    const struct tare_fused_cost two = estimate(2), three = estimate(3), many = estimate(128), more = estimate(129);
    (void)state;
    assert_true(three.macs > two.macs);
    assert_true(more.macs - many.macs == three.macs - two.macs);
    assert_true(more.bytes - many.bytes <= three.bytes - two.bytes);
}

/* ---- Lingvo's cell ---- */

enum { CELLS = 3, OUTPUTS = 2 };

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

static void cell_function(struct composite *f, const char *name, const struct tare_shape *shapes) {
    static const char *const names[] = { "inputs", "weight", "bias", "projection" };
    composite_set_up(f);
    for (int i = 0; i < 4; i++)
        mini_arg(f->function, names[i], TARE_DT_FLOAT);
    mini_return(f->function, "output", (struct tare_edge){ f->function->args[0], 0 });
    composite_annotate(f, composite_text_attr(f, "_implements", name));
    composite_call_with(f, shapes);
    composite_fuse(f);
}

/* The same as composite_compute's drawn arguments: output `column` of row `row`, by the definition. */
static double expected_output(const struct tare_shape *shapes, int gates, int row, int column) {
    float x[BATCH * FEATURES], w[(FEATURES + OUTPUTS) * 4 * CELLS], b[4 * CELLS], p[CELLS * OUTPUTS];
    float *const values[] = { x, w, b, p };
    double y = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t columns = shapes[i].rank == 2 ? shapes[i].dims[1] : 1;
        draw_fill(values[i], (size_t)(shapes[i].dims[0] * columns), DRAW_NORMAL, 40 + (uint64_t)i);
    }
    for (int n = 0; n < CELLS; n++) {
        float z[4];
        for (int g = 0; g < gates; g++) {
            z[g] = b[g * CELLS + n];
            for (int k = 0; k < FEATURES; k++)
                z[g] += x[row * FEATURES + k] * w[k * gates * CELLS + g * CELLS + n];
        }
        const float input = gates == 4 ? sigmoid(z[1]) : 1 - sigmoid(z[1]);
        y += (double)(sigmoid(z[gates - 1]) * tanhf(input * tanhf(z[0])) * p[n * OUTPUTS + column]);
    }
    return y;
}

static void an_lstm_cell__is_one_step_from_zeros(void **state) {
    static const char *const names[] = { "LSTMCellSimple", "LSTMCellSimple,CoupleInputForgetGates" };
    (void)state;
    for (int coupled = 0; coupled < 2; coupled++) {
        const int gates = coupled ? 3 : 4;
        const struct tare_shape shapes[] = { tare_shape_make(2, BATCH, FEATURES),
                                             tare_shape_make(2, FEATURES + OUTPUTS, gates * CELLS),
                                             tare_shape_make(1, gates * CELLS), tare_shape_make(2, CELLS, OUTPUTS) };
        struct tare_tensor y;
        struct composite f;
        cell_function(&f, names[coupled], shapes);
        composite_expect_fused(&f, names[coupled]);
        assert_int_equal(graph_count(f.function, "MatMul"), 2);
        composite_compute(&f, shapes, &y);
        assert_int_equal(y.elements, BATCH * OUTPUTS);
        for (int i = 0; i < BATCH * OUTPUTS; i++)
            assert_true(fabs((double)TARE_DATA(float, &y)[i] -
                             expected_output(shapes, gates, i / OUTPUTS, i % OUTPUTS)) < 1e-5);
        tare_tensor_reset(&y);
        composite_tear_down(&f);
    }
}

static void an_lstm_cell__of_other_sizes_stays(void **state) {
    const struct tare_shape x = tare_shape_make(2, BATCH, FEATURES), p = tare_shape_make(2, CELLS, OUTPUTS);
    const struct {
        struct tare_shape shapes[4];
        const char *reason;
    } cases[] = {
        { { x, tare_shape_make(2, FEATURES + OUTPUTS, 4 * CELLS + 1), tare_shape_make(1, 4 * CELLS + 1), p },
          "weight and bias are not 4 gates of one size" },
        { { x, tare_shape_make(2, FEATURES, 4 * CELLS), tare_shape_make(1, 4 * CELLS), p },
          "the weight has 4 rows for 4 features and 2 outputs" },
        { { x, tare_shape_make(2, FEATURES + OUTPUTS, 4 * CELLS), tare_shape_make(1, 4 * CELLS),
            tare_shape_make(2, CELLS + 1, OUTPUTS) },
          "the projection has 4 rows for 3 cells" },
        { { tare_shape_make(3, BATCH, 1, FEATURES), p, p, p }, "argument 'inputs' has shape" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct composite f;
        cell_function(&f, "LSTMCellSimple", cases[i].shapes);
        composite_expect_reason(&f, cases[i].reason);
        composite_tear_down(&f);
    }
}

static const struct tare_shape gru_shapes[] = { { .rank = 3, .dims = { BATCH, STEPS, FEATURES } },
                                                { .rank = 2, .dims = { BATCH, UNITS } },
                                                { .rank = 2, .dims = { FEATURES, 3 * UNITS } },
                                                { .rank = 2, .dims = { UNITS, 3 * UNITS } },
                                                { .rank = 2, .dims = { 2, 3 * UNITS } } };

static void gru_body(struct composite *f) {
    struct tare_graph *g = f->function;
    struct tare_edge x, h, kernel, recurrent, bias, steps, outputs[STEPS];
    x = mini_arg(g, "inputs", TARE_DT_FLOAT);
    h = mini_arg(g, "init_h", TARE_DT_FLOAT);
    kernel = mini_arg(g, "kernel", TARE_DT_FLOAT);
    recurrent = mini_arg(g, "recurrent_kernel", TARE_DT_FLOAT);
    bias = mini_unpack(g, mini_arg(g, "bias", TARE_DT_FLOAT), 2, 0);
    steps = mini_unpack(g, x, STEPS, 1);
    for (int t = 0; t < STEPS; t++) {
        struct tare_edge a = mini_split(g, two(g, "BiasAdd", two(g, "MatMul", mini_output(steps, t), kernel), bias), 3);
        struct tare_edge b = mini_split(g, two(g, "BiasAdd", two(g, "MatMul", h, recurrent), mini_output(bias, 1)), 3);
        struct tare_edge z = mini_node(g, "Sigmoid", "z", 1, two(g, "AddV2", a, b));
        struct tare_edge r = mini_node(g, "Sigmoid", "r", 1, two(g, "AddV2", mini_output(a, 1), mini_output(b, 1)));
        struct tare_edge hh = two(g, "AddV2", mini_output(a, 2), two(g, "Mul", r, mini_output(b, 2)));
        hh = mini_node(g, "Tanh", "hh", 1, hh);
        h = two(g, "AddV2", two(g, "Mul", z, h), two(g, "Mul", two(g, "Sub", mini_float(g, "one", 1), z), hh));
        outputs[t] = h;
    }
    mini_return(g, "last_output", h);
    mini_return(g, "outputs", mini_pack(g, outputs, 1));
    mini_return(g, "new_h", h);
    mini_return(g, "runtime", mini_float(g, "runtime_is", 1));
    composite_annotate(f, composite_text_attr(f, "api_implements", "gru_1"));
}

static void a_keras_gru__is_fused_bit_for_bit(void **state) {
    (void)state;
    for (int open = 0; open < 2; open++) { /* an open number of steps: a loop */
        struct tare_shape shapes[5];
        struct tare_tensor before[4], after[4];
        struct composite f;
        composite_set_up(&f);
        gru_body(&f);
        memcpy(shapes, gru_shapes, sizeof shapes);
        if (open) shapes[0].dims[1] = -1;
        composite_call_with(&f, shapes);
        composite_compute(&f, gru_shapes, before);
        composite_fuse(&f);
        composite_expect_fused(&f, "gru_1");
        assert_int_equal(graph_count(f.function, "MatMul"), open ? 1 : 1 + STEPS);
        assert_int_equal(graph_count(f.function, "StatelessWhile"), open);
        composite_compute(&f, gru_shapes, after);
        for (size_t i = 0; i < 4; i++) {
            assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
            tare_tensor_reset(&before[i]);
            tare_tensor_reset(&after[i]);
        }
        composite_tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keras_lstm__is_fused_bit_for_bit),
        cmocka_unit_test(a_keras_lstm__of_open_length_becomes_a_loop),
        cmocka_unit_test(a_keras_lstm__of_many_steps_becomes_a_loop),
        cmocka_unit_test(a_keras_lstm__has_the_smaller_form),
        cmocka_unit_test(a_step_of_the_loop__is_estimated_to_take_no_longer),
        cmocka_unit_test(an_lstm_cell__is_one_step_from_zeros),
        cmocka_unit_test(an_lstm_cell__of_other_sizes_stays),
        cmocka_unit_test(a_keras_gru__is_fused_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
