/* B is packed once into panels of 8 columns, A in blocks of at most 96 rows and 256 columns into tiles of 12 rows, both
 * padded with zeros. The kernels compute 4, 8 or 12 rows by 2 panels; tiles at the edge of C are computed in a buffer.
 * A block of k continues the chains of the block before, which C holds. */
#include "interpreter/kernels/gemm_double.h"

#include "base/alloc.h"
#include "interpreter/kernels/gemm_double_small.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum { PANEL = 8, WIDTH = 2 * PANEL, ROWS = 12, BLOCK_ROWS = 8 * ROWS, BLOCK_K = 256 };

/* A tile: c [rows, WIDTH] (+)= a [k][ROWS] · two panels [k][PANEL], `panel_stride` doubles apart. */
struct tile {
    double *c;
    int64_t ldc, k, panel_stride;
    int rows; /* 4, 8 or 12 */
    const double *a, *panels;
    bool accumulate;
};
typedef void tile_function(const struct tile *tile);

static void tile_plain(const struct tile *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < WIDTH; j++) {
            const double *b = t->panels + j / PANEL * t->panel_stride + j % PANEL;
            double sum = t->accumulate ? t->c[i * t->ldc + j] : 0;
            for (int64_t p = 0; p < t->k; p++)
                sum = fma(t->a[p * ROWS + i], b[p * PANEL], sum);
            t->c[i * t->ldc + j] = sum;
        }
}

#if TARE_KERNELS_X86
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void rows_avx512(const struct tile *t, const int rows) {
    __m512d sum[ROWS][2];
    const double *a = t->a, *b = t->panels;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            sum[i][j] = t->accumulate ? _mm512_loadu_pd(t->c + i * t->ldc + j * PANEL) : _mm512_setzero_pd();
    }
    for (int64_t p = 0; p < t->k; p++, a += ROWS, b += PANEL) {
        const __m512d left = _mm512_loadu_pd(b), right = _mm512_loadu_pd(b + t->panel_stride);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512d x = _mm512_set1_pd(a[i]);
            sum[i][0] = _mm512_fmadd_pd(x, left, sum[i][0]);
            sum[i][1] = _mm512_fmadd_pd(x, right, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            _mm512_storeu_pd(t->c + i * t->ldc + j * PANEL, sum[i][j]);
    }
}

static TARE_TARGET_AVX512 void tile_avx512(const struct tile *t) {
    if (t->rows == 4)
        rows_avx512(t, 4);
    else if (t->rows == 8)
        rows_avx512(t, 8);
    else
        rows_avx512(t, 12);
}

/* 4 or 6 rows by one panel (at most 12 accumulators). */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void part_avx2(const struct tile *t, const int row, const int rows,
                                                   const int panel) {
    __m256d sum[6][2];
    const double *a = t->a + row, *b = t->panels + panel * t->panel_stride;
    double *c = t->c + row * t->ldc + panel * PANEL;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            sum[i][j] = t->accumulate ? _mm256_loadu_pd(c + i * t->ldc + j * 4) : _mm256_setzero_pd();
    }
    for (int64_t p = 0; p < t->k; p++, a += ROWS, b += PANEL) {
        const __m256d left = _mm256_loadu_pd(b), right = _mm256_loadu_pd(b + 4);
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256d x = _mm256_broadcast_sd(a + i);
            sum[i][0] = _mm256_fmadd_pd(x, left, sum[i][0]);
            sum[i][1] = _mm256_fmadd_pd(x, right, sum[i][1]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < 2; j++)
            _mm256_storeu_pd(c + i * t->ldc + j * 4, sum[i][j]);
    }
}

static TARE_TARGET_AVX2 void tile_avx2(const struct tile *t) {
    for (int panel = 0; panel < 2; panel++) {
        if (t->rows == 12) {
            part_avx2(t, 0, 6, panel);
            part_avx2(t, 6, 6, panel);
            continue;
        }
        part_avx2(t, 0, 4, panel);
        if (t->rows == 8) part_avx2(t, 4, 4, panel);
    }
}
#endif

static tile_function *tile_at(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tile_avx512;
    if (level >= TARE_CPU_AVX2) return tile_avx2;
#endif
    (void)level;
    return tile_plain;
}

/* ---- packing ---- */

/* Columns of B, a whole number of tiles. */
static int64_t packed_columns(int64_t n) {
    return (n + WIDTH - 1) / WIDTH * WIDTH;
}

size_t tare_gemm_double_scratch(int64_t k, int64_t n) {
    int64_t columns, count;
    if (k < 0 || n < 0 || !tare_add_i64(&columns, n, WIDTH) || !tare_mul_i64(&count, columns, k)) return 0;
    if (!tare_add_i64(&count, count, BLOCK_ROWS * BLOCK_K + PANEL) || count > INT64_MAX / (int64_t)sizeof(double))
        return 0;
    return (size_t)count;
}

static void pack_b(enum tare_cpu_level level, double *to, const struct tare_gemm_double_matrix *b, int64_t k,
                   int64_t n) {
    for (int64_t first = 0; first < packed_columns(n); first += PANEL) {
        const int64_t columns = n - first < 0 ? 0 : n - first < PANEL ? n - first : PANEL;
        const double *from = b->data + first * b->column;
        if (columns == PANEL && b->row == 1) {
            tare_transpose_double(level, to, PANEL, from, b->column, PANEL, k);
            to += k * PANEL;
            continue;
        }
        for (int64_t p = 0; p < k; p++, to += PANEL, from += b->row) {
            if (columns == PANEL && b->column == 1) {
                memcpy(to, from, PANEL * sizeof *to);
                continue;
            }
            for (int64_t j = 0; j < PANEL; j++)
                to[j] = j < columns ? from[j * b->column] : 0;
        }
    }
}

