#include "interpreter/ops/support/float_rows.h"

#include "base/alloc.h"

enum { BLOCK_FLOATS = 1 << 16 };

static size_t scratch_floats(const struct tare_conv *conv) {
    return tare_conv_is_depthwise(conv) ? tare_conv_depthwise_scratch(conv) : tare_conv_dense_scratch(conv);
}

static void run(const struct tare_conv *conv, float *output, const float *input, const float *weights, float *scratch) {
    if (tare_conv_is_depthwise(conv))
        tare_conv_depthwise(output, conv, input, weights, NULL, scratch);
    else
        tare_conv_dense(output, conv, input, weights, NULL, scratch);
}

/* Lines of a block; 0: the convolution is computed as a whole. */
static int64_t block_lines(const struct tare_conv *conv) {
    const int64_t line = conv->out[2] * conv->out_channels;
    if (!tare_conv_has_lines(conv) || tare_conv_rows(conv) * conv->out_channels <= BLOCK_FLOATS) return 0;
    return line >= BLOCK_FLOATS ? 1 : BLOCK_FLOATS / line;
}

static float *room(struct tare_kernel *kernel, int64_t count) {
    size_t bytes;
    return tare_mul_size(&bytes, (size_t)count, sizeof(float)) ? tare_arena_alloc(kernel->scratch, bytes) : NULL;
}

static tare_status run_whole(struct tare_kernel *kernel, const struct tare_conv *conv, const float *input,
                             const float *weights) {
    const int64_t count = tare_conv_rows(conv) * conv->out_channels;
    float *output = room(kernel, count), *scratch = room(kernel, (int64_t)scratch_floats(conv));
    if (!output || !scratch) return TARE_NO_MEMORY;
    run(conv, output, input, weights, scratch);
    kernel->consumer->take(kernel->consumer, output, 0, count);
    return TARE_OK;
}

tare_status tare_float_rows_conv(struct tare_kernel *kernel, const struct tare_conv *conv, const float *input,
                                 const float *weights) {
    const int64_t lines = block_lines(conv), line = conv->out[2] * conv->out_channels;
    if (lines == 0) return run_whole(kernel, conv, input, weights);
    float *output = room(kernel, lines * line), *scratch = room(kernel, (int64_t)scratch_floats(conv));
    if (!output || !scratch) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < conv->batch * conv->in[0] * conv->out[1];) {
        const int64_t at = i % conv->out[1], count = conv->out[1] - at < lines ? conv->out[1] - at : lines;
        struct tare_conv part;
        const int64_t offset = tare_conv_take_lines(&part, conv, i, count);
        run(&part, output, input + offset, weights, scratch);
        kernel->consumer->take(kernel->consumer, output, i * line, count * line);
        i += count;
    }
    return TARE_OK;
}
