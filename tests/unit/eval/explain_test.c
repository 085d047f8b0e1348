/* What is said of a layer follows from its activation's histogram and its weight's channels. */
#include "calib/tally.h"
#include "eval/explain.h"
#include "quant/advice.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

static struct tare_calibration *calibration;
static struct tare_arena arena;

/* A calibration of one tensor "x:0" of the main graph with the given values. */
static void observe(const float *values, int64_t count) {
    const uint64_t fingerprint[2] = { 1, 2 };
    const struct tare_shape shape = { .rank = 2, .dims = { 1, count } };
    const struct tare_place place = { 0 };
    struct tare_calibration_tensor *tensor;
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor value;
    calibration = tare_calibration_new(fingerprint, "test", false);
    mini_ok(tare_calibration_add_tensor(calibration, "", "x", 0, &tensor));
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SHARED));
    tare_tensor_reset(&value);
    tare_tally_free(tally);
}

static int forget(void **state) {
    (void)state;
    tare_calibration_free(calibration);
    calibration = NULL;
    tare_arena_free(&arena);
    return 0;
}

/* What the quantizer makes of the range that the algorithm gives. */
static void set_scale(struct tare_quant_outcome *outcome, const struct tare_algorithm_choice *choice) {
    const struct tare_calibration_tensor *tensor = tare_calibration_find(calibration, "", "x", 0);
    struct tare_range range;
    if (outcome->refused) return;
    mini_ok(tare_algorithm_range(&range, choice, &tensor->statistics, &tare_qscheme_activation));
    mini_ok(tare_qparams_from_range(&outcome->input, range.low, range.high, &tare_qscheme_activation));
}

static struct tare_explanation explain(struct tare_quant_outcome outcome, const char *algorithm,
                                       enum tare_quant_granularity granularity) {
    struct tare_quant_report report = { .outcomes = &outcome, .count = 1, .quantized = 1 };
    struct tare_explanation_list list;
    mini_ok(tare_algorithm_parse(&outcome.setting.algorithm, algorithm));
    outcome.setting.granularity = granularity;
    set_scale(&outcome, &outcome.setting.algorithm);
    mini_ok(tare_explain(&list, &arena, &report, calibration, true));
    assert_int_equal(list.count, 1);
    return list.items[0];
}

static const struct tare_quant_outcome layer = { .function = "",
                                                 .node = "y",
                                                 .op = "MatMul",
                                                 .method = "static",
                                                 .bits = 8,
                                                 .input_node = "x",
                                                 .input = { .scale = 0.01, .qmin = -128, .qmax = 127 },
                                                 .weight_elements = 100,
                                                 .weight_sqnr_db = 40,
                                                 .channel_spread = 1.5 };

/* Two million steps of 0 … 1 and one value of 2: clipping it costs less than the grid that it stretches. */
static void an_outlier__leaves_codes_unused_and_names_a_better_algorithm(void **state) {
    enum { COUNT = 2000000 };
    float *values = test_calloc(COUNT + 1, sizeof *values);
    struct tare_explanation e;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i / COUNT;
    values[COUNT] = 2;
    observe(values, COUNT + 1);
    test_free(values);
    e = explain(layer, "min_max", TARE_PER_CHANNEL);
    assert_true(e.has_input);
    assert_true(e.clipping_mse == 0);
    assert_in_range(e.unused_codes, 124, 128); /* above 1 only the outlier's is used */
    assert_non_null(e.remedy);
    assert_non_null(strstr(e.remedy, "dB instead of"));
}

static void even_values__use_every_code_and_need_no_remedy(void **state) {
    float values[4096];
    struct tare_explanation e;
    (void)state;
    for (int i = 0; i < 4096; i++)
        values[i] = (float)i / 4095;
    observe(values, 4096);
    e = explain(layer, "min_max", TARE_PER_CHANNEL);
    assert_int_equal(e.unused_codes, 0);
    assert_null(e.remedy);
    /* rounding to a step of 1/255: mean square step²/12 */
    if (fabs(e.rounding_mse * 12 * 255 * 255 - 1) > 0.05)
        fail_msg("rounding %g of step²/12", e.rounding_mse * 12 * 255 * 255);
}

static void clipping__is_told_from_rounding(void **state) {
    float values[1000];
    struct tare_explanation e;
    (void)state;
    for (int i = 0; i < 1000; i++)
        values[i] = (float)(i % 100 == 0 ? 2 : 1) * (float)i / 1000;
    observe(values, 1000);
    e = explain(layer, "percentile:max_percentile=90", TARE_PER_CHANNEL);
    assert_true(e.clipping_mse > e.rounding_mse);
    assert_true(e.clipped > 0.05 && e.clipped < 0.15);
}

static void wide_channels_under_one_scale__ask_for_one_each(void **state) {
    struct tare_quant_outcome wide = layer;
    float values[] = { 0, 1 };
    (void)state;
    observe(values, 2);
    wide.channel_spread = 30;
    assert_non_null(strstr(explain(wide, "min_max", TARE_PER_TENSOR).remedy, "per_channel"));
}

/* As the warnings of a quantization judge them. */
static void a_weight__is_poor_for_its_format(void **state) {
    static const struct {
        int bits;
        enum tare_number_format format;
        double db;
        const char *remedy;
    } cases[] = {
        { 8, TARE_FORMAT_INT, 24, "weight has 24.0 dB: leave it in float" },
        { 8, TARE_FORMAT_INT, 26, NULL },
        { 4, TARE_FORMAT_INT, 14, "weight has 14.0 dB: 8 bits, or blocks (per_block:32)" },
        { 4, TARE_FORMAT_INT, 18, NULL },
        { 8, TARE_FORMAT_E5M2, 24, NULL },
    };
    float values[4096];
    (void)state;
    for (int i = 0; i < 4096; i++)
        values[i] = (float)i / 4095;
    observe(values, 4096);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_quant_outcome weight = layer;
        weight.bits = cases[i].bits;
        weight.setting.format = cases[i].format;
        weight.weight_sqnr_db = cases[i].db;
        assert_int_equal(tare_quant_weight_is_poor(&weight), cases[i].remedy != NULL);
        const char *remedy = explain(weight, "min_max", TARE_PER_CHANNEL).remedy;
        if (cases[i].remedy)
            assert_string_equal(remedy, cases[i].remedy);
        else
            assert_null(remedy);
    }
}

static void a_layer_that_stays_float__says_why(void **state) {
    struct tare_quant_outcome refused = {
        .function = "", .node = "y", .op = "MatMul", .refused = "left in float on request"
    };
    float values[] = { 0, 1 };
    struct tare_explanation e;
    (void)state;
    observe(values, 2);
    e = explain(refused, "min_max", TARE_PER_CHANNEL);
    assert_string_equal(e.refused, "left in float on request");
    assert_false(e.has_input);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_outlier__leaves_codes_unused_and_names_a_better_algorithm, forget),
        cmocka_unit_test_teardown(even_values__use_every_code_and_need_no_remedy, forget),
        cmocka_unit_test_teardown(clipping__is_told_from_rounding, forget),
        cmocka_unit_test_teardown(a_weight__is_poor_for_its_format, forget),
        cmocka_unit_test_teardown(wide_channels_under_one_scale__ask_for_one_each, forget),
        cmocka_unit_test_teardown(a_layer_that_stays_float__says_why, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
