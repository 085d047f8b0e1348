/* The VNNI variant of the product of int8 rows, with 128 added, by int8 weights: tiles of up to 14 rows by 32 columns.
 * Where the results are bytes of whole vectors and the rows are adjacent, strips of 7 rows take their place
 * (gemm_int_strips_vnni.h).
 *
 * The rows of a tile are in two halves, each with rows at equal distances, so a tile may consist of two short lines.
 * Its 28 vectors of sums are in registers, and stored in a buffer in the first-level cache at the end, from which they
 * are converted to the result. While a tile is multiplied, the rows of its result and of an addend are prefetched, and
 * some lines of the next columns' panels: waiting for large weights would take longer than multiplying them. */
#include "interpreter/kernels/integer/gemm_int_block.h"
#include "interpreter/kernels/integer/gemm_int_strips_vnni.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum {
    MAX_ROWS = 14,
    HALF = MAX_ROWS / 2,
    BUFFER_ROWS = 16,
    LANES = TARE_ROW_LANES,
    WIDTH = 2 * LANES,
    EIGHT = 8,
    GROUP = 64
};

/* How the sums of a tile are converted. */
enum conversion {
    TO_SUMS,
    TO_BYTES, /* within tare_byte_bounds */
    TO_FLOATS,
    TO_ANY, /* by tare_requantize_avx512 */
};

/* A product for the columns of one or two panels. */
struct product {
    const struct tare_igemm_output *c;
    const struct tare_igemm_lines *lines;
    const struct tare_igemm_segments *segments;
    const char *b;
    int64_t a_stride, panel_stride;
    int64_t row_tiles;               /* of a line */
    int64_t tile_rows, larger_tiles; /* rows of a tile, and how many tiles of a line have one more */
    int64_t column;                  /* relative to that of C */
    uint32_t mask;                   /* columns inside C */
    bool accumulates;
    enum conversion conversion;
    struct tare_byte_bounds bounds;
    struct tare_quantizer quantizer; /* of these columns, where they become bytes */
    /* the panels of the next columns: the next byte to prefetch, and how many a group of k advances it */
    const char *ahead;
    int64_t ahead_step;
    _Alignas(64) int32_t start[WIDTH]; /* of the sums */
};

/* `rows` consecutive rows of C from row `first` on; the second half begins with row (rows + 1) / 2. */
struct row_tile {
    const char *a[2];
    int64_t first, rows;
};

/* ---- multiplication ---- */

/* Where the rows of a tile are. A row is at most one addition of a scaled distance away from the first of its half,
 * which is an address of an instruction: pointers to all rows would not fit in registers. */
struct rows_at {
    const char *half[2];
    int64_t stride, three, five;
};

TARE_ALWAYS_INLINE const char *row_of(const struct rows_at *at, const int row, const int rows) {
    const int half = (rows + 1) / 2, i = row < half ? row : row - half;
    const char *base = at->half[row >= half];
    return i == 0   ? base
           : i == 3 ? base + at->three
           : i == 5 ? base + at->five
           : i == 6 ? base + 2 * at->three
                    : base + i * at->stride;
}

/* Prevents the compiler from computing addresses of rows before the loop. */
TARE_ALWAYS_INLINE void keep_in_registers(struct rows_at *at, const int rows) {
    __asm__("" : "+r"(at->half[0]), "+r"(at->stride));
    if (rows > 1) __asm__("" : "+r"(at->half[1]));
    if (rows > 6) __asm__("" : "+r"(at->three));
    if (rows > 10) __asm__("" : "+r"(at->five));
}

TARE_ALWAYS_INLINE void move(struct rows_at *at, int64_t bytes) {
    at->half[0] += bytes;
    at->half[1] += bytes;
}

