/* Warnings about layers that lose more than they need to, on models whose loss is known. */
#include "support/quantized_model.h"

#include <string.h>

enum { ROWS = 256, COLUMNS = 16 };

static void quantize(struct quantized_model *m, const char *algorithm, enum tare_quant_granularity granularity,
                     int bits, float outlier, bool warns) {
    struct tare_quant_plan options = {
        .setting = { .method = &tare_method_static, .granularity = granularity, .bits = bits }, .warns = warns
    };
    quantized_model_begin(m, ROWS, COLUMNS, 1, 5);
    struct tare_edge w = quantized_model_weight(m, "w", COLUMNS, COLUMNS, 1, 1, 9);
    if (outlier != 0) TARE_DATA(float, (struct tare_tensor *)(uintptr_t)tare_edge_constant(w))[0] = outlier;
    quantized_model_return(m, mini_node(m->graph, "MatMul", "product", 2, m->in, w));
    mini_ok(tare_algorithm_parse(&options.setting.algorithm, algorithm));
    quantized_model_quantize(m, &options, "");
    assert_int_equal(m->report.quantized, 1);
}

static void clipping__that_costs_a_bit_is_reported(void **state) {
    struct quantized_model m;
    (void)state;
    quantize(&m, "percentile:p=80", TARE_PER_CHANNEL, 8, 0, true);
    assert_int_equal(m.report.n_warnings, 1);
    if (!strstr(m.report.warnings[0], "layer 'product': clipping leaves its input"))
        fail_msg("%s", m.report.warnings[0]);
    assert_non_null(strstr(m.report.warnings[0], "use --algorithm mse"));
    quantized_model_end(&m);
}

static void good_ranges_and_weights__are_not_reported(void **state) {
    const char *const algorithms[] = { "min_max", "mse", "entropy", "percentile:p=99.99" };
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct quantized_model m;
        quantize(&m, algorithms[i], TARE_PER_CHANNEL, 8, 0, true);
        if (m.report.n_warnings) fail_msg("%s: %s", algorithms[i], m.report.warnings[0]);
        quantized_model_end(&m);
    }
}

static void poor_weights__name_the_option_that_helps(void **state) {
    struct quantized_model m;
    (void)state;
    quantize(&m, "min_max", TARE_PER_TENSOR, 4, 10, true); /* widens the scale of all columns */
    assert_int_equal(m.report.n_warnings, 1);
    if (!strstr(m.report.warnings[0], "its 4-bit weight has only") ||
        !strstr(m.report.warnings[0], "use --granularity per_channel"))
        fail_msg("%s", m.report.warnings[0]);
    quantized_model_end(&m);
}

static void remedy__is_not_a_pass_that_ran(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static, .bits = 4 }, .warns = true };
    (void)state;
    for (int ran = 0; ran < 2; ran++) {
        struct quantized_model m;
        quantized_model_begin(&m, ROWS, COLUMNS, 1, 5);
        const struct tare_edge w = quantized_model_weight(&m, "w", COLUMNS, COLUMNS, 1, 1, 9);
        float *values = TARE_DATA(float, (struct tare_tensor *)(uintptr_t)tare_edge_constant(w));
        for (int i = 0; i < COLUMNS * COLUMNS; i++) /* less than half a step, but for one value a column */
            values[i] = i < COLUMNS ? 1 : 0.07f;
        quantized_model_return(&m, mini_node(m.graph, "MatMul", "product", 2, m.in, w));
        quantized_model_quantize(&m, &options, ran ? "gptq" : "");
        assert_int_equal(m.report.n_warnings, 1);
        if (!strstr(m.report.warnings[0], ran ? "dB: use bits=8" : "dB: use --passes gptq, or bits=8"))
            fail_msg("%s", m.report.warnings[0]);
        quantized_model_end(&m);
    }
}

