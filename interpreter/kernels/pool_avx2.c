#include "interpreter/kernels/pool.h"

#if TARE_KERNELS_X86
#include "base/tensor/number.h"
#include "interpreter/kernels/bfloat16_lanes.h"

#include <immintrin.h>
#include <math.h>

enum fold { MAX, MEAN };

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 start_of(const enum fold fold) {
    return fold == MAX ? _mm256_set1_ps(-INFINITY) : _mm256_setzero_ps();
}

/* Of max the second operand is the result if one is NaN, so that a NaN is passed over. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 folded(__m256 y, __m256 x, const enum fold fold) {
    return fold == MAX ? _mm256_max_ps(x, y) : _mm256_add_ps(y, x);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 end_of(__m256 y, const struct tare_pool_window *window,
                                                  const enum fold fold) {
    const float count = (float)(window->count[0] * window->count[1] * window->count[2]);
    return fold == MAX ? y : _mm256_div_ps(y, _mm256_set1_ps(count));
}

/* `vectors` vectors of eight channels, which stay in registers for all positions. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void fold_vectors(float *to, const struct tare_pool_window *window, int64_t channel,
                                                      const enum fold fold, const bool is_bfloat16, const int vectors) {
    const int64_t size = is_bfloat16 ? sizeof(uint16_t) : sizeof(float);
    __m256 y[8];
    TARE_UNROLL
    for (int i = 0; i < vectors; i++)
        y[i] = start_of(fold);
    TARE_POOL_POSITIONS(window, from) {
        TARE_UNROLL
        for (int i = 0; i < vectors; i++) {
            const void *at = from + (channel + 8 * i) * size;
            y[i] = folded(y[i], is_bfloat16 ? tare_load_bfloat16_avx2(at, 8) : _mm256_loadu_ps(at), fold);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < vectors; i++)
        _mm256_storeu_ps(to + channel + 8 * i, end_of(y[i], window, fold));
}

/* 64 channels of bfloat16. Elements at even and odd places become floats by one operation each; vectors of them are
 * joined at the end. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void fold_pairs(float *to, const struct tare_pool_window *window, int64_t channel,
                                                    const enum fold fold) {
    enum { PAIRS = 4 };
    const __m256i high = _mm256_set1_epi32((int32_t)0xffff0000);
    __m256 even[PAIRS], odd[PAIRS];
    TARE_UNROLL
    for (int i = 0; i < PAIRS; i++)
        even[i] = odd[i] = start_of(fold);
    TARE_POOL_POSITIONS(window, from) {
        TARE_UNROLL
        for (int i = 0; i < PAIRS; i++) {
            const void *at = from + (channel + 16 * i) * (int64_t)sizeof(uint16_t);
            const __m256i x = _mm256_loadu_si256(at);
            even[i] = folded(even[i], _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)), fold);
            odd[i] = folded(odd[i], _mm256_castsi256_ps(_mm256_and_si256(x, high)), fold);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < PAIRS; i++) {
        const __m256 low = _mm256_unpacklo_ps(even[i], odd[i]), up = _mm256_unpackhi_ps(even[i], odd[i]);
        float *at = to + channel + 16 * i;
        _mm256_storeu_ps(at, end_of(_mm256_permute2f128_ps(low, up, 0x20), window, fold));
        _mm256_storeu_ps(at + 8, end_of(_mm256_permute2f128_ps(low, up, 0x31), window, fold));
    }
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
    for (; c + 64 <= channels; c += 64) {
        if (is_bfloat16)
            fold_pairs(to, &joined, c, fold);
        else
            fold_vectors(to, &joined, c, fold, false, 8);
    }
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
