#include "interpreter/kernels/integer/gemm_int.h"

#include "base/alloc.h"
#include "base/control.h"
#include "interpreter/kernels/integer/pack_four_rows.h"

#include <string.h>

enum {
    PANEL = 16,
    GROUP = 64,                                         /* bytes of a panel for 4 bytes of A */
    TILES_SLACK = (TARE_IGEMM_TILE_GROUPS - 1) * GROUP, /* that the last tile of the last panel may read */
    BLOCK_ROWS = 144,
    BLOCK_BYTES = 1024,              /* of a row of A gathered at a time */
    BLOCK_STRIDE = BLOCK_BYTES + 64, /* see the float product */
};

enum tare_igemm_form tare_igemm_form_at(enum tare_cpu_level level) {
    if (level >= TARE_CPU_AMX) return TARE_IGEMM_TILES;
    return level >= TARE_CPU_VNNI || level == TARE_CPU_AVX_VNNI ? TARE_IGEMM_QUADS : TARE_IGEMM_PAIRS;
}

static int64_t group_size(enum tare_igemm_form form) {
    return tare_igemm_is_pairs(form) ? 2 : 4;
}
static int64_t element_size(enum tare_igemm_form form) {
    return tare_igemm_is_pairs(form) ? 2 : 1;
}
int64_t tare_igemm_filled_groups(enum tare_igemm_form form, int64_t groups) {
    const int64_t steps = tare_igemm_tile_steps(groups);
    return form != TARE_IGEMM_TILES || steps == 0 ? groups : (groups + steps - 1) / steps * steps;
}
static int64_t panel_count(int64_t n) {
    return (n + PANEL - 1) / PANEL;
}
static int64_t group_count(enum tare_igemm_form form, int64_t k) {
    return (k + group_size(form) - 1) / group_size(form);
}

/* The packed block: the columns' starting sums, then the panels. */
static int64_t starts_bytes(int64_t n) {
    return panel_count(n) * PANEL * (int64_t)sizeof(int32_t);
}

size_t tare_igemm_packed_bytes(enum tare_igemm_form form, int64_t k, int64_t n) {
    int64_t bytes;
    if (k < 0 || n < 0 || k > INT64_MAX - 4 || n > INT64_MAX / 128 ||
        !tare_mul_i64(&bytes, panel_count(n) * GROUP, group_count(form, k)) ||
        !tare_add_i64(&bytes, bytes, starts_bytes(n) + (form == TARE_IGEMM_TILES ? TILES_SLACK : 0)))
        return 0;
    return (size_t)bytes;
}

/* One panel; the rows of B are read once, in order. */
static void pack_quad_panel(int32_t *starts, int8_t *to, const int8_t *b, int64_t k, int64_t columns,
                            int64_t row_stride, int64_t column_stride) {
    uint32_t sums[PANEL] = { 0 };
    int64_t p = 0;
    for (; columns == PANEL && column_stride == 1 && p + 4 <= k; p += 4, b += 4 * row_stride)
        tare_quad_pack(to + p / 4 * GROUP, sums, b, row_stride);
    memset(to + p / 4 * GROUP, 0, (size_t)((group_count(TARE_IGEMM_QUADS, k) - p / 4) * GROUP));
    for (; p < k; p++, b += row_stride) {
        int8_t *lane = to + p / 4 * GROUP + p % 4;
        for (int64_t j = 0; j < columns; j++, lane += 4) {
            *lane = b[j * column_stride];
            sums[j] += (uint32_t)b[j * column_stride];
        }
    }
    for (int64_t j = 0; j < PANEL; j++)
        starts[j] = (int32_t)(0u - 128u * sums[j]); /* the rows of A have 128 added */
}

/* Tiles ignore the starting sums, which products of few rows use. */
static void finish_tiles(void *packed, int64_t k, int64_t n) {
    memset((char *)packed + tare_igemm_packed_bytes(TARE_IGEMM_TILES, k, n) - TILES_SLACK, 0, TILES_SLACK);
}

static void pack_quads(void *packed, const int8_t *b, int64_t k, int64_t n, int64_t row_stride, int64_t column_stride) {
    int32_t *starts = packed;
    int8_t *to = (int8_t *)packed + starts_bytes(n);
    for (int64_t first = 0; first < n; first += PANEL, to += group_count(TARE_IGEMM_QUADS, k) * GROUP)
        pack_quad_panel(starts + first, to, b + first * column_stride, k, n - first < PANEL ? n - first : PANEL,
                        row_stride, column_stride);
}

