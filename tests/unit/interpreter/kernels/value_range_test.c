/* Ranges of floats at every level: for every count, added in pieces, with zeros of both signs, infinities and NaN. */
#include "interpreter/kernels/value_range.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 200 };

static uint32_t seed = 3;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

/* Whether the range is known is decided by all values, and is false at most where the order of comparisons matters or
 * no value is without sign bit. */
static void check(const float *x, int64_t count) {
    float low = INFINITY, high = -INFINITY, got_low, got_high;
    bool has_nan = false, has_sign = false, has_other = false;
    for (int64_t i = 0; i < count; i++) {
        has_nan |= isnan(x[i]) != 0;
        has_sign |= signbit(x[i]) != 0;
        has_other |= signbit(x[i]) == 0;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const bool is_known = !has_nan && has_other && !(has_sign && (low == 0 || high == 0));
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        const int64_t first = count / 3;
        struct tare_value_range range;
        tare_value_range_begin(&range);
        tare_value_range_add_at(level, &range, x, first);
        tare_value_range_add_at(level, &range, x + first, count - first);
        assert_int_equal(tare_value_range_end(&got_low, &got_high, &range), is_known);
        if (!is_known) continue;
        assert_memory_equal(&got_low, &low, sizeof low);
        assert_memory_equal(&got_high, &high, sizeof high);
    }
}

static void value_range__is_that_of_all_values(void **unused) {
    (void)unused;
    static const float special[] = { NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1e-40f, -1e-40f };
    float x[MOST];
    for (int round = 0; round < 20000; round++) {
        const int64_t count = next() % MOST;
        const uint32_t kind = next() % 6, first = round % 2; /* without NaN or with all */
        for (int64_t i = 0; i < count; i++) {
            const float any = (float)next() - 30000;
            x[i] = kind == 0 ? fabsf(any) : kind == 1 ? -fabsf(any) : kind == 2 ? (next() % 9 ? 0.0f : -1.5f) : any;
            if (next() % 60 == 0 && kind > 1) x[i] = special[first + next() % (7 - first)];
        }
        check(x, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(value_range__is_that_of_all_values) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
