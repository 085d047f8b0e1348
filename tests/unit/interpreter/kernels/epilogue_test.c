/* General epilogues have the bits of their steps one after another, at every level, and write nothing else: alone on
 * values with extremes and NaNs, and in convolutions. */
#include "support/guarded.h"

#include "base/tensor/number.h"
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/simd/pointwise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The parts of an epilogue. */
enum { SCALE = 1, BIAS = 2, NORM = 4, ADDEND = 8, RELU = 16, LIMIT = 32, ROUNDS = 64, NARROW = 128, ALL = 256 };

/* Instead of NARROW, where nothing is rounded: a function instead of the clamp. RELU and LIMIT choose one. */
static const struct tare_pointwise activations[] = {
    { 2, { { TARE_STAGE_SIGMOID, 0, -1, 0 }, { TARE_STAGE_MUL, 1, 0, 0 } } }, /* swish */
    { 5,
      { { TARE_STAGE_MUL, 0, -1, 0.5f }, /* GELU */
        { TARE_STAGE_NEG, 0, -1, 0 },
        { TARE_STAGE_MUL, 2, -1, 0x1.6a09e6p-1f },
        { TARE_STAGE_ERFC, 3, -1, 0 },
        { TARE_STAGE_MUL, 1, 4, 0 } } },
    { 4,
      { { TARE_STAGE_ADD, 0, -1, 3 }, /* hard swish */
        { TARE_STAGE_RELU6, 1, -1, 0 },
        { TARE_STAGE_MUL, 2, -1, 0x1.555556p-3f },
        { TARE_STAGE_MUL, 3, 0, 0 } } },
    { 12,
      { { TARE_STAGE_TANH, 0, -1, 0 },
        { TARE_STAGE_SUB, 1, 0, 0 },
        { TARE_STAGE_SUB_FROM, 2, -1, 1 },
        { TARE_STAGE_MAXIMUM, 3, -1, -4 },
        { TARE_STAGE_MINIMUM, 4, -1, 4 },
        { TARE_STAGE_ERF, 5, -1, 0 },
        { TARE_STAGE_EXP, 6, -1, 0 },
        { TARE_STAGE_DIV, 7, 1, 0 },
        { TARE_STAGE_MAXIMUM, 8, 0, 0 },
        { TARE_STAGE_MINIMUM, 9, -1, 0x1p40f },
        { TARE_STAGE_RELU, 10, -1, 0 },
        { TARE_STAGE_ADD, 11, 8, 0 } } },
};

static const struct tare_pointwise *activation_of(int kind) {
    return (kind & ROUNDS) || !(kind & NARROW) ? NULL : &activations[(kind & (RELU | LIMIT)) / RELU];
}

