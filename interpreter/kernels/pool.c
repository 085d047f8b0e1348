#include "interpreter/kernels/pool.h"

#include "base/tensor/number.h"

#include <math.h>

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

static int64_t count_positions(const struct tare_pool_window *window) {
    return window->count[0] * window->count[1] * window->count[2];
}

#define MAX_WINDOW(name, type, to_type, least, value)                                                                  \
    static void name(void *target, const struct tare_pool_window *window, int64_t channels) {                          \
        to_type *to = target;                                                                                          \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            to[c] = (least);                                                                                           \
        TARE_POOL_POSITIONS(window, from) {                                                                            \
            for (int64_t c = 0; c < channels; c++) {                                                                   \
                const to_type x = value(((const type *)(const void *)from)[c]);                                        \
                if (x > to[c]) to[c] = x;                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
MAX_WINDOW(max_of_int8, int8_t, int8_t, INT8_MIN, )
MAX_WINDOW(max_of_uint8, uint8_t, uint8_t, 0, )
MAX_WINDOW(max_of_f32, float, float, -INFINITY, )
MAX_WINDOW(max_of_bfloat16, uint16_t, float, -INFINITY, tare_float_from_bfloat16)
#undef MAX_WINDOW

#define MEAN_WINDOW(name, type, value)                                                                                 \
    static void name(void *target, const struct tare_pool_window *window, int64_t channels) {                          \
        const float count = (float)count_positions(window);                                                            \
        float *to = target;                                                                                            \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            to[c] = 0;                                                                                                 \
        TARE_POOL_POSITIONS(window, from) {                                                                            \
            for (int64_t c = 0; c < channels; c++)                                                                     \
                to[c] += value(((const type *)(const void *)from)[c]);                                                 \
        }                                                                                                              \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            to[c] /= count;                                                                                            \
    }
MEAN_WINDOW(mean_of_f32, float, )
MEAN_WINDOW(mean_of_bfloat16, uint16_t, tare_float_from_bfloat16)
MEAN_WINDOW(mean_of_int8, int8_t, (float))
MEAN_WINDOW(mean_of_uint8, uint8_t, (float))
#undef MEAN_WINDOW

/* Bytes of an element of the input and the output, and what computes a window. */
struct pool_form {
    int64_t from_size, to_size;
    tare_pool_of_window *of_window;
};

/* The windows of an output line: what they have in common is computed once. */
static void run_line(char *to, const struct tare_pooling *pool, const char *image, int64_t depth, int64_t height,
                     const struct pool_form *form) {
    const int64_t position = pool->channels * form->from_size;
    const int64_t width = pool->in[2] * position, slice = pool->in[1] * width;
    struct tare_pool_window window = { .step = { slice, width, position } };
    int64_t first[3], last[3];
    tare_pool_range(pool, 0, depth, &first[0], &last[0]);
    tare_pool_range(pool, 1, height, &first[1], &last[1]);
    window.count[0] = last[0] - first[0], window.count[1] = last[1] - first[1];
    for (int64_t w = 0; w < pool->out[2]; w++, to += pool->channels * form->to_size) {
        tare_pool_range(pool, 2, w, &first[2], &last[2]);
        window.count[2] = last[2] - first[2];
        window.from = image + first[0] * slice + first[1] * width + first[2] * position;
        form->of_window(to, &window, pool->channels);
    }
}

static void run(void *output, const struct tare_pooling *pool, const void *input, const struct pool_form *form) {
    const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels * form->from_size;
    const int64_t line = pool->out[2] * pool->channels * form->to_size;
    char *to = output;
    for (int64_t b = 0; b < pool->batch; b++) {
        for (int64_t i = 0; i < pool->out[0] * pool->out[1]; i++, to += line)
            run_line(to, pool, (const char *)input + b * image, i / pool->out[1], i % pool->out[1], form);
    }
}

#if TARE_KERNELS_X86
#define FORM(level, name) ((level) >= TARE_CPU_AVX2 ? tare_pool_##name##_avx2 : (name))
#else
#define FORM(level, name) ((void)(level), (name))
#endif

void tare_pool_max_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                          const float *input) {
    const struct pool_form form = { sizeof *input, sizeof *output, FORM(level, max_of_f32) };
    run(output, pool, input, &form);
}

void tare_pool_average_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                              const float *input) {
    const struct pool_form form = { sizeof *input, sizeof *output, FORM(level, mean_of_f32) };
    run(output, pool, input, &form);
}

void tare_pool_bfloat16_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                           const uint16_t *input, bool average) {
    tare_pool_of_window *of_window = average ? FORM(level, mean_of_bfloat16) : FORM(level, max_of_bfloat16);
    const struct pool_form form = { sizeof *input, sizeof *output, of_window };
    run(output, pool, input, &form);
}

void tare_pool_max_bytes_at(enum tare_cpu_level level, void *output, const struct tare_pooling *pool, const void *input,
                            bool is_signed) {
    const struct pool_form form = { 1, 1, is_signed ? FORM(level, max_of_int8) : FORM(level, max_of_uint8) };
    run(output, pool, input, &form);
}

void tare_pool_average_codes_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                                const void *input, bool is_signed) {
    const struct pool_form form = { 1, sizeof *output,
                                    is_signed ? FORM(level, mean_of_int8) : FORM(level, mean_of_uint8) };
    run(output, pool, input, &form);
}
#undef FORM

void tare_pool_bfloat16(float *output, const struct tare_pooling *pool, const uint16_t *input, bool average) {
    tare_pool_bfloat16_at(tare_cpu_level(), output, pool, input, average);
}
void tare_pool_max_f32(float *output, const struct tare_pooling *pool, const float *input) {
    tare_pool_max_f32_at(tare_cpu_level(), output, pool, input);
}
void tare_pool_average_f32(float *output, const struct tare_pooling *pool, const float *input) {
    tare_pool_average_f32_at(tare_cpu_level(), output, pool, input);
}
void tare_pool_max_bytes(void *output, const struct tare_pooling *pool, const void *input, bool is_signed) {
    tare_pool_max_bytes_at(tare_cpu_level(), output, pool, input, is_signed);
}
void tare_pool_average_codes(float *output, const struct tare_pooling *pool, const void *input, bool is_signed) {
    tare_pool_average_codes_at(tare_cpu_level(), output, pool, input, is_signed);
}
