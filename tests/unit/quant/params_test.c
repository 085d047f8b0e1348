/* Every rule of quantization parameters, by name. Expected values are worked out by hand from the rules' texts. */
#include "quant/params.h"
#include "quant/weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct tare_qparams params(double low, double high, const struct tare_qscheme *scheme) {
    struct tare_qparams out;
    assert_int_equal(tare_qparams_from_range(&out, low, high, scheme), TARE_OK);
    return out;
}

static void range_contains_zero__positive_range_begins_at_zero(void **state) {
    struct tare_qparams p = params(2, 5.1, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 5.1 / 255);
    assert_int_equal(p.zero_point, -128);
}

static void range_contains_zero__negative_range_ends_at_zero(void **state) {
    struct tare_qparams p = params(-2.55, -1, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 2.55 / 255);
    assert_int_equal(p.zero_point, 127);
}

static void zero_point__rounds_half_away_from_zero(void **state) {
    /* scale 1: zero point of [-127.5, 127.5] is -128 + 127.5 = -0.5 from below, 127 - 127.5 = -0.5 from above */
    struct tare_qparams p = params(-127.5, 127.5, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 1);
    assert_int_equal(p.zero_point, -1);
}

static void range_symmetric__takes_the_larger_side(void **state) {
    struct tare_qparams p = params(-0.5, 1.27, &tare_qscheme_weight);
    (void)state;
    assert_true(fabs(p.scale - 0.01) < 1e-17);
    assert_int_equal(p.zero_point, 0);
    assert_int_equal(p.qmin, -127);
    assert_int_equal(p.qmax, 127);
}

static void range_symmetric_full__the_side_that_needs_more_decides(void **state) {
    const struct tare_qscheme full = { .bits = 8, .symmetric = true };
    struct tare_qparams p = params(-1.28, 1, &full);
    (void)state;
    assert_true(p.scale == 1.28 / 128); /* -128 is used */
    assert_int_equal(p.zero_point, 0);
    p = params(-1, 1.27, &full);
    assert_true(p.scale == 1.27 / 127);
    assert_int_equal(p.qmin, -128);
}

static void zero_point__of_the_end_with_less_error(void **state) {
    /* scale 1/85: from below -128 + 42.5, from above 127 - 212.5: both -85.5, away from zero */
    struct tare_qparams p = params(-0.5, 2.5, &tare_qscheme_activation);
    (void)state;
    assert_int_equal(p.zero_point, -86);
    p = params(-1e-30, 1, &tare_qscheme_activation);
    assert_int_equal(p.zero_point, -128); /* clamped to the grid */
}

static void range_degenerate__is_widened_to_a_millionth(void **state) {
    struct tare_qparams p = params(0, 0, &tare_qscheme_activation);
    (void)state;
    assert_true(p.scale == 1e-6 / 255);
    p = params(1e-7, 2e-7, &tare_qscheme_activation);
    assert_true(p.scale == 1e-6 / 255);
}

