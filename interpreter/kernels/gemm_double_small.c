/* Tiles of 8, 4 or 1 rows by two vectors of columns; elements beyond the last column are masked, so that nothing
 * outside B and C is read or written. */
#include "interpreter/kernels/gemm_double_small.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum { MOST_COLUMNS = 64, MOST_TERMS = 64, MOST_PRODUCTS = 1 << 16 };

bool tare_gemm_double_is_small(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k) {
    return level >= TARE_CPU_AVX2 && n <= MOST_COLUMNS && k <= MOST_TERMS && m <= MOST_PRODUCTS / (n * k);
}

#if TARE_KERNELS_X86

/* The rows of C from `row` on and the columns from `column` on. */
struct place {
    const struct tare_gemm_double_small *product;
    int64_t row, column;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void rows_avx512(const struct place *at, const int rows) {
    const struct tare_gemm_double_small *g = at->product;
    const int64_t left = g->n - at->column;
    const __mmask8 first = left >= 8 ? 0xff : (__mmask8)((1 << left) - 1);
    const __mmask8 second = left >= 16 ? 0xff : left <= 8 ? 0 : (__mmask8)((1 << (left - 8)) - 1);
    const double *a = g->a + at->row * g->a_row, *b = g->b + at->column;
    double *c = g->c + at->row * g->n + at->column;
    __m512d sum[8][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm512_setzero_pd();
    for (int64_t p = 0; p < g->k; p++, a += g->a_column, b += g->b_row) {
        const __m512d b0 = _mm512_maskz_loadu_pd(first, b), b1 = _mm512_maskz_loadu_pd(second, b + 8);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512d x = _mm512_set1_pd(a[i * g->a_row]);
            sum[i][0] = _mm512_fmadd_pd(x, b0, sum[i][0]);
            sum[i][1] = _mm512_fmadd_pd(x, b1, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        _mm512_mask_storeu_pd(c + i * g->n, first, sum[i][0]);
        _mm512_mask_storeu_pd(c + i * g->n + 8, second, sum[i][1]);
    }
}

/* All ones in the first `count` lanes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i lanes_avx2(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set_epi64x(3, 2, 1, 0));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void rows_avx2(const struct place *at, const int rows) {
    const struct tare_gemm_double_small *g = at->product;
    const int64_t left = g->n - at->column;
    const __m256i first = lanes_avx2(left), second = lanes_avx2(left - 4);
    const double *a = g->a + at->row * g->a_row, *b = g->b + at->column;
    double *c = g->c + at->row * g->n + at->column;
    __m256d sum[4][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_pd();
    for (int64_t p = 0; p < g->k; p++, a += g->a_column, b += g->b_row) {
        const __m256d b0 = _mm256_maskload_pd(b, first), b1 = _mm256_maskload_pd(b + 4, second);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256d x = _mm256_set1_pd(a[i * g->a_row]);
            sum[i][0] = _mm256_fmadd_pd(x, b0, sum[i][0]);
            sum[i][1] = _mm256_fmadd_pd(x, b1, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        _mm256_maskstore_pd(c + i * g->n, first, sum[i][0]);
        _mm256_maskstore_pd(c + i * g->n + 4, second, sum[i][1]);
    }
}

static TARE_TARGET_AVX512 void run_avx512(const struct tare_gemm_double_small *g) {
    struct place at = { .product = g };
    for (at.column = 0; at.column < g->n; at.column += 16) {
        for (at.row = 0; at.row + 8 <= g->m; at.row += 8)
            rows_avx512(&at, 8);
        for (; at.row + 4 <= g->m; at.row += 4)
            rows_avx512(&at, 4);
        for (; at.row < g->m; at.row++)
            rows_avx512(&at, 1);
    }
}

static TARE_TARGET_AVX2 void run_avx2(const struct tare_gemm_double_small *g) {
    struct place at = { .product = g };
    for (at.column = 0; at.column < g->n; at.column += 8) {
        for (at.row = 0; at.row + 4 <= g->m; at.row += 4)
            rows_avx2(&at, 4);
        for (; at.row < g->m; at.row++)
            rows_avx2(&at, 1);
    }
}

#endif

void tare_gemm_double_small(enum tare_cpu_level level, const struct tare_gemm_double_small *product) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512)
        run_avx512(product);
    else
        run_avx2(product);
#else
    (void)level;
    (void)product;
#endif
}
