/* Convolutions that requantize their sums have the bits of the stages one by one, at every CPU level: remainders of
 * rows, columns and k, saturation, residual additions, both signs of the result, floats with and without bias, addend
 * and range, and floats that are quantized instead of being stored. */
#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

enum { GUARD = 64, LANES = 16 };

static uint32_t state = 11;
static int random_int(int low, int high) {
    state = state * 1664525u + 1013904223u;
    return low + (int)((state >> 8) % (uint32_t)(high - low + 1));
}

static void *guarded(size_t size) {
    void *block = tare_malloc_aligned(size + GUARD);
    assert_non_null(block);
    memset(block, 0x5a, size + GUARD);
    return block;
}
static void assert_guard(const void *block, size_t size) {
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(((const unsigned char *)block)[size + i], 0x5a);
}

/* What a case of a requantization consists of. */
struct kind {
    bool is_unsigned, has_addend, addend_is_unsigned, has_least;
    bool has_range, is_open; /* floats: their range is collected; no bounds but 0, NaN and infinities in the addend */
    float scale;             /* the largest */
};

struct layer {
    struct tare_conv conv;
    struct kind kind;
    int8_t *input, *filter, *addend;
    int32_t *sums, *offset; /* of the plain convolution */
    float *scale;
    uint8_t *expected;
};

static float quantize(const struct tare_quantize_stage *stage, float x) {
    x = fmaxf(x + stage->add, stage->low);
    return nearbyintf(fminf(x, stage->high));
}

static float dequantize(const struct tare_dequantize_stage *stage, int32_t x) {
    return (float)(x - stage->zero_point) * stage->scale;
}

static struct tare_requantize requantize_of(const struct layer *l, void *to) {
    const float low = l->kind.is_unsigned ? 0 : -128, high = l->kind.is_unsigned ? 255 : 127;
    return (struct tare_requantize){
        .columns = l->conv.out_channels,
        .offset = l->offset,
        .scale = l->scale,
        .first = { 3, low + 5.5f, high - 0.75f }, /* rounded, as the clamped values are */
        .addend = l->kind.has_addend ? l->addend : NULL,
        .addend_is_unsigned = l->kind.addend_is_unsigned,
        .of_result = { 3, 0.07f },
        .of_addend = { l->conv.out_channels % 2 ? 7 : -4, 0.11f },
        .second = { -2, low, high - 3 },
        .least = l->kind.has_least ? 7 : INT32_MIN,
        .to = to,
    };
}

static void expect(struct layer *l) {
    const struct tare_requantize r = requantize_of(l, NULL);
    const int64_t count = tare_conv_rows(&l->conv) * r.columns;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t total = (uint32_t)l->sums[i] + (uint32_t)r.offset[i % r.columns];
        int32_t x = (int32_t)quantize(&r.first, (float)(int32_t)total * r.scale[i % r.columns]);
        if (r.addend) {
            const int32_t other = r.addend_is_unsigned ? (uint8_t)l->addend[i] : l->addend[i];
            x = (int32_t)quantize(&r.second, dequantize(&r.of_result, x) + dequantize(&r.of_addend, other));
            if (x < r.least) x = r.least;
        }
        l->expected[i] = (uint8_t)x;
    }
}

static void fill(struct layer *l, int64_t in, int64_t out, int64_t weights) {
    const int64_t n = l->conv.out_channels;
    int32_t *wide_in = guarded((size_t)in * 4), *wide_filter = guarded((size_t)weights * 4);
    l->input = guarded((size_t)in), l->filter = guarded((size_t)weights), l->addend = guarded((size_t)out);
    l->sums = guarded((size_t)out * 4), l->expected = guarded((size_t)out);
    l->offset = guarded((size_t)(n + LANES) * 4), l->scale = guarded((size_t)(n + LANES) * 4);
    for (int64_t i = 0; i < in; i++)
        wide_in[i] = l->input[i] = (int8_t)random_int(-128, 127);
    for (int64_t i = 0; i < weights; i++)
        wide_filter[i] = l->filter[i] = (int8_t)random_int(-128, 127);
    for (int64_t i = 0; i < out; i++)
        l->addend[i] = (int8_t)random_int(-128, 127);
    for (int64_t i = 0; i < n + LANES; i++) {
        l->offset[i] = i < n ? random_int(-50000, 50000) : l->offset[i - n];
        l->scale[i] = i < n ? l->kind.scale / (float)random_int(1, 9) : l->scale[i - n];
    }
    tare_conv_plain_i32(l->sums, &l->conv, wide_in, wide_filter);
    tare_free(wide_in), tare_free(wide_filter);
}

