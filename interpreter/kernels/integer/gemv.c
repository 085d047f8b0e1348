/* Packing, the portable variant, and the division into panels of products of few rows (gemv.h). */
#include "interpreter/kernels/integer/gemv.h"

#include "base/alloc.h"
#include "base/control.h"
#include "interpreter/kernels/integer/pack_four_rows.h"

#include <math.h>
#include <string.h>

enum { PANEL = TARE_GEMV_PANEL, LINE = TARE_GEMV_LINE, GROUP = 4, LARGE_WEIGHTS = 1 << 20 };

bool tare_gemv_is_for(int64_t m, int64_t n, int64_t k) {
    return m >= 1 && m <= TARE_GEMV_MOST_ROWS && k > 0 && n > 0 && k >= LARGE_WEIGHTS / n;
}

enum tare_gemv_form tare_gemv_form_of(const int8_t *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (((unsigned)b[i] + 8) & ~15u) return TARE_GEMV_BYTES;
    return TARE_GEMV_NIBBLES;
}

/* ---- packing ---- */

static int64_t panel_count(int64_t n) {
    return (n + PANEL - 1) / PANEL;
}
/* k in a line of a panel. */
static int64_t line_k(enum tare_gemv_form form) {
    return form == TARE_GEMV_NIBBLES ? 2 * GROUP : GROUP;
}
static int64_t line_count(enum tare_gemv_form form, int64_t k) {
    return (k + line_k(form) - 1) / line_k(form);
}
/* The packed block: the initial values of each column's sums, then the panels. */
static int64_t starts_bytes(int64_t n) {
    return panel_count(n) * PANEL * (int64_t)sizeof(int32_t);
}

size_t tare_gemv_packed_bytes(enum tare_gemv_form form, int64_t k, int64_t n) {
    int64_t bytes;
    if (k < 0 || n < 0 || k > INT64_MAX - 8 || n > INT64_MAX / 128 ||
        !tare_mul_i64(&bytes, panel_count(n) * LINE, line_count(form, k)) ||
        !tare_add_i64(&bytes, bytes, starts_bytes(n)))
        return 0;
    return (size_t)bytes;
}

/* One panel; the rows of B are read once, in order. */
static void pack_panel(int32_t *starts, uint8_t *to, enum tare_gemv_form form, const int8_t *b, int64_t k, int64_t n,
                       int64_t columns) {
    uint32_t sums[PANEL] = { 0 };
    const bool nibbles = form == TARE_GEMV_NIBBLES;
    int64_t p = 0;
    for (; !nibbles && columns == PANEL && p + GROUP <= k; p += GROUP, b += GROUP * n)
        tare_quad_pack(to + p / GROUP * LINE, sums, b, n);
    memset(to + p / GROUP * LINE, nibbles ? 0x88 : 0, (size_t)(line_count(form, k) * LINE - p / GROUP * LINE));
    for (; p < k; p++, b += n) {
        uint8_t *lane = to + p / line_k(form) * LINE + p % GROUP;
        const int shift = nibbles && p % line_k(form) >= GROUP ? 4 : 0;
        for (int64_t j = 0; j < columns; j++, lane += GROUP) {
            sums[j] += (uint32_t)b[j];
            if (nibbles)
                *lane = (uint8_t)((*lane & (0xf0 >> shift)) | (b[j] + 8) << shift);
            else
                *lane = (uint8_t)b[j];
        }
    }
    for (int64_t j = 0; j < PANEL; j++)
        starts[j] = (int32_t)(0u - 128u * sums[j]); /* the rows of A have 128 added */
}

void tare_gemv_pack(void *packed, enum tare_gemv_form form, const int8_t *b, int64_t k, int64_t n) {
    int32_t *starts = packed;
    uint8_t *to = (uint8_t *)packed + starts_bytes(n);
    for (int64_t first = 0; first < n; first += PANEL, to += line_count(form, k) * LINE)
        pack_panel(starts + first, to, form, b + first, k, n, n - first < PANEL ? n - first : PANEL);
}

/* ---- plain ---- */

/* Weight k of a column. */
static int weight(const struct tare_gemv_part *part, const uint8_t *panel, int64_t k, int column) {
    const uint8_t *byte = panel + k / line_k(part->form) * LINE + column * GROUP + k % GROUP;
    if (part->form == TARE_GEMV_BYTES) return (int8_t)*byte;
    return (k % line_k(part->form) >= GROUP ? *byte >> 4 : *byte & 15) - 8;
}

static int inside(const struct tare_gemv_part *part, int panel, int panels) {
    return panel == panels - 1 ? part->columns : PANEL;
}

