/* The sums of products of a chunk of rows. All terms are integers that doubles represent exactly, so every order of
 * addition yields the same bits. */
#include "calib/hessian.h"
#include "interpreter/kernels/cpu.h"

void tare_hessian_update_plain(double *sums, int64_t size, int64_t stride, const double *x, int64_t rows) {
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t i = 0; i < size; i++) {
            const double left = x[i];
            double *to = &sums[i * stride];
            if (left == 0) continue; /* about half of them after ReLU */
            for (int64_t j = i; j < size; j++)
                to[j] += left * x[j];
        }
}

#if TARE_KERNELS_X86
#include <immintrin.h>

/* Four rows of the sums by eight columns. */
TARE_TARGET_AVX2 static void add_tile(double *sums, int64_t stride, const double *x, int64_t rows, int64_t i, int64_t j,
                                      int64_t height) {
    __m256d low[4], high[4];
    for (int k = 0; k < 4; k++)
        low[k] = high[k] = _mm256_setzero_pd();
    for (int64_t r = 0; r < rows; r++) {
        const double *row = &x[r * stride];
        const __m256d a = _mm256_loadu_pd(&row[j]), b = _mm256_loadu_pd(&row[j + 4]);
        TARE_UNROLL
        for (int k = 0; k < 4; k++) {
            const __m256d left = _mm256_broadcast_sd(&row[i + k]);
            low[k] = _mm256_fmadd_pd(left, a, low[k]);
            high[k] = _mm256_fmadd_pd(left, b, high[k]);
        }
    }
    for (int k = 0; k < height; k++) {
        double *to = &sums[(i + k) * stride + j];
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low[k]));
        _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), high[k]));
    }
}

/* Rows i … i+3 are within the stride, as that is a multiple of 8; those beyond the size are not stored. */
TARE_TARGET_AVX2 void tare_hessian_update_avx2(double *sums, int64_t size, int64_t stride, const double *x,
                                               int64_t rows) {
    for (int64_t i = 0; i < size; i += 4)
        for (int64_t j = i / 8 * 8; j < stride; j += 8)
            add_tile(sums, stride, x, rows, i, j, size - i < 4 ? size - i : 4);
}
#endif
