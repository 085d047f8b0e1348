/* Products and convolutions of small integers are exact at every level, at the extremes too. */
#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_direct.h"
#include "support/guarded.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int16_t random_int16(void) {
    return (int16_t)(256 * random_int8() + random_int8() + 128);
}

/* 256 times the high half, and the low half, of a 16-bit activation: each is an int8 number. */
static int64_t halves_of(int16_t x) {
    return 256 * (int64_t)(int8_t)(x >> 8) + (int8_t)((x & 255) - 128);
}

/* The product in 64 bits, cut to 32. */
static void check_product(enum tare_cpu_level level, enum tare_igemm_form form, int64_t m, int64_t n, int64_t k) {
    int8_t *a = guarded_block((size_t)(m * k)), *b = guarded_block((size_t)(k * n));
    int16_t *wide = guarded_block((size_t)(m * k) * 2);
    const size_t packed_bytes = tare_igemm_packed_bytes(form, k, n);
    int32_t *c = guarded_block((size_t)(m * n) * 4);
    void *packed = guarded_block(packed_bytes), *scratch = guarded_block(tare_igemm_scratch_bytes());
    for (int64_t i = 0; i < m * k; i++)
        wide[i] = a[i] = random_int8();
    for (int64_t i = 0; i < m * k && form == TARE_IGEMM_HALVES; i++)
        wide[i] = i % 5 ? random_int16() : i % 2 ? INT16_MAX : INT16_MIN;
    for (int64_t i = 0; i < k * n; i++)
        b[i] = random_int8();
    tare_igemm_pack(packed, form, b, k, n, n, 1);
    const struct tare_igemm_rows rows = { .data = tare_igemm_is_pairs(form) ? (void *)wide : (void *)a, .stride = k };
    tare_igemm_at(level, c, n, &rows, form, packed, m, n, k, scratch);
    for (int64_t i = 0; i < m * n; i++) {
        int64_t sum = 0;
        for (int64_t p = 0; p < k; p++) {
            const int64_t at = i / n * k + p;
            sum += (form == TARE_IGEMM_HALVES ? halves_of(wide[at]) : a[at]) * b[p * n + i % n];
        }
        if (c[i] != (int32_t)sum)
            fail_msg("level %s form %d m=%lld n=%lld k=%lld: element %lld is %d (expected %lld)",
                     tare_cpu_level_name(level), form, (long long)m, (long long)n, (long long)k, (long long)i, c[i],
                     (long long)sum);
    }
    assert_block_guard(c, (size_t)(m * n) * 4), assert_block_guard(packed, packed_bytes);
    assert_block_guard(scratch, tare_igemm_scratch_bytes());
    tare_free(a), tare_free(b), tare_free(wide), tare_free(c), tare_free(packed), tare_free(scratch);
}

static void igemm__exact_at_every_level(void **unused) {
    (void)unused;
    static const int64_t ns[] = { 1, 15, 16, 17, 32, 33, 50 }, ks[] = { 1, 2, 3, 4, 5, 63, 511, 1027, 2050 };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (int64_t m = 1; m <= 26; m++) {
            for (int form = tare_igemm_form_at(level); form <= TARE_IGEMM_HALVES; form++)
                check_product(level, (enum tare_igemm_form)form, m, ns[m % 7], ks[m % 9]);
        }
        for (int form = tare_igemm_form_at(level); form <= TARE_IGEMM_HALVES; form++)
            check_product(level, (enum tare_igemm_form)form, 150, 20, 40);
    }
}

/* Tiles of up to 16 rows, 16 columns and 64 k, two by two: all remainders. */
static void igemm__remainders_of_tiles(void **unused) {
    (void)unused;
    static const int64_t ns[] = { 1, 16, 31, 32, 49 };
    for (int64_t m = 1; m <= 50; m += 1 + m / 20) {
        for (int64_t k = 1; k <= 200; k += 7)
            check_product(tare_cpu_level(), tare_igemm_form_at(tare_cpu_level()), m, ns[(m + k) % 5], k);
    }
}

