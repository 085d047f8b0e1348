/* Variables: a value that nodes read and assign. Values are replaced, never written while they are shared, except those
 * of TensorFlow 1's reference variables that a run writes: there, as in TensorFlow, who has read the variable sees the
 * change. */
#ifndef TARE_INTERPRETER_EXECUTION_VARIABLE_H
#define TARE_INTERPRETER_EXECUTION_VARIABLE_H

#include "interpreter/session.h"

#define TARE_VARIABLE_KIND "variable"

struct tare_variable_object {
    struct tare_object object;
    char *name;
    int dtype;
    struct tare_shape shape;  /* declared */
    struct tare_tensor value; /* dtype INVALID: not initialised */
    bool written_in_place;    /* the memory is the variable's own, and readers share it */
};

/* An uninitialised variable with one reference; NULL: no memory. */
struct tare_variable_object *tare_variable_object_new(const char *name, int dtype, const struct tare_shape *shape);
/* The variable of a handle (a scalar resource, or the reference value of TF1 variables). TARE_INVALID_ARGUMENT if
 * the handle refers to another kind of object. */
tare_status tare_variable_from_handle(struct tare_variable_object **out, const struct tare_tensor *handle);
/* A share of the value. TARE_INVALID_ARGUMENT "variable 'v' is not initialised". */
tare_status tare_variable_read(struct tare_tensor *out, const struct tare_variable_object *variable);
/* The value that a step reads for input `handle`: a share of the variable's value if it is a reference, of the tensor
 * itself otherwise (a value fed in place of a reference). `written`: the run also writes the variable, in place from
 * now on. */
tare_status tare_reference_read(struct tare_tensor *out, const struct tare_tensor *handle, bool written);
/* Assign of a reference: writes the value in place if the variable has memory of its own for as many elements. */
tare_status tare_reference_assign(struct tare_variable_object *variable, const struct tare_tensor *value);
/* Replaces the value by a share of `value`. */
void tare_variable_assign(struct tare_variable_object *variable, const struct tare_tensor *value);
/* Makes the variable the only owner of the value's memory, for writing in place, unless readers share it on purpose. */
tare_status tare_variable_own(struct tare_variable_object *variable);
/* A scalar resource tensor that holds `object`; takes over the reference, also on failure. */
tare_status tare_handle_new(struct tare_tensor *out, struct tare_object *object);
/* The object of type `type` of a handle; TARE_INVALID_ARGUMENT otherwise. */
tare_status tare_handle_object(struct tare_object **out, const struct tare_tensor *handle,
                               const struct tare_object_type *type);

#endif
