/* The AMX variant of the integer product: int8 by int8 in tiles of up to 16 rows by 16 columns.
 *
 * A block of the result consists of two row tiles by two panels: four tiles of sums. A step adds the products of two
 * tiles of A and two of B, up to 64 bytes of k. The row tiles of a line have equally many rows or one less. All are
 * computed with the larger number: the last row of a smaller tile belongs to the next tile and is not stored. One
 * configuration therefore serves the whole product; loading one takes as long as ten tile products.
 *
 * The sums of a finished block are stored in a buffer and converted to the result between the steps of the next block,
 * because the conversion of a block takes as long as several steps. */
#include "interpreter/kernels/integer/gemm_int_block.h"
#include "interpreter/kernels/integer/requantize_rows.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { TILE = 16, PANEL = 16, WIDTH = 2 * PANEL, GROUP = 64 };
enum { LEAST_SHARE = 4 };

/* As assembly: the intrinsics of gcc 12 do not order tile loads after the stores that wrote the memory, and clang
 * would allocate tile registers itself. `amx_barrier` orders them. */
#define TILE_LOAD(tile, from, stride)                                                                                  \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((int64_t)(stride)))
#define TILE_STORE(tile, to)                                                                                           \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(WIDTH * sizeof(int32_t)))         \
                     : "memory")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %tmm" #tile)
#define TILE_MULTIPLY(sums, a, b) __asm__ volatile("tdpbssd %tmm" #b ", %tmm" #a ", %tmm" #sums)

static void barrier(void) {
    __asm__ volatile("" ::: "memory");
}

/* How the sums of a block are converted. */
enum conversion {
    TO_SUMS,
    TO_BYTES,      /* requantized, where no stage before the last clamping overflows */
    TO_BYTES_PLUS, /* the same with an addend */
    TO_FLOATS,     /* stored floats, of which the range is collected */
    TO_ANY,        /* by tare_requantize_avx512 */
};

struct product {
    const struct tare_igemm_output *c;
    const struct tare_requantize *requantize;
    const struct tare_igemm_lines *lines;
    const struct tare_igemm_segments *segments;
    const char *a, *panels;
    int64_t a_stride, panel_stride, n;
    int64_t row_tiles;               /* of a line */
    int64_t tile_rows, larger_tiles; /* rows of a tile, and how many tiles of a line have one more */
    int64_t chunks;                  /* steps of a segment */
    int64_t chunk;                   /* groups of a step */
    int64_t share;                   /* rows of the finished block that are converted in a step */
    bool accumulates;
    /* the panels of the next columns, of which each step prefetches some lines */
    const char *b_ahead;
    int64_t lines_ahead;
    enum conversion conversion;
    struct tare_byte_bounds bounds; /* TO_BYTES… */
    struct tare_range_avx512 seen;
    int64_t ahead[2]; /* the element of C at the first row of each row tile of the block that is computed */
};

/* `rows` rows of C from row `first` on. */
struct row_tile {
    const char *a;
    int64_t first, rows;
};

struct columns {
    const char *b;
    int64_t first;
    uint32_t mask; /* of those inside C */
};

/* A block whose sums are known, of which the rows of both tiles from `next` to `rows` are not converted yet. */
struct finished {
    _Alignas(64) int32_t sums[2][TILE][WIDTH];
    struct row_tile tiles[2];
    struct columns columns;
    int64_t next, rows;
};

