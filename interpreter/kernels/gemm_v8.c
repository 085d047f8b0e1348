/* The matrix product with vectors of eight lanes: tiles of up to 6 rows by one panel of two vectors (12 accumulators),
 * wider for few rows. */
#include "interpreter/kernels/epilogue_v8.h"
#include "interpreter/kernels/simd/pointwise.h"

#if TARE_KERNELS_V8

enum { MAX_ROWS = 6 };

/* A tile of the block: `c` is its first element, `a` its first row, `column` its first column in the block; `last` are
 * the lane masks of the last panel's two vectors. */
typedef void tile_function(const struct tare_gemm_block *block, float *c, const float *a, int64_t column,
                           const tare_m8 last[2]);

/* Columns of a tile. */
static inline TARE_TARGET_V8 int64_t lanes_of(const tare_m8 last[2], int panels) {
    return (panels - 1) * 16 + tare_v8_lanes(last[0]) + tare_v8_lanes(last[1]);
}

/* Whether a bounded epilogue may round all sums. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 bool all_may_round(const struct tare_gemm_epilogue *epilogue, tare_v8 sum[][8],
                                                     const int rows, const int vectors) {
    bool may = true;
    if (epilogue->is_certain) return true;
    TARE_UNROLL
    for (int j = 0; j < vectors; j++)
        may &= tare_sums_are_bounded_v8(&sum[0][j], rows, 8);
    return may;
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void tile(const struct tare_gemm_block *block, float *c, const float *a,
                                            int64_t column, const tare_m8 last[2], const int rows, const int panels,
                                            const bool is_bounded) {
    const int vectors = panels * 2;
    const int64_t ldc = block->ldc, lda = block->lda, panel_stride = block->panel_stride;
    const float *b = block->panels + column / 16 * panel_stride;
    tare_v8 sum[MAX_ROWS][8];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const tare_m8 mask = j >= vectors - 2 ? last[j & 1] : tare_v8_all();
            sum[i][j] = block->accumulate ? tare_v8_load_lanes(c + i * ldc + j * 8, mask) : tare_v8_set(0);
        }
    }
    for (int64_t s = 0; s < block->segments; s++, a += block->step) {
        for (int64_t p = 0; p < block->length; p++, b += 16) {
            tare_v8 weights[8];
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                weights[j] = tare_v8_load(b + j / 2 * panel_stride + j % 2 * 8);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                const tare_v8 x = tare_v8_set(a[i * lda + p]);
                TARE_UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = tare_v8_fma(x, weights[j], sum[i][j]);
            }
        }
    }
    const struct tare_gemm_epilogue *epilogue = block->epilogue;
    if (is_bounded && all_may_round(epilogue, sum, rows, vectors)) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const tare_m8 mask = j >= vectors - 2 ? last[j & 1] : tare_v8_all();
            const int count = tare_v8_lanes(mask);
            if (count > 0)
                tare_epilogue_bounded_v8(epilogue, &sum[0][j], rows, 8, c + j * 8, ldc, c - block->c + j * 8,
                                         column + j * 8, mask, count);
        }
        return;
    }
    if (epilogue && epilogue->scale && !is_bounded) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const tare_m8 mask = j >= vectors - 2 ? last[j & 1] : tare_v8_all();
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = tare_epilogue_scale_v8(epilogue, sum[i][j], column + j * 8, mask);
        }
    }
    const bool is_whole = tare_v8_lanes(last[1]) == 8;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const tare_m8 mask = j >= vectors - 2 ? last[j & 1] : tare_v8_all();
            if (epilogue && !is_bounded)
                sum[i][j] =
                    tare_epilogue_in_v8(epilogue, sum[i][j], c - block->c + i * ldc + j * 8, column + j * 8, mask);
            tare_v8_store_first(c + i * ldc + j * 8, sum[i][j], mask, is_whole || j < vectors - 2 ? 8 : 0);
        }
    }
    if (is_bounded) tare_epilogue_v8(epilogue, c, ldc, rows, lanes_of(last, panels), c - block->c, column);
}

#define TILE(r, p)                                                                                                     \
    static TARE_TARGET_V8 void tile_##r##_##p(const struct tare_gemm_block *block, float *c, const float *a,           \
                                              int64_t column, const tare_m8 last[2]) {                                 \
        tile(block, c, a, column, last, r, p, false);                                                                  \
    }                                                                                                                  \
    static TARE_TARGET_V8 void bounded_##r##_##p(const struct tare_gemm_block *block, float *c, const float *a,        \
                                                 int64_t column, const tare_m8 last[2]) {                              \
        tile(block, c, a, column, last, r, p, true);                                                                   \
    }
TILE(1, 1)
TILE(1, 2)
TILE(1, 4)
TILE(2, 1)
TILE(2, 2)
TILE(3, 1)
TILE(3, 2)
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)

/* [rows][log2 of panels] */
static tile_function *const tiles[MAX_ROWS + 1][3] = {
    { NULL },
    { tile_1_1, tile_1_2, tile_1_4 },
    { tile_2_1, tile_2_2 },
    { tile_3_1, tile_3_2 },
    { tile_4_1 },
    { tile_5_1 },
    { tile_6_1 },
};
/* With a bounded epilogue. */
static tile_function *const bounded_tiles[MAX_ROWS + 1][3] = {
    { NULL },
    { bounded_1_1, bounded_1_2, bounded_1_4 },
    { bounded_2_1, bounded_2_2 },
    { bounded_3_1, bounded_3_2 },
    { bounded_4_1 },
    { bounded_5_1 },
    { bounded_6_1 },
};
#undef TILE

