/* The estimated quantization error of binned values against that of the values themselves. */
#include "calib/quantization_error.h"

#include "calib/qparams.h"
#include "calib/tally.h"
#include "support/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

/* The error of values in [-3, 3] on the grid of a range, from their bins and from the values. */
static void check_error(const struct tare_qscheme *scheme, double range, double tolerance, bool clips) {
    enum { COUNT = 20000 };
    static float values[COUNT];
    const struct tare_qparams params = tare_qparams_of_range(-range, range, scheme);
    const struct tare_place place = { 0, 0, 0 };
    const struct tare_shape shape = tare_shape_make(1, COUNT);
    struct tare_statistics statistics = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor tensor;
    struct tare_bins bins;
    uint64_t seed = 5;
    double expected = 0;
    for (int i = 0; i < COUNT; i++) { /* every other value is zero, as after a Relu */
        values[i] = i % 2 ? (float)(6 * draw_unit(&seed) - 3) : 0;
        const double error = (double)values[i] - tare_qparams_round(&params, values[i]);
        expected += error * error;
    }
    assert_non_null(tally);
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&statistics, tally, &tensor, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    assert_int_equal(tare_bins_make(&bins, &statistics), TARE_OK);
    const struct tare_quantization_error got = tare_quantization_error_of(&params, &bins);
    const double error = got.rounding + got.clipping;
    if (fabs(error - expected) > tolerance * expected) fail_msg("error %g (expected %g)", error, expected);
    assert_true((got.clipped > 0) == clips);
    tare_bins_free(&bins);
    tare_statistics_reset(&statistics);
    tare_tensor_reset(&tensor);
    tare_tally_free(tally);
}

/* With 16 bits the codes are closer than the bins. The estimate must still match the error of the values. */
static void error__of_sixteen_bits_is_that_of_the_values(void **state) {
    const struct tare_qscheme scheme = { .bits = 16, .symmetric = true, .narrow = true };
    (void)state;
    check_error(&scheme, 3, 0.03, false);
}

/* The numbers of float8 are not equally far apart. */
static void error__of_float8_is_that_of_the_values(void **state) {
    struct tare_qscheme scheme = { .bits = 8, .symmetric = true, .narrow = true, .format = TARE_FORMAT_E4M3 };
    (void)state;
    check_error(&scheme, 3, 0.03, false);
    check_error(&scheme, 1.7, 0.03, true);
    scheme.format = TARE_FORMAT_E5M2;
    check_error(&scheme, 3, 0.03, false);
    check_error(&scheme, 2.2, 0.03, true);
}

/* The rounding error summed code by code, as the header defines it. */
static double rounding_by_codes(const struct tare_qparams *params, const struct tare_bins *bins) {
    double error = 0;
    size_t at = 0;
    while (at < bins->count &&
           bins->centers[at] < params->scale * (params->qmin - params->zero_point) - params->scale / 2)
        at++;
    for (double q = params->qmin; q <= params->qmax; q++) {
        const double value = params->scale * (q - params->zero_point);
        const size_t from = at;
        while (at < bins->count && bins->centers[at] < value + 0.5 * params->scale)
            at++;
        const double count = bins->counts[at] - bins->counts[from], sum = bins->sums[at] - bins->sums[from];
        const double part = bins->squares[at] - bins->squares[from] - 2 * value * sum + value * value * count;
        if (at > from && part > 0) error += part;
    }
    return error;
}

/* Draws `count` values: a few distinct ones or many, over few octaves or many. */
static void make_bins(struct tare_bins *bins, int count, int kind, uint64_t *seed) {
    static float values[20000];
    const struct tare_place place = { 0, 0, 0 };
    const struct tare_shape shape = tare_shape_make(1, (int64_t)count);
    struct tare_statistics statistics = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor tensor;
    for (int i = 0; i < count; i++) {
        const double x = draw_unit(seed) * 2 - 1;
        values[i] = (float)(kind == 0 ? x : kind == 1 ? exp(20 * x) : kind == 2 ? fmax(0, x) : floor(x * 4) - 40);
    }
    assert_non_null(tally);
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&statistics, tally, &tensor, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    assert_int_equal(tare_bins_make(bins, &statistics), TARE_OK);
    tare_statistics_reset(&statistics);
    tare_tensor_reset(&tensor);
    tare_tally_free(tally);
}

/* Whatever the ratio of bins to codes, the sum has the bits of the sum over all codes; with a limit it is complete, or
 * it exceeds the limit. */
static void error__has_the_bits_of_the_sum_over_all_codes(void **state) {
    static const int counts[] = { 1, 2, 40, 700, 20000 };
    uint64_t seed = 41;
    (void)state;
    for (int turn = 0; turn < 400; turn++) {
        const struct tare_qscheme scheme = { .bits = turn % 3 ? 8 : 4, .symmetric = turn % 2 };
        struct tare_bins bins;
        make_bins(&bins, counts[turn % 5], turn % 4, &seed);
        const struct tare_qparams params =
            tare_qparams_of_range(bins.low * 1.5 * draw_unit(&seed), bins.high * 1.5 * draw_unit(&seed), &scheme);
        const struct tare_quantization_error error = tare_quantization_error_of(&params, &bins);
        const double whole = error.rounding + error.clipping, limit = 2 * draw_unit(&seed) * whole;
        const double within = tare_quantization_error_within(&params, &bins, limit);
        assert_true(error.rounding == rounding_by_codes(&params, &bins));
        assert_true(whole <= limit ? within == whole : within > limit);
        tare_bins_free(&bins);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error__of_sixteen_bits_is_that_of_the_values),
        cmocka_unit_test(error__of_float8_is_that_of_the_values),
        cmocka_unit_test(error__has_the_bits_of_the_sum_over_all_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
