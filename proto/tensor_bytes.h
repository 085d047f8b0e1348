/* Tensors as serialized TensorProto, for modules that do not use messages. */
#ifndef TARE_PROTO_TENSOR_BYTES_H
#define TARE_PROTO_TENSOR_BYTES_H

#include "base/status.h"
#include "base/tensor/tensor.h"

#include <stddef.h>
#include <stdint.h>

/* Reads a serialized TensorProto; the tensor owns its memory and is never a splat. TARE_CORRUPT for bytes that are
 * not a message, and the failures of tare_tensor_from_message. */
tare_status tare_tensor_from_bytes(struct tare_tensor *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* Serializes like SerializeTensor: strings in string_val, all others in tensor_content. Release with tare_free.
 * TARE_UNSUPPORTED for resources and variants. */
tare_status tare_tensor_to_bytes(uint8_t **data, size_t *size, const struct tare_tensor *tensor) TARE_WARN_UNUSED;

#endif
