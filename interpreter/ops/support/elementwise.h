/* Drivers of element loops: one operand, or several that are broadcast together. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_ELEMENTWISE_H
#define TARE_INTERPRETER_OPS_SUPPORT_ELEMENTWISE_H

#include "interpreter/kernel.h"
#include "interpreter/ops/support/loops.h"

enum { TARE_BROADCAST_OPERANDS = 3 };

/* The iteration of operands of different shapes over one output. Adjacent dims with the same broadcasting are merged,
 * so every operand is either contiguous or a single element along the innermost dim. */
struct tare_broadcast {
    struct tare_shape shape; /* of the output */
    int operands;
    int64_t inner, outer;                 /* elements along the innermost dim; rows of that length */
    bool is_one[TARE_BROADCAST_OPERANDS]; /* along the innermost dim */
    int rank;                             /* of the rows */
    int64_t dims[TARE_MAX_RANK], steps[TARE_BROADCAST_OPERANDS][TARE_MAX_RANK];
};

/* TARE_SHAPE "Incompatible shapes: [2,3] vs. [4]". */
tare_status tare_broadcast_plan(struct tare_broadcast *plan, const struct tare_tensor *operands, int count);

/* Position in the rows of a plan: zero it, then after each row call tare_broadcast_next. */
struct tare_broadcast_walk {
    int64_t at[TARE_MAX_RANK];
    int64_t offsets[TARE_BROADCAST_OPERANDS]; /* in elements */
};
void tare_broadcast_next(struct tare_broadcast_walk *walk, const struct tare_broadcast *plan);

/* Output 0 from input 0 by the loop of its dtype; in place where allowed when the dtypes agree. TARE_UNSUPPORTED when
 * there is no loop. */
tare_status tare_elementwise_run1(struct tare_kernel *kernel, tare_loop1 loop, int dtype);
/* Output 0 of `dtype` from inputs 0 and 1, broadcast. */
tare_status tare_elementwise_run2(struct tare_kernel *kernel, tare_loop2 loop, int dtype);

#endif
