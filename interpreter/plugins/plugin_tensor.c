/* Access to tensors for libraries. */
#include "interpreter/plugins/host.h"
#include "base/tensor/number.h"

static int tensor_dtype(const tare_op_tensor *tensor) {
    return tensor ? tare_tensor_of(tensor)->dtype : TARE_DT_INVALID;
}

static int tensor_rank(const tare_op_tensor *tensor) {
    return tensor ? tare_tensor_of(tensor)->shape.rank : 0;
}

static int64_t tensor_dim(const tare_op_tensor *tensor, int axis) {
    const struct tare_shape *shape = tensor ? &tare_tensor_of(tensor)->shape : NULL;
    if (!shape) return 0;
    if (axis < 0) axis += shape->rank;
    return axis >= 0 && axis < shape->rank ? shape->dims[axis] : 0;
}

static const int64_t *tensor_dims(const tare_op_tensor *tensor) {
    return tensor ? tare_tensor_of(tensor)->shape.dims : NULL;
}

static int64_t tensor_elements(const tare_op_tensor *tensor) {
    return tensor ? tare_tensor_of(tensor)->elements : 0;
}

/* Strings and handles are internal structs, which are not exposed to libraries. */
static bool has_plain_data(const struct tare_tensor *tensor) {
    return tensor->dtype != TARE_DT_STRING && tensor->dtype != TARE_DT_RESOURCE && tensor->dtype != TARE_DT_VARIANT;
}

static const void *tensor_data(const tare_op_tensor *tensor) {
    return tensor && has_plain_data(tare_tensor_of(tensor)) ? tare_tensor_of(tensor)->data : NULL;
}

static void *tensor_mutable_data(tare_op_tensor *tensor) {
    struct tare_tensor *own = (struct tare_tensor *)tensor;
    return own && has_plain_data(own) ? own->data : NULL;
}

static const char *tensor_string(const tare_op_tensor *tensor, int64_t i, size_t *size) {
    const struct tare_tensor *strings = tare_tensor_of(tensor);
    const struct tare_str *string;
    *size = 0;
    if (!strings || strings->dtype != TARE_DT_STRING || i < 0 || i >= strings->elements) return NULL;
    string = &TARE_CONST_DATA(struct tare_str, strings)[i];
    *size = string->size;
    return string->data ? string->data : "";
}

static int tensor_set_string(tare_op_tensor *tensor, int64_t i, const void *data, size_t size) {
    struct tare_tensor *strings = (struct tare_tensor *)tensor;
    if (!strings || strings->dtype != TARE_DT_STRING)
        return TARE_FAIL(TARE_TYPE, "a string for a tensor of %s",
                         strings ? tare_dtype_name(strings->dtype) : "nothing");
    if (i < 0 || i >= strings->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "string %lld of a tensor of %lld", (long long)i,
                         (long long)strings->elements);
    return tare_tensor_set_string(strings, i, data, size);
}

static float float_from_half(uint16_t bits) {
    return tare_float_from_half(bits);
}

static uint16_t half_from_float(float value) {
    return tare_half_from_float(value);
}

static float float_from_bfloat16(uint16_t bits) {
    return tare_float_from_bfloat16(bits);
}

static uint16_t bfloat16_from_float(float value) {
    return tare_bfloat16_from_float(value);
}

void tare_plugin_host_tensors(struct tare_op_host *host) {
    host->tensor_dtype = tensor_dtype;
    host->tensor_rank = tensor_rank;
    host->tensor_dim = tensor_dim;
    host->tensor_dims = tensor_dims;
    host->tensor_elements = tensor_elements;
    host->tensor_data = tensor_data;
    host->tensor_mutable_data = tensor_mutable_data;
    host->tensor_string = tensor_string;
    host->tensor_set_string = tensor_set_string;
    host->float_from_half = float_from_half;
    host->half_from_float = half_from_float;
    host->float_from_bfloat16 = float_from_bfloat16;
    host->bfloat16_from_float = bfloat16_from_float;
}
