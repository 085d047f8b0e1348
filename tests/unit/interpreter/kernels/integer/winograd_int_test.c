/* Winograd's algorithm has the sums of the plain loops, at the extremes too, and requantizes them as the separate steps
 * do, at every level. */
#include "base/alloc.h"
#include "interpreter/kernels/integer/winograd_int.h"
#include "support/guarded.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tare_conv conv_of(int64_t height, int64_t width, int64_t in_channels, int64_t out_channels, int64_t pad) {
    return (struct tare_conv){ .batch = 2,
                               .in = { 1, height, width },
                               .in_channels = in_channels,
                               .kernel = { 1, 3, 3 },
                               .out = { 1, height + 2 * pad - 2, width + 2 * pad - 2 },
                               .out_channels = out_channels,
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, pad, pad },
                               .groups = 1 };
}

static void store(void *to, int32_t *sums, int64_t first, int64_t count) {
    memcpy((int32_t *)to + first, sums, (size_t)count * 4);
}

/* What tare_requantize does with a sum, in separate steps. */
static uint8_t requantized(const struct tare_requantize *r, int32_t sum, int64_t column) {
    float x = (float)(sum + r->offset[column]) * r->scale[column] + r->first.add;
    x = fminf(r->first.high, fmaxf(r->first.low, x));
    return (uint8_t)(int)rintf(x);
}

/* The sums and, from AVX2 on, the requantized values of all levels. */
static void check_levels(const struct tare_conv *conv, const int8_t *input, const void *packed,
                         const int32_t *expected) {
    const int64_t out = tare_conv_rows(conv) * conv->out_channels;
    const size_t sums_bytes = (size_t)tare_winograd_int_sums(conv) * 4, scratch_bytes = tare_winograd_int_scratch(conv);
    int32_t *got = guarded_block((size_t)out * 4), *sums = guarded_block(sums_bytes), *offset = guarded_block(4000 * 4);
    float *scale = guarded_block(4000 * 4);
    uint8_t *bytes = guarded_block((size_t)out);
    void *scratch = guarded_block(scratch_bytes);
    for (int64_t i = 0; i < conv->out_channels + 16; i++) {
        offset[i] = (int32_t)(1000 * (i % conv->out_channels));
        scale[i] = 1e-4F * (float)(1 + i % conv->out_channels);
    }
    const struct tare_requantize requantize = {
        .columns = conv->out_channels, .offset = offset, .scale = scale, .first = { -3, -128, 127 }, .to = bytes
    };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        struct tare_conv_int_sink sink = { .take = store, .arg = got };
        memset(got, 0, (size_t)out * 4);
        tare_winograd_int_at(level, &sink, conv, input, packed, sums, scratch);
        assert_memory_equal(got, expected, (size_t)out * 4);
        if (!tare_igemm_requantizes(level)) continue;
        sink.requantize = &requantize;
        memset(bytes, 0x11, (size_t)out);
        tare_winograd_int_at(level, &sink, conv, input, packed, sums, scratch);
        for (int64_t i = 0; i < out; i++)
            assert_int_equal(bytes[i], requantized(&requantize, expected[i], i % conv->out_channels));
    }
    assert_block_guard(got, (size_t)out * 4), assert_block_guard(sums, sums_bytes),
        assert_block_guard(scratch, scratch_bytes);
    assert_block_guard(bytes, (size_t)out);
    tare_free(got), tare_free(sums), tare_free(offset), tare_free(scale), tare_free(bytes), tare_free(scratch);
}

/* `value`: of all inputs and weights; 0: random. */
static void check(const struct tare_conv *conv, int8_t value) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t weights = 9 * conv->in_channels * conv->out_channels;
    const int64_t out = tare_conv_rows(conv) * conv->out_channels;
    int8_t *x = guarded_block((size_t)in), *w = guarded_block((size_t)weights);
    int32_t *x32 = guarded_block((size_t)in * 4), *w32 = guarded_block((size_t)weights * 4),
            *expected = guarded_block((size_t)out * 4);
    const size_t packed_bytes = tare_winograd_int_packed_bytes(conv);
    void *packed = guarded_block(packed_bytes);
    for (int64_t i = 0; i < in; i++)
        x32[i] = x[i] = value ? value : random_int8();
    for (int64_t i = 0; i < weights; i++)
        w32[i] = w[i] = value ? value : random_int8();
    assert_true(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, conv));
    assert_int_equal(tare_winograd_int_pack(packed, conv, w), TARE_OK);
    assert_block_guard(packed, packed_bytes);
    tare_conv_plain_i32(expected, conv, x32, w32);
    check_levels(conv, x, packed, expected);
    tare_free(x), tare_free(w), tare_free(x32), tare_free(w32), tare_free(expected), tare_free(packed);
}