/* As assembly: with the intrinsic, gcc 12 copies the sums between registers and memory. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, __m512i bytes, __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights));
    return sum;
}

/* Adds the products of one group of k. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void multiply(__m512i sum[MAX_ROWS][2], const struct rows_at *a, const char *b,
                                                  int64_t panel_stride, const int rows, const int panels) {
    __m512i weights[2];
    TARE_UNROLL
    for (int j = 0; j < panels; j++)
        weights[j] = _mm512_loadu_si512(b + j * panel_stride);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        int32_t group;
        memcpy(&group, row_of(a, i, rows), sizeof group);
        const __m512i x = _mm512_set1_epi32(group);
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            sum[i][j] = add_products(sum[i][j], x, weights[j]);
    }
}

/* Rows of the result and of its addend, one of which is prefetched in each step of k: requested all at once they would
 * delay the multiplication, and waited for at its end the next tile. */
struct rows_ahead {
    const char *to;
    int64_t addend, stride, left; /* `addend`: its distance from `to`; 0: none */
    bool is_wide;                 /* rows of 32 floats */
};

TARE_ALWAYS_INLINE struct rows_ahead rows_ahead_of(const struct product *p, const struct row_tile *tile) {
    const struct tare_requantize *r = p->c->requantize;
    const int64_t at = p->c->element + tile->first * p->c->stride + p->column;
    struct rows_ahead ahead = { .left = tile->rows };
    if (!r) return (struct rows_ahead){ 0 };
    const char *addend = NULL;
    if (r->is_real) {
        ahead.to = (const char *)(r->real.floats + at);
        if (r->real.addend) addend = (const char *)(r->real.addend + at);
    } else {
        ahead.to = (const char *)r->to + at;
        if (r->addend) addend = (const char *)r->addend + at;
    }
    ahead.is_wide = r->is_real;
    ahead.stride = p->c->stride * (r->is_real ? (int64_t)sizeof(float) : 1);
    if (addend) ahead.addend = addend - ahead.to;
    return ahead;
}

TARE_ALWAYS_INLINE void prefetch_row(struct rows_ahead *ahead) {
    __builtin_prefetch(ahead->to, 1);
    __builtin_prefetch(ahead->to + ahead->addend);
    if (ahead->is_wide) {
        __builtin_prefetch(ahead->to + GROUP, 1);
        __builtin_prefetch(ahead->to + ahead->addend + GROUP);
    }
    ahead->to += ahead->stride;
    ahead->left--;
}

/* The sums of a tile, in rows of 32. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void multiply_tile(int32_t sums[BUFFER_ROWS][WIDTH], struct product *p,
                                                       const struct row_tile *tile, const int rows, const int panels) {
    const int64_t groups = p->segments->groups, stride = p->panel_stride, step = p->ahead_step;
    struct rows_at a = { { tile->a[0], tile->a[1] }, p->a_stride, 3 * p->a_stride, 5 * p->a_stride };
    struct rows_ahead rows_ahead = rows_ahead_of(p, tile);
    const char *b = p->b, *ahead = p->ahead;
    __m512i sum[MAX_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            sum[i][j] = _mm512_load_si512(p->start + j * LANES);
    }
    for (int64_t s = 0; s < p->segments->count; s++) {
        int64_t g = 0;
        for (; g < groups && rows_ahead.left > 0; g++, b += GROUP, ahead += step) {
            prefetch_row(&rows_ahead);
            __builtin_prefetch(ahead, 0, 2);
            multiply(sum, &a, b, stride, rows, panels);
            move(&a, 4);
        }
        for (; g < groups; g++, b += GROUP, ahead += step) {
            __builtin_prefetch(ahead, 0, 2);
            keep_in_registers(&a, rows);
            multiply(sum, &a, b, stride, rows, panels);
            move(&a, 4);
        }
        move(&a, p->segments->step - groups * 4);
    }
    p->ahead = ahead;
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < panels; j++)
            _mm512_store_si512(sums[i] + j * LANES, sum[i][j]);
    }
}

typedef void tile_function(int32_t sums[BUFFER_ROWS][WIDTH], struct product *p, const struct row_tile *tile);

#define TILE(r, panels)                                                                                                \
    static TARE_TARGET_VNNI void tile_##r##_##panels(int32_t sums[BUFFER_ROWS][WIDTH], struct product *p,              \
                                                     const struct row_tile *tile) {                                    \
        multiply_tile(sums, p, tile, r, panels);                                                                       \
    }
#define TILES(r) TILE(r, 1) TILE(r, 2)
#define ENTRY(r)                                                                                                       \
    { tile_##r##_1, tile_##r##_2 }
/* clang-format off */
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) TILES(7)
TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
static tile_function *const tiles[MAX_ROWS][2] = {
    ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7),
    ENTRY(8), ENTRY(9), ENTRY(10), ENTRY(11), ENTRY(12), ENTRY(13), ENTRY(14),
};
/* clang-format on */
#undef TILE
#undef TILES
#undef ENTRY

