/* The AMX variant of the integer product: int8 by int8 in tiles of up to 16 rows by 16 columns.
 *
 * A block of the result consists of two row tiles by two panels: four tiles of sums. A step adds the products of two
 * tiles of A and two of B, up to 64 bytes of k. The row tiles of a line have equally many rows or one less. All are
 * computed with the larger number: the last row of a smaller tile belongs to the next tile and is not stored. One
 * configuration therefore serves the whole product; loading one takes as long as ten tile products.
 *
 * The sums of a finished block are stored in a buffer and converted to the result between the steps of the next block,
 * because the conversion of a block takes as long as several steps. */
#include "interpreter/kernels/integer/gemm_int.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { TILE = 16, PANEL = 16, WIDTH = 2 * PANEL, GROUP = 64 };

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
    TO_RANGE,      /* floats of which only the range is collected */
    TO_QUOTIENTS,  /* floats that are quantized */
    TO_ANY,        /* by tare_requantize_avx512 */
};

struct product {
    const struct tare_igemm_output *c;
    const struct tare_requantize *requantize;
    const struct tare_igemm_lines *lines;
    const struct tare_igemm_segments *segments;
    const char *a, *panels;
    int64_t a_stride, panel_stride, n;
    int64_t row_tiles; /* of a line */
    int64_t chunks;    /* steps of a segment */
    int64_t chunk;     /* groups of a step */
    int64_t share;     /* rows of the finished block that are converted in a step */
    bool accumulates;
    enum conversion conversion;
    int32_t low, high; /* TO_BYTES…: the bounds of the result */
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

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i rounded(__m512 x, float add) {
    return _mm512_cvt_roundps_epi32(_mm512_add_ps(x, _mm512_set1_ps(add)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The last stage of the sum of quantized values and the addend, before clamping. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i plus_addend(const struct tare_requantize *r, __m512 x, int64_t at,
                                                          __mmask16 mask) {
    const __m128i bytes = _mm_maskz_loadu_epi8(mask, (const char *)r->addend + at);
    const __m512i other = r->addend_is_unsigned ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
    const __m512 result = tare_dequantize_avx512(&r->of_result, tare_quantize_avx512(&r->first, x));
    return rounded(_mm512_add_ps(result, tare_dequantize_avx512(&r->of_addend, other)), r->second.add);
}

/* Clamps 32 columns of two rows and packs them to bytes: row after row. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i packed_rows(const __m512i x[4], int32_t low, int32_t high) {
    /* each 128-bit lane has 4 bytes of every x */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i first = _mm512_packs_epi32(x[0], x[1]), second = _mm512_packs_epi32(x[2], x[3]);
    __m512i bytes;
    if (high > INT8_MAX) {
        bytes = _mm512_max_epu8(_mm512_packus_epi16(first, second), _mm512_set1_epi8((char)low));
        bytes = _mm512_min_epu8(bytes, _mm512_set1_epi8((char)high));
    } else {
        bytes = _mm512_max_epi8(_mm512_packs_epi16(first, second), _mm512_set1_epi8((char)low));
        bytes = _mm512_min_epi8(bytes, _mm512_set1_epi8((char)high));
    }
    return _mm512_permutexvar_epi32(order, bytes);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_row(const struct product *p, int64_t at, uint32_t mask, __m256i x) {
    if (mask == UINT32_MAX)
        _mm256_storeu_si256((__m256i *)(void *)(p->requantize->to + at), x);
    else
        _mm256_mask_storeu_epi8(p->requantize->to + at, mask, x);
}

/* Rows `row` … `end` of both tiles. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_bytes(const struct product *p, const struct finished *f, int64_t row,
                                                       int64_t end, const bool has_addend) {
    const struct tare_requantize *r = p->requantize;
    const float *scales = r->scale + p->c->column + f->columns.first;
    const __m512 scale[2] = { _mm512_loadu_ps(scales), _mm512_maskz_loadu_ps(mask_of(&f->columns, 1), scales + PANEL) };
    for (; row < end; row++) {
        const int64_t at[2] = { p->c->element + element_of(p, f, 0, row), p->c->element + element_of(p, f, 1, row) };
        const uint32_t mask[2] = { row < f->tiles[0].rows ? f->columns.mask : 0,
                                   row < f->tiles[1].rows ? f->columns.mask : 0 };
        __m512i x[4];
        TARE_UNROLL
        for (int i = 0; i < 4; i++) {
            const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sums_at(f, i / 2, row, i % 2)), scale[i % 2]);
            x[i] = has_addend ? plus_addend(r, real, at[i / 2] + i % 2 * PANEL, (__mmask16)(mask[i / 2] >> i % 2 * 16))
                              : rounded(real, r->first.add);
        }
        const __m512i bytes = packed_rows(x, p->low, p->high);
        if (mask[0]) store_row(p, at[0], mask[0], _mm512_castsi512_si256(bytes));
        if (mask[1]) store_row(p, at[1], mask[1], _mm512_extracti64x4_epi64(bytes, 1));
    }
}

/* What the conversion of some rows to floats reads in each of them. */
struct real_columns {
    __m512 scale[2], bias[2], low, high;
    __mmask16 mask[2];
    bool has_bias;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct real_columns load_real_columns(const struct product *p,
                                                                            const struct finished *f) {
    const struct tare_real_stage *real = &p->requantize->real;
    const int64_t column = p->c->column + f->columns.first;
    struct real_columns columns = { .low = _mm512_set1_ps(real->low),
                                    .high = _mm512_set1_ps(real->high),
                                    .mask = { mask_of(&f->columns, 0), mask_of(&f->columns, 1) },
                                    .has_bias = real->bias };
    TARE_UNROLL
    for (int panel = 0; panel < 2; panel++) {
        const int64_t at = column + panel * PANEL;
        columns.scale[panel] = _mm512_maskz_loadu_ps(columns.mask[panel], p->requantize->scale + at);
        columns.bias[panel] = columns.scale[panel];
        if (real->bias) columns.bias[panel] = _mm512_maskz_loadu_ps(columns.mask[panel], real->bias + at);
    }
    return columns;
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_floats(float *to, __m512 x, __mmask16 mask, const bool is_full) {
    if (is_full)
        _mm512_storeu_ps(to, x);
    else
        _mm512_mask_storeu_ps(to, mask, x);
}

/* Where no value is negative, the greatest bits of negative ones are not updated: tare_value_range_end finds a sign bit
 * among the others. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void add_to_range(struct tare_range_avx512 *seen, __m512 x, __mmask16 mask,
                                                        const bool is_full, const bool has_sign) {
    const __m512i bits = _mm512_castps_si512(x);
    if (!is_full) {
        tare_range_add_avx512(seen, x, mask);
        return;
    }
    seen->low = _mm512_min_epi32(seen->low, bits);
    seen->high = _mm512_max_epi32(seen->high, bits);
    if (has_sign) seen->negative = _mm512_max_epu32(seen->negative, bits);
}

/* Prefetches 32 columns of an array for the block that is computed, which is converted next. */
TARE_ALWAYS_INLINE void prefetch_row(const float *at, const int is_written) {
    if (is_written)
        __builtin_prefetch(at, 1), __builtin_prefetch(at + PANEL, 1);
    else
        __builtin_prefetch(at), __builtin_prefetch(at + PANEL);
}

/* Rows `row` … `end` of a tile as floats. `is_full`: all columns are inside. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_tile_reals(struct product *p, const struct finished *f, int tile,
                                                            int64_t row, int64_t end, const enum conversion to,
                                                            const bool is_full, const bool has_sign) {
    const struct tare_real_stage *real = &p->requantize->real;
    const struct real_columns columns = load_real_columns(p, f);
    const int64_t stride = p->c->stride, ahead = p->ahead[tile];
    const float *addend = real->addend;
    float *floats = real->floats;
    int64_t at = p->c->element + element_of(p, f, tile, row);
    struct tare_range_avx512 seen = p->seen;
    for (; row < end; row++, at += stride) {
        if (to == TO_FLOATS) prefetch_row(floats + ahead + row * stride, 1);
        if (addend) prefetch_row(addend + ahead + row * stride, 0);
        TARE_UNROLL
        for (int panel = 0; panel < 2; panel++) {
            const int64_t i = at + panel * PANEL;
            const __mmask16 mask = columns.mask[panel];
            __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sums_at(f, tile, row, panel)), columns.scale[panel]);
            if (columns.has_bias) x = _mm512_add_ps(x, columns.bias[panel]);
            if (addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, addend + i));
            x = _mm512_min_ps(columns.high, _mm512_max_ps(columns.low, x));
            if (to == TO_QUOTIENTS) tare_store_quotients_avx512(p->requantize, x, i, mask);
            if (to == TO_FLOATS) store_floats(floats + i, x, mask, is_full);
            if (to != TO_QUOTIENTS) add_to_range(&seen, x, mask, is_full, has_sign);
        }
    }
    p->seen = seen;
}

/* Rows `row` … `end` of both tiles as floats. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store_reals(struct product *p, const struct finished *f, int64_t row,
                                                       int64_t end, const enum conversion to) {
    const bool is_full = f->columns.mask == UINT32_MAX;
    for (int tile = 0; tile < 2; tile++) {
        const int64_t rows = f->tiles[tile].rows < end ? f->tiles[tile].rows : end;
        if (is_full && p->requantize->real.low >= 0)
            store_tile_reals(p, f, tile, row, rows, to, true, false);
        else if (is_full)
            store_tile_reals(p, f, tile, row, rows, to, true, true);
        else
            store_tile_reals(p, f, tile, row, rows, to, false, true);
    }
}

static TARE_TARGET_AVX512 void store_all_floats(struct product *p, const struct finished *f, int64_t row, int64_t end) {
    store_reals(p, f, row, end, TO_FLOATS);
}
static TARE_TARGET_AVX512 void collect_range(struct product *p, const struct finished *f, int64_t row, int64_t end) {
    store_reals(p, f, row, end, TO_RANGE);
}
static TARE_TARGET_AVX512 void store_quotients(struct product *p, const struct finished *f, int64_t row, int64_t end) {
    store_reals(p, f, row, end, TO_QUOTIENTS);
}

/* Converts up to `count` rows of both tiles. */
static TARE_TARGET_AVX512 void convert(struct product *p, struct finished *f, int64_t count) {
    const int64_t end = f->rows - f->next < count ? f->rows : f->next + count;
    if (f->next == end) return;
    if (p->conversion == TO_BYTES) {
        store_bytes(p, f, f->next, end, false);
    } else if (p->conversion == TO_BYTES_PLUS) {
        store_bytes(p, f, f->next, end, true);
    } else if (p->conversion == TO_FLOATS) {
        store_all_floats(p, f, f->next, end);
    } else if (p->conversion == TO_RANGE) {
        collect_range(p, f, f->next, end);
    } else if (p->conversion == TO_QUOTIENTS) {
        store_quotients(p, f, f->next, end);
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

/* Computes a block while the one before is converted. `rows2`, `columns2`: it has two row tiles, two panels. */
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
            convert(p, f, p->share);
        }
    }
}

/* The initial value of the sums: the offsets, which the conversion then does not add. */
static void start_block(const struct product *p, const struct columns *columns) {
    if (p->conversion != TO_SUMS && p->conversion != TO_ANY) {
        const int32_t *offset = p->requantize->offset + p->c->column + columns->first;
        const int32_t *second = columns->mask >> PANEL ? offset + PANEL : offset;
        TILE_LOAD(0, offset, 0);
        TILE_LOAD(1, second, 0);
        TILE_LOAD(2, offset, 0);
        TILE_LOAD(3, second, 0);
        return;
    }
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
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
    start_block(p, columns);
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

/* Tile `index` of those of all lines; without rows if there is none. The larger tiles of a line are its last. */
static struct row_tile row_tile_at(const struct product *p, int64_t index) {
    const int64_t line = index / p->row_tiles, i = index % p->row_tiles;
    const int64_t rows = p->lines->rows / p->row_tiles, larger = p->lines->rows % p->row_tiles;
    const int64_t before = i - (p->row_tiles - larger);
    const int64_t first = i * rows + (before > 0 ? before : 0);
    if (line >= p->lines->count) return (struct row_tile){ p->a, 0, 0 };
    return (struct row_tile){ p->a + line * p->lines->a_step + first * p->a_stride, line * p->lines->rows + first,
                              rows + (before >= 0) };
}

static TARE_TARGET_AVX512 void run_columns(struct product *p, const struct columns *columns, struct finished *f) {
    for (int64_t t = 0; t < p->row_tiles * p->lines->count; t += 2) {
        const struct row_tile tiles[2] = { row_tile_at(p, t), row_tile_at(p, t + 1) };
        run_block(p, tiles, columns, f);
    }
}

/* ---- the choice of the conversion ---- */

/* Values far from the bounds of int32. */
static bool is_small(float x, float most) {
    return x >= -most && x <= most; /* false for NaN */
}

static TARE_TARGET_AVX512 bool scales_are_small(const float *scale, int64_t n) {
    const __m512 most = _mm512_set1_ps(0.5f);
    __mmask16 small = 0xffff;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 inside = (__mmask16)(0xffffu >> (n - i < 16 ? 16 - (n - i) : 0));
        const __m512 x = _mm512_abs_ps(_mm512_maskz_loadu_ps(inside, scale + i));
        small &= _mm512_cmp_ps_mask(x, most, _CMP_LE_OQ);
    }
    return small == 0xffff;
}

/* Sets the conversion and, for bytes, the bounds of the result. Rounding is monotonic, so values may be clamped to the
 * rounded bounds after rounding; they fit int32 then, with the limits required here. */
static void choose_conversion(struct product *p) {
    const struct tare_requantize *r = p->requantize;
    p->conversion = !r ? TO_SUMS : TO_ANY;
    if (r && r->is_real) p->conversion = r->real.is_quantized ? TO_QUOTIENTS : r->real.floats ? TO_FLOATS : TO_RANGE;
    if (!r || r->is_real || !is_small(r->first.add, 1 << 20) || !scales_are_small(r->scale + p->c->column, p->n))
        return;
    if (!r->addend) {
        p->low = (int32_t)nearbyintf(r->first.low), p->high = (int32_t)nearbyintf(r->first.high);
        p->conversion = TO_BYTES;
        return;
    }
    if (r->least > INT8_MAX || !is_small(r->second.add, 1 << 20) || !is_small(r->of_result.scale, 1 << 18) ||
        !is_small(r->of_addend.scale, 1 << 18) || r->of_result.zero_point != (int16_t)r->of_result.zero_point ||
        r->of_addend.zero_point != (int16_t)r->of_addend.zero_point)
        return;
    p->low = (int32_t)nearbyintf(r->second.low), p->high = (int32_t)nearbyintf(r->second.high);
    if (p->low < r->least) p->low = r->least;
    if (p->high < r->least) p->high = r->least;
    p->conversion = TO_BYTES_PLUS;
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
    const int64_t larger = p->lines->rows % p->row_tiles != 0;
    const uint8_t rows = (uint8_t)(p->lines->rows / p->row_tiles + larger);
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
    p.chunk = p.chunks == 0 ? 1 : segments->groups / p.chunks;
    const int64_t steps = p.chunks * segments->count;
    p.share = steps == 0 ? TILE : (TILE + steps - 1) / steps;
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
