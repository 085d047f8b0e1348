/* Exact sums: no rounding, no order. */
#include "base/exact_sum.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static double sum_of(const double *terms, int count) {
    struct tare_exact_sum sum = { { 0 } };
    for (int i = 0; i < count; i++)
        assert_true(tare_exact_sum_add(&sum, terms[i]));
    return tare_exact_sum_value(&sum);
}

static void assert_double(double got, double expected) {
    if (got != expected || signbit(got) != signbit(expected)) fail_msg("got %a, expected %a", got, expected);
}

static void exact_sum__small_terms_survive_large_ones_that_cancel(void **state) {
    (void)state;
    assert_double(sum_of((double[]){ 1e300, 1.0, -1e300 }, 3), 1.0);
    assert_double(sum_of((double[]){ DBL_MAX, DBL_TRUE_MIN, -DBL_MAX }, 3), DBL_TRUE_MIN);
    assert_double(sum_of((double[]){ 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 }, 10), 1.0);
    assert_double(sum_of((double[]){ -1.5, 0.25 }, 2), -1.25);
    assert_double(sum_of((double[]){ 3.0, -3.0 }, 2), 0.0);
}

static void exact_sum__rounds_once_ties_to_even(void **state) {
    (void)state;
    assert_double(sum_of((double[]){ 1.0, 0x1p-53 }, 2), 1.0);
    assert_double(sum_of((double[]){ 1.0, 0x1p-52, 0x1p-53 }, 3), 1.0 + 0x1p-51);
    assert_double(sum_of((double[]){ 1.0, 0x1p-53, 0x1p-1074 }, 3), 1.0 + 0x1p-52);
    assert_double(sum_of((double[]){ -1.0, -0x1p-53, -0x1p-1074 }, 3), -1.0 - 0x1p-52);
}

static void exact_sum__single_terms_come_back(void **state) {
    (void)state;
    const double terms[] = { DBL_MAX, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0x1.fffffffffffffp-1023,
                             1.0,     0x1.8p31 };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        assert_double(sum_of(&terms[i], 1), terms[i]);
}

static void exact_sum__overflow_is_infinite_and_comes_back(void **state) {
    (void)state;
    struct tare_exact_sum sum = { { 0 } };
    for (int i = 0; i < 5; i++)
        tare_exact_sum_add(&sum, DBL_MAX);
    assert_double(tare_exact_sum_value(&sum), INFINITY);
    for (int i = 0; i < 4; i++)
        tare_exact_sum_add(&sum, -DBL_MAX);
    assert_double(tare_exact_sum_value(&sum), DBL_MAX);
}

static void exact_sum__refuses_what_is_not_finite(void **state) {
    (void)state;
    struct tare_exact_sum sum = { { 0 } }, before = sum;
    assert_false(tare_exact_sum_add(&sum, NAN));
    assert_false(tare_exact_sum_add(&sum, -INFINITY));
    assert_true(tare_exact_sum_equal(&sum, &before));
}

static void exact_sum__any_order_and_grouping_gives_the_same_bits(void **state) {
    (void)state;
    enum { COUNT = 2000 };
    uint64_t seed = 7;
    double terms[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int exponent = (int)(next_random(&seed) % 400) - 200;
        terms[i] = ldexp((double)(int64_t)next_random(&seed), exponent - 63);
    }
    struct tare_exact_sum forward = { { 0 } }, parts[3] = { { { 0 } }, { { 0 } }, { { 0 } } };
    for (int i = 0; i < COUNT; i++)
        tare_exact_sum_add(&forward, terms[i]);
    for (int i = COUNT - 1; i >= 0; i--)
        tare_exact_sum_add(&parts[i % 3], terms[i]);
    tare_exact_sum_merge(&parts[2], &parts[0]);
    tare_exact_sum_merge(&parts[1], &parts[2]);
    assert_true(tare_exact_sum_equal(&forward, &parts[1]));
    for (int i = 0; i < COUNT; i++)
        tare_exact_sum_add(&forward, -terms[i]);
    assert_double(tare_exact_sum_value(&forward), 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_sum__small_terms_survive_large_ones_that_cancel),
        cmocka_unit_test(exact_sum__rounds_once_ties_to_even),
        cmocka_unit_test(exact_sum__single_terms_come_back),
        cmocka_unit_test(exact_sum__overflow_is_infinite_and_comes_back),
        cmocka_unit_test(exact_sum__refuses_what_is_not_finite),
        cmocka_unit_test(exact_sum__any_order_and_grouping_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
