/* Convolutions, products and tilings that several threads compute have the bits of one thread. */
#include "support/guarded.h"

#include "base/arena.h"
#include "interpreter/kernels/conv_direct.h"
#include "interpreter/ops/support/split.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_THREADS = 5 };

static struct tare_conv conv_of(int64_t batch, int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                                int64_t groups) {
    const int64_t result = (size + stride - 1) / stride, pad = (result - 1) * stride + kernel - size;
    return (struct tare_conv){ .batch = batch,
                               .in = { 1, size, size },
                               .in_channels = in,
                               .kernel = { 1, kernel, kernel },
                               .out = { 1, result, result },
                               .out_channels = out,
                               .stride = { 1, stride, stride },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, pad > 0 ? pad / 2 : 0, pad > 0 ? pad / 2 : 0 },
                               .groups = groups };
}

static void check_conv(const struct tare_conv *conv, const char *what) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t out = tare_conv_rows(conv) * conv->out_channels, weights = tare_conv_patch(conv) * conv->out_channels;
    const int64_t packed = tare_conv_is_depthwise(conv) ? weights : (int64_t)tare_conv_packed_floats(conv);
    float *input = guarded_random(in), *filter = guarded_random(weights), *addend = guarded_random(out),
          *bias = guarded_random(conv->out_channels), *values = guarded(packed), *expected = guarded(out);
    const struct tare_gemm_epilogue epilogue = { .bias = bias, .addend = addend, .relu = true, .limit = 6 };
    struct tare_arena arena = { 0 };
    if (tare_conv_is_depthwise(conv))
        memcpy(values, filter, (size_t)weights * sizeof *values);
    else
        tare_conv_pack(values, conv, filter);
    assert_int_equal(tare_split_conv(NULL, &arena, expected, conv, input, values, &epilogue), TARE_OK);
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        char text[32];
        float *got = guarded(out);
        struct tare_pool *pool = tare_pool_new(threads);
        assert_non_null(pool);
        memset(got, 0xff, (size_t)out * sizeof *got);
        assert_int_equal(tare_split_conv(pool, &arena, got, conv, input, values, &epilogue), TARE_OK);
        snprintf(text, sizeof text, "%d threads", threads);
        assert_same_bits(got, expected, out, what, text);
        tare_pool_free(pool);
        free_guarded(got, out);
        tare_arena_reset(&arena);
    }
    free_guarded(input, in), free_guarded(filter, weights), free_guarded(addend, out);
    free_guarded(bias, conv->out_channels), free_guarded(values, packed), free_guarded(expected, out);
    tare_arena_free(&arena);
}

static void a_divided_convolution__has_the_bits_of_a_whole_one(void **state) {
    static const struct {
        const char *what;
        int64_t batch, size, in, out, kernel, stride, groups;
    } cases[] = {
        { "direct, by lines", 1, 23, 16, 64, 3, 1, 1 },     { "two images", 2, 9, 32, 400, 3, 2, 1 },
        { "heavy, by columns", 1, 7, 160, 500, 3, 1, 1 },   { "pointwise", 1, 14, 96, 300, 1, 1, 1 },
        { "pointwise, strided", 1, 15, 300, 130, 1, 2, 1 }, { "two groups", 1, 12, 64, 128, 3, 1, 2 },
        { "depthwise", 1, 90, 48, 48, 3, 1, 48 },           { "depthwise, strided", 3, 51, 64, 64, 5, 2, 64 },
        { "first layer", 1, 57, 3, 32, 7, 2, 1 },           { "blocks of parts larger", 3, 28, 64, 64, 3, 1, 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tare_conv conv = conv_of(cases[i].batch, cases[i].size, cases[i].in, cases[i].out, cases[i].kernel,
                                              cases[i].stride, cases[i].groups);
        assert_int_equal(tare_conv_check(&conv), TARE_OK);
        check_conv(&conv, cases[i].what);
    }
}

/* Parts have the scratch of the whole, also those that read nothing but the padding below the image. */
static void lines_of_padding__need_no_more_scratch(void **state) {
    (void)state;
    for (int64_t kernel = 1; kernel <= 5; kernel += 2) {
        struct tare_conv conv = conv_of(1, 6, 6, 60, kernel, 1, 1), part;
        conv.out[1] = 13;
        assert_true(tare_conv_is_direct(&conv));
        for (int64_t line = 0; line < conv.out[1]; line++) {
            for (int64_t count = 1; count <= conv.out[1] - line; count++) {
                (void)tare_conv_take_lines(&part, &conv, line, count);
                assert_true(part.pad[1] >= 0);
                assert_true(tare_conv_dense_scratch(&part) <= tare_conv_dense_scratch(&conv));
            }
        }
        check_conv(&conv, "padding below the image");
    }
}

static void check_gemm(int64_t m, int64_t n, int64_t k) {
    const int64_t packed = (int64_t)tare_gemm_packed_floats(k, n);
    float *a = guarded_random(m * k), *b = guarded_random(k * n), *bias = guarded_random(n), *p = guarded(packed),
          *expected = guarded(m * n);
    const struct tare_gemm_epilogue epilogue = { .bias = bias, .limit = INFINITY };
    const struct tare_gemm_rows rows = { .data = a, .stride = k };
    struct tare_split_product product = {
        .c = expected, .ldc = n, .rows = &rows, .packed = p, .m = m, .n = n, .k = k, .epilogue = &epilogue
    };
    struct tare_arena arena = { 0 };
    tare_gemm_pack(p, b, k, n, n, 1);
    assert_int_equal(tare_split_gemm(NULL, &arena, &product), TARE_OK);
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        char text[64];
        struct tare_pool *pool = tare_pool_new(threads);
        product.c = guarded(m * n);
        assert_int_equal(tare_split_gemm(pool, &arena, &product), TARE_OK);
        snprintf(text, sizeof text, "%lld x %lld x %lld", (long long)m, (long long)n, (long long)k);
        assert_same_bits(product.c, expected, m * n, text, "divided");
        tare_pool_free(pool);
        free_guarded(product.c, m * n);
    }
    free_guarded(a, m * k), free_guarded(b, k * n), free_guarded(bias, n), free_guarded(p, packed);
    free_guarded(expected, m * n);
    tare_arena_free(&arena);
}

