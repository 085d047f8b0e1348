/* Conversion between tensors and TensorProto. */
#include "proto/tensor_message.h"
#include "base/tensor/narrow.h"
#include "base/alloc.h"
#include "proto/field.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor_content is little-endian and copied unchanged");

/* The values of one *_val field. */
struct values {
    const void *data;
    size_t count;
    size_t stride; /* bytes from one value to the next; the element is the first tare_dtype_size of them */
};

tare_status tare_shape_from_message(struct tare_shape *out, const Tensorflow__TensorShapeProto *message) {
    int64_t dims[TARE_MAX_RANK];
    *out = tare_shape_scalar();
    if (!message) return TARE_OK;
    if (message->unknown_rank) {
        if (message->n_dim)
            return TARE_FAIL(TARE_SHAPE, "a shape of unknown rank has %zu dims (expected none)", message->n_dim);
        *out = tare_shape_unknown();
        return TARE_OK;
    }
    if (message->n_dim > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "a shape has rank %zu (expected at most %d)", message->n_dim, TARE_MAX_RANK);
    for (size_t i = 0; i < message->n_dim; i++)
        dims[i] = message->dim[i]->size;
    return tare_shape_from_dims(out, (int)message->n_dim, dims);
}

static void *append(ProtobufCMessage *message, struct tare_arena *arena, unsigned number, size_t count) {
    return tare_field_append(message, protobuf_c_message_descriptor_get_field(message->descriptor, number), arena,
                             count);
}

Tensorflow__TensorShapeProto *tare_shape_to_message(struct tare_arena *arena, const struct tare_shape *shape) {
    ProtobufCMessage *base = tare_message_new(arena, &tensorflow__tensor_shape_proto__descriptor);
    Tensorflow__TensorShapeProto *message = (Tensorflow__TensorShapeProto *)base;
    Tensorflow__TensorShapeProto__Dim **dims;
    if (!message) return NULL;
    message->unknown_rank = shape->rank == TARE_UNKNOWN_RANK;
    if (shape->rank <= 0) return message;
    dims = append(base, arena, 2, (size_t)shape->rank);
    if (!dims) return NULL;
    for (int i = 0; i < shape->rank; i++) {
        dims[i] = (Tensorflow__TensorShapeProto__Dim *)tare_message_new(
            arena, &tensorflow__tensor_shape_proto__dim__descriptor);
        if (!dims[i]) return NULL;
        dims[i]->size = shape->dims[i];
    }
    return message;
}

/* The number of the field that holds values of a dtype. */
static unsigned field_number_of(int dtype) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        return 5;
    case TARE_DT_DOUBLE:
        return 6;
    case TARE_DT_STRING:
        return 8;
    case TARE_DT_COMPLEX64:
        return 9;
    case TARE_DT_INT64:
        return 10;
    case TARE_DT_BOOL:
        return 11;
    case TARE_DT_COMPLEX128:
        return 12;
    case TARE_DT_HALF:
    case TARE_DT_BFLOAT16:
        return 13;
    case TARE_DT_UINT32:
        return 16;
    case TARE_DT_UINT64:
        return 17;
    case TARE_DT_FLOAT8_E5M2:
    case TARE_DT_FLOAT8_E4M3FN:
    case TARE_DT_FLOAT8_E4M3FNUZ:
    case TARE_DT_FLOAT8_E4M3B11FNUZ:
    case TARE_DT_FLOAT8_E5M2FNUZ:
        return 18;
    default:
        return 7; /* int32 and everything narrower */
    }
}

static tare_status find_values(struct values *out, const Tensorflow__TensorProto *message, int dtype) {
    unsigned number = field_number_of(dtype);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(message->base.descriptor, number);
    if (number == 18) {
        *out = (struct values){ .data = message->float8_val.data, .count = message->float8_val.len, .stride = 1 };
        return TARE_OK;
    }
    out->count = tare_field_count(&message->base, field);
    out->stride = tare_field_value_size(field);
    out->data = out->count ? tare_field_value(&message->base, field, 0) : NULL;
    if (!tare_dtype_is_complex(dtype)) return TARE_OK;
    if (out->count % 2) return TARE_FAIL(TARE_SHAPE, "%s has %zu numbers (expected pairs)", field->name, out->count);
    out->count /= 2;
    out->stride *= 2;
    return TARE_OK;
}

/* Sets elements first … first+count-1 of a tensor from the values of the same indices. */
static tare_status store(struct tare_tensor *tensor, int64_t first, int64_t count, const struct values *values) {
    size_t size = tare_dtype_size(tensor->dtype);
    const char *from = (const char *)values->data + (size_t)first * values->stride;
    char *to = (char *)tensor->data + (size_t)first * size;
    for (int64_t i = 0; i < count; i++, from += values->stride, to += size) {
        if (tensor->dtype == TARE_DT_STRING) {
            const ProtobufCBinaryData *bytes = (const void *)from;
            TARE_TRY(tare_tensor_set_string(tensor, first + i, bytes->data, bytes->len));
        } else if (tensor->dtype == TARE_DT_BOOL) {
            *to = *(const protobuf_c_boolean *)(const void *)from != 0;
        } else {
            memcpy(to, from, size);
        }
    }
    return TARE_OK;
}

