/* A group of element-wise steps bound to its operands (grouping_run.c), which the frame keeps for the next run. */
#ifndef TARE_INTERPRETER_EXECUTION_GROUPING_BINDING_H
#define TARE_INTERPRETER_EXECUTION_GROUPING_BINDING_H

#include "interpreter/execution/plan.h"
#include "interpreter/kernels/expression.h"
#include "interpreter/kernels/integer/requantize.h"

struct tare_group_binding {
    struct tare_bound_expression bound;
    bool is_kept; /* may be used by the next run, for a result of `shape` */
    struct tare_shape shape;
    bool requantizes; /* `requantize` is what the expression computes */
    struct tare_requantize requantize;
    struct tare_value_range range; /* of the result, in groups with a range */
    struct tare_arena arena;
};

#endif
