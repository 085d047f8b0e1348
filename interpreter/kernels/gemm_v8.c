/* The matrix product with vectors of eight lanes: tiles of up to 6 rows by one panel of two vectors (12 accumulators),
 * wider for few rows. */
#include "interpreter/kernels/epilogue_v8.h"
#include "interpreter/kernels/simd/pointwise.h"

#if TARE_KERNELS_V8

enum { MAX_ROWS = 6, MOST_VECTORS = 8, LANES = 8 };

/* Columns that tiles compute together, and their part of the epilogue's vectors. */
struct column_group {
    int64_t column, columns;
    int vectors;
    tare_m8 last; /* of the last vector */
    bool is_whole;
    const struct tare_pointwise *activation; /* of the finished rows, `together` at a time; NULL: none */
    int64_t together;
    float scale[MOST_VECTORS * LANES],
        bias[MOST_VECTORS * LANES]; /* bias: -0, which changes no sum, if there is none */
};

/* A tile of the block: `c` is its first element, `a` its first row. */
typedef void tile_function(const struct tare_gemm_block *block, const struct column_group *group, float *c,
                           const float *a);

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_m8 mask_of(const struct column_group *group, int j, const int vectors) {
    return j + 1 < vectors ? tare_v8_all() : group->last;
}

/* Whether a bounded epilogue may round all sums. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 bool all_may_round(const struct tare_gemm_epilogue *epilogue,
                                                     tare_v8 sum[][MOST_VECTORS], const int rows, const int vectors) {
    bool may = true;
    if (epilogue->is_certain) return true;
    TARE_UNROLL
    for (int j = 0; j < vectors; j++)
        may &= tare_sums_are_bounded_v8(&sum[0][j], rows, MOST_VECTORS);
    return may;
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void add_products(const struct tare_gemm_block *block, tare_v8 sum[][MOST_VECTORS],
                                                    const float *a, const float *b, const int rows, const int vectors) {
    const int64_t lda = block->lda, panel_stride = block->panel_stride, length = block->length, step = block->step;
    for (int64_t s = block->segments; s > 0; s--, a += step) {
        for (int64_t p = 0; p < length; p++, b += 16) {
            tare_v8 weights[MOST_VECTORS];
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                weights[j] = tare_v8_load(b + j / 2 * panel_stride + j % 2 * LANES);
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                const tare_v8 x = tare_v8_set(a[i * lda + p]);
                TARE_UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = tare_v8_fma(x, weights[j], sum[i][j]);
            }
        }
    }
}

/* All of the epilogue but activation and what only general ones have. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 void apply_simple(const struct tare_gemm_block *block,
                                                    const struct column_group *group, tare_v8 sum[][MOST_VECTORS],
                                                    const float *c, const int rows, const int vectors) {
    const struct tare_gemm_epilogue *epilogue = block->epilogue;
    if (epilogue->scale) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++) {
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = tare_v8_mul(sum[i][j], tare_v8_load(group->scale + j * LANES));
        }
    }
    TARE_UNROLL
    for (int j = 0; j < vectors; j++) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i][j] = tare_v8_add(sum[i][j], tare_v8_load(group->bias + j * LANES));
    }
    if (epilogue->addend) {
        const float *addend = epilogue->addend + (c - block->c);
        TARE_UNROLL
        for (int i = 0; i < rows; i++, addend += block->ldc) {
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = tare_v8_add(sum[i][j], tare_v8_load_lanes(addend + j * LANES, mask_of(group, j, vectors)));
        }
    }
    if (!epilogue->relu) return;
    TARE_UNROLL
    for (int j = 0; j < vectors; j++) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i][j] = tare_v8_min(tare_v8_set(epilogue->limit), tare_v8_max(tare_v8_set(0), sum[i][j]));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void tile(const struct tare_gemm_block *block, const struct column_group *group,
                                            float *c, const float *a, const int rows, const int vectors,
                                            const bool is_bounded) {
    const struct tare_gemm_epilogue *epilogue = block->epilogue;
    tare_v8 sum[MAX_ROWS][MOST_VECTORS];
    if (block->accumulate) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = tare_v8_load_lanes(c + i * block->ldc + j * LANES, mask_of(group, j, vectors));
        }
    } else {
        TARE_UNROLL
        for (int i = 0; i < rows; i++) {
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = tare_v8_set(0);
        }
    }
    add_products(block, sum, a, block->panels + group->column / 16 * block->panel_stride, rows, vectors);
    if (is_bounded && all_may_round(epilogue, sum, rows, vectors)) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++)
            tare_epilogue_bounded_v8(epilogue, &sum[0][j], rows, MOST_VECTORS, c + j * LANES, block->ldc,
                                     c - block->c + j * LANES, group->column + j * LANES, mask_of(group, j, vectors),
                                     j + 1 < vectors ? LANES : group->columns - j * LANES);
        return;
    }
    if (!is_bounded && epilogue) apply_simple(block, group, sum, c, rows, vectors);
    float *to = c;
    if (group->is_whole) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++, to += block->ldc) {
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                tare_v8_store(to + j * LANES, sum[i][j]);
        }
    } else {
        TARE_UNROLL
        for (int i = 0; i < rows; i++, to += block->ldc) {
            TARE_UNROLL
            for (int j = 0; j + 1 < vectors; j++)
                tare_v8_store(to + j * LANES, sum[i][j]);
            tare_v8_store_lanes(to + (vectors - 1) * LANES, sum[i][vectors - 1], group->last);
        }
    }
    if (is_bounded) tare_epilogue_v8(epilogue, c, block->ldc, rows, group->columns, c - block->c, group->column);
}

#define TILE(r, v)                                                                                                     \
    static TARE_TARGET_V8 void tile_##r##_##v(const struct tare_gemm_block *block, const struct column_group *group,   \
                                              float *c, const float *a) {                                              \
        tile(block, group, c, a, r, v, false);                                                                         \
    }                                                                                                                  \
    static TARE_TARGET_V8 void bounded_##r##_##v(const struct tare_gemm_block *block,                                  \
                                                 const struct column_group *group, float *c, const float *a) {         \
        tile(block, group, c, a, r, v, true);                                                                          \
    }
#define TILES(v) TILE(1, v) TILE(2, v)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILE(1, 8)
TILE(3, 1)
TILE(3, 2)
TILE(3, 3)
TILE(3, 4)
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(5, 1)
TILE(5, 2)
TILE(6, 1)
TILE(6, 2)
#undef TILES
#undef TILE

/* Rows of the highest tile of some vectors, so that sums and weights are in registers. */
static const int most_rows[MOST_VECTORS + 1] = { [1] = 6, [2] = 6, [3] = 4, [4] = 3, [8] = 1 };