/* The steps as separate ops compute them. */
static float activate(const struct tare_pointwise *program, float x) {
    union tare_lane values[TARE_POINTWISE_MOST + 1] = { { .f = x } };
    for (int i = 0; i < program->n_steps; i++) {
        const struct tare_pointwise_step *step = &program->steps[i];
        const struct tare_stage stage = { .code = step->code };
        const union tare_lane y = { .f = step->y < 0 ? step->constant : values[step->y].f };
        values[i + 1] = tare_stage_run(&stage, values[step->x], y);
    }
    return values[program->n_steps].f;
}

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
                                        .activation = activation_of(kind),
                                        .relu = (kind & RELU) != 0 && !activation_of(kind),
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
    if (activation_of(kind)) return activate(activation_of(kind), x);
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
        if (activation_of(kind) && isnan(expected[i])) /* often made of two NaNs */
            sums[i] = o.addend[i] = 1, expected[i] = steps(&o, kind, sums[i], i);
    }
    const struct tare_gemm_epilogue epilogue = epilogue_of(&o, kind);
    tare_epilogue_function *const run[] = {
        [TARE_CPU_PLAIN] = tare_epilogue_plain,
#if TARE_KERNELS_V8
        [TARE_CPU_NEON] = tare_epilogue_v8,
        [TARE_CPU_AVX2] = tare_epilogue_v8,
        [TARE_CPU_AVX_VNNI] = tare_epilogue_v8,
#endif
#if TARE_KERNELS_X86
        [TARE_CPU_AVX512] = tare_epilogue_avx512
#endif
    };
    snprintf(what, sizeof what, "epilogue %d of %lld rows of %lld", kind, (long long)rows, (long long)columns);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level() && level <= TARE_CPU_AVX512;
         level = tare_cpu_next_level(level)) {
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
    struct tare_gemm_epilogue epilogue = epilogue_of(&o, kind);
    epilogue.is_bounded = tare_epilogue_is_bounded(&epilogue, columns) && kind % 3 != 0;
    tare_conv_plain_f32(expected, conv, input, filter);
    for (int64_t i = 0; i < out; i++)
        expected[i] = steps(&o, kind, expected[i], i);
    tare_conv_pack(packed, conv, filter);
    snprintf(what, sizeof what, "%lld channels with epilogue %d", (long long)columns, kind);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
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
                                        { 2, 17, 3, 20, 3, 1 }, { 1, 9, 200, 33, 3, 1 },  { 2, 13, 37, 40, 1, 1 },
                                        { 1, 6, 8, 140, 3, 1 }, { 2, 6, 12, 18, 3, 3 },   { 2, 11, 24, 24, 3, 24 },
                                        { 1, 8, 8, 8, 5, 8 },   { 1, 12, 600, 16, 1, 1 }, { 1, 14, 130, 48, 3, 1 }
    };
    for (int i = 0; i < 9; i++) {
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

/* ---- bounded epilogues ---- */

/* Vectors within the bounds, some of them at the bounds. */
static void bound_operands(struct operands *o, int kind) {
    static const float biases[] = { 0x1p-60f, -0x1p-60f, 0x1p60f, -0x1p60f, 0.5f, -1.0f, 0x1.02p-1f };
    static const float means[] = { 0, 0x1p-149f, 0x1p-60f, -0x1p60f, 0.5f, -0.0f };
    static const float factors[] = { 0, 0x1p-149f, -0x1p40f, 0x1p40f, 1, -0.0f, -3 };
    for (int64_t i = 0; i < o->columns; i++) {
        if (i % 2 == 0) o->bias[i] = biases[i / 2 % 7];
        if (i % 3 == 0) o->mean[i] = kind & BIAS ? means[i / 3 % 6] : biases[i / 3 % 7];
        if (i % 5 == 1) o->factor[i] = factors[i / 5 % 7];
        if (i % 4 == 1) o->offset[i] = biases[i / 4 % 7];
    }
}

static void repeat_vectors(struct tare_gemm_epilogue *epilogue, float twice[4][16]) {
    const float **const vectors[] = { &epilogue->bias, &epilogue->mean, &epilogue->factor, &epilogue->offset };
    for (int i = 0; i < 4; i++) {
        if (!*vectors[i]) continue;
        memcpy(twice[i], *vectors[i], 8 * sizeof(float)), memcpy(twice[i] + 8, *vectors[i], 8 * sizeof(float));
        *vectors[i] = twice[i];
    }
    epilogue->is_repeated = true;
}

/* Addends whose rounding is special: zeros, subnormal values, tiny ones; with extremes and NaN unless they are small.
 */
static float special_addend(int64_t i, bool is_small) {
    const float x = special(i);
    return is_small && !(fabsf(x) < 0x1p59f) ? tare_float_from_bits(i % 2 ? 0x00010000 : 0x80020000) : x;
}

/* Sums that are exactly the inputs times 1 or -1: pointwise of one channel, or depthwise of 3×3 with one tap. */
static void check_sums(const struct tare_conv *conv, const float *input, int kind, bool has_small_addends) {
    const int64_t in = conv->in[1] * conv->in[2] * conv->in_channels, columns = conv->out_channels;
    const int64_t rows = tare_conv_rows(conv), out = rows * columns, filter_size = tare_conv_patch(conv) * columns;
    const int64_t packed_size = (int64_t)tare_conv_packed_floats(conv);
    const bool depthwise = tare_conv_is_depthwise(conv);
    float *filter = guarded(filter_size), *packed = guarded(packed_size), *source = guarded(in);
    float *c = guarded(out), *expected = guarded(out), *scratch = guarded((int64_t)tare_conv_dense_scratch(conv));
    struct operands o;
    make_operands(&o, rows, columns);
    bound_operands(&o, kind);
    memcpy(source, input, (size_t)in * sizeof *source);
    for (int64_t i = 0; i < filter_size; i++)
        filter[i] = (depthwise && i / columns != 4) ? 0 : (i % columns % 3 == 2) ? -1 : 1;
    for (int64_t i = 0; i < rows * columns; i += 7)
        o.addend_bfloat16[i] = tare_bfloat16_from_float(special_addend(i / 7, has_small_addends));
    struct tare_gemm_epilogue epilogue = epilogue_of(&o, kind);
    float twice[4][16];
    epilogue.is_bounded = tare_epilogue_is_bounded(&epilogue, columns);
    assert_true(epilogue.is_bounded);
    if (columns == 8) repeat_vectors(&epilogue, twice);
    tare_conv_plain_f32(expected, conv, source, filter);
    for (int64_t i = 0; i < out; i++)
        expected[i] = steps(&o, kind, expected[i], i);
    tare_conv_pack(packed, conv, filter);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        if (depthwise)
            tare_conv_depthwise_at(level, c, conv, source, filter, &epilogue, NULL);
        else
            tare_conv_dense_at(level, c, conv, source, packed, &epilogue, scratch);
        check_result(&o, kind, c, expected, depthwise ? "bounded, depthwise" : "bounded, pointwise", level);
    }
    free_guarded(filter, filter_size), free_guarded(packed, packed_size), free_guarded(source, in);
    free_guarded(c, out), free_guarded(expected, out), free_guarded(scratch, (int64_t)tare_conv_dense_scratch(conv));
    free_operands(&o);
}

