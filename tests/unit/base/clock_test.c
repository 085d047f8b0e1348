/* Clocks and clamping. */
#include "base/clamp.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <cmocka.h>

static void clock__measures_elapsed_time_in_nanoseconds_and_seconds(void **state) {
    const struct timespec pause = { .tv_nsec = 20000000 };
    const double cpu = tare_clock_cpu_seconds(), start = tare_clock_seconds();
    const int64_t start_ns = tare_clock_ns();
    (void)state;
    nanosleep(&pause, NULL);
    const int64_t elapsed_ns = tare_clock_ns() - start_ns;
    const double elapsed = tare_clock_seconds() - start;
    if (elapsed_ns < 20000000) fail_msg("%lld ns elapsed, expected at least 20000000", (long long)elapsed_ns);
    if (elapsed < 1e-9 * (double)elapsed_ns)
        fail_msg("%g s elapsed, expected at least %lld ns", elapsed, (long long)elapsed_ns);
    const double busy = tare_clock_cpu_seconds() - cpu;
    if (!(busy >= 0 && busy < elapsed)) fail_msg("a sleeping thread used %g s in %g s", busy, elapsed);
}

static void clamp__returns_the_nearest_value_of_the_interval(void **state) {
    (void)state;
    assert_int_equal(tare_clamp(-5, -3, 4), -3);
    assert_int_equal(tare_clamp(5, -3, 4), 4);
    assert_int_equal(tare_clamp(-3, -3, 4), -3);
    assert_int_equal(tare_clamp(2, -3, 4), 2);
    assert_int_equal(tare_clamp(9, 4, 4), 4);
    assert_true(tare_clamp(INT64_MIN, INT64_MIN + 1, INT64_MAX) == INT64_MIN + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock__measures_elapsed_time_in_nanoseconds_and_seconds),
        cmocka_unit_test(clamp__returns_the_nearest_value_of_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
