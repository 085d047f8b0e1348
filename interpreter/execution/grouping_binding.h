/* A group of element-wise steps bound to its operands (grouping_run.c), which the frame keeps for the next run. */
#ifndef TARE_INTERPRETER_EXECUTION_GROUPING_BINDING_H
#define TARE_INTERPRETER_EXECUTION_GROUPING_BINDING_H

#include "interpreter/execution/plan.h"
#include "interpreter/kernels/expression.h"
#include "interpreter/kernels/integer/requantize.h"

/* A branch that does not depend on arrays, computed before the result. */
struct tare_computed_branch {
    int source;                         /* operand of the group */
    void *repeated;                     /* copies of a source of one element; NULL: the source itself */
    struct tare_bound_expression bound; /* `to`: an operand of the group */
};

struct tare_group_binding {
    struct tare_bound_expression bound;
    struct tare_computed_branch *branches[TARE_EXPRESSION_MAX_BRANCHES];
    int n_branches;
    bool is_kept; /* may be used by the next run, for a result of `shape` */
    struct tare_shape shape;
    bool requantizes; /* `requantize` is what the expression computes */
    struct tare_requantize requantize;
    struct tare_arena requantize_arena;
    struct tare_value_range range; /* of the result, in groups with a range */
    struct tare_arena arena;
};

#endif
