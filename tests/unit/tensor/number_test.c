/* The rounding rules of number formats, by name. */
#include "tensor/number.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
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
    assert_int_equal(tare_half_from_float(1.0f + 0x1p-11f), 0x3c00);          /* tie to even, down */
    assert_int_equal(tare_half_from_float(1.0f + 3 * 0x1p-11f), 0x3c02);      /* tie to even, up */
    assert_int_equal(tare_half_from_float(65519.0f), 0x7bff);                 /* largest below the tie */
    assert_int_equal(tare_half_from_float(65520.0f), 0x7c00);                 /* tie overflows */
    assert_int_equal(tare_half_from_float(0x1p-24f), 0x0001);
    assert_int_equal(tare_half_from_float(0x1p-25f), 0x0000);                 /* tie to even: zero */
    assert_int_equal(tare_half_from_float(-0x1.8p-25f), 0x8001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bfloat16_rtne__ties_go_to_even),
        cmocka_unit_test(bfloat16_rtne__largest_floats_become_infinity),
        cmocka_unit_test(bfloat16_rtne__nan_is_quiet_and_keeps_its_sign),
        cmocka_unit_test(half_rtne__every_half_survives_the_round_trip),
        cmocka_unit_test(half_rtne__ties_overflow_and_subnormals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
