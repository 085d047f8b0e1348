/* The fast float functions: distance from the exactly rounded result over a sweep of all magnitudes, special values,
 * and the same bits for every instruction set. */
#include "interpreter/kernels/elementary.h"
#include "base/tensor/number.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STRIDE = 20011, COUNT = (int)(UINT32_MAX / STRIDE) + 1 }; /* a prime: all exponents and many fractions */

static float from[COUNT], to[COUNT], other[COUNT];

static double sigmoid_exact(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static const struct {
    const char *name;
    double (*exact)(double);
    double most_ulps;
} functions[] = {
    [TARE_ELEMENTARY_EXP] = { "exp", exp, 1.5 },    [TARE_ELEMENTARY_EXPM1] = { "expm1", expm1, 1.5 },
    [TARE_ELEMENTARY_LOG] = { "log", log, 0.501 },  [TARE_ELEMENTARY_LOG1P] = { "log1p", log1p, 0.501 },
    [TARE_ELEMENTARY_TANH] = { "tanh", tanh, 2.0 }, [TARE_ELEMENTARY_SIGMOID] = { "sigmoid", sigmoid_exact, 2.0 },
    [TARE_ELEMENTARY_ERF] = { "erf", erf, 2.0 },    [TARE_ELEMENTARY_ERFC] = { "erfc", erfc, 3.0 },
};

static void fill(void) {
    for (int i = 0; i < COUNT; i++)
        from[i] = tare_float_from_bits((uint32_t)i * STRIDE);
}

/* In units of the last place of the exact value rounded to float. */
static double ulps(float got, double exact) {
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    const float rounded = (float)exact;
    if (got == rounded) return 0;
    if (isinf(rounded) || isinf(got)) return INFINITY;
    int exponent;
    frexp(exact, &exponent);
    const double unit = ldexp(1, exponent < -125 ? -149 : exponent - 24);
    return fabs((double)got - exact) / unit;
}

static void every_function__is_within_its_bound(void **state) {
    (void)state;
    fill();
    for (int f = 0; f < TARE_ELEMENTARY_COUNT; f++) {
        double worst = 0;
        float at = 0;
        tare_elementary_at(tare_cpu_level(), (enum tare_elementary)f, to, from, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const double distance = ulps(to[i], functions[f].exact((double)from[i]));
            if (distance > worst) {
                worst = distance;
                at = from[i];
            }
        }
        print_message("%s: at most %.3f ulp, at %a\n", functions[f].name, worst, (double)at);
        assert_true(worst <= functions[f].most_ulps);
    }
}

static void every_instruction_set__gives_the_same_bits(void **state) {
    (void)state;
    fill();
    for (int f = 0; f < TARE_ELEMENTARY_COUNT; f++) {
        tare_elementary_at(TARE_CPU_PLAIN, (enum tare_elementary)f, to, from, COUNT);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            tare_elementary_at(level, (enum tare_elementary)f, other, from, COUNT - 3);
            for (int i = 0; i < COUNT - 3; i++) {
                if (isnan(to[i]) && isnan(other[i])) continue;
                assert_int_equal(tare_float_bits(other[i]), tare_float_bits(to[i]));
            }
        }
    }
}

static void special_values__are_exact(void **state) {
    static const float in[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f };
    static const float expected[TARE_ELEMENTARY_COUNT][7] = {
        [TARE_ELEMENTARY_EXP] = { 1, 1, INFINITY, 0, NAN, INFINITY, 0 },
        [TARE_ELEMENTARY_EXPM1] = { 0, -0.0f, INFINITY, -1, NAN, INFINITY, -1 },
        [TARE_ELEMENTARY_LOG] = { -INFINITY, -INFINITY, INFINITY, NAN, NAN, 0x1.144f6ap6f, NAN },
        [TARE_ELEMENTARY_LOG1P] = { 0, -0.0f, INFINITY, NAN, NAN, 0x1.144f6ap6f, NAN },
        [TARE_ELEMENTARY_TANH] = { 0, -0.0f, 1, -1, NAN, 1, -1 },
        [TARE_ELEMENTARY_SIGMOID] = { 0.5f, 0.5f, 1, 0, NAN, 1, 0 },
        [TARE_ELEMENTARY_ERF] = { 0, -0.0f, 1, -1, NAN, 1, -1 },
        [TARE_ELEMENTARY_ERFC] = { 1, 1, 0, 2, NAN, 0, 2 },
    };
    (void)state;
    for (int f = 0; f < TARE_ELEMENTARY_COUNT; f++) {
        float got[7];
        tare_elementary_at(tare_cpu_level(), (enum tare_elementary)f, got, in, 7);
        for (int i = 0; i < 7; i++) {
            if (isnan(expected[f][i]))
                assert_true(isnan(got[i]));
            else
                assert_int_equal(tare_float_bits(got[i]), tare_float_bits(expected[f][i]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function__is_within_its_bound),
        cmocka_unit_test(every_instruction_set__gives_the_same_bits),
        cmocka_unit_test(special_values__are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
