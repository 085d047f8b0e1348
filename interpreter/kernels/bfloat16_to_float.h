/* Conversion of bfloat16 arrays to float that also finds the largest magnitude. */
#ifndef TARE_INTERPRETER_KERNELS_BFLOAT16_TO_FLOAT_H
#define TARE_INTERPRETER_KERNELS_BFLOAT16_TO_FLOAT_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

/* Converts `count` values. Returns the largest of their magnitudes and of `most`; INFINITY if one of them is NaN. */
float tare_widen_at(enum tare_cpu_level level, float *to, const uint16_t *from, int64_t count, float most);

#endif
