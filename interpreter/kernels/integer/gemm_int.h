/* Matrix products of small integers: exact int32 sums that wrap, whatever the instruction set. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_INT_H
#define TARE_INTERPRETER_KERNELS_GEMM_INT_H

#include "interpreter/kernels/integer/requantize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packing of the weights: panels of 16 columns, with groups of k that match 4 adjacent bytes of A. */
enum tare_igemm_form {
    TARE_IGEMM_TILES, /* A and B int8, four k a group: AMX */
    TARE_IGEMM_QUADS, /* A and B int8, four k a group: AVX-VNNI and VNNI */
    TARE_IGEMM_PAIRS, /* A and B int16, two k a group: every level */
};

/* Rows of A: int8 for tiles and quads, int16 for pairs; see struct tare_gemm_rows. Strides and counts in elements. */
struct tare_igemm_rows {
    const void *data;
    int64_t stride;
    void (*gather)(const void *source, void *block, int64_t stride, int64_t first_row, int64_t rows, int64_t first_k,
                   int64_t count_k);
    const void *source;
    int64_t first; /* the first row to gather */
};

/* The form for int8 rows at a level; int16 rows are always pairs. */
enum tare_igemm_form tare_igemm_form_at(enum tare_cpu_level level);
/* Bytes of packed weights; 0 when the product overflows. */
size_t tare_igemm_packed_bytes(enum tare_igemm_form form, int64_t k, int64_t n);
/* Packs int8 weights. */
void tare_igemm_pack(void *packed, enum tare_igemm_form form, const int8_t *b, int64_t k, int64_t n, int64_t row_stride,
                     int64_t column_stride);
/* Packs int32 weights as pairs; false (with `packed` undefined) if one is outside -32767 … 32767. */
bool tare_igemm_pack_int32(void *packed, const int32_t *b, int64_t k, int64_t n, int64_t row_stride,
                           int64_t column_stride);
/* Narrows `count` values to int16; false when one does not fit. */
bool tare_igemm_narrow(int16_t *to, const int32_t *from, int64_t count);
size_t tare_igemm_scratch_bytes(void);
/* C (m×n, ldc elements per row) = A · packed B. */
void tare_igemm(int32_t *c, int64_t ldc, const struct tare_igemm_rows *a, enum tare_igemm_form form, const void *packed,
                int64_t m, int64_t n, int64_t k, void *scratch);
void tare_igemm_at(enum tare_cpu_level level, int32_t *c, int64_t ldc, const struct tare_igemm_rows *a,
                   enum tare_igemm_form form, const void *packed, int64_t m, int64_t n, int64_t k, void *scratch);

/* Where the result is stored: int32 sums, or requantized in the pass that computes them. */
struct tare_igemm_output {
    int32_t *sums;                            /* of row 0 and column 0; not used with `requantize` */
    int64_t stride;                           /* elements from row to row */
    const struct tare_requantize *requantize; /* NULL: none */
    int64_t element, column;                  /* with `requantize`: those of row 0 and column 0 */
};
/* The output from `rows` rows and `columns` columns further on. */
struct tare_igemm_output tare_igemm_output_at(const struct tare_igemm_output *output, int64_t rows, int64_t columns);
/* True if the product of a level may requantize. */
bool tare_igemm_requantizes(enum tare_cpu_level level);

/* The smallest count from `groups` on that tiles divide into equal steps; `groups` itself for other forms. */
int64_t tare_igemm_filled_groups(enum tare_igemm_form form, int64_t groups);
/* The k of a row of A: `count` segments, `step` bytes apart, of `groups` groups of 4 adjacent bytes. */
struct tare_igemm_segments {
    int64_t count, groups, step;
};
/* Rows of A: `count` lines of `rows` rows; bytes from line to line. The rows of C are consecutive. */
struct tare_igemm_lines {
    int64_t count, rows, a_step;
};
/* C = A · packed B for rows of A in memory, in the form's type (quads: with 128 added), `a_stride` bytes apart. k of
 * the packed weights is that of all segments, whose groups are tare_igemm_filled_groups. */
void tare_igemm_segments_at(enum tare_cpu_level level, const struct tare_igemm_output *c, const void *a,
                            int64_t a_stride, enum tare_igemm_form form, const void *packed,
                            const struct tare_igemm_lines *lines, int64_t n,
                            const struct tare_igemm_segments *segments);

/* ---- for the variants only ---- */

/* C block (+)= A block · panels, in groups of 4 bytes of A and 64 bytes of a panel. `a_stride` and `panel_stride` in
 * bytes. `start`: the initial value of each column's sums; NULL: accumulate into C. */
typedef void tare_igemm_block(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                              int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,
                              const int32_t *start);
tare_igemm_block tare_igemm_pairs_plain, tare_igemm_pairs_avx2, tare_igemm_pairs_avx512, tare_igemm_pairs_vnni,
    tare_igemm_quads_vnni;
tare_igemm_block tare_igemm_pairs_avx_vnni, tare_igemm_quads_avx_vnni;

enum { TARE_IGEMM_TILE_GROUPS = 16 }; /* groups of k in an AMX tile */
/* Steps of up to 16 groups that the groups of a segment are divided into. */
static inline int64_t tare_igemm_tile_steps(int64_t groups) {
    return (groups + TARE_IGEMM_TILE_GROUPS - 1) / TARE_IGEMM_TILE_GROUPS;
}
/* C (+)= A · panels for all lines. */
void tare_igemm_tiles_amx(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                          int64_t panel_stride, const struct tare_igemm_lines *lines, int64_t n,
                          const struct tare_igemm_segments *segments, bool accumulates);

#endif
