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

/* Name of the value's Python type: "int", "float", "str", "bool", "NoneType", "list" ...; a static text. */
const char *tare_structured_type(const Tensorflow__StructuredValue *value);

/* Number of items of a tuple; 0 for everything else. */
size_t tare_structured_tuple_size(const Tensorflow__StructuredValue *value);
const Tensorflow__StructuredValue *tare_structured_tuple_item(const Tensorflow__StructuredValue *value, size_t i);

/* Calls `leaf` with each leaf in the order in which TensorFlow flattens the nest (dictionaries by key), until it
 * returns false. Returns false then, and when out of memory. */
typedef bool (*tare_structured_leaf_fn)(void *arg, const Tensorflow__StructuredValue *leaf);
bool tare_structured_each_leaf(const Tensorflow__StructuredValue *value, tare_structured_leaf_fn leaf, void *arg);

/* "(None, 3)", "(3,)", "()", "<unknown>". */
void tare_shape_python(struct tare_strbuf *out, const struct tare_shape *shape);

#endif