/* ---- conversion ---- */

static __mmask16 mask_of(const struct product *p, int panel) {
    return (__mmask16)(p->mask >> panel * LANES);
}

/* All columns of the panels are inside C. */
static bool has_whole_panels(const struct product *p) {
    return p->mask == UINT32_MAX || p->mask == UINT16_MAX;
}

static TARE_TARGET_AVX512 void store_sums(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                          const struct row_tile *tile) {
    int32_t *to = p->c->sums + tile->first * p->c->stride + p->column;
    for (int64_t row = 0; row < tile->rows; row++, to += p->c->stride) {
        for (int panel = 0; panel < 2 && mask_of(p, panel); panel++) {
            const __mmask16 mask = mask_of(p, panel);
            __m512i x = _mm512_load_si512(sums[row] + panel * LANES);
            if (p->accumulates) x = _mm512_add_epi32(x, _mm512_maskz_loadu_epi32(mask, to + panel * LANES));
            _mm512_mask_storeu_epi32(to + panel * LANES, mask, x);
        }
    }
}

static TARE_TARGET_AVX512 void store_any(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                         const struct row_tile *tile) {
    const struct tare_requantize *r = p->c->requantize;
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    int64_t at = p->c->element + tile->first * p->c->stride + p->column;
    for (int64_t row = 0; row < tile->rows; row++, at += p->c->stride) {
        for (int panel = 0; panel < 2 && mask_of(p, panel); panel++)
            tare_requantize_avx512(r, _mm512_load_si512(sums[row] + panel * LANES), at + panel * LANES,
                                   p->c->column + p->column + panel * LANES, mask_of(p, panel), &seen);
    }
    tare_requantize_store_range_avx512(r, &seen);
}

/* Floats of which the range is collected; the sums begin with the offsets. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                        const struct row_tile *tile, const int panels,
                                                        const bool is_full, const bool has_sign) {
    const struct tare_requantize *r = p->c->requantize;
    const __mmask16 masks[2] = { mask_of(p, 0), mask_of(p, 1) };
    struct tare_real_columns columns = tare_real_columns_of(r, p->c->column + p->column, masks, panels);
    const float *addend = r->real.addend;
    float *floats = r->real.floats;
    int64_t at = p->c->element + tile->first * p->c->stride + p->column;
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    columns.offset[0] = columns.offset[1] = _mm512_setzero_si512();
    for (int64_t row = 0; row < tile->rows; row++, at += p->c->stride) {
        TARE_UNROLL
        for (int panel = 0; panel < panels; panel++) {
            const int64_t i = at + panel * LANES;
            const __m512 x = tare_real_lanes(&columns, panel, _mm512_load_si512(sums[row] + panel * LANES),
                                             addend ? addend + i : NULL);
            tare_store_floats(floats + i, x, masks[panel], is_full);
            tare_add_to_range(&seen, x, masks[panel], is_full, has_sign);
        }
    }
    tare_requantize_store_range_avx512(r, &seen);
}

/* Whole vectors, and a bias that is not added last; the sums begin with the offsets. Static models
 * collect no range. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_whole_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                              const struct row_tile *tile, const int panels,
                                                              const bool has_range, const bool has_sign,
                                                              const bool has_addend) {
    const struct tare_requantize *r = p->c->requantize;
    const __mmask16 masks[2] = { 0xffff, 0xffff };
    struct tare_real_columns columns = tare_real_columns_of(r, p->c->column + p->column, masks, panels);
    const int64_t stride = p->c->stride, at = p->c->element + tile->first * stride + p->column;
    const float *addend = has_addend ? r->real.addend + at : NULL;
    float *to = r->real.floats + at;
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    columns.has_bias = true;
    columns.bias_is_last = false;
    TARE_UNROLL
    for (int panel = 0; panel < panels; panel++) {
        columns.offset[panel] = _mm512_setzero_si512();
        if (!r->real.bias) columns.bias[panel] = _mm512_set1_ps(-0.0f); /* changes no value */
    }
    for (int64_t row = 0; row < tile->rows; row++, to += stride) {
        TARE_UNROLL
        for (int panel = 0; panel < panels; panel++) {
            const __m512 x = tare_real_lanes(&columns, panel, _mm512_load_si512(sums[row] + panel * LANES),
                                             has_addend ? addend + panel * LANES : NULL);
            _mm512_storeu_ps(to + panel * LANES, x);
            if (has_range) tare_add_to_range(&seen, x, 0xffff, true, has_sign);
        }
        if (has_addend) addend += stride;
    }
    if (has_range) tare_requantize_store_range_avx512(r, &seen);
}

