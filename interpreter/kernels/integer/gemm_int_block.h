/* Blocks of the integer product (gemm_int.h): what is multiplied, where the result is stored, and the kernels of each
 * instruction set. Only gemm_int.h and the files of the kernels include this. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_INT_BLOCK_H
#define TARE_INTERPRETER_KERNELS_GEMM_INT_BLOCK_H

#include "interpreter/kernels/integer/requantize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the result is stored: int32 sums, or requantized in the pass that computes them. */
struct tare_igemm_output {
    int32_t *sums;                            /* of row 0 and column 0; not used with `requantize` */
    int64_t stride;                           /* elements from row to row */
    const struct tare_requantize *requantize; /* NULL: none */
    int64_t element, column;                  /* with `requantize`: those of row 0 and column 0 */
};
/* The output from `rows` rows and `columns` columns further on. */
static inline struct tare_igemm_output tare_igemm_output_at(const struct tare_igemm_output *output, int64_t rows,
                                                            int64_t columns) {
    const int64_t elements = rows * output->stride + columns;
    return (struct tare_igemm_output){ .sums = output->sums ? output->sums + elements : NULL,
                                       .stride = output->stride,
                                       .requantize = output->requantize,
                                       .element = output->element + elements,
                                       .column = output->column + columns };
}

/* The k of a row of A: `count` segments, `step` bytes apart, of `groups` groups of 4 adjacent bytes. */
struct tare_igemm_segments {
    int64_t count, groups, step;
};
/* Rows of A: `count` lines of `rows` rows; bytes from line to line. The rows of C are consecutive. */
struct tare_igemm_lines {
    int64_t count, rows, a_step;
};
/* C block (+)= A block · panels, in groups of 4 bytes of A and 64 bytes of a panel. `a_stride` and `panel_stride` in
 * bytes. `start`: the initial value of each column's sums; NULL: accumulate into C. */
typedef void tare_igemm_block(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                              int64_t panel_stride, int64_t rows, int64_t n, const struct tare_igemm_segments *segments,
                              const int32_t *start);
tare_igemm_block tare_igemm_pairs_plain, tare_igemm_pairs_avx2, tare_igemm_pairs_avx512, tare_igemm_pairs_vnni,
    tare_igemm_pairs_avx_vnni, tare_igemm_quads_avx_vnni;

/* C (+)= A · panels for all lines, in quads. `start` as above. */
void tare_igemm_lines_vnni(const struct tare_igemm_output *c, const void *a, int64_t a_stride, const void *panels,
                           int64_t panel_stride, const struct tare_igemm_lines *lines, int64_t n,
                           const struct tare_igemm_segments *segments, const int32_t *start);

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
