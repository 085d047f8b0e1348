/* The fast matrix product and convolutions give the bits of the plain loops, for odd sizes, and write nothing else. */
#include "support/guarded.h"

#include "interpreter/kernels/conv.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_gemm(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k) {
    char what[80];
    snprintf(what, sizeof what, "product m=%lld n=%lld k=%lld", (long long)m, (long long)n, (long long)k);
    const int64_t lda = k + 3, packed_count = (int64_t)tare_gemm_packed_floats(k, n);
    float *a = guarded_random(m * lda), *b = guarded_random(k * n), *packed = guarded(packed_count);
    float *got = guarded(m * n), *expected = guarded(m * n), *scratch = guarded((int64_t)tare_gemm_scratch_floats());
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum = fmaf(a[i * lda + p], b[p * n + j], sum);
            expected[i * n + j] = sum;
        }
    }
    tare_gemm_pack(packed, b, k, n, n, 1);
    const struct tare_gemm_rows rows = { .data = a, .stride = lda };
    tare_gemm_at(level, got, n, &rows, packed, m, n, k, NULL, scratch);
    assert_same_bits(got, expected, m * n, what, tare_cpu_level_name(level));
    free_guarded(a, m * lda), free_guarded(b, k * n), free_guarded(packed, packed_count);
    free_guarded(got, m * n), free_guarded(expected, m * n);
    free_guarded(scratch, (int64_t)tare_gemm_scratch_floats());
}

static void gemm__bits_of_the_plain_chain_at_every_level(void **unused) {
    (void)unused;
    static const int64_t ns[] = { 1, 15, 16, 17, 33, 64, 100, 130, 161 }, ks[] = { 0, 1, 7, 255, 257, 600 };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (int64_t m = 1; m <= 27; m++)
            check_gemm(level, m, ns[m % 9], ks[m % 6]);
        check_gemm(level, 1, 300, 40);
        check_gemm(level, 3, 161, 33);
        check_gemm(level, 5, 96, 33);
        check_gemm(level, 145, 40, 17);
        check_gemm(level, 290, 18, 300);
        check_gemm(level, 150, 70, 530);  /* k is cut, rows are read in place */
        check_gemm(level, 13, 70, 1021);  /* rows lie 1,024 floats apart: they are copied */
        check_gemm(level, 288, 70, 1021); /* as many rows as two blocks nearly hold */
    }
}

static void gemm__transposed_and_int8_weights_pack_alike(void **unused) {
    (void)unused;
    enum { K = 5, N = 19 };
    float b[K * N], transposed[N * K], first[K * 32], second[K * 32];
    int8_t bytes[K * N];
    for (int i = 0; i < K * N; i++) {
        bytes[i] = (int8_t)(i * 37 - 128);
        b[i] = bytes[i];
        transposed[i % N * K + i / N] = b[i];
    }
    tare_gemm_pack(first, b, K, N, N, 1);
    tare_gemm_pack(second, transposed, K, N, 1, K);
    assert_memory_equal(first, second, sizeof first);
    tare_gemm_pack_int8(second, bytes, K, N, N, 1);
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(tare_gemm_packed_floats(K, N), K * 32);
    assert_int_equal(tare_gemm_packed_floats(INT64_MAX / 2, 100), 0);
}

static void gemm__a_row_is_the_same_bits_in_any_batch(void **unused) {
    (void)unused;
    enum { M = 32, N = 100, K = 700 };
    float *a = guarded_random(M * K), *b = guarded_random(K * N), *packed = guarded(K * 112);
    float *all = guarded(M * N), *part = guarded(M * N), *scratch = guarded((int64_t)tare_gemm_scratch_floats());
    tare_gemm_pack(packed, b, K, N, N, 1);
    const struct tare_gemm_rows rows = { .data = a, .stride = K };
    tare_gemm(all, N, &rows, packed, M, N, K, NULL, scratch);
    for (int64_t batch = 1; batch < M; batch += 3) {
        const struct tare_gemm_rows some = { .data = a + (M - batch) * K, .stride = K };
        tare_gemm(part, N, &some, packed, batch, N, K, NULL, scratch);
        assert_same_bits(part, all + (M - batch) * N, batch * N, "part of the batch", "this machine's");
    }
    free_guarded(a, M * K), free_guarded(b, K * N), free_guarded(packed, K * 112), free_guarded(all, M * N);
    free_guarded(part, M * N), free_guarded(scratch, (int64_t)tare_gemm_scratch_floats());
}