#define STORE_WHOLE_FLOATS(name, panels, has_range, has_sign, has_addend)                                              \
    static TARE_TARGET_AVX512 void name(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],                     \
                                        const struct row_tile *tile) {                                                 \
        store_whole_floats(p, sums, tile, panels, has_range, has_sign, has_addend);                                    \
    }
STORE_WHOLE_FLOATS(whole_static_floats_1, 1, false, false, false)
STORE_WHOLE_FLOATS(whole_static_floats_2, 2, false, false, false)
STORE_WHOLE_FLOATS(whole_floats_1, 1, true, false, false)
STORE_WHOLE_FLOATS(whole_floats_2, 2, true, false, false)
STORE_WHOLE_FLOATS(whole_signed_floats_1, 1, true, true, false)
STORE_WHOLE_FLOATS(whole_signed_floats_2, 2, true, true, false)
STORE_WHOLE_FLOATS(whole_added_floats_1, 1, true, false, true)
STORE_WHOLE_FLOATS(whole_added_floats_2, 2, true, false, true)
STORE_WHOLE_FLOATS(whole_added_signed_floats_1, 1, true, true, true)
STORE_WHOLE_FLOATS(whole_added_signed_floats_2, 2, true, true, true)
#undef STORE_WHOLE_FLOATS

