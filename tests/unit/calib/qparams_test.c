/* Each rule of the quantization parameters, by its name. Expected values are computed by hand from the rules' texts. */
#include "calib/qparams.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct tare_qparams params(double low, double high, const struct tare_qscheme *scheme) {
    struct tare_qparams out;
    assert_int_equal(tare_qparams_from_range(&out, low, high, scheme), TARE_OK);
    return out;
}

static void range_contains_zero__positive_range_starts_at_zero(void **state) {
    struct tare_qparams p = params(2, 5.1, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 5.1 / 255);
    assert_int_equal(p.zero_point, -128);
}

static void range_contains_zero__negative_range_ends_at_zero(void **state) {
    struct tare_qparams p = params(-2.55, -1, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 2.55 / 255);
    assert_int_equal(p.zero_point, 127);
}

static void zero_point__rounds_half_away_from_zero(void **state) {
    /* scale 1: zero point of [-127.5, 127.5] is -128 + 127.5 = -0.5 from below, 127 - 127.5 = -0.5 from above */
    struct tare_qparams p = params(-127.5, 127.5, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 1);
    assert_int_equal(p.zero_point, -1);
}

static void range_symmetric__uses_the_larger_magnitude(void **state) {
    struct tare_qparams p = params(-0.5, 1.27, &tare_qscheme_weight);
    (void)state;
    assert_true(fabs(p.scale - 0.01) < 1e-17);
    assert_int_equal(p.zero_point, 0);
    assert_int_equal(p.qmin, -127);
    assert_int_equal(p.qmax, 127);
}

static void float8_scale__maps_the_larger_magnitude_to_the_largest_number(void **state) {
    struct tare_qscheme scheme = { .bits = 8, .symmetric = true, .narrow = true, .format = TARE_FORMAT_E4M3 };
    struct tare_qparams p = params(-0.5, 1.75, &scheme);
    (void)state;
    assert_true(p.scale == 1.75 / 448 && p.zero_point == 0 && p.qmin == -448 && p.qmax == 448);
    assert_true(tare_qparams_round(&p, -9) == -1.75);           /* saturates */
    assert_true(tare_qparams_round(&p, 1.7) == p.scale * 448);  /* 435.2 of 416 and 448 */
    assert_true(tare_qparams_round(&p, 1.68) == p.scale * 416); /* 430.08 */
    assert_true(params(0, 0, &scheme).scale == 5e-7 / 448);
    scheme.format = TARE_FORMAT_E5M2;
    assert_true(params(-3, 1, &scheme).scale == 3.0 / 57344);
}

static void range_symmetric_full__the_larger_scale_of_both_sides_is_used(void **state) {
    const struct tare_qscheme full = { .bits = 8, .symmetric = true };
    struct tare_qparams p = params(-1.28, 1, &full);
    (void)state;
    assert_true(p.scale == 1.28 / 128); /* -128 is used */
    assert_int_equal(p.zero_point, 0);
    p = params(-1, 1.27, &full);
    assert_true(p.scale == 1.27 / 127);
    assert_int_equal(p.qmin, -128);
}

static void range_headroom__the_codes_reach_farther_than_the_range(void **state) {
    const struct tare_qscheme scheme = { .bits = 16, .symmetric = true, .narrow = true, .headroom = 2 };
    const struct tare_qparams p = params(-1, 0.5, &scheme);
    (void)state;
    assert_true(p.scale == 4.0 / 32767);
    assert_true(fabs(tare_qparams_round(&p, 3.5) - 3.5) < p.scale);
}

static void zero_point__comes_from_the_end_with_less_error(void **state) {
    /* scale 1/85: from below -128 + 42.5, from above 127 - 212.5: both -85.5, away from zero */
    struct tare_qparams p = params(-0.5, 2.5, &tare_qscheme_activation);
    (void)state;
    assert_int_equal(p.zero_point, -86);
    /* where they differ by rounding: -16.5 from below, -16.49999999999997 from above */
    p = params(-3.5, 4.504484304932735, &tare_qscheme_activation);
    assert_int_equal(p.zero_point, -17); /* of the lower end, which is nearer to zero */
    p = params(-0.2, 0.03448275862068967, &tare_qscheme_activation);
    assert_int_equal(p.zero_point, 89); /* of the upper end: 89.49999999999999; 89.5 from below */
    p = params(-1e-30, 1, &tare_qscheme_activation);
    assert_int_equal(p.zero_point, -128); /* clamped to the grid */
}

