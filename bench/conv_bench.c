/* Measures convolutions, on one thread, against OpenBLAS sgemm's peak (a 1024-cube) and, where the build found it,
 * against oneDNN, all in one run; the best of alternating rounds. Prints one line a convolution: float in GFLOP/s, with
 * bias and ReLU, its ratio to the peak and to oneDNN's; int8 in GOP/s, with bias, scaling and requantization to int8
 * (oneDNN: also ReLU), and its ratio to oneDNN's. Usage: conv_bench [WORD]: only convolutions whose line contains WORD
 * ("depthwise"). */
#include "base/alloc.h"
#include "base/clock.h"
#include "dnnl_conv.h"
#include "interpreter/kernels/integer/conv_int_direct.h"
#include "interpreter/kernels/integer/winograd_int.h"
#include "interpreter/kernels/integer/winograd_vnni.h"
#include "interpreter/kernels/expression.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void openblas_set_num_threads(int threads);

static void *array(size_t bytes) {
    unsigned char *block = tare_malloc_aligned(bytes + 64);
    if (!block) exit(1);
    for (size_t i = 0; i < bytes + 64; i++)
        block[i] = (unsigned char)(i % 4 == 3 ? 0x3e : i * 37); /* as floats: around 0.2 */
    return block;
}

static double blas_peak(void) {
    enum { N = 1024 };
    float *a = array(N * N * 4), *b = array(N * N * 4), *c = array(N * N * 4);
    double best = 1e9;
    for (int i = 0; i < 8; i++) {
        const double start = tare_clock_seconds();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
        const double time = tare_clock_seconds() - start;
        if (time < best) best = time;
    }
    tare_free(a), tare_free(b), tare_free(c);
    return 2.0 * N * N * N / best;
}

struct buffers {
    void *in, *filter, *out, *packed, *packed_int, *scratch, *sums, *bias;
    struct tare_bound_expression *requantize;
    const struct tare_requantize *in_kernel;
};

/* (sums + bias) * factor + zero point, clamped, rounded and stored as int8. */
static const struct tare_expression requantization = {
    .from = TARE_LANE_INT32,
    .to = TARE_LANE_INT8,
    .n_branches = 1,
    .n_operands = 5,
    .branches = { { .source = -1,
                    .n_stages = 8,
                    .stages = { { TARE_STAGE_INT_ADD, 0 },
                                { TARE_STAGE_TO_FLOAT, -1 },
                                { TARE_STAGE_MUL, 1 },
                                { TARE_STAGE_ADD, 2 },
                                { TARE_STAGE_MAXIMUM, 3 },
                                { TARE_STAGE_MINIMUM, 4 },
                                { TARE_STAGE_ROUND, -1 },
                                { TARE_STAGE_TO_INT, -1 } } } },
};

static void requantize(void *bound, int32_t *sums, int64_t first, int64_t count) {
    tare_expression_run(bound, sums, first, count);
}

static void bind_requantization(struct tare_bound_expression *bound, const struct buffers *b, int64_t elements,
                                int64_t columns, struct tare_arena *arena) {
    static const float zero_point = 3, low = -128, high = 127;
    *bound = (struct tare_bound_expression){
        .expression = &requantization, .level = tare_cpu_level(), .elements = elements, .columns = columns, .to = b->out
    };
    bound->operands[0] =
        (struct tare_operand){ .kind = TARE_OPERAND_VECTOR, .type = TARE_LANE_INT32, .data = b->filter };
    bound->operands[1] =
        (struct tare_operand){ .kind = TARE_OPERAND_VECTOR, .type = TARE_LANE_FLOAT, .data = b->filter };
    bound->operands[2] =
        (struct tare_operand){ .kind = TARE_OPERAND_ONE, .type = TARE_LANE_FLOAT, .data = &zero_point };
    bound->operands[3] = (struct tare_operand){ .kind = TARE_OPERAND_ONE, .type = TARE_LANE_FLOAT, .data = &low };
    bound->operands[4] = (struct tare_operand){ .kind = TARE_OPERAND_ONE, .type = TARE_LANE_FLOAT, .data = &high };
    if (tare_expression_bind(bound, arena) != TARE_OK) exit(1);
}

