/* Matrix products in double: C = A·B. Every element is one chain of fused multiply-adds in the order of k, starting at
 * +0 (rule dot-fma-chain, docs/numerics.md), so the bits depend neither on m, n, blocking nor on the instruction set.
 * OpenBLAS's dgemm guarantees neither: its small-matrix and edge kernels are selected by m, n and k, and all of its
 * kernels by the CPU. This file does not depend on tensors or ops. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_DOUBLE_H
#define TARE_INTERPRETER_KERNELS_GEMM_DOUBLE_H

#include "interpreter/kernels/cpu.h"

#include <stddef.h>
#include <stdint.h>

/* Element (i, j) of a matrix is at data[i * row + j * column]. */
struct tare_gemm_double_matrix {
    const double *data;
    int64_t row, column;
};

/* Number of doubles of scratch that a product with B [k, n] needs; 0 if the size overflows or is negative. */
size_t tare_gemm_double_scratch(int64_t k, int64_t n);
/* c [m, n] = a [m, k] · b [k, n] by the kernels of `level`, which the machine must have. c is row-major and contiguous;
 * k = 0 yields zeros. */
void tare_gemm_double(enum tare_cpu_level level, double *c, const struct tare_gemm_double_matrix *a,
                      const struct tare_gemm_double_matrix *b, int64_t m, int64_t n, int64_t k, double *scratch);

#endif
