/* TensorProto and TensorShapeProto to and from tensors and shapes. */
#ifndef TARE_PROTO_TENSOR_MESSAGE_H
#define TARE_PROTO_TENSOR_MESSAGE_H

#include "base/arena.h"
#include "base/status.h"
#include "proto/tensorflow/tensor.pb-c.h"
#include "base/tensor/shape.h"
#include "base/tensor/tensor.h"

/* Ownership of the elements of the result. */
enum tare_tensor_memory {
    TARE_TENSOR_COPY,
    TARE_TENSOR_BORROW, /* borrowed from the source if layout and alignment allow: it must outlive the result */
};

enum {
    /* A message with fewer values than elements, whose values differ, is expanded to at most this many elements per
     * value, or this many bytes in total. More is refused, so that a few bytes cannot exhaust memory. */
    TARE_TENSOR_MAX_EXPANSION = 64,
    TARE_TENSOR_FREE_EXPANSION = 16 << 20,
};

/* NULL: the default message, a scalar. TARE_SHAPE for a rank over TARE_MAX_RANK, a dim under -1, or dims together with
 * unknown_rank. */
tare_status tare_shape_from_message(struct tare_shape *out,
                                    const Tensorflow__TensorShapeProto *message) TARE_WARN_UNUSED;
/* NULL if out of memory. */
Tensorflow__TensorShapeProto *tare_shape_to_message(struct tare_arena *arena, const struct tare_shape *shape);

/* Converts a message to a tensor by TensorFlow's rules: tensor_content, if not empty, has all elements and must have
 * the exact size; otherwise the values are in the field of the dtype. The last value is repeated for missing elements;
 * without values all are zero; excess values are ignored. One value for many elements becomes a splat. 16-bit floats
 * are the lower half of each half_val, narrow integers the low bits of each int_val.
 *
 * TARE_SHAPE: an unknown or too large shape, a wrong size of tensor_content, an odd number of complex parts, an
 * expansion beyond the limits. TARE_TYPE: not a tensor dtype. TARE_UNSUPPORTED: resources and variants with elements,
 * strings in tensor_content. TARE_NO_MEMORY. */
tare_status tare_tensor_from_message(struct tare_tensor *out, const Tensorflow__TensorProto *message,
                                     enum tare_tensor_memory memory) TARE_WARN_UNUSED;

/* Converts a tensor to a message in the arena: one element or a splat in the field of its dtype, strings in string_val,
 * more elements in tensor_content. TARE_UNSUPPORTED for resources and variants with elements. */
tare_status tare_tensor_to_message(Tensorflow__TensorProto **out, struct tare_arena *arena,
                                   const struct tare_tensor *tensor, enum tare_tensor_memory memory) TARE_WARN_UNUSED;

#endif