/* ---- convolutions ---- */

/* batch, in h w c, kernel h w, out c, stride, dilation, base dilation, pad, groups */
static const int conv_cases[][12] = {
    { 2, 7, 9, 3, 3, 3, 17, 1, 1, 1, 1, 1 },
    { 1, 8, 8, 5, 3, 2, 4, 2, 1, 1, 1, 1 },
    { 1, 11, 6, 4, 3, 3, 20, 1, 2, 1, 2, 1 },
    { 3, 5, 5, 37, 1, 1, 33, 1, 1, 1, 0, 1 },
    { 1, 6, 7, 8, 1, 1, 5, 2, 1, 1, 0, 1 },
    { 2, 6, 6, 6, 3, 3, 9, 1, 1, 1, 1, 3 },
    { 1, 4, 5, 3, 3, 3, 6, 1, 1, 2, 2, 1 },
    { 1, 5, 4, 2, 4, 4, 7, 2, 2, 3, 5, 1 },
    { 1, 13, 13, 3, 7, 7, 11, 2, 1, 1, 3, 1 },
    { 1, 6, 7, 2, 3, 3, 3, 1, 1, 1, -1, 1 },
    { 2, 9, 14, 8, 3, 3, 8, 1, 1, 1, 1, 8 },
    { 1, 10, 23, 19, 3, 3, 19, 1, 1, 1, 1, 19 },
    { 1, 10, 12, 33, 5, 3, 33, 2, 1, 1, 2, 33 },
    { 1, 7, 30, 20, 3, 3, 40, 1, 2, 1, 2, 20 },
    { 1, 9, 12, 37, 5, 5, 37, 1, 1, 1, 2, 37 },
    { 1, 9, 17, 21, 3, 3, 21, 2, 1, 1, 1, 21 },
    { 1, 10, 19, 20, 7, 7, 20, 1, 1, 1, 3, 20 },
    { 1, 11, 20, 17, 7, 7, 17, 2, 1, 1, 3, 17 },
    { 1, 9, 30, 33, 5, 5, 33, 2, 1, 1, 2, 33 },
    { 2, 5, 8, 16, 3, 3, 16, 1, 1, 1, 0, 16 },
    { 2, 30, 26, 5, 3, 3, 16, 1, 1, 1, 1, 1 },
    { 1, 40, 33, 3, 7, 7, 40, 2, 1, 1, 3, 1 },
    { 1, 9, 8, 200, 3, 3, 24, 1, 1, 1, 1, 1 },
    { 1, 9, 500, 2, 3, 3, 7, 2, 1, 1, 1, 1 },
    { 2, 12, 12, 30, 1, 1, 20, 2, 1, 1, 0, 1 },
    { 1, 9, 9, 40, 3, 3, 130, 1, 1, 1, 1, 1 },
    { 1, 3, 15, 9, 3, 3, 140, 1, 1, 1, 1, 1 },
    { 2, 12, 12, 30, 1, 1, 60, 1, 1, 1, 0, 1 },
    { 1, 3, 2, 16, 3, 3, 16, 1, 1, 1, 4, 16 },
    { 1, 2, 2, 16, 3, 3, 16, 1, 1, 1, 1, 16 },
    { 1, 4, 2, 16, 3, 5, 16, 3, 1, 1, 4, 16 },
    { 1, 6, 15, 42, 3, 3, 40, 1, 1, 1, 1, 1 },
    { 1, 6, 15, 43, 3, 3, 40, 1, 1, 1, 1, 1 },
    { 1, 12, 13, 512, 1, 1, 70, 1, 1, 1, 0, 1 },
    { 1, 3, 15, 513, 1, 1, 33, 1, 1, 1, 0, 1 },
    /* lines of the highest tiles */
    { 1, 5, 14, 20, 3, 3, 40, 1, 1, 1, 1, 1 },
    { 2, 4, 28, 43, 3, 3, 33, 1, 1, 1, 1, 1 },
    { 1, 14, 14, 150, 3, 3, 48, 1, 1, 1, 1, 1 },
    { 1, 9, 27, 9, 5, 5, 32, 2, 1, 1, 2, 1 },
    { 1, 6, 10, 24, 3, 1, 32, 1, 2, 1, 2, 1 },
    { 1, 3, 8, 16, 3, 3, 32, 1, 1, 1, 4, 1 },
    { 2, 40, 42, 8, 3, 3, 32, 3, 1, 1, 1, 1 },
    /* inputs so large that tiles prefetch the rows of the next block */
    { 2, 60, 61, 37, 1, 1, 18, 1, 1, 1, 0, 1 },
    { 2, 60, 61, 37, 3, 3, 2, 2, 1, 1, 1, 1 },
    { 1, 80, 90, 38, 1, 1, 6, 1, 1, 1, 0, 2 },
    /* depthwise, beyond the second-level cache */
    { 1, 42, 70, 93, 3, 3, 93, 2, 1, 1, 1, 93 },
};