#define PACK_PAIRS(name, type)                                                                                         \
    static bool name(void *packed, const type *b, int64_t k, int64_t n, int64_t row_stride, int64_t column_stride) {   \
        int16_t *to = (int16_t *)((char *)packed + starts_bytes(n));                                                   \
        memset(packed, 0, (size_t)starts_bytes(n));                                                                    \
        bool fits = true;                                                                                              \
        for (int64_t first = 0; first < n; first += PANEL) {                                                           \
            const int64_t columns = n - first < PANEL ? n - first : PANEL;                                             \
            for (int64_t g = 0; g < group_count(TARE_IGEMM_PAIRS, k); g++, to += GROUP / 2) {                          \
                for (int64_t i = 0; i < GROUP / 2; i++) {                                                              \
                    const int64_t p = 2 * g + i % 2, j = i / 2;                                                        \
                    const int32_t x = p < k && j < columns ? b[p * row_stride + (first + j) * column_stride] : 0;      \
                    fits = fits && x >= -32767 && x <= 32767;                                                          \
                    to[i] = (int16_t)x;                                                                                \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return fits;                                                                                                   \
    }
PACK_PAIRS(pack_pairs_int8, int8_t)
PACK_PAIRS(pack_pairs_int32, int32_t)
#undef PACK_PAIRS

/* The starting sums of halves. */
static void start_halves(int32_t *starts, const int8_t *b, int64_t k, int64_t n, int64_t row_stride,
                         int64_t column_stride) {
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++)
            starts[j] = (int32_t)((uint32_t)starts[j] - 128u * (uint32_t)b[p * row_stride + j * column_stride]);
}

void tare_igemm_pack(void *packed, enum tare_igemm_form form, const int8_t *b, int64_t k, int64_t n, int64_t row_stride,
                     int64_t column_stride) {
    if (tare_igemm_is_pairs(form))
        pack_pairs_int8(packed, b, k, n, row_stride, column_stride);
    else
        pack_quads(packed, b, k, n, row_stride, column_stride);
    if (form == TARE_IGEMM_HALVES) start_halves(packed, b, k, n, row_stride, column_stride);
    if (form == TARE_IGEMM_TILES) finish_tiles(packed, k, n);
}

void tare_igemm_add_starts(void *packed, const int32_t *added, int64_t n) {
    int32_t *starts = packed;
    for (int64_t j = 0; j < n; j++)
        starts[j] = (int32_t)((uint32_t)starts[j] + (uint32_t)added[j]);
}

bool tare_igemm_pack_int32(void *packed, const int32_t *b, int64_t k, int64_t n, int64_t row_stride,
                           int64_t column_stride) {
    return pack_pairs_int32(packed, b, k, n, row_stride, column_stride);
}

bool tare_igemm_narrow(int16_t *to, const int32_t *from, int64_t count) {
    uint32_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        to[i] = (int16_t)from[i];
        outside |= (uint32_t)(from[i] ^ to[i]);
    }
    return outside == 0;
}

bool tare_igemm_requantizes(enum tare_cpu_level level) {
    return TARE_KERNELS_X86 && level >= TARE_CPU_AVX2;
}

void tare_igemm_pairs_plain(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                            int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,
                            const int32_t *start) {
    for (int64_t i = 0; i < rows; i++) {
        const char *row = (const char *)a + i * a_stride;
        for (int64_t j = 0; j < n; j++) {
            const int16_t *b = (const int16_t *)((const char *)panels + j / PANEL * panel_stride) + j % PANEL * 2;
            uint32_t sum = (uint32_t)(!start ? c->sums[i * c->stride + j] : start[j]);
            for (int64_t s = 0; s < segments->count; s++) {
                const int16_t *x = (const int16_t *)(const void *)(row + s * segments->step);
                for (int64_t g = 0; g < segments->groups; g++, b += GROUP / 2)
                    sum += (uint32_t)(x[2 * g] * b[0]) + (uint32_t)(x[2 * g + 1] * b[1]);
            }
            c->sums[i * c->stride + j] = (int32_t)sum;
        }
    }
}

static bool is_quads_vnni(enum tare_cpu_level level, enum tare_igemm_form form) {
    return TARE_KERNELS_X86 && level >= TARE_CPU_VNNI && form == TARE_IGEMM_QUADS;
}

static tare_igemm_block *block_of(enum tare_cpu_level level, enum tare_igemm_form form) {
#if TARE_KERNELS_X86
    if (level == TARE_CPU_AVX_VNNI)
        return form == TARE_IGEMM_QUADS ? tare_igemm_quads_avx_vnni : tare_igemm_pairs_avx_vnni;
    if (level >= TARE_CPU_VNNI) return tare_igemm_pairs_vnni;
    if (level >= TARE_CPU_AVX512) return tare_igemm_pairs_avx512;
    if (level >= TARE_CPU_AVX2) return tare_igemm_pairs_avx2;
#endif
    (void)level, (void)form;
    return tare_igemm_pairs_plain;
}

size_t tare_igemm_scratch_bytes(void) {
    return (size_t)BLOCK_ROWS * BLOCK_STRIDE;
}

/* Adds 128 to each byte, which makes int8 unsigned. Writes up to 15 bytes past the end: the rows of a block are padded.
 */
static void add_128(char *bytes, int64_t count) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    const pair flip = { 0x8080808080808080u, 0x8080808080808080u };
    for (int64_t i = 0; i < count; i += 16) {
        pair x;
        memcpy(&x, bytes + i, sizeof x);
        x ^= flip;
        memcpy(bytes + i, &x, sizeof x);
    }
}

