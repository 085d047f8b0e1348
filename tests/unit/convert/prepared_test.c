/* Ranges that a calibration gives are for the grid that is deployed. */
#include "convert/prepared.h"
#include "support/mini_model.h"

static struct tare_calibrated_ranges ranges_of(const char *algorithm, bool symmetric) {
    const uint64_t fingerprint[2] = { 1, 2 };
    const struct tare_shape shape = { .rank = 2, .dims = { 1, 4 } };
    const struct tare_place place = { 0 };
    const float values[] = { -1, 0.5f, 2, 3 };
    struct tare_calibrated_ranges ranges = { .calibration = tare_calibration_new(fingerprint, "test", false),
                                             .symmetric = symmetric };
    struct tare_calibration_tensor *tensor;
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor value;
    mini_ok(tare_algorithm_parse(&ranges.algorithm, algorithm));
    mini_ok(tare_calibration_add_tensor(ranges.calibration, "", "x", 0, &tensor));
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SHARED));
    tare_tensor_reset(&value);
    tare_tally_free(tally);
    return ranges;
}

static void range_for(const char *algorithm, bool symmetric, double *low, double *high) {
    struct tare_calibrated_ranges ranges = ranges_of(algorithm, symmetric);
    const struct tare_quant_ranges asked = tare_ranges_of(&ranges);
    struct tare_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    assert_true(asked.find(asked.arg, x, low, high));
    tare_model_free(model);
    tare_calibration_free(ranges.calibration);
}

static void symmetric_ranges__reach_as_far_both_ways(void **state) {
    const char *const algorithms[] = { "min_max", "percentile", "mse" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        double low, high;
        range_for(algorithms[i], true, &low, &high);
        if (low != -high) fail_msg("%s: %g … %g", algorithms[i], low, high);
        range_for(algorithms[i], false, &low, &high);
        if (!(low > -high)) fail_msg("%s, asymmetric: %g … %g", algorithms[i], low, high);
    }
}

static void passes__that_need_channels_refuse_a_calibration_without(void **state) {
    const struct tare_quant_pass *const passes[] = { &tare_quant_pass_bias_correction, NULL };
    struct tare_calibrated_ranges ranges = ranges_of("min_max", false);
    (void)state;
    mini_fails(tare_calibration_check_passes(ranges.calibration, passes), "tare calibrate --channels");
    mini_fails(tare_calibration_check_passes(NULL, passes), "needs samples or a calibration");
    mini_ok(tare_calibration_check_passes(ranges.calibration, NULL));
    tare_calibration_free(ranges.calibration);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric_ranges__reach_as_far_both_ways),
        cmocka_unit_test(passes__that_need_channels_refuse_a_calibration_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
