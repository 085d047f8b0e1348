/* Tiled convolutions have the bits of untiled ones for every tile size, and write nothing outside their output. */
#include "support/guarded.h"

#include "base/tensor/number.h"
#include "interpreter/kernels/tiling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 1;
static int64_t pick(int64_t low, int64_t high) {
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 16) % (high - low + 1);
}

/* A tiling with all its arrays. */
struct tiling_case {
    struct tare_tiling tiling;
    struct tare_gemm_epilogue epilogues[TARE_TILING_MAX_STAGES];
    float *filters[TARE_TILING_MAX_STAGES], *packed[TARE_TILING_MAX_STAGES], *biases[TARE_TILING_MAX_STAGES],
        *addends[TARE_TILING_MAX_STAGES];
    struct tare_tiling_bounds bounds[TARE_TILING_MAX_STAGES];
    float *arrays[TARE_TILING_MAX_STAGES + 1]; /* the tiling's input, then what each stage makes of the one before */
};

static int64_t in_size(const struct tiling_case *c, int i) {
    const struct tare_conv *conv = &c->tiling.stages[i].conv;
    return c->tiling.batch * conv->in[1] * conv->in[2] * conv->in_channels;
}
static int64_t out_size(const struct tiling_case *c, int i) {
    const struct tare_conv *conv = &c->tiling.stages[i].conv;
    return c->tiling.batch * conv->out[1] * conv->out[2] * conv->out_channels;
}
static int64_t filter_size(const struct tare_conv *conv) {
    return tare_conv_patch(conv) * conv->out_channels;
}

/* Kernel, stride, dilation and padding so that something comes out; dense, depthwise or padding. */
static void pick_stage(struct tare_tiling_stage *stage, const int64_t in[3], int64_t channels) {
    struct tare_conv *conv = &stage->conv;
    const int64_t kind = pick(0, 4);
    *conv = (struct tare_conv){ .batch = 1, .groups = 1, .in_channels = channels, .out_channels = channels };
    for (int i = 0; i < 3; i++) {
        conv->in[i] = in[i];
        conv->kernel[i] = conv->stride[i] = conv->dilation[i] = conv->base_dilation[i] = conv->out[i] = 1;
    }
    stage->is_padding = kind == 0;
    if (kind == 1) conv->groups = channels;
    if (kind >= 2) conv->out_channels = pick(1, 40);
    for (int i = 1; i < 3; i++) {
        conv->pad[i] = kind == 3 ? 0 : pick(0, 2);
        conv->out[i] = conv->in[i] + conv->pad[i] + pick(0, 2);
        if (kind == 0) continue;
        conv->kernel[i] = kind == 3 ? 1 : pick(1, 4);
        conv->stride[i] = kind == 3 ? 1 : pick(1, 3);
        conv->dilation[i] = kind == 2 && i == 1 ? pick(1, 2) : 1;
        const int64_t reach = (conv->kernel[i] - 1) * conv->dilation[i];
        const int64_t last = conv->in[i] + 2 * conv->pad[i] - reach - 1;
        if (last < 0) conv->kernel[i] = 1;
        conv->out[i] = last < 0 ? conv->in[i] : last / conv->stride[i] + 1;
        if (last < 0) conv->pad[i] = 0, conv->stride[i] = 1;
    }
}

/* `most`: lines and columns of the input. */
static void make(struct tiling_case *c, int n, int64_t batch, int64_t most) {
    int64_t in[3] = { 1, pick(1, most), pick(1, most) }, channels = pick(2, 20);
    memset(c, 0, sizeof *c);
    c->tiling.n_stages = n;
    c->tiling.batch = batch;
    for (int i = 0; i < n; i++) {
        struct tare_tiling_stage *stage = &c->tiling.stages[i];
        const struct tare_conv *conv = &stage->conv;
        pick_stage(stage, in, channels);
        if (conv->out_channels == 1 && conv->groups == 1) stage->conv.out_channels = stage->is_padding ? channels : 2;
        memcpy(in, conv->out, sizeof in);
        channels = conv->out_channels;
        if (i == 0) c->arrays[0] = guarded_random(in_size(c, 0));
        c->arrays[i + 1] = guarded(out_size(c, i));
        if (stage->is_padding) continue;
        const bool dense = conv->groups == 1;
        c->filters[i] = guarded_random(filter_size(conv));
        if (dense) {
            c->packed[i] = guarded((int64_t)tare_conv_packed_floats(conv));
            tare_conv_pack(c->packed[i], conv, c->filters[i]);
        }
        stage->weights = dense ? c->packed[i] : c->filters[i];
        c->biases[i] = guarded_random(channels);
        c->addends[i] = guarded_random(out_size(c, i));
        const int64_t kind = pick(0, 7);
        c->epilogues[i] = (struct tare_gemm_epilogue){ .bias = kind & 1 ? c->biases[i] : NULL,
                                                       .addend = kind & 2 ? c->addends[i] : NULL,
                                                       .relu = (kind & 4) != 0,
                                                       .limit = 6 };
        if (kind) stage->epilogue = &c->epilogues[i];
    }
}

