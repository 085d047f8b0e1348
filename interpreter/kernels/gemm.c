#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/simd/v8.h"

#include "base/alloc.h"
#include "base/control.h"

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

/* Gathered rows are a few cache lines more than a block apart, so that a power of two in the model does not put them
 * all into one cache set. */
enum { BLOCK_STRIDE = TARE_GEMM_BLOCK_K + 16 };

size_t tare_gemm_scratch_floats(void) {
    return (size_t)TARE_GEMM_BLOCK_ROWS * BLOCK_STRIDE;
}

static void run_rows_plainly(const struct tare_gemm_block *block, int64_t line) {
    for (int64_t i = 0; i < block->rows; i++) {
        const int64_t at = line * block->c_line + i * block->ldc;
        const float *a = block->a + line * block->a_line + i * block->lda;
        for (int64_t j = 0; j < block->n; j++) {
            const float *b = block->panels + j / TARE_GEMM_PANEL * block->panel_stride + j % TARE_GEMM_PANEL;
            float sum = block->accumulate ? block->c[at + j] : 0;
            for (int64_t s = 0; s < block->segments; s++) {
                for (int64_t p = 0; p < block->length; p++, b += TARE_GEMM_PANEL)
                    sum = fmaf(a[s * block->step + p], *b, sum);
            }
            const bool is_simple = block->epilogue && !block->epilogue->is_general;
            block->c[at + j] = is_simple ? tare_gemm_apply_epilogue(block->epilogue, sum, at + j, j) : sum;
        }
        if (block->epilogue && block->epilogue->is_general)
            tare_epilogue_plain(block->epilogue, block->c + at, block->ldc, 1, block->n, at, 0);
    }
}

void tare_gemm_block_plain(const struct tare_gemm_block *block) {
    for (int64_t line = 0; line < block->lines; line++)
        run_rows_plainly(block, line);
}

tare_gemm_block_function *tare_gemm_block_at(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_gemm_block_avx512;
#endif
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8) return tare_gemm_block_v8;
#endif
    (void)level;
    return tare_gemm_block_plain;
}

int64_t tare_gemm_even_piece(int64_t expected, int64_t limit, int64_t unit) {
    const int64_t pieces = (expected + limit - 1) / limit;
    const int64_t piece = (expected + pieces - 1) / pieces;
    return (piece + unit - 1) / unit * unit;
}

/* With few rows each weight is used a few times only, so nothing is cut. */
enum { FEW_ROWS = 6 };

static bool is_one_block(const struct tare_gemm_rows *a, int64_t m) {
    return a->data && m <= FEW_ROWS;
}

bool tare_gemm_panels_stay_cached(int64_t n, int64_t k) {
    enum { MOST = 128 << 10 }; /* half of a second-level cache of 1 MiB */
    return n * k <= MOST;
}

bool tare_gemm_output_stays_cached(int64_t elements) {
    enum { MOST = 64 << 10 };
    return elements <= MOST;
}

struct tare_gemm_ahead tare_gemm_rows_ahead(const float *data, int64_t rows, int64_t length, int64_t stride,
                                            int64_t elements) {
    enum { MOST = 256 << 10 }; /* half of a second-level cache of 2 MiB */
    const bool is_one_row = length == stride;
    if (elements <= MOST || rows <= 0 || length <= 0) return (struct tare_gemm_ahead){ 0 };
    return (struct tare_gemm_ahead){
        .data = data, .rows = is_one_row ? 1 : rows, .length = is_one_row ? rows * length : length, .stride = stride
    };
}

/* The panels that are used next: from k0 on, or by the next block of rows. */
static const float *panels_after(const float *packed, int64_t k0, int64_t k, bool is_last) {
    if (k0 < k) return packed + k0 * TARE_GEMM_PANEL;
    return is_last ? NULL : packed;
}