static void range__nan_infinity_and_reversed_are_refused(void **state) {
    struct tare_qparams p;
    (void)state;
    assert_int_equal(tare_qparams_from_range(&p, NAN, 1, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_qparams_from_range(&p, 0, INFINITY, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_qparams_from_range(&p, 2, 1, &tare_qscheme_activation), TARE_INVALID_ARGUMENT);
}

static void bits__four_give_minus_eight_to_seven(void **state) {
    const struct tare_qscheme full = { .bits = 4, .symmetric = true },
                              narrow = { .bits = 4, .symmetric = true, .narrow = true };
    struct tare_qparams p = params(-1, 1, &full);
    (void)state;
    assert_int_equal(p.qmin, -8);
    assert_int_equal(p.qmax, 7);
    p = params(-1, 1, &narrow);
    assert_int_equal(p.qmin, -7);
    assert_true(p.scale == 2.0 / 14);
}

static void constant_round_half_away__ties_and_saturation(void **state) {
    const struct tare_qparams p = { .scale = 1, .zero_point = 3, .qmin = -128, .qmax = 127 };
    (void)state;
    assert_int_equal(tare_quantize_constant(0.5, &p), 4);
    assert_int_equal(tare_quantize_constant(-0.5, &p), 2);
    assert_int_equal(tare_quantize_constant(1.5, &p), 5);
    assert_int_equal(tare_quantize_constant(2.5, &p), 6); /* to even it would be 5 */
    assert_int_equal(tare_quantize_constant(1e9, &p), 127);
    assert_int_equal(tare_quantize_constant(-1e9, &p), -128);
    assert_int_equal(tare_quantize_constant(NAN, &p), 3);
}

static void weight__each_channel_has_its_own_scale(void **state) {
    struct tare_shape shape = tare_shape_make(2, 2, 3); /* [rows, channels] */
    const float values[] = { 1.27f, 0.0f, -25.4f, -0.635f, 0.0f, 12.7f };
    struct tare_quantized_weight q;
    struct tare_arena arena = { 0 };
    struct tare_tensor weight;
    const int8_t *out;
    (void)state;
    assert_int_equal(tare_tensor_from(&weight, TARE_DT_FLOAT, &shape, values), TARE_OK);
    assert_int_equal(tare_quantize_weight(&q, &arena, &weight, &(struct tare_weight_layout){ 1, 2, 3, 0, false },
                                          &tare_qscheme_weight),
                     TARE_OK);
    out = TARE_CONST_DATA(int8_t, &q.values);
    assert_int_equal(q.n_scales, 3);
    assert_true(fabs(q.scales[0] - 0.01) < 1e-8);
    assert_true(fabs(q.scales[2] - 0.2) < 1e-7);
    assert_int_equal(out[0], 127);
    assert_int_equal(out[3], -64); /* -63.5: half away from zero */
    assert_int_equal(out[2], -127);
    assert_int_equal(out[5], 64);
    assert_int_equal(out[1], 0); /* an all-zero channel stays zero */
    tare_tensor_reset(&q.values);
    tare_tensor_reset(&weight);
    tare_arena_free(&arena);
}

static void weight__one_channel_is_the_same_as_per_tensor(void **state) {
    struct tare_shape shape = tare_shape_make(2, 4, 1);
    const float values[] = { 0.3f, -0.7f, 0.11f, 0.69f };
    struct tare_quantized_weight a, b;
    struct tare_arena arena = { 0 };
    struct tare_tensor weight;
    (void)state;
    assert_int_equal(tare_tensor_from(&weight, TARE_DT_FLOAT, &shape, values), TARE_OK);
    assert_int_equal(tare_quantize_weight(&a, &arena, &weight, &(struct tare_weight_layout){ 1, 4, 1, 0, false },
                                          &tare_qscheme_weight),
                     TARE_OK);
    assert_int_equal(tare_quantize_weight(&b, &arena, &weight, &(struct tare_weight_layout){ 1, 4, 1, 0, true },
                                          &tare_qscheme_weight),
                     TARE_OK);
    assert_memory_equal(a.values.data, b.values.data, 4);
    assert_true(a.scales[0] == b.scales[0]);
    tare_tensor_reset(&a.values);
    tare_tensor_reset(&b.values);
    tare_tensor_reset(&weight);
    tare_arena_free(&arena);
}

static void weight__nan_is_refused(void **state) {
    struct tare_shape shape = tare_shape_make(1, 2);
    const float values[] = { 1, NAN };
    struct tare_quantized_weight q;
    struct tare_arena arena = { 0 };
    struct tare_tensor weight;
    (void)state;
    assert_int_equal(tare_tensor_from(&weight, TARE_DT_FLOAT, &shape, values), TARE_OK);
    assert_int_equal(tare_quantize_weight(&q, &arena, &weight, &(struct tare_weight_layout){ 1, 1, 2, 0, false },
                                          &tare_qscheme_weight),
                     TARE_INVALID_ARGUMENT);
    tare_tensor_reset(&weight);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_contains_zero__positive_range_begins_at_zero),
        cmocka_unit_test(range_contains_zero__negative_range_ends_at_zero),
        cmocka_unit_test(zero_point__rounds_half_away_from_zero),
        cmocka_unit_test(range_symmetric__takes_the_larger_side),
        cmocka_unit_test(range_symmetric_full__the_side_that_needs_more_decides),
        cmocka_unit_test(zero_point__of_the_end_with_less_error),
        cmocka_unit_test(range_degenerate__is_widened_to_a_millionth),
        cmocka_unit_test(range__nan_infinity_and_reversed_are_refused),
        cmocka_unit_test(bits__four_give_minus_eight_to_seven),
        cmocka_unit_test(constant_round_half_away__ties_and_saturation),
        cmocka_unit_test(weight__each_channel_has_its_own_scale),
        cmocka_unit_test(weight__one_channel_is_the_same_as_per_tensor),
        cmocka_unit_test(weight__nan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