static struct tare_conv conv_of(const int *row) {
    struct tare_conv conv = {
        .batch = row[0],
        .in = { 1, row[1], row[2] },
        .in_channels = row[3],
        .kernel = { 1, row[4], row[5] },
        .out_channels = row[6],
        .stride = { 1, row[7], row[7] },
        .dilation = { 1, row[8], row[8] },
        .base_dilation = { 1, row[9], row[9] },
        .pad = { 0, row[10], row[10] },
        .groups = row[11],
    };
    conv.out[0] = 1;
    for (int i = 1; i < 3; i++) {
        const int64_t base = (conv.in[i] - 1) * conv.base_dilation[i] + 1;
        conv.out[i] = (base + 2 * conv.pad[i] - (conv.kernel[i] - 1) * conv.dilation[i] - 1) / conv.stride[i] + 1;
    }
    return conv;
}

/* An epilogue with the parts selected by the bits of `kind`: bias, addend, relu, limit. */
static struct tare_gemm_epilogue epilogue_of(int kind, const float *bias, const float *addend) {
    return (struct tare_gemm_epilogue){ .bias = kind & 1 ? bias : NULL,
                                        .addend = kind & 2 ? addend : NULL,
                                        .relu = (kind & 4) != 0,
                                        .limit = kind & 8 ? 1.5f : INFINITY };
}

static void apply_plainly(float *values, int64_t count, int64_t columns, const struct tare_gemm_epilogue *epilogue) {
    for (int64_t i = 0; i < count; i++) {
        if (epilogue->bias) values[i] = values[i] + epilogue->bias[i % columns];
        if (epilogue->addend) values[i] = values[i] + epilogue->addend[i];
        if (epilogue->relu) values[i] = values[i] < 0 ? 0 : values[i];
        if (epilogue->relu) values[i] = values[i] > epilogue->limit ? epilogue->limit : values[i];
    }
}

/* With tiny products a sum is the zero of the last product's sign, and a product of padding changes -0 to +0. */
enum values { ORDINARY, TINY, TINY_SIGNED_ZEROS, TINY_NEGATIVE_TAP, INFINITE_WEIGHT };

/* In a 3×3 convolution padded by 1: the first sum of output line 1 is -0 after the first line of taps, and all products
 * of the others are -0, except those of padding. */
static void set_signed_zeros(const struct tare_conv *conv, float *input, const float *filter) {
    const int64_t channels = conv->in_channels, columns = conv->out_channels;
    for (int64_t i = 0; i < 4 * channels; i++) {
        const int64_t kh = 1 + i / channels / 2, kw = 1 + i / channels % 2, c = i % channels;
        const float weight = filter[((kh * 3 + kw) * channels + c) * columns];
        input[(kh * conv->in[2] + kw - 1) * channels + c] = weight > 0 ? -0.0f : 0.0f;
    }
    input[2 * channels - 1] = copysignf(0x1p-100f, -filter[(3 * channels - 1) * columns]);
}

