/* The AVX-512 variant of the matrix product: tiles of up to 14 rows by 2 panels (28 accumulators), and for few rows
 * tiles that are wider instead, so that enough chains are under way to hide the latency of a multiply-add. */
#include "interpreter/kernels/epilogue.h"

#if TARE_KERNELS_X86

/* With one panel every product loads an element of A, and more than 12 rows gain nothing. */
enum { MAX_ROWS = TARE_GEMM_TILE_ROWS, MOST_ROWS_OF_ONE_PANEL = 12, LINE = 64 /* bytes of a cache line */ };

/* Products of so few rows take as long as reading the weights. Prefetching the next panels would delay the present
 * ones, which the hardware prefetches. */
enum { FEW_ROWS = 6 };

/* The panels of the next tiles, which the tiles before them prefetch into the second-level cache, a few cache lines
 * every two k: large weights are in memory, and asking for many lines at once would stall the multiplication. */
struct panel_prefetch {
    const float *at, *panel;       /* the next line; the panel after the one it is in */
    int64_t lines, lines_of_panel; /* left in the panel of `at`; in a panel */
    int64_t panels, panel_stride;  /* panels left from `panel` on; floats between them */
    int64_t rate;                  /* lines every two k */
};

/* The rows of A that the next block of rows multiplies. All tiles prefetch equal shares of them into the second-level
 * cache: the hardware follows few of the rows that a tile reads side by side. */
struct ahead_prefetch {
    const char *at;            /* the next line */
    int64_t lines;             /* left in the row of `at` */
    int64_t lines_of_row, gap; /* lines in a row; bytes from its last line to the next row */
    int64_t lines_of_tile;     /* each tile's share */
    int64_t left;              /* of the share of the tile that runs */
    int64_t rate;              /* lines every two k */
};

struct prefetch {
    struct panel_prefetch panels;
    struct ahead_prefetch ahead;
};

/* A tile of the block: `c` is its first element, `a` its first row, `column` its first column in the block. */
typedef void tile_function(const struct tare_gemm_block *block, float *c, const float *a, int64_t column,
                           __mmask16 last, struct prefetch *next);

/* Where the rows of a tile are. The distances are in bytes; a row of the tile is at most one addition of a scaled
 * distance away from one of the pointers, which is an address of an instruction. Separate pointers to all rows would
 * not fit in registers: loading them would take a load for every two multiply-adds. */
struct rows_at {
    const char *first, *eighth;
    int64_t stride, three, five;
};

TARE_ALWAYS_INLINE const float *row_of(const struct rows_at *at, const int row) {
    const char *base = row < 7 ? at->first : at->eighth;
    switch (row % 7) {
    case 0:
        return (const float *)base;
    case 3:
        return (const float *)(base + at->three);
    case 5:
        return (const float *)(base + at->five);
    case 6:
        return (const float *)(base + 2 * at->three);
    default:
        return (const float *)(base + row % 7 * at->stride);
    }
}

/* Prevents the compiler from computing addresses of rows before the loop. */
TARE_ALWAYS_INLINE void keep_in_registers(struct rows_at *at, const int rows) {
    __asm__("" : "+r"(at->first), "+r"(at->stride));
    if (rows > 3) __asm__("" : "+r"(at->three));
    if (rows > 5) __asm__("" : "+r"(at->five));
    if (rows > 7) __asm__("" : "+r"(at->eighth));
}