/* The least range is 1e-6: values below 1.9e-9 become 0. Zeros are 0 before. */
static void weights__that_become_zeros_are_named(void **state) {
    static const struct {
        double size;
        int warnings;
    } cases[] = { { 1e-12, 1 }, { 0, 0 }, { 1e-3, 0 } };
    static const struct tare_quant_method *const methods[] = { &tare_method_static, &tare_method_weight_only };
    (void)state;
    for (int i = 0; i < 6; i++) {
        const struct tare_quant_plan options = { .setting = { .method = methods[i / 3] },
                                                 .min_elements = 1,
                                                 .warns = true };
        struct quantized_model m;
        quantized_model_begin(&m, ROWS, COLUMNS, 1, 5);
        const struct tare_edge w = quantized_model_weight(&m, "w", COLUMNS, COLUMNS, cases[i % 3].size, 1, 9);
        quantized_model_return(&m, mini_node(m.graph, "MatMul", "product", 2, m.in, w));
        quantized_model_quantize(&m, &options, "");
        assert_int_equal(m.report.n_warnings, cases[i % 3].warnings);
        assert_int_equal(m.report.outcomes[0].weight_vanishes, cases[i % 3].warnings);
        if (m.report.n_warnings && !strstr(m.report.warnings[0], "layer 'product': its weight becomes 0 everywhere"))
            fail_msg("%s", m.report.warnings[0]);
        quantized_model_end(&m);
    }
}

static void inputs__that_never_change_are_named(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static },
                                             .min_elements = 1,
                                             .warns = true };
    (void)state;
    for (int is_constant = 0; is_constant < 2; is_constant++) {
        struct quantized_model m;
        quantized_model_begin(&m, ROWS, COLUMNS, 1, 5);
        for (int64_t i = 0; i < m.samples.elements && is_constant; i++)
            TARE_DATA(float, &m.samples)[i] = 0;
        const struct tare_edge w = quantized_model_weight(&m, "w", COLUMNS, COLUMNS, 1, 1, 9);
        quantized_model_return(&m, mini_node(m.graph, "MatMul", "product", 2, m.in, w));
        quantized_model_quantize(&m, &options, "");
        assert_int_equal(m.report.n_warnings, is_constant);
        if (is_constant && !strstr(m.report.warnings[0], "layer 'product': its input was 0 everywhere in all records"))
            fail_msg("%s", m.report.warnings[0]);
        quantized_model_end(&m);
    }
}

/* The state that a recurrent layer begins with is no input that samples could fill. */
static void zeros_of_the_model__are_not_warned_about(void **state) {
    const struct tare_quant_plan options = { .setting = { .method = &tare_method_static },
                                             .min_elements = 1,
                                             .warns = true };
    (void)state;
    for (int from_input = 0; from_input < 2; from_input++) {
        struct quantized_model m;
        quantized_model_begin(&m, ROWS, COLUMNS, 1, 5);
        const struct tare_edge first = quantized_model_weight(&m, "first", COLUMNS, COLUMNS, 1, 1, 9);
        const struct tare_edge second = quantized_model_weight(&m, "second", COLUMNS, COLUMNS, 1, 1, 8);
        const struct tare_edge zero = mini_float(m.graph, "zero", 0);
        const struct tare_edge zeros =
            from_input ? mini_node(m.graph, "Mul", "zeros", 2, m.in, zero)
                       : mini_node(m.graph, "Fill", "zeros", 2, mini_node(m.graph, "Shape", "shape", 1, m.in), zero);
        const struct tare_edge product = mini_node(m.graph, "MatMul", "product", 2, m.in, first);
        const struct tare_edge recurrent = mini_node(m.graph, "MatMul", "recurrent", 2, zeros, second);
        quantized_model_return(&m, mini_node(m.graph, "AddV2", "sum", 2, product, recurrent));
        quantized_model_quantize(&m, &options, "");
        assert_int_equal(m.report.quantized, 2);
        assert_int_equal(m.report.n_warnings, from_input);
        quantized_model_end(&m);
    }
}

static void warnings__are_made_on_request(void **state) {
    struct quantized_model m;
    (void)state;
    quantize(&m, "percentile:p=80", TARE_PER_TENSOR, 4, 10, false);
    assert_int_equal(m.report.n_warnings, 0);
    quantized_model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipping__that_costs_a_bit_is_reported),
        cmocka_unit_test(good_ranges_and_weights__are_not_reported),
        cmocka_unit_test(poor_weights__name_the_option_that_helps),
        cmocka_unit_test(remedy__is_not_a_pass_that_ran),
        cmocka_unit_test(weights__that_become_zeros_are_named),
        cmocka_unit_test(inputs__that_never_change_are_named),
        cmocka_unit_test(zeros_of_the_model__are_not_warned_about),
        cmocka_unit_test(warnings__are_made_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
