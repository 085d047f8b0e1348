/* A kernel computes 1 to 12 rows by 16 columns of C; elements beyond the last column are masked. It reads both operands
 * in place where the product is small, because packing them would take longer, except a B whose rows are not
 * contiguous. Otherwise B is packed once into panels of 16 columns, A in blocks of at most 96 rows and 256 columns into
 * tiles of 12 rows, both padded with zeros. A block of k continues the chains of the block before, which C holds. */
#include "interpreter/kernels/gemm_double.h"

#include "base/alloc.h"
#include "interpreter/kernels/transpose.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum { WIDTH = 16, ROWS = 12, BLOCK_ROWS = 8 * ROWS, BLOCK_K = 256 };

/* c [m, n] (+)= a [m, k] · b [k, n]. Element (i, p) of a is at row_of(i)[p * a_column], (p, j) of b at column_of(j)[p *
 * b_row]. */
struct block {
    double *c;
    const double *a, *b;
    int64_t ldc, a_row, a_column, b_row, panel, m, n, k; /* panel: elements of b by column between panels */
    bool packed, accumulate; /* packed: a consists of tiles [k][ROWS], b of panels [][WIDTH] */
};
typedef void block_function(const struct block *block);

TARE_ALWAYS_INLINE const double *row_of(const struct block *t, int64_t row) {
    return t->packed ? t->a + row / ROWS * ROWS * t->k + row % ROWS : t->a + row * t->a_row;
}
TARE_ALWAYS_INLINE const double *column_of(const struct block *t, int64_t column) {
    return t->b + column / WIDTH * WIDTH * t->panel + column % WIDTH;
}

static void block_plain(const struct block *t) {
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++) {
            const double *a = row_of(t, i), *b = column_of(t, j);
            double sum = t->accumulate ? t->c[i * t->ldc + j] : 0;
            for (int64_t p = 0; p < t->k; p++)
                sum = fma(a[p * t->a_column], b[p * t->b_row], sum);
            t->c[i * t->ldc + j] = sum;
        }
}

#if TARE_KERNELS_X86
/* `rows` rows from `row` on, by the columns from `column` on, at most 16. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void rows_avx512(const struct block *t, int64_t row, int64_t column,
                                                       const int rows, const bool packed) {
    const int64_t left = t->n - column;
    const int64_t a_row = packed ? 1 : t->a_row, a_column = packed ? ROWS : t->a_column;
    const int64_t b_row = packed ? WIDTH : t->b_row;
    const __mmask8 first = left >= 8 ? 0xff : (__mmask8)((1 << left) - 1);
    const __mmask8 second = left >= 16 ? 0xff : left <= 8 ? 0 : (__mmask8)((1 << (left - 8)) - 1);
    const double *a = row_of(t, row), *b = column_of(t, column);
    double *c = t->c + row * t->ldc + column;
    __m512d sum[ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        sum[i][0] = t->accumulate ? _mm512_maskz_loadu_pd(first, c + i * t->ldc) : _mm512_setzero_pd();
        sum[i][1] = t->accumulate ? _mm512_maskz_loadu_pd(second, c + i * t->ldc + 8) : _mm512_setzero_pd();
    }
    for (int64_t p = 0; p < t->k; p++, a += a_column, b += b_row) {
        const __m512d b0 = packed ? _mm512_loadu_pd(b) : _mm512_maskz_loadu_pd(first, b);
        const __m512d b1 = packed ? _mm512_loadu_pd(b + 8) : _mm512_maskz_loadu_pd(second, b + 8);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512d x = _mm512_set1_pd(a[i * a_row]);
            sum[i][0] = _mm512_fmadd_pd(x, b0, sum[i][0]);
            sum[i][1] = _mm512_fmadd_pd(x, b1, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        _mm512_mask_storeu_pd(c + i * t->ldc, first, sum[i][0]);
        _mm512_mask_storeu_pd(c + i * t->ldc + 8, second, sum[i][1]);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void all_avx512(const struct block *t, const bool packed) {
    for (int64_t column = 0; column < t->n; column += WIDTH) {
        int64_t row = 0;
        for (; packed && row + 12 <= t->m; row += 12)
            rows_avx512(t, row, column, 12, packed);
        for (; row + 8 <= t->m; row += 8)
            rows_avx512(t, row, column, 8, packed);
        for (; row + 4 <= t->m; row += 4)
            rows_avx512(t, row, column, 4, packed);
        for (; row < t->m; row++)
            rows_avx512(t, row, column, 1, packed);
    }
}

static TARE_TARGET_AVX512 void block_avx512(const struct block *t) {
    if (t->packed)
        all_avx512(t, true);
    else
        all_avx512(t, false);
}

/* All ones in the first `count` lanes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i lanes_avx2(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set_epi64x(3, 2, 1, 0));
}

/* At most 6 rows by 8 columns: 12 accumulators. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void rows_avx2(const struct block *t, int64_t row, int64_t column, const int rows,
                                                   const bool packed) {
    const int64_t a_row = packed ? 1 : t->a_row, a_column = packed ? ROWS : t->a_column;
    const int64_t b_row = packed ? WIDTH : t->b_row;
    const __m256i first = lanes_avx2(t->n - column), second = lanes_avx2(t->n - column - 4);
    const bool is_whole = t->n - column >= 8; /* masked stores of whole vectors are slow */
    const double *a = row_of(t, row), *b = column_of(t, column);
    double *c = t->c + row * t->ldc + column;
    __m256d sum[6][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        sum[i][0] = t->accumulate ? _mm256_maskload_pd(c + i * t->ldc, first) : _mm256_setzero_pd();
        sum[i][1] = t->accumulate ? _mm256_maskload_pd(c + i * t->ldc + 4, second) : _mm256_setzero_pd();
    }
    for (int64_t p = 0; p < t->k; p++, a += a_column, b += b_row) {
        const __m256d b0 = packed ? _mm256_loadu_pd(b) : _mm256_maskload_pd(b, first);
        const __m256d b1 = packed ? _mm256_loadu_pd(b + 4) : _mm256_maskload_pd(b + 4, second);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256d x = _mm256_set1_pd(a[i * a_row]);
            sum[i][0] = _mm256_fmadd_pd(x, b0, sum[i][0]);
            sum[i][1] = _mm256_fmadd_pd(x, b1, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (is_whole) {
            _mm256_storeu_pd(c + i * t->ldc, sum[i][0]);
            _mm256_storeu_pd(c + i * t->ldc + 4, sum[i][1]);
        } else {
            _mm256_maskstore_pd(c + i * t->ldc, first, sum[i][0]);
            _mm256_maskstore_pd(c + i * t->ldc + 4, second, sum[i][1]);
        }
    }
}

