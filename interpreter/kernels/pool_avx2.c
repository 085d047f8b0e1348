/* Pooling of floats with AVX2. */
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
            y[i] = folded(y[i], is_bfloat16 ? tare_load_bfloat16_v8(at, 8) : _mm256_loadu_ps(at), fold);
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

/* With lines that follow each other as one. */
TARE_ALWAYS_INLINE struct tare_pool_window with_joined_lines(const struct tare_pool_window *window) {
    struct tare_pool_window joined = *window;
    if (window->step[1] == window->count[2] * window->step[2]) {
        joined.count[1] = 1;
        joined.count[2] *= window->count[1];
    }
    return joined;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void fold_window(float *to, const struct tare_pool_window *window, int64_t channels,
                                                     const enum fold fold, const bool is_bfloat16) {
    const struct tare_pool_window joined = with_joined_lines(window);
    int64_t c = 0;
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

/* The first 32, 16 or 8 bytes of a vector. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i load_bytes(const void *from, const int bytes) {
    return bytes == 32   ? _mm256_loadu_si256(from)
           : bytes == 16 ? _mm256_castsi128_si256(_mm_loadu_si128(from))
                         : _mm256_castsi128_si256(_mm_loadl_epi64(from));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_bytes(void *to, __m256i x, const int bytes) {
    if (bytes == 32)
        _mm256_storeu_si256(to, x);
    else if (bytes == 16)
        _mm_storeu_si128(to, _mm256_castsi256_si128(x));
    else
        _mm_storel_epi64(to, _mm256_castsi256_si128(x));
}

/* The maxima of 32, 16 or 8 channels stay in a register for all positions. The last vector overlaps the one before it.
 */
#define WINDOW(name, type, least, max)                                                                                 \
    TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void name##_vector(type *to, const struct tare_pool_window *window, int64_t c, \
                                                           const int bytes) {                                          \
        __m256i most = _mm256_set1_epi8((char)(least));                                                                \
        TARE_POOL_POSITIONS(window, from)                                                                              \
        most = max(most, load_bytes(from + c, bytes));                                                                 \
        store_bytes(to + c, most, bytes);                                                                              \
    }                                                                                                                  \
    TARE_TARGET_AVX2 void name(void *target, const struct tare_pool_window *window, int64_t channels) {                \
        type *to = target;                                                                                             \
        int64_t c = 0;                                                                                                 \
        for (; channels >= 32 && c < channels; c += 32)                                                                \
            name##_vector(to, window, c + 32 <= channels ? c : channels - 32, 32);                                     \
        for (; channels >= 16 && c < channels; c += 16)                                                                \
            name##_vector(to, window, c + 16 <= channels ? c : channels - 16, 16);                                     \
        for (; channels >= 8 && c < channels; c += 8)                                                                  \
            name##_vector(to, window, c + 8 <= channels ? c : channels - 8, 8);                                        \
        for (; c < channels; c++) {                                                                                    \
            type most = (least);                                                                                       \
            TARE_POOL_POSITIONS(window, from)                                                                          \
            most = ((const type *)from)[c] > most ? ((const type *)from)[c] : most;                                    \
            to[c] = most;                                                                                              \
        }                                                                                                              \
    }
WINDOW(tare_pool_max_of_int8_avx2, int8_t, INT8_MIN, _mm256_max_epi8)
WINDOW(tare_pool_max_of_uint8_avx2, uint8_t, 0, _mm256_max_epu8)
#undef WINDOW

/* ---- means of bytes ---- */

enum {
    CODES = 32,      /* channels that are summed together */
    MOST_PAIRS = 64, /* of positions, whose sums do not overflow 16 bits: 64 · 2 · 255 < 2^15 */
};

/* Adds two positions to 32 sums, in two vectors of 16 bits whose order is that of the bytes interleaved. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void add_pair(__m256i sums[2], __m256i a, __m256i b, const bool is_signed) {
    const __m256i one = _mm256_set1_epi8(1), low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    sums[0] = _mm256_add_epi16(sums[0], is_signed ? _mm256_maddubs_epi16(one, low) : _mm256_maddubs_epi16(low, one));
    sums[1] = _mm256_add_epi16(sums[1], is_signed ? _mm256_maddubs_epi16(one, high) : _mm256_maddubs_epi16(high, one));
}

/* Adds the 16-bit sums to 32 of 32 bits in the order of the channels. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void widen_sums(__m256i to[4], const __m256i sums[2]) {
    for (int i = 0; i < 2; i++) {
        to[i] = _mm256_add_epi32(to[i], _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums[i])));
        to[i + 2] = _mm256_add_epi32(to[i + 2], _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sums[i], 1)));
    }
}

/* Adds the positions of a line. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void add_line(__m256i to[4], const char *from, int64_t step, int64_t positions,
                                                  const bool is_signed) {
    while (positions > 0) {
        __m256i sums[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
        const char *end = from + (positions < 2 * MOST_PAIRS ? positions : 2 * MOST_PAIRS) * step;
        for (; from + step < end; from += 2 * step)
            add_pair(sums, _mm256_loadu_si256((const void *)from), _mm256_loadu_si256((const void *)(from + step)),
                     is_signed);
        if (from < end) {
            add_pair(sums, _mm256_loadu_si256((const void *)from), _mm256_setzero_si256(), is_signed);
            from += step;
        }
        positions -= 2 * MOST_PAIRS;
        widen_sums(to, sums);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void mean_of_codes(float *to, const struct tare_pool_window *window,
                                                       int64_t channel, const bool is_signed) {
    const __m256 count = _mm256_set1_ps((float)(window->count[0] * window->count[1] * window->count[2]));
    __m256i sums[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                        _mm256_setzero_si256() };
    for (int64_t d = 0; d < window->count[0]; d++) {
        for (int64_t h = 0; h < window->count[1]; h++) {
            const char *line = window->from + d * window->step[0] + h * window->step[1] + channel;
            add_line(sums, line, window->step[2], window->count[2], is_signed);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < 4; i++)
        _mm256_storeu_ps(to + channel + 8 * i, _mm256_div_ps(_mm256_cvtepi32_ps(sums[i]), count));
}

/* The last vectors overlap those before them. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void mean_window(float *to, const struct tare_pool_window *window, int64_t channels,
                                                     const bool is_signed) {
    const struct tare_pool_window joined = with_joined_lines(window);
    int64_t c = 0;
    for (; c + CODES <= channels; c += CODES)
        mean_of_codes(to, &joined, c, is_signed);
    if (c < channels && channels > CODES) {
        mean_of_codes(to, &joined, channels - CODES, is_signed);
        c = channels;
    }
    for (; c < channels; c++) {
        int32_t sum = 0;
        TARE_POOL_POSITIONS(&joined, from)
        sum += is_signed ? (int8_t)from[c] : (uint8_t)from[c];
        to[c] = (float)sum / (float)(window->count[0] * window->count[1] * window->count[2]);
    }
}

#define WINDOW(name, is_signed)                                                                                        \
    TARE_TARGET_AVX2 void name(void *target, const struct tare_pool_window *window, int64_t channels) {                \
        mean_window(target, window, channels, is_signed);                                                              \
    }
WINDOW(tare_pool_mean_of_int8_avx2, true)
WINDOW(tare_pool_mean_of_uint8_avx2, false)
#undef WINDOW
#endif