static void igemm__empty_k_gives_zeros(void **unused) {
    (void)unused;
    for (int form = tare_igemm_form_at(tare_cpu_level()); form <= TARE_IGEMM_HALVES; form++)
        check_product(tare_cpu_level(), (enum tare_igemm_form)form, 3, 5, 0);
}

static void igemm__sums_wrap(void **unused) {
    (void)unused;
    enum { K = 140000 }; /* 128 * 128 * K is above 2^31 */
    int8_t *ones = guarded_block(K);
    memset(ones, -128, K);
    for (int form = tare_igemm_form_at(tare_cpu_level()); form <= TARE_IGEMM_PAIRS; form++) {
        int16_t *wide = guarded_block(K * 2);
        for (int i = 0; i < K; i++)
            wide[i] = -128;
        void *packed = guarded_block(tare_igemm_packed_bytes((enum tare_igemm_form)form, K, 1));
        void *scratch = guarded_block(tare_igemm_scratch_bytes());
        int32_t c = 0;
        tare_igemm_pack(packed, (enum tare_igemm_form)form, ones, K, 1, 1, 1);
        const struct tare_igemm_rows rows = { .data = form == TARE_IGEMM_PAIRS ? (void *)wide : (void *)ones,
                                              .stride = K };
        tare_igemm(&c, 1, &rows, (enum tare_igemm_form)form, packed, 1, 1, K, scratch);
        assert_int_equal(c, (int32_t)(uint32_t)(16384ull * K));
        tare_free(packed), tare_free(scratch), tare_free(wide);
    }
    tare_free(ones);
}

static void igemm__int32_operands_narrow_or_are_refused(void **unused) {
    (void)unused;
    int32_t b[] = { 32767, -32767, 5, -6 };
    int16_t narrow[4];
    char *packed = guarded_block(tare_igemm_packed_bytes(TARE_IGEMM_PAIRS, 2, 2));
    assert_true(tare_igemm_pack_int32(packed, b, 2, 2, 2, 1));
    assert_true(tare_igemm_narrow(narrow, b, 4));
    b[1] = -32768;
    assert_false(tare_igemm_pack_int32(packed, b, 2, 2, 2, 1));
    assert_true(tare_igemm_narrow(narrow, b, 4));
    b[3] = 40000;
    assert_false(tare_igemm_narrow(narrow, b, 4));
    assert_int_equal(tare_igemm_packed_bytes(TARE_IGEMM_QUADS, INT64_MAX / 2, 100), 0);
    tare_free(packed);
}

static void store(void *to, int32_t *sums, int64_t first, int64_t count) {
    memcpy((int32_t *)to + first, sums, (size_t)count * 4);
}

/* The direct kernel at a level. */
static void check_direct_at(enum tare_cpu_level level, enum tare_igemm_form form, const struct tare_conv *conv,
                            const void *input, const int8_t *filter, const int32_t *expected) {
    const int64_t out = tare_conv_rows(conv) * conv->out_channels;
    if (!tare_conv_int_is_direct(form, conv)) return;
    int32_t *got = guarded_block((size_t)out * 4);
    const struct tare_conv_int_sink sink = { .take = store, .arg = got };
    const size_t sums_bytes = (size_t)tare_conv_int_direct_sums(conv) * 4;
    const size_t scratch_bytes = tare_conv_int_direct_scratch(form, conv);
    void *packed = guarded_block(tare_conv_int_direct_packed_bytes(form, conv));
    void *sums = guarded_block(sums_bytes), *scratch = guarded_block(scratch_bytes);
    assert_int_equal(tare_conv_int_direct_pack(packed, form, conv, filter), TARE_OK);
    tare_conv_int_direct_at(level, &sink, conv, input, form, packed, sums, scratch);
    assert_memory_equal(got, expected, (size_t)out * 4);
    assert_block_guard(sums, sums_bytes), assert_block_guard(scratch, scratch_bytes);
    tare_free(packed), tare_free(sums), tare_free(scratch), tare_free(got);
}

