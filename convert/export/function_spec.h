/* The signature of a Python function, which TensorFlow needs to load a function that is a child of an object. */
#ifndef TARE_CONVERT_EXPORT_FUNCTION_SPEC_H
#define TARE_CONVERT_EXPORT_FUNCTION_SPEC_H

#include "base/arena.h"
#include "base/status.h"
#include "proto/tensorflow/object_graph.pb-c.h"

/* Of a function that takes these arguments by position or name, without defaults; it keeps the names. Arena memory. */
tare_status tare_function_spec_new(Tensorflow__FunctionSpec **out, struct tare_arena *arena, char *const *names,
                                   size_t count);

#endif
