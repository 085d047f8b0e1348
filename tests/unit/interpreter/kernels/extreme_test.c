/* Extremes of floats at every level: for every count, with zeros of both signs, infinities and NaN. */
#include "interpreter/kernels/extreme.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 200 };

static uint32_t seed = 3;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

static void check(const float *x, int64_t count, bool is_maximum) {
    float expected = is_maximum ? -INFINITY : INFINITY, got;
    bool has_nan = false, has_sign = false;
    for (int64_t i = 0; i < count; i++) {
        has_nan |= isnan(x[i]) != 0;
        has_sign |= signbit(x[i]) != 0;
        if (is_maximum ? x[i] > expected : x[i] < expected) expected = x[i];
    }
    const bool is_known = !has_nan && (expected != 0 || !has_sign);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        assert_int_equal(tare_extreme_at(level, &got, x, count, is_maximum), is_known);
        if (is_known) assert_memory_equal(&got, &expected, sizeof got);
    }
}

static void extreme__zeros_of_both_signs(void **unused) {
    (void)unused;
    float x[MOST];
    for (int round = 0; round < 2000; round++) {
        const int64_t count = next() % MOST;
        const uint32_t kind = next() % 4;
        for (int64_t i = 0; i < count; i++)
            x[i] = kind && next() % 50 == 0 ? -0.0f : next() % 5 == 0 && kind > 1 ? (kind == 2 ? 1.5f : -1.5f) : 0.0f;
        check(x, count, false);
        check(x, count, true);
    }
}

static void extreme__any_values(void **unused) {
    (void)unused;
    static const float special[] = { NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1e-40f, -1e-40f };
    float x[MOST];
    for (int round = 0; round < 4000; round++) {
        const int64_t count = next() % MOST;
        const uint32_t first = round % 2; /* without NaN or with all */
        for (int64_t i = 0; i < count; i++)
            x[i] = next() % 40 == 0 ? special[first + next() % (7 - first)] : (float)next() - 30000;
        check(x, count, false);
        check(x, count, true);
    }
}

static void extreme__known_values(void **unused) {
    (void)unused;
    float x[64], out;
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i * 37 % 64) - 20;
    assert_true(tare_extreme(&out, x, 64, true));
    assert_true(out == 43);
    assert_true(tare_extreme(&out, x, 64, false));
    assert_true(out == -20);
    assert_true(tare_extreme(&out, x, 0, true));
    assert_true(out == -INFINITY);
    x[40] = NAN;
    assert_false(tare_extreme(&out, x, 64, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extreme__zeros_of_both_signs),
        cmocka_unit_test(extreme__any_values),
        cmocka_unit_test(extreme__known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
