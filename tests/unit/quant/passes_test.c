/* Accuracy passes: what each promises, on a network of two products with ReLU between and samples that were counted. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "calib/statistics.h"
#include "calib/tally.h"
#include "quant/quantize.h"
#include "support/draw.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 256, IN = 8, MIDDLE = 16, OUT = 4, MOST_EDGES = 8 };

struct network {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_tensor samples;
    struct tare_edge edges[MOST_EDGES]; /* observed, with what was seen */
    struct tare_statistics seen[MOST_EDGES];
    size_t n_edges;
    struct tare_tally *tally;
    struct tare_arena arena;
    struct tare_quant_report report;
    enum tare_quant_op_set op_set;
};

/* ---- the network ---- */

static struct tare_edge constant(struct tare_graph *graph, const char *name, int rows, int columns,
                                 const float *values) {
    const struct tare_shape shape = { .rank = rows ? 2 : 1, .dims = { rows ? rows : columns, columns } };
    struct tare_tensor tensor;
    struct tare_edge edge;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &shape, values));
    edge = (struct tare_edge){ tare_graph_add_const(graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static float normal(uint64_t *seed) {
    return (float)(sqrt(-2 * log(draw_unit(seed))) * cos(2 * 3.141592653589793 * draw_unit(seed)));
}

/* Channel c of the first product is `spread`^c times the last one's size, and the second product makes up for it. */
static void build_to(struct network *n, double spread, bool only_first) {
    struct tare_graph *graph;
    struct tare_edge y;
    float first[IN * MIDDLE], bias[MIDDLE], second[MIDDLE * OUT];
    const struct tare_shape shape = { .rank = 2, .dims = { SAMPLES, IN } };
    uint64_t seed = 11;
    memset(n, 0, sizeof *n);
    n->model = mini_model_new();
    graph = tare_model_add_function(n->model, "f");
    for (int i = 0; i < IN * MIDDLE; i++)
        first[i] = normal(&seed) * (float)pow(spread, i % MIDDLE);
    for (int c = 0; c < MIDDLE; c++)
        bias[c] = 0.1f * normal(&seed) * (float)pow(spread, c);
    for (int i = 0; i < MIDDLE * OUT; i++)
        second[i] = normal(&seed) / (float)pow(spread, i / OUT);
    mini_ok(tare_tensor_new(&n->samples, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < SAMPLES * IN; i++)
        TARE_DATA(float, &n->samples)[i] = 1 + normal(&seed);
    y = mini_arg(graph, "in", TARE_DT_FLOAT);
    y = mini_node(graph, "MatMul", "first", 2, y, constant(graph, "w1", IN, MIDDLE, first));
    y = mini_node(graph, "BiasAdd", "bias", 2, y, constant(graph, "b1", 0, MIDDLE, bias));
    if (!only_first) {
        y = mini_node(graph, "Relu", "relu", 1, y);
        y = mini_node(graph, "MatMul", "second", 2, y, constant(graph, "w2", MIDDLE, OUT, second));
    }
    mini_return(graph, "out", y);
    n->x = mini_placeholder(n->model->main, "x", TARE_DT_FLOAT);
    n->y = mini_call(n->model->main, "PartitionedCall", "call", graph, 1, n->x);
}

static void build(struct network *n, double spread) {
    build_to(n, spread, false);
}

static void finish(struct network *n) {
    for (size_t i = 0; i < n->n_edges; i++)
        tare_statistics_reset(&n->seen[i]);
    tare_tally_free(n->tally);
    tare_tensor_reset(&n->samples);
    tare_model_free(n->model);
    tare_arena_free(&n->arena);
}

static struct tare_tensor answers(struct network *n) {
    struct tare_session *session = mini_session(n->model);
    struct tare_tensor result;
    mini_ok(tare_session_run(session, &n->x, &n->samples, 1, &n->y, &result, 1, NULL, 0));
    tare_session_free(session);
    return result;
}

/* ---- calibration ---- */

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct network *n = arg;
    const struct tare_place place = { 0 };
    for (size_t i = 0; i < n->n_edges; i++)
        if (n->edges[i].node == node && n->edges[i].index == (int)output)
            return tare_statistics_add(&n->seen[i], n->tally, value, &place, 1, TARE_BATCH_SHARED);
    return TARE_OK;
}

static const struct tare_statistics *statistics(void *arg, struct tare_edge edge) {
    struct network *n = arg;
    for (size_t i = 0; i < n->n_edges; i++)
        if (n->edges[i].node == edge.node && n->edges[i].index == edge.index) return &n->seen[i];
    return NULL;
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)setting;
    const struct tare_statistics *s = statistics(arg, edge);
    *found = s && tare_statistics_extremes(low, high, s);
    return TARE_OK;
}

static void calibrate(struct network *n) {
    struct tare_session *session = mini_session(n->model);
    struct tare_edge_list edges;
    struct tare_tensor result;
    mini_ok(tare_quant_observed_edges(&edges, &n->arena, n->model));
    assert_in_range(edges.count, 1, MOST_EDGES);
    n->tally = tare_tally_new();
    n->n_edges = edges.count;
    for (size_t i = 0; i < edges.count; i++) {
        n->edges[i] = edges.edges[i];
        n->seen[i].per_channel = true;
    }
    tare_session_observe(session, observe, NULL, n);
    mini_ok(tare_session_run(session, &n->x, &n->samples, 1, &n->y, &result, 1, NULL, 0));
    tare_tensor_reset(&result);
    tare_session_free(session);
}

static void quantize(struct network *n, const struct tare_quant_method *method, int bits,
                     enum tare_quant_granularity granularity, const char *passes) {
    struct tare_quant_plan options = { .setting = { .method = method, .bits = bits, .granularity = granularity },
                                       .op_set = n->op_set,
                                       .min_elements = 1 };
    const struct tare_quant_ranges ranges = { .find = find, .arg = n, .statistics = statistics };
    mini_ok(tare_quant_passes_parse(&options.passes, &n->arena, passes));
    calibrate(n);
    mini_ok(tare_quantize(&n->report, &n->arena, n->model, &ranges, &options));
    assert_int_equal(n->report.quantized, 2);
}

/* The mean square difference to the float network's answers; *bias: the greatest difference of an output's mean. */
static double error_in(enum tare_quant_op_set op_set, double spread, const struct tare_quant_method *method, int bits,
                       enum tare_quant_granularity granularity, const char *passes, double *bias) {
    struct network plain, n;
    struct tare_tensor expected, got;
    double sum = 0;
    build(&plain, spread);
    build(&n, spread);
    n.op_set = op_set;
    quantize(&n, method, bits, granularity, passes);
    expected = answers(&plain);
    got = answers(&n);
    *bias = 0;
    for (int c = 0; c < OUT; c++) {
        double mean = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double d = (double)TARE_DATA(float, &got)[i * OUT + c] - (double)TARE_DATA(float, &expected)[i * OUT + c];
            mean += d / SAMPLES;
            sum += d * d;
        }
        *bias = fmax(*bias, fabs(mean));
    }
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    finish(&plain);
    finish(&n);
    return sum / (SAMPLES * OUT);
}

