/* The AVX2 and AVX-VNNI variants of the integer product: tiles of up to 6 rows by one panel. They differ in the
 * instructions that add the products of a group. */
#include "interpreter/kernels/integer/avx_vnni.h"
#include "interpreter/kernels/integer/gemm_int_block.h"
#include "interpreter/kernels/integer/requantize_rows.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MAX_ROWS = 6, AHEAD = 2048 }; /* bytes of a panel that are prefetched */
enum step { STEP_PAIRS, STEP_PAIRS_AVX_VNNI, STEP_QUADS_AVX_VNNI };

/* sum += the products of one group: x holds the row's 4 bytes in every lane. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i add_group(__m256i sum, __m256i x, __m256i weights, const enum step step) {
    if (step == STEP_QUADS_AVX_VNNI) return tare_add_quads_avx_vnni(sum, x, weights);
    if (step == STEP_PAIRS_AVX_VNNI) return tare_add_pairs_avx_vnni(sum, x, weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, weights));
}

/* Stores the floats of a tile. */
struct target;
typedef void reals_function(const struct target *to, const __m256i sum[MAX_ROWS][2], int rows);

/* A tile of the output. */
struct target {
    struct tare_igemm_output c;
    int columns; /* of the panel that are inside: those of the masks */
    __m256i last[2];
    struct tare_packing_avx2 packing; /* of bytes, if it is possible */
    bool is_packed;                   /* it is, and the columns are all of the vectors': the sums have the offsets */
    bool is_plain; /* floats without addends and range, and the columns are all of the vectors': likewise */
    reals_function *store_reals; /* NULL: requantize_any stores them */
};

/* A tile whose results are not packed together. */
static __attribute__((noinline)) TARE_TARGET_AVX2 void requantize_any(const struct target *to,
                                                                      const __m256i sum[MAX_ROWS][2], int rows) {
    const struct tare_igemm_output *c = &to->c;
    const struct tare_requantize copy = *c->requantize;
    struct tare_range_avx2 seen = tare_requantize_range_avx2(&copy);
    for (int i = 0; i < rows; i++) {
        for (int column = 0; column < to->columns; column += 8) {
            const int64_t at = c->element + i * c->stride + column;
            if (to->columns - column >= 8)
                tare_requantize_avx2(&copy, sum[i][column / 8], at, c->column + column, 8, &seen);
            else
                tare_requantize_avx2(&copy, sum[i][column / 8], at, c->column + column, to->columns - column, &seen);
        }
    }
    tare_requantize_store_range_avx2(&copy, &seen);
}