/* Few rows, whose elements fit in registers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void multiply_few(__m512 sum[MAX_ROWS][8], const struct rows_at *a,
                                                        const float *b, int64_t panel_stride, const int p,
                                                        const int rows, const int panels) {
    __m512 elements[MAX_ROWS];
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        elements[i] = _mm512_set1_ps(row_of(a, i)[p]);
    TARE_UNROLL
    for (int j = 0; j < panels; j++) {
        const __m512 weights = _mm512_loadu_ps(b + p * 16 + j * panel_stride);
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i][j] = _mm512_fmadd_ps(elements[i], weights, sum[i][j]);
    }
}

/* Element `p` of k of all rows and panels. Sums, and weights and one element or the reverse, fit in 32
 * registers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void multiply(__m512 sum[MAX_ROWS][8], const struct rows_at *a, const float *b,
                                                    int64_t panel_stride, const int p, const int rows,
                                                    const int panels) {
    __m512 weights[8];
    if (panels == 8) {
        multiply_few(sum, a, b, panel_stride, p, rows, panels);
        return;
    }
    TARE_UNROLL
    for (int j = 0; j < panels; j++)
        weights[j] = _mm512_loadu_ps(b + p * 16 + j * panel_stride);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512 element = _mm512_set1_ps(row_of(a, i)[p]);
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            sum[i][j] = _mm512_fmadd_ps(element, weights[j], sum[i][j]);
    }
}

/* What the tile will write, then what it will add, comes into the first-level cache while it multiplies, a row every
 * two k: waited for at the end it would hold up the next tile, and asked for all at once it holds up this one. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void fetch_row(const float *c, const float *addend, int64_t ldc, int64_t row,
                                                     const int rows, const int panels) {
    TARE_UNROLL
    for (int j = 0; j < panels; j++) {
        if (row >= rows)
            _mm_prefetch((const char *)(addend + (row - rows) * ldc + j * 16), _MM_HINT_T0);
        else
            _mm_prefetch((const char *)(c + row * ldc + j * 16), _MM_HINT_ET0);
    }
}

/* What a tile prefetches of C while it multiplies, one row at a time. */
struct row_prefetch {
    const float *c, *addend; /* addend NULL: none */
    int64_t ldc, row, rows;  /* rows of C, then of the addend: the next one and their number */
};

TARE_ALWAYS_INLINE void move(struct rows_at *at, int64_t floats, const int rows) {
    at->first += floats * (int64_t)sizeof(float);
    if (rows > 7) at->eighth += floats * (int64_t)sizeof(float);
}

TARE_ALWAYS_INLINE void advance(struct rows_at *at, const float **b, const int count, const int rows) {
    move(at, count, rows);
    *b += count * 16;
}

