/* Gathering rows by index, for the ops that read a variable as well as those that read a tensor. */
#ifndef TARE_INTERPRETER_OPS_ARRAY_GATHER_H
#define TARE_INTERPRETER_OPS_ARRAY_GATHER_H

#include "interpreter/kernel.h"

/* Shape of params gathered by indices along `axis`; the first batch_dims dimensions of both go together. Both counts
 * may be negative (from the end: axis of params, batch_dims of indices). Partial shapes give partial results. */
tare_status tare_gather_shape(struct tare_shape *out, const struct tare_shape *params, const struct tare_shape *indices,
                              int64_t axis, int64_t batch_dims);
/* Makes output `i` of the kernel. "indices[1] = 5 is not in [0, 3)" when an index is outside. */
tare_status tare_gather(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                        const struct tare_tensor *indices, int64_t axis, int64_t batch_dims);
/* The same for index tuples (GatherNd); bad indices give zeros when `ignore_bad`. */
tare_status tare_gather_nd(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                           const struct tare_tensor *indices, bool ignore_bad);

#endif
