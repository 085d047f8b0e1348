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

/* As FakeQuant leaves them: codes of at most 101 in column 0, and of 127 in column 1. Column 2 is on no grid. */
static void weight__on_a_grid_keeps_it(void **state) {
    enum { ROWS = 40, COLUMNS = 3 };
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)COLUMNS);
    const float step = 3.0f / 127;
    struct tare_arena arena = { 0 };
    (void)state;
    for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
        struct tare_quantized_weight q;
        struct tare_tensor weight;
        float *w;
        assert_int_equal(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape), TARE_OK);
        w = TARE_DATA(float, &weight);
        for (int r = 0; r < ROWS; r++) {
            w[r * COLUMNS] = (float)(r * 37 % 203 - 101) * step;
            w[r * COLUMNS + 1] = (float)(r ? r * 11 % 97 - 40 : 127) * step;
            w[r * COLUMNS + 2] = per_tensor ? w[r * COLUMNS] : sinf((float)r);
        }
        assert_int_equal(tare_quantize_weight(&q, &arena, &weight,
                                              &(struct tare_weight_layout){ 1, ROWS, COLUMNS, 0, per_tensor },
                                              &tare_qscheme_weight),
                         TARE_OK);
        assert_true(fabs(q.scales[0] / (double)step - 1) < 1e-6);
        for (int r = 0; r < ROWS; r++) {
            assert_int_equal(TARE_CONST_DATA(int8_t, &q.values)[r * COLUMNS], r * 37 % 203 - 101);
            assert_int_equal(TARE_CONST_DATA(int8_t, &q.values)[r * COLUMNS + 1], r ? r * 11 % 97 - 40 : 127);
        }
        if (!per_tensor) {
            double most = 0;
            for (int r = 0; r < ROWS; r++)
                most = fmax(most, fabs((double)sinf((float)r)));
            assert_true(fabs(q.scales[2] - most / 127) < 1e-12);
        }
        tare_tensor_reset(&q.values);
        tare_tensor_reset(&weight);
    }
    tare_arena_free(&arena);
}

/* float8-kept-grid: numbers of the format times a scale keep their codes, or codes of powers of two of them. */
static void weight__on_a_float8_grid_keeps_it(void **state) {
    enum { ROWS = 9 };
    static const double numbers[2][ROWS] = { { 3, 0, -240, 144, 0, 52, -1.125, 44, 0.015625 },
                                             { 0.875, -1.25, 0, 3.5, -7, 0.4375, 1, -14, 10 } };
    static const double power[2] = { 1, 32 }; /* 480 is beyond the largest number, 448 */
    const struct tare_qscheme scheme = { .bits = 8, .symmetric = true, .narrow = true, .format = TARE_FORMAT_E4M3 };
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)1);
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct tare_arena arena = { 0 };
        struct tare_quantized_weight q;
        struct tare_tensor weight;
        assert_int_equal(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape), TARE_OK);
        for (int r = 0; r < ROWS; r++)
            TARE_DATA(float, &weight)[r] = (float)(numbers[k][r] * 0.3);
        assert_int_equal(
            tare_quantize_weight(&q, &arena, &weight, &(struct tare_weight_layout){ 1, ROWS, 1, 0, false }, &scheme),
            TARE_OK);
        assert_true(fabs(q.scales[0] / (0.3 / power[k]) - 1) < 1e-6);
        for (int r = 0; r < ROWS; r++)
            assert_true(tare_weight_code(&q, r) == numbers[k][r] * power[k]);
        tare_tensor_reset(&q.values);
        tare_tensor_reset(&weight);
        tare_arena_free(&arena);
    }
}

/* A channel of a depthwise filter has 9 values, and some of them are 0. */
static void weight__few_values_on_a_grid_keep_it(void **state) {
    enum { ROWS = 9 };
    static const int codes[ROWS] = { 3, 0, -90, 17, 0, 55, -1, 41, 8 };
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)1);
    struct tare_arena arena = { 0 };
    struct tare_quantized_weight q;
    struct tare_tensor weight;
    (void)state;
    assert_int_equal(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape), TARE_OK);
    for (int r = 0; r < ROWS; r++)
        TARE_DATA(float, &weight)[r] = (float)codes[r] * (3.0f / 254);
    assert_int_equal(tare_quantize_weight(&q, &arena, &weight, &(struct tare_weight_layout){ 1, ROWS, 1, 0, false },
                                          &tare_qscheme_weight),
                     TARE_OK);
    for (int r = 0; r < ROWS; r++)
        assert_int_equal(TARE_CONST_DATA(int8_t, &q.values)[r], codes[r]);
    tare_tensor_reset(&q.values);
    tare_tensor_reset(&weight);
    tare_arena_free(&arena);
}

/* Squared error of each column, added to `errors`. */
static void add_errors(double *errors, const struct tare_tensor *weight, int64_t block, int bits) {
    const struct tare_qscheme scheme = { .bits = bits, .symmetric = true, .narrow = true };
    const int64_t rows = weight->shape.dims[0], columns = weight->shape.dims[1];
    const struct tare_weight_layout layout = { 1, rows, columns, block, false };
    struct tare_quantized_weight q;
    struct tare_arena arena = { 0 };
    assert_int_equal(tare_quantize_weight(&q, &arena, weight, &layout, &scheme), TARE_OK);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const double code = TARE_CONST_DATA(int8_t, &q.values)[r * columns + c];
            const double left = (double)TARE_CONST_DATA(float, weight)[r * columns + c] -
                                code * q.scales[tare_weight_scale_index(&q, 0, r, c)];
            errors[c] += left * left;
        }
    tare_tensor_reset(&q.values);
    tare_arena_free(&arena);
}

/* Few values per scale: with scales by the extremes of each block alone, some columns would lose more. */
static void smaller_blocks__never_have_a_larger_squared_error(void **state) {
    enum { ROWS = 90, COLUMNS = 400 };
    static const int64_t blocks[] = { 0, 64, 32, 16, 8 };
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)COLUMNS);
    struct tare_tensor weight;
    uint32_t seed = 1;
    (void)state;
    assert_int_equal(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape), TARE_OK);
    for (int64_t i = 0; i < weight.elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        TARE_DATA(float, &weight)[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    for (int bits = 4; bits <= 8; bits += 4) {
        double errors[5][COLUMNS] = { 0 };
        for (int b = 0; b < 5; b++)
            add_errors(errors[b], &weight, blocks[b], bits);
        for (int b = 1; b < 5; b++)
            for (int c = 0; c < COLUMNS; c++)
                if (!(errors[b][c] <= errors[b - 1][c]))
                    fail_msg("%d bits, column %d: %.9g in blocks of %d, %.9g before", bits, c, errors[b][c],
                             (int)blocks[b], errors[b - 1][c]);
    }
    tare_tensor_reset(&weight);
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
        cmocka_unit_test(weight__on_a_grid_keeps_it),
        cmocka_unit_test(weight__on_a_float8_grid_keeps_it),
        cmocka_unit_test(weight__few_values_on_a_grid_keep_it),
        cmocka_unit_test(smaller_blocks__never_have_a_larger_squared_error),
        cmocka_unit_test(weight__nan_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