/* The only 8 columns of a result, without an addend: two rows are a vector, of which the columns are repeated. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_eight_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                              const struct row_tile *tile, const bool has_sign) {
    const struct tare_requantize *r = p->c->requantize;
    const __mmask16 all[] = { 0xffff, 0 };
    struct tare_real_columns columns = tare_real_columns_of(r, 0, all, 1);
    struct tare_range_avx512 seen = tare_requantize_range_avx512(r);
    float *to = r->real.floats + p->c->element + tile->first * EIGHT;
    columns.offset[0] = _mm512_setzero_si512();
    for (int64_t row = 0; row < tile->rows; row += 2, to += 2 * EIGHT) {
        const __m256i first = _mm256_load_si256((const __m256i *)(const void *)sums[row]);
        const __m256i second = _mm256_load_si256((const __m256i *)(const void *)sums[row + 1]);
        const __m512 x =
            tare_real_lanes(&columns, 0, _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), NULL);
        const __mmask16 mask = row + 1 < tile->rows ? 0xffff : 0xff;
        tare_store_floats(to, x, mask, mask == 0xffff);
        tare_add_to_range(&seen, x, mask, mask == 0xffff, has_sign);
    }
    tare_requantize_store_range_avx512(r, &seen);
}
static TARE_TARGET_AVX512 void eight_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                            const struct row_tile *tile) {
    store_eight_floats(p, sums, tile, false);
}
static TARE_TARGET_AVX512 void eight_signed_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                   const struct row_tile *tile) {
    store_eight_floats(p, sums, tile, true);
}

static TARE_TARGET_AVX512 void store_any_floats(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                const struct row_tile *tile) {
    const bool has_sign = !(p->c->requantize->real.low >= 0);
    if (p->mask == UINT32_MAX && has_sign)
        store_floats(p, sums, tile, 2, true, true);
    else if (p->mask == UINT32_MAX)
        store_floats(p, sums, tile, 2, true, false);
    else if (p->mask == UINT16_MAX && has_sign)
        store_floats(p, sums, tile, 1, true, true);
    else if (p->mask == UINT16_MAX)
        store_floats(p, sums, tile, 1, true, false);
    else if (p->mask > UINT16_MAX)
        store_floats(p, sums, tile, 2, false, true);
    else
        store_floats(p, sums, tile, 1, false, true);
}

/* Stores the first `rows` (at least 1) of two rows of 32 bytes, or of four rows of 16. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_packed(uint8_t *to, int64_t stride, __m512i bytes, int64_t rows,
                                                        uint32_t mask, const int panels, const bool is_whole) {
    const __m256i half[2] = { _mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1) };
    const __m128i quarter[4] = { _mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                                 _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3) };
    if (panels == 1) {
        TARE_UNROLL
        for (int i = 0; i < 4; i++) {
            if (i < rows && is_whole) _mm_storeu_si128((__m128i *)(void *)(to + i * stride), quarter[i]);
            if (i < rows && !is_whole) _mm_mask_storeu_epi8(to + i * stride, (__mmask16)mask, quarter[i]);
        }
        return;
    }
    TARE_UNROLL
    for (int i = 0; i < 2; i++) {
        if (i < rows && is_whole) _mm256_storeu_si256((__m256i *)(void *)(to + i * stride), half[i]);
        if (i < rows && !is_whole) _mm256_mask_storeu_epi8(to + i * stride, mask, half[i]);
    }
}

/* What a conversion to bytes adds; decided once, not for every vector. */
enum addend { NO_ADDEND, INT8_ADDEND, UINT8_ADDEND };

/* Two rows of two panels, or four rows of one, as packed bytes. `addends`: of the first row, of which `rows` exist. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i bytes_of_rows(const struct tare_quantizer *q, int32_t sums[][WIDTH],
                                                            const char *addends, int64_t stride, int64_t rows,
                                                            const __mmask16 masks[2], const int panels,
                                                            const bool is_unsigned, const bool has_addend) {
    __m512i x[4];
    TARE_UNROLL
    for (int i = 0; i < 4; i++) {
        const int row = i / panels, panel = i % panels;
        const __mmask16 mask = row < rows ? masks[panel] : 0;
        const __m512i sum = _mm512_load_si512(sums[row] + panel * LANES);
        if (has_addend)
            x[i] = tare_rounded_total(q, sum, panel, addends + row * stride + panel * LANES, mask);
        else
            x[i] = tare_rounded_alone(q, sum, panel);
    }
    return tare_packed_bytes(q, x, is_unsigned);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_bytes(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],
                                                       const struct row_tile *tile, const int panels,
                                                       const bool is_whole, const bool is_unsigned,
                                                       const enum addend kind) {
    const struct tare_requantize *r = p->c->requantize;
    const __mmask16 masks[2] = { is_whole ? 0xffff : mask_of(p, 0), is_whole ? 0xffff : mask_of(p, 1) };
    const int64_t stride = p->c->stride, at = p->c->element + tile->first * stride + p->column;
    const int together = 4 / panels;
    const bool has_addend = kind != NO_ADDEND;
    const char *addends = has_addend ? (const char *)r->addend + at : NULL;
    struct tare_quantizer q = p->quantizer;
    uint8_t *to = r->to + at;
    int64_t row = 0;
    q.addend_is_unsigned = kind == UINT8_ADDEND; /* known to the compiler */
    for (; row + together <= tile->rows; row += together, to += together * stride) {
        const __m512i bytes =
            bytes_of_rows(&q, sums + row, addends, stride, together, masks, panels, is_unsigned, has_addend);
        store_packed(to, stride, bytes, together, p->mask, panels, is_whole);
        if (has_addend) addends += together * stride;
    }
    if (row == tile->rows) return;
    const __m512i bytes =
        bytes_of_rows(&q, sums + row, addends, stride, tile->rows - row, masks, panels, is_unsigned, has_addend);
    store_packed(to, stride, bytes, tile->rows - row, p->mask, panels, is_whole);
}