static void never(void *arg, int32_t *sums, int64_t first, int64_t count) {
    (void)arg, (void)sums, (void)first, (void)count;
    fail_msg("the sums were not requantized by the kernel");
}

static void check_level(const struct layer *l, enum tare_cpu_level level, int64_t out) {
    const enum tare_igemm_form form = tare_igemm_form_at(level);
    if (!tare_conv_int_is_direct(form, &l->conv)) return;
    void *packed = guarded(tare_conv_int_direct_packed_bytes(form, &l->conv));
    void *sums = guarded((size_t)tare_conv_int_direct_sums(&l->conv) * 4);
    const size_t scratch_bytes = tare_conv_int_direct_scratch(form, &l->conv);
    void *scratch = guarded(scratch_bytes);
    uint8_t *got = guarded((size_t)out);
    const struct tare_requantize requantize = requantize_of(l, got);
    const struct tare_conv_int_sink sink = { .take = never, .requantize = &requantize };
    assert_int_equal(tare_conv_int_direct_pack(packed, form, &l->conv, l->filter), TARE_OK);
    tare_conv_int_direct_at(level, &sink, &l->conv, l->input, form, packed, sums, scratch);
    for (int64_t i = 0; i < out; i++) {
        if (got[i] != l->expected[i])
            fail_msg("level %s, %lldx%lldx%lld: element %lld is %d (expected %d)", tare_cpu_level_name(level),
                     (long long)l->conv.out[2], (long long)l->conv.in_channels, (long long)l->conv.out_channels,
                     (long long)i, got[i], l->expected[i]);
    }
    assert_guard(got, (size_t)out), assert_guard(scratch, scratch_bytes);
    tare_free(packed), tare_free(sums), tare_free(scratch), tare_free(got);
}

/* ---- floats ---- */

/* By the flags of the kind: with bias, addend, bias after it, and range. The arrays have the kernels' lanes. */
static struct tare_requantize floats_of(const struct layer *l, float *to, const float *bias, const float *addend,
                                        struct tare_value_range *range) {
    return (struct tare_requantize){ .columns = l->conv.out_channels,
                                     .offset = l->offset,
                                     .scale = l->scale,
                                     .is_real = true,
                                     .real = { .floats = to,
                                               .bias = l->kind.is_unsigned ? bias : NULL,
                                               .addend = l->kind.has_addend ? addend : NULL,
                                               .bias_is_last = l->kind.is_unsigned && l->kind.has_addend &&
                                                               l->kind.addend_is_unsigned,
                                               .low = l->kind.has_least ? 0 : -40,
                                               .high = 60,
                                               .range = l->kind.has_least || l->kind.has_range ? range : NULL } };
}

static float expected_float(const struct tare_requantize *r, int32_t sum, int64_t i) {
    const int64_t column = i % r->columns;
    float x = (float)(int32_t)((uint32_t)sum + (uint32_t)r->offset[column]) * r->scale[column];
    if (r->real.bias && !r->real.bias_is_last) x += r->real.bias[column];
    if (r->real.addend) x += r->real.addend[i];
    if (r->real.bias_is_last) x += r->real.bias[column];
    x = r->real.low > x ? r->real.low : x; /* keeps NaN */
    return r->real.high < x ? r->real.high : x;
}

static void fill_float_addend(float *addend, const struct layer *l, int64_t out) {
    static const float special[] = { NAN, -INFINITY, INFINITY };
    for (int64_t i = 0; i < out; i++) {
        const bool is_special = l->kind.is_open && i % 1009 == out % 1009;
        addend[i] = is_special ? special[i % 3] : (float)l->addend[i] * 0.17f;
    }
}

/* The range is that of the floats that were stored. */
static void assert_range(const struct tare_value_range *range, const float *got, int64_t out) {
    struct tare_value_range plain;
    float low = 0, high = 0, expected_low = 0, expected_high = 0;
    tare_value_range_begin(&plain);
    tare_value_range_add_at(TARE_CPU_PLAIN, &plain, got, out);
    const bool is_known = tare_value_range_end(&expected_low, &expected_high, &plain);
    assert_int_equal(tare_value_range_end(&low, &high, range), is_known);
    assert_memory_equal(&low, &expected_low, sizeof low);
    assert_memory_equal(&high, &expected_high, sizeof high);
}

/* What passes on blocks of floats: each element once, in order. */
struct passed {
    const float *expected, *stored; /* stored NULL: anywhere */
    int64_t next;
};

static void take_floats(void *arg, const float *floats, int64_t first, int64_t count) {
    struct passed *passed = arg;
    assert_int_equal(first, passed->next);
    passed->next += count;
    if (passed->stored) assert_ptr_equal(floats, passed->stored + first);
    assert_memory_equal(floats, passed->expected + first, (size_t)count * sizeof *floats);
}

