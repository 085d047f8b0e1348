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

void tare_rowwise_add(float *to, const float *from, const float *bias, int64_t rows, int64_t columns) {
    tare_rowwise_add_at(tare_cpu_level(), to, from, bias, rows, columns);
}
void tare_rowwise_normalize(float *to, const float *from, const float *mean, const float *factor, const float *offset,
                            int64_t rows, int64_t columns) {
    tare_rowwise_normalize_at(tare_cpu_level(), to, from, mean, factor, offset, rows, columns);
}