static void sums__are_those_of_the_plain_loops(void **unused) {
    (void)unused;
    static const int64_t sizes[][4] = { /* height, width, channels in, out */
                                        { 8, 8, 32, 64 },  { 9, 7, 48, 80 },   { 3, 3, 32, 32 },
                                        { 5, 12, 32, 48 }, { 30, 61, 32, 32 }, { 14, 14, 64, 144 }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int64_t pad = 0; pad <= 3; pad++) {
            const struct tare_conv conv = conv_of(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], pad);
            check(&conv, 0);
        }
    }
}

static void sums__of_the_extremes(void **unused) {
    (void)unused;
    const struct tare_conv conv = conv_of(4, 4, 3632, 32, 0);
    check(&conv, -128);
    check(&conv, 127);
}

/* Padding with a value equals a convolution of the padded input. */
static void padding__has_its_value(void **unused) {
    (void)unused;
    enum { SIZE = 6, PADDED = SIZE + 2, CHANNELS = 32, OUT = SIZE * SIZE * CHANNELS };
    struct tare_conv conv = conv_of(PADDED, PADDED, CHANNELS, CHANNELS, 0);
    int8_t *inner = guarded_block(SIZE * SIZE * CHANNELS), *w = guarded_block(9 * CHANNELS * CHANNELS);
    int32_t *x32 = guarded_block(PADDED * PADDED * CHANNELS * 4), *w32 = guarded_block(9 * CHANNELS * CHANNELS * 4);
    int32_t *expected = guarded_block(OUT * 4);
    void *packed = guarded_block(tare_winograd_int_packed_bytes(&conv));
    conv.batch = 1;
    for (int i = 0; i < PADDED * PADDED * CHANNELS; i++) {
        const int h = i / CHANNELS / PADDED - 1, v = i / CHANNELS % PADDED - 1;
        const bool is_inside = h >= 0 && h < SIZE && v >= 0 && v < SIZE;
        x32[i] = is_inside ? random_int8() : -77;
        if (is_inside) inner[(h * SIZE + v) * CHANNELS + i % CHANNELS] = (int8_t)x32[i];
    }
    for (int i = 0; i < 9 * CHANNELS * CHANNELS; i++)
        w32[i] = w[i] = random_int8();
    tare_conv_plain_i32(expected, &conv, x32, w32);
    conv.in[1] = conv.in[2] = SIZE, conv.pad[1] = conv.pad[2] = 1, conv.pad_value = -77;
    assert_int_equal(tare_winograd_int_pack(packed, &conv, w), TARE_OK);
    check_levels(&conv, inner, packed, expected);
    tare_free(inner), tare_free(w), tare_free(x32), tare_free(w32), tare_free(expected), tare_free(packed);
}

static void convolutions__that_are_not_for_it(void **unused) {
    (void)unused;
    const struct tare_conv conv = conv_of(8, 8, 32, 32, 1);
    struct tare_conv other = conv;
    assert_true(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &conv));
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_QUADS, &conv));
    other.in_channels = 3648; /* sums of products could exceed 2^29 */
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &other));
    other = conv, other.stride[1] = 2;
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &other));
    other = conv, other.dilation[1] = 2;
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &other));
    other = conv, other.kernel[2] = 5;
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &other));
    other = conv, other.out_channels = 40;
    assert_false(tare_winograd_int_is_for(TARE_IGEMM_PAIRS, &other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums__are_those_of_the_plain_loops),
        cmocka_unit_test(sums__of_the_extremes),
        cmocka_unit_test(padding__has_its_value),
        cmocka_unit_test(convolutions__that_are_not_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