/* A stage as the plain loops have it, over all of its input. */
static void run_plain(const struct tiling_case *c, int i) {
    const struct tare_tiling_stage *stage = &c->tiling.stages[i];
    struct tare_conv conv = stage->conv;
    const float *from = c->arrays[i];
    float *to = c->arrays[i + 1];
    conv.batch = c->tiling.batch;
    if (!stage->is_padding) {
        tare_conv_plain_f32(to, &conv, from, c->filters[i]);
        for (int64_t k = 0; stage->epilogue && k < out_size(c, i); k++)
            to[k] = tare_gemm_apply_epilogue(stage->epilogue, to[k], k, k % conv.out_channels);
        return;
    }
    memset(to, 0, (size_t)out_size(c, i) * sizeof *to);
    for (int64_t line = 0; line < conv.batch * conv.in[1]; line++) {
        const int64_t image = line / conv.in[1], h = line % conv.in[1] + conv.pad[1];
        memcpy(to + ((image * conv.out[1] + h) * conv.out[2] + conv.pad[2]) * conv.in_channels,
               from + line * conv.in[2] * conv.in_channels, (size_t)(conv.in[2] * conv.in_channels) * sizeof *to);
    }
}

static void release(struct tiling_case *c) {
    free_guarded(c->arrays[0], in_size(c, 0));
    for (int i = 0; i < c->tiling.n_stages; i++) {
        const struct tare_conv *conv = &c->tiling.stages[i].conv;
        free_guarded(c->arrays[i + 1], out_size(c, i));
        if (c->tiling.stages[i].is_padding) continue;
        free_guarded(c->filters[i], filter_size(conv));
        if (c->packed[i]) free_guarded(c->packed[i], (int64_t)tare_conv_packed_floats(conv));
        free_guarded(c->biases[i], conv->out_channels), free_guarded(c->addends[i], out_size(c, i));
    }
}

/* Tiles from one line to the whole, at every level. */
static void check(struct tiling_case *c, const char *what) {
    const int n = c->tiling.n_stages;
    const int64_t count = out_size(c, n - 1);
    static const int64_t budgets[] = { 1, 700, 3000, 20000, 1000000 };
    for (int i = 0; i < n; i++) {
        assert_true(tare_tiling_supports(&c->tiling.stages[i]));
        run_plain(c, i);
    }
    for (int b = 0; b < 5; b++) {
        char text[80];
        tare_tiling_plan(&c->tiling, budgets[b]); /* also where it does not pay */
        snprintf(text, sizeof text, "%s in tiles of %lld lines, %lld images", what, (long long)c->tiling.lines,
                 (long long)c->tiling.images);
        const int64_t floats = (int64_t)tare_tiling_scratch(&c->tiling);
        float *got = guarded(count), *scratch = guarded(floats);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            memset(got, 0xff, (size_t)count * sizeof *got);
            tare_tiling_run_at(level, &c->tiling, got, c->arrays[0], scratch);
            assert_same_bits(got, c->arrays[n], count, text, tare_cpu_level_name(level));
        }
        free_guarded(got, count), free_guarded(scratch, floats);
    }
}

/* The same for bfloat16: all stages round, the first converts the input, and the last is a convolution. */
static void make_bfloat16(struct tiling_case *c, int n, int64_t batch, int64_t most) {
    do {
        if (c->tiling.n_stages > 0) release(c);
        make(c, n, batch, most);
    } while (c->tiling.stages[n - 1].is_padding || c->tiling.stages[0].is_padding);
    for (int i = 0; i < n; i++) {
        const int64_t channels = c->tiling.stages[i].conv.out_channels;
        if (c->tiling.stages[i].is_padding) continue;
        for (int64_t k = 0; k < channels; k++)
            c->biases[i][k] = tare_float_from_bfloat16(tare_bfloat16_from_float(c->biases[i][k]));
        c->epilogues[i].addend = NULL;
        c->epilogues[i].is_general = c->epilogues[i].rounds = true;
        c->epilogues[i].is_bounded = tare_epilogue_is_bounded(&c->epilogues[i], channels);
        c->tiling.stages[i].epilogue = &c->epilogues[i];
        if (!c->epilogues[i].is_bounded) continue;
        c->bounds[i] = tare_tiling_bounds_of(&c->tiling.stages[i].conv, c->tiling.stages[i].weights, &c->epilogues[i]);
        c->tiling.stages[i].bounds = &c->bounds[i];
    }
}

