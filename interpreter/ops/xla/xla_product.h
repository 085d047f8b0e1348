/* What XlaDot and XlaConv have in common: the arithmetic of a product, its operands, and how its result becomes output
 * 0 or reaches a consumer. */
#ifndef TARE_INTERPRETER_OPS_XLA_XLA_PRODUCT_H
#define TARE_INTERPRETER_OPS_XLA_XLA_PRODUCT_H

#include "interpreter/kernel.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/support/weights.h"

/* What a node keeps between its executions: the first member of its kernel's state. */
struct tare_xla_kept {
    struct tare_weights weights;
    int output_dtype; /* 0: not read yet */
};

/* Exact int32 sums of integers, float sums (also of half, bfloat16 and int8 operands), double sums; sums of 64-bit
 * integers, which wrap, and of complex numbers. */
enum tare_xla_arithmetic {
    TARE_XLA_EXACT,
    TARE_XLA_FLOATS,
    TARE_XLA_DOUBLES,
    TARE_XLA_LONGS,
    TARE_XLA_COMPLEX64,
    TARE_XLA_COMPLEX128
};

/* A zeroed state of `state_size` bytes that begins with a struct tare_xla_kept. NULL: no memory. */
void *tare_xla_state_new(const struct tare_kernel *kernel, size_t state_size);

int tare_xla_output_dtype(const struct tare_kernel *kernel);
/* TARE_UNSUPPORTED: no arithmetic computes `output` from these dtypes. */
tare_status tare_xla_choose(enum tare_xla_arithmetic *out, int lhs, int rhs, int output);
/* The dtype of a sum, and its bytes. */
int tare_xla_sum_dtype(enum tare_xla_arithmetic arithmetic);
size_t tare_xla_element_size(enum tare_xla_arithmetic arithmetic);
bool tare_xla_is_int8(int dtype);

/* Returns operand `tensor` in the given axis order: unchanged for exact sums, otherwise converted to the dtype of the
 * sums, in scratch. NULL: no memory. */
const void *tare_xla_operand(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic,
                             const struct tare_tensor *tensor, const int *order);
/* Whether the packed weights are cached, in which case the weights themselves are not read. */
bool tare_xla_is_packed(const struct tare_kernel *kernel, int64_t key, bool plain);
/* The dtype of the left operand of exact sums; TARE_EXACT_HALVES where the consumer joins them. */
int tare_xla_left_dtype(const struct tare_kernel *kernel);
/* Both operands of exact sums. `needs_rhs` false: the weights are packed, and rhs stays NULL if lhs is
 * int8 or halves. */
tare_status tare_xla_exact(struct tare_exact *exact, struct tare_kernel *kernel, const int *lhs_order,
                           const int *rhs_order, bool needs_rhs, bool plain);

/* The buffer for the result before rounding and reordering: the output's memory if neither is necessary. NULL: no
 * memory. */
void *tare_xla_result_room(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic, bool in_place);
/* Converts sums to the output's dtype; integers keep their low bits. */
void tare_xla_store(struct tare_tensor *output, enum tare_xla_arithmetic arithmetic, const void *values);

/* Offers the result to the consumer, if there is one; otherwise, or if it refuses, creates the output. */
tare_status tare_xla_begin_output(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic, int dtype,
                                  const struct tare_shape *shape, bool may_pass);
/* The consumer that takes the result; NULL: none does. */
struct tare_consumer *tare_xla_taking_consumer(const struct tare_kernel *kernel);

#endif
