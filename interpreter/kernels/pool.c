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
FOLD(fold_max_int8, int8_t, from[i] > to[i] ? from[i] : to[i])
FOLD(fold_max_uint8, uint8_t, from[i] > to[i] ? from[i] : to[i])
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

void tare_pool_max_bytes_at(enum tare_cpu_level level, void *output, const struct tare_pooling *pool, const void *input,
                            bool is_signed) {
    const int64_t positions = pool->out[0] * pool->out[1] * pool->out[2];
    const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels;
    tare_pool_fold *fold = is_signed ? fold_max_int8 : fold_max_uint8;
    char *to = output;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) fold = is_signed ? tare_pool_fold_max_int8_avx2 : tare_pool_fold_max_uint8_avx2;
#endif
    (void)level;
    memset(to, is_signed ? INT8_MIN : 0, (size_t)(pool->batch * positions * pool->channels));
    for (int64_t i = 0; i < pool->batch * positions; i++, to += pool->channels) {
        int64_t at[3];
        position(at, pool, i % positions);
        fold_window(to, pool, (const char *)input + i / positions * image, at, fold, 1);
    }
}

void tare_pool_max_bytes(void *output, const struct tare_pooling *pool, const void *input, bool is_signed) {
    tare_pool_max_bytes_at(tare_cpu_level(), output, pool, input, is_signed);
}