/* The same for float results. Adding -0 is no operation where there is no bias. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_reals(const struct target *to, const __m256i sum[MAX_ROWS][2], int rows,
                                                     const bool has_addend, const bool bias_is_last,
                                                     const bool has_range) {
    const struct tare_igemm_output *c = &to->c;
    const struct tare_requantize *r = c->requantize;
    const struct tare_real_stage *real = &r->real;
    const __m256 low = _mm256_set1_ps(real->low), high = _mm256_set1_ps(real->high);
    struct tare_range_avx2 seen = tare_requantize_range_avx2(r);
    for (int v = 0; v * 8 < to->columns; v++) {
        const int64_t column = c->column + v * 8, stride = c->stride;
        const __m256i offset = _mm256_loadu_si256((const __m256i *)(const void *)(r->offset + column));
        const __m256 scale = _mm256_loadu_ps(r->scale + column);
        const __m256 bias = real->bias ? _mm256_loadu_ps(real->bias + column) : _mm256_set1_ps(-0.0f);
        const float *addend = has_addend ? real->addend + c->element + v * 8 : NULL;
        float *at = real->floats + c->element + v * 8;
        for (int i = 0; i < rows; i++, at += stride) {
            __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum[i][v], offset)), scale);
            if (!bias_is_last) x = _mm256_add_ps(x, bias);
            if (has_addend) x = _mm256_add_ps(x, _mm256_loadu_ps(addend + i * stride));
            if (bias_is_last) x = _mm256_add_ps(x, bias);
            x = _mm256_min_ps(high, _mm256_max_ps(low, x));
            _mm256_storeu_ps(at, x);
            if (has_range) tare_range_add_avx2(&seen, x);
        }
    }
    tare_requantize_store_range_avx2(r, &seen);
}
#define STORE_REALS(name, has_addend, bias_is_last, has_range)                                                         \
    static __attribute__((noinline)) TARE_TARGET_AVX2 void name(const struct target *to,                               \
                                                                const __m256i sum[MAX_ROWS][2], int rows) {            \
        store_reals(to, sum, rows, has_addend, bias_is_last, has_range);                                               \
    }
STORE_REALS(store_added_reals, true, false, false)
STORE_REALS(store_biased_reals, true, true, false)
STORE_REALS(store_plain_range, false, false, true)
STORE_REALS(store_added_range, true, false, true)
STORE_REALS(store_biased_range, true, true, true)
#undef STORE_REALS

static reals_function *reals_of(const struct tare_requantize *r) {
    static reals_function *const functions[2][3] = { { NULL, store_added_reals, store_biased_reals },
                                                     { store_plain_range, store_added_range, store_biased_range } };
    if (!r || !r->is_real) return NULL;
    return functions[r->real.range != NULL][r->real.bias_is_last ? 2 : r->real.addend ? 1 : 0];
}

/* Floats without addends and range, of sums in registers that have the offsets. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_plain(const struct target *to, const __m256i sum[MAX_ROWS][2],
                                                     const int rows, const int vectors) {
    const struct tare_igemm_output *c = &to->c;
    const struct tare_requantize *r = c->requantize;
    const struct tare_real_stage *real = &r->real;
    const __m256 low = _mm256_set1_ps(real->low), high = _mm256_set1_ps(real->high);
    TARE_UNROLL
    for (int v = 0; v < vectors; v++) {
        const __m256 scale = _mm256_loadu_ps(r->scale + c->column + v * 8);
        const __m256 bias = real->bias ? _mm256_loadu_ps(real->bias + c->column + v * 8) : _mm256_set1_ps(-0.0f);
        float *at = real->floats + c->element + v * 8;
        TARE_UNROLL
        for (int i = 0; i < rows; i++, at += c->stride) {
            const __m256 x = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[i][v]), scale), bias);
            _mm256_storeu_ps(at, _mm256_min_ps(high, _mm256_max_ps(low, x)));
        }
    }
}

/* The tile's row `row` and vector `vector` as an element of the result. Rows that do not exist repeat the last one. */
TARE_ALWAYS_INLINE int64_t element_of(const struct target *to, int row, int rows, int vector) {
    return to->c.element + (row < rows ? row : rows - 1) * to->c.stride + vector * 8;
}

/* Stores the bytes of four vectors: two rows of 16 columns, or four of 8, from row `row` on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void store_packed(const struct target *to, __m256i packed, int row, int rows,
                                                      const int vectors) {
    const __m128i halves[] = { _mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1) };
    TARE_UNROLL
    for (int k = 0; k < 4; k += vectors) {
        uint8_t *at = to->c.requantize->to + element_of(to, row + k / vectors, rows, 0);
        if (vectors == 2)
            _mm_storeu_si128((__m128i *)(void *)at, halves[k / 2]);
        else
            _mm_storel_epi64((__m128i *)(void *)at,
                             k % 2 ? _mm_unpackhi_epi64(halves[k / 2], halves[k / 2]) : halves[k / 2]);
    }
}

/* Requantizes four vectors of a tile, from row `row` on. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void requantize_four(const struct target *to, const __m256i sum[MAX_ROWS][2],
                                                         int row, int rows, const int vectors, const bool has_addend,
                                                         const bool is_unsigned) {
    const struct tare_packing_avx2 *p = &to->packing;
    const struct tare_requantize *r = to->c.requantize;
    const float *scale = r->scale + to->c.column;
    const float *const scales[] = { scale, scale + 8 % (8 * vectors), scale, scale + 8 % (8 * vectors) };
    const char *addend[4] = { NULL };
    __m256i x[4];
    TARE_UNROLL
    for (int k = 0; k < 4; k++) {
        const int at = row + k / vectors;
        x[k] = sum[at < rows ? at : rows - 1][k % vectors];
        if (has_addend) addend[k] = (const char *)r->addend + element_of(to, at, rows, k % vectors);
    }
    tare_packing_results_avx2(x, p, scales, addend, has_addend, is_unsigned);
    store_packed(to, tare_pack_avx2(p, x, !p->is_signed), row, rows, vectors);
}

/* A tile without addends, whose sums are in registers. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void requantize_packed(const struct target *to, const __m256i sum[MAX_ROWS][2],
                                                           const int rows, const int vectors) {
    TARE_UNROLL
    for (int row = 0; row < rows; row += 4 / vectors)
        requantize_four(to, sum, row, rows, vectors, false, false);
}

/* With addends, for which there are not enough registers. */
#define STORE_TOTALS(name, vectors, is_unsigned)                                                                       \
    static __attribute__((noinline)) TARE_TARGET_AVX2 void name(const struct target *to,                               \
                                                                const __m256i sum[MAX_ROWS][2], int rows) {            \
        for (int row = 0; row < rows; row += 4 / (vectors))                                                            \
            requantize_four(to, sum, row, rows, vectors, true, is_unsigned);                                           \
    }
