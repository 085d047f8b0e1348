/* Products of few rows with weights that are larger than the caches, as in recurrent cells and dense layers at batch 1:
 * limited by the memory traffic of the weights, which are stored in 8 or 4 bits and read once.
 *
 * Packed weights consist of panels of 16 columns. A panel is a sequence of groups of 4 k, 64 bytes: 4 adjacent bytes of
 * each column. With nibbles, 64 bytes contain two groups, of which the first has the low halves, and each half is the
 * weight plus 8. */
#ifndef TARE_INTERPRETER_KERNELS_GEMV_H
#define TARE_INTERPRETER_KERNELS_GEMV_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_gemv_form {
    TARE_GEMV_BYTES,   /* int8 */
    TARE_GEMV_NIBBLES, /* int8 from -8 to 7 */
};
enum { TARE_GEMV_MOST_ROWS = 4 };

/* True if a product is worth it: at most TARE_GEMV_MOST_ROWS rows, and weights of at least a megabyte as int8. */
bool tare_gemv_is_for(int64_t m, int64_t n, int64_t k);
/* The smallest form of `count` weights. */
enum tare_gemv_form tare_gemv_form_of(const int8_t *b, int64_t count);
/* Bytes of packed weights; 0 when the product overflows. */
size_t tare_gemv_packed_bytes(enum tare_gemv_form form, int64_t k, int64_t n);
/* Packs B, k rows of n adjacent columns. `packed` should be aligned to 64 bytes. */
void tare_gemv_pack(void *packed, enum tare_gemv_form form, const int8_t *b, int64_t k, int64_t n);

/* Columns of a product to compute: [first, first + count); `first` is a multiple of TARE_GEMV_UNIT. */
enum { TARE_GEMV_UNIT = 64 };
struct tare_gemv_columns {
    int64_t first, count;
};
/* C = A · packed B, m ≤ TARE_GEMV_MOST_ROWS rows of adjacent elements; `columns`: NULL: all n of C and B. Int8 rows:
 * exact int32 sums that wrap; `scratch` has tare_gemv_scratch_bytes. Float rows: the chains of dot-fma-chain
 * (interpreter/kernels/gemm.h). */
size_t tare_gemv_scratch_bytes(int64_t m, int64_t k);
void tare_gemv_int_at(enum tare_cpu_level level, int32_t *c, const int8_t *a, enum tare_gemv_form form,
                      const void *packed, int64_t m, int64_t n, int64_t k, const struct tare_gemv_columns *columns,
                      void *scratch);
void tare_gemv_float_at(enum tare_cpu_level level, float *c, const float *a, enum tare_gemv_form form,
                        const void *packed, int64_t m, int64_t n, int64_t k, const struct tare_gemv_columns *columns);

/* ---- for the variants only ---- */

/* Some panels of a product: 1 or TARE_GEMV_PANELS, whole or with the first `columns` of the last. */
enum { TARE_GEMV_PANELS = 4, TARE_GEMV_PANEL = 16, TARE_GEMV_LINE = 64 };
struct tare_gemv_part {
    enum tare_gemv_form form;
    const uint8_t *panels;
    int64_t panel_bytes;
    int64_t lines; /* of 64 bytes in a panel */
    int64_t m, k, ldc;
    int columns; /* of the last panel */
    /* int8 rows: with 128 added, and filled up with zeros to whole lines, `stride` bytes apart; the initial value of
     * the sums of each column, from which 8 times the sum of a row is subtracted with nibbles */
    const uint8_t *rows;
    int64_t stride;
    const int32_t *start;
    int32_t row_sums[TARE_GEMV_MOST_ROWS];
    int32_t *sums;
    /* float rows, k apart */
    const float *real_rows;
    float *real;
};
typedef void tare_gemv_part_function(const struct tare_gemv_part *part, int panels);
tare_gemv_part_function tare_gemv_int_plain, tare_gemv_int_avx2, tare_gemv_int_avx_vnni, tare_gemv_int_vnni;
tare_gemv_part_function tare_gemv_float_plain, tare_gemv_float_avx2, tare_gemv_float_avx512;

#endif