static bool same_values(const struct values *values, int dtype) {
    const char *first = values->data;
    for (size_t i = 1; i < values->count; i++) {
        const char *other = first + i * values->stride;
        if (dtype == TARE_DT_STRING) {
            const ProtobufCBinaryData *a = (const void *)first, *b = (const void *)other;
            if (a->len != b->len || (a->len && memcmp(a->data, b->data, a->len) != 0)) return false;
        } else if (memcmp(first, other, tare_dtype_size(dtype)) != 0) {
            return false;
        }
    }
    return true;
}

/* The first value, or zero, for every element. */
static tare_status make_splat(struct tare_tensor *out, int dtype, const struct tare_shape *shape, int64_t elements,
                              const struct values *values) {
    struct tare_shape scalar = tare_shape_scalar();
    tare_status status;
    TARE_TRY(tare_tensor_new(out, dtype, &scalar));
    memset(out->data, 0, tare_dtype_size(dtype));
    status = values->count ? store(out, 0, 1, values) : TARE_OK;
    if (status != TARE_OK) {
        tare_tensor_reset(out);
        return status;
    }
    out->shape = *shape;
    out->elements = elements;
    out->splat = elements > 1;
    return TARE_OK;
}

/* Fewer values than elements, but more than one: the last one is repeated. */
static tare_status make_expanded(struct tare_tensor *out, int dtype, const struct tare_shape *shape, int64_t elements,
                                 const struct values *values) {
    size_t size = tare_dtype_size(dtype);
    int64_t count = (int64_t)values->count;
    tare_status status;
    if (same_values(values, dtype)) return make_splat(out, dtype, shape, elements, values);
    if (elements / TARE_TENSOR_MAX_EXPANSION > count && (uint64_t)elements > TARE_TENSOR_FREE_EXPANSION / size)
        return TARE_FAIL(TARE_SHAPE, "a tensor has %lld elements but %lld values (expected at least one in %d)",
                         (long long)elements, (long long)count, TARE_TENSOR_MAX_EXPANSION);
    TARE_TRY(tare_tensor_new(out, dtype, shape));
    status = store(out, 0, count, values);
    for (int64_t i = count; i < elements && status == TARE_OK; i++) {
        /* Repeated strings share the bytes of the last one, which the buffer owns. */
        memcpy((char *)out->data + (size_t)i * size, (char *)out->data + (size_t)(count - 1) * size, size);
    }
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

static bool may_borrow(enum tare_tensor_memory memory, int dtype, const void *data) {
    size_t size = tare_dtype_size(dtype);
    return memory == TARE_TENSOR_BORROW && (uintptr_t)data % (size > 8 ? 8 : size) == 0 && !tare_dtype_is_narrow(dtype);
}

static tare_status from_content(struct tare_tensor *out, int dtype, const struct tare_shape *shape, size_t bytes,
                                const ProtobufCBinaryData *content, enum tare_tensor_memory memory) {
    char text[TARE_SHAPE_TEXT_SIZE];
    if (dtype == TARE_DT_STRING) return TARE_FAIL(TARE_UNSUPPORTED, "a string tensor has tensor_content");
    if (content->len != bytes)
        return TARE_FAIL(TARE_SHAPE, "tensor_content has %zu bytes (expected %zu for %s %s)", content->len, bytes,
                         tare_dtype_name(dtype), tare_shape_text(text, shape));
    if (may_borrow(memory, dtype, content->data)) return tare_tensor_wrap(out, dtype, shape, content->data, NULL, NULL);
    TARE_TRY(tare_tensor_from(out, dtype, shape, content->data));
    tare_tensor_narrow(out);
    return TARE_OK;
}

static tare_status from_values(struct tare_tensor *out, const Tensorflow__TensorProto *message, int dtype,
                               const struct tare_shape *shape, int64_t elements, enum tare_tensor_memory memory) {
    struct values values;
    tare_status status;
    TARE_TRY(find_values(&values, message, dtype));
    if (elements == 0) return tare_tensor_new(out, dtype, shape);
    if (values.count <= 1) return make_splat(out, dtype, shape, elements, &values);
    if (values.count < (uint64_t)elements) return make_expanded(out, dtype, shape, elements, &values);
    if (values.stride == tare_dtype_size(dtype) && dtype != TARE_DT_STRING && may_borrow(memory, dtype, values.data))
        return tare_tensor_wrap(out, dtype, shape, values.data, NULL, NULL);
    TARE_TRY(tare_tensor_new(out, dtype, shape));
    status = store(out, 0, elements, &values);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

tare_status tare_tensor_from_message(struct tare_tensor *out, const Tensorflow__TensorProto *message,
                                     enum tare_tensor_memory memory) {
    const struct tare_dtype_info *info = tare_dtype_get((int)message->dtype);
    struct tare_shape shape;
    int64_t elements;
    size_t bytes;
    memset(out, 0, sizeof *out);
    if (!info || tare_dtype_is_ref((int)message->dtype))
        return TARE_FAIL(TARE_TYPE, "%s is not a tensor dtype", tare_dtype_name((int)message->dtype));
    TARE_TRY(tare_shape_from_message(&shape, message->tensor_shape));
    TARE_TRY(tare_shape_elements(&elements, &shape));
    if (!tare_mul_size(&bytes, (size_t)elements, info->size) || bytes > (size_t)INT64_MAX / 2)
        return TARE_FAIL(TARE_SHAPE, "a tensor of %lld elements is too large", (long long)elements);
    if (info->class == TARE_CLASS_OBJECT) {
        if (elements) return TARE_FAIL(TARE_UNSUPPORTED, "a %s tensor cannot be read from a message", info->name);
        return tare_tensor_new(out, info->dtype, &shape);
    }
    if (message->tensor_content.len)
        return from_content(out, info->dtype, &shape, bytes, &message->tensor_content, memory);
    return from_values(out, message, info->dtype, &shape, elements, memory);
}

static tare_status put_bytes(ProtobufCBinaryData *out, struct tare_arena *arena, const void *data, size_t size,
                             enum tare_tensor_memory memory) {
    *out = (ProtobufCBinaryData){ .len = size };
    if (size == 0) return TARE_OK;
    out->data =
        memory == TARE_TENSOR_BORROW ? (uint8_t *)(uintptr_t)data : (uint8_t *)tare_arena_strndup(arena, data, size);
    return out->data ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status put_strings(Tensorflow__TensorProto *message, struct tare_arena *arena,
                               const struct tare_tensor *tensor, enum tare_tensor_memory memory) {
    size_t count = tensor->splat ? 1 : (size_t)tensor->elements;
    ProtobufCBinaryData *slots = append(&message->base, arena, field_number_of(TARE_DT_STRING), count);
    const struct tare_str *strings = TARE_CONST_DATA(struct tare_str, tensor);
    if (!slots) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(put_bytes(&slots[i], arena, strings[i].data, strings[i].size, memory));
    return TARE_OK;
}

/* The first element into the field of its dtype. */
static tare_status put_value(Tensorflow__TensorProto *message, struct tare_arena *arena,
                             const struct tare_tensor *tensor, enum tare_tensor_memory memory) {
    size_t size = tare_dtype_size(tensor->dtype);
    unsigned number = field_number_of(tensor->dtype);
    int32_t integer;
    void *slot;
    if (number == 18) return put_bytes(&message->float8_val, arena, tensor->data, 1, memory);
    slot = append(&message->base, arena, number, tare_dtype_is_complex(tensor->dtype) ? 2 : 1);
    if (!slot) return TARE_NO_MEMORY;
    switch (number) {
    case 7:
    case 11: /* narrow integers and bool keep their sign in 32 bits */
        integer = (int32_t)tare_tensor_get_i64(tensor, 0);
        memcpy(slot, &integer, sizeof integer);
        break;
    default:
        memcpy(slot, tensor->data, size); /* the slot is zeroed, so the upper half of half_val is 0 */
    }
    return TARE_OK;
}

tare_status tare_tensor_to_message(Tensorflow__TensorProto **out, struct tare_arena *arena,
                                   const struct tare_tensor *tensor, enum tare_tensor_memory memory) {
    ProtobufCMessage *base = tare_message_new(arena, &tensorflow__tensor_proto__descriptor);
    Tensorflow__TensorProto *message = (Tensorflow__TensorProto *)base;
    const struct tare_dtype_info *info = tare_dtype_get(tensor->dtype);
    *out = NULL;
    if (!message) return TARE_NO_MEMORY;
    if (!info) return TARE_FAIL(TARE_TYPE, "%s is not a tensor dtype", tare_dtype_name(tensor->dtype));
    message->dtype = (Tensorflow__DataType)tensor->dtype;
    message->tensor_shape = tare_shape_to_message(arena, &tensor->shape);
    if (!message->tensor_shape) return TARE_NO_MEMORY;
    if (tensor->elements == 0) {
        *out = message;
        return TARE_OK;
    }
    if (info->class == TARE_CLASS_OBJECT)
        return TARE_FAIL(TARE_UNSUPPORTED, "a %s tensor cannot be written into a message", info->name);
    if (tensor->dtype == TARE_DT_STRING)
        TARE_TRY(put_strings(message, arena, tensor, memory));
    else if (tensor->splat || tensor->elements == 1)
        TARE_TRY(put_value(message, arena, tensor, memory));
    else
        TARE_TRY(put_bytes(&message->tensor_content, arena, tensor->data, tare_tensor_bytes(tensor), memory));
    *out = message;
    return TARE_OK;
}