static void a_divided_product__has_the_bits_of_a_whole_one(void **state) {
    (void)state;
    check_gemm(1, 1000, 2048);
    check_gemm(300, 65, 700);
    check_gemm(37, 500, 513);
}

/* Expansion, depthwise, projection with stride: neighbouring parts share intermediate lines. */
static void a_divided_tiling__has_the_bits_of_a_whole_one(void **state) {
    struct tare_conv convs[3] = { conv_of(1, 40, 8, 48, 1, 1, 1), conv_of(1, 40, 48, 48, 3, 2, 48),
                                  conv_of(1, 20, 48, 12, 1, 1, 1) };
    float *weights[3], *packed[3] = { NULL };
    const int64_t in = 2 * 40 * 40 * 8, out = 2 * 20 * 20 * 12;
    float *input = guarded_random(in), *expected = guarded(out), *got = guarded(out);
    struct tare_arena arena = { 0 };
    struct tare_pool *pool = tare_pool_new(3);
    (void)state;
    assert_non_null(pool);
    for (int parts = 1; parts <= MOST_THREADS; parts++) {
        struct tare_tiling tiling = { .n_stages = 3, .batch = 2, .parts = parts };
        for (int i = 0; i < 3; i++) {
            const int64_t size = tare_conv_patch(&convs[i]) * convs[i].out_channels;
            tiling.stages[i].conv = convs[i];
            if (parts == 1) {
                weights[i] = guarded_random(size);
                if (i != 1) packed[i] = guarded((int64_t)tare_conv_packed_floats(&convs[i]));
                if (i != 1) tare_conv_pack(packed[i], &convs[i], weights[i]);
            }
            tiling.stages[i].weights = i == 1 ? weights[i] : packed[i];
        }
        tare_tiling_plan(&tiling, 6000);
        assert_int_equal(tiling.parts, parts);
        memset(got, 0xff, (size_t)out * sizeof *got);
        tiling.parts = parts;
        assert_int_equal(
            tare_split_tiling(parts <= 3 ? pool : NULL, &arena, &tiling, parts == 1 ? expected : got, input), TARE_OK);
        if (parts > 1 && parts <= 3) assert_same_bits(got, expected, out, "tiling", "divided");
        tare_arena_reset(&arena);
    }
    for (int i = 0; i < 3; i++) {
        free_guarded(weights[i], tare_conv_patch(&convs[i]) * convs[i].out_channels);
        if (packed[i]) free_guarded(packed[i], (int64_t)tare_conv_packed_floats(&convs[i]));
    }
    free_guarded(input, in), free_guarded(expected, out), free_guarded(got, out);
    tare_pool_free(pool);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_divided_convolution__has_the_bits_of_a_whole_one),
        cmocka_unit_test(lines_of_padding__need_no_more_scratch),
        cmocka_unit_test(a_divided_product__has_the_bits_of_a_whole_one),
        cmocka_unit_test(a_divided_tiling__has_the_bits_of_a_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