static void check_passed(const struct layer *l, enum tare_cpu_level level, int64_t out,
                         const struct tare_requantize *requantize, const void *packed, int32_t *sums, void *scratch) {
    const size_t bytes = (size_t)out * sizeof(float);
    float *stored = guarded(bytes);
    struct tare_requantize passes = *requantize;
    struct passed passed = { requantize->real.floats, stored, 0 };
    passes.real.floats = stored;
    passes.real.is_passed = true;
    passes.real.range = NULL;
    const struct tare_conv_int_sink sink = {
        .take = never, .take_floats = take_floats, .arg = &passed, .requantize = &passes
    };
    tare_conv_int_direct_at(level, &sink, &l->conv, l->input, tare_igemm_form_at(level), packed, sums, scratch);
    assert_int_equal(passed.next, out);
    assert_guard(stored, bytes);
    passes.real.floats = NULL;
    passed = (struct passed){ requantize->real.floats, NULL, 0 };
    tare_conv_int_direct_at(level, &sink, &l->conv, l->input, tare_igemm_form_at(level), packed, sums, scratch);
    assert_int_equal(passed.next, out);
    tare_free(stored);
}

static void check_floats(const struct layer *l, enum tare_cpu_level level, int64_t out) {
    const enum tare_igemm_form form = tare_igemm_form_at(level);
    const size_t bytes = (size_t)out * sizeof(float);
    if (!tare_conv_int_is_direct(form, &l->conv)) return;
    void *packed = guarded(tare_conv_int_direct_packed_bytes(form, &l->conv));
    void *sums = guarded((size_t)tare_conv_int_direct_sums(&l->conv) * 4);
    void *scratch = guarded(tare_conv_int_direct_scratch(form, &l->conv));
    float *got = guarded(bytes), *addend = guarded(bytes), *bias = guarded((size_t)(l->conv.out_channels + LANES) * 4);
    struct tare_value_range range;
    tare_value_range_begin(&range);
    fill_float_addend(addend, l, out);
    for (int64_t c = 0; c < l->conv.out_channels + LANES; c++)
        bias[c] = (float)l->offset[c] * 1e-3f;
    struct tare_requantize requantize = floats_of(l, got, bias, addend, &range);
    if (l->kind.is_open) requantize.real.high = INFINITY;
    if (l->kind.is_open && !l->kind.has_least) requantize.real.low = -INFINITY;
    const struct tare_conv_int_sink sink = { .take = never, .requantize = &requantize };
    assert_int_equal(tare_conv_int_direct_pack(packed, form, &l->conv, l->filter), TARE_OK);
    tare_conv_int_direct_at(level, &sink, &l->conv, l->input, form, packed, sums, scratch);
    for (int64_t i = 0; i < out; i++) {
        const float expected = expected_float(&requantize, l->sums[i], i);
        if (memcmp(&got[i], &expected, sizeof expected) != 0)
            fail_msg("level %s, %lld columns: float %lld is %a (expected %a)", tare_cpu_level_name(level),
                     (long long)requantize.columns, (long long)i, (double)got[i], (double)expected);
    }
    if (requantize.real.range) assert_range(&range, got, out);
    assert_guard(got, bytes);
    if (tare_igemm_requantizes(level)) check_passed(l, level, out, &requantize, packed, sums, scratch);
    assert_guard(sums, (size_t)tare_conv_int_direct_sums(&l->conv) * 4);
    tare_free(packed), tare_free(sums), tare_free(scratch), tare_free(got), tare_free(addend), tare_free(bias);
}

static void check(struct layer l) {
    const int64_t in = l.conv.batch * l.conv.in[1] * l.conv.in[2] * l.conv.in_channels;
    const int64_t out = tare_conv_rows(&l.conv) * l.conv.out_channels;
    fill(&l, in, out, tare_conv_patch(&l.conv) * l.conv.out_channels);
    expect(&l);
    for (enum tare_cpu_level level = TARE_CPU_AVX2; level <= tare_cpu_level(); level = tare_cpu_next_level(level))
        check_level(&l, level, out), check_floats(&l, level, out);
    assert_guard(l.input, (size_t)in);
    tare_free(l.input), tare_free(l.filter), tare_free(l.addend), tare_free(l.sums), tare_free(l.expected);
    tare_free(l.offset), tare_free(l.scale);
}

