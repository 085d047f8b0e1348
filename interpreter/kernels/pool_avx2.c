#include "interpreter/kernels/pool.h"

#if TARE_KERNELS_X86
#include "base/tensor/number.h"
#include "interpreter/kernels/bfloat16_lanes.h"

#include <immintrin.h>

TARE_TARGET_AVX2 void tare_pool_fold_max_avx2(void *target, const void *source, int64_t count) {
    float *to = target;
    const float *from = source;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) /* the second operand comes back when they do not compare: a NaN is passed over */
        _mm256_storeu_ps(to + i, _mm256_max_ps(_mm256_loadu_ps(from + i), _mm256_loadu_ps(to + i)));
    for (; i < count; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

TARE_TARGET_AVX2 void tare_pool_fold_sum_avx2(void *target, const void *source, int64_t count) {
    float *to = target;
    const float *from = source;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i), _mm256_loadu_ps(from + i)));
    for (; i < count; i++)
        to[i] += from[i];
}

TARE_TARGET_AVX2 void tare_pool_fold_max_bfloat16_avx2(void *target, const void *source, int64_t count) {
    float *to = target;
    const uint16_t *from = source;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_max_ps(tare_load_bfloat16_avx2(from + i, 8), _mm256_loadu_ps(to + i)));
    for (; i < count; i++) {
        const float x = tare_float_from_bfloat16(from[i]);
        if (x > to[i]) to[i] = x;
    }
}

TARE_TARGET_AVX2 void tare_pool_fold_sum_bfloat16_avx2(void *target, const void *source, int64_t count) {
    float *to = target;
    const uint16_t *from = source;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i), tare_load_bfloat16_avx2(from + i, 8)));
    for (; i < count; i++)
        to[i] += tare_float_from_bfloat16(from[i]);
}

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
WINDOW(tare_pool_max_window_int8_avx2, int8_t, INT8_MIN, _mm256_max_epi8)
WINDOW(tare_pool_max_window_uint8_avx2, uint8_t, 0, _mm256_max_epu8)
#undef WINDOW
#endif
