/* TensorProto bytes. */
#include "proto/tensor_bytes.h"
#include "proto/message.h"
#include "proto/tensor_message.h"

tare_status tare_tensor_from_bytes(struct tare_tensor *out, const void *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_tensor packed = { 0 };
    ProtobufCMessage *message;
    tare_status status =
        tare_message_unpack(&message, &tensorflow__tensor_proto__descriptor, &arena, data, size, "serialized tensor");
    if (status == TARE_OK)
        status = tare_tensor_from_message(&packed, (const Tensorflow__TensorProto *)message, TARE_TENSOR_COPY);
    if (status == TARE_OK && packed.splat) {
        status = tare_tensor_copy(out, &packed);
        tare_tensor_reset(&packed);
    } else if (status == TARE_OK) {
        *out = packed;
    }
    tare_arena_free(&arena);
    return status;
}

static tare_status content_message(Tensorflow__TensorProto **out, struct tare_arena *arena,
                                   const struct tare_tensor *tensor) {
    Tensorflow__TensorProto *message = TARE_NEW(arena, Tensorflow__TensorProto);
    if (!message) return TARE_NO_MEMORY;
    if (tensor->dtype == TARE_DT_RESOURCE || tensor->dtype == TARE_DT_VARIANT)
        return TARE_FAIL(TARE_UNSUPPORTED, "a %s tensor cannot be serialized", tare_dtype_name(tensor->dtype));
    tensorflow__tensor_proto__init(message);
    message->dtype = (Tensorflow__DataType)tensor->dtype;
    message->tensor_shape = tare_shape_to_message(arena, &tensor->shape);
    if (!message->tensor_shape) return TARE_NO_MEMORY;
    message->tensor_content.data = tensor->data;
    message->tensor_content.len = tare_tensor_bytes(tensor);
    *out = message;
    return TARE_OK;
}

tare_status tare_tensor_to_bytes(uint8_t **data, size_t *size, const struct tare_tensor *tensor) {
    struct tare_arena arena = { 0 };
    Tensorflow__TensorProto *message;
    tare_status status = tensor->dtype == TARE_DT_STRING
                             ? tare_tensor_to_message(&message, &arena, tensor, TARE_TENSOR_BORROW)
                             : content_message(&message, &arena, tensor);
    if (status == TARE_OK) status = tare_message_pack(data, size, &message->base);
    tare_arena_free(&arena);
    return status;
}