/* The next `rate` cache lines of the panels that come next. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void fetch_lines(struct panel_prefetch *next) {
    for (int64_t i = 0; i < next->rate; i++, next->at += 16)
        _mm_prefetch((const char *)next->at, _MM_HINT_T1);
    next->lines -= next->rate;
}

TARE_ALWAYS_INLINE bool begin_next_panel(struct panel_prefetch *next) {
    if (next->panels == 0) return false;
    next->at = next->panel;
    next->lines = next->lines_of_panel;
    next->panel += next->panel_stride;
    next->panels--;
    return true;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void fetch_ahead(struct ahead_prefetch *ahead) {
    for (int64_t i = 0; i < ahead->rate; i++) {
        _mm_prefetch(ahead->at, _MM_HINT_T1);
        ahead->at += LINE;
        if (--ahead->lines > 0) continue;
        ahead->lines = ahead->lines_of_row;
        ahead->at += ahead->gap;
    }
    ahead->left -= ahead->rate;
}

/* Multiplies `length` elements of the rows of a segment; returns the panels after them, and moves all rows. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 const float *
multiply_segment(__m512 sum[MAX_ROWS][8], int64_t length, struct rows_at *a, const float *b, int64_t panel_stride,
                 struct row_prefetch *fetch, struct prefetch *prefetch, const int rows, const int panels) {
    struct panel_prefetch *next = &prefetch->panels;
    struct rows_at at = *a;
    int64_t p = 0;
    for (; p + 2 <= length && fetch->row < fetch->rows; p += 2) {
        fetch_row(fetch->c, fetch->addend, fetch->ldc, fetch->row++, rows, panels);
        if (next->lines > 0 || begin_next_panel(next)) fetch_lines(next);
        keep_in_registers(&at, rows);
        multiply(sum, &at, b, panel_stride, 0, rows, panels);
        multiply(sum, &at, b, panel_stride, 1, rows, panels);
        advance(&at, &b, 2, rows);
    }
    for (; p + 2 <= length && prefetch->ahead.left > 0; p += 2) {
        fetch_ahead(&prefetch->ahead);
        if (next->lines > 0 || begin_next_panel(next)) fetch_lines(next);
        keep_in_registers(&at, rows);
        multiply(sum, &at, b, panel_stride, 0, rows, panels);
        multiply(sum, &at, b, panel_stride, 1, rows, panels);
        advance(&at, &b, 2, rows);
    }
    for (; p + 2 <= length; p += 2) {
        if (next->lines <= 0 && !begin_next_panel(next)) break;
        fetch_lines(next);
        keep_in_registers(&at, rows);
        multiply(sum, &at, b, panel_stride, 0, rows, panels);
        multiply(sum, &at, b, panel_stride, 1, rows, panels);
        advance(&at, &b, 2, rows);
    }
    for (; p + 2 <= length; p += 2) {
        keep_in_registers(&at, rows);
        multiply(sum, &at, b, panel_stride, 0, rows, panels);
        multiply(sum, &at, b, panel_stride, 1, rows, panels);
        advance(&at, &b, 2, rows);
    }
    if (p < length) {
        multiply(sum, &at, b, panel_stride, 0, rows, panels);
        advance(&at, &b, 1, rows);
    }
    *a = at;
    return b;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void begin_sums(__m512 sum[MAX_ROWS][8], const struct tare_gemm_block *block,
                                                      const float *c, __mmask16 last, const int rows,
                                                      const int panels) {
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            sum[i][j] = _mm512_setzero_ps();
    }
    if (!block->accumulate) return;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++) {
            const __mmask16 mask = j == panels - 1 ? last : (__mmask16)0xffff;
            sum[i][j] = _mm512_maskz_loadu_ps(mask, c + i * block->ldc + j * 16);
        }
    }
}

/* A simple epilogue of a tile, step by step, so that each is tested for once and vectors of columns are loaded once. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void finish_sums(__m512 sum[MAX_ROWS][8],
                                                       const struct tare_gemm_epilogue *epilogue, int64_t at,
                                                       int64_t ldc, int64_t column, __mmask16 last, const int rows,
                                                       const int panels) {
    TARE_UNROLL
    for (int j = 0; j < panels; j++) {
        const __mmask16 mask = j == panels - 1 ? last : (__mmask16)0xffff;
        if (epilogue->scale) {
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = tare_epilogue_scale_avx512(epilogue, sum[i][j], column + j * 16, mask);
        }
        if (epilogue->bias) {
            const __m512 bias = _mm512_maskz_loadu_ps(mask, epilogue->bias + column + j * 16);
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = _mm512_add_ps(sum[i][j], bias);
        }
        if (epilogue->addend) {
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] =
                    _mm512_add_ps(sum[i][j], _mm512_maskz_loadu_ps(mask, epilogue->addend + at + i * ldc + j * 16));
        }
        if (epilogue->relu) {
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = _mm512_max_ps(_mm512_setzero_ps(), sum[i][j]);
        }
        if (epilogue->relu && epilogue->limit < INFINITY) {
            const __m512 limit = _mm512_set1_ps(epilogue->limit);
            TARE_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i][j] = _mm512_min_ps(limit, sum[i][j]);
        }
    }
}

/* Whether a bounded epilogue may round all sums. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 bool all_may_round(const struct tare_gemm_epilogue *epilogue,
                                                         __m512 sum[MAX_ROWS][8], const int rows, const int panels) {
    bool may = true;
    if (epilogue->is_certain) return true;
    TARE_UNROLL
    for (int j = 0; j < panels; j++)
        may &= tare_sums_are_bounded_avx512(&sum[0][j], rows, 8, rows);
    return may;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tile(const struct tare_gemm_block *block, float *c, const float *a,
                                                int64_t column, __mmask16 last, struct prefetch *next, const int rows,
                                                const int panels, const bool is_bounded) {
    __m512 sum[MAX_ROWS][8];
    const int64_t ldc = block->ldc, panel_stride = block->panel_stride;
    const struct tare_gemm_epilogue *epilogue = block->epilogue;
    const float *b = block->panels + column / 16 * panel_stride;
    struct row_prefetch fetch = { .c = c, .ldc = ldc };
    if (epilogue && epilogue->addend) fetch.addend = epilogue->addend + (c - block->c);
    if (fetch.addend == c) fetch.addend = NULL; /* the same rows */
    if (!block->output_is_cached && !(is_bounded && epilogue->to)) fetch.rows = !fetch.addend ? rows : 2 * rows;
    fetch.row = block->accumulate ? rows : 0; /* sums so far are in the cache already */
    const int64_t stride = block->lda * (int64_t)sizeof(float);
    struct rows_at at = { (const char *)a, (const char *)a + 7 * stride, stride, 3 * stride, 5 * stride };
    begin_sums(sum, block, c, last, rows, panels);
    for (int64_t s = 0; s < block->segments; s++) {
        b = multiply_segment(sum, block->length, &at, b, panel_stride, &fetch, next, rows, panels);
        move(&at, block->step - block->length, rows);
    }
    if (is_bounded && all_may_round(epilogue, sum, rows, panels)) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            tare_epilogue_bounded_avx512(epilogue, &sum[0][j], rows, 8, rows, c + j * 16, ldc, c - block->c + j * 16,
                                         column + j * 16, j == panels - 1 ? last : (__mmask16)0xffff, panels == 1);
        return;
    }
    if (epilogue && !is_bounded) finish_sums(sum, epilogue, c - block->c, ldc, column, last, rows, panels);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            _mm512_mask_storeu_ps(c + i * ldc + j * 16, j == panels - 1 ? last : (__mmask16)0xffff, sum[i][j]);
    }
    if (is_bounded)
        tare_epilogue_avx512(epilogue, c, ldc, rows, (panels - 1) * 16 + __builtin_popcount(last), c - block->c,
                             column);
}

