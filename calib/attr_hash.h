/* Hashes of shapes, tensors and attributes: by value, so that equal values in two models have equal hashes. */
#ifndef TARE_CALIB_ATTR_HASH_H
#define TARE_CALIB_ATTR_HASH_H

#include "base/tensor/tensor.h"
#include "calib/hash.h"
#include "graph/attr.h"

/* Dtype, shape and values; of variants and other objects, dtype and shape only. `tensor` may be NULL. */
void tare_hash_add_tensor(struct tare_hash *hash, const struct tare_tensor *tensor);
/* Name, kind and values. `add_function` adds the functions among the values. */
void tare_hash_add_attr(struct tare_hash *hash, const struct tare_attr *attr,
                        void (*add_function)(void *arg, struct tare_hash *hash, const struct tare_func *function),
                        void *arg);

#endif