static void run(const struct tare_conv *conv, const struct buffers *b, int how) {
    const struct tare_gemm_epilogue epilogue = { .bias = b->bias, .relu = true, .limit = INFINITY };
    if (how == 0) tare_conv_dense(b->out, conv, b->in, b->packed, &epilogue, b->scratch);
    if (how == 1) tare_conv_depthwise(b->out, conv, b->in, b->filter, &epilogue, b->scratch);
    const struct tare_conv_int_sink sink = { .take = requantize, .arg = b->requantize, .requantize = b->in_kernel };
    if (how == 2 && tare_winograd_vnni_is_for(tare_cpu_level(), tare_conv_int_form_at(tare_cpu_level(), conv), conv))
        tare_winograd_vnni_run(&sink, conv, b->in, b->packed_int, b->sums, b->scratch);
    else if (how == 2 && tare_winograd_int_is_for(tare_conv_int_form_at(tare_cpu_level(), conv), conv))
        tare_winograd_int_at(tare_cpu_level(), &sink, conv, b->in, b->packed_int, b->sums, b->scratch);
    else if (how == 2)
        tare_conv_int_direct_at(tare_cpu_level(), &sink, conv, b->in, tare_conv_int_form_at(tare_cpu_level(), conv),
                                b->packed_int, b->sums, b->scratch);
    if (how == 3) tare_conv_int_depthwise_to(tare_cpu_level(), &sink, conv, b->in, b->packed_int, b->sums, b->scratch);
}

static void print_ratio(bool has, double flops, double ours, double other) {
    if (has) printf(", %4.2f of oneDNN's %7.1f", other / ours, flops / other * 1e-9);
}

/* ---- the int8 kernel of a convolution ---- */

enum int8_kernel { DEPTHWISE, WINOGRAD_VNNI, WINOGRAD, DIRECT };

static enum int8_kernel kernel_of(const struct tare_conv *conv, enum tare_igemm_form form) {
    if (tare_conv_is_depthwise(conv)) return DEPTHWISE;
    if (tare_winograd_vnni_is_for(tare_cpu_level(), form, conv)) return WINOGRAD_VNNI;
    return tare_winograd_int_is_for(form, conv) ? WINOGRAD : DIRECT;
}

static size_t packed_bytes(enum int8_kernel kernel, const struct tare_conv *conv, enum tare_igemm_form form) {
    if (kernel == DEPTHWISE) return tare_conv_int_depthwise_packed_bytes(tare_cpu_level(), conv);
    if (kernel == WINOGRAD_VNNI) return tare_winograd_vnni_packed_bytes(conv);
    return kernel == WINOGRAD ? tare_winograd_int_packed_bytes(conv) : tare_conv_int_direct_packed_bytes(form, conv);
}

static int64_t sums_of(enum int8_kernel kernel, const struct tare_conv *conv) {
    if (kernel == DEPTHWISE) return tare_conv_int_depthwise_sums(tare_cpu_level(), conv);
    if (kernel == WINOGRAD_VNNI) return tare_winograd_vnni_sums(conv);
    return kernel == WINOGRAD ? tare_winograd_int_sums(conv) : tare_conv_int_direct_sums(conv);
}

static void pack(enum int8_kernel kernel, void *packed, const struct tare_conv *conv, enum tare_igemm_form form,
                 const void *filter) {
    tare_status status = TARE_OK;
    if (kernel == DEPTHWISE)
        tare_conv_int_depthwise_pack(tare_cpu_level(), packed, conv, filter);
    else if (kernel == WINOGRAD_VNNI)
        tare_winograd_vnni_pack(packed, conv, filter);
    else
        status = kernel == WINOGRAD ? tare_winograd_int_pack(packed, conv, filter)
                                    : tare_conv_int_direct_pack(packed, form, conv, filter);
    if (status != TARE_OK) exit(1);
}

/* ---- measuring ---- */

enum { KINDS = 4 }; /* float; int8; the same by oneDNN */

static void free_buffers(const struct buffers *b) {
    tare_free(b->bias);
    tare_free(b->in), tare_free(b->filter), tare_free(b->out), tare_free(b->packed), tare_free(b->packed_int);
    tare_free(b->scratch), tare_free(b->sums);
}

/* The best time of each kind, in seconds. */
static void run_rounds(double best[KINDS], const struct tare_conv *conv, const struct buffers *b, const bool has[KINDS],
                       const struct dnnl_conv others[2], int repeats) {
    for (int round = 0; round < 16; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (!has[kind]) continue;
            const double start = tare_clock_seconds();
            for (int i = 0; i < repeats; i++) {
                if (kind < 2)
                    run(conv, b, kind * 2 + tare_conv_is_depthwise(conv));
                else
                    dnnl_conv_run(&others[kind - 2]);
            }
            const double time = (tare_clock_seconds() - start) / repeats;
            if (time < best[kind]) best[kind] = time;
        }
    }
}

