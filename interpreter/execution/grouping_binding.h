/* A group of element-wise steps bound to its operands (grouping_run.c), which the frame keeps for the next run, and
 * what the next run updates in it (grouping_update.c). */
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

/* A vector of a requantization: a constant times one value. */
enum { TARE_GROUP_FACTORS = 2 };
struct tare_group_factor {
    bool is_float;   /* lanes are float, not int32 */
    bool is_negated; /* the vector is subtracted */
    int value;       /* operand of the group with one element */
    const void *constant;
    void *to; /* array of the requantization */
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
    /* Updates of values that depend on the run: at most one of the two. */
    bool has_factors, has_quotient;
    struct tare_group_factor factors[TARE_GROUP_FACTORS];
    int n_factors;
    int divisor, zero_point; /* operands of the quotient */
    bool is_stale;           /* only `requantize` has the values of this run */
    bool takes_sums;         /* the kernel does not use the requantization */
};

/* Finds the updates of a group that has been bound. */
void tare_group_find_update(struct tare_group_binding *binding, const struct tare_step_group *group);
/* Updates the values; false if the group must be bound again. */
bool tare_group_update(struct tare_group_binding *binding);

/* Computes all elements of an expression without product, on the threads of the session. TARE_NO_MEMORY. */
tare_status tare_group_run_parts(struct tare_session *session, struct tare_exec_frame *frame,
                                 struct tare_bound_expression *bound) TARE_WARN_UNUSED;

#endif
