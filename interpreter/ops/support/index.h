/* Indices from data: read fast, checked, and reported in errors as TensorFlow does. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_INDEX_H
#define TARE_INTERPRETER_OPS_SUPPORT_INDEX_H

#include "graph/op.h"

/* Element i of an int16, uint16, int32 or int64 tensor. */
static inline int64_t tare_index_at(const struct tare_tensor *tensor, int64_t i) {
    if (tensor->dtype == TARE_DT_INT32) return TARE_CONST_DATA(int32_t, tensor)[i];
    if (tensor->dtype == TARE_DT_INT64) return TARE_CONST_DATA(int64_t, tensor)[i];
    return tare_tensor_get_i64(tensor, i);
}

enum { TARE_INDEX_TEXT_SIZE = 256 };
/* "indices[0,2] = 5 is not in [0, 3)" */
tare_status tare_index_fault(const char *what, const struct tare_tensor *indices, int64_t i, int64_t index,
                             int64_t limit);

/* The innermost dimension of `indices` as coordinates into the first dims of `shape`. */
struct tare_tuples {
    const struct tare_tensor *indices;
    struct tare_shape shape;
    int depth;
    int64_t count, inner; /* tuples; elements that one tuple addresses */
};
/* indices has rank >= 1 and an innermost dimension of at most the shape's rank. */
void tare_tuples_make(struct tare_tuples *tuples, const struct tare_tensor *indices, const struct tare_shape *shape);
/* Row of tuple k (times `inner` is the first element), -1 when a coordinate is outside. */
int64_t tare_tuples_row(const struct tare_tuples *tuples, int64_t k);
/* "indices[0] = [5, 1] does not index into param shape [3,2]" */
tare_status tare_tuples_fault(const struct tare_tuples *tuples, int64_t k, const char *into);
/* Attribute bad_indices_policy: only IGNORE ignores on a CPU. */
bool tare_index_ignores_bad(const struct tare_node *node);

#endif