/* The same at every level, with padding of any value. */
static void check_direct(const struct tare_conv *conv, const int8_t *input, const int8_t *filter,
                         const int32_t *expected) {
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level))
        check_direct_at(level, tare_igemm_form_at(level), conv, input, filter, expected);
}

/* 16-bit activations: a padded position is 0, whose halves are 0 and -128. */
static void check_halves(const struct tare_conv *conv, const int8_t *filter, const int32_t *wide_filter) {
    const int64_t in = conv->batch * conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t n = conv->out_channels, out = tare_conv_rows(conv) * n;
    int16_t *x16 = guarded_block((size_t)in * 2);
    int32_t *x32 = guarded_block((size_t)in * 4), *expected = guarded_block((size_t)out * 4);
    int32_t *got = guarded_block((size_t)out * 4);
    void *scratch = guarded_block(tare_igemm_scratch_bytes());
    void *packed = guarded_block(tare_conv_int_packed_bytes(TARE_IGEMM_HALVES, conv));
    for (int64_t i = 0; i < in; i++)
        x32[i] = x16[i] = random_int16();
    tare_conv_plain_i32(expected, conv, x32, wide_filter);
    for (int64_t i = 0; i < out; i++)
        for (int64_t p = 0; p < tare_conv_patch(conv); p++)
            expected[i] -= 128 * filter[p * n + i % n];
    tare_conv_int_pack(packed, TARE_IGEMM_HALVES, conv, filter);
    tare_conv_int_dense(got, conv, x16, TARE_IGEMM_HALVES, packed, scratch);
    assert_memory_equal(got, expected, (size_t)out * 4);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level))
        check_direct_at(level, TARE_IGEMM_HALVES, conv, x16, filter, expected);
    tare_free(x16), tare_free(x32), tare_free(expected), tare_free(got), tare_free(scratch), tare_free(packed);
}

static void check_conv(const struct tare_conv *conv) {
    const int64_t in = conv->batch * conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t out = tare_conv_rows(conv) * conv->out_channels;
    const int64_t weights = tare_conv_patch(conv) * conv->out_channels;
    int8_t *x8 = guarded_block((size_t)in), *w8 = guarded_block((size_t)weights);
    int16_t *x16 = guarded_block((size_t)in * 2);
    int32_t *x32 = guarded_block((size_t)in * 4), *w32 = guarded_block((size_t)weights * 4);
    int32_t *expected = guarded_block((size_t)out * 4), *got = guarded_block((size_t)out * 4);
    void *scratch = guarded_block(tare_igemm_scratch_bytes());
    for (int64_t i = 0; i < in; i++)
        x32[i] = x16[i] = x8[i] = random_int8();
    for (int64_t i = 0; i < weights; i++)
        w32[i] = w8[i] = random_int8();
    tare_conv_plain_i32(expected, conv, x32, w32);
    for (int form = tare_igemm_form_at(tare_cpu_level()); form <= TARE_IGEMM_PAIRS; form++) {
        void *packed = guarded_block(tare_conv_int_packed_bytes((enum tare_igemm_form)form, conv));
        tare_conv_int_pack(packed, (enum tare_igemm_form)form, conv, w8);
        tare_conv_int_dense(got, conv, form == TARE_IGEMM_PAIRS ? (void *)x16 : (void *)x8, (enum tare_igemm_form)form,
                            packed, scratch);
        assert_memory_equal(got, expected, (size_t)out * 4);
        if (form == TARE_IGEMM_PAIRS) {
            memset(got, 0, (size_t)out * 4);
            assert_true(tare_conv_int_pack_int32(packed, conv, w32));
            tare_conv_int_dense(got, conv, x16, TARE_IGEMM_PAIRS, packed, scratch);
            assert_memory_equal(got, expected, (size_t)out * 4);
        }
        tare_free(packed);
    }
    check_direct(conv, x8, w8, expected);
    check_halves(conv, w8, w32);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; tare_conv_is_depthwise(conv) && level <= tare_cpu_level();
         level = tare_cpu_next_level(level)) {
        void *packed = guarded_block(tare_conv_int_depthwise_packed_bytes(level, conv));
        void *lines = guarded_block(tare_conv_int_depthwise_scratch_bytes(level, conv));
        tare_conv_int_depthwise_pack(level, packed, conv, w8);
        memset(got, 0, (size_t)out * 4);
        tare_conv_int_depthwise_at(level, got, conv, x8, packed, lines);
        assert_block_guard(packed, tare_conv_int_depthwise_packed_bytes(level, conv));
        assert_block_guard(lines, tare_conv_int_depthwise_scratch_bytes(level, conv));
        tare_free(packed), tare_free(lines);
        assert_memory_equal(got, expected, (size_t)out * 4);
    }
    assert_block_guard(got, (size_t)out * 4);
    tare_free(x8), tare_free(w8), tare_free(x16), tare_free(x32), tare_free(w32);
    tare_free(expected), tare_free(got), tare_free(scratch);
}