/* Gathers a block of rows, filled up to whole groups; quads become unsigned by adding 128. */
static void gather_block(char *block, const struct tare_igemm_rows *a, enum tare_igemm_form form, int64_t row,
                         int64_t rows, int64_t k0, int64_t count) {
    const int64_t size = element_size(form), filled = tare_igemm_filled_groups(form, group_count(form, count)) * 4;
    if (!a->data) a->gather(a->source, block, BLOCK_STRIDE / size, a->first + row, rows, k0, count);
    for (int64_t i = 0; i < rows; i++) {
        char *to = block + i * BLOCK_STRIDE;
        if (a->data)
            memcpy(to, (const char *)a->data + ((a->first + row + i) * a->stride + k0) * size, (size_t)(count * size));
        memset(to + count * size, 0, (size_t)(filled - count * size));
        if (form == TARE_IGEMM_QUADS) add_128(to, filled);
    }
}

/* C = A · panels for all lines. `start`: NULL to accumulate into C. */
static void run_lines(enum tare_cpu_level level, enum tare_igemm_form form, const struct tare_igemm_output *c,
                      const void *a, int64_t a_stride, const void *panels, int64_t panel_stride,
                      const struct tare_igemm_lines *lines, int64_t n, const struct tare_igemm_segments *segments,
                      const int32_t *start) {
#if TARE_KERNELS_X86
    if (form == TARE_IGEMM_TILES) { /* its tiles of rows may belong to several lines */
        tare_igemm_tiles_amx(c, a, a_stride, panels, panel_stride, lines, n, segments, !start);
        return;
    }
    if (is_quads_vnni(level, form)) {
        tare_igemm_lines_vnni(c, a, a_stride, panels, panel_stride, lines, n, segments, start);
        return;
    }
#endif
    for (int64_t line = 0; line < lines->count; line++) {
        const struct tare_igemm_output to = tare_igemm_output_at(c, line * lines->rows, 0);
        block_of(level, form)(&to, (const char *)a + line * lines->a_step, a_stride, panels, panel_stride, lines->rows,
                              n, segments, start);
    }
}

void tare_igemm_at(enum tare_cpu_level level, int32_t *c, int64_t ldc, const struct tare_igemm_rows *a,
                   enum tare_igemm_form form, const void *packed, int64_t m, int64_t n, int64_t k, void *scratch) {
    const int64_t panel_stride = group_count(form, k) * GROUP, size = element_size(form);
    const int64_t block_k = BLOCK_BYTES / size;
    const char *panels = (const char *)packed + starts_bytes(n);
    if (m <= 0 || n <= 0) return;
    for (int64_t row = 0; row < m; row += BLOCK_ROWS) {
        if (tare_control_is_stopped()) return;
        const int64_t rows = m - row < BLOCK_ROWS ? m - row : BLOCK_ROWS;
        for (int64_t k0 = 0; k0 == 0 || k0 < k; k0 += block_k) {
            const int64_t count = k - k0 < block_k ? k - k0 : block_k;
            gather_block(scratch, a, form, row, rows, k0, count);
            const int64_t groups = tare_igemm_filled_groups(form, group_count(form, count));
            const struct tare_igemm_segments whole = { .count = 1, .groups = groups };
            const struct tare_igemm_output to = { .sums = c + row * ldc, .stride = ldc };
            const struct tare_igemm_lines line = { .count = 1, .rows = rows };
            run_lines(level, form, &to, scratch, BLOCK_STRIDE, panels + k0 * size / 4 * GROUP, panel_stride, &line, n,
                      &whole, k0 == 0 ? packed : NULL);
        }
    }
}

