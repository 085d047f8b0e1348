/* Winograd's algorithm with VNNI has the sums of the plain loops, at the extremes too, and converts them as the
 * separate steps do. Machines without VNNI test nothing here. */
#include "base/alloc.h"
#include "interpreter/kernels/integer/winograd_vnni.h"
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
                               .pad_value = -77,
                               .groups = 1 };
}

/* Operands, what the plain loops compute, and memory of the kernel. */
struct test {
    const struct tare_conv *conv;
    int8_t *input;
    void *packed, *scratch;
    int32_t *expected, *got, *sums, *offset;
    float *scale;
    size_t packed_bytes, scratch_bytes, sums_bytes;
    int64_t out;
};

/* The plain loops pad with zeros: of an input that is padded already. */
static void expect_sums(const struct test *t, const int8_t *weights) {
    const struct tare_conv *conv = t->conv;
    const int64_t channels = conv->in_channels, n = 9 * channels * conv->out_channels;
    struct tare_conv padded = *conv;
    for (int i = 1; i < 3; i++)
        padded.in[i] = conv->in[i] + 2 * conv->pad[i], padded.pad[i] = 0;
    const int64_t line = padded.in[2] * channels, count = padded.batch * padded.in[1] * line;
    int32_t *x = guarded_block((size_t)count * 4), *w = guarded_block((size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        w[i] = weights[i];
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / line, image = row / padded.in[1];
        const int64_t h = row % padded.in[1] - conv->pad[1], v = i % line / channels - conv->pad[2];
        const bool is_inside = h >= 0 && h < conv->in[1] && v >= 0 && v < conv->in[2];
        x[i] = is_inside ? t->input[((image * conv->in[1] + h) * conv->in[2] + v) * channels + i % channels]
                         : conv->pad_value;
    }
    tare_conv_plain_i32(t->expected, &padded, x, w);
    tare_free(x), tare_free(w);
}

/* `x`, `w`: the values of all inputs and weights; 0: random ones. */
static struct test open_test(const struct tare_conv *conv, int8_t x, int8_t w) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t count = 9 * conv->in_channels * conv->out_channels;
    struct test t = { .conv = conv, .out = tare_conv_rows(conv) * conv->out_channels };
    int8_t *weights = guarded_block((size_t)count);
    t.packed_bytes = tare_winograd_vnni_packed_bytes(conv), t.scratch_bytes = tare_winograd_vnni_scratch(conv);
    t.sums_bytes = (size_t)tare_winograd_vnni_sums(conv) * 4;
    t.input = guarded_block((size_t)in), t.packed = guarded_block(t.packed_bytes);
    t.scratch = guarded_block(t.scratch_bytes), t.sums = guarded_block(t.sums_bytes);
    t.expected = guarded_block((size_t)t.out * 4), t.got = guarded_block((size_t)t.out * 4);
    t.offset = guarded_block(300 * 4), t.scale = guarded_block(300 * 4);
    for (int64_t i = 0; i < in; i++)
        t.input[i] = x ? x : random_int8();
    for (int64_t i = 0; i < count; i++)
        weights[i] = w ? w : random_int8();
    for (int64_t i = 0; i < conv->out_channels + 16; i++) {
        t.offset[i] = (int32_t)(1000 * (i % conv->out_channels));
        t.scale[i] = 1e-4F * (float)(1 + i % conv->out_channels);
    }
    tare_winograd_vnni_pack(t.packed, conv, weights);
    expect_sums(&t, weights);
    tare_free(weights);
    return t;
}

static void close_test(const struct test *t) {
    assert_block_guard(t->packed, t->packed_bytes), assert_block_guard(t->scratch, t->scratch_bytes);
    assert_block_guard(t->sums, t->sums_bytes), assert_block_guard(t->got, (size_t)t->out * 4);
    tare_free(t->input), tare_free(t->packed), tare_free(t->scratch), tare_free(t->expected), tare_free(t->got);
    tare_free(t->sums), tare_free(t->offset), tare_free(t->scale);
}

static void store(void *to, int32_t *sums, int64_t first, int64_t count) {
    memcpy((int32_t *)to + first, sums, (size_t)count * 4);
}

static void check_sums(const struct test *t) {
    const struct tare_conv_int_sink sink = { .take = store, .arg = t->got };
    memset(t->got, 0x11, (size_t)t->out * 4);
    tare_winograd_vnni_run(&sink, t->conv, t->input, t->packed, t->sums, t->scratch);
    assert_memory_equal(t->got, t->expected, (size_t)t->out * 4);
}

static float scaled(const struct test *t, int64_t i) {
    const int64_t column = i % t->conv->out_channels;
    return (float)(t->expected[i] + t->offset[column]) * t->scale[column];
}