/* A tile whose general epilogue, if it is not bounded, is computed after the next tile: masked stores cannot be
 * forwarded to loads, which would wait for them. */
struct waiting {
    float *c; /* NULL: none */
    int64_t rows, columns, column;
};

static void finish(const struct waiting *tile, const struct tare_gemm_epilogue *general,
                   const struct tare_gemm_block *block) {
    if (tile->c)
        tare_epilogue_v8(general, tile->c, block->ldc, tile->rows, tile->columns, tile->c - block->c, tile->column);
}

/* Columns that tiles compute together. */
struct column_group {
    int64_t column, columns;
    tare_m8 last[2];
    int width_log;                           /* log2 of the panels */
    const struct tare_pointwise *activation; /* of the finished rows, `together` at a time; NULL: none */
    int64_t together;
};

/* Rows of a line of 64 bytes each that are in the first-level cache at the same time, and are activated together, as
 * each call takes time: the fewer, the fewer sets of the cache the rows' distance lets them use. */
static int64_t rows_together(int64_t ldc) {
    enum { LINE = 16, SETS = 64, WAYS = 4, MOST = 48 };
    int64_t sets = SETS;
    if (ldc % LINE == 0)
        for (int64_t lines = ldc / LINE; lines % 2 == 0 && sets > 1; lines /= 2)
            sets /= 2;
    return sets * WAYS < MOST ? sets * WAYS : MOST;
}

static void run_line(const struct tare_gemm_block *block, const struct tare_gemm_epilogue *general, int64_t line,
                     const struct column_group *group, int64_t tile_count, struct waiting *waiting) {
    const bool is_bounded = block->epilogue && block->epilogue->is_bounded;
    tile_function *const(*const forms)[3] = is_bounded ? bounded_tiles : tiles;
    float *c = block->c + line * block->c_line + group->column;
    const float *a = block->a + line * block->a_line;
    for (int64_t t = 0, row = 0, activated = 0; t < tile_count; t++) {
        const int64_t end = (t + 1) * block->rows / tile_count;
        float *to = c + row * block->ldc;
        forms[end - row][group->width_log](block, to, a + row * block->lda, group->column, group->last);
        if (general) {
            finish(waiting, general, block);
            *waiting = (struct waiting){ to, end - row, group->columns, group->column };
        }
        row = end;
        if (!group->activation || (row - activated < group->together && row < block->rows)) continue;
        tare_pointwise_rows_v8(group->activation, c + activated * block->ldc, block->ldc, row - activated,
                               group->columns);
        activated = row;
    }
}

static TARE_TARGET_V8 void run(const struct tare_gemm_block *block, const struct tare_gemm_epilogue *general,
                               const struct tare_pointwise *activation) {
    const int64_t rows = block->rows, n = block->n, together = rows_together(block->ldc);
    struct waiting waiting = { 0 };
    const int64_t tile_count = (rows + MAX_ROWS - 1) / MAX_ROWS; /* of a line, all nearly as high */
    const int64_t highest = (rows + tile_count - 1) / tile_count;
    int width_log = highest <= 1 ? 2 : highest <= 3 ? 1 : 0;
    for (int64_t column = 0; column < n;) {
        const int64_t panels_left = (n - column + 15) / 16;
        while ((int64_t)1 << width_log > panels_left)
            width_log--;
        const int64_t width = (int64_t)16 << width_log;
        const int64_t columns = n - column < width ? n - column : width;
        const int64_t in_last = columns - (width - 16);
        const struct column_group group = {
            column, columns, { tare_v8_first(in_last), tare_v8_first(in_last - 8) }, width_log, activation, together
        };
        for (int64_t line = 0; line < block->lines; line++)
            run_line(block, general, line, &group, tile_count, &waiting);
        column += width;
    }
    if (general) finish(&waiting, general, block);
}

void tare_gemm_block_v8(const struct tare_gemm_block *block) {
    const bool is_general = block->epilogue && block->epilogue->is_general && !block->epilogue->is_bounded;
    if (!is_general) {
        run(block, NULL, NULL);
        return;
    }
    struct tare_gemm_block sums = *block;
    struct tare_gemm_epilogue simple = *block->epilogue;
    simple.is_general = false;
    const bool is_simple = tare_epilogue_is_simple(block->epilogue);
    sums.epilogue = is_simple ? &simple : NULL;
    run(&sums, is_simple ? NULL : block->epilogue, is_simple ? simple.activation : NULL);
}
#endif