STORE_TOTALS(store_int8_totals_1, 1, false)
STORE_TOTALS(store_int8_totals_2, 2, false)
STORE_TOTALS(store_uint8_totals_1, 1, true)
STORE_TOTALS(store_uint8_totals_2, 2, true)
#undef STORE_TOTALS

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void requantize_tile(const struct target *to, __m256i sum[MAX_ROWS][2],
                                                         const int rows, const int vectors) {
    const struct tare_requantize *r = to->c.requantize;
    if (to->is_packed && !r->addend) {
        requantize_packed(to, (const __m256i(*)[2])sum, rows, vectors);
        return;
    }
    if (to->is_plain) {
        store_plain(to, (const __m256i(*)[2])sum, rows, vectors);
        return;
    }
    __m256i copy[MAX_ROWS][2]; /* `sum` itself stays in registers */
    TARE_UNROLL
    for (int i = 0; i < vectors * rows; i++)
        copy[i / vectors][i % vectors] = sum[i / vectors][i % vectors];
    if (to->is_packed && r->addend_is_unsigned)
        (vectors == 1 ? store_uint8_totals_1 : store_uint8_totals_2)(to, (const __m256i(*)[2])copy, rows);
    else if (to->is_packed)
        (vectors == 1 ? store_int8_totals_1 : store_int8_totals_2)(to, (const __m256i(*)[2])copy, rows);
    else if (to->store_reals && to->columns == 8 * vectors)
        to->store_reals(to, (const __m256i(*)[2])copy, rows);
    else
        requantize_any(to, (const __m256i(*)[2])copy, rows);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tile(const struct target *to, const char *a, int64_t a_stride, const char *b,
                                              const struct tare_igemm_segments *segments, const int32_t *start,
                                              const int rows, const int vectors, const enum step step) {
    const struct tare_igemm_output *c = &to->c;
    __m256i sum[MAX_ROWS][2];
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = _mm256_maskload_epi32((start ? start : c->sums + i * c->stride) + j * 8, to->last[j]);
    }
    for (int64_t s = 0; s < segments->count; s++, a += segments->step) {
        for (int64_t g = 0; g < segments->groups; g++, b += 64) {
            _mm_prefetch(b + AHEAD, _MM_HINT_T0);
            __m256i weights[2];
            TARE_UNROLL
            for (int j = 0; j < vectors; j++)
                weights[j] = _mm256_loadu_si256((const __m256i *)(b + j * 32));
            TARE_UNROLL
            for (int i = 0; i < rows; i++) {
                int32_t group;
                memcpy(&group, a + i * a_stride + g * 4, sizeof group);
                const __m256i x = _mm256_set1_epi32(group);
                TARE_UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = add_group(sum[i][j], x, weights[j], step);
            }
        }
    }
    if (c->requantize) {
        requantize_tile(to, sum, rows, vectors);
        return;
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        TARE_UNROLL
        for (int j = 0; j < vectors; j++)
            tare_store_ints_avx2(c->sums + i * c->stride + j * 8, sum[i][j], to->columns - j * 8);
    }
}

typedef void tile_function(const struct target *to, const char *a, int64_t a_stride, const char *b,
                           const struct tare_igemm_segments *segments, const int32_t *start);
#define TILE(name, rows, vectors, step)                                                                                \
    static TARE_TARGET_AVX2 void name##_##rows##_##vectors(const struct target *to, const char *a, int64_t a_stride,   \
                                                           const char *b, const struct tare_igemm_segments *segments,  \
                                                           const int32_t *start) {                                     \
        tile(to, a, a_stride, b, segments, start, rows, vectors, step);                                                \
    }
