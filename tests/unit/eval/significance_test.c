/* Intervals against figures of SciPy: quantiles, roots by brentq, and for paired shares the likelihood of the counts
 * maximized by minimize_scalar. */
#include "eval/significance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void expect(const char *what, double got, double expected, double slack) {
    if (!(fabs(got - expected) <= slack)) fail_msg("%s: %.12g, expected %.12g", what, got, expected);
}

static void quantile__is_of_the_normal_distribution(void **state) {
    (void)state;
    expect("97.5 %", tare_normal_quantile(0.975), 1.959963984540054, 1e-12);
    expect("twelve models", tare_normal_quantile(1 - TARE_TAIL_95 / 12), 2.8652602385321346, 1e-10);
    expect("2.5 %", tare_normal_quantile(0.025), -1.959963984540054, 1e-12);
}

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

static void paired_shares__have_tangos_interval(void **state) {
    static const struct {
        int64_t gained, lost, count;
        double models, low, high;
    } cases[] = {
        { 5, 15, 263, 1, 0.0030902, 0.0777997 }, { 15, 5, 263, 1, -0.0777997, -0.0030902 },
        { 0, 0, 300, 1, -0.0157601, 0.0157601 }, { 12, 17, 90, 1, -0.0694977, 0.1802655 },
        { 0, 1, 3, 1, -0.5476712, 0.8746655 },   { 300, 360, 10000, 12, -0.0014192, 0.0134785 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_paired p;
        tare_paired_shares(&p, cases[i].gained, cases[i].lost, cases[i].count, TARE_TAIL_95 / cases[i].models);
        expect("low", p.low, cases[i].low, 1e-6);
        expect("high", p.high, cases[i].high, 1e-6);
        expect("loss", p.loss, (double)(cases[i].lost - cases[i].gained) / (double)cases[i].count, 1e-12);
    }
}

/* Squares of a sequence: skewed to the right. */
static void fill(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = (double)((i * 7 % 10) * (i * 7 % 10));
}

static void means__have_students_interval_widened_by_skewness(void **state) {
    double values[30], zeros[30] = { 0 }, low, high;
    struct tare_paired p;
    (void)state;
    fill(values, 30);
    tare_mean_interval(&low, &high, &(struct tare_series){ values, 30, 0 });
    expect("low", low, 18.30174727503494, 1e-3);
    expect("high", high, 39.58565451335252, 1e-3);
    tare_paired_means(&p, &(struct tare_series){ values, 30, 0 }, &(struct tare_series){ zeros, 30, 0 }, TARE_TAIL_95);
    assert_true(p.low == low && p.high == high && p.loss == 28.5);
    tare_paired_scale(&p, -2);
    assert_true(p.low == -2 * high && p.high == -2 * low && p.loss == -57);
}

static void means__need_examples_without_nan(void **state) {
    double values[40], low, high;
    struct tare_paired p;
    (void)state;
    fill(values, 40);
    for (size_t i = 20; i < 40; i++)
        values[i] = NAN;
    tare_mean_interval(&low, &high, &(struct tare_series){ values, 40, 0 });
    assert_true(low < high);
    values[3] = NAN;
    tare_mean_interval(&low, &high, &(struct tare_series){ values, 40, 0 });
    assert_true(isnan(low) && isnan(high));
    tare_paired_means(&p, &(struct tare_series){ values, 40, 0 }, &(struct tare_series){ values, 40, 0 }, TARE_TAIL_95);
    assert_int_equal(p.examples, 19);
    assert_true(isnan(p.high) && p.loss == 0);
}

/* As many examples as are needed make the limit, fewer by a tenth do not. */
static void needed_examples__reach_the_limit(void **state) {
    static const int64_t changed[] = { 0, 2, 20 }; /* of 1000, as many gained as lost */
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tare_paired p;
        tare_paired_shares(&p, changed[i], changed[i], 1000, TARE_TAIL_95);
        const double n = tare_paired_needed(&p, 0.01), share = (double)changed[i] / 1000;
        tare_paired_shares(&p, llround(n * share), llround(n * share), llround(n), TARE_TAIL_95);
        if (!(p.high <= 0.0103)) fail_msg("%g examples: %g", n, p.high);
        tare_paired_shares(&p, llround(n * share), llround(n * share), llround(0.7 * n), TARE_TAIL_95);
        if (!(p.high > 0.01)) fail_msg("fewer than %g examples: %g", n, p.high);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile__is_of_the_normal_distribution),
        cmocka_unit_test(interval__is_wilsons),
        cmocka_unit_test(interval__stays_within_the_shares_there_are),
        cmocka_unit_test(paired_shares__have_tangos_interval),
        cmocka_unit_test(means__have_students_interval_widened_by_skewness),
        cmocka_unit_test(means__need_examples_without_nan),
        cmocka_unit_test(needed_examples__reach_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