/* Bytes of the output channels [first, first + count), or all; the others are not written. */
static void check_bytes(const struct test *t, struct tare_quantize_stage stage, int64_t first, int64_t count) {
    uint8_t *bytes = guarded_block((size_t)t->out);
    const struct tare_requantize requantize = {
        .columns = t->conv->out_channels, .offset = t->offset, .scale = t->scale, .first = stage, .to = bytes
    };
    const struct tare_conv_int_sink sink = { .requantize = &requantize, .first_channel = first, .channels = count };
    memset(bytes, 0x11, (size_t)t->out);
    tare_winograd_vnni_run(&sink, t->conv, t->input, t->packed, NULL, t->scratch);
    for (int64_t i = 0; i < t->out; i++) {
        const int64_t column = i % t->conv->out_channels;
        const bool is_computed = count == 0 || (column >= first && column < first + count);
        const float x = fminf(stage.high, fmaxf(stage.low, scaled(t, i) + stage.add));
        assert_int_equal(bytes[i], is_computed ? (uint8_t)(int)rintf(x) : 0x11);
    }
    assert_block_guard(bytes, (size_t)t->out);
    tare_free(bytes);
}

static void check_floats(const struct test *t) {
    const struct tare_requantize requantize = {
        .is_real = true,
        .real = { .floats = (float *)(void *)t->got, .low = 0, .high = INFINITY },
        .columns = t->conv->out_channels,
        .offset = t->offset,
        .scale = t->scale,
    };
    const struct tare_conv_int_sink sink = { .requantize = &requantize };
    memset(t->got, 0x11, (size_t)t->out * 4);
    tare_winograd_vnni_run(&sink, t->conv, t->input, t->packed, NULL, t->scratch);
    for (int64_t i = 0; i < t->out; i++)
        assert_true(((const float *)(const void *)t->got)[i] == fmaxf(0, scaled(t, i)));
}

static void check(const struct tare_conv *conv, int8_t x, int8_t w) {
    const struct tare_quantize_stage is_signed = { -3, -128, 127 }, is_unsigned = { 5, 0, 255 };
    const struct test t = open_test(conv, x, w);
    check_sums(&t);
    check_bytes(&t, is_signed, 0, 0);
    check_bytes(&t, is_unsigned, 0, 0);
    if (conv->out_channels > 64) check_bytes(&t, is_signed, 64, conv->out_channels - 64);
    check_floats(&t);
    close_test(&t);
}

static void sums__are_those_of_the_plain_loops(void **unused) {
    (void)unused;
    static const int64_t sizes[][4] = { /* height, width, channels in, out */
                                        { 14, 14, 64, 64 }, { 9, 7, 96, 128 },  { 3, 3, 64, 64 },
                                        { 5, 61, 64, 96 },  { 30, 12, 64, 64 }, { 6, 16, 256, 96 }
    };
    if (tare_cpu_level() < TARE_CPU_VNNI) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int64_t pad = 0; pad <= 3; pad++) {
            const struct tare_conv conv = conv_of(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], pad);
            check(&conv, 0, 0);
        }
    }
}

/* A block consists of the last lines of an image and the first of the next. */
static void images__share_blocks(void **unused) {
    (void)unused;
    struct tare_conv conv = conv_of(14, 14, 64, 64, 1);
    if (tare_cpu_level() < TARE_CPU_VNNI) skip();
    conv.batch = 5;
    check(&conv, 0, 0);
}

/* 224 channels have the largest sums of one pass, and 256 are computed in two. */
static void sums__of_the_extremes(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 224, 256 };
    static const int8_t values[][2] = { { -128, -128 }, { -128, 127 }, { 127, -128 }, { 127, 127 } };
    if (tare_cpu_level() < TARE_CPU_VNNI) skip();
    for (int i = 0; i < 8; i++) {
        struct tare_conv conv = conv_of(6, 6, channels[i / 4], 64, 1);
        conv.pad_value = values[i % 4][0];
        check(&conv, values[i % 4][0], values[i % 4][1]);
    }
}

static void convolutions__that_are_not_for_it(void **unused) {
    (void)unused;
    const enum tare_cpu_level level = tare_cpu_level();
    const struct tare_conv conv = conv_of(14, 14, 64, 64, 1);
    struct tare_conv other = conv;
    if (level < TARE_CPU_VNNI) skip();
    assert_true(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &conv));
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_TILES, &conv));
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_PAIRS, &conv));
    assert_false(tare_winograd_vnni_is_for(TARE_CPU_AVX512, TARE_IGEMM_QUADS, &conv));
    other.in_channels = 288;
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
    other = conv, other.out_channels = 80;
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
    other = conv, other.stride[1] = 2;
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
    other = conv, other.dilation[2] = 2;
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
    other = conv, other.kernel[2] = 5;
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
    other = conv, other.out[2] = 13; /* 16 columns of tiles */
    assert_false(tare_winograd_vnni_is_for(level, TARE_IGEMM_QUADS, &other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums__are_those_of_the_plain_loops),
        cmocka_unit_test(images__share_blocks),
        cmocka_unit_test(sums__of_the_extremes),
        cmocka_unit_test(convolutions__that_are_not_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