/* ---- conversion ---- */

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i sums_at(const struct finished *f, int tile, int64_t row, int panel) {
    return _mm512_load_si512(&f->sums[tile][row][panel * PANEL]);
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __mmask16 mask_of(const struct columns *columns, int panel) {
    return (__mmask16)(columns->mask >> panel * PANEL);
}
/* The element of C at a row of the finished block and its first column, relative to that of C's first. */
TARE_ALWAYS_INLINE int64_t element_of(const struct product *p, const struct finished *f, int tile, int64_t row) {
    return (f->tiles[tile].first + row) * p->c->stride + f->columns.first;
}

static TARE_TARGET_AVX512 void store_sums(const struct product *p, const struct finished *f, int tile, int64_t row) {
    int32_t *to = p->c->sums + element_of(p, f, tile, row);
    for (int panel = 0; panel < 2; panel++, to += PANEL) {
        const __mmask16 mask = mask_of(&f->columns, panel);
        __m512i sums = sums_at(f, tile, row, panel);
        if (p->accumulates) sums = _mm512_add_epi32(sums, _mm512_maskz_loadu_epi32(mask, to));
        _mm512_mask_storeu_epi32(to, mask, sums);
    }
}

static TARE_TARGET_AVX512 void store_any(struct product *p, const struct finished *f, int tile, int64_t row) {
    const int64_t column = f->columns.first, at = p->c->element + element_of(p, f, tile, row);
    for (int panel = 0; panel < 2 && mask_of(&f->columns, panel); panel++)
        tare_requantize_avx512(p->requantize, sums_at(f, tile, row, panel), at + panel * PANEL,
                               p->c->column + column + panel * PANEL, mask_of(&f->columns, panel), &p->seen);
}

/* The bytes of one row of both tiles. The element of the second tile is `second` further on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i bytes_of_rows(const struct tare_quantizer *q, const __m512i offset[2],
                                                            const struct finished *f, int64_t row, const char *addend,
                                                            int64_t second, const uint32_t masks[2],
                                                            const bool is_unsigned) {
    __m512i x[4];
    TARE_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m512i sums = _mm512_add_epi32(sums_at(f, i / 2, row, i % 2), offset[i % 2]);
        const __mmask16 inside = (__mmask16)(masks[i / 2] >> i % 2 * PANEL);
        x[i] = tare_rounded_result(q, sums, i % 2, addend ? addend + i / 2 * second + i % 2 * PANEL : NULL, inside);
    }
    return tare_packed_bytes(q, x, is_unsigned);
}

/* Rows `row` … `end` of both tiles: first those that both have. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_bytes(const struct product *p, const struct finished *f, int64_t row,
                                                       int64_t end, const bool is_unsigned, const bool has_addend) {
    const int64_t column = p->c->column + f->columns.first;
    const __mmask16 second_mask = mask_of(&f->columns, 1);
    const struct tare_quantizer q = tare_quantizer_of(p->requantize, &p->bounds, column, second_mask);
    const int32_t *offsets = p->requantize->offset + column;
    const __m512i offset[2] = { _mm512_loadu_si512(offsets), _mm512_maskz_loadu_epi32(second_mask, offsets + PANEL) };
    const int64_t first = p->c->element + element_of(p, f, 0, row), stride = p->c->stride;
    const int64_t second = p->c->element + element_of(p, f, 1, row) - first;
    const int64_t in_both = f->tiles[0].rows < f->tiles[1].rows ? f->tiles[0].rows : f->tiles[1].rows;
    const char *addend = has_addend ? (const char *)p->requantize->addend + first : NULL;
    uint8_t *to = p->requantize->to + first;
    while (row < end) {
        const int64_t stop = row < in_both && in_both < end ? in_both : end;
        const uint32_t masks[2] = { row < f->tiles[0].rows ? f->columns.mask : 0,
                                    row < f->tiles[1].rows ? f->columns.mask : 0 };
        for (; row < stop; row++, to += stride) {
            const __m512i bytes = bytes_of_rows(&q, offset, f, row, addend, second, masks, is_unsigned);
            _mm256_mask_storeu_epi8(to, masks[0], _mm512_castsi512_si256(bytes));
            _mm256_mask_storeu_epi8(to + second, masks[1], _mm512_extracti64x4_epi64(bytes, 1));
            if (has_addend) addend += stride;
        }
    }
}

/* The same of columns that one panel has: four rows of the tiles are packed together, two of each. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_narrow_bytes(const struct product *p, const struct finished *f,
                                                              int64_t row, int64_t end, const bool is_unsigned,
                                                              const bool has_addend) {
    const int64_t column = p->c->column + f->columns.first, stride = p->c->stride;
    const struct tare_quantizer q = tare_quantizer_of(p->requantize, &p->bounds, column, 0);
    const __m512i offset = _mm512_loadu_si512(p->requantize->offset + column);
    const int64_t element = p->c->element + element_of(p, f, 0, row);
    const int64_t second = p->c->element + element_of(p, f, 1, row) - element;
    const char *addend = has_addend ? (const char *)p->requantize->addend + element : NULL;
    uint8_t *to = p->requantize->to + element;
    for (; row < end; row += 2, to += 2 * stride) {
        __m512i x[4];
        __mmask16 masks[4];
        TARE_UNROLL
        for (int i = 0; i < 4; i++) {
            const int64_t at = row + i / 2, place = i / 2 * stride + i % 2 * second;
            const bool is_inside = at < end && at < f->tiles[i % 2].rows;
            masks[i] = is_inside ? mask_of(&f->columns, 0) : 0;
            const __m512i sums = _mm512_add_epi32(sums_at(f, i % 2, is_inside ? at : row, 0), offset);
            x[i] = tare_rounded_result(&q, sums, 0, has_addend ? addend + (is_inside ? place : 0) : NULL, masks[i]);
        }
        const __m512i bytes = tare_packed_bytes(&q, x, is_unsigned);
        _mm_mask_storeu_epi8(to, masks[0], _mm512_castsi512_si128(bytes));
        _mm_mask_storeu_epi8(to + second, masks[1], _mm512_extracti32x4_epi32(bytes, 1));
        _mm_mask_storeu_epi8(to + stride, masks[2], _mm512_extracti32x4_epi32(bytes, 2));
        _mm_mask_storeu_epi8(to + stride + second, masks[3], _mm512_extracti32x4_epi32(bytes, 3));
        if (has_addend) addend += 2 * stride;
    }
}

/* Which panels of a tile are converted together: `count` ones from `first` on, of which all columns are inside or some.
 */
struct panels {
    int count;
    bool is_full;
};

/* Rows `row` … `end` of a tile as floats. Of these and of addends, the rows of the block that is computed, which is
 * converted next, are prefetched. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_panels(struct product *p, const struct finished *f, int tile,
                                                        int64_t row, int64_t end, int first, const struct panels panels,
                                                        const bool has_sign) {
    const struct tare_real_stage *real = &p->requantize->real;
    const __mmask16 masks[2] = { mask_of(&f->columns, first), mask_of(&f->columns, 1) };
    const struct tare_real_columns columns =
        tare_real_columns_of(p->requantize, p->c->column + f->columns.first + first * PANEL, masks, panels.count);
    const int64_t stride = p->c->stride, ahead = p->ahead[tile] + first * PANEL;
    const float *addend = real->addend;
    float *floats = real->floats;
    int64_t at = p->c->element + element_of(p, f, tile, row) + first * PANEL;
    struct tare_range_avx512 seen = p->seen;
    if (end > f->tiles[tile].rows) end = f->tiles[tile].rows;
    for (; row < end; row++, at += stride) {
        TARE_UNROLL
        for (int panel = 0; panel < panels.count; panel++) {
            const int64_t i = at + panel * PANEL, next = ahead + row * stride + panel * PANEL;
            const __mmask16 mask = columns.mask[panel];
            __builtin_prefetch(floats + next, 1);
            if (addend) __builtin_prefetch(addend + next);
            const __m512 x =
                tare_real_lanes(&columns, panel, sums_at(f, tile, row, first + panel), addend ? addend + i : NULL);
            tare_store_floats(floats + i, x, mask, panels.is_full);
            tare_add_to_range(&seen, x, mask, panels.is_full, has_sign);
        }
    }
    p->seen = seen;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_full_panels(struct product *p, const struct finished *f, int tile,
                                                             int64_t row, int64_t end, const int count) {
    const struct panels panels = { count, true };
    if (p->requantize->real.low >= 0)
        store_panels(p, f, tile, row, end, 0, panels, false);
    else
        store_panels(p, f, tile, row, end, 0, panels, true);
}

/* Rows `row` … `end` of both tiles as floats. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_reals(struct product *p, const struct finished *f, int64_t row,
                                                       int64_t end) {
    const struct panels some = { 1, false };
    const uint32_t mask = f->columns.mask, first = mask & 0xffff;
    for (int tile = 0; tile < 2; tile++) {
        if (mask == UINT32_MAX)
            store_full_panels(p, f, tile, row, end, 2);
        else if (first == 0xffff)
            store_full_panels(p, f, tile, row, end, 1);
        if (mask == UINT32_MAX || mask == 0xffff) continue;
        store_panels(p, f, tile, row, end, first == 0xffff ? 1 : 0, some, true);
    }
}

/* Stores the bytes of rows `row` … `end` of both tiles. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void convert_bytes(const struct product *p, const struct finished *f, int64_t row,
                                                         int64_t end, const bool is_unsigned, const bool has_addend) {
    if (mask_of(&f->columns, 1))
        store_bytes(p, f, row, end, is_unsigned, has_addend);
    else
        store_narrow_bytes(p, f, row, end, is_unsigned, has_addend);
}

/* Converts up to `count` rows of both tiles. */
static TARE_TARGET_AVX512 __attribute__((noinline)) void convert(struct product *p, struct finished *f, int64_t count) {
    const int64_t end = f->rows - f->next < count ? f->rows : f->next + count;
    if (f->next == end) return;
    const bool is_unsigned = p->bounds.high > INT8_MAX;
    if (p->conversion == TO_BYTES && is_unsigned) {
        convert_bytes(p, f, f->next, end, true, false);
    } else if (p->conversion == TO_BYTES) {
        convert_bytes(p, f, f->next, end, false, false);
    } else if (p->conversion == TO_BYTES_PLUS && is_unsigned) {
        convert_bytes(p, f, f->next, end, true, true);
    } else if (p->conversion == TO_BYTES_PLUS) {
        convert_bytes(p, f, f->next, end, false, true);
    } else if (p->conversion == TO_FLOATS) {
        store_reals(p, f, f->next, end);
    } else {
        for (int tile = 0; tile < 2; tile++) {
            for (int64_t row = f->next; row < end && row < f->tiles[tile].rows; row++) {
                if (p->conversion == TO_SUMS)
                    store_sums(p, f, tile, row);
                else
                    store_any(p, f, tile, row);
            }
        }
    }
    f->next = end;
}

/* ---- products ---- */

/* Computes a block while the rows of `f` are converted. `rows2`, `columns2`: it has two row tiles, two panels. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void multiply(struct product *p, const struct row_tile tiles[2],
                                                    const struct columns *columns, struct finished *f, const bool rows2,
                                                    const bool columns2) {
    const int64_t chunk_bytes = p->chunk * 4, b_bytes = p->chunk * GROUP, stride = p->a_stride;
    const char *b = columns->b;
    for (int64_t s = 0; s < p->segments->count; s++) {
        const char *a0 = tiles[0].a + s * p->segments->step, *a1 = tiles[1].a + s * p->segments->step;
        for (int64_t i = 0; i < p->chunks; i++, a0 += chunk_bytes, a1 += chunk_bytes, b += b_bytes) {
            TILE_LOAD(4, a0, stride);
            TILE_LOAD(6, b, GROUP);
            TILE_MULTIPLY(0, 4, 6);
            if (columns2) {
                TILE_LOAD(7, b + p->panel_stride, GROUP);
                TILE_MULTIPLY(1, 4, 7);
            }
            if (rows2) {
                TILE_LOAD(5, a1, stride);
                TILE_MULTIPLY(2, 5, 6);
                if (columns2) TILE_MULTIPLY(3, 5, 7);
            }
            for (int64_t line = 0; line < p->lines_ahead; line++, p->b_ahead += GROUP)
                __builtin_prefetch(p->b_ahead, 0, 2);
            if (f->next < f->rows) convert(p, f, p->share);
        }
    }
}

static void finish_block(const struct row_tile tiles[2], const struct columns *columns, struct finished *f) {
    TILE_STORE(0, f->sums[0][0]);
    TILE_STORE(1, f->sums[0][0] + PANEL);
    TILE_STORE(2, f->sums[1][0]);
    TILE_STORE(3, f->sums[1][0] + PANEL);
    f->tiles[0] = tiles[0];
    f->tiles[1] = tiles[1];
    f->columns = *columns;
    f->next = 0;
    f->rows = tiles[0].rows > tiles[1].rows ? tiles[0].rows : tiles[1].rows;
}

static TARE_TARGET_AVX512 void run_block(struct product *p, const struct row_tile tiles[2],
                                         const struct columns *columns, struct finished *f) {
    const bool rows2 = tiles[1].rows > 0, columns2 = columns->mask >> PANEL != 0;
    for (int i = 0; i < 2; i++)
        p->ahead[i] = p->c->element + tiles[i].first * p->c->stride + columns->first;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    if (rows2 && columns2)
        multiply(p, tiles, columns, f, true, true);
    else if (rows2)
        multiply(p, tiles, columns, f, true, false);
    else if (columns2)
        multiply(p, tiles, columns, f, false, true);
    else
        multiply(p, tiles, columns, f, false, false);
    convert(p, f, TILE);
    finish_block(tiles, columns, f);
}

/* The row tiles of all lines in order. The larger ones of a line are its last. */
struct row_cursor {
    int64_t line, tile, first; /* the row of the line */
};

/* The next row tile; without rows if there is none. */
static struct row_tile next_row_tile(const struct product *p, struct row_cursor *at) {
    const struct tare_igemm_lines *lines = p->lines;
    if (at->line >= lines->count) return (struct row_tile){ p->a, 0, 0 };
    const struct row_tile tile = { p->a + at->line * lines->a_step + at->first * p->a_stride,
                                   at->line * lines->rows + at->first,
                                   p->tile_rows + (at->tile >= p->row_tiles - p->larger_tiles) };
    at->first += tile.rows;
    if (++at->tile == p->row_tiles) *at = (struct row_cursor){ .line = at->line + 1 };
    return tile;
}

/* Distributes prefetching the panels of the columns after these over the steps of these, into the second-level cache.
 */
static void plan_prefetching(struct product *p, const struct columns *columns) {
    const int64_t blocks = (p->row_tiles * p->lines->count + 1) / 2, steps = p->segments->count * p->chunks;
    const int64_t panels_left = (p->n - columns->first + PANEL - 1) / PANEL - 2;
    const int64_t lines = (panels_left > 2 ? 2 : panels_left) * (p->panel_stride / GROUP);
    p->b_ahead = columns->b + 2 * p->panel_stride;
    p->lines_ahead = panels_left <= 0 || steps == 0 ? 0 : (lines + blocks * steps - 1) / (blocks * steps);
}

static TARE_TARGET_AVX512 void run_columns(struct product *p, const struct columns *columns, struct finished *f) {
    struct row_cursor at = { 0 };
    plan_prefetching(p, columns);
    while (at.line < p->lines->count) {
        struct row_tile tiles[2];
        tiles[0] = next_row_tile(p, &at);
        tiles[1] = next_row_tile(p, &at);
        run_block(p, tiles, columns, f);
    }
}

/* ---- the choice of the conversion ---- */

static void choose_conversion(struct product *p) {
    const struct tare_requantize *r = p->requantize;
    p->conversion = !r ? TO_SUMS : r->is_real ? TO_FLOATS : TO_ANY;
    if (!r) return;
    p->bounds = tare_byte_bounds_of(r, p->c->column, p->n);
    if (p->bounds.is_possible) p->conversion = r->addend ? TO_BYTES_PLUS : TO_BYTES;
}

/* ---- the whole ---- */

/* The operand of ldtilecfg: palette 1, and the shape of each tile. */
struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void configure(const struct product *p) {
    struct configuration configuration = { .palette = 1 };
    const uint8_t rows = (uint8_t)(p->tile_rows + (p->larger_tiles > 0));
    for (int tile = 0; tile < 8; tile++) { /* 0 to 3: sums; 4, 5: A; 6, 7: B */
        configuration.row_bytes[tile] = (uint16_t)(tile == 4 || tile == 5 ? p->chunk * 4 : GROUP);
        configuration.rows[tile] = tile < 6 ? rows : (uint8_t)p->chunk;
    }
    barrier();
    __asm__ volatile("ldtilecfg %0" ::"m"(configuration));
}

TARE_TARGET_AVX512 void tare_igemm_tiles_amx(const struct tare_igemm_output *c, const void *a, int64_t a_stride,
                                             const void *panels, int64_t panel_stride,
                                             const struct tare_igemm_lines *lines, int64_t n,
                                             const struct tare_igemm_segments *segments, bool accumulates) {
    struct product p = { .c = c,
                         .requantize = c->requantize,
                         .lines = lines,
                         .segments = segments,
                         .a = a,
                         .panels = panels,
                         .a_stride = a_stride,
                         .panel_stride = panel_stride,
                         .n = n,
                         .row_tiles = (lines->rows + TILE - 1) / TILE,
                         .chunks = tare_igemm_tile_steps(segments->groups),
                         .accumulates = accumulates };
    struct finished f;
    if (lines->count <= 0 || lines->rows <= 0 || n <= 0) return;
    f.next = f.rows = 0;
    p.tile_rows = lines->rows / p.row_tiles, p.larger_tiles = lines->rows % p.row_tiles;
    p.chunk = p.chunks == 0 ? 1 : segments->groups / p.chunks;
    const int64_t steps = p.chunks * segments->count;
    p.share = steps == 0 ? TILE : (TILE + steps - 1) / steps;
    if (p.share < LEAST_SHARE) p.share = LEAST_SHARE;
    p.seen = tare_requantize_range_avx512(p.requantize);
    choose_conversion(&p);
    configure(&p);
    for (int64_t column = 0; column < n; column += WIDTH) {
        const struct columns columns = { p.panels + column / PANEL * panel_stride, column,
                                         n - column < WIDTH ? (1u << (n - column)) - 1 : UINT32_MAX };
        run_columns(&p, &columns, &f);
    }
    convert(&p, &f, TILE);
    __asm__ volatile("tilerelease" ::: "memory");
    tare_requantize_store_range_avx512(p.requantize, &p.seen);
}
#endif
