/* Quantization of weights: scales per channel and per tensor, and rounding. */
#include "quant/weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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

static void weight__single_channel_equals_per_tensor(void **state) {
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

static void weight__nan_is_an_error(void **state) {
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
        cmocka_unit_test(weight__each_channel_has_its_own_scale),
        cmocka_unit_test(weight__single_channel_equals_per_tensor),
        cmocka_unit_test(weight__nan_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
