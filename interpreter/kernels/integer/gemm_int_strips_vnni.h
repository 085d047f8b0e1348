/* Products of int8 rows with VNNI that convert the sums of seven rows to bytes while they multiply the next seven. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_INT_STRIPS_VNNI_H
#define TARE_INTERPRETER_KERNELS_GEMM_INT_STRIPS_VNNI_H

#include "interpreter/kernels/integer/requantize_rows.h"

enum {
    TARE_STRIP_ROWS = 7,
    TARE_STRIP_LEAST_GROUPS = TARE_STRIP_ROWS, /* of k: one follows each row that is converted */
};

#if TARE_KERNELS_X86
/* The product of consecutive strips of rows by the weights of 32 columns. */
struct tare_strips {
    const char *a, *weights; /* the panels of the columns are `panel_stride` bytes apart */
    int64_t a_stride, panel_stride;
    int64_t groups;       /* of k */
    const char *addend;   /* of the first row; NULL: none. Its numbers have the sign of the result's. */
    uint8_t *to;          /* the first row of the result */
    int64_t stride;       /* of the result and of the addend */
    const int32_t *start; /* of the sums, with the offsets of the conversion */
    const struct tare_quantizer *quantizer;
    bool is_unsigned;  /* the result */
    const char *ahead; /* to prefetch, by `ahead_step` bytes for each group of k */
    int64_t ahead_step;
};

/* Computes `count` strips, an odd number, and stores the results of all but the last, whose sums it leaves in `sums`.
 */
void tare_strips_run(const struct tare_strips *strips, int64_t count,
                     int32_t sums[TARE_STRIP_ROWS][2 * TARE_ROW_LANES]);
#endif

#endif
