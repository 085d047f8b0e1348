/* Matrix products of small integers: exact int32 sums that wrap, whatever the instruction set. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_INT_H
#define TARE_INTERPRETER_KERNELS_GEMM_INT_H

#include "interpreter/kernels/integer/gemm_int_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packing of the weights: panels of 16 columns, with groups of k that match 4 adjacent bytes of A. */
enum tare_igemm_form {
    TARE_IGEMM_TILES, /* A and B int8, four k a group: AMX */
    TARE_IGEMM_QUADS, /* A and B int8, four k a group: AVX-VNNI and VNNI */
    TARE_IGEMM_PAIRS, /* A and B int16, two k a group: every level */
    /* The same for int8 weights, of the int16 numbers x = 256 h + l + 128 that stand for two int8, h and l:
     * 256 Σ h w + Σ l w = Σ x w - 128 Σ w, so a column's sum starts at -128 Σ w. */
    TARE_IGEMM_HALVES,
};
static inline bool tare_igemm_is_pairs(enum tare_igemm_form form) {
    return form >= TARE_IGEMM_PAIRS;
}

/* Rows of A: int8 for tiles and quads, int16 for pairs and halves; see struct tare_gemm_rows. Strides and counts in
 * elements. */
struct tare_igemm_rows {
    const void *data;
    int64_t stride;
    void (*gather)(const void *source, void *block, int64_t stride, int64_t first_row, int64_t rows, int64_t first_k,
                   int64_t count_k);
    const void *source;
    int64_t first; /* the first row to gather */
};

/* The form for int8 rows at a level; int16 rows are always pairs or halves. */
enum tare_igemm_form tare_igemm_form_at(enum tare_cpu_level level);
/* Bytes of packed weights; 0 when the product overflows. */
size_t tare_igemm_packed_bytes(enum tare_igemm_form form, int64_t k, int64_t n);
/* Packs int8 weights. */
void tare_igemm_pack(void *packed, enum tare_igemm_form form, const int8_t *b, int64_t k, int64_t n, int64_t row_stride,
                     int64_t column_stride);
/* Adds a number to the sums of each of n columns, in packed weights of a form other than tiles. */
void tare_igemm_add_starts(void *packed, const int32_t *added, int64_t n);
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

/* True if the product of a level may requantize. */
bool tare_igemm_requantizes(enum tare_cpu_level level);

/* The smallest count from `groups` on that tiles divide into equal steps; `groups` itself for other forms. */
int64_t tare_igemm_filled_groups(enum tare_igemm_form form, int64_t groups);
/* Columns of the product to compute: [first, first + count); `first` is a multiple of 16. */
struct tare_igemm_columns {
    int64_t first, count;
};
/* C = A · packed B for rows of A in memory, in the form's type (quads: with 128 added), `a_stride` bytes apart. k of
 * the packed weights is that of all segments, whose groups are tare_igemm_filled_groups; they have n columns. `output`
 * is that of column 0. `columns`: NULL: all. */
void tare_igemm_segments_at(enum tare_cpu_level level, const struct tare_igemm_output *output, const void *a,
                            int64_t a_stride, enum tare_igemm_form form, const void *packed,
                            const struct tare_igemm_lines *lines, int64_t n, const struct tare_igemm_columns *columns,
                            const struct tare_igemm_segments *segments);

#endif