void tare_gemv_int_plain(const struct tare_gemv_part *part, int panels) {
    for (int p = 0; p < panels; p++) {
        const uint8_t *panel = part->panels + p * part->panel_bytes;
        for (int64_t i = 0; i < part->m; i++) {
            for (int j = 0; j < inside(part, p, panels); j++) {
                uint32_t sum = (uint32_t)part->start[p * PANEL + j];
                for (int64_t k = 0; k < part->k; k++)
                    sum += (uint32_t)(part->rows[i * part->stride + k] * weight(part, panel, k, j));
                part->sums[i * part->ldc + p * PANEL + j] = (int32_t)sum;
            }
        }
    }
}

void tare_gemv_float_plain(const struct tare_gemv_part *part, int panels) {
    for (int p = 0; p < panels; p++) {
        const uint8_t *panel = part->panels + p * part->panel_bytes;
        for (int64_t i = 0; i < part->m; i++) {
            for (int j = 0; j < inside(part, p, panels); j++) {
                float sum = 0;
                for (int64_t k = 0; k < part->k; k++)
                    sum = fmaf(part->real_rows[i * part->k + k], (float)weight(part, panel, k, j), sum);
                part->real[i * part->ldc + p * PANEL + j] = sum;
            }
        }
    }
}

/* ---- all panels ---- */

static tare_gemv_part_function *int_variant(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_VNNI) return tare_gemv_int_vnni;
    if (level == TARE_CPU_AVX_VNNI) return tare_gemv_int_avx_vnni;
    if (level >= TARE_CPU_AVX2) return tare_gemv_int_avx2;
#endif
    (void)level;
    return tare_gemv_int_plain;
}
static tare_gemv_part_function *float_variant(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_gemv_float_avx512;
    if (level >= TARE_CPU_AVX2) return tare_gemv_float_avx2;
#endif
    (void)level;
    return tare_gemv_float_plain;
}

/* Moves the part by `columns` columns, a multiple of those of a panel. */
static void skip(struct tare_gemv_part *part, int64_t columns) {
    part->panels += columns / PANEL * part->panel_bytes;
    if (part->start) part->start += columns;
    if (part->sums) part->sums += columns;
    if (part->real) part->real += columns;
}

/* `part`: of the first panel of all `n` columns. */
static void run_panels(struct tare_gemv_part *part, tare_gemv_part_function *run, int64_t n,
                       const struct tare_gemv_columns *columns) {
    const int64_t first = !columns ? 0 : columns->first, count = !columns ? n : columns->count;
    skip(part, first);
    for (int64_t column = 0; column < count && !tare_control_is_stopped();) {
        const int panels = count - column > (TARE_GEMV_PANELS - 1) * PANEL ? TARE_GEMV_PANELS : 1;
        const int64_t width = (int64_t)panels * PANEL, left = count - column;
        part->columns = (int)(left < width ? left - (panels - 1) * PANEL : PANEL);
        run(part, panels);
        column += width;
        skip(part, width);
    }
}

static struct tare_gemv_part whole_part(enum tare_gemv_form form, const void *packed, int64_t m, int64_t n, int64_t k) {
    const int64_t lines = line_count(form, k);
    return (struct tare_gemv_part){ .form = form,
                                    .panels = (const uint8_t *)packed + starts_bytes(n),
                                    .panel_bytes = lines * LINE,
                                    .lines = lines,
                                    .m = m,
                                    .k = k,
                                    .ldc = n };
}

static int64_t row_stride(int64_t k) {
    return (k + LINE - 1) / LINE * LINE;
}

size_t tare_gemv_scratch_bytes(int64_t m, int64_t k) {
    return (size_t)(m * row_stride(k));
}

void tare_gemv_int_at(enum tare_cpu_level level, int32_t *c, const int8_t *a, enum tare_gemv_form form,
                      const void *packed, int64_t m, int64_t n, int64_t k, const struct tare_gemv_columns *columns,
                      void *scratch) {
    struct tare_gemv_part part = whole_part(form, packed, m, n, k);
    uint8_t *rows = scratch;
    part.rows = rows;
    part.stride = row_stride(k);
    part.start = packed;
    part.sums = c;
    memset(rows, 0, tare_gemv_scratch_bytes(m, k));
    for (int64_t i = 0; i < m; i++) {
        uint32_t sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += rows[i * part.stride + p] = (uint8_t)(a[i * k + p] ^ -128);
        part.row_sums[i] = (int32_t)sum;
    }
    run_panels(&part, int_variant(level), n, columns);
}

void tare_gemv_float_at(enum tare_cpu_level level, float *c, const float *a, enum tare_gemv_form form,
                        const void *packed, int64_t m, int64_t n, int64_t k, const struct tare_gemv_columns *columns) {
    struct tare_gemv_part part = whole_part(form, packed, m, n, k);
    part.real_rows = a;
    part.real = c;
    run_panels(&part, float_variant(level), n, columns);
}