static void measure(const struct tare_conv *conv, double peak, const char *what) {
    const int64_t in = conv->batch * conv->in[1] * conv->in[2] * conv->in_channels;
    const int64_t out = tare_conv_rows(conv) * conv->out_channels, weights = tare_conv_patch(conv) * conv->out_channels;
    const enum tare_igemm_form form = tare_conv_int_form_at(tare_cpu_level(), conv);
    const enum int8_kernel kernel = kernel_of(conv, form);
    const double flops = 2.0 * (double)out * (double)tare_conv_patch(conv);
    struct tare_bound_expression bound;
    struct tare_requantize in_kernel;
    struct tare_arena arena = { 0 };
    const struct buffers b = { array((size_t)in * 4),
                               array((size_t)weights * 4),
                               array((size_t)out * 4),
                               array(tare_conv_packed_floats(conv) * 4),
                               array(packed_bytes(kernel, conv, form)),
                               array((tare_conv_dense_scratch(conv) + (1 << 20)) * 4),
                               array((size_t)sums_of(kernel, conv) * 4),
                               array((size_t)conv->out_channels * 4),
                               &bound,
                               &in_kernel };
    bind_requantization(&bound, &b, out, conv->out_channels, &arena);
    if (!tare_requantize_find(&in_kernel, &bound, &arena)) exit(1);
    tare_requantize_bind(&in_kernel, &bound);
    tare_conv_pack(b.packed, conv, b.filter);
    pack(kernel, b.packed_int, conv, form, b.filter);
    double best[KINDS] = { 1e9, 1e9, 1e9, 1e9 };
    struct dnnl_conv others[2];
    const bool has[KINDS] = { true, true, dnnl_conv_open(&others[0], conv, false),
                              dnnl_conv_open(&others[1], conv, true) };
    run_rounds(best, conv, &b, has, others, (int)(1e8 / flops) + 1);
    printf("%-34s float %7.1f GFLOP/s = %4.2f of OpenBLAS sgemm", what, flops / best[0] * 1e-9, flops / best[0] / peak);
    print_ratio(has[2], flops, best[0], best[2]);
    printf("   int8 %7.1f GOP/s", flops / best[1] * 1e-9);
    print_ratio(has[3], flops, best[1], best[3]);
    putchar('\n');
    dnnl_conv_close(&others[0]), dnnl_conv_close(&others[1]);
    free_buffers(&b);
    tare_arena_free(&arena);
}

int main(int argc, char **argv) {
    /* size, channels in, out, kernel, stride, depthwise */
    static const int cases[][6] = {
        { 224, 3, 64, 7, 2, 0 },    { 56, 64, 64, 1, 1, 0 },   { 56, 64, 64, 3, 1, 0 },   { 56, 128, 128, 3, 2, 0 },
        { 28, 128, 128, 3, 1, 0 },  { 14, 256, 256, 3, 1, 0 }, { 7, 512, 512, 3, 1, 0 },  { 14, 1024, 256, 1, 1, 0 },
        { 56, 256, 512, 1, 2, 0 },  { 7, 512, 2048, 1, 1, 0 }, { 112, 16, 96, 1, 1, 0 },  { 14, 384, 64, 1, 1, 0 },
        { 14, 256, 1024, 1, 1, 0 }, { 28, 1, 16, 3, 1, 0 },    { 112, 32, 32, 3, 1, 1 },  { 112, 96, 96, 3, 2, 1 },
        { 56, 144, 144, 3, 1, 1 },  { 28, 192, 192, 3, 1, 1 }, { 28, 192, 192, 3, 2, 1 }, { 14, 576, 576, 3, 2, 1 },
        { 28, 240, 240, 5, 2, 1 },  { 14, 512, 512, 3, 1, 1 }, { 7, 960, 960, 3, 1, 1 },  { 14, 672, 672, 5, 1, 1 },
    };
    openblas_set_num_threads(1);
    dnnl_conv_begin(tare_cpu_level());
    const double peak = blas_peak();
    printf("level %s, OpenBLAS sgemm 1024: %.1f GFLOP/s\n", tare_cpu_level_name(tare_cpu_level()), peak * 1e-9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *c = cases[i];
        char what[64];
        const int64_t out = (c[0] + c[4] - 1) / c[4];
        const int64_t total = (out - 1) * c[4] + c[3] - c[0];
        const struct tare_conv conv = {
            .batch = 1,
            .in = { 1, c[0], c[0] },
            .in_channels = c[1],
            .kernel = { 1, c[3], c[3] },
            .out = { 1, out, out },
            .out_channels = c[2],
            .stride = { 1, c[4], c[4] },
            .dilation = { 1, 1, 1 },
            .base_dilation = { 1, 1, 1 },
            .pad = { 0, total > 0 ? total / 2 : 0, total > 0 ? total / 2 : 0 },
            .groups = c[5] ? c[1] : 1,
        };
        snprintf(what, sizeof what, "%s %dx%dx%d -> %d, %dx%d /%d", c[5] ? "depthwise" : "conv", c[0], c[0], c[1], c[2],
                 c[3], c[3], c[4]);
        if (argc > 1 && !strstr(what, argv[1])) continue;
        measure(&conv, peak, what);
    }
    return 0;
}
