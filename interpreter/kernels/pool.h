/* Maxima and means over windows of channels-last arrays. Padding is excluded: a mean is over the elements inside the
 * input. */
#ifndef TARE_INTERPRETER_KERNELS_POOL_H
#define TARE_INTERPRETER_KERNELS_POOL_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stdint.h>

struct tare_pooling {
    int64_t batch, channels;
    int64_t in[3], out[3]; /* depth, height, width */
    int64_t size[3], stride[3], pad[3];
};

/* Input positions [first, last) of a window on an axis. */
void tare_pool_range(const struct tare_pooling *pool, int axis, int64_t out, int64_t *first, int64_t *last);

/* Output lines that tare_pooling_take_lines may divide: those of all images, or 1 if there are three dimensions. */
int64_t tare_pooling_lines(const struct tare_pooling *pool);
/* The pooling of output lines [at, at + count), counted over all images and within one image; returns the offset of its
 * first input element. */
int64_t tare_pooling_take_lines(struct tare_pooling *part, const struct tare_pooling *pool, int64_t at, int64_t count);

/* Maxima by `x > best`, so NaN is ignored; -infinity for a window without elements. Means: a sum in the order of
 * the window, then one division; NaN for a window without elements. */
void tare_pool_max_f32(float *output, const struct tare_pooling *pool, const float *input);
void tare_pool_average_f32(float *output, const struct tare_pooling *pool, const float *input);
/* The same floats from bfloat16 input. */
void tare_pool_bfloat16(float *output, const struct tare_pooling *pool, const uint16_t *input, bool average);
/* Means of bytes, signed or unsigned, as those of the floats that they convert to. The sums are integers, and exact for
 * windows of at most TARE_POOL_MOST_CODES positions, where those of floats are exact as well; for larger ones the
 * result is not defined. */
enum { TARE_POOL_MOST_CODES = 1 << 16 };
void tare_pool_average_codes(float *output, const struct tare_pooling *pool, const void *input, bool is_signed);
/* Of bytes, signed or unsigned; the least value for a window without elements. */
void tare_pool_max_bytes(void *output, const struct tare_pooling *pool, const void *input, bool is_signed);
/* The same at a level, for tests. */
void tare_pool_max_bytes_at(enum tare_cpu_level level, void *output, const struct tare_pooling *pool, const void *input,
                            bool is_signed);
void tare_pool_average_codes_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                                const void *input, bool is_signed);
void tare_pool_bfloat16_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                           const uint16_t *input, bool average);
void tare_pool_max_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                          const float *input);
void tare_pool_average_f32_at(enum tare_cpu_level level, float *output, const struct tare_pooling *pool,
                              const float *input);

/* ---- for the variants only ---- */

/* The positions of a window: on each axis their number and the bytes from one to the next. */
struct tare_pool_window {
    const char *from;
    int64_t count[3], step[3];
};
/* For each position: `at` is its first byte. */
#define TARE_POOL_POSITIONS(window, at)                                                                                \
    for (int64_t d_ = 0; d_ < (window)->count[0]; d_++)                                                                \
        for (int64_t h_ = 0; h_ < (window)->count[1]; h_++)                                                            \
            for (const char *at = (window)->from + d_ * (window)->step[0] + h_ * (window)->step[1],                    \
                            *end_ = at + (window)->count[2] * (window)->step[2];                                       \
                 at < end_; at += (window)->step[2])
/* The maxima or means of the channels of a window. */
typedef void tare_pool_of_window(void *to, const struct tare_pool_window *window, int64_t channels);
tare_pool_of_window tare_pool_max_of_int8_avx2, tare_pool_max_of_uint8_avx2, tare_pool_max_of_f32_avx2,
    tare_pool_max_of_bfloat16_avx2, tare_pool_mean_of_f32_avx2, tare_pool_mean_of_bfloat16_avx2,
    tare_pool_mean_of_int8_avx2, tare_pool_mean_of_uint8_avx2;

#endif
