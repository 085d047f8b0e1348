#include "graph/kernels/gemm.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

size_t tare_gemm_packed_floats(int64_t k, int64_t n) {
    int64_t padded, floats;
    if (k < 0 || n < 0 || !tare_add_i64(&padded, n, TARE_GEMM_PANEL - 1)) return 0;
    padded -= padded % TARE_GEMM_PANEL;
    if (!tare_mul_i64(&floats, padded, k) || floats > INT64_MAX / (int64_t)sizeof(float)) return 0;
    return (size_t)floats;
}

#define PACK(name, type)                                                                                               \
    void name(float *packed, const type *b, int64_t k, int64_t n, int64_t row_stride, int64_t column_stride) {         \
        for (int64_t first = 0; first < n; first += TARE_GEMM_PANEL) {                                                 \
            const int64_t columns = n - first < TARE_GEMM_PANEL ? n - first : TARE_GEMM_PANEL;                         \
            for (int64_t i = 0; i < k; i++, packed += TARE_GEMM_PANEL) {                                               \
                const type *row = b + i * row_stride + first * column_stride;                                          \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    packed[j] = (float)row[j * column_stride];                                                         \
                for (int64_t j = columns; j < TARE_GEMM_PANEL; j++)                                                    \
                    packed[j] = 0;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }
PACK(tare_gemm_pack, float)
PACK(tare_gemm_pack_int8, int8_t)
#undef PACK

/* Gathered rows lie a few cache lines more than a block apart, so that a power of two in the model does not put them
 * all into one cache set. */
enum { BLOCK_STRIDE = TARE_GEMM_BLOCK_K + 16 };

size_t tare_gemm_scratch_floats(void) {
    return (size_t)TARE_GEMM_BLOCK_ROWS * BLOCK_STRIDE;
}

void tare_gemm_block_plain(float *c, int64_t ldc, const float *a, int64_t lda, const float *panels,
                           int64_t panel_stride, int64_t rows, int64_t n, int64_t k, bool accumulate) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) {
            const float *b = panels + j / TARE_GEMM_PANEL * panel_stride + j % TARE_GEMM_PANEL;
            float sum = accumulate ? c[i * ldc + j] : 0;
            for (int64_t p = 0; p < k; p++)
                sum = fmaf(a[i * lda + p], b[p * TARE_GEMM_PANEL], sum);
            c[i * ldc + j] = sum;
        }
    }
}

static tare_gemm_block *block_of(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_gemm_block_avx512;
    if (level >= TARE_CPU_AVX2) return tare_gemm_block_avx2;
#endif
    (void)level;
    return tare_gemm_block_plain;
}

/* `wanted` cut into pieces of at most `limit`, all nearly as long; a multiple of `unit`. */
static int64_t even_piece(int64_t wanted, int64_t limit, int64_t unit) {
    const int64_t pieces = (wanted + limit - 1) / limit;
    const int64_t piece = (wanted + pieces - 1) / pieces;
    return (piece + unit - 1) / unit * unit;
}

/* Few rows: each weight is used a few times only, so the whole k is one block and A is read where it lies. */
enum { FEW_ROWS = 6 };

static void gather_block(float *block, const struct tare_gemm_rows *a, int64_t row, int64_t rows, int64_t k0,
                         int64_t count) {
    if (a->data == NULL) {
        a->gather(a->source, block, BLOCK_STRIDE, row, rows, k0, count);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(block + i * BLOCK_STRIDE, a->data + (row + i) * a->stride + k0, (size_t)count * sizeof(float));
}

void tare_gemm_at(enum tare_cpu_level level, float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed,
                  int64_t m, int64_t n, int64_t k, float *scratch) {
    tare_gemm_block *block = block_of(level);
    if (m <= 0 || n <= 0) return;
    const int64_t panel_stride = k * TARE_GEMM_PANEL;
    if (k == 0 || (a->data != NULL && m <= FEW_ROWS)) {
        block(c, ldc, a->data, a->stride, packed, panel_stride, m, n, k, false);
        return;
    }
    const int64_t block_rows = even_piece(m, TARE_GEMM_BLOCK_ROWS, 12);
    const int64_t block_k = even_piece(k, TARE_GEMM_BLOCK_K, 4);
    for (int64_t row = 0; row < m; row += block_rows) {
        const int64_t rows = m - row < block_rows ? m - row : block_rows;
        for (int64_t k0 = 0; k0 < k; k0 += block_k) {
            const int64_t count = k - k0 < block_k ? k - k0 : block_k;
            gather_block(scratch, a, row, rows, k0, count);
            block(c + row * ldc, ldc, scratch, BLOCK_STRIDE, packed + k0 * TARE_GEMM_PANEL, panel_stride, rows, n,
                  count, k0 > 0);
        }
    }
}

void tare_gemm(float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed, int64_t m, int64_t n,
               int64_t k, float *scratch) {
    tare_gemm_at(tare_cpu_level(), c, ldc, a, packed, m, n, k, scratch);
}
