/* Tiles of 8, 4 or 1 rows by two vectors of columns; elements beyond the last column are masked, so that nothing
 * outside B and C is read or written. */
#include "interpreter/kernels/gemm_double_small.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum { MOST_COLUMNS = 64, MOST_TERMS = 64, MOST_PRODUCTS = 1 << 16 };

bool tare_gemm_double_is_small(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k) {
    return level >= TARE_CPU_AVX2 && n <= MOST_COLUMNS && k <= MOST_TERMS && m <= MOST_PRODUCTS &&
           m * n * k <= MOST_PRODUCTS;
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

/* Blocks of 4 by 4. */
static TARE_TARGET_AVX2 void transpose_avx2(double *to, int64_t to_step, const double *from, int64_t from_step,
                                            int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < columns; j += 4) {
            const double *at = from + i * from_step + j;
            double *out = to + j * to_step + i;
            __m256d r[4]; /* rows 0 and 2, then 1 and 3: columns 0 and 1, then 2 and 3 */
            TARE_UNROLL
            for (int k = 0; k < 4; k++) {
                const double *row = at + k % 2 * from_step + k / 2 * 2;
                r[k] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(row)),
                                            _mm_loadu_pd(row + 2 * from_step), 1);
            }
            _mm256_storeu_pd(out, _mm256_unpacklo_pd(r[0], r[1]));
            _mm256_storeu_pd(out + to_step, _mm256_unpackhi_pd(r[0], r[1]));
            _mm256_storeu_pd(out + 2 * to_step, _mm256_unpacklo_pd(r[2], r[3]));
            _mm256_storeu_pd(out + 3 * to_step, _mm256_unpackhi_pd(r[2], r[3]));
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

static void transpose_plain(double *to, int64_t to_step, const double *from, int64_t from_step, int64_t rows,
                            int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * to_step + i] = from[i * from_step + j];
}

void tare_transpose_double(enum tare_cpu_level level, double *to, int64_t to_step, const double *from,
                           int64_t from_step, int64_t rows, int64_t columns) {
    int64_t whole_rows = 0, whole_columns = 0;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) {
        whole_rows = rows / 4 * 4;
        whole_columns = columns / 4 * 4;
        transpose_avx2(to, to_step, from, from_step, whole_rows, whole_columns);
    }
#else
    (void)level;
#endif
    if (whole_columns < columns)
        transpose_plain(to + whole_columns * to_step, to_step, from + whole_columns, from_step, whole_rows,
                        columns - whole_columns);
    if (whole_rows < rows)
        transpose_plain(to + whole_rows, to_step, from + whole_rows * from_step, from_step, rows - whole_rows, columns);
}
