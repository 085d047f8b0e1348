/* In-place arithmetic for assignments and scatters into variables. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_ACCUMULATE_H
#define TARE_INTERPRETER_OPS_SUPPORT_ACCUMULATE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum tare_accumulate {
    TARE_ACCUMULATE_ADD,
    TARE_ACCUMULATE_SUB,
    TARE_ACCUMULATE_MUL,
    TARE_ACCUMULATE_DIV,
    TARE_ACCUMULATE_MIN,
    TARE_ACCUMULATE_MAX,
};

/* to[i] = to[i] op from[i] for i < n; from[0] throughout when `scalar`. Integers wrap; half and bfloat16 are computed
 * in float and rounded. TARE_INVALID_ARGUMENT for an integer division by zero, TARE_UNSUPPORTED for other dtypes. */
tare_status tare_accumulate(enum tare_accumulate how, int dtype, void *to, const void *from, int64_t n, bool scalar);

#endif
