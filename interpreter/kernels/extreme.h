/* The largest or smallest of float elements, for reductions. */
#ifndef TARE_INTERPRETER_KERNELS_EXTREME_H
#define TARE_INTERPRETER_KERNELS_EXTREME_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stdint.h>

/* The extreme of `count` elements; an infinity if there are none. False if the result depends on the order of
 * comparisons: an element is NaN, or the extreme is zero and an element has its sign bit set. */
bool tare_extreme_at(enum tare_cpu_level level, float *out, const float *x, int64_t count, bool is_maximum);
bool tare_extreme(float *out, const float *x, int64_t count, bool is_maximum);

#endif
