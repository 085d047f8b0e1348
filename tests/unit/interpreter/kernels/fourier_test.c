/* A transform of any length follows a cancellation before it is complete. */
#include "interpreter/kernels/fourier.h"

#include "base/control.h"

#include <complex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Of an impulse: 1 at every frequency. */
static double last_of(int64_t n) {
    struct tare_arena arena = { 0 };
    _Complex double x[128] = { 1 };
    struct tare_fourier *fourier = tare_fourier_new(&arena, n);
    assert_non_null(fourier);
    tare_fourier_run(fourier, x, false);
    tare_arena_free(&arena);
    return creal(x[n - 1]);
}

static void transform__stops_when_it_is_cancelled(void **state) {
    static const int64_t lengths[] = { 128, 101 }; /* by butterflies, by a chirp */
    volatile sig_atomic_t cancelled = TARE_STOP_INTERRUPTED;
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct tare_control control = { .cancelled = &cancelled };
        assert_float_equal(last_of(lengths[i]), 1, 1e-12);
        tare_control_set(&control);
        const double last = last_of(lengths[i]);
        tare_control_set(NULL);
        assert_float_not_equal(last, 1, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(transform__stops_when_it_is_cancelled) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
