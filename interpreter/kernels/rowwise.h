/* The same vector applied to every row of a matrix [rows, columns]: a bias, a normalisation; and sums of
 * the rows. */
#ifndef TARE_INTERPRETER_KERNELS_ROWWISE_H
#define TARE_INTERPRETER_KERNELS_ROWWISE_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

/* to = from + bias; `to` may be `from`. */
void tare_rowwise_add(float *to, const float *from, const float *bias, int64_t rows, int64_t columns);
/* to = (from - mean) * factor + offset, each step rounded; `to` may be `from`. */
void tare_rowwise_normalize(float *to, const float *from, const float *mean, const float *factor, const float *offset,
                            int64_t rows, int64_t columns);

/* Adds the rows to `sums`, one after another. */
void tare_rowwise_sum(double *sums, const float *from, int64_t rows, int64_t columns);

void tare_rowwise_add_at(enum tare_cpu_level level, float *to, const float *from, const float *bias, int64_t rows,
                         int64_t columns);
void tare_rowwise_normalize_at(enum tare_cpu_level level, float *to, const float *from, const float *mean,
                               const float *factor, const float *offset, int64_t rows, int64_t columns);
void tare_rowwise_sum_at(enum tare_cpu_level level, double *sums, const float *from, int64_t rows, int64_t columns);

#endif