static void conv_int__equals_the_plain_loops(void **unused) {
    (void)unused;
    struct tare_conv conv = {
        .batch = 2,
        .in = { 1, 9, 8 },
        .in_channels = 5,
        .kernel = { 1, 3, 3 },
        .out = { 1, 9, 8 },
        .out_channels = 19,
        .stride = { 1, 1, 1 },
        .dilation = { 1, 1, 1 },
        .base_dilation = { 1, 1, 1 },
        .pad = { 0, 1, 1 },
        .groups = 1,
    };
    check_conv(&conv);
    conv.stride[1] = 2, conv.out[1] = 5, conv.dilation[2] = 2, conv.pad[2] = 2;
    check_conv(&conv);
    conv.in_channels = 12, conv.out_channels = 6, conv.groups = 3;
    check_conv(&conv);
    conv.in_channels = conv.out_channels = conv.groups = 21;
    check_conv(&conv);
    conv.in_channels = 300, conv.out_channels = 4, conv.groups = 1; /* a patch longer than a block of k */
    check_conv(&conv);
}

/* Kernels that read their input in place, and positions that a stride leaves out. */
static void conv_int__without_padding(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 1, 3, 16, 34, 47 };
    for (int i = 0; i < 40; i++) {
        const int64_t kernel = i / 5 % 2 ? 3 : 1, stride = 1 + i / 10 % 2, height = 7 + i % 3, width = 9;
        const struct tare_conv conv = { .batch = 1 + i / 20,
                                        .in = { 1, height, width },
                                        .in_channels = channels[i % 5],
                                        .kernel = { 1, kernel, kernel },
                                        .out = { 1, (height - kernel) / stride + 1, (width - kernel) / stride + 1 },
                                        .out_channels = 5 + i,
                                        .stride = { 1, stride, stride },
                                        .dilation = { 1, 1, 1 },
                                        .base_dilation = { 1, 1, 1 },
                                        .groups = 1 };
        check_conv(&conv);
    }
}

static void conv_int__depthwise_kernels_of_every_size(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 2, 15, 16, 33, 48, 64, 65, 130 };
    for (int i = 0; i < 96; i++) {
        const int64_t kernel = 1 + i % 5, kernel_w = 1 + i / 5 % 5, stride = 1 + i % 3, dilation = 1 + i / 7 % 2;
        const int64_t pad = i % 4, size = 11, width = 10 + i % 3, c = channels[i % 8];
        struct tare_conv conv = {
            .batch = 1 + i % 2,
            .in = { 1, size, width },
            .in_channels = c,
            .kernel = { 1, kernel, kernel_w },
            .out = { 1, (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1,
                     (width + 2 * pad - (kernel_w - 1) * dilation - 1) / stride + 1 },
            .out_channels = c,
            .stride = { 1, stride, stride },
            .dilation = { 1, dilation, dilation },
            .base_dilation = { 1, 1, 1 },
            .pad = { 0, pad, pad },
            .groups = c,
        };
        check_conv(&conv);
    }
}

