/* Extremes of float elements, where the order of comparisons does not matter. */
#include "interpreter/kernels/extreme.h"

#include <math.h>

/* What is known of some elements. */
struct seen {
    float extreme;
    bool has_nan, has_sign; /* an element is NaN; has its sign bit set */
};

static void add(struct seen *seen, float x, bool is_maximum) {
    seen->has_nan |= x != x;
    seen->has_sign |= signbit(x) != 0;
    if (is_maximum ? x > seen->extreme : x < seen->extreme) seen->extreme = x;
}

#if TARE_KERNELS_X86
#include <immintrin.h>

enum { LANES = 8, VECTORS = 4, STEP = VECTORS * LANES };

/* Whole steps of elements. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct seen see(const float *x, int64_t count, const bool is_maximum) {
    __m256 extremes[VECTORS], unordered = _mm256_setzero_ps(), bits = _mm256_setzero_ps();
    float lanes[LANES];
    TARE_UNROLL
    for (int j = 0; j < VECTORS; j++)
        extremes[j] = _mm256_set1_ps(is_maximum ? -INFINITY : INFINITY);
    for (int64_t i = 0; i < count; i += STEP) {
        TARE_UNROLL
        for (int j = 0; j < VECTORS; j++) {
            const __m256 y = _mm256_loadu_ps(x + i + j * LANES);
            unordered = _mm256_or_ps(unordered, _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
            bits = _mm256_or_ps(bits, y);
            extremes[j] = is_maximum ? _mm256_max_ps(y, extremes[j]) : _mm256_min_ps(y, extremes[j]);
        }
    }
    TARE_UNROLL
    for (int j = 1; j < VECTORS; j++)
        extremes[0] = is_maximum ? _mm256_max_ps(extremes[j], extremes[0]) : _mm256_min_ps(extremes[j], extremes[0]);
    _mm256_storeu_ps(lanes, extremes[0]);
    for (int k = 1; k < LANES; k++)
        if (is_maximum ? lanes[k] > lanes[0] : lanes[k] < lanes[0]) lanes[0] = lanes[k];
    return (struct seen){ lanes[0], _mm256_movemask_ps(unordered) != 0, _mm256_movemask_ps(bits) != 0 };
}

static TARE_TARGET_AVX2 struct seen see_steps(const float *x, int64_t count, bool is_maximum) {
    return is_maximum ? see(x, count, true) : see(x, count, false);
}
#endif

bool tare_extreme_at(enum tare_cpu_level level, float *out, const float *x, int64_t count, bool is_maximum) {
    struct seen seen = { .extreme = is_maximum ? -INFINITY : INFINITY };
    int64_t i = 0;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2 && count >= STEP) {
        i = count - count % STEP;
        seen = see_steps(x, i, is_maximum);
    }
#endif
    (void)level;
    for (; i < count; i++)
        add(&seen, x[i], is_maximum);
    *out = seen.extreme;
    return !seen.has_nan && (seen.extreme != 0 || !seen.has_sign);
}

bool tare_extreme(float *out, const float *x, int64_t count, bool is_maximum) {
    return tare_extreme_at(tare_cpu_level(), out, x, count, is_maximum);
}
