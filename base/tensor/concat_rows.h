/* Tensors one after the other on axis 0. */
#ifndef TARE_BASE_TENSOR_CONCAT_ROWS_H
#define TARE_BASE_TENSOR_CONCAT_ROWS_H

#include "base/tensor/tensor.h"

/* Concatenates the i-th values of `count` samples, rows[s][i], on axis 0, in a buffer of the pool (NULL: a new one).
 * Sets *fits to false and makes no tensor when their other dimensions differ. */
tare_status tare_concat_rows(struct tare_tensor *out, const struct tare_tensor *const *rows, size_t count, size_t i,
                             bool *fits, struct tare_buffer_pool *pool) TARE_WARN_UNUSED;

#endif