/* A stage of which every step rounds. */
static void run_rounded(const struct tiling_case *c, int i) {
    struct tiling_case sums = *c;
    const struct tare_gemm_epilogue *epilogue = c->tiling.stages[i].epilogue;
    sums.tiling.stages[i].epilogue = NULL;
    run_plain(&sums, i);
    for (int64_t k = 0; epilogue && k < out_size(c, i); k++) {
        float x = tare_float_from_bfloat16(tare_bfloat16_from_float(c->arrays[i + 1][k]));
        if (epilogue->bias) x += epilogue->bias[k % c->tiling.stages[i].conv.out_channels];
        x = tare_float_from_bfloat16(tare_bfloat16_from_float(x));
        if (epilogue->relu) x = x < 0 ? 0 : x > epilogue->limit ? epilogue->limit : x;
        c->arrays[i + 1][k] = x;
    }
}

static void widen_first(struct tare_tiling *widened, const struct tare_tiling *tiling) {
    const struct tare_conv *first = &tiling->stages[0].conv;
    *widened = *tiling;
    memmove(widened->stages + 1, widened->stages, (size_t)tiling->n_stages * sizeof *widened->stages);
    widened->n_stages++;
    widened->stages[0] = (struct tare_tiling_stage){ .is_widening = true, .conv = *first };
    struct tare_conv *conv = &widened->stages[0].conv;
    conv->out_channels = conv->in_channels;
    conv->groups = 1;
    for (int i = 0; i < 3; i++) {
        conv->out[i] = conv->in[i];
        conv->pad[i] = 0;
        conv->kernel[i] = conv->stride[i] = conv->dilation[i] = 1;
    }
}

static bool is_same_bfloat16(uint16_t got, float expected) {
    const float x = tare_float_from_bfloat16(got);
    return expected != expected ? x != x : got == tare_bfloat16_from_float(expected);
}

/* `scale`: factor of the input; an infinite one makes it infinities and NaN. */
static void check_bfloat16(struct tiling_case *c, const char *what, float scale) {
    const int n = c->tiling.n_stages;
    const int64_t count = out_size(c, n - 1), in = in_size(c, 0);
    static const int64_t budgets[] = { 1, 3000, 1000000 };
    uint16_t *input = malloc((size_t)in * sizeof *input), *got = malloc((size_t)count * sizeof *got);
    struct tare_tiling widened;
    assert_non_null(input);
    assert_non_null(got);
    for (int64_t i = 0; i < in; i++) {
        input[i] = tare_bfloat16_from_float(c->arrays[0][i] * scale);
        c->arrays[0][i] = tare_float_from_bfloat16(input[i]);
    }
    for (int i = 0; i < n; i++)
        run_rounded(c, i);
    widen_first(&widened, &c->tiling);
    for (int b = 0; b < 6; b++) {
        widened.parts = b < 3 ? 0 : 2;
        tare_tiling_plan(&widened, budgets[b % 3]);
        const int64_t floats = (int64_t)tare_tiling_scratch(&widened);
        float *scratch = guarded(floats);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            memset(got, 0xff, (size_t)count * sizeof *got);
            tare_tiling_run_at(level, &widened, got, input, scratch);
            for (int64_t k = 0; k < count; k++)
                if (!is_same_bfloat16(got[k], c->arrays[n][k]))
                    fail_msg("%s at level %s, budget %d: element %lld is %04x (expected %.9g)", what,
                             tare_cpu_level_name(level), b, (long long)k, got[k], (double)c->arrays[n][k]);
        }
        free_guarded(scratch, floats);
    }
    free(input), free(got);
}

/* Sums within the bounds of all stages, beyond those of the later ones, and beyond those of the first. */
static void tiling__bfloat16_bits_of_the_stages(void **unused) {
    static const float scales[] = { 1, 1, 0x1p50f, 0x1p100f, INFINITY };
    (void)unused;
    for (int i = 0; i < 120; i++) {
        struct tiling_case c = { .tiling = { .n_stages = 0 } };
        char what[40];
        make_bfloat16(&c, 1 + i % 4, 1 + i % 3, i % 8 ? 24 : 90); /* 90: stage 1 runs in pieces */
        snprintf(what, sizeof what, "bfloat16 tiling %d", i);
        check_bfloat16(&c, what, scales[i % 5]);
        release(&c);
    }
}