/* Rows a multiple of this many floats apart map to one set of the first-level cache, which has 8 or 12 ways: they are
 * copied to another distance. Other rows are read in place. */
enum { ONE_SET = 1024 };

/* Sets the block's rows of A: [row, row + block->rows), from k0 on. */
static void take_rows(struct tare_gemm_block *block, const struct tare_gemm_rows *a, int64_t row, int64_t k0,
                      float *scratch) {
    if (a->data && a->stride % ONE_SET != 0) {
        block->a = a->data + row * a->stride + k0;
        block->lda = a->stride;
        return;
    }
    block->a = scratch;
    block->lda = BLOCK_STRIDE;
    if (!a->data) {
        a->gather(a->source, scratch, BLOCK_STRIDE, row, block->rows, k0, block->length);
        return;
    }
    for (int64_t i = 0; i < block->rows; i++)
        memcpy(scratch + i * BLOCK_STRIDE, a->data + (row + i) * a->stride + k0, (size_t)block->length * sizeof(float));
}

/* The rows of the block that begins at `row`, of which at most `most` are left. */
static struct tare_gemm_ahead next_rows(const struct tare_gemm_rows *a, int64_t m, int64_t k, int64_t row,
                                        int64_t most) {
    return tare_gemm_rows_ahead(a->data + row * a->stride, m - row < most ? m - row : most, k, a->stride,
                                m * a->stride);
}

void tare_gemm_at(enum tare_cpu_level level, float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed,
                  int64_t m, int64_t n, int64_t k, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    tare_gemm_block_function *run = tare_gemm_block_at(level);
    struct tare_gemm_block block = { .c = c,
                                     .ldc = ldc,
                                     .a = a->data,
                                     .lda = a->stride,
                                     .lines = 1,
                                     .rows = m,
                                     .n = n,
                                     .segments = 1,
                                     .length = k,
                                     .panels = packed,
                                     .panel_stride = k * TARE_GEMM_PANEL,
                                     .output_is_cached = tare_gemm_output_stays_cached(m * ldc),
                                     .epilogue = epilogue };
    if (m <= 0 || n <= 0) return;
    if (k == 0 || is_one_block(a, m)) {
        run(&block);
        return;
    }
    const int64_t block_rows = tare_gemm_even_piece(m, TARE_GEMM_BLOCK_ROWS, TARE_GEMM_TILE_ROWS);
    const int64_t block_k = tare_gemm_even_piece(k, TARE_GEMM_BLOCK_K, 4);
    struct tare_gemm_epilogue rows_epilogue;
    for (int64_t row = 0; row < m; row += block_rows) {
        block.rows = m - row < block_rows ? m - row : block_rows;
        block.c = c + row * ldc;
        if (epilogue) rows_epilogue = tare_epilogue_shifted(epilogue, row * ldc, 0);
        for (int64_t k0 = 0; k0 < k; k0 += block_k) {
            if (tare_control_is_stopped()) return;
            block.length = k - k0 < block_k ? k - k0 : block_k;
            block.panels = packed + k0 * TARE_GEMM_PANEL;
            block.next_panels = panels_after(packed, k0 + block.length, k, row + block.rows == m);
            block.panels_are_cached = row > 0 && tare_gemm_panels_stay_cached(n, k);
            block.accumulate = k0 > 0;
            block.epilogue = epilogue && k0 + block.length == k ? &rows_epilogue : NULL;
            block.ahead = !a->data || k0 + block.length < k ? (struct tare_gemm_ahead){ 0 }
                                                            : next_rows(a, m, k, row + block.rows, block_rows);
            take_rows(&block, a, row, k0, scratch);
            run(&block);
        }
    }
}

void tare_gemm(float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed, int64_t m, int64_t n,
               int64_t k, const struct tare_gemm_epilogue *epilogue, float *scratch) {
    tare_gemm_at(tare_cpu_level(), c, ldc, a, packed, m, n, k, epilogue, scratch);
}
