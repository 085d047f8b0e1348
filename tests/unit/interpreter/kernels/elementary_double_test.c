/* The functions of one double against exactly rounded values (tests/golden/elementary_double.py), special values, and a
 * checksum of the bits, which is the same on every CPU. */
#include "interpreter/kernels/elementary_double.h"
#include "base/tensor/number.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double (*library)(double);
    double most_ulps;
} functions[] = {
    { "exp", tare_exp, NULL, exp, 1 },       { "expm1", tare_expm1, NULL, expm1, 1 },
    { "log", tare_log, NULL, log, 1 },       { "log1p", tare_log1p, NULL, log1p, 1.5 },
    { "pow", NULL, tare_pow, NULL, 1 },      { "sin", tare_sin, NULL, sin, 1 },
    { "cos", tare_cos, NULL, cos, 1 },       { "tan", tare_tan, NULL, tan, 2 },
    { "asin", tare_asin, NULL, asin, 2 },    { "acos", tare_acos, NULL, acos, 2 },
    { "atan", tare_atan, NULL, atan, 2 },    { "atan2", NULL, tare_atan2, NULL, 2 },
    { "sinh", tare_sinh, NULL, sinh, 3 },    { "cosh", tare_cosh, NULL, cosh, 2 },
    { "tanh", tare_tanh, NULL, tanh, 3 },    { "asinh", tare_asinh, NULL, asinh, 3 },
    { "acosh", tare_acosh, NULL, acosh, 3 }, { "atanh", tare_atanh, NULL, atanh, 3 },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int find(const char *name) {
    for (int f = 0; f < FUNCTIONS; f++)
        if (strcmp(functions[f].name, name) == 0) return f;
    return -1;
}

/* In units of the last place of the exactly rounded value; the rounding itself is up to half a unit more. */
static double units(double got, double exact) {
    if (got == exact) return 0;
    if (!isfinite(got) || !isfinite(exact)) return INFINITY;
    return fabs(got - exact) / (nextafter(fabs(exact), INFINITY) - fabs(exact));
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Rounded to float, all but values beside a boundary between two floats are exact: none here. */
static void every_function__is_near_the_exactly_rounded_value(void **state) {
    (void)state;
    FILE *file = fopen(TARE_SOURCE_DIR "/tests/golden/elementary_double.values", "r");
    char name[16];
    double x, y, exact, as_float, worst[FUNCTIONS] = { 0 };
    int lines = 0, wrong_floats = 0;
    assert_non_null(file);
    while (fscanf(file, "%15s %la %la %la %la", name, &x, &y, &exact, &as_float) == 5) {
        const int f = find(name);
        assert_true(f >= 0);
        const double got = functions[f].one ? functions[f].one(x) : functions[f].two(x, y);
        const double distance = units(got, exact);
        if (distance > worst[f]) worst[f] = distance;
        if (distance > functions[f].most_ulps) print_error("%s(%a, %a) is %a (expected %a)\n", name, x, y, got, exact);
        wrong_floats += (float)got != (float)as_float;
        if (strcmp(name, "pow") == 0 && (double)(float)x == x && (double)(float)y == y)
            wrong_floats += tare_pow_float((float)x, (float)y) != (float)as_float;
        lines++;
    }
    fclose(file);
    assert_true(lines > 900);
    assert_int_equal(wrong_floats, 0);
    for (int f = 0; f < FUNCTIONS; f++) {
        print_message("%s: at most %.2f units\n", functions[f].name, worst[f]);
        assert_true(worst[f] <= functions[f].most_ulps);
    }
}

/* The C library's functions are exact here. */
static void special_values__are_those_of_the_c_library(void **state) {
    static const double values[] = { 0.0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, INFINITY, -INFINITY, NAN, DBL_MAX, -DBL_MAX };
    enum { VALUES = sizeof values / sizeof *values };
    (void)state;
    for (int i = 0; i < VALUES; i++) {
        const double x = values[i];
        for (int f = 0; f < FUNCTIONS; f++) {
            if (!functions[f].library) continue;
            const double expected = functions[f].library(x), got = functions[f].one(x);
            if (isnan(expected) ? !isnan(got) : units(got, expected) > 3 || signbit(got) != signbit(expected)) {
                print_error("%s(%a) is %a (expected %a)\n", functions[f].name, x, got, expected);
                fail();
            }
        }
        for (int k = 0; k < VALUES; k++) {
            const double y = values[k], power = pow(x, y), angle = atan2(x, y);
            const double got[] = { tare_pow(x, y), (double)tare_pow_float((float)x, (float)y), tare_atan2(x, y) };
            const double expected[] = { power, (double)powf((float)x, (float)y), angle };
            for (int j = 0; j < 3; j++) {
                if (isnan(expected[j]) ? !isnan(got[j])
                                       : units(got[j], expected[j]) > 1 || signbit(got[j]) != signbit(expected[j])) {
                    print_error("%d of (%a, %a) is %a (expected %a)\n", j, x, y, got[j], expected[j]);
                    fail();
                }
            }
        }
    }
}

static void powers_of_small_integers__are_exact(void **state) {
    (void)state;
    for (int x = -20; x <= 20; x++) {
        double expected = 1;
        for (int y = 0; y <= 12 && fabs(expected) < 0x1p53; y++, expected *= x) {
            assert_true(tare_pow(x, y) == expected);
            if (fabs(expected) < 0x1p24) assert_true(tare_pow_float((float)x, (float)y) == (float)expected);
        }
    }
}

/* FNV-1a of the results for numbers of all magnitudes: fixed, so that a CPU or compiler that rounds in another way
 * fails. */
static void bits__are_the_same_on_every_cpu(void **state) {
    uint64_t sum = 0xcbf29ce484222325, x = 41;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double a, b;
        x = x * 6364136223846793005 + 1442695040888963407;
        memcpy(&a, &x, sizeof a);
        x = x * 6364136223846793005 + 1442695040888963407;
        b = (double)(int64_t)x * 0x1p-58;
        for (int f = 0; f < FUNCTIONS; f++) {
            const double y = functions[f].one ? functions[f].one(i % 2 ? a : b) : functions[f].two(fabs(a), b);
            sum = (sum ^ (isnan(y) ? 0 : bits_of(y))) * 0x100000001b3;
        }
        sum = (sum ^ tare_float_bits(tare_pow_float(fabsf((float)b), 1.7f))) * 0x100000001b3;
    }
    assert_int_equal(sum, 0xdb22a1f7e2b8871c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function__is_near_the_exactly_rounded_value),
        cmocka_unit_test(special_values__are_those_of_the_c_library),
        cmocka_unit_test(powers_of_small_integers__are_exact),
        cmocka_unit_test(bits__are_the_same_on_every_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