static void tiling_bounds__of_sums_and_results(void **unused) {
    (void)unused;
    float filter[2 * 20], packed[2 * 32] = { 0 }, bias[20], mean[20], factor[20], offset[20];
    const struct tare_conv conv = { .batch = 1,
                                    .in = { 1, 1, 1 },
                                    .in_channels = 2,
                                    .kernel = { 1, 1, 1 },
                                    .out = { 1, 1, 1 },
                                    .out_channels = 20,
                                    .stride = { 1, 1, 1 },
                                    .dilation = { 1, 1, 1 },
                                    .base_dilation = { 1, 1, 1 },
                                    .groups = 1 };
    for (int j = 0; j < 20; j++) {
        filter[j] = (float)-j, filter[20 + j] = 2;
        bias[j] = -1, mean[j] = 3, factor[j] = j == 18 ? -10.0f : 0.5f, offset[j] = -4;
    }
    tare_conv_pack(packed, &conv, filter);
    const struct tare_gemm_epilogue epilogue = { .bias = bias, .mean = mean, .factor = factor, .offset = offset };
    const struct tare_tiling_bounds bounds = tare_tiling_bounds_of(&conv, packed, &epilogue);
    assert_true(bounds.sum >= 19 + 2 && bounds.sum < 1.5f * (19 + 2));   /* column 19 */
    assert_true(bounds.gain >= 20 * 10 && bounds.gain < 1.5f * 20 * 10); /* column 18 */
    assert_true(bounds.offset >= 4 * 10 + 4 && bounds.offset < 1.5f * (4 * 10 + 4));
}

static void tiling__bits_of_the_stages_one_after_the_other(void **unused) {
    (void)unused;
    for (int i = 0; i < 150; i++) {
        struct tiling_case c;
        char what[40];
        make(&c, 2 + i % 5, 1 + i % 3, 24);
        snprintf(what, sizeof what, "tiling %d", i);
        check(&c, what);
        release(&c);
    }
}

/* Expansion, depthwise, projection of 64 lines of 64, as in a mobile network. */
static void expand(struct tare_tiling *tiling, int64_t batch, int64_t channels) {
    *tiling = (struct tare_tiling){ .n_stages = 3, .batch = batch };
    for (int i = 0; i < 3; i++) {
        tiling->stages[i].conv = (struct tare_conv){ .batch = 1,
                                                     .in = { 1, 64, 64 },
                                                     .in_channels = i == 0 ? 8 : channels,
                                                     .kernel = { 1, i == 1 ? 3 : 1, i == 1 ? 3 : 1 },
                                                     .out = { 1, 64, 64 },
                                                     .out_channels = i == 2 ? 8 : channels,
                                                     .stride = { 1, 1, 1 },
                                                     .dilation = { 1, 1, 1 },
                                                     .base_dilation = { 1, 1, 1 },
                                                     .pad = { 0, i == 1, i == 1 },
                                                     .groups = i == 1 ? channels : 1 };
    }
}

static void tiling_plan__keeps_what_lies_between_in_the_room_given(void **unused) {
    (void)unused;
    struct tare_tiling tiling;
    expand(&tiling, 5, 32);
    assert_true(tare_tiling_plan(&tiling, 50000));
    assert_int_equal(tiling.lines,
                     8); /* 64 * (8 + 32 + 32 + 8) floats a line, 2 lines more in front of the depthwise one */
    assert_int_equal(tiling.room[1], 10);
    assert_int_equal(tiling.room[2], 8);
    assert_int_equal(tiling.images, 1);
    assert_true(tare_tiling_plan(&tiling, 1)); /* less than a line: line by line */
    assert_int_equal(tiling.lines, 1);
    assert_int_equal(tiling.room[1], 3);
    assert_true(tare_tiling_plan(&tiling, 3 * 64 * 64 * (8 + 32 + 32 + 8))); /* three whole images */
    assert_int_equal(tiling.lines, 64);
    assert_int_equal(tiling.images, 3);
}

static void tiling_plan__declines_what_does_not_pay(void **unused) {
    (void)unused;
    struct tare_tiling tiling;
    expand(&tiling, 1, 32);
    tiling.n_stages = 1;
    assert_false(tare_tiling_plan(&tiling, 50000)); /* nothing lies between */
    expand(&tiling, 1, 32);
    for (int i = 0; i < 3; i++) /* weights read for every line, 2 lines of activations saved */
        tiling.stages[i].conv.in[1] = tiling.stages[i].conv.out[1] = 4,
        tiling.stages[i].conv.in[2] = tiling.stages[i].conv.out[2] = 1;
    assert_false(tare_tiling_plan(&tiling, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiling__bits_of_the_stages_one_after_the_other),
        cmocka_unit_test(tiling__bfloat16_bits_of_the_stages),
        cmocka_unit_test(tiling_bounds__of_sums_and_results),
        cmocka_unit_test(tiling_plan__keeps_what_lies_between_in_the_room_given),
        cmocka_unit_test(tiling_plan__declines_what_does_not_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