static void change_values(enum values values, const struct tare_conv *conv, float *input, float *filter) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels, columns = conv->out_channels;
    const int64_t size = tare_conv_patch(conv) * columns, last_tap = size - conv->in_channels * columns;
    for (int64_t i = 0; i < in && values != ORDINARY; i++)
        input[i] *= 0x1p-100f;
    for (int64_t i = 0; i < size && values != ORDINARY; i++)
        filter[i] *= 0x1p-100f;
    for (int64_t i = last_tap; i < size && values == TINY_NEGATIVE_TAP; i += columns)
        filter[i] = -fabsf(filter[i]);
    if (values == TINY_SIGNED_ZEROS && conv->kernel[1] == 3 && conv->kernel[2] == 3 && conv->in[1] >= 3)
        set_signed_zeros(conv, input, filter);
    if (values == INFINITE_WEIGHT) filter[0] = INFINITY;
}

/* The plain loops over an input with zeros around it: they leave padding out. */
static void run_plain_with_zeros(float *output, const struct tare_conv *conv, const float *input, const float *filter) {
    struct tare_conv padded = *conv;
    const int64_t line = conv->in[2] * conv->in_channels;
    padded.in[1] += 2 * conv->pad[1], padded.in[2] += 2 * conv->pad[2];
    padded.pad[1] = padded.pad[2] = 0;
    const int64_t size = padded.batch * padded.in[1] * padded.in[2] * padded.in_channels;
    float *copy = guarded(size);
    memset(copy, 0, (size_t)size * sizeof *copy);
    for (int64_t i = 0; i < conv->batch * conv->in[1]; i++) {
        const int64_t h = i / conv->in[1] * padded.in[1] + i % conv->in[1] + conv->pad[1];
        memcpy(copy + (h * padded.in[2] + conv->pad[2]) * conv->in_channels, input + i * line,
               (size_t)line * sizeof *copy);
    }
    tare_conv_plain_f32(output, &padded, copy, filter);
    free_guarded(copy, size);
}

/* What one convolution reads and writes; `plain`: the sums of the plain loops. */
struct conv_buffers {
    float *input, *filter, *packed, *bias, *addend, *expanded, *got, *expected, *plain, *scratch;
};

/* Dense at every level, and depthwise where it is one, with the epilogue of `kind` (0: none). */
static void check_epilogue(const struct tare_conv *conv, const struct conv_buffers *b, int kind, const char *what) {
    const int64_t columns = conv->out_channels, out = tare_conv_rows(conv) * columns;
    const struct tare_gemm_epilogue given = epilogue_of(kind, b->bias, b->addend), *epilogue = kind ? &given : NULL;
    memcpy(b->expected, b->plain, (size_t)out * sizeof *b->plain);
    apply_plainly(b->expected, out, columns, &given);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        memset(b->got, 0xff, (size_t)out * sizeof *b->got);
        tare_conv_dense_at(level, b->got, conv, b->input, b->packed, epilogue, b->scratch);
        assert_same_bits(b->got, b->expected, out, what, tare_cpu_level_name(level));
        if (kind & 2 && tare_conv_adds_in_place(conv)) {
            const struct tare_gemm_epilogue in_place = epilogue_of(kind, b->bias, b->got);
            memcpy(b->got, b->addend, (size_t)out * sizeof *b->got);
            tare_conv_dense_at(level, b->got, conv, b->input, b->packed, &in_place, b->scratch);
            assert_same_bits(b->got, b->expected, out, what, tare_cpu_level_name(level));
        }
        if (!tare_conv_is_depthwise(conv)) continue;
        memset(b->got, 0xff, (size_t)out * sizeof *b->got);
        tare_conv_depthwise_at(level, b->got, conv, b->input, b->filter, epilogue, b->expanded);
        assert_same_bits(b->got, b->expected, out, what, tare_cpu_level_name(level));
    }
}