static struct tare_conv conv_of(int64_t height, int64_t width, int64_t in, int64_t out, int64_t size) {
    return (struct tare_conv){ .batch = 1,
                               .in = { 1, height, width },
                               .in_channels = in,
                               .kernel = { 1, size, size },
                               .out = { 1, height, width },
                               .out_channels = out,
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, size / 2, size / 2 },
                               .groups = size == 1 ? 1 : in };
}

static const int bounded_kinds[] = { BIAS,
                                     NORM | RELU,
                                     BIAS | NORM,
                                     BIAS | NORM | RELU | NARROW,
                                     BIAS | ADDEND | RELU,
                                     BIAS | ADDEND | NARROW,
                                     BIAS | NORM | ADDEND | RELU | LIMIT,
                                     BIAS | RELU | LIMIT | NARROW };
enum { BOUNDED_KINDS = sizeof bounded_kinds / sizeof *bounded_kinds };

/* Values around all bfloat16 values and the middles between them, but infinities: in order, so that most tiles have
 * only sums within the bound or only others. */
static void epilogue__bounded_of_all_magnitudes(void **unused) {
    (void)unused;
    static const uint32_t low[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
    const struct tare_conv conv = conv_of(0x7f80 * 2 / 60, 6 * 60, 1, 5, 1);
    const int64_t count = conv.in[1] * conv.in[2];
    float *input = guarded(count);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t high = (uint32_t)(i / 6);
        input[i] = tare_float_from_bits((high / 2) << 16 | (high & 1) << 31 | low[i % 6]);
    }
    for (int i = 0; i < BOUNDED_KINDS; i++)
        check_sums(&conv, input, bounded_kinds[i] | ROUNDS, i % 2 == 0);
    free_guarded(input, count);
}