typedef void store_function(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH], const struct row_tile *tile);

#define STORE(name, panels, is_whole, is_unsigned, kind)                                                               \
    static TARE_TARGET_AVX512 void name(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH],                     \
                                        const struct row_tile *tile) {                                                 \
        store_bytes(p, sums, tile, panels, is_whole, is_unsigned, kind);                                               \
    }
/* clang-format off */
#define STORES(name, panels, is_whole)                                                                                 \
    STORE(name##_int8, panels, is_whole, false, NO_ADDEND)                                                             \
    STORE(name##_int8_int8, panels, is_whole, false, INT8_ADDEND)                                                      \
    STORE(name##_int8_uint8, panels, is_whole, false, UINT8_ADDEND)                                                    \
    STORE(name##_uint8, panels, is_whole, true, NO_ADDEND)                                                             \
    STORE(name##_uint8_int8, panels, is_whole, true, INT8_ADDEND)                                                      \
    STORE(name##_uint8_uint8, panels, is_whole, true, UINT8_ADDEND)                                                    \
    static store_function *const stores_##name[2][3] = { { name##_int8, name##_int8_int8, name##_int8_uint8 },         \
                                                         { name##_uint8, name##_uint8_int8, name##_uint8_uint8 } };
STORES(narrow, 1, false)
STORES(partial, 2, false)
STORES(whole, 2, true)
/* clang-format on */
#undef STORE
#undef STORES

static store_function *store_of_floats(const struct product *p) {
    static store_function *const functions[][3] = { { whole_static_floats_1, whole_floats_1, whole_signed_floats_1 },
                                                    { whole_static_floats_2, whole_floats_2, whole_signed_floats_2 } };
    static store_function *const added[][2] = { { whole_added_floats_1, whole_added_signed_floats_1 },
                                                { whole_added_floats_2, whole_added_signed_floats_2 } };
    const struct tare_real_stage *real = &p->c->requantize->real;
    const bool is_eight = p->c->requantize->columns == EIGHT && p->c->stride == EIGHT && p->c->column == 0;
    const bool has_sign = !(real->low >= 0), is_wide = p->mask == UINT32_MAX;
    if (is_eight && !real->addend) return has_sign ? eight_signed_floats : eight_floats;
    if (!has_whole_panels(p) || real->bias_is_last) return store_any_floats;
    if (real->addend) return real->range ? added[is_wide][has_sign] : store_any_floats;
    return functions[is_wide][!real->range ? 0 : 1 + has_sign];
}

static store_function *store_of(const struct product *p) {
    if (p->conversion == TO_SUMS) return store_sums;
    if (p->conversion == TO_ANY) return store_any;
    if (p->conversion == TO_FLOATS) return store_of_floats(p);
    const struct tare_requantize *r = p->c->requantize;
    const enum addend kind = !r->addend ? NO_ADDEND : r->addend_is_unsigned ? UINT8_ADDEND : INT8_ADDEND;
    const bool is_unsigned = p->bounds.high > INT8_MAX;
    return (p->mask == UINT32_MAX  ? stores_whole
            : p->mask > UINT16_MAX ? stores_partial
                                   : stores_narrow)[is_unsigned][kind];
}

/* ---- rows ---- */

/* The row tiles of all lines in order. The tiles of a line have equally many rows or one less; the larger ones are its
 * last. Lines of up to 7 rows are computed in pairs. */
struct row_cursor {
    const char *line;                     /* its first row of A */
    int64_t lines_left, tile, first, row; /* `row`: in the line; `first`: of C */
};

static bool has_pairs(const struct tare_igemm_lines *lines) {
    return lines->rows <= HALF && lines->count > 1;
}

static int64_t tile_count(const struct product *p) {
    return has_pairs(p->lines) ? (p->lines->count + 1) / 2 : p->lines->count * p->row_tiles;
}

static struct row_tile next_tile(const struct product *p, struct row_cursor *at) {
    const struct tare_igemm_lines *lines = p->lines;
    const bool is_pair = has_pairs(lines) && at->lines_left > 1;
    const int64_t one = p->tile_rows + (at->tile >= p->row_tiles - p->larger_tiles);
    const char *a = at->line + at->row * p->a_stride;
    const struct row_tile tile = { { a, is_pair ? a + lines->a_step : a + (one + 1) / 2 * p->a_stride },
                                   at->first,
                                   is_pair ? 2 * one : one };
    at->first += tile.rows;
    at->row += one;
    if (++at->tile < p->row_tiles) return tile;
    const int64_t done = 1 + is_pair;
    at->line += done * lines->a_step;
    at->lines_left -= done;
    at->tile = at->row = 0;
    return tile;
}

/* ---- the whole ---- */

/* The sums begin with the offsets of the conversion. Columns that do not exist
 * begin with 0. */
static TARE_TARGET_AVX512 void set_start(struct product *p, const int32_t *start) {
    const bool has_offset = p->conversion == TO_BYTES || p->conversion == TO_FLOATS;
    const int32_t *offset = has_offset ? p->c->requantize->offset + p->c->column + p->column : NULL;
    TARE_UNROLL
    for (int panel = 0; panel < WIDTH / LANES; panel++) {
        const __mmask16 mask = mask_of(p, panel);
        __m512i x = _mm512_setzero_si512();
        if (start) x = _mm512_maskz_loadu_epi32(mask, start + panel * LANES);
        if (offset) x = _mm512_add_epi32(x, _mm512_maskz_loadu_epi32(mask, offset + panel * LANES));
        _mm512_storeu_si512(p->start + panel * LANES, x);
    }
}

static TARE_TARGET_AVX512 void set_quantizer(struct product *p) {
    p->quantizer = tare_quantizer_of(p->c->requantize, &p->bounds, p->c->column + p->column, mask_of(p, 1));
}

/* Distributes prefetching the panels of the columns after these over the groups of these. */
static void plan_prefetching(struct product *p, int64_t columns_left) {
    const int64_t panels = (columns_left + LANES - 1) / LANES,
                  steps = tile_count(p) * p->segments->count * p->segments->groups;
    const int64_t bytes = (panels < 2 ? panels : 2) * p->panel_stride;
    p->ahead = p->b + (panels > 0 ? 2 * p->panel_stride : 0);
    p->ahead_step = panels <= 0 || steps == 0 ? 0 : (bytes + steps - 1) / steps;
    if (p->ahead_step > GROUP) p->ahead_step = GROUP;
}

/* ---- strips ---- */

/* Adjacent rows whose sums become bytes of 32 columns, with an addend of the result's sign if any. */
static bool are_strips(const struct product *p) {
    const struct tare_requantize *r = p->c->requantize;
    if (p->conversion != TO_BYTES || p->mask != UINT32_MAX || p->lines->count > 1 || p->segments->count > 1)
        return false;
    return !r->addend || r->addend_is_unsigned == (p->bounds.high > INT8_MAX);
}

/* How many strips of these columns tare_strips_run computes: an odd number, or 0 if the product is not of its kind. */
static int64_t strip_count(const struct product *p) {
    const int64_t strips = p->lines->rows / TARE_STRIP_ROWS;
    if (p->segments->groups < TARE_STRIP_LEAST_GROUPS || p->lines->rows % TARE_STRIP_ROWS != 0 || strips < 3) return 0;
    return strips - (strips + 1) % 2;
}

/* A strip reads the weights as often as a tile of twice as many rows, so it prefetches half as much with each group. */
static struct tare_strips strips_of(const struct product *p, const char *a) {
    const struct tare_requantize *r = p->c->requantize;
    const int64_t first = p->c->element + p->column;
    return (struct tare_strips){ .a = a,
                                 .weights = p->b,
                                 .a_stride = p->a_stride,
                                 .panel_stride = p->panel_stride,
                                 .groups = p->segments->groups,
                                 .addend = r->addend ? (const char *)r->addend + first : NULL,
                                 .to = r->to + first,
                                 .stride = p->c->stride,
                                 .start = p->start,
                                 .quantizer = &p->quantizer,
                                 .is_unsigned = p->bounds.high > INT8_MAX,
                                 .ahead = p->ahead,
                                 .ahead_step = (p->ahead_step + 1) / 2 };
}

/* All rows of the columns, of which tare_strips_run computes `count` strips: one more may be left. */
static void run_strips(struct product *p, const char *a, int64_t count, int32_t sums[BUFFER_ROWS][WIDTH],
                       store_function *store) {
    const struct tare_strips strips = strips_of(p, a);
    const int64_t rows = TARE_STRIP_ROWS * count;
    const struct row_tile last = { .first = rows - TARE_STRIP_ROWS, .rows = TARE_STRIP_ROWS };
    tare_strips_run(&strips, count, sums);
    store(p, sums, &last);
    if (rows == p->lines->rows) return;
    const char *left = a + rows * p->a_stride;
    const struct row_tile tile = { { left, left + (TARE_STRIP_ROWS + 1) / 2 * p->a_stride }, rows, TARE_STRIP_ROWS };
    tiles[TARE_STRIP_ROWS - 1][1](sums, p, &tile);
    store(p, sums, &tile);
}

static enum conversion conversion_of(struct product *p, int64_t n) {
    const struct tare_requantize *r = p->c->requantize;
    if (!r) return TO_SUMS;
    if (r->is_real) return TO_FLOATS;
    p->bounds = tare_byte_bounds_of(r, p->c->column, n);
    return p->bounds.is_possible ? TO_BYTES : TO_ANY;
}

/* Up to four rows are converted together, with rows beyond the last one of a tile, which begin with 0. */
static void clear_beyond(const struct product *p, int32_t sums[BUFFER_ROWS][WIDTH]) {
    const int64_t least = p->lines->rows % TARE_STRIP_ROWS == 0 ? TARE_STRIP_ROWS : p->tile_rows;
    memset(sums[least], 0, (size_t)(BUFFER_ROWS - least) * sizeof sums[0]);
}

void tare_igemm_lines_vnni(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                           int64_t panel_stride, const struct tare_igemm_lines *lines, int64_t n,
                           const struct tare_igemm_segments *segments, const int32_t *start) {
    _Alignas(64) int32_t sums[BUFFER_ROWS][WIDTH];
    struct product p = { .c = c,
                         .lines = lines,
                         .segments = segments,
                         .a_stride = a_stride,
                         .panel_stride = panel_stride,
                         .row_tiles = (lines->rows + MAX_ROWS - 1) / MAX_ROWS,
                         .accumulates = !start };
    if (lines->count <= 0 || lines->rows <= 0) return;
    p.tile_rows = lines->rows / p.row_tiles, p.larger_tiles = lines->rows % p.row_tiles;
    clear_beyond(&p, sums);
    p.conversion = conversion_of(&p, n);
    for (int64_t column = 0; column < n; column += WIDTH) {
        const int64_t columns = n - column < WIDTH ? n - column : WIDTH;
        struct row_cursor at = { .line = a, .lines_left = lines->count };
        p.column = column;
        p.mask = columns == WIDTH ? UINT32_MAX : (1u << columns) - 1;
        p.b = (const char *)panels + column / LANES * panel_stride;
        set_start(&p, start ? start + column : NULL);
        if (p.conversion == TO_BYTES) set_quantizer(&p);
        plan_prefetching(&p, n - column - columns);
        store_function *const store = store_of(&p);
        const int64_t strips = are_strips(&p) ? strip_count(&p) : 0;
        if (strips > 0) {
            run_strips(&p, a, strips, sums, store);
            continue;
        }
        while (at.lines_left > 0) {
            const struct row_tile tile = next_tile(&p, &at);
            tiles[tile.rows - 1][columns > LANES](sums, &p, &tile);
            store(&p, sums, &tile);
        }
    }
}
#endif