#define FORMS(name)                                                                                                    \
    {                                                                                                                  \
        [1] = { NULL, name##_1_1, name##_2_1, name##_3_1, name##_4_1, name##_5_1, name##_6_1 }, [2] = { NULL,          \
                                                                                                        name##_1_2,    \
                                                                                                        name##_2_2,    \
                                                                                                        name##_3_2,    \
                                                                                                        name##_4_2,    \
                                                                                                        name##_5_2,    \
                                                                                                        name##_6_2 },  \
        [3] = { NULL, name##_1_3, name##_2_3, name##_3_3, name##_4_3 },                                                \
        [4] = { NULL, name##_1_4, name##_2_4, name##_3_4 }, [8] = { NULL, name##_1_8 },                                \
    }
/* By vectors and rows; with a bounded epilogue or without. */
static tile_function *const forms_of[2][MOST_VECTORS + 1][MAX_ROWS + 1] = { FORMS(tile), FORMS(bounded) };
#undef FORMS

/* Vectors of the next group: as many as tiles of `highest` rows may have, if there are that many columns; three where
 * these are all that is left, as two and one would take longer. */
static int vectors_of(int64_t highest, int64_t columns_left) {
    const int64_t most = highest <= 1 ? 8 : highest <= 3 ? 4 : 2, left = (columns_left + LANES - 1) / LANES;
    if (left == 3) return 3;
    if (left >= most) return (int)most;
    return left >= 4 ? 4 : (int)left;
}

static TARE_TARGET_V8 void open_group(struct column_group *group, const struct tare_gemm_block *block, int64_t column,
                                      int64_t highest) {
    const struct tare_gemm_epilogue *epilogue = block->epilogue;
    group->column = column;
    group->vectors = vectors_of(highest, block->n - column);
    const int64_t width = group->vectors * LANES, left = block->n - column;
    group->columns = left < width ? left : width;
    group->is_whole = left >= width;
    group->last = tare_v8_first(group->columns - (width - LANES));
    if (!epilogue) return;
    for (int j = 0; j < group->vectors; j++) {
        const tare_m8 mask = mask_of(group, j, group->vectors);
        const int64_t at = column + j * LANES;
        if (epilogue->scale) tare_v8_store(group->scale + j * LANES, tare_v8_load_lanes(epilogue->scale + at, mask));
        tare_v8_store(group->bias + j * LANES,
                      epilogue->bias ? tare_v8_load_lanes(epilogue->bias + at, mask) : tare_v8_set(-0.0f));
    }
}

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
                     const struct column_group *group, struct waiting *waiting) {
    const bool is_bounded = block->epilogue && block->epilogue->is_bounded;
    tile_function *const *const forms = forms_of[is_bounded][group->vectors];
    const int64_t most = most_rows[group->vectors], tiles = (block->rows + most - 1) / most; /* all nearly as high */
    float *c = block->c + line * block->c_line + group->column;
    const float *a = block->a + line * block->a_line;
    for (int64_t t = 0, row = 0, activated = 0; t < tiles; t++) {
        const int64_t end = (t + 1) * block->rows / tiles;
        float *to = c + row * block->ldc;
        forms[end - row](block, group, to, a + row * block->lda);
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

static void run(const struct tare_gemm_block *block, const struct tare_gemm_epilogue *general,
                const struct tare_pointwise *activation) {
    const int64_t tiles = (block->rows + MAX_ROWS - 1) / MAX_ROWS;
    struct column_group group = { .activation = activation, .together = rows_together(block->ldc) };
    struct waiting waiting = { 0 };
    for (int64_t column = 0; column < block->n; column += group.columns) {
        open_group(&group, block, column, (block->rows + tiles - 1) / tiles);
        for (int64_t line = 0; line < block->lines; line++)
            run_line(block, general, line, &group, &waiting);
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