static double error_of(double spread, const struct tare_quant_method *method, int bits,
                       enum tare_quant_granularity granularity, const char *passes, double *bias) {
    return error_in(TARE_OP_SET_XLA, spread, method, bits, granularity, passes, bias);
}

/* ---- bias correction ---- */

static void bias_correction__of_one_layer_keeps_the_mean(void **state) {
    const struct tare_quant_plan base = { .setting = { .method = &tare_method_weight_only, .bits = 4 },
                                          .min_elements = 1 };
    double biases[2];
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct network n, plain;
        struct tare_quant_plan options = base;
        const struct tare_quant_ranges ranges = { .find = find, .arg = &n, .statistics = statistics };
        struct tare_tensor got, expected;
        build_to(&n, 1, true);
        build_to(&plain, 1, true);
        mini_ok(tare_quant_passes_parse(&options.passes, &n.arena, with ? "bias_correction" : ""));
        calibrate(&n);
        mini_ok(tare_quantize(&n.report, &n.arena, n.model, &ranges, &options));
        got = answers(&n);
        expected = answers(&plain);
        biases[with] = 0;
        for (int c = 0; c < MIDDLE; c++) {
            double mean = 0;
            for (int i = 0; i < SAMPLES; i++)
                mean += ((double)TARE_DATA(float, &got)[i * MIDDLE + c] -
                         (double)TARE_DATA(float, &expected)[i * MIDDLE + c]) /
                        SAMPLES;
            biases[with] = fmax(biases[with], fabs(mean));
        }
        tare_tensor_reset(&got);
        tare_tensor_reset(&expected);
        finish(&n);
        finish(&plain);
    }
    if (!(biases[0] > 0.05) || !(biases[1] < 1e-5)) fail_msg("means move by %g, corrected by %g", biases[0], biases[1]);
}

