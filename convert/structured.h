/* StructuredValue, the nest of Python values in an object graph, formatted as in Python. Private to convert. */
#ifndef TARE_CONVERT_STRUCTURED_H
#define TARE_CONVERT_STRUCTURED_H

#include "base/strbuf.h"
#include "proto/tensorflow/object_graph.pb-c.h"
#include "base/tensor/shape.h"

#include <stdbool.h>

/* All functions append; a failed allocation is recorded in the buffer. NULL means None. */

/* repr(value): 'text', 2.0, [1, 2], TensorSpec(shape=(None, 3), dtype=tf.float32, name='x'). */
void tare_structured_repr(struct tare_strbuf *out, const Tensorflow__StructuredValue *value);
/* str(value): as repr, except for strings, shapes and dtypes. */
void tare_structured_str(struct tare_strbuf *out, const Tensorflow__StructuredValue *value);
/* True if the value is or contains the description of a tensor. */
bool tare_structured_has_spec(const Tensorflow__StructuredValue *value);
/* One argument or result of a printed signature: "float32 Tensor, shape=(None, 3)"; a nest with markers <1>, <2> … and
 * a line for each, indented by six spaces. No newline at the end. */
void tare_structured_spec(struct tare_strbuf *out, const Tensorflow__StructuredValue *value);

/* "(None, 3)", "(3,)", "()", "<unknown>". */
void tare_shape_python(struct tare_strbuf *out, const struct tare_shape *shape);

#endif
