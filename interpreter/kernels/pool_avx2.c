#include "interpreter/kernels/pool.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

TARE_TARGET_AVX2 void tare_pool_fold_max_avx2(float *to, const float *from, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) /* the second operand comes back when they do not compare: a NaN is passed over */
        _mm256_storeu_ps(to + i, _mm256_max_ps(_mm256_loadu_ps(from + i), _mm256_loadu_ps(to + i)));
    for (; i < count; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

TARE_TARGET_AVX2 void tare_pool_fold_sum_avx2(float *to, const float *from, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i), _mm256_loadu_ps(from + i)));
    for (; i < count; i++)
        to[i] += from[i];
}
#endif