#define TILE(r, p)                                                                                                     \
    static TARE_TARGET_AVX512 void tile_##r##_##p(const struct tare_gemm_block *block, float *c, const float *a,       \
                                                  int64_t column, __mmask16 last, struct prefetch *next) {             \
        tile(block, c, a, column, last, next, r, p, false);                                                            \
    }                                                                                                                  \
    static TARE_TARGET_AVX512 void bounded_##r##_##p(const struct tare_gemm_block *block, float *c, const float *a,    \
                                                     int64_t column, __mmask16 last, struct prefetch *next) {          \
        tile(block, c, a, column, last, next, r, p, true);                                                             \
    }
#define TILES_2(r) TILE(r, 1) TILE(r, 2)
#define TILES_4(r) TILES_2(r) TILE(r, 4)
#define TILES_8(r) TILES_4(r) TILE(r, 8)
TILES_8(1)
TILES_8(2)
TILES_8(3)
TILES_4(4)
TILES_4(5)
TILES_4(6)
TILES_2(7)
TILES_2(8)
TILES_2(9)
TILES_2(10)
TILES_2(11)
TILES_2(12)
TILE(13, 2)
TILE(14, 2)

/* [rows][log2 of panels] */
static tile_function *const tiles[MAX_ROWS + 1][4] = {
    { NULL },
    { tile_1_1, tile_1_2, tile_1_4, tile_1_8 },
    { tile_2_1, tile_2_2, tile_2_4, tile_2_8 },
    { tile_3_1, tile_3_2, tile_3_4, tile_3_8 },
    { tile_4_1, tile_4_2, tile_4_4 },
    { tile_5_1, tile_5_2, tile_5_4 },
    { tile_6_1, tile_6_2, tile_6_4 },
    { tile_7_1, tile_7_2 },
    { tile_8_1, tile_8_2 },
    { tile_9_1, tile_9_2 },
    { tile_10_1, tile_10_2 },
    { tile_11_1, tile_11_2 },
    { tile_12_1, tile_12_2 },
    { NULL, tile_13_2 },
    { NULL, tile_14_2 },
};
/* With a bounded epilogue. */
static tile_function *const bounded_tiles[MAX_ROWS + 1][4] = {
    { NULL },
    { bounded_1_1, bounded_1_2, bounded_1_4, bounded_1_8 },
    { bounded_2_1, bounded_2_2, bounded_2_4, bounded_2_8 },
    { bounded_3_1, bounded_3_2, bounded_3_4, bounded_3_8 },
    { bounded_4_1, bounded_4_2, bounded_4_4 },
    { bounded_5_1, bounded_5_2, bounded_5_4 },
    { bounded_6_1, bounded_6_2, bounded_6_4 },
    { bounded_7_1, bounded_7_2 },
    { bounded_8_1, bounded_8_2 },
    { bounded_9_1, bounded_9_2 },
    { bounded_10_1, bounded_10_2 },
    { bounded_11_1, bounded_11_2 },
    { bounded_12_1, bounded_12_2 },
    { NULL, bounded_13_2 },
    { NULL, bounded_14_2 },
};
#undef TILE
#undef TILES_2
#undef TILES_4
#undef TILES_8

/* A tile whose general epilogue, if it is not bounded, is computed after the next tile: masked stores cannot be
 * forwarded to loads, which would wait for them. */
struct waiting {
    float *c; /* NULL: none */
    int64_t rows, columns, column;
};

static void finish(const struct waiting *tile, const struct tare_gemm_epilogue *general,
                   const struct tare_gemm_block *block) {
    if (tile->c)
        tare_epilogue_avx512(general, tile->c, block->ldc, tile->rows, tile->columns, tile->c - block->c, tile->column);
}

