/* Int8 convolutions of a dilated input equal the plain convolution of the input with pad_value between and around its
 * elements, at every level. */
#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_phases.h"
#include "support/guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void store(void *to, int32_t *sums, int64_t first, int64_t count) {
    memcpy((int32_t *)to + first, sums, (size_t)count * 4);
}

static int64_t spread(int64_t in, int64_t every) {
    return in == 0 ? 0 : (in - 1) * every + 1;
}

/* `behind`: padding after height and width, of the dilated input. */
static struct tare_conv conv_of(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t outputs,
                                const int64_t kernel[2], const int64_t every[2], int64_t pad, int64_t behind) {
    struct tare_conv conv = { .batch = batch,
                              .in = { 1, height, width },
                              .in_channels = channels,
                              .kernel = { 1, kernel[0], kernel[1] },
                              .out_channels = outputs,
                              .stride = { 1, 1, 1 },
                              .dilation = { 1, 1, 1 },
                              .base_dilation = { 1, every[0], every[1] },
                              .pad = { 0, pad, pad },
                              .groups = 1 };
    conv.out[0] = 1;
    for (int i = 1; i <= 2; i++)
        conv.out[i] = spread(conv.in[i], every[i - 1]) + pad + behind - kernel[i - 1] + 1;
    return conv;
}

/* The input with what is between and around its elements. */
static int32_t *explicit_input(struct tare_conv *whole, const struct tare_conv *conv, const int8_t *input) {
    *whole = *conv;
    for (int i = 1; i <= 2; i++) {
        whole->in[i] = conv->out[i] + (conv->kernel[i] - 1) * conv->dilation[i];
        whole->base_dilation[i] = 1;
        whole->pad[i] = 0;
    }
    const int64_t c = conv->in_channels, count = conv->batch * whole->in[1] * whole->in[2] * c;
    int32_t *to = guarded_block((size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = i / c % whole->in[2] - conv->pad[2], y = i / c / whole->in[2] % whole->in[1] - conv->pad[1];
        const int64_t image = i / c / whole->in[2] / whole->in[1], h = conv->base_dilation[1],
                      w = conv->base_dilation[2];
        const bool is_inside =
            x >= 0 && y >= 0 && x % w == 0 && y % h == 0 && x / w < conv->in[2] && y / h < conv->in[1];
        to[i] = is_inside ? input[((image * conv->in[1] + y / h) * conv->in[2] + x / w) * c + i % c] : conv->pad_value;
    }
    return to;
}

static void check(const struct tare_conv *conv) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t weights = tare_conv_patch(conv) * conv->out_channels, n = tare_conv_rows(conv) * conv->out_channels;
    int8_t *input = guarded_block((size_t)in), *filter = guarded_block((size_t)weights);
    int32_t *wide_filter = guarded_block((size_t)weights * 4);
    int32_t *expected = guarded_block((size_t)n * 4), *got = guarded_block((size_t)n * 4);
    struct tare_conv whole;
    for (int64_t i = 0; i < in; i++)
        input[i] = random_int8();
    for (int64_t i = 0; i < weights; i++)
        wide_filter[i] = filter[i] = random_int8();
    int32_t *wide = explicit_input(&whole, conv, input);
    tare_conv_plain_i32(expected, &whole, wide, wide_filter);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        const enum tare_igemm_form form = tare_conv_int_phases_form(level);
        assert_true(tare_conv_int_has_phases(form, conv));
        const size_t bytes = tare_conv_int_phases_packed_bytes(form, conv);
        const size_t sums_bytes = (size_t)tare_conv_int_phases_sums(conv) * 4;
        const size_t scratch_bytes = tare_conv_int_phases_scratch(form, conv);
        void *packed = guarded_block(bytes), *sums = guarded_block(sums_bytes), *room = guarded_block(scratch_bytes);
        const struct tare_conv_int_sink sink = { .take = store, .arg = got };
        assert_int_equal(tare_conv_int_phases_pack(packed, form, conv, filter), TARE_OK);
        memset(got, 0, (size_t)n * 4);
        tare_conv_int_phases_at(level, &sink, conv, input, form, packed, sums, room);
        assert_memory_equal(got, expected, (size_t)n * 4);
        assert_block_guard(packed, bytes), assert_block_guard(sums, sums_bytes),
            assert_block_guard(room, scratch_bytes);
        tare_free(packed), tare_free(sums), tare_free(room);
    }
    tare_free(input), tare_free(filter), tare_free(wide_filter), tare_free(wide), tare_free(expected), tare_free(got);
}

static void phases__kernels_and_strides(void **unused) {
    (void)unused;
    static const int64_t kernels[][2] = {
        { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 5 }, { 1, 3 }, { 3, 1 }, { 1, 1 }, { 7, 2 }
    };
    static const int64_t every[][2] = { { 2, 2 }, { 3, 3 }, { 1, 2 }, { 2, 1 }, { 4, 3 } };
    static const int64_t channels[] = { 1, 3, 16, 33 };
    for (int i = 0; i < 160; i++) {
        const int64_t *kernel = kernels[i % 8], least = kernel[0] > kernel[1] ? kernel[0] : kernel[1];
        struct tare_conv conv = conv_of(1 + i % 2, 4 + i % 5, 5 + i % 7, channels[i % 4], 1 + i % 21, kernel,
                                        every[i / 8 % 5], least - 1, least - 1 - (least > 1 && i % 3 == 0));
        conv.pad_value = (int8_t)(i % 4 == 0 ? 0 : i % 4 == 1 ? -128 : i % 4 == 2 ? 127 : -7);
        check(&conv);
    }
}

/* More than one block of lines, and taps that a dilation leaves out. */
static void phases__large_and_dilated(void **unused) {
    (void)unused;
    struct tare_conv conv = conv_of(2, 40, 36, 8, 24, (const int64_t[]){ 3, 3 }, (const int64_t[]){ 2, 2 }, 2, 1);
    conv.pad_value = 5;
    check(&conv);
    conv = conv_of(1, 9, 200, 4, 200, (const int64_t[]){ 4, 4 }, (const int64_t[]){ 2, 2 }, 3, 3);
    check(&conv);
    conv = conv_of(1, 9, 11, 12, 7, (const int64_t[]){ 3, 3 }, (const int64_t[]){ 2, 3 }, 4, 4);
    conv.dilation[1] = 2, conv.out[1] -= 2, conv.pad_value = -3;
    check(&conv);
}

static void phases__are_not_for(void **unused) {
    (void)unused;
    const struct tare_conv usual = conv_of(1, 6, 6, 4, 4, (const int64_t[]){ 3, 3 }, (const int64_t[]){ 2, 2 }, 2, 1);
    struct tare_conv conv = usual;
    assert_true(tare_conv_int_has_phases(TARE_IGEMM_PAIRS, &conv));
    conv.groups = 2;
    assert_false(tare_conv_int_has_phases(TARE_IGEMM_PAIRS, &conv));
    conv = usual, conv.stride[1] = 2;
    assert_false(tare_conv_int_has_phases(TARE_IGEMM_PAIRS, &conv));
    conv = usual, conv.pad[1] = -1; /* cropped in front */
    assert_false(tare_conv_int_has_phases(TARE_IGEMM_PAIRS, &conv));
    conv = usual, conv.base_dilation[1] = conv.base_dilation[2] = 1;
    assert_false(tare_conv_int_has_phases(TARE_IGEMM_PAIRS, &conv));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases__kernels_and_strides),
        cmocka_unit_test(phases__large_and_dilated),
        cmocka_unit_test(phases__are_not_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
