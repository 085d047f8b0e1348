/* The rounding rules of number formats, by name. */
#include "base/tensor/number.h"
#include "base/tensor/tensor.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <complex.h>
#include <cmocka.h>

static void bfloat16_rtne__ties_go_to_even(void **state) {
    (void)state;
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0x3f808000u)), 0x3f80); /* tie, even below */
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0x3f818000u)), 0x3f82); /* tie, even above */
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0x3f808001u)), 0x3f81);
}

static void bfloat16_rtne__largest_floats_become_infinity(void **state) {
    (void)state;
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0x7f7fffffu)), 0x7f80);
    assert_int_equal(tare_bfloat16_from_float(-tare_float_from_bits(0x7f7fffffu)), 0xff80);
}

static void bfloat16_rtne__nan_is_quiet_and_keeps_its_sign(void **state) {
    (void)state;
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0x7f800001u)), 0x7fc0);
    assert_int_equal(tare_bfloat16_from_float(tare_float_from_bits(0xffffffffu)), 0xffc0);
}

static void half_rtne__every_half_survives_the_round_trip(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        int is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff);
        if (!is_nan) assert_int_equal(tare_half_from_float(tare_float_from_half((uint16_t)bits)), bits);
    }
}

static void half_rtne__ties_overflow_and_subnormals(void **state) {
    (void)state;
    assert_int_equal(tare_half_from_float(1.0f + 0x1p-11f), 0x3c00);     /* tie to even, down */
    assert_int_equal(tare_half_from_float(1.0f + 3 * 0x1p-11f), 0x3c02); /* tie to even, up */
    assert_int_equal(tare_half_from_float(65519.0f), 0x7bff);            /* largest below the tie */
    assert_int_equal(tare_half_from_float(65520.0f), 0x7c00);            /* tie overflows */
    assert_int_equal(tare_half_from_float(0x1p-24f), 0x0001);
    assert_int_equal(tare_half_from_float(0x1p-25f), 0x0000); /* tie to even: zero */
    assert_int_equal(tare_half_from_float(-0x1.8p-25f), 0x8001);
}

static void tensor_set__rounds_truncates_and_saturates(void **state) {
    static const struct {
        int dtype;
        double value, stored;
    } rows[] = {
        { TARE_DT_FLOAT, 1.0 + 0x1p-25, 1 },
        { TARE_DT_HALF, 65520, INFINITY },
        { TARE_DT_BFLOAT16, 1.00390625, 1 },
        { TARE_DT_DOUBLE, 0.1, 0.1 },
        { TARE_DT_INT8, -128.9, -128 },
        { TARE_DT_INT8, -1000, -128 },
        { TARE_DT_INT8, 1000, 127 },
        { TARE_DT_UINT8, 255.9, 255 },
        { TARE_DT_UINT8, -1, 0 },
        { TARE_DT_QUINT8, 200, 200 },
        { TARE_DT_QINT8, 200, 127 },
        { TARE_DT_INT16, -2.9, -2 },
        { TARE_DT_UINT32, 4294967295.0, 4294967295.0 },
        { TARE_DT_INT32, 3e9, 2147483647 },
        { TARE_DT_INT64, 1e30, 9223372036854775807.0 },
        { TARE_DT_INT64, -1e30, -9223372036854775808.0 },
        { TARE_DT_INT32, NAN, 0 },
        { TARE_DT_BOOL, 0.5, 1 },
        { TARE_DT_INT4, 9, 7 },
        { TARE_DT_HALF, 1 + 0x1p-11 + 0x1p-24, 1 + 0x1p-10 }, /* one rounding: float would make a tie of it */
        { TARE_DT_HALF, -(1 + 0x1p-11 + 0x1p-50), -(1 + 0x1p-10) },
        { TARE_DT_HALF, 1 + 3 * 0x1p-11 - 0x1p-40, 1 + 0x1p-10 },
        { TARE_DT_HALF, 65520 - 0x1p-30, 65504 },
        { TARE_DT_HALF, 1e300, INFINITY },
        { TARE_DT_HALF, 0x1p-25 + 0x1p-70, 0x1p-24 },
        { TARE_DT_HALF, 1e-300, 0 },
        { TARE_DT_BFLOAT16, 1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-7 },
        { TARE_DT_BFLOAT16, -1e39, -INFINITY },
        { TARE_DT_BFLOAT16, 0x1.fffffep127 + 0x1p103, INFINITY },
    };
    const struct tare_shape shape = tare_shape_make(1, 2);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tare_tensor t = { 0 };
        assert_int_equal(tare_tensor_new(&t, rows[i].dtype, &shape), TARE_OK);
        tare_tensor_set_f64(&t, 1, rows[i].value);
        const double got = tare_tensor_get_f64(&t, 1);
        if (got != rows[i].stored)
            fail_msg("%s: %g is stored as %g (expected %g)", tare_dtype_name(rows[i].dtype), rows[i].value, got,
                     rows[i].stored);
        tare_tensor_reset(&t);
    }
}

static void tensor_set__complex_numbers_and_wide_integers(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 1);
    struct tare_tensor t = { 0 };
    (void)state;
    assert_int_equal(tare_tensor_new(&t, TARE_DT_COMPLEX64, &shape), TARE_OK);
    tare_tensor_set_c128(&t, 0, 1.5 + 2.5 * _Complex_I);
    assert_true(tare_tensor_get_c128(&t, 0) == 1.5 + 2.5 * _Complex_I);
    tare_tensor_set_f64(&t, 0, 3);
    assert_true(tare_tensor_get_c128(&t, 0) == 3);
    tare_tensor_reset(&t);
    assert_int_equal(tare_tensor_new(&t, TARE_DT_UINT64, &shape), TARE_OK);
    tare_tensor_set_f64(&t, 0, 0x1p63);
    assert_true(TARE_DATA(uint64_t, &t)[0] == (uint64_t)1 << 63);
    tare_tensor_set_f64(&t, 0, 1e300);
    assert_true(TARE_DATA(uint64_t, &t)[0] == UINT64_MAX);
    tare_tensor_set_i64(&t, 0, -2);
    assert_true(TARE_DATA(uint64_t, &t)[0] == UINT64_MAX - 1);
    tare_tensor_reset(&t);
}

