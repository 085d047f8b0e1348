/* Depthwise convolution: rows of output positions, split so that the vector kernels get only positions whose taps are
 * all inside the input; border positions go one at a time with fewer taps. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/simd/v8.h"
#include "base/control.h"

#include <math.h>
#include <string.h>

void tare_depthwise_row_plain(const struct tare_depthwise_row *row) {
    for (int64_t i = 0; i < row->count; i++) {
        const float *input = (const float *)row->input + i * row->input_step, *filter = row->filter;
        float *output = (float *)row->output + i * row->output_step;
        for (int64_t c = 0; c < row->channels; c++) {
            float sum = row->accumulate ? output[c] : 0;
            for (int64_t h = row->h0; h < row->h1; h++) {
                for (int64_t w = row->w0; w < row->w1; w++)
                    sum = fmaf(input[h * row->input_h + w * row->input_w + c],
                               filter[h * row->filter_h + w * row->filter_w + c], sum);
            }
            output[c] =
                !row->epilogue ? sum : tare_gemm_apply_epilogue(row->epilogue, sum, i * row->output_step + c, c);
        }
    }
}

void tare_depthwise_row_int8_plain(const struct tare_depthwise_row *row) {
    for (int64_t i = 0; i < row->count; i++) {
        const int8_t *input = (const int8_t *)row->input + i * row->input_step, *filter = row->filter;
        int32_t *output = (int32_t *)row->output + i * row->output_step;
        for (int64_t c = 0; c < row->channels; c++) {
            uint32_t sum = row->accumulate ? (uint32_t)output[c] : 0;
            for (int64_t h = row->h0; h < row->h1; h++) {
                for (int64_t w = row->w0; w < row->w1; w++)
                    sum += (uint32_t)(input[h * row->input_h + w * row->input_w + c] *
                                      filter[h * row->filter_h + w * row->filter_w + c]);
            }
            output[c] = (int32_t)sum;
        }
    }
}

static tare_depthwise_kernel *kernel_of(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_depthwise_row_avx512;
#endif
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8) return tare_depthwise_row_v8;
#endif
    (void)level;
    return tare_depthwise_row_plain;
}

static tare_epilogue_function *epilogue_of(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_epilogue_avx512;
#endif
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8) return tare_epilogue_v8;
#endif
    (void)level;
    return tare_epilogue_plain;
}

static tare_depthwise_image_kernel *image_kernel_of(enum tare_cpu_level level, const struct tare_conv *conv) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_depthwise_tiles_avx512(conv);
#endif
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8) return tare_depthwise_tiles_v8(conv);
#endif
    (void)level, (void)conv;
    return NULL;
}

/* Taps [*first, *last) of axis that are inside the input at output position `out`. */
static void inside_taps(const struct tare_conv *conv, int axis, int64_t out, int64_t *first, int64_t *last) {
    const int64_t at = out * conv->stride[axis] - conv->pad[axis], step = conv->dilation[axis];
    *first = at >= 0 ? 0 : (-at + step - 1) / step;
    const int64_t room = conv->in[axis] - at;
    *last = room <= 0 ? 0 : (room + step - 1) / step;
    if (*last > conv->kernel[axis]) *last = conv->kernel[axis];
    if (*first > *last) *first = *last;
}

/* Positions [*first, *last) of the output's width where every tap is inside. */
static void inner_positions(const struct tare_conv *conv, int64_t *first, int64_t *last) {
    const int64_t reach = (conv->kernel[2] - 1) * conv->dilation[2], step = conv->stride[2];
    *first = conv->pad[2] <= 0 ? 0 : (conv->pad[2] + step - 1) / step;
    const int64_t room = conv->in[2] + conv->pad[2] - reach - 1; /* the last position starts at most here */
    *last = room < 0 ? 0 : room / step + 1;
    if (*last > conv->out[2]) *last = conv->out[2];
    if (*first > *last) *first = *last;
}

/* What an image is walked with. */
struct walk {
    tare_depthwise_kernel *kernel;
    const struct tare_conv *conv;
    const char *image, *filter;
    int64_t in_size, out_size; /* bytes an element */
    const struct tare_gemm_epilogue *epilogue;
    tare_epilogue_function *run_epilogue; /* of a general epilogue */
};

/* True if an operand or result of the epilogue has the output's layout. */
static bool depends_on_position(const struct tare_gemm_epilogue *epilogue) {
    return epilogue->addend || (epilogue->is_general && (epilogue->addend_bfloat16 || epilogue->to));
}