static struct tare_conv depthwise_of(int64_t height, int64_t width, int64_t channels, int64_t kernel, int64_t stride,
                                     int64_t pad) {
    return (struct tare_conv){
        .batch = 2,
        .in = { 1, height, width },
        .in_channels = channels,
        .kernel = { 1, kernel, kernel },
        .out = { 1, (height + 2 * pad - kernel) / stride + 1, (width + 2 * pad - kernel) / stride + 1 },
        .out_channels = channels,
        .stride = { 1, stride, stride },
        .dilation = { 1, 1, 1 },
        .base_dilation = { 1, 1, 1 },
        .pad = { 0, pad, pad },
        .groups = channels,
    };
}

/* Numbers of channels that are divided into blocks in every way, and heights and widths that do not fill tiles. */
static void conv_int__depthwise_blocks_of_channels(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 16, 19, 32, 45, 64, 81, 96, 112, 127, 200, 8, 13, 24 };
    for (int i = 0; i < 240; i++) {
        const int64_t kernel = i < 120 ? 3 : 5;
        const struct tare_conv conv =
            depthwise_of(kernel + i % 7, kernel + i / 3 % 19, channels[i % 13], kernel, 1 + i / 10 % 2, i / 20 % 5);
        check_conv(&conv);
    }
    const struct tare_conv several_calls = depthwise_of(90, 40, 64, 3, 1, 1); /* of many lines each */
    check_conv(&several_calls);
}

/* The largest sums of both signs. */
static void conv_int__depthwise_extremes(void **unused) {
    (void)unused;
    for (int i = 0; i < 32; i++) {
        const int64_t kernel = i % 2 ? 3 : 5;
        const struct tare_conv conv = depthwise_of(9, 8, i / 16 ? 24 : 77, kernel, 1 + i / 2 % 2, 1);
        const int64_t in = conv.batch * conv.in[1] * conv.in[2] * conv.in_channels,
                      weights = kernel * kernel * conv.groups;
        const int64_t out = tare_conv_rows(&conv) * conv.out_channels;
        const int8_t x = i / 4 % 2 ? -128 : 127, w = i / 8 % 2 ? -128 : 127;
        int8_t *input = guarded_block((size_t)in), *filter = guarded_block((size_t)weights);
        int32_t *sums = guarded_block((size_t)out * 4);
        memset(input, x, (size_t)in), memset(filter, w, (size_t)weights);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            void *packed = guarded_block(tare_conv_int_depthwise_packed_bytes(level, &conv));
            void *scratch = guarded_block(tare_conv_int_depthwise_scratch_bytes(level, &conv));
            tare_conv_int_depthwise_pack(level, packed, &conv, filter);
            tare_conv_int_depthwise_at(level, sums, &conv, input, packed, scratch);
            const int64_t inside = (2 * conv.out[2] + 2) * conv.out_channels; /* the output at line 2, column 2 */
            for (int64_t c = 0; c < conv.out_channels; c++)
                assert_int_equal(sums[inside + c], kernel * kernel * x * w);
            tare_free(packed), tare_free(scratch);
        }
        tare_free(input), tare_free(filter), tare_free(sums);
    }
}

/* What requantization does with one sum. */
static float requantized(const struct tare_requantize *r, int32_t sum, int64_t column, int addend) {
    float x = (float)(int32_t)((uint32_t)sum + (uint32_t)r->offset[column]) * r->scale[column];
    if (r->is_real) return fminf(r->real.high, fmaxf(r->real.low, x));
    x = nearbyintf(fminf(r->first.high, fmaxf(r->first.low, x + r->first.add)));
    if (!r->addend) return x;
    x = (x - (float)r->of_result.zero_point) * r->of_result.scale;
    x += (float)(addend - r->of_addend.zero_point) * r->of_addend.scale;
    return nearbyintf(fminf(r->second.high, fmaxf(r->second.low, x + r->second.add)));
}

