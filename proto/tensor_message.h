/* TensorProto and TensorShapeProto to and from tensors and shapes. */
#ifndef TARE_PROTO_TENSOR_MESSAGE_H
#define TARE_PROTO_TENSOR_MESSAGE_H

#include "base/arena.h"
#include "base/status.h"
#include "proto/tensorflow/tensor.pb-c.h"
#include "base/tensor/shape.h"
#include "base/tensor/tensor.h"

/* Whose memory holds the elements of what is made. */
enum tare_tensor_memory {
    TARE_TENSOR_COPY,
    TARE_TENSOR_BORROW, /* the source's, where layout and alignment allow: it must outlive every use of the result */
};

enum {
    /* A message with fewer values than elements, and values that differ, is expanded up to this many elements a value,
     * or up to this many bytes in all. More is refused: a few bytes must not take all memory. */
    TARE_TENSOR_MAX_EXPANSION = 64,
    TARE_TENSOR_FREE_EXPANSION = 16 << 20,
};

/* NULL stands for the default message: a scalar. TARE_SHAPE for a rank over TARE_MAX_RANK, a dim under -1, dims beside
 * unknown_rank. */
tare_status tare_shape_from_message(struct tare_shape *out,
                                    const Tensorflow__TensorShapeProto *message) TARE_WARN_UNUSED;
/* NULL when memory is out. */
Tensorflow__TensorShapeProto *tare_shape_to_message(struct tare_arena *arena, const struct tare_shape *shape);

/* The tensor that a message holds, by TensorFlow's rules: tensor_content, where not empty, is all of it and must have
 * the exact size; else the field of the dtype holds the values. The last value stands for all that are missing, none
 * for zeros; values beyond the elements are ignored. One value for many elements gives a splat. 16-bit floats are the
 * low half of each half_val, narrow integers the low bits of each int_val.
 *
 * TARE_SHAPE: an unknown or absurd shape, a wrong size of tensor_content, an odd number of complex parts, an expansion
 * beyond the limits. TARE_TYPE: no tensor dtype. TARE_UNSUPPORTED: resources and variants with elements, strings in
 * tensor_content. TARE_NO_MEMORY. */
tare_status tare_tensor_from_message(struct tare_tensor *out, const Tensorflow__TensorProto *message,
                                     enum tare_tensor_memory memory) TARE_WARN_UNUSED;

/* The message for a tensor, in the arena: one element or a splat in the field of its dtype, strings in string_val, more
 * elements in tensor_content. TARE_UNSUPPORTED for resources and variants with elements. */
tare_status tare_tensor_to_message(Tensorflow__TensorProto **out, struct tare_arena *arena,
                                   const struct tare_tensor *tensor, enum tare_tensor_memory memory) TARE_WARN_UNUSED;

#endif