/* Tiny and extreme sums among others, and sums that a bias cancels. */
static void epilogue__bounded_of_mixed_sums(void **unused) {
    (void)unused;
    static const float values[] = { 0x1p-149f,  -0x1p-127f,    0x1p-126f, 0, -0x1p-60f, 0x1p-60f, -0x1.8p-61f,
                                    0x1p60f,    -0x1p60f,      -0.5f,     1, 0.5f,      0x1p-61f, 0x1p-68f,
                                    0x1.02p-1f, 0x1.fffffep59f };
    static const float extremes[] = { 0x1.000002p60f, -0x1p112f, 0x1.fffffep127f };
    for (int64_t columns = 1; columns <= 72; columns = columns < 8 ? columns + 7 : columns * 2 + 4) {
        const struct tare_conv pointwise = conv_of(1, 43, 1, columns, 1),
                               depthwise = conv_of(5, 21, columns, columns, 3);
        const int64_t count = 5 * 21 * columns + 43;
        float *input = guarded_random(count);
        for (int i = 0; i < BOUNDED_KINDS; i++) {
            for (int64_t k = 0; k < count; k++) {
                if (k % 2 == 0) input[k] = values[k / 2 % 16];
                if (i % 2 == 0 && k % 97 == 13) input[k] = extremes[k / 97 % 3];
            }
            for (int small = 0; small <= ((bounded_kinds[i] & ADDEND) != 0); small++) {
                check_sums(&pointwise, input, bounded_kinds[i] | ROUNDS, small);
                check_sums(&depthwise, input, bounded_kinds[i] | ROUNDS, small);
            }
        }
        free_guarded(input, count);
    }
}

static void is_bounded__depends_on_every_vector(void **unused) {
    (void)unused;
    float one[] = { 1, 1, 1 }, zero[] = { 1, 0, 1 }, small[] = { 1, 1, 0x1.fffffep-61f };
    float large[] = { 0x1.000002p60f, 1, 1 }, nan[] = { 1, 1, NAN };
    const struct tare_gemm_epilogue good = {
        .is_general = true, .rounds = true, .bias = one, .mean = zero, .factor = zero, .offset = one
    };
    float *const bad_for_all[] = { large, nan }, *const bad_for_first[] = { zero, small, large, nan };
    struct tare_gemm_epilogue e = good;
    assert_true(tare_epilogue_is_bounded(&e, 3));
    for (int i = 0; i < 4; i++) {
        e = good, e.bias = bad_for_first[i];
        assert_false(tare_epilogue_is_bounded(&e, 3));
        e = good, e.bias = NULL, e.mean = bad_for_first[i];
        assert_false(tare_epilogue_is_bounded(&e, 3));
        e = good, e.offset = bad_for_first[i];
        assert_false(tare_epilogue_is_bounded(&e, 3));
    }
    for (int i = 0; i < 2; i++) {
        e = good, e.mean = bad_for_all[i];
        assert_false(tare_epilogue_is_bounded(&e, 3));
    }
    e = good, e.factor = nan;
    assert_false(tare_epilogue_is_bounded(&e, 3));
    e = good, e.rounds = false;
    assert_false(tare_epilogue_is_bounded(&e, 3));
    e = good, e.scale = one;
    assert_false(tare_epilogue_is_bounded(&e, 3));
    e = good, e.bias = NULL, e.mean = NULL;
    assert_false(tare_epilogue_is_bounded(&e, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epilogue__bits_of_the_steps),         cmocka_unit_test(epilogue__in_convolutions),
        cmocka_unit_test(epilogue__bounded_of_all_magnitudes), cmocka_unit_test(epilogue__bounded_of_mixed_sums),
        cmocka_unit_test(is_bounded__depends_on_every_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
