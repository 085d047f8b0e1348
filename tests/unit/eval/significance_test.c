/* Intervals and paired tests against figures from exact fractions (Python's fractions and math.comb). */
#include "eval/significance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void interval(int64_t successes, int64_t count, double low, double high) {
    double l, h;
    tare_share_interval(&l, &h, successes, count);
    if (fabs(l - low) > 1e-12 || fabs(h - high) > 1e-12)
        fail_msg("%lld of %lld: [%.15g, %.15g], expected [%.15g, %.15g]", (long long)successes, (long long)count, l, h,
                 low, high);
}

static void interval__is_wilsons(void **state) {
    (void)state;
    interval(81, 263, 0.2552885198782742, 0.36620957698280004); /* Newcombe 1998, method 3: 0.2553 to 0.3662 */
    interval(751, 1000, 0.7232715438085464, 0.7768074234317048);
}

static void interval__stays_within_the_shares_there_are(void **state) {
    (void)state;
    interval(0, 10, 0, 0.2775327998628892);
    interval(10, 10, 0.7224672001371107, 1);
    interval(0, 0, 0, 1);
}

static void paired(int64_t gained, int64_t lost, double p) {
    double got = tare_paired_p(gained, lost);
    if (fabs(got - p) > 1e-9 * p)
        fail_msg("%lld against %lld: p %.12g, expected %.12g", (long long)gained, (long long)lost, got, p);
}

static void paired_test__is_the_exact_binomial(void **state) {
    (void)state;
    paired(5, 15, 0.04138946533203125);
    paired(15, 5, 0.04138946533203125);
    paired(0, 6, 0.03125);
    paired(300, 360, 0.02157234823197102);
}

static void paired_test__of_like_counts_is_no_more_than_one(void **state) {
    (void)state;
    paired(0, 0, 1);
    paired(10, 10, 1);
}

static void paired_test__takes_thousands_without_underflow(void **state) {
    (void)state;
    paired(3000, 3100, 0.20494954465156165);
}

/* Values with a known spread: i modulo 10, about 4.5, with a standard deviation of 2.87. */
static void fill(double *values, size_t count, double shift) {
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(i * 7 % 10) + shift;
}

static void mean_interval__is_about_two_standard_errors(void **state) {
    static double values[30000];
    const size_t counts[] = { 400, 30000 }; /* resampled, and by the normal distribution */
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        double low, high;
        fill(values, counts[k], 0);
        tare_mean_interval(&low, &high, values, counts[k]);
        const double reach = 1.96 * 2.8723 / sqrt((double)counts[k]);
        if (fabs(low - (4.5 - reach)) > 0.15 * reach || fabs(high - (4.5 + reach)) > 0.15 * reach)
            fail_msg("%zu values: %g to %g, expected 4.5 ± %g", counts[k], low, high, reach);
    }
}

static void paired_means__differ_only_when_they_do(void **state) {
    static double a[400], b[400], mixed[400];
    (void)state;
    fill(a, 400, 0);
    fill(b, 400, 0);
    assert_true(tare_paired_mean_p(a, b, 400) == 1);
    fill(b, 400, 0.1); /* the same difference in every pair */
    assert_true(tare_paired_mean_p(a, b, 400) < 0.001);
    for (size_t i = 0; i < 400; i++) /* as often more as less */
        mixed[i] = a[i] + (i % 2 ? 0.5 : -0.49);
    assert_true(tare_paired_mean_p(a, mixed, 400) > 0.5);
    assert_true(isnan(tare_paired_mean_p(a, b, 1)));
}

static void means__leave_out_nan(void **state) {
    const double a[] = { 1, NAN, 3, 2, 5, NAN }, b[] = { 2, 7, 3, NAN, 4, NAN }, a_kept[] = { 1, 3, 5 },
                 b_kept[] = { 2, 3, 4 };
    const double values[] = { 1, 3, 2, 5 };
    double low, high, expected_low, expected_high;
    (void)state;
    assert_true(tare_paired_mean_p(a, b, 6) == tare_paired_mean_p(a_kept, b_kept, 3));
    tare_mean_interval(&low, &high, a, 6);
    tare_mean_interval(&expected_low, &expected_high, values, 4);
    assert_true(low == expected_low && high == expected_high);
    assert_true(isnan(tare_paired_mean_p(a, b, 2)));
}

static void paired_test__writes_no_global_variable(void **state) {
    (void)state;
    signgam = 7;
    paired(1, 3, 0.625);
    if (signgam != 7) fail_msg("signgam is %d (expected 7)", signgam);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interval__is_wilsons),
        cmocka_unit_test(interval__stays_within_the_shares_there_are),
        cmocka_unit_test(paired_test__is_the_exact_binomial),
        cmocka_unit_test(paired_test__of_like_counts_is_no_more_than_one),
        cmocka_unit_test(paired_test__takes_thousands_without_underflow),
        cmocka_unit_test(paired_test__writes_no_global_variable),
        cmocka_unit_test(mean_interval__is_about_two_standard_errors),
        cmocka_unit_test(paired_means__differ_only_when_they_do),
        cmocka_unit_test(means__leave_out_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
