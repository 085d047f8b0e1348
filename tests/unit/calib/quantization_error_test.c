/* The estimated quantization error of binned values against that of the values themselves. */
#include "calib/quantization_error.h"

#include "calib/qparams.h"
#include "support/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

/* With 16 bits the codes are closer than the bins. The estimate must still match the error of the values. */
static void error__of_sixteen_bits_is_that_of_the_values(void **state) {
    enum { COUNT = 20000 };
    static float values[COUNT];
    const struct tare_qscheme scheme = { .bits = 16, .symmetric = true, .narrow = true };
    const struct tare_qparams params = tare_qparams_of_range(-3, 3, &scheme);
    const struct tare_place place = { 0, 0, 0 };
    const struct tare_shape shape = tare_shape_make(1, COUNT);
    struct tare_statistics statistics = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor tensor;
    struct tare_bins bins;
    uint64_t seed = 5;
    double expected = 0;
    (void)state;
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
        cmocka_unit_test(error__of_sixteen_bits_is_that_of_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