#define TILES(name, step)                                                                                              \
    TILE(name, 1, 1, step)                                                                                             \
    TILE(name, 2, 1, step)                                                                                             \
    TILE(name, 3, 1, step)                                                                                             \
    TILE(name, 4, 1, step)                                                                                             \
    TILE(name, 5, 1, step)                                                                                             \
    TILE(name, 6, 1, step)                                                                                             \
    TILE(name, 1, 2, step)                                                                                             \
    TILE(name, 2, 2, step)                                                                                             \
    TILE(name, 3, 2, step)                                                                                             \
    TILE(name, 4, 2, step)                                                                                             \
    TILE(name, 5, 2, step)                                                                                             \
    TILE(name, 6, 2, step)                                                                                             \
    static tile_function *const name[2][MAX_ROWS] = {                                                                  \
        { name##_1_1, name##_2_1, name##_3_1, name##_4_1, name##_5_1, name##_6_1 },                                    \
        { name##_1_2, name##_2_2, name##_3_2, name##_4_2, name##_5_2, name##_6_2 },                                    \
    };
TILES(pairs, STEP_PAIRS)
TILES(pairs_avx_vnni, STEP_PAIRS_AVX_VNNI)
TILES(quads_avx_vnni, STEP_QUADS_AVX_VNNI)
#undef TILES
#undef TILE

/* The columns of a panel: up to 8 of them are computed by half of the vectors. */
static TARE_TARGET_AVX2 void set_columns(struct target *to, int64_t columns) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    to->columns = (int)(columns < 16 ? columns : 16);
    to->last[0] = _mm256_cmpgt_epi32(_mm256_set1_epi32(to->columns), lane);
    to->last[1] = _mm256_cmpgt_epi32(_mm256_set1_epi32(to->columns - 8), lane);
    to->is_packed = to->packing.is_possible && to->columns % 8 == 0;
    const struct tare_requantize *r = to->c.requantize;
    to->is_plain = r && r->is_real && !r->real.addend && !r->real.range && to->columns % 8 == 0;
}

/* The starting sums of a panel, with the offsets of the conversion. */
static TARE_TARGET_AVX2 void add_offsets(int32_t begin[16], const int32_t *start, const int32_t *offset) {
    for (int i = 0; i < 16; i += 8) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(start + i));
        const __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(offset + i));
        _mm256_storeu_si256((__m256i *)(void *)(begin + i), _mm256_add_epi32(x, y));
    }
}

struct panel_rows {
    const char *a;
    int64_t stride, count;
};

/* Tiles of equally many rows or, the last ones, one more. */
static TARE_TARGET_AVX2 void run_panel(struct target *to, tile_function *const tiles[MAX_ROWS],
                                       const struct panel_rows *rows, const char *panel,
                                       const struct tare_igemm_segments *segments, const int32_t *start) {
    if (rows->count <= 0) return;
    const int64_t count = (rows->count + MAX_ROWS - 1) / MAX_ROWS, least = rows->count / count;
    const int64_t larger = rows->count % count;
    const char *a = rows->a;
    for (int64_t t = 0; t < count; t++) {
        const int64_t size = least + (t >= count - larger);
        tiles[size - 1](to, a, rows->stride, panel, segments, start);
        a += size * rows->stride;
        to->c = tare_igemm_output_at(&to->c, size, 0);
    }
}

static TARE_TARGET_AVX2 void run_tiles(tile_function *const tiles[2][MAX_ROWS], const struct tare_igemm_output *c,
                                       const void *a, int64_t a_stride, const void *panels, int64_t panel_stride,
                                       int64_t rows, int64_t n, const struct tare_igemm_segments *segments,
                                       const int32_t *start) {
    struct target to = { .packing = tare_packing_of_avx2(c->requantize, c->column, n),
                         .store_reals = reals_of(c->requantize) };
    for (int64_t column = 0; column < n; column += 16) {
        const char *panel = (const char *)panels + column / 16 * panel_stride;
        const int32_t *first = start ? start + column : NULL;
        int32_t begin[16];
        to.c = tare_igemm_output_at(c, 0, column);
        set_columns(&to, n - column);
        if (to.is_packed || to.is_plain) {
            add_offsets(begin, first, c->requantize->offset + to.c.column);
            first = begin;
        }
        const struct panel_rows all = { a, a_stride, rows };
        run_panel(&to, tiles[to.columns > 8], &all, panel, segments, first);
    }
}

#define BLOCK(name, tiles)                                                                                             \
    void name(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,                  \
              int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,               \
              const int32_t *start) {                                                                                  \
        run_tiles(tiles, c, a, a_stride, panels, panel_stride, rows, n, segments, start);                              \
    }
BLOCK(tare_igemm_pairs_avx2, pairs)
BLOCK(tare_igemm_pairs_avx_vnni, pairs_avx_vnni)
BLOCK(tare_igemm_quads_avx_vnni, quads_avx_vnni)
#undef BLOCK
#endif