/* One output line: slice `d`, line `h`, whose first element is element `at` of the image's output. */
static void line(const struct walk *walk, char *output, int64_t at, int64_t d, int64_t h) {
    const struct tare_conv *conv = walk->conv;
    /* computed after the line; vector kernels compute bounded epilogues as well as simple ones */
    const bool is_general = walk->epilogue && walk->epilogue->is_general &&
                            (!walk->epilogue->is_bounded || walk->run_epilogue == tare_epilogue_plain);
    struct tare_gemm_epilogue epilogue;
    const int64_t channels = conv->out_channels, line_size = conv->in[2] * channels;
    struct tare_depthwise_row row = {
        .channels = channels,
        .output_step = channels,
        .input_step = conv->stride[2] * channels,
        .input_h = conv->dilation[1] * line_size,
        .input_w = conv->dilation[2] * channels,
        .filter_h = conv->kernel[2] * channels,
        .filter_w = channels,
    };
    int64_t d0, d1, inner_first, inner_last;
    inside_taps(conv, 0, d, &d0, &d1);
    inside_taps(conv, 1, h, &row.h0, &row.h1);
    inner_positions(conv, &inner_first, &inner_last);
    if (d0 >= d1) d1 = d0 + 1, row.h1 = row.h0; /* no tap at all: zeros */
    for (int64_t kd = d0; kd < d1; kd++) {
        const int64_t in_d = d * conv->stride[0] - conv->pad[0] + kd * conv->dilation[0];
        const int64_t in_h = h * conv->stride[1] - conv->pad[1];
        row.filter = walk->filter + kd * conv->kernel[1] * row.filter_h * walk->in_size;
        row.accumulate = kd > d0;
        for (int64_t w = 0; w < conv->out[2];) {
            const bool inner = w >= inner_first && w < inner_last;
            row.count = inner ? inner_last - w : 1;
            row.w0 = 0, row.w1 = conv->kernel[2];
            if (!inner) inside_taps(conv, 2, w, &row.w0, &row.w1);
            const int64_t in_w = w * conv->stride[2] - conv->pad[2];
            row.input = walk->image + ((in_d * conv->in[1] + in_h) * conv->in[2] + in_w) * channels * walk->in_size;
            row.output = output + w * channels * walk->out_size;
            row.epilogue = walk->epilogue && !is_general && kd == d1 - 1 ? walk->epilogue : NULL;
            if (row.epilogue && depends_on_position(row.epilogue)) {
                epilogue = tare_epilogue_shifted(walk->epilogue, at + w * channels, 0);
                row.epilogue = &epilogue;
            }
            walk->kernel(&row);
            w += row.count;
        }
    }
    if (is_general)
        walk->run_epilogue(walk->epilogue, (float *)(void *)output, channels, conv->out[2], channels, at, 0);
}

/* An image of float elements, line by line. */
static void run_lines(enum tare_cpu_level level, const struct tare_depthwise_image *image) {
    const struct tare_conv *conv = image->conv;
    const struct walk walk = {
        .kernel = kernel_of(level),
        .conv = conv,
        .image = (const char *)image->input,
        .filter = (const char *)image->filter,
        .in_size = sizeof(float),
        .out_size = sizeof(float),
        .epilogue = image->epilogue,
        .run_epilogue = epilogue_of(level),
    };
    const int64_t line_size = conv->out[2] * conv->out_channels;
    for (int64_t i = 0; i < conv->out[0] * conv->out[1]; i++)
        line(&walk, (char *)(image->output + i * line_size), i * line_size, i / conv->out[1], i % conv->out[1]);
}

static void run_image(enum tare_cpu_level level, const struct tare_depthwise_image *image) {
    tare_depthwise_image_kernel *kernel = image_kernel_of(level, image->conv);
    if (tare_control_is_stopped()) return;
    if (kernel)
        kernel(image);
    else
        run_lines(level, image);
}

void tare_depthwise_one_line(tare_depthwise_kernel *kernel, const struct tare_conv *conv, void *output,
                             const void *image, const void *filter, size_t in_size, int64_t at) {
    const struct walk walk = { kernel, conv, image, filter, (int64_t)in_size, sizeof(int32_t), NULL, NULL };
    line(&walk, output, 0, at / conv->out[1], at % conv->out[1]);
}

size_t tare_conv_depthwise_scratch(const struct tare_conv *conv) {
    if (conv->out_channels == conv->in_channels) return 0;
    return (size_t)(conv->in[0] * conv->in[1] * conv->in[2] * conv->out_channels);
}

void tare_conv_depthwise_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                            const float *filter, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    const int64_t pixels = conv->in[0] * conv->in[1] * conv->in[2];
    const int64_t multiplier = conv->in_channels ? conv->out_channels / conv->in_channels : 0;
    const int64_t image_out = conv->out[0] * conv->out[1] * conv->out[2] * conv->out_channels;
    struct tare_gemm_epilogue image_epilogue;
    for (int64_t b = 0; b < conv->batch; b++) {
        if (epilogue) image_epilogue = tare_epilogue_shifted(epilogue, b * image_out, 0);
        const float *image = input + b * pixels * conv->in_channels;
        if (multiplier > 1) { /* each channel as often as it has outputs: then the multiplier is 1 */
            float *to = scratch;
            for (int64_t i = 0; i < pixels * conv->in_channels; i++) {
                for (int64_t j = 0; j < multiplier; j++)
                    *to++ = image[i];
            }
            image = scratch;
        }
        run_image(level,
                  &(struct tare_depthwise_image){ conv, output, image, filter, !epilogue ? NULL : &image_epilogue });
        output += image_out;
    }
}

void tare_conv_depthwise(float *output, const struct tare_conv *conv, const float *input, const float *filter,
                         const struct tare_gemm_epilogue *epilogue, float *scratch) {
    tare_conv_depthwise_at(tare_cpu_level(), output, conv, input, filter, epilogue, scratch);
}
