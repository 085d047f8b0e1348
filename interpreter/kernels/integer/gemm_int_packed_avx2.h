/* Products of int16 rows by AVX2 whose sums become bytes: four rows by a whole panel of 16 columns at a time. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_INT_PACKED_AVX2_H
#define TARE_INTERPRETER_KERNELS_GEMM_INT_PACKED_AVX2_H

#include "interpreter/kernels/integer/gemm_int_block.h"
#include "interpreter/kernels/integer/requantize_rows.h"

enum { TARE_PACKED_ROWS = 4 };

#if TARE_KERNELS_X86
struct tare_packed_tiles {
    const char *a, *weights; /* the first row; the panel */
    int64_t a_stride;
    struct tare_igemm_segments segments;
    const int32_t *start; /* of the sums, with the offsets of the conversion */
    const struct tare_packing_avx2 *packing;
    const float *scale; /* of the columns */
    const char *addend; /* of the first row; NULL: none. Its numbers have the sign of the result's. */
    uint8_t *to;        /* the first row of the result */
    int64_t stride;     /* of the result and of the addend */
};

/* Computes `rows` rows, a multiple of TARE_PACKED_ROWS. */
void tare_packed_tiles_run(const struct tare_packed_tiles *tiles, int64_t rows);
#endif

#endif
