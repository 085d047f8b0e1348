/* The grid that range algorithms judge by is the one that quantization deploys. */
#include "calib/grid.h"

#include "quant/params.h"
#include "support/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void compare(double low, double high, int bits, bool symmetric, bool narrow) {
    const struct tare_grid_scheme scheme = { .bits = bits, .symmetric = symmetric, .narrow = narrow };
    const struct tare_qscheme wanted_scheme = { .bits = bits, .symmetric = symmetric, .narrow = narrow };
    struct tare_grid grid = tare_grid_from_range(low, high, &scheme);
    struct tare_qparams expected;
    assert_int_equal(tare_qparams_from_range(&expected, low, high, &wanted_scheme), TARE_OK);
    if (grid.scale != expected.scale || grid.zero_point != expected.zero_point || grid.qmin != expected.qmin ||
        grid.qmax != expected.qmax)
        fail_msg("[%g, %g], %d bits, %s, %s: scale %.17g zero point %g codes %g … %g (expected %.17g, %d, %d … %d)",
                 low, high, bits, symmetric ? "symmetric" : "asymmetric", narrow ? "narrow" : "full", grid.scale,
                 grid.zero_point, grid.qmin, grid.qmax, expected.scale, expected.zero_point, expected.qmin,
                 expected.qmax);
}

static void grid__is_that_of_quantization(void **state) {
    (void)state;
    const double special[] = { 0, 1, -1, 1e-7, -1e-7, 5e-7, 6, 127, 128, -128, 1e30, -1e30, 1e-30, 0.1, -0.3, 255 };
    enum { SPECIAL = sizeof special / sizeof *special };
    uint64_t seed = 11;
    for (int scheme = 0; scheme < 12; scheme++) {
        int bits = scheme / 4 == 0 ? 8 : scheme / 4 == 1 ? 4 : 16;
        bool symmetric = scheme & 1, narrow = scheme & 2;
        for (int i = 0; i < SPECIAL; i++) {
            for (int j = 0; j < SPECIAL; j++)
                if (special[i] <= special[j]) compare(special[i], special[j], bits, symmetric, narrow);
        }
        for (int i = 0; i < 2000; i++) {
            double a = (draw_unit(&seed) - 0.5) * exp2(40 * draw_unit(&seed) - 20);
            double b = (draw_unit(&seed) - 0.5) * exp2(40 * draw_unit(&seed) - 20);
            compare(fmin(a, b), fmax(a, b), bits, symmetric, narrow);
        }
    }
}

static void grid__has_no_negative_zero_point(void **state) {
    (void)state;
    struct tare_grid grid = tare_grid_from_range(-100, 99.5, &tare_grid_activation);
    assert_true(grid.zero_point == 0 && !signbit(grid.zero_point));
}

/* On 16 bits the steps are finer than bins: the error must be that of the values all the same. */
static void error__of_sixteen_bits_is_that_of_the_values(void **state) {
    enum { COUNT = 20000 };
    static float values[COUNT];
    const struct tare_grid_scheme scheme = { .bits = 16, .symmetric = true, .narrow = true };
    const struct tare_grid grid = tare_grid_from_range(-3, 3, &scheme);
    const struct tare_place place = { 0, 0, 0 };
    const struct tare_shape shape = tare_shape_make(1, COUNT);
    struct tare_statistics statistics = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor tensor;
    struct tare_bins bins;
    uint64_t seed = 5;
    double expected = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) { /* every other one is zero, as behind a Relu */
        values[i] = i % 2 ? (float)(6 * draw_unit(&seed) - 3) : 0;
        const double error = (double)values[i] - tare_grid_round(&grid, values[i]);
        expected += error * error;
    }
    assert_non_null(tally);
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&statistics, tally, &tensor, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    assert_int_equal(tare_bins_make(&bins, &statistics), TARE_OK);
    const struct tare_grid_error got = tare_grid_error_of(&grid, &bins);
    if (fabs(got.rounding - expected) > 0.03 * expected)
        fail_msg("rounding error %g (expected %g)", got.rounding, expected);
    assert_true(got.clipped == 0);
    tare_bins_free(&bins);
    tare_statistics_reset(&statistics);
    tare_tensor_reset(&tensor);
    tare_tally_free(tally);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid__is_that_of_quantization),
        cmocka_unit_test(grid__has_no_negative_zero_point),
        cmocka_unit_test(error__of_sixteen_bits_is_that_of_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
