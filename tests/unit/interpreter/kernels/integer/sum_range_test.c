/* The range of float results from the extremes of their sums: that of all results, or none where it does not follow, at
 * every level from AVX2 on. */
#include "interpreter/kernels/integer/requantize.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LANES = 16, MOST = 70, ROWS = 9 };

static uint32_t seed = 3;
static int32_t random_int(int32_t low, int32_t high) {
    seed = seed * 1664525u + 1013904223u;
    return low + (int32_t)((seed >> 8) % (uint32_t)(high - low + 1));
}

/* A product of ROWS rows. */
struct product {
    int64_t columns;
    int32_t sums[ROWS][MOST], offset[MOST + LANES];
    float scale[MOST + LANES], bias[MOST + LANES];
    float low, high;
    bool has_bias;
};

static void fill(struct product *p, int64_t columns, bool has_bias) {
    *p = (struct product){ .columns = columns, .has_bias = has_bias, .low = -INFINITY, .high = INFINITY };
    for (int64_t c = 0; c < columns + LANES; c++) {
        p->offset[c] = random_int(-5000, 5000);
        p->scale[c] = (float)random_int(1, 999) * 1e-3f;
        p->bias[c] = (float)random_int(-999, 999);
    }
    for (int64_t i = 0; i < ROWS * columns; i++)
        p->sums[i / columns][i % columns] = random_int(-9000, 9000);
}

static struct tare_requantize requantize_of(const struct product *p) {
    return (struct tare_requantize){
        .is_real = true,
        .columns = p->columns,
        .offset = p->offset,
        .scale = p->scale,
        .real = { .bias = p->has_bias ? p->bias : NULL, .low = p->low, .high = p->high },
    };
}

static void assert_same_range(const struct tare_value_range *a, const struct tare_value_range *b) {
    float x[2], y[2];
    assert_true(tare_value_range_end(&x[0], &x[1], a));
    assert_true(tare_value_range_end(&y[0], &y[1], b));
    assert_float_equal(x[0], y[0], 0);
    assert_float_equal(x[1], y[1], 0);
}

/* From the sums, without those of column `skipped`. */
static bool end(struct tare_value_range *range, const struct product *p, int64_t skipped) {
    int32_t low[MOST], high[MOST];
    struct tare_sum_range sums = { low, high };
    const struct tare_requantize requantize = requantize_of(p);
    tare_sum_range_begin(&sums, p->columns);
    for (int64_t i = 0; i < ROWS * p->columns; i++) {
        const int64_t c = i % p->columns;
        const int32_t sum = p->sums[i / p->columns][c];
        if (c == skipped) continue;
        low[c] = sum < low[c] ? sum : low[c];
        high[c] = sum > high[c] ? sum : high[c];
    }
    tare_value_range_begin(range);
    const bool follows = tare_sum_range_end(range, &sums, &requantize);
    for (enum tare_cpu_level level = TARE_CPU_AVX2; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        struct tare_value_range other;
        tare_value_range_begin(&other);
        assert_int_equal(tare_sum_range_end_at(level, &other, &sums, &requantize), follows);
        if (follows) assert_same_range(range, &other);
    }
    return follows;
}

static void assert_range(const struct product *p, int64_t skipped) {
    struct tare_value_range got, expected;
    tare_value_range_begin(&expected);
    for (int64_t i = 0; i < ROWS * p->columns; i++) {
        const int64_t c = i % p->columns;
        float x = (float)(p->sums[i / p->columns][c] + p->offset[c]) * p->scale[c];
        if (p->has_bias) x += p->bias[c];
        x = fminf(fmaxf(x, p->low), p->high);
        if (c != skipped) tare_value_range_add(&expected, &x, 1);
    }
    assert_true(end(&got, p, skipped));
    assert_same_range(&got, &expected);
}

static void sum_range__is_the_range_of_the_results(void **unused) {
    (void)unused;
    struct product p;
    for (int64_t columns = 2; columns <= MOST; columns++) {
        fill(&p, columns, columns % 2);
        assert_range(&p, -1);
        assert_range(&p, columns / 2);
        p.low = 0, p.high = 900;
        assert_range(&p, -1);
    }
}

static void sum_range__does_not_follow_from_sums_that_wrap(void **unused) {
    (void)unused;
    struct tare_value_range range;
    struct product p;
    fill(&p, 20, true);
    p.offset[17] = INT32_MAX - 5000;
    p.sums[3][17] = 9001;
    assert_false(end(&range, &p, -1));
    assert_true(end(&range, &p, 17));
    fill(&p, 20, true);
    p.offset[2] = INT32_MIN;
    p.sums[3][2] = -1;
    assert_false(end(&range, &p, -1));
}

static void sum_range__does_not_follow_with_scales_that_are_not_positive_and_normal(void **unused) {
    (void)unused;
    static const float scales[] = { 0, -0.0f, -1, 1e-40f, INFINITY, NAN };
    struct tare_value_range range;
    struct product p;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        fill(&p, 20, false);
        p.scale[18] = scales[i];
        assert_false(end(&range, &p, -1));
        assert_true(end(&range, &p, 18));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_range__is_the_range_of_the_results),
        cmocka_unit_test(sum_range__does_not_follow_from_sums_that_wrap),
        cmocka_unit_test(sum_range__does_not_follow_with_scales_that_are_not_positive_and_normal),
    };
    if (tare_cpu_level() < TARE_CPU_AVX2) return 0; /* the extremes are not collected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
