/* Small double products that read both operands in place, because packing them would take longer than the product, and
 * the transposition of matrices. The same chains as gemm_double.h. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_DOUBLE_SMALL_H
#define TARE_INTERPRETER_KERNELS_GEMM_DOUBLE_SMALL_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stdint.h>

/* C [m, n] = A [m, k] · B [k, n]. Element (i, p) of A is at a[i * a_row + p * a_column]; rows of B and C are
 * contiguous, and C is contiguous as a whole. */
struct tare_gemm_double_small {
    double *c;
    const double *a, *b;
    int64_t a_row, a_column, b_row, m, n, k;
};

/* Whether this path is the faster one for the size, and the level has it. */
bool tare_gemm_double_is_small(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k);
/* Only if tare_gemm_double_is_small. */
void tare_gemm_double_small(enum tare_cpu_level level, const struct tare_gemm_double_small *product);

/* to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns. */
void tare_transpose_double(enum tare_cpu_level level, double *to, int64_t to_step, const double *from,
                           int64_t from_step, int64_t rows, int64_t columns);

#endif