static void check_requantized(enum tare_cpu_level level, const struct tare_conv *conv, struct tare_requantize r) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels, columns = conv->out_channels;
    const int64_t count = tare_conv_rows(conv) * columns, taps = conv->kernel[1] * conv->kernel[2];
    int8_t *x = guarded_block((size_t)in), *filter = guarded_block((size_t)(columns * taps)),
           *addend = guarded_block((size_t)count);
    int32_t *wide = guarded_block((size_t)in * 4), *wide_filter = guarded_block((size_t)(columns * taps) * 4);
    int32_t *expected = guarded_block((size_t)count * 4), *offset = guarded_block((size_t)(columns + 16) * 4);
    float *scale = guarded_block((size_t)(columns + 16) * 4), *reals = guarded_block((size_t)count * 4);
    uint8_t *got = guarded_block((size_t)count);
    int32_t *sums = guarded_block((size_t)tare_conv_int_depthwise_sums(level, conv) * 4);
    void *packed = guarded_block(tare_conv_int_depthwise_packed_bytes(level, conv));
    void *scratch = guarded_block(tare_conv_int_depthwise_scratch_bytes(level, conv));
    const struct tare_conv_int_sink sink = { .requantize = &r };
    for (int64_t i = 0; i < in; i++)
        wide[i] = x[i] = random_int8();
    for (int64_t i = 0; i < columns * taps; i++)
        wide_filter[i] = filter[i] = random_int8();
    for (int64_t i = 0; i < columns + 16; i++) { /* the lanes beyond the columns repeat them */
        offset[i] = i < columns ? random_int8() * 50 : offset[i - columns];
        scale[i] = *r.scale * (float)(1 + i % columns % 3);
    }
    for (int64_t i = 0; i < count; i++)
        addend[i] = random_int8();
    tare_conv_plain_i32(expected, conv, wide, wide_filter);
    r.columns = columns, r.offset = offset, r.scale = scale, r.to = got;
    if (r.addend) r.addend = addend;
    if (r.is_real) r.real.floats = reals;
    tare_conv_int_depthwise_pack(level, packed, conv, filter);
    tare_conv_int_depthwise_to(level, &sink, conv, x, packed, sums, scratch);
    for (int64_t i = 0; i < count; i++) {
        const float value = requantized(&r, expected[i], i % columns, addend[i]);
        if (r.is_real)
            assert_true(reals[i] == value);
        else
            assert_int_equal(got[i], (uint8_t)(int)value);
    }
    assert_block_guard(got, (size_t)count);
    assert_block_guard(reals, (size_t)count * 4);
    tare_free(x), tare_free(filter), tare_free(addend), tare_free(wide), tare_free(wide_filter), tare_free(expected);
    tare_free(offset), tare_free(scale), tare_free(reals), tare_free(got), tare_free(sums), tare_free(packed);
    tare_free(scratch);
}

/* Bounds of signed and unsigned bytes, bounds that are not integers, results beyond int32, residual additions, floats.
 */
