#include "interpreter/kernels/pool.h"

#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

void tare_pool_range(const struct tare_pooling *pool, int axis, int64_t out, int64_t *first, int64_t *last) {
    const int64_t at = out * pool->stride[axis] - pool->pad[axis];
    *first = at < 0 ? 0 : at;
    *last = at + pool->size[axis] < pool->in[axis] ? at + pool->size[axis] : pool->in[axis];
    if (*first > *last) *first = *last;
}

int64_t tare_pooling_lines(const struct tare_pooling *pool) {
    return pool->in[0] == 1 && pool->out[0] == 1 && pool->size[0] == 1 ? pool->batch * pool->out[1] : 1;
}

int64_t tare_pooling_take_lines(struct tare_pooling *part, const struct tare_pooling *pool, int64_t at, int64_t count) {
    *part = *pool;
    part->batch = 1;
    part->out[1] = count;
    part->pad[1] = pool->pad[1] - at % pool->out[1] * pool->stride[1];
    return at / pool->out[1] * pool->in[1] * pool->in[2] * pool->channels;
}

#define FOLD(name, type, result)                                                                                       \
    static void name(void *target, const void *source, int64_t count) {                                                \
        type *to = target;                                                                                             \
        const type *from = source;                                                                                     \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (result);                                                                                          \
    }
FOLD(fold_max, float, from[i] > to[i] ? from[i] : to[i])
FOLD(fold_sum, float, to[i] + from[i])
#undef FOLD

static void fold_max_bfloat16(void *target, const void *source, int64_t count) {
    float *to = target;
    const uint16_t *from = source;
    for (int64_t i = 0; i < count; i++) {
        const float x = tare_float_from_bfloat16(from[i]);
        if (x > to[i]) to[i] = x;
    }
}

static void fold_sum_bfloat16(void *target, const void *source, int64_t count) {
    float *to = target;
    const uint16_t *from = source;
    for (int64_t i = 0; i < count; i++)
        to[i] += tare_float_from_bfloat16(from[i]);
}

/* Folds one window's elements of `size` bytes into `to`; returns the number of positions. */
static int64_t fold_window(void *to, const struct tare_pooling *pool, const char *image, const int64_t at[3],
                           tare_pool_fold *fold, int64_t size) {
    int64_t first[3], last[3];
    for (int i = 0; i < 3; i++)
        tare_pool_range(pool, i, at[i], &first[i], &last[i]);
    for (int64_t d = first[0]; d < last[0]; d++) {
        for (int64_t h = first[1]; h < last[1]; h++) {
            const char *line = image + (d * pool->in[1] + h) * pool->in[2] * pool->channels * size;
            for (int64_t w = first[2]; w < last[2]; w++)
                fold(to, line + w * pool->channels * size, pool->channels);
        }
    }
    return (last[0] - first[0]) * (last[1] - first[1]) * (last[2] - first[2]);
}

/* The depth, height and width of output position `i`. */
static void position(int64_t at[3], const struct tare_pooling *pool, int64_t i) {
    const int64_t line = i / pool->out[2];
    at[0] = line / pool->out[1], at[1] = line % pool->out[1], at[2] = i % pool->out[2];
}

/* Input elements of `size` bytes. */
static void pool_floats(float *output, const struct tare_pooling *pool, const void *input, int64_t size,
                        tare_pool_fold *fold, bool average) {
    const int64_t channels = pool->channels;
    const float start = average ? 0 : -INFINITY;
    for (int64_t b = 0; b < pool->batch; b++) {
        const char *image = (const char *)input + b * pool->in[0] * pool->in[1] * pool->in[2] * channels * size;
        for (int64_t i = 0; i < pool->out[0] * pool->out[1] * pool->out[2]; i++, output += channels) {
            int64_t at[3];
            position(at, pool, i);
            for (int64_t c = 0; c < channels; c++)
                output[c] = start;
            const int64_t count = fold_window(output, pool, image, at, fold, size);
            for (int64_t c = 0; average && c < channels; c++)
                output[c] /= (float)count;
        }
    }
}