/* With the epilogues kind, kind + step … below 16: the plain sums are the same for all. */
static void check_conv(const struct tare_conv *conv, int kind, int step, enum values values, const char *what) {
    assert_int_equal(tare_conv_check(conv), TARE_OK);
    const int64_t pixels = conv->in[0] * conv->in[1] * conv->in[2], columns = conv->out_channels;
    const int64_t in = conv->batch * pixels * conv->in_channels;
    const int64_t out = tare_conv_rows(conv) * columns, filter_size = tare_conv_patch(conv) * columns;
    const int64_t packed_size = (int64_t)tare_conv_packed_floats(conv);
    const int64_t scratch_size = (int64_t)tare_conv_dense_scratch(conv);
    const int64_t depthwise_size = tare_conv_is_depthwise(conv) ? (int64_t)tare_conv_depthwise_scratch(conv) : 0;
    const struct conv_buffers b = { .input = guarded_random(in),
                                    .filter = guarded_random(filter_size),
                                    .packed = guarded(packed_size),
                                    .bias = guarded_random(columns),
                                    .addend = guarded_random(out),
                                    .expanded = guarded(depthwise_size),
                                    .got = guarded(out),
                                    .expected = guarded(out),
                                    .plain = guarded(out),
                                    .scratch = guarded(scratch_size) };
    change_values(values, conv, b.input, b.filter);
    (values == ORDINARY ? tare_conv_plain_f32 : run_plain_with_zeros)(b.plain, conv, b.input, b.filter);
    tare_conv_pack(b.packed, conv, b.filter);
    for (; kind < 16; kind += step) {
        char finished[80];
        snprintf(finished, sizeof finished, "%s finished %d", what, kind);
        check_epilogue(conv, &b, kind, finished);
    }
    free_guarded(b.input, in), free_guarded(b.filter, filter_size), free_guarded(b.packed, packed_size);
    free_guarded(b.bias, columns), free_guarded(b.addend, out), free_guarded(b.expanded, depthwise_size);
    free_guarded(b.got, out), free_guarded(b.expected, out), free_guarded(b.plain, out);
    free_guarded(b.scratch, scratch_size);
}

static void conv__bits_of_the_plain_loops(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++) {
        char what[60];
        const struct tare_conv conv = conv_of(conv_cases[i]);
        snprintf(what, sizeof what, "convolution %zu", i);
        check_conv(&conv, 0, i % 3 ? 5 : 1, ORDINARY, what);
    }
}

static void conv__zeros_of_padding_have_their_effect(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++) {
        char what[60];
        const struct tare_conv conv = conv_of(conv_cases[i]);
        if (conv.groups > 1 || conv.pad[1] < 0 || conv.base_dilation[1] > 1) continue;
        for (enum values values = TINY; values <= INFINITE_WEIGHT; values++) {
            snprintf(what, sizeof what, "convolution %zu with values %d", i, (int)values);
            check_conv(&conv, 0, 16, values, what);
        }
    }
}

/* Kernels, strides, paddings, heights and widths around the tiles of the vector kernels, whole and partial vectors of
 * channels. */
static void conv__depthwise_kernels_of_every_size(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 16, 3, 32, 37, 149 }, widths[] = { 8, 14, 7, 23, 9 };
    for (int i = 0; i < 240; i++) {
        char what[60];
        const int64_t kernel = 1 + i % 7, kernel_w = 2 + i / 3 % 6, stride = 1 + i / 2 % 3, pad = i % 5;
        const int64_t height = 8 + i % 3, width = widths[i / 7 % 5], c = channels[i / 5 % 5];
        struct tare_conv conv = {
            .batch = 1 + i % 2,
            .in = { 1, height, width },
            .in_channels = c,
            .kernel = { 1, kernel, kernel_w },
            .out = { 1, (height + 2 * pad - kernel) / stride + 1, (width + 2 * pad - kernel_w) / stride + 1 },
            .out_channels = c,
            .stride = { 1, stride, stride },
            .dilation = { 1, 1, 1 },
            .base_dilation = { 1, 1, 1 },
            .pad = { 0, pad, pad },
            .groups = c,
        };
        snprintf(what, sizeof what, "depthwise %d", i);
        check_conv(&conv, i % 16, 16, ORDINARY, what);
    }
}

/* Dilated inputs: kernels smaller and larger than the distance of the elements, also dilated ones, and paddings of both
 * signs. */
