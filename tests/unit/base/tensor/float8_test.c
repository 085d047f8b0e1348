/* The rules of eight-bit floats against exact fractions: a number is a whole number of steps of a power of two, and a
 * double has every middle between two of them. */
#include "base/tensor/dtype.h"
#include "base/tensor/float8.h"
#include "base/tensor/tensor.h"

#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int dtypes[] = { TARE_DT_FLOAT8_E4M3FN, TARE_DT_FLOAT8_E5M2 };
enum { FORMATS = 2 };

static const struct tare_float8 *format(int i) {
    return tare_float8_format(dtypes[i]);
}

/* Of the code's fields. */
static double value_of(const struct tare_float8 *f, int code) {
    const int exponent = code >> f->fraction, steps = code & ((1 << f->fraction) - 1);
    const int whole = exponent ? steps | 1 << f->fraction : steps;
    return ldexp(whole, (exponent ? exponent : 1) - f->bias - f->fraction);
}

static void decode__is_the_number_of_the_fields(void **state) {
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        const struct tare_float8 *f = format(i);
        for (int code = 0; code <= f->most; code++) {
            assert_true((double)tare_float8_decode(f, (uint8_t)code) == value_of(f, code));
            assert_true((double)tare_float8_decode(f, (uint8_t)(code | 0x80)) == -value_of(f, code));
            assert_true(tare_float8_level(f, -code) == -value_of(f, code));
        }
        assert_true(value_of(f, f->most) == f->largest);
        assert_true(isnan(tare_float8_decode(f, 0x7f)));
    }
    assert_true(isinf(tare_float8_decode(format(1), 0x7c)) && tare_float8_decode(format(1), 0xfc) < 0);
    assert_true((double)format(0)->largest == 448 && (double)format(1)->largest == 57344);
}

/* Subnormal numbers included: code 0 and 1 are neighbors like any others. */
static void encode__rounds_to_nearest_and_ties_to_even(void **state) {
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        const struct tare_float8 *f = format(i);
        for (int code = 0; code < f->most; code++) {
            const double low = value_of(f, code), high = value_of(f, code + 1), middle = (low + high) / 2;
            assert_int_equal(tare_float8_encode(f, low), code);
            assert_int_equal(tare_float8_encode(f, nextafter(middle, 0)), code);
            assert_int_equal(tare_float8_encode(f, middle), code + (code & 1));
            assert_int_equal(tare_float8_encode(f, nextafter(middle, 1e9)), code + 1);
            assert_int_equal(tare_float8_encode(f, -middle), 0x80 | (code + (code & 1)));
        }
    }
}

static void encode__overflows_to_nan_or_infinity(void **state) {
    (void)state;
    assert_int_equal(tare_float8_encode(format(0), 464), 0x7e); /* the middle to 480, which does not exist: even */
    assert_int_equal(tare_float8_encode(format(0), nextafter(464, 500)), 0x7f);
    assert_int_equal(tare_float8_encode(format(1), nextafter(61440, 0)), 0x7b);
    assert_int_equal(tare_float8_encode(format(1), 61440), 0x7c);
    assert_int_equal(tare_float8_encode(format(0), (double)-INFINITY), 0xff);
}

static void saturate__is_the_largest_number_beyond_it(void **state) {
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        const struct tare_float8 *f = format(i);
        assert_int_equal(tare_float8_saturate(f, 2 * f->largest), f->most);
        assert_int_equal(tare_float8_saturate(f, (double)-INFINITY), 0x80 | f->most);
        assert_int_equal(tare_float8_saturate(f, -f->largest), 0x80 | f->most);
        assert_true(isnan(tare_float8_decode(f, tare_float8_saturate(f, (double)NAN))));
        assert_int_equal(tare_float8_saturate(f, 0.3 * f->largest), tare_float8_encode(f, 0.3 * f->largest));
    }
}

/* Every float of 14 leading bits, with some endings, in all formats. */
static void arrays__equal_single_numbers(void **state) {
    static const uint32_t endings[] = { 0, 1, 0x1ffff, 0x20000, 0x3ffff };
    static float values[1 << 14];
    static uint8_t codes[1 << 14];
    float decoded[256];
    (void)state;
    for (int dtype = TARE_DT_FLOAT8_E5M2; dtype <= TARE_DT_FLOAT8_E5M2FNUZ; dtype++) {
        const struct tare_float8 *f = tare_float8_format(dtype);
        for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
            for (uint32_t i = 0; i < 1 << 14; i++) {
                const uint32_t bits = i << 18 | endings[e];
                memcpy(&values[i], &bits, sizeof bits);
            }
            tare_float8_encode_all(codes, f, values, 1 << 14);
            for (uint32_t i = 0; i < 1 << 14; i++)
                if (codes[i] != tare_float8_encode(f, (double)values[i]))
                    fail_msg("dtype %d: %a is 0x%02x (expected 0x%02x)", dtype, (double)values[i], codes[i],
                             tare_float8_encode(f, (double)values[i]));
        }
        for (int i = 0; i < 256; i++)
            codes[i] = (uint8_t)i;
        tare_float8_decode_all(decoded, f, codes, 256);
        for (int i = 0; i < 256; i++) {
            const float single = tare_float8_decode(f, (uint8_t)i);
            assert_true(isnan(single) ? isnan(decoded[i]) : single == decoded[i]);
            assert_true(isnan(single) || !signbit(single) == !signbit(decoded[i]));
        }
    }
}

/* Elements of tensors follow the same rules as single numbers. */
static void tensors__have_numbers_as_elements(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 2);
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        struct tare_tensor tensor;
        assert_int_equal(tare_tensor_new(&tensor, dtypes[i], &shape), TARE_OK);
        tare_tensor_set_f64(&tensor, 0, -1.7);
        tare_tensor_set_f64(&tensor, 1, 1e9);
        assert_int_equal(TARE_CONST_DATA(uint8_t, &tensor)[0], tare_float8_encode(format(i), -1.7));
        assert_true(tare_tensor_get_f64(&tensor, 0) == -1.75);
        assert_false(isfinite(tare_tensor_get_f64(&tensor, 1)));
        tare_tensor_reset(&tensor);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode__is_the_number_of_the_fields),
        cmocka_unit_test(encode__rounds_to_nearest_and_ties_to_even),
        cmocka_unit_test(encode__overflows_to_nan_or_infinity),
        cmocka_unit_test(saturate__is_the_largest_number_beyond_it),
        cmocka_unit_test(arrays__equal_single_numbers),
        cmocka_unit_test(tensors__have_numbers_as_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
