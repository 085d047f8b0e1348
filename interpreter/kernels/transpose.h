/* Transposition of matrices. */
#ifndef TARE_INTERPRETER_KERNELS_TRANSPOSE_H
#define TARE_INTERPRETER_KERNELS_TRANSPOSE_H

#include "interpreter/kernels/cpu.h"

#include <stddef.h>
#include <stdint.h>

/* to [columns, rows] = transpose of from [rows, columns], whose elements have 1, 2, 4, 8 or 16 bytes. */
void tare_transpose(void *to, const void *from, size_t element_size, int64_t rows, int64_t columns);
/* to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns. */
void tare_transpose_double(enum tare_cpu_level level, double *to, int64_t to_step, const double *from,
                           int64_t from_step, int64_t rows, int64_t columns);

#endif
