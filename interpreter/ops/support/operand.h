/* Operands that specify shapes: axes, lists of dims, counts. Shape inference reads them where they are
 * known; a kernel gets its output shapes from its row's shape inference, so each rule is implemented once. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_OPERAND_H
#define TARE_INTERPRETER_OPS_SUPPORT_OPERAND_H

#include "interpreter/kernel.h"

/* Input `i` must be a vector (where its rank is known): *length, or -1 when it is not known. */
tare_status tare_operand_vector(const struct tare_infer *infer, size_t i, const char *what, int64_t *length);
/* The values of an integer or bool input of at most TARE_MAX_RANK elements; *count is -1 when they are not known. */
tare_status tare_operand_list(const struct tare_infer *infer, size_t i, const char *what, int64_t values[TARE_MAX_RANK],
                              int *count);
/* The value of a scalar input (a vector of one element passes, as in TensorFlow's older kernels); false: not known. */
bool tare_operand_scalar(const struct tare_infer *infer, size_t i, int64_t *value);
/* *out = axis counted from the front. "Expected dimension in the range [-2, 2), but got 5". */
tare_status tare_operand_axis(int *out, int64_t axis, int rank);
/* Attribute `axis` of Pack and Unpack, counted from the front. "axis = 3 not in [-2, 2)". */
tare_status tare_operand_pack_axis(int *out, const struct tare_node *node, int rank);
/* Input `i` must have rank `rank` (where known). */
tare_status tare_operand_rank(const struct tare_infer *infer, size_t i, const char *what, int rank);
/* A shape of `rank` unknown dims. */
struct tare_shape tare_operand_unknown_dims(int rank);
/* A vector of `length` elements (-1: not known). */
struct tare_shape tare_operand_vector_shape(int64_t length);
/* Appends dims first … last-1 of `shape` to `out`; `out` becomes unknown when either is, TARE_SHAPE past the highest
 * rank.
 */
tare_status tare_operand_append(struct tare_shape *out, const struct tare_shape *shape, int first, int last);

/* The output shapes of this execution, by the row's inference on the actual inputs; scratch memory. A dim stays -1 only
 * where the op's result depends on data. Fails if the inputs are incompatible. */
tare_status tare_operand_shapes(struct tare_kernel *kernel, struct tare_shape **shapes);
/* Creates output 0 with the first of them and the dtype of input `like`. */
tare_status tare_operand_output(struct tare_kernel *kernel, size_t like);

#endif
