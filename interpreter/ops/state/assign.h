/* Changing variables, for resource variables and TF1's reference variables alike. */
#ifndef TARE_INTERPRETER_OPS_STATE_ASSIGN_H
#define TARE_INTERPRETER_OPS_STATE_ASSIGN_H

#include "interpreter/execution/variable.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/accumulate.h"

/* The variable of a node that declares one (VarHandleOp, VariableV2): the main graph's own by the node, else by
 * container and name, made uninitialised when there is none. Gives another reference. */
tare_status tare_assign_declared(struct tare_variable_object **out, const struct tare_kernel *kernel);
/* The value becomes a share of `value`; with `validate` its shape must fit the declared one. */
tare_status tare_assign_value(struct tare_variable_object *variable, const struct tare_tensor *value, bool validate);
/* value op= operand, of the same shape; with `spread` a scalar on either side stands for as many as the other has, and
 * the value takes that shape. TensorFlow's kernels of AssignAdd and AssignSub refuse every other shape ("Parameters and
 * update must be the same size"); the spreading is for models whose signature feeds a vector to a scalar counter, which
 * other executors answer by broadcasting (docs/unsupported.md). */
tare_status tare_assign_accumulate(struct tare_variable_object *variable, const struct tare_tensor *operand,
                                   enum tare_accumulate how, bool spread);
/* How a scatter combines; SET replaces. */
enum { TARE_ASSIGN_SET = -1 };
/* Rows of the value named by `indices` op= `updates` (indices' shape and a row's, or a scalar). */
tare_status tare_assign_rows(struct tare_variable_object *variable, const struct tare_tensor *indices,
                             const struct tare_tensor *updates, int how);
/* The same for index tuples. */
tare_status tare_assign_tuples(struct tare_variable_object *variable, const struct tare_tensor *indices,
                               const struct tare_tensor *updates, int how);

/* The kernel of CountUpTo: output 0 is the scalar variable behind input 0, which grows by one; TARE_INVALID_ARGUMENT
 * when it has reached attribute `limit`. */
tare_status tare_assign_count(struct tare_kernel *kernel);

#endif