static void conv__zeros_between_elements_are_skipped(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 5, 16, 1, 33 };
    for (int i = 0; i < 240; i++) {
        char what[60];
        struct tare_conv conv = {
            .batch = 1 + i % 2, .in_channels = channels[i % 4], .out_channels = channels[i / 3 % 4], .groups = 1
        };
        for (int axis = 0; axis < 3; axis++) {
            const int n = i / (1 + 2 * axis) + axis;
            conv.in[axis] = axis == 0 ? 1 + i / 60 % 2 : 3 + n % 5;
            conv.kernel[axis] = axis == 0 ? 1 + i / 30 % 2 : 1 + n % 5;
            conv.dilation[axis] = 1 + n / 7 % 3;
            conv.base_dilation[axis] = axis == 0 ? 1 + i / 90 : 1 + n / 2 % 4;
            conv.stride[axis] = conv.base_dilation[axis] == 1 ? 1 + n % 2 : 1;
            conv.pad[axis] = n % 6 - 2;
            const int64_t size = (conv.in[axis] - 1) * conv.base_dilation[axis] + 1 + 2 * conv.pad[axis];
            const int64_t room = size - (conv.kernel[axis] - 1) * conv.dilation[axis] - 1;
            conv.out[axis] = room < 0 ? 1 : room / conv.stride[axis] + 1;
        }
        snprintf(what, sizeof what, "dilated input %d", i);
        check_conv(&conv, i % 16, 16, ORDINARY, what);
    }
}

static void conv__three_dimensions(void **unused) {
    (void)unused;
    struct tare_conv conv = {
        .batch = 2,
        .in = { 5, 6, 7 },
        .in_channels = 4,
        .kernel = { 3, 2, 3 },
        .out_channels = 10,
        .stride = { 2, 1, 1 },
        .dilation = { 1, 2, 1 },
        .base_dilation = { 1, 1, 1 },
        .pad = { 1, 0, 1 },
        .groups = 1,
        .out = { 3, 4, 7 },
    };
    const int64_t in = 2 * 5 * 6 * 7 * 4, out = 2 * 3 * 4 * 7 * 10;
    for (int pass = 0; pass < 2; pass++) {
        float *input = guarded_random(in), *filter = guarded_random(18 * 4 * 10);
        float *got = guarded(out), *expected = guarded(out), *scratch = guarded((int64_t)tare_gemm_scratch_floats());
        tare_conv_plain_f32(expected, &conv, input, filter);
        if (pass == 0) {
            float *packed = guarded((int64_t)tare_conv_packed_floats(&conv));
            tare_conv_pack(packed, &conv, filter);
            tare_conv_dense(got, &conv, input, packed, NULL, scratch);
            free_guarded(packed, (int64_t)tare_conv_packed_floats(&conv));
        } else {
            tare_conv_depthwise(got, &conv, input, filter, NULL, NULL);
        }
        assert_same_bits(got, expected, tare_conv_rows(&conv) * conv.out_channels, "3d", pass ? "depthwise" : "dense");
        free_guarded(input, in), free_guarded(filter, 18 * 4 * 10), free_guarded(got, out), free_guarded(expected, out);
        free_guarded(scratch, (int64_t)tare_gemm_scratch_floats());
        conv.out_channels = 4, conv.groups = 4;
    }
}

static void conv_check__refuses_what_is_no_convolution(void **unused) {
    (void)unused;
    struct tare_conv conv = conv_of(conv_cases[0]);
    conv.groups = 2;
    assert_int_equal(tare_conv_check(&conv), TARE_SHAPE);
    conv = conv_of(conv_cases[0]);
    conv.stride[1] = 0;
    assert_int_equal(tare_conv_check(&conv), TARE_INVALID_ARGUMENT);
    conv = conv_of(conv_cases[0]);
    conv.dilation[2] = INT64_MAX / 2;
    assert_int_equal(tare_conv_check(&conv), TARE_SHAPE);
    conv = conv_of(conv_cases[0]);
    conv.out_channels = INT64_MAX / 20;
    assert_int_equal(tare_conv_check(&conv), TARE_SHAPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm__bits_of_the_plain_chain_at_every_level),
        cmocka_unit_test(gemm__transposed_and_int8_weights_pack_alike),
        cmocka_unit_test(gemm__a_row_is_the_same_bits_in_any_batch),
        cmocka_unit_test(conv__bits_of_the_plain_loops),
        cmocka_unit_test(conv__zeros_of_padding_have_their_effect),
        cmocka_unit_test(conv__depthwise_kernels_of_every_size),
        cmocka_unit_test(conv__zeros_between_elements_are_skipped),
        cmocka_unit_test(conv__three_dimensions),
        cmocka_unit_test(conv_check__refuses_what_is_no_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