static void bias_correction__lessens_the_error_of_every_method(void **state) {
    const struct tare_quant_method *const methods[] = { &tare_method_weight_only, &tare_method_static };
    (void)state;
    for (int m = 0; m < 2; m++) {
        double bias, corrected_bias;
        double error = error_of(1, methods[m], 4, TARE_PER_TENSOR, "", &bias);
        double corrected = error_of(1, methods[m], 4, TARE_PER_TENSOR, "bias_correction", &corrected_bias);
        if (!(corrected < error) || !(corrected_bias < 0.5 * bias))
            fail_msg("%s: error %g, corrected %g; means move by %g, %g", methods[m]->name, error, corrected, bias,
                     corrected_bias);
    }
}

/* Where the op of the op set has no bias, the correction stands behind it. */
static void bias_correction__reaches_dynamic_layers_of_every_op_set(void **state) {
    const enum tare_quant_op_set op_sets[] = { TARE_OP_SET_XLA, TARE_OP_SET_TF, TARE_OP_SET_UNIFORM_QUANTIZED };
    (void)state;
    for (int i = 0; i < 3; i++) {
        double bias, corrected_bias;
        error_in(op_sets[i], 1.3, &tare_method_dynamic, 8, TARE_PER_TENSOR, "", &bias);
        error_in(op_sets[i], 1.3, &tare_method_dynamic, 8, TARE_PER_TENSOR, "bias_correction", &corrected_bias);
        if (!(corrected_bias < 0.5 * bias))
            fail_msg("op set %d: means move by %g, corrected %g", i, bias, corrected_bias);
    }
}

/* ---- equalization ---- */

static void equalization__recovers_channels_of_unlike_size(void **state) {
    double bias, plain, equalized;
    (void)state;
    plain = error_of(1.5, &tare_method_static, 8, TARE_PER_TENSOR, "",
                     &bias); /* the widest channel is 440 times the least */
    equalized = error_of(1.5, &tare_method_static, 8, TARE_PER_TENSOR, "equalization", &bias);
    if (!(equalized < plain / 20)) fail_msg("error %g, equalized %g", plain, equalized);
}

static void equalization__of_like_channels_changes_little(void **state) {
    double bias, plain, equalized;
    (void)state;
    plain = error_of(1, &tare_method_static, 8, TARE_PER_TENSOR, "", &bias);
    equalized = error_of(1, &tare_method_static, 8, TARE_PER_TENSOR, "equalization", &bias);
    if (!(equalized < 2 * plain)) fail_msg("error %g, equalized %g", plain, equalized);
}

/* ---- weight clipping ---- */

/* SQNR of the first weight with a heavy tail, at 4 bits in one scale. */
static double weight_sqnr(const char *passes, double *scale) {
    struct network n;
    double sqnr;
    build(&n, 1.12);
    quantize(&n, &tare_method_weight_only, 4, TARE_PER_TENSOR, passes);
    sqnr = n.report.outcomes[0].weight_sqnr_db;
    *scale = n.report.outcomes[0].weight_scale_max;
    finish(&n);
    return sqnr;
}

