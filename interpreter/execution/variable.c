/* Variables and handles. */
#include "interpreter/execution/variable.h"
#include "base/alloc.h"

#include <string.h>

static void destroy_variable(struct tare_object *object) {
    struct tare_variable_object *variable = (struct tare_variable_object *)object;
    tare_tensor_reset(&variable->value);
    tare_free(variable->name);
    tare_free(variable);
}

static const struct tare_object_type variable_type = { "variable", destroy_variable };

struct tare_variable_object *tare_variable_object_new(const char *name, int dtype, const struct tare_shape *shape) {
    struct tare_variable_object *variable = tare_calloc(1, sizeof *variable);
    if (!variable) return NULL;
    tare_object_init(&variable->object, &variable_type);
    variable->name = tare_strdup(name);
    variable->dtype = dtype;
    variable->shape = *shape;
    if (variable->name) return variable;
    tare_free(variable);
    return NULL;
}

tare_status tare_handle_new(struct tare_tensor *out, struct tare_object *object) {
    struct tare_shape scalar = tare_shape_scalar();
    tare_status status = tare_tensor_new(out, TARE_DT_RESOURCE, &scalar);
    if (status == TARE_OK)
        tare_tensor_set_object(out, 0, object);
    else
        tare_object_unref(object);
    return status;
}

tare_status tare_handle_object(struct tare_object **out, const struct tare_tensor *handle,
                               const struct tare_object_type *type) {
    struct tare_object *object;
    if ((handle->dtype != TARE_DT_RESOURCE && handle->dtype != TARE_DT_VARIANT) || handle->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "the handle is a %s tensor of %lld elements (expected a scalar resource)",
                         tare_dtype_name(handle->dtype), (long long)handle->elements);
    object = TARE_DATA(struct tare_object *, handle)[0];
    if (!object || object->type != type)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the handle holds %s (expected %s)",
                         object ? object->type->name : "nothing", type->name);
    *out = object;
    return TARE_OK;
}

tare_status tare_variable_from_handle(struct tare_variable_object **out, const struct tare_tensor *handle) {
    struct tare_object *object = NULL;
    TARE_TRY(tare_handle_object(&object, handle, &variable_type));
    *out = (struct tare_variable_object *)object;
    return TARE_OK;
}

tare_status tare_variable_read(struct tare_tensor *out, const struct tare_variable_object *variable) {
    if (!variable->value.dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "variable '%s' is not initialised", variable->name);
    tare_tensor_share(out, &variable->value);
    return TARE_OK;
}

void tare_variable_assign(struct tare_variable_object *variable, const struct tare_tensor *value) {
    struct tare_tensor old = variable->value;
    tare_tensor_share(&variable->value, value);
    tare_tensor_reset(&old);
    variable->written_in_place = false;
}

tare_status tare_variable_own(struct tare_variable_object *variable) {
    struct tare_tensor copy;
    if (!variable->value.dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "variable '%s' is not initialised", variable->name);
    if (variable->written_in_place || tare_tensor_is_exclusive(&variable->value)) return TARE_OK;
    TARE_TRY(tare_tensor_copy(&copy, &variable->value));
    tare_tensor_reset(&variable->value);
    variable->value = copy;
    return TARE_OK;
}

tare_status tare_reference_read(struct tare_tensor *out, const struct tare_tensor *handle, bool written) {
    struct tare_variable_object *variable = NULL;
    if (handle->dtype != TARE_DT_RESOURCE) { /* a fed value in a reference's place */
        tare_tensor_share(out, handle);
        return TARE_OK;
    }
    TARE_TRY(tare_variable_from_handle(&variable, handle));
    if (written && variable->value.dtype != TARE_DT_STRING) {
        TARE_TRY(tare_variable_own(variable));
        variable->written_in_place = true;
    }
    return tare_variable_read(out, variable);
}

tare_status tare_reference_assign(struct tare_variable_object *variable, const struct tare_tensor *value) {
    struct tare_tensor *to = &variable->value;
    struct tare_tensor whole = { 0 };
    if (!variable->written_in_place || to->dtype != value->dtype || to->elements != value->elements) {
        tare_variable_assign(variable, value);
        return TARE_OK;
    }
    if (value->splat) TARE_TRY(tare_tensor_copy(&whole, value));
    if (to->elements) memmove(to->data, value->splat ? whole.data : value->data, tare_tensor_bytes(to));
    to->shape = value->shape;
    tare_tensor_reset(&whole);
    return TARE_OK;
}