static void same_bits__is_neither_equality_of_numbers_nor_of_storage(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 3), other_shape = tare_shape_make(2, 1, 3);
    struct tare_tensor a, b, splat, strings, more;
    (void)state;
    assert_int_equal(tare_tensor_from(&a, TARE_DT_FLOAT, &shape, (const float[]){ 0, NAN, 2 }), TARE_OK);
    assert_int_equal(tare_tensor_from(&b, TARE_DT_FLOAT, &shape, (const float[]){ 0, NAN, 2 }), TARE_OK);
    assert_true(tare_tensor_same_bits(&a, &b));
    TARE_DATA(float, &b)[0] = -0.0f;
    assert_false(tare_tensor_same_bits(&a, &b));
    tare_tensor_reset(&b);
    assert_int_equal(tare_tensor_from(&b, TARE_DT_FLOAT, &other_shape, (const float[]){ 0, NAN, 2 }), TARE_OK);
    assert_false(tare_tensor_same_bits(&a, &b));
    tare_tensor_reset(&b);
    assert_int_equal(tare_tensor_from(&b, TARE_DT_FLOAT, &shape, (const float[]){ 7, 7, 7 }), TARE_OK);
    tare_tensor_share(&splat, &b);
    splat.splat = true; /* the first element stands for all */
    assert_true(tare_tensor_same_bits(&b, &splat));
    TARE_DATA(float, &b)[2] = 8;
    tare_tensor_reset(&splat);
    assert_int_equal(tare_tensor_copy(&splat, &b), TARE_OK);
    splat.splat = true;
    assert_false(tare_tensor_same_bits(&b, &splat));
    splat.splat = false;
    tare_tensor_reset(&splat);
    assert_int_equal(tare_tensor_new(&strings, TARE_DT_STRING, &shape), TARE_OK);
    assert_int_equal(tare_tensor_new(&more, TARE_DT_STRING, &shape), TARE_OK);
    assert_int_equal(tare_tensor_set_string(&strings, 1, "ab", 2), TARE_OK);
    assert_false(tare_tensor_same_bits(&strings, &more));
    assert_int_equal(tare_tensor_set_string(&more, 1, "ab", 2), TARE_OK);
    assert_true(tare_tensor_same_bits(&strings, &more));
    tare_tensor_reset(&strings);
    tare_tensor_reset(&more);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void difference__of_64_bit_integers_is_exact(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 3);
    const int64_t first[] = { (1ll << 53) + 1, INT64_MAX, -5 }, second[] = { 1ll << 53, INT64_MAX - 1, 7 };
    const uint64_t large[] = { (1ull << 53) + 1, UINT64_MAX, UINT64_MAX - 4 };
    struct tare_tensor a, b, c;
    (void)state;
    assert_int_equal(tare_tensor_from(&a, TARE_DT_INT64, &shape, first), TARE_OK);
    assert_int_equal(tare_tensor_from(&b, TARE_DT_INT64, &shape, second), TARE_OK);
    assert_int_equal(tare_tensor_from(&c, TARE_DT_UINT64, &shape, large), TARE_OK);
    assert_true(tare_tensor_difference(&a, &b, 0) == 1);
    assert_true(tare_tensor_difference(&a, &b, 1) == 1);
    assert_true(tare_tensor_difference(&a, &b, 2) == -12);
    assert_true(tare_tensor_difference(&c, &a, 0) == 0);
    assert_true(tare_tensor_difference(&c, &a, 2) == 0x1p64); /* 2^64 - 5 + 5 */
    assert_true(tare_tensor_get_f64(&c, 1) == 0x1p64);        /* rounded from 2^64 - 1 */
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_tensor_reset(&c);
}

static void an_empty_tensor__has_room_for_one_element_of_zeros(void **state) {
    const struct tare_shape shape = tare_shape_make(1, 0);
    static const int dtypes[] = { TARE_DT_INT8, TARE_DT_INT32, TARE_DT_INT64, TARE_DT_DOUBLE, TARE_DT_BOOL };
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        struct tare_tensor t;
        assert_int_equal(tare_tensor_new(&t, dtypes[i], &shape), TARE_OK);
        assert_true(tare_tensor_get_f64(&t, 0) == 0);
        tare_tensor_reset(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(difference__of_64_bit_integers_is_exact),
        cmocka_unit_test(an_empty_tensor__has_room_for_one_element_of_zeros),
        cmocka_unit_test(same_bits__is_neither_equality_of_numbers_nor_of_storage),
        cmocka_unit_test(bfloat16_rtne__ties_go_to_even),
        cmocka_unit_test(bfloat16_rtne__largest_floats_become_infinity),
        cmocka_unit_test(bfloat16_rtne__nan_is_quiet_and_keeps_its_sign),
        cmocka_unit_test(half_rtne__every_half_survives_the_round_trip),
        cmocka_unit_test(half_rtne__ties_overflow_and_subnormals),
        cmocka_unit_test(tensor_set__rounds_truncates_and_saturates),
        cmocka_unit_test(tensor_set__complex_numbers_and_wide_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