/* The panels that are used after `columns` columns from `column` on, by `tile_count` tiles. */
static struct panel_prefetch panels_after(const struct tare_gemm_block *block, int64_t column, int64_t columns,
                                          int64_t tile_count) {
    const int64_t left = (block->n - column - columns + 15) / 16, lines = block->segments * block->length;
    struct panel_prefetch next = { .panel_stride = block->panel_stride, .lines_of_panel = lines };
    if (block->panels_are_cached || block->lines * block->rows <= FEW_ROWS) return next;
    next.panels = left > 0 ? columns / 16 : block->next_panels ? 2 : 0;
    const int64_t most = left > 0 ? left : (block->n + 15) / 16;
    if (next.panels > most) next.panels = most;
    next.panel = left > 0 ? block->panels + (column + columns) / 16 * block->panel_stride : block->next_panels;
    next.rate = (2 * next.panels + tile_count - 1) / tile_count;
    return next;
}

/* The share of one of `tile_count` tiles. */
static struct ahead_prefetch rows_ahead(const struct tare_gemm_block *block, int64_t tile_count) {
    const struct tare_gemm_ahead *ahead = &block->ahead;
    const int64_t row_size = ahead->length * (int64_t)sizeof(float), lines = (row_size + LINE - 1) / LINE;
    const int64_t steps = block->segments * block->length / 2 - (block->output_is_cached ? 0 : MAX_ROWS);
    struct ahead_prefetch next = { .at = (const char *)ahead->data, .lines = lines, .lines_of_row = lines };
    next.gap = ahead->stride * (int64_t)sizeof(float) - lines * LINE;
    next.lines_of_tile = (ahead->rows * lines + tile_count - 1) / tile_count;
    next.rate = steps > next.lines_of_tile ? 1 : 2;
    return next;
}

/* Columns that tiles compute together. */
struct column_group {
    int64_t column, columns;
    __mmask16 last;
    int width_log; /* log2 of the panels */
};

static void run_line(const struct tare_gemm_block *block, const struct tare_gemm_epilogue *general, int64_t line,
                     const struct column_group *group, int64_t tile_count, struct prefetch *next,
                     struct waiting *waiting) {
    const bool is_bounded = block->epilogue && block->epilogue->is_bounded;
    float *c = block->c + line * block->c_line + group->column;
    const float *a = block->a + line * block->a_line;
    for (int64_t t = 0, row = 0; t < tile_count; t++) {
        const int64_t end = (t + 1) * block->rows / tile_count;
        float *to = c + row * block->ldc;
        next->ahead.left = next->ahead.lines_of_tile;
        (is_bounded ? bounded_tiles : tiles)[end - row][group->width_log](block, to, a + row * block->lda,
                                                                          group->column, group->last, next);
        if (general) {
            finish(waiting, general, block);
            *waiting = (struct waiting){ to, end - row, group->columns, group->column };
        }
        row = end;
    }
}

static void run(const struct tare_gemm_block *block, const struct tare_gemm_epilogue *general) {
    const int64_t rows = block->rows, n = block->n;
    struct prefetch next = { 0 };
    struct waiting waiting = { 0 };
    int64_t tile_count = (rows + MAX_ROWS - 1) / MAX_ROWS; /* of a line, all nearly as high */
    const int64_t highest = (rows + tile_count - 1) / tile_count;
    int width_log = highest <= 3 ? 3 : highest <= 6 ? 2 : 1;
    for (int64_t column = 0; column < n;) {
        const int64_t panels_left = (n - column + 15) / 16;
        while ((int64_t)1 << width_log > panels_left)
            width_log--;
        if (width_log == 0) tile_count = (rows + MOST_ROWS_OF_ONE_PANEL - 1) / MOST_ROWS_OF_ONE_PANEL;
        const int64_t width = (int64_t)16 << width_log;
        const int64_t columns = n - column < width ? n - column : width;
        const __mmask16 last = (__mmask16)(0xffffu >> (width - columns));
        next.panels = panels_after(block, column, width, tile_count * block->lines);
        if (column == 0 && block->ahead.rows > 0)
            next.ahead = rows_ahead(block, (n + width - 1) / width * tile_count * block->lines);
        const struct column_group group = { column, columns, last, width_log };
        for (int64_t line = 0; line < block->lines; line++)
            run_line(block, general, line, &group, tile_count, &next, &waiting);
        column += width;
    }
    if (general) finish(&waiting, general, block);
}

void tare_gemm_block_avx512(const struct tare_gemm_block *block) {
    const bool is_general = block->epilogue && block->epilogue->is_general && !block->epilogue->is_bounded;
    if (!is_general) {
        run(block, NULL);
        return;
    }
    struct tare_gemm_block sums = *block;
    sums.epilogue = NULL;
    run(&sums, block->epilogue);
}
#endif