/* kernel × kernel with the same padding on all sides */
static struct tare_conv conv_of(int64_t height, int64_t width, int64_t in, int64_t out, int64_t kernel,
                                int64_t stride) {
    const int64_t pad = kernel / 2;
    return (struct tare_conv){ .batch = 2,
                               .in = { 1, height, width },
                               .in_channels = in,
                               .kernel = { 1, kernel, kernel },
                               .out = { 1, (height + 2 * pad - kernel) / stride + 1,
                                        (width + 2 * pad - kernel) / stride + 1 },
                               .out_channels = out,
                               .stride = { 1, stride, stride },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, pad, pad },
                               .groups = 1 };
}

/* The bits 0 to 5 of `bits` are the flags of the kind. */
static struct kind kind_of(int bits, float scale) {
    return (struct kind){ bits & 1, bits & 2, bits & 4, bits & 8, bits & 16, bits & 32, scale };
}

static void sizes__have_the_bits_of_the_stages(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 1, 3, 16, 24, 64, 70, 130, 200 },
                         outputs[] = { 1, 15, 16, 17, 32, 48, 63, 100 };
    static const int64_t widths[] = { 1, 5, 7, 8, 14, 17, 28, 33 };
    for (int i = 0; i < 128; i++) {
        const int64_t kernel = i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 5, height = 1 + i % 5 + kernel;
        const struct layer layer = { .conv = conv_of(height, widths[i / 2 % 8] + kernel - 1, channels[i % 8],
                                                     outputs[(i / 3) % 8], kernel, 1 + i / 7 % 2),
                                     .kind = kind_of(i / 4, 2e-3f) };
        check(layer);
    }
}

/* More rows than a block has, and long sums over pairs of short lines with one line left. */
static void blocks__have_the_bits_of_the_stages(void **unused) {
    (void)unused;
    for (int bits = 0; bits < 16; bits += 5) {
        check((struct layer){ .conv = conv_of(31, 33, 9, 49, 1, 1), .kind = kind_of(bits, 2e-3f) });
        check((struct layer){ .conv = conv_of(32, 31, 9, 49, 3, 1), .kind = kind_of(bits, 2e-3f) });
        check((struct layer){ .conv = conv_of(7, 7, 260, 80, 3, 1), .kind = kind_of(bits, 2e-4f) });
        check((struct layer){ .conv = conv_of(13, 9, 260, 17, 3, 2), .kind = kind_of(bits, 2e-4f) });
    }
}

/* Rows by seven, of which some are converted while others are multiplied: odd and even numbers of strips, more rows
 * than a block has, groups of k that seven does not divide, and columns that do not fill the last vectors. Each height
 * has each kind. */
static void strips__have_the_bits_of_the_stages(void **unused) {
    (void)unused;
    static const int64_t heights[] = { 3, 4, 5, 43 }, channels[] = { 28, 64, 100, 261 }, outputs[] = { 32, 64, 80, 96 };
    for (int i = 0; i < 256; i++) {
        struct layer layer = { .conv = conv_of(heights[i % 4], 7, channels[i / 4 % 4], outputs[i / 16 % 4], 1, 1),
                               .kind = kind_of(i + i / 64, 1e-3f) };
        layer.conv.batch = 1 + i / 32 % 2;
        check(layer);
    }
}

/* 16 terms a sum, whose rows are computed in pairs with VNNI, and rows by four with AVX2: numbers of rows that neither
 * divides, groups of k that are not unrolled, several segments, and columns that do not fill the last panels. Each
 * width has each kind. */
static void few_products__have_the_bits_of_the_stages(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 16, 13, 8, 24, 48 }, outputs[] = { 32, 64, 80, 47, 24 };
    for (int i = 0; i < 448; i++) {
        const int64_t kernel = i / 7 % 5 == 2 ? 3 : 1, stride = 1 + i / 64 % 2, width = 1 + i % 7 * 2 + i / 7 % 2;
        struct layer layer = { .conv = conv_of(kernel, stride * width, channels[i / 21 % 5], outputs[i / 105 % 5],
                                               kernel, stride),
                               .kind = kind_of(i / 7, 2e-3f) };
        layer.conv.batch = 1;
        check(layer);
    }
}

static void extremes__saturate(void **unused) {
    (void)unused;
    static const float scales[] = { 1e-30f, 0.3f, 0.6f, 40, 1e20f, 3e38f };
    for (int i = 0; i < 96; i++)
        check((struct layer){ .conv = conv_of(6, 9, 33, 40, 3, 1), .kind = kind_of(i, scales[i / 16]) });
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes__have_the_bits_of_the_stages),
        cmocka_unit_test(blocks__have_the_bits_of_the_stages),
        cmocka_unit_test(strips__have_the_bits_of_the_stages),
        cmocka_unit_test(few_products__have_the_bits_of_the_stages),
        cmocka_unit_test(extremes__saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
