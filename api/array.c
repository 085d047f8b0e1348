/* Conversion between the caller's arrays and tensors. */
#include "base/strbuf.h"
#include "api/handles.h"

#include <string.h>

_Static_assert((int)TARE_ARRAY_MAX_RANK == (int)TARE_MAX_RANK, "dims of an array");
_Static_assert(sizeof(tare_text) == sizeof(struct tare_str) &&
                   offsetof(tare_text, size) == offsetof(struct tare_str, size),
               "string elements are passed to the caller without conversion");

size_t tare_element_size(int32_t dtype) {
    return tare_dtype_is_ref(dtype) ? 0 : tare_dtype_size(dtype);
}

const char *tare_element_name(int32_t dtype) {
    return tare_dtype_name(dtype);
}

int32_t tare_element_from_name(const char *name) {
    int dtype = tare_dtype_from_name(name, strlen(name));
    return tare_dtype_is_ref(dtype) ? 0 : dtype;
}

void tare_public_array(tare_array *out, const char *name, const struct tare_tensor *tensor) {
    *out = (tare_array){ .name = name, .dtype = tensor->dtype, .rank = tensor->shape.rank, .data = tensor->data };
    for (int i = 0; i < tensor->shape.rank; i++)
        out->dims[i] = tensor->shape.dims[i];
}

static tare_status copy_elements(struct tare_tensor *out, const tare_array *array) {
    const tare_text *texts = array->data;
    if (array->dtype != TARE_DTYPE_STRING) {
        if (out->elements) memcpy(out->data, array->data, tare_tensor_bytes(out));
        return TARE_OK;
    }
    for (int64_t i = 0; i < out->elements; i++) {
        if (texts[i].size && !texts[i].data)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "string %lld: data is NULL (expected %zu bytes)", (long long)i,
                             texts[i].size);
        TARE_TRY(tare_tensor_set_string(out, i, texts[i].size ? texts[i].data : "", texts[i].size));
    }
    return TARE_OK;
}

/* Marks tensors over the caller's memory; there is nothing to release. */
static void borrowed(void *arg) {
    (void)arg;
}

bool tare_public_is_borrowed(const struct tare_tensor *tensor) {
    return tare_tensor_is_view_of(tensor, borrowed);
}

static tare_status to_tensor(struct tare_tensor *out, const tare_array *array, bool borrow) {
    const struct tare_dtype_info *info = tare_dtype_get(array->dtype);
    struct tare_shape shape;
    tare_status status;
    int64_t elements;
    if (!info || tare_dtype_is_ref(array->dtype) || info->class == TARE_CLASS_OBJECT || info->class == TARE_CLASS_NONE)
        return TARE_FAIL(TARE_TYPE, "%s is not a dtype of arrays", tare_dtype_name(array->dtype));
    for (size_t i = 0; i < sizeof array->reserved / sizeof *array->reserved; i++)
        if (array->reserved[i]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "reserved member %zu is not zero", i);
    if (array->rank < 0)
        return TARE_FAIL(TARE_SHAPE, "invalid rank (expected 0 to %d, got %d)", TARE_MAX_RANK, (int)array->rank);
    TARE_TRY(tare_shape_from_dims(&shape, array->rank, array->dims));
    TARE_TRY(tare_shape_elements(&elements, &shape));
    if (elements && !array->data)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "data is NULL (expected %lld elements)", (long long)elements);
    if (borrow && elements && array->dtype != TARE_DTYPE_STRING)
        return tare_tensor_wrap(out, array->dtype, &shape, array->data, borrowed, NULL);
    TARE_TRY(tare_tensor_new(out, array->dtype, &shape));
    status = copy_elements(out, array);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

static tare_status make_sample(struct tare_sample *out, const tare_array *arrays, size_t count, bool borrow) {
    *out = (struct tare_sample){ 0 };
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, count + 1);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, count + 1);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!arrays[i].name) return TARE_FAIL(TARE_INVALID_ARGUMENT, "array %zu has no name", i);
        if (tare_sample_find(out, arrays[i].name))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "duplicate array %s", arrays[i].name);
        out->keys[i] = tare_arena_strdup(&out->arena, arrays[i].name);
        if (!out->keys[i]) return TARE_NO_MEMORY;
        TARE_TRY(tare_error_prefix(to_tensor(&out->values[i], &arrays[i], borrow), "array %s", arrays[i].name));
        out->count = i + 1;
    }
    return TARE_OK;
}

tare_status tare_public_sample(struct tare_sample *out, const tare_array *arrays, size_t count) {
    return make_sample(out, arrays, count, false);
}

tare_status tare_public_borrow(struct tare_sample *out, const tare_array *arrays, size_t count) {
    return make_sample(out, arrays, count, true);
}

void tare_public_arrays(tare_array *arrays, const struct tare_sample *sample) {
    for (size_t i = 0; i < sample->count; i++)
        tare_public_array(&arrays[i], sample->keys[i], &sample->values[i]);
}
