/* Transposition of matrices in double. */
#ifndef TARE_INTERPRETER_KERNELS_TRANSPOSE_H
#define TARE_INTERPRETER_KERNELS_TRANSPOSE_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

/* to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns. */
void tare_transpose_double(enum tare_cpu_level level, double *to, int64_t to_step, const double *from,
                           int64_t from_step, int64_t rows, int64_t columns);

#endif
