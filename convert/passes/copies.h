/* When a function that several calls share is copied, so that each call has its own. */
#ifndef TARE_CONVERT_PASSES_COPIES_H
#define TARE_CONVERT_PASSES_COPIES_H

#include "graph/graph.h"

enum { TARE_MOST_COPIES = 256 }; /* functions that one pass copies */

/* A weight that quantization may want: functions are copied for it. Static range quantization has no smallest size, but
 * fewer elements, and most vectors, are scales, biases and other parameters. */
static inline bool tare_is_worth_copying(const struct tare_tensor *weight) {
    enum { LEAST_ELEMENTS = 64, LEAST_OF_VECTORS = 1024 };
    return weight->elements >= (weight->shape.rank >= 2 ? LEAST_ELEMENTS : LEAST_OF_VECTORS) &&
           (weight->dtype == TARE_DT_FLOAT || weight->dtype == TARE_DT_BFLOAT16 || weight->dtype == TARE_DT_HALF);
}

/* Calls whose function a pass can replace (tare_call_copy_function). */
static inline bool tare_is_plain_call(const struct tare_node *node) {
    return tare_node_is(node, "PartitionedCall") || tare_node_is(node, "StatefulPartitionedCall");
}

#endif
