#include "interpreter/kernels/rowwise.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

static TARE_TARGET_AVX2 void add_avx2(float *to, const float *from, const float *bias, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++, to += columns, from += columns) {
        int64_t j = 0;
        for (; j + 8 <= columns; j += 8)
            _mm256_storeu_ps(to + j, _mm256_add_ps(_mm256_loadu_ps(from + j), _mm256_loadu_ps(bias + j)));
        for (; j < columns; j++)
            to[j] = from[j] + bias[j];
    }
}

static TARE_TARGET_AVX2 void normalize_avx2(float *to, const float *from, const float *mean, const float *factor,
                                            const float *offset, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++, to += columns, from += columns) {
        int64_t j = 0;
        for (; j + 8 <= columns; j += 8) {
            const __m256 centred = _mm256_sub_ps(_mm256_loadu_ps(from + j), _mm256_loadu_ps(mean + j));
            const __m256 scaled = _mm256_mul_ps(centred, _mm256_loadu_ps(factor + j));
            _mm256_storeu_ps(to + j, _mm256_add_ps(scaled, _mm256_loadu_ps(offset + j)));
        }
        for (; j < columns; j++)
            to[j] = (from[j] - mean[j]) * factor[j] + offset[j];
    }
}

/* Four rows at a time, so that the sums are loaded and stored once for them. */
static TARE_TARGET_AVX2 void sum_avx2(double *sums, const float *from, int64_t rows, int64_t columns) {
    enum { ROWS = 4 };
    for (; rows > 0; rows -= ROWS, from += ROWS * columns) {
        const int64_t count = rows < ROWS ? rows : ROWS;
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            __m256d sum = _mm256_loadu_pd(sums + j);
            for (int64_t i = 0; i < count; i++)
                sum = _mm256_add_pd(sum, _mm256_cvtps_pd(_mm_loadu_ps(from + i * columns + j)));
            _mm256_storeu_pd(sums + j, sum);
        }
        for (; j < columns; j++) {
            for (int64_t i = 0; i < count; i++)
                sums[j] += (double)from[i * columns + j];
        }
    }
}
#endif

void tare_rowwise_add_at(enum tare_cpu_level level, float *to, const float *from, const float *bias, int64_t rows,
                         int64_t columns) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) {
        add_avx2(to, from, bias, rows, columns);
        return;
    }
#endif
    (void)level;
    for (int64_t i = 0; i < rows * columns; i++)
        to[i] = from[i] + bias[i % columns];
}

void tare_rowwise_normalize_at(enum tare_cpu_level level, float *to, const float *from, const float *mean,
                               const float *factor, const float *offset, int64_t rows, int64_t columns) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) {
        normalize_avx2(to, from, mean, factor, offset, rows, columns);
        return;
    }
#endif
    (void)level;
    for (int64_t i = 0; i < rows * columns; i++)
        to[i] = (from[i] - mean[i % columns]) * factor[i % columns] + offset[i % columns];
}

void tare_rowwise_sum_at(enum tare_cpu_level level, double *sums, const float *from, int64_t rows, int64_t columns) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) {
        sum_avx2(sums, from, rows, columns);
        return;
    }
#endif
    (void)level;
    for (int64_t i = 0; i < rows * columns; i++)
        sums[i % columns] += (double)from[i];
}

void tare_rowwise_add(float *to, const float *from, const float *bias, int64_t rows, int64_t columns) {
    tare_rowwise_add_at(tare_cpu_level(), to, from, bias, rows, columns);
}
void tare_rowwise_normalize(float *to, const float *from, const float *mean, const float *factor, const float *offset,
                            int64_t rows, int64_t columns) {
    tare_rowwise_normalize_at(tare_cpu_level(), to, from, mean, factor, offset, rows, columns);
}
void tare_rowwise_sum(double *sums, const float *from, int64_t rows, int64_t columns) {
    tare_rowwise_sum_at(tare_cpu_level(), sums, from, rows, columns);
}
