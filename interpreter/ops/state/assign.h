/* Modification of variables, shared by resource variables and TensorFlow 1's reference variables. */
#ifndef TARE_INTERPRETER_OPS_STATE_ASSIGN_H
#define TARE_INTERPRETER_OPS_STATE_ASSIGN_H

#include "interpreter/execution/variable.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/accumulate.h"

/* Finds the variable of a node that declares one (VarHandleOp, VariableV2): in the main graph by node, otherwise by
 * container and name; creates it uninitialized if it does not exist. Returns a new reference. */
tare_status tare_assign_declared(struct tare_variable_object **out, const struct tare_kernel *kernel);
/* TARE_TYPE or TARE_SHAPE if the variable cannot have the value; with `validate` its shape must match the declared one.
 */
tare_status tare_assign_check(const struct tare_variable_object *variable, const struct tare_tensor *value,
                              bool validate);
/* Sets the variable to a shared reference to `value`, after that check. */
tare_status tare_assign_value(struct tare_variable_object *variable, const struct tare_tensor *value, bool validate);
/* value op= operand, of the same shape. */
tare_status tare_assign_accumulate(struct tare_variable_object *variable, const struct tare_tensor *operand,
                                   enum tare_accumulate how);
/* How a scatter combines; SET replaces. */
enum { TARE_ASSIGN_SET = -1 };
/* rows of the value selected by `indices` op= `updates` (shape: the indices' followed by a row's, or a scalar). */
tare_status tare_assign_rows(struct tare_variable_object *variable, const struct tare_tensor *indices,
                             const struct tare_tensor *updates, int how);
/* The same for index tuples. */
tare_status tare_assign_tuples(struct tare_variable_object *variable, const struct tare_tensor *indices,
                               const struct tare_tensor *updates, int how);

/* The kernel of CountUpTo: output 0 is the value of the scalar variable of input 0, which is then incremented;
 * TARE_INVALID_ARGUMENT if it has reached the attribute `limit`. */
tare_status tare_assign_count(struct tare_kernel *kernel);
/* The kernel of the ops that return whether the variable of input 0 has a value. */
tare_status tare_assign_is_initialized(struct tare_kernel *kernel);

#endif