void tare_igemm(int32_t *c, int64_t ldc, const struct tare_igemm_rows *a, enum tare_igemm_form form, const void *packed,
                int64_t m, int64_t n, int64_t k, void *scratch) {
    tare_igemm_at(tare_cpu_level(), c, ldc, a, form, packed, m, n, k, scratch);
}

#if TARE_KERNELS_X86
/* Products of a few rows, such as a step of a recurrent layer: configuring and filling tiles takes longer than their
 * vector instructions (SMALL_PRODUCT). The packed weights of tiles are those of quads, with groups of zeros at the end.
 */
enum { FEW_ROWS = 2, FEW_BYTES = 8192, SMALL_PRODUCT = 256 };

static bool is_small(const struct tare_igemm_lines *lines, int64_t n, const struct tare_igemm_segments *segments) {
    const int64_t rows = lines->count * lines->rows;
    if (segments->count != 1 || rows > FEW_BYTES || rows * (segments->groups * 4 + 16) > FEW_BYTES) return false;
    return rows <= FEW_ROWS || rows * segments->groups * panel_count(n) <= SMALL_PRODUCT;
}

static void run_small(const struct tare_igemm_output *c, const char *a, int64_t a_stride, const int32_t *start,
                      const void *panels, const struct tare_igemm_lines *lines, int64_t n,
                      const struct tare_igemm_segments *segments) {
    _Alignas(64) char rows[FEW_BYTES];
    const int64_t bytes = segments->groups * 4, stride = (bytes + 15) / 16 * 16;
    const int64_t count = lines->count * lines->rows;
    for (int64_t i = 0; i < count; i++) {
        memcpy(rows + i * stride, a + i / lines->rows * lines->a_step + i % lines->rows * a_stride, (size_t)bytes);
        add_128(rows + i * stride, bytes);
    }
    const struct tare_igemm_lines line = { .count = 1, .rows = count };
    tare_igemm_lines_vnni(c, rows, stride, panels, segments->groups * GROUP, &line, n, segments, start);
}
#endif

/* Weights that do not stay in the second-level cache are read once, two panels at a time, for all lines. */
enum { LARGE_WEIGHTS = 512 * 1024 };

void tare_igemm_segments_at(enum tare_cpu_level level, const struct tare_igemm_output *output, const void *a,
                            int64_t a_stride, enum tare_igemm_form form, const void *packed,
                            const struct tare_igemm_lines *lines, int64_t n, const struct tare_igemm_columns *columns,
                            const struct tare_igemm_segments *segments) {
    const int64_t panel_stride = segments->count * segments->groups * GROUP;
    const int64_t first = !columns ? 0 : columns->first, count = !columns ? n : columns->count;
    const struct tare_igemm_output c = tare_igemm_output_at(output, 0, first);
    const int32_t *start = (const int32_t *)packed + first;
    packed = (const char *)packed + starts_bytes(n) + first / PANEL * panel_stride;
#if TARE_KERNELS_X86
    if (form == TARE_IGEMM_TILES && is_small(lines, count, segments)) {
        run_small(&c, a, a_stride, start, packed, lines, count, segments);
        return;
    }
#endif
    const bool is_whole =
        form == TARE_IGEMM_TILES || is_quads_vnni(level, form) || panel_stride * panel_count(count) <= LARGE_WEIGHTS;
    const int64_t width = is_whole ? count : 2 * PANEL;
    for (int64_t column = 0; column < count; column += width) {
        const char *panels = (const char *)packed + column / PANEL * panel_stride;
        const struct tare_igemm_output to = tare_igemm_output_at(&c, 0, column);
        run_lines(level, form, &to, a, a_stride, panels, panel_stride, lines,
                  count - column < width ? count - column : width, segments, start + column);
    }
}