/* The best SQNR that any scale gives, by trying them. */
static double best_sqnr(void) {
    struct network n;
    const struct tare_tensor *w;
    double best = -INFINITY;
    build(&n, 1.12);
    w = tare_edge_constant(tare_graph_find(n.model->functions[0], "first")->inputs[1]);
    for (double scale = 0.05; scale < 2; scale *= 1.002) {
        double signal = 0, noise = 0;
        for (int64_t i = 0; i < w->elements; i++) {
            double x = (double)TARE_CONST_DATA(float, w)[i], q = fmin(fmax(round(x / scale), -7), 7) * scale;
            signal += x * x;
            noise += (x - q) * (x - q);
        }
        best = fmax(best, 10 * log10(signal / noise));
    }
    finish(&n);
    return best;
}

static void weight_clipping__comes_near_the_best_scale(void **state) {
    double scale, clipped_scale, plain = weight_sqnr("", &scale),
                                 clipped = weight_sqnr("weight_clipping", &clipped_scale);
    double best = best_sqnr();
    (void)state;
    if (!(clipped > plain + 0.3) || !(clipped > best - 0.5) || !(clipped_scale < scale))
        fail_msg("%g dB, clipped %g dB, best %g dB; scale %g, %g", plain, clipped, best, scale, clipped_scale);
}

static void weight_clipping__is_never_worse(void **state) {
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4)
        for (int g = 0; g < 2; g++) {
            struct network plain, clipped;
            build(&plain, 1);
            build(&clipped, 1);
            quantize(&plain, &tare_method_weight_only, bits, g ? TARE_PER_TENSOR : TARE_PER_CHANNEL, "");
            quantize(&clipped, &tare_method_weight_only, bits, g ? TARE_PER_TENSOR : TARE_PER_CHANNEL,
                     "weight_clipping");
            for (size_t i = 0; i < 2; i++)
                if (clipped.report.outcomes[i].weight_sqnr_db < plain.report.outcomes[i].weight_sqnr_db - 1e-9)
                    fail_msg("%d bits: %g dB, clipped %g dB", bits, plain.report.outcomes[i].weight_sqnr_db,
                             clipped.report.outcomes[i].weight_sqnr_db);
            finish(&plain);
            finish(&clipped);
        }
}

/* ---- names ---- */

static void lists__run_in_one_order_and_name_what_is_unknown(void **state) {
    struct tare_arena arena = { 0 };
    const struct tare_quant_pass *const *passes;
    (void)state;
    mini_ok(tare_quant_passes_parse(&passes, &arena, "bias_correction, weight_clipping,bias_correction"));
    assert_ptr_equal(passes[0], &tare_quant_pass_weight_clipping);
    assert_ptr_equal(passes[1], &tare_quant_pass_bias_correction);
    assert_null(passes[2]);
    assert_true(tare_quant_passes_need_channels(passes));
    mini_fails(tare_quant_passes_parse(&passes, &arena, "bias_corection"), "did you mean 'bias_correction'");
    mini_ok(tare_quant_passes_parse(&passes, &arena, "weight_clipping"));
    assert_false(tare_quant_passes_need_channels(passes));
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bias_correction__of_one_layer_keeps_the_mean),
        cmocka_unit_test(bias_correction__lessens_the_error_of_every_method),
        cmocka_unit_test(bias_correction__reaches_dynamic_layers_of_every_op_set),
        cmocka_unit_test(equalization__recovers_channels_of_unlike_size),
        cmocka_unit_test(equalization__of_like_channels_changes_little),
        cmocka_unit_test(weight_clipping__comes_near_the_best_scale),
        cmocka_unit_test(weight_clipping__is_never_worse),
        cmocka_unit_test(lists__run_in_one_order_and_name_what_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
