/* General epilogues have the bits of their steps one after another, at every level, and write nothing else: alone on
 * values with extremes and NaNs, and in convolutions. */
#include "support/guarded.h"

#include "base/tensor/number.h"
#include "interpreter/kernels/conv.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The parts of an epilogue. */
enum { SCALE = 1, BIAS = 2, NORM = 4, ADDEND = 8, RELU = 16, LIMIT = 32, ROUNDS = 64, NARROW = 128, ALL = 256 };

static float narrow(float x) {
    return tare_float_from_bfloat16(tare_bfloat16_from_float(x));
}

/* Operands for a matrix of `rows` by `columns`, bfloat16 values if they round. */
struct operands {
    int64_t rows, columns;
    float *scale, *bias, *mean, *factor, *offset, *addend;
    uint16_t *addend_bfloat16, *to;
};

static void make_operands(struct operands *o, int64_t rows, int64_t columns) {
    *o = (struct operands){ rows,
                            columns,
                            guarded_random(columns),
                            guarded_random(columns),
                            guarded_random(columns),
                            guarded_random(columns),
                            guarded_random(columns),
                            guarded_random(rows * columns),
                            malloc((size_t)(rows * columns) * 2),
                            malloc((size_t)(rows * columns) * 2) };
    assert_non_null(o->addend_bfloat16);
    assert_non_null(o->to);
    for (int64_t i = 0; i < columns; i++)
        o->bias[i] = narrow(o->bias[i]), o->scale[i] = narrow(o->scale[i]);
    for (int64_t i = 0; i < rows * columns; i++)
        o->addend_bfloat16[i] = tare_bfloat16_from_float(o->addend[i]);
}

static void free_operands(struct operands *o) {
    free_guarded(o->scale, o->columns), free_guarded(o->bias, o->columns), free_guarded(o->mean, o->columns);
    free_guarded(o->factor, o->columns), free_guarded(o->offset, o->columns);
    free_guarded(o->addend, o->rows * o->columns);
    free(o->addend_bfloat16), free(o->to);
}

static struct tare_gemm_epilogue epilogue_of(const struct operands *o, int kind) {
    const bool rounds = (kind & ROUNDS) != 0;
    return (struct tare_gemm_epilogue){ .scale = kind & SCALE ? o->scale : NULL,
                                        .bias = kind & BIAS ? o->bias : NULL,
                                        .mean = kind & NORM ? o->mean : NULL,
                                        .factor = kind & NORM ? o->factor : NULL,
                                        .offset = kind & NORM ? o->offset : NULL,
                                        .addend = (kind & ADDEND) && !rounds ? o->addend : NULL,
                                        .addend_bfloat16 = (kind & ADDEND) && rounds ? o->addend_bfloat16 : NULL,
                                        .relu = (kind & RELU) != 0,
                                        .limit = kind & LIMIT ? 1.5f : INFINITY,
                                        .is_general = true,
                                        .rounds = rounds,
                                        .to = rounds && (kind & NARROW) ? o->to : NULL };
}

/* The steps as separate ops compute them. */
static float steps(const struct operands *o, int kind, float x, int64_t i) {
    const int64_t c = i % o->columns;
    const bool rounds = (kind & ROUNDS) != 0;
#define STEP(part, expression)                                                                                         \
    if (kind & (part)) x = rounds ? narrow(expression) : (expression)
    STEP(ROUNDS, x);
    STEP(SCALE, x * o->scale[c]);
    STEP(BIAS, x + o->bias[c]);
    STEP(NORM, (x - o->mean[c]) * o->factor[c] + o->offset[c]);
    STEP(ADDEND, x + (rounds ? tare_float_from_bfloat16(o->addend_bfloat16[i]) : o->addend[i]));
#undef STEP
    if (!(kind & RELU)) return x;
    x = x < 0 ? 0 : x;
    return (kind & LIMIT) && x > 1.5f ? 1.5f : x;
}

/* What is in C or, converted, in `to`. */
static void check_result(const struct operands *o, int kind, const float *c, const float *expected, const char *what,
                         enum tare_cpu_level level) {
    const int64_t count = o->rows * o->columns;
    if (!(kind & ROUNDS) || !(kind & NARROW)) {
        assert_same_bits(c, expected, count, what, tare_cpu_level_name(level));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (o->to[i] != tare_bfloat16_from_float(expected[i]))
            fail_msg("%s at level %s: element %lld is %04x (expected %.9g)", what, tare_cpu_level_name(level),
                     (long long)i, o->to[i], (double)expected[i]);
    }
}

/* Values whose rounding is special (of two NaNs the compiler chooses which one a sum has, so there is one at most);
 * NaNs as operations on bfloat16 values produce them. */
static float special(int64_t i) {
    static const uint32_t bits[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                                     1,          0x807fffff, 0x00008000, 0x00018000, 0x3f808000, 0x3f818000,
                                     0xbf808001, 0x7f7fffff, 0xff7f8000, 0x3fc00000, 0x00007fff, 0x3f807fff };
    return tare_float_from_bits(bits[i % (int64_t)(sizeof bits / sizeof *bits)]);
}