/* Both halves of 16 columns for some rows, so that a tile of A is read from the nearest cache again. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void halves_avx2(const struct block *t, int64_t row, int64_t column, const int rows,
                                                     const bool packed) {
    rows_avx2(t, row, column, rows, packed);
    if (column + 8 < t->n) rows_avx2(t, row, column + 8, rows, packed);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void all_avx2(const struct block *t, const bool packed) {
    for (int64_t column = 0; column < t->n; column += WIDTH) {
        int64_t row = 0;
        for (; packed && row + 6 <= t->m; row += 6)
            halves_avx2(t, row, column, 6, packed);
        for (; row + 4 <= t->m; row += 4)
            halves_avx2(t, row, column, 4, packed);
        for (; row < t->m; row++)
            halves_avx2(t, row, column, 1, packed);
    }
}

static TARE_TARGET_AVX2 void block_avx2(const struct block *t) {
    if (t->packed)
        all_avx2(t, true);
    else
        all_avx2(t, false);
}
#endif

static block_function *block_at(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return block_avx512;
    if (level >= TARE_CPU_AVX2) return block_avx2;
#endif
    (void)level;
    return block_plain;
}

/* ---- packing ---- */

size_t tare_gemm_double_scratch(int64_t k, int64_t n) {
    int64_t columns, count;
    if (k < 0 || n < 0 || !tare_add_i64(&columns, n, WIDTH) || !tare_mul_i64(&count, columns, k)) return 0;
    if (!tare_add_i64(&count, count, BLOCK_ROWS * BLOCK_K + WIDTH) || count > INT64_MAX / (int64_t)sizeof(double))
        return 0;
    return (size_t)count;
}

/* Packs lines of A (rows) or B (columns), whose elements are `step` apart, into panels [k][width]. Element (i, p) is
 * from[i * line + p * step]. */
static void pack(enum tare_cpu_level level, double *to, int64_t width, const double *from, int64_t line, int64_t step,
                 int64_t lines, int64_t k) {
    for (int64_t first = 0; first < lines; first += width, to += k * width, from += width * line) {
        const int64_t count = lines - first < width ? lines - first : width;
        if (count < width) memset(to, 0, (size_t)(k * width) * sizeof *to);
        if (step == 1) tare_transpose_double(level, to, width, from, line, count, k);
        for (int64_t p = 0; step != 1 && p < k; p++) {
            if (line == 1) memcpy(to + p * width, from + p * step, (size_t)count * sizeof *to);
            for (int64_t i = 0; line != 1 && i < count; i++)
                to[p * width + i] = from[i * line + p * step];
        }
    }
}

/* ---- product ---- */

/* Whether packing A would take longer than it saves. */
static bool is_small(int64_t m, int64_t n, int64_t k) {
    enum { MOST_COLUMNS = 64, MOST_TERMS = 64, MOST_PRODUCTS = 1 << 16 };
    return n <= MOST_COLUMNS && k <= MOST_TERMS && m <= MOST_PRODUCTS && m * n * k <= MOST_PRODUCTS;
}

void tare_gemm_double(enum tare_cpu_level level, double *c, const struct tare_gemm_double_matrix *a,
                      const struct tare_gemm_double_matrix *b, int64_t m, int64_t n, int64_t k, double *scratch) {
    scratch += (64 - (uintptr_t)scratch % 64) % 64 / sizeof *scratch; /* rows of panels are two cache lines */
    double *packed_b = scratch + BLOCK_ROWS * BLOCK_K;
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
        memset(c, 0, (size_t)(m * n) * sizeof *c);
        return;
    }
    struct block block = { c, a->data, b->data, n, a->row, a->column, b->row, .panel = 1, .m = m, .n = n, .k = k };
    const bool small = is_small(m, n, k);
    if (!small || b->column != 1) {
        pack(level, packed_b, WIDTH, b->data, b->column, b->row, n, k);
        block.b = packed_b, block.b_row = WIDTH, block.panel = k;
    }
    if (small) {
        block_at(level)(&block);
        return;
    }
    block.packed = true;
    block.a = scratch, block.a_column = ROWS;
    for (int64_t p = 0; p < k; p += BLOCK_K)
        for (int64_t row = 0; row < m; row += BLOCK_ROWS) {
            block.c = c + row * n;
            block.b = packed_b + p * WIDTH;
            block.m = m - row < BLOCK_ROWS ? m - row : BLOCK_ROWS;
            block.k = k - p < BLOCK_K ? k - p : BLOCK_K;
            block.accumulate = p > 0;
            pack(level, scratch, ROWS, a->data + row * a->row + p * a->column, a->row, a->column, block.m, block.k);
            block_at(level)(&block);
        }
}