/* Packs columns p … p + k - 1 of `rows` rows of A, as tiles [k][ROWS]. */
static void pack_a(enum tare_cpu_level level, double *to, const struct tare_gemm_double_matrix *a, int64_t row,
                   int64_t rows, int64_t p, int64_t k) {
    for (int64_t first = 0; first < rows; first += ROWS, to += k * ROWS) {
        const int64_t in_tile = rows - first < ROWS ? rows - first : ROWS;
        const double *from = a->data + (row + first) * a->row + p * a->column;
        if (in_tile == ROWS && a->column == 1) {
            tare_transpose_double(level, to, ROWS, from, a->row, ROWS, k);
            continue;
        }
        for (int64_t i = 0; i < in_tile; i++, from += a->row)
            for (int64_t at = 0; at < k; at++)
                to[at * ROWS + i] = from[at * a->column];
        for (int64_t at = 0; in_tile < ROWS && at < k; at++)
            memset(to + at * ROWS + in_tile, 0, (size_t)(ROWS - in_tile) * sizeof *to);
    }
}

/* ---- product ---- */

/* A tile of which only rows × columns elements are in C. */
static void run_edge(tile_function *run, const struct tile *tile, int64_t rows, int64_t columns) {
    double buffer[ROWS * WIDTH];
    struct tile inner = *tile;
    inner.c = buffer;
    inner.ldc = WIDTH;
    const size_t size = (size_t)columns * sizeof(double);
    memset(buffer, 0, tile->accumulate ? sizeof buffer : 0);
    for (int64_t i = 0; tile->accumulate && i < rows; i++)
        memcpy(buffer + i * WIDTH, tile->c + i * tile->ldc, size);
    run(&inner);
    for (int64_t i = 0; i < rows; i++)
        memcpy(tile->c + i * tile->ldc, buffer + i * WIDTH, size);
}

/* Rows of one packed block of A by all columns. `tile` describes the first tile. */
static void run_rows(tile_function *run, struct tile tile, int64_t rows, int64_t n) {
    double *const c = tile.c;
    const double *const a = tile.a;
    for (int64_t column = 0; column < n; column += WIDTH, tile.panels += 2 * tile.panel_stride)
        for (int64_t row = 0; row < rows; row += ROWS) {
            tile.c = c + row * tile.ldc + column;
            tile.a = a + row * tile.k;
            const int64_t height = rows - row < ROWS ? rows - row : ROWS, width = n - column;
            tile.rows = (int)(height + 3) / 4 * 4;
            if (height == tile.rows && width >= WIDTH)
                run(&tile);
            else
                run_edge(run, &tile, height, width < WIDTH ? width : WIDTH);
        }
}

/* Without packing; only a B whose rows are not contiguous is copied. */
static void run_small(enum tare_cpu_level level, double *c, const struct tare_gemm_double_matrix *a,
                      const struct tare_gemm_double_matrix *b, int64_t m, int64_t n, int64_t k, double *scratch) {
    struct tare_gemm_double_small small = { c, a->data, b->data, a->row, a->column, b->row, m, n, k };
    if (b->column != 1) {
        if (b->row == 1) tare_transpose_double(level, scratch, n, b->data, b->column, n, k);
        for (int64_t j = 0; b->row != 1 && j < n; j++)
            for (int64_t p = 0; p < k; p++)
                scratch[p * n + j] = b->data[p * b->row + j * b->column];
        small.b = scratch;
        small.b_row = n;
    }
    tare_gemm_double_small(level, &small);
}

void tare_gemm_double(enum tare_cpu_level level, double *c, const struct tare_gemm_double_matrix *a,
                      const struct tare_gemm_double_matrix *b, int64_t m, int64_t n, int64_t k, double *scratch) {
    scratch += (64 - (uintptr_t)scratch % 64) % 64 / sizeof *scratch; /* a panel is one cache line */
    double *packed_b = scratch + BLOCK_ROWS * BLOCK_K;
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
        memset(c, 0, (size_t)(m * n) * sizeof *c);
        return;
    }
    if (tare_gemm_double_is_small(level, m, n, k)) {
        run_small(level, c, a, b, m, n, k, scratch);
        return;
    }
    pack_b(level, packed_b, b, k, n);
    for (int64_t p = 0; p < k; p += BLOCK_K)
        for (int64_t row = 0; row < m; row += BLOCK_ROWS) {
            const int64_t rows = m - row < BLOCK_ROWS ? m - row : BLOCK_ROWS;
            const struct tile first = { .c = c + row * n,
                                        .ldc = n,
                                        .k = k - p < BLOCK_K ? k - p : BLOCK_K,
                                        .panel_stride = k * PANEL,
                                        .a = scratch,
                                        .panels = packed_b + p * PANEL,
                                        .accumulate = p > 0 };
            pack_a(level, scratch, a, row, rows, p, first.k);
            run_rows(tile_at(level), first, rows, n);
        }
}