static void check_alone(int64_t rows, int64_t columns, int kind) {
    const int64_t count = rows * columns;
    struct operands o;
    char what[60];
    make_operands(&o, rows, columns);
    float *sums = guarded_random(count), *expected = guarded(count), *c = guarded(count);
    for (int64_t i = 0; i < count; i++) {
        if (i % 3 == 0) sums[i] = special(i / 3);
        if (i % 12 == 5) o.addend[i] = special(i / 12), o.addend_bfloat16[i] = tare_bfloat16_from_float(o.addend[i]);
        expected[i] = steps(&o, kind, sums[i], i);
    }
    const struct tare_gemm_epilogue epilogue = epilogue_of(&o, kind);
    tare_epilogue_function *const run[] = {
        tare_epilogue_plain,
#if TARE_KERNELS_X86
        tare_epilogue_avx2,
        tare_epilogue_avx512
#endif
    };
    snprintf(what, sizeof what, "epilogue %d of %lld rows of %lld", kind, (long long)rows, (long long)columns);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level() && level <= TARE_CPU_AVX512; level++) {
        memcpy(c, sums, (size_t)count * sizeof *c);
        memset(o.to, 0xff, (size_t)count * sizeof *o.to);
        run[level](&epilogue, c, columns, rows, columns, 0, 0);
        check_result(&o, kind, c, expected, what, level);
    }
    free_guarded(sums, count), free_guarded(expected, count), free_guarded(c, count);
    free_operands(&o);
}

static void epilogue__bits_of_the_steps(void **unused) {
    (void)unused;
    static const int64_t columns[] = { 1, 2, 3, 4, 7, 8, 16, 17, 40 };
    for (int kind = 0; kind < ALL; kind++)
        for (int i = 0; i < 9; i++)
            check_alone(1 + (kind + i) % 14, columns[i], kind);
}

/* ---- in convolutions ---- */

static void check_conv(const struct tare_conv *conv, int kind) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels, columns = conv->out_channels;
    const int64_t rows = tare_conv_rows(conv), out = rows * columns, filter_size = tare_conv_patch(conv) * columns;
    const int64_t packed_size = (int64_t)tare_conv_packed_floats(conv);
    const int64_t scratch_size = (int64_t)tare_conv_dense_scratch(conv);
    const bool depthwise = tare_conv_is_depthwise(conv);
    struct operands o;
    char what[60];
    make_operands(&o, rows, columns);
    float *input = guarded_random(in), *filter = guarded_random(filter_size), *packed = guarded(packed_size);
    float *c = guarded(out), *expected = guarded(out), *scratch = guarded(scratch_size);
    const struct tare_gemm_epilogue epilogue = epilogue_of(&o, kind);
    tare_conv_plain_f32(expected, conv, input, filter);
    for (int64_t i = 0; i < out; i++)
        expected[i] = steps(&o, kind, expected[i], i);
    tare_conv_pack(packed, conv, filter);
    snprintf(what, sizeof what, "%lld channels with epilogue %d", (long long)columns, kind);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level++) {
        memset(o.to, 0xff, (size_t)out * sizeof *o.to);
        tare_conv_dense_at(level, c, conv, input, packed, &epilogue, scratch);
        check_result(&o, kind, c, expected, what, level);
        if (!depthwise) continue;
        memset(o.to, 0xff, (size_t)out * sizeof *o.to);
        tare_conv_depthwise_at(level, c, conv, input, filter, &epilogue, NULL);
        check_result(&o, kind, c, expected, what, level);
    }
    free_guarded(input, in), free_guarded(filter, filter_size), free_guarded(packed, packed_size);
    free_guarded(c, out), free_guarded(expected, out), free_guarded(scratch, scratch_size);
    free_operands(&o);
}

/* Direct, gathered, pointwise, grouped, depthwise; k and rows in one block and in several. */
static void epilogue__in_convolutions(void **unused) {
    (void)unused;
    static const int64_t cases[][6] = { /* batch, size, in, out, kernel, groups */
                                        { 2, 17, 3, 20, 3, 1 }, { 1, 9, 200, 33, 3, 1 }, { 2, 13, 37, 40, 1, 1 },
                                        { 1, 6, 8, 140, 3, 1 }, { 2, 6, 12, 18, 3, 3 },  { 2, 11, 24, 24, 3, 24 },
                                        { 1, 8, 8, 8, 5, 8 },   { 1, 12, 600, 16, 1, 1 }
    };
    for (int i = 0; i < 8; i++) {
        const int64_t *row = cases[i];
        const struct tare_conv conv = { .batch = row[0],
                                        .in = { 1, row[1], row[1] },
                                        .in_channels = row[2],
                                        .kernel = { 1, row[4], row[4] },
                                        .out = { 1, row[1], row[1] },
                                        .out_channels = row[3],
                                        .stride = { 1, 1, 1 },
                                        .dilation = { 1, 1, 1 },
                                        .base_dilation = { 1, 1, 1 },
                                        .pad = { 0, row[4] / 2, row[4] / 2 },
                                        .groups = row[5] };
        for (int kind = i; kind < ALL; kind += 11)
            check_conv(&conv, kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epilogue__bits_of_the_steps),
        cmocka_unit_test(epilogue__in_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