void tare_pool_max_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                          const float *input) {
    tare_pool_fold *fold = fold_max;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) fold = tare_pool_fold_max_avx2;
#endif
    (void)level;
    pool_floats(output, pool, input, sizeof *input, fold, false);
}

void tare_pool_average_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                              const float *input) {
    tare_pool_fold *fold = fold_sum;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) fold = tare_pool_fold_sum_avx2;
#endif
    (void)level;
    pool_floats(output, pool, input, sizeof *input, fold, true);
}

void tare_pool_bfloat16_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                           const uint16_t *input, bool average) {
    tare_pool_fold *fold = average ? fold_sum_bfloat16 : fold_max_bfloat16;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) fold = average ? tare_pool_fold_sum_bfloat16_avx2 : tare_pool_fold_max_bfloat16_avx2;
#endif
    (void)level;
    pool_floats(output, pool, input, sizeof *input, fold, average);
}

void tare_pool_bfloat16(float *output, const struct tare_pooling *pool, const uint16_t *input, bool average) {
    tare_pool_bfloat16_at(tare_cpu_level(), output, pool, input, average);
}
void tare_pool_max_f32(float *output, const struct tare_pooling *pool, const float *input) {
    tare_pool_max_f32_at(tare_cpu_level(), output, pool, input);
}
void tare_pool_average_f32(float *output, const struct tare_pooling *pool, const float *input) {
    tare_pool_average_f32_at(tare_cpu_level(), output, pool, input);
}

#define WINDOW(name, type, least)                                                                                      \
    static void name(void *target, const struct tare_pool_window *window, int64_t channels) {                          \
        type *to = target;                                                                                             \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            to[c] = (least);                                                                                           \
        TARE_POOL_POSITIONS(window, from) {                                                                            \
            for (int64_t c = 0; c < channels; c++) {                                                                   \
                const type x = ((const type *)from)[c];                                                                \
                if (x > to[c]) to[c] = x;                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
WINDOW(max_of_window_int8, int8_t, INT8_MIN)
WINDOW(max_of_window_uint8, uint8_t, 0)
#undef WINDOW

/* The windows of an output line: what they have in common is computed once. */
static void max_line(char *to, const struct tare_pooling *pool, const char *image, int64_t depth, int64_t height,
                     tare_pool_max_window *max) {
    const int64_t width = pool->in[2] * pool->channels, slice = pool->in[1] * width;
    struct tare_pool_window window = { .step = { slice, width, pool->channels } };
    int64_t first[3], last[3];
    tare_pool_range(pool, 0, depth, &first[0], &last[0]);
    tare_pool_range(pool, 1, height, &first[1], &last[1]);
    window.count[0] = last[0] - first[0], window.count[1] = last[1] - first[1];
    for (int64_t w = 0; w < pool->out[2]; w++, to += pool->channels) {
        tare_pool_range(pool, 2, w, &first[2], &last[2]);
        window.count[2] = last[2] - first[2];
        window.from = image + first[0] * slice + first[1] * width + first[2] * pool->channels;
        max(to, &window, pool->channels);
    }
}

void tare_pool_max_bytes_at(enum tare_cpu_level level, void *output, const struct tare_pooling *pool, const void *input,
                            bool is_signed) {
    const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels;
    tare_pool_max_window *max = is_signed ? max_of_window_int8 : max_of_window_uint8;
    char *to = output;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) max = is_signed ? tare_pool_max_window_int8_avx2 : tare_pool_max_window_uint8_avx2;
#endif
    (void)level;
    for (int64_t b = 0; b < pool->batch; b++) {
        for (int64_t i = 0; i < pool->out[0] * pool->out[1]; i++, to += pool->out[2] * pool->channels)
            max_line(to, pool, (const char *)input + b * image, i / pool->out[1], i % pool->out[1], max);
    }
}

void tare_pool_max_bytes(void *output, const struct tare_pooling *pool, const void *input, bool is_signed) {
    tare_pool_max_bytes_at(tare_cpu_level(), output, pool, input, is_signed);
}