static void conv_int__depthwise_requantizes(void **unused) {
    (void)unused;
    static const float small = 0.004f, large = 1e25f;
    static float real;
    static const int8_t addend;
    const struct tare_quantize_stage all = { 3, -128, 127 }, relu = { -100, -100, 90 }, bytes = { 20, 0, 255 },
                                     fractions = { 0.25f, -7.5f, 99.25f };
    const struct tare_requantize cases[] = {
        { .scale = &small, .first = all },
        { .scale = &small, .first = relu },
        { .scale = &small, .first = bytes },
        { .scale = &small, .first = fractions },
        { .scale = &large, .first = all },
        { .scale = &small,
          .first = all,
          .addend = &addend,
          .of_result = { 3, 0.5f },
          .of_addend = { -2, 0.25f },
          .second = relu,
          .least = INT32_MIN },
        { .scale = &small, .is_real = true, .real = { .floats = &real, .low = -300, .high = 500 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const int64_t channels[] = { 64, 32, 16, 21, 120, 8, 5 };
        for (int k = 0; k < 28; k++) {
            const int64_t kernel = k < 14 ? 3 : 5;
            const struct tare_conv conv =
                depthwise_of(7 + k % 3, 7 + k % 11, channels[k % 7], kernel, 1 + k / 7 % 2, kernel / 2);
            for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
                 level = tare_cpu_next_level(level)) {
                /* levels without kernels for lines do not requantize */
                if (tare_conv_int_depthwise_pads(level, &conv)) check_requantized(level, &conv, cases[i]);
            }
        }
    }
}

/* Padding with a value equals a convolution of the padded input. */
static void conv_int__pad_value(void **unused) {
    (void)unused;
    enum { SIZE = 6, PAD = 2, PADDED = SIZE + 2 * PAD };
    static const int64_t channels[] = { 3, 16, 70 };
    for (int i = 0; i < 24; i++) {
        const int64_t c = channels[i % 3], groups = i / 3 % 2 ? c : 1, stride = 1 + i / 6 % 2, kernel = i < 12 ? 3 : 5;
        struct tare_conv conv = { .batch = 1,
                                  .in = { 1, PADDED, PADDED },
                                  .in_channels = c,
                                  .kernel = { 1, kernel, kernel },
                                  .out = { 1, (PADDED - kernel) / stride + 1, (PADDED - kernel) / stride + 1 },
                                  .out_channels = c,
                                  .stride = { 1, stride, stride },
                                  .dilation = { 1, 1, 1 },
                                  .base_dilation = { 1, 1, 1 },
                                  .groups = groups };
        const int64_t out = tare_conv_rows(&conv) * c, weights = kernel * kernel * c / groups * c;
        int8_t *padded = guarded_block((size_t)(PADDED * PADDED * c)),
               *inner = guarded_block((size_t)(SIZE * SIZE * c));
        int8_t *filter = guarded_block((size_t)weights);
        int32_t *wide = guarded_block((size_t)(PADDED * PADDED * c) * 4),
                *wide_filter = guarded_block((size_t)weights * 4);
        int32_t *expected = guarded_block((size_t)out * 4), *got = guarded_block((size_t)out * 4);
        for (int64_t p = 0; p < PADDED * PADDED * c; p++) {
            const int64_t y = p / c / PADDED - PAD, x = p / c % PADDED - PAD;
            const bool is_inside = y >= 0 && y < SIZE && x >= 0 && x < SIZE;
            wide[p] = padded[p] = is_inside ? random_int8() : -77;
            if (is_inside) inner[(y * SIZE + x) * c + p % c] = padded[p];
        }
        for (int64_t p = 0; p < weights; p++)
            wide_filter[p] = filter[p] = random_int8();
        tare_conv_plain_i32(expected, &conv, wide, wide_filter);
        conv.in[1] = conv.in[2] = SIZE, conv.pad[1] = conv.pad[2] = PAD, conv.pad_value = -77;
        check_direct(&conv, inner, filter, expected);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; groups > 1 && level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            if (!tare_conv_int_depthwise_pads(level, &conv)) continue;
            void *packed = guarded_block(tare_conv_int_depthwise_packed_bytes(level, &conv));
            void *lines = guarded_block(tare_conv_int_depthwise_scratch_bytes(level, &conv));
            tare_conv_int_depthwise_pack(level, packed, &conv, filter);
            tare_conv_int_depthwise_at(level, got, &conv, inner, packed, lines);
            assert_memory_equal(got, expected, (size_t)out * 4);
            tare_free(packed), tare_free(lines);
        }
        tare_free(padded), tare_free(inner), tare_free(filter), tare_free(wide), tare_free(wide_filter);
        tare_free(expected), tare_free(got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(igemm__exact_at_every_level),
        cmocka_unit_test(igemm__remainders_of_tiles),
        cmocka_unit_test(igemm__empty_k_gives_zeros),
        cmocka_unit_test(igemm__sums_wrap),
        cmocka_unit_test(igemm__int32_operands_narrow_or_are_refused),
        cmocka_unit_test(conv_int__equals_the_plain_loops),
        cmocka_unit_test(conv_int__without_padding),
        cmocka_unit_test(conv_int__depthwise_kernels_of_every_size),
        cmocka_unit_test(conv_int__depthwise_blocks_of_channels),
        cmocka_unit_test(conv_int__depthwise_extremes),
        cmocka_unit_test(conv_int__depthwise_requantizes),
        cmocka_unit_test(conv_int__pad_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
