#include "interpreter/kernels/pool.h"

#if TARE_KERNELS_X86
#include "base/tensor/number.h"
#include "interpreter/kernels/bfloat16_lanes.h"

#include <immintrin.h>
#include <math.h>

enum fold { MAX, MEAN };

/* `vectors` vectors of eight channels, which stay in registers for all positions. Of max the second operand is the
 * result if one is NaN, so that a NaN is passed over. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void fold_vectors(float *to, const struct tare_pool_window *window, int64_t channel,
                                                      const enum fold fold, const bool is_bfloat16, const int vectors) {
    const float count = (float)(window->count[0] * window->count[1] * window->count[2]);
    const int64_t size = is_bfloat16 ? sizeof(uint16_t) : sizeof(float);
    __m256 y[8];
    TARE_UNROLL
    for (int i = 0; i < vectors; i++)
        y[i] = fold == MAX ? _mm256_set1_ps(-INFINITY) : _mm256_setzero_ps();
    TARE_POOL_POSITIONS(window, from) {
        TARE_UNROLL
        for (int i = 0; i < vectors; i++) {
            const void *at = from + (channel + 8 * i) * size;
            const __m256 x = is_bfloat16 ? tare_load_bfloat16_avx2(at, 8) : _mm256_loadu_ps(at);
            y[i] = fold == MAX ? _mm256_max_ps(x, y[i]) : _mm256_add_ps(y[i], x);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < vectors; i++)
        _mm256_storeu_ps(to + channel + 8 * i, fold == MAX ? y[i] : _mm256_div_ps(y[i], _mm256_set1_ps(count)));
}

TARE_ALWAYS_INLINE void fold_channel(float *to, const struct tare_pool_window *window, int64_t channel,
                                     const enum fold fold, const bool is_bfloat16) {
    float y = fold == MAX ? -INFINITY : 0;
    TARE_POOL_POSITIONS(window, from) {
        const void *line = from;
        const float x =
            is_bfloat16 ? tare_float_from_bfloat16(((const uint16_t *)line)[channel]) : ((const float *)line)[channel];
        if (fold == MEAN)
            y += x;
        else if (x > y)
            y = x;
    }
    to[channel] = fold == MAX ? y : y / (float)(window->count[0] * window->count[1] * window->count[2]);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void fold_window(float *to, const struct tare_pool_window *window, int64_t channels,
                                                     const enum fold fold, const bool is_bfloat16) {
    struct tare_pool_window joined = *window;
    int64_t c = 0;
    if (window->step[1] == window->count[2] * window->step[2]) { /* whole lines follow each other */
        joined.count[1] = 1;
        joined.count[2] *= window->count[1];
    }
    for (; c + 64 <= channels; c += 64)
        fold_vectors(to, &joined, c, fold, is_bfloat16, 8);
    for (; c + 8 <= channels; c += 8)
        fold_vectors(to, &joined, c, fold, is_bfloat16, 1);
    for (; c < channels; c++)
        fold_channel(to, &joined, c, fold, is_bfloat16);
}

#define WINDOW(name, fold, is_bfloat16)                                                                                \
    TARE_TARGET_AVX2 void name(void *target, const struct tare_pool_window *window, int64_t channels) {                \
        fold_window(target, window, channels, fold, is_bfloat16);                                                      \
    }
WINDOW(tare_pool_max_of_f32_avx2, MAX, false)
WINDOW(tare_pool_max_of_bfloat16_avx2, MAX, true)
WINDOW(tare_pool_mean_of_f32_avx2, MEAN, false)
WINDOW(tare_pool_mean_of_bfloat16_avx2, MEAN, true)
#undef WINDOW

/* The maxima of 32 channels stay in a register for all positions. */
#define WINDOW(name, type, least, max)                                                                                 \
    TARE_TARGET_AVX2 void name(void *target, const struct tare_pool_window *window, int64_t channels) {                \
        type *to = target;                                                                                             \
        int64_t c = 0;                                                                                                 \
        for (; c + 32 <= channels; c += 32) {                                                                          \
            __m256i most = _mm256_set1_epi8((char)(least));                                                            \
            TARE_POOL_POSITIONS(window, from)                                                                          \
            most = max(most, _mm256_loadu_si256((const __m256i *)(const void *)(from + c)));                           \
            _mm256_storeu_si256((__m256i *)(void *)(to + c), most);                                                    \
        }                                                                                                              \
        for (; c < channels; c++) {                                                                                    \
            to[c] = (least);                                                                                           \
            TARE_POOL_POSITIONS(window, from) {                                                                        \
                const type x = ((const type *)from)[c];                                                                \
                if (x > to[c]) to[c] = x;                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
WINDOW(tare_pool_max_of_int8_avx2, int8_t, INT8_MIN, _mm256_max_epi8)
WINDOW(tare_pool_max_of_uint8_avx2, uint8_t, 0, _mm256_max_epu8)
#undef WINDOW
#endif