static void range_degenerate__is_widened_to_one_millionth(void **state) {
    struct tare_qparams p = params(0, 0, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 1e-6 / 255);
    p = params(1e-7, 2e-7, &tare_qscheme_activation);
    assert_true(p.scale == 1e-6 / 255);
}

static void range__nan_infinity_and_reversed_ends_are_errors(void **state) {
    struct tare_qparams p;
    (void)state;
    assert_int_equal(tare_qparams_from_range(&p, NAN, 1, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_qparams_from_range(&p, 0, INFINITY, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_qparams_from_range(&p, 2, 1, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
}

static void bits__four_bit_codes_are_minus_eight_to_seven(void **state) {
    const struct tare_qscheme full = { .bits = 4, .symmetric = true },
                              narrow = { .bits = 4, .symmetric = true, .narrow = true };
    struct tare_qparams p = params(-1, 1, &full);
    (void)state;
    assert_int_equal(p.qmin, -8);
    assert_int_equal(p.qmax, 7);
    p = params(-1, 1, &narrow);
    assert_int_equal(p.qmin, -7);
    assert_true(p.scale == 2.0 / 14);
}

static void constant_round_half_away__ties_and_saturation(void **state) {
    const struct tare_qparams p = { .scale = 1, .zero_point = 3, .qmin = -128, .qmax = 127 };
    (void)state;
    assert_int_equal(tare_quantize_constant(0.5, &p), 4);
    assert_int_equal(tare_quantize_constant(-0.5, &p), 2);
    assert_int_equal(tare_quantize_constant(1.5, &p), 5);
    assert_int_equal(tare_quantize_constant(2.5, &p), 6); /* to even it would be 5 */
    assert_int_equal(tare_quantize_constant(1e9, &p), 127);
    assert_int_equal(tare_quantize_constant(-1e9, &p), -128);
    assert_int_equal(tare_quantize_constant(NAN, &p), 3);
}

static void range__checked_and_unchecked_form_agree(void **state) {
    const struct tare_qparams checked = params(-100, 99.5, &tare_qscheme_activation);
    const struct tare_qparams unchecked = tare_qparams_of_range(-100, 99.5, &tare_qscheme_activation);
    (void)state;
    assert_true(checked.scale == unchecked.scale);
    assert_int_equal(checked.zero_point, unchecked.zero_point);
    assert_int_equal(checked.qmin, unchecked.qmin);
    assert_int_equal(checked.qmax, unchecked.qmax);
}

static void round__returns_the_value_of_the_nearest_code(void **state) {
    const struct tare_qparams p = { .scale = 0.5, .zero_point = 3, .qmin = -128, .qmax = 127 };
    (void)state;
    assert_true(tare_qparams_round(&p, 0.75) == 1);  /* code 1.5 is rounded away from zero */
    assert_true(tare_qparams_round(&p, 1000) == 62); /* 0.5 * (127 - 3) */
    assert_true(tare_qparams_round(&p, -0.2) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_contains_zero__positive_range_starts_at_zero),
        cmocka_unit_test(range_contains_zero__negative_range_ends_at_zero),
        cmocka_unit_test(zero_point__rounds_half_away_from_zero),
        cmocka_unit_test(range_symmetric__uses_the_larger_magnitude),
        cmocka_unit_test(float8_scale__maps_the_larger_magnitude_to_the_largest_number),
        cmocka_unit_test(range_symmetric_full__the_larger_scale_of_both_sides_is_used),
        cmocka_unit_test(range_headroom__the_codes_reach_farther_than_the_range),
        cmocka_unit_test(zero_point__comes_from_the_end_with_less_error),
        cmocka_unit_test(range_degenerate__is_widened_to_one_millionth),
        cmocka_unit_test(range__nan_infinity_and_reversed_ends_are_errors),
        cmocka_unit_test(bits__four_bit_codes_are_minus_eight_to_seven),
        cmocka_unit_test(constant_round_half_away__ties_and_saturation),
        cmocka_unit_test(range__checked_and_unchecked_form_agree),
        cmocka_unit_test(round__returns_the_value_of_the_nearest_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
