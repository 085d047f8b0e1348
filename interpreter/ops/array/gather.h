/* Gathering slices by index, shared by the ops that read tensors and those that read variables. */
#ifndef TARE_INTERPRETER_OPS_ARRAY_GATHER_H
#define TARE_INTERPRETER_OPS_ARRAY_GATHER_H

#include "interpreter/kernel.h"

/* Computes the shape of params gathered by indices along `axis`; the first batch_dims dimensions of both are batch
 * dimensions. axis and batch_dims may be negative (relative to the rank of params and of indices). Partially known
 * shapes produce partially known results. */
tare_status tare_gather_shape(struct tare_shape *out, const struct tare_shape *params, const struct tare_shape *indices,
                              int64_t axis, int64_t batch_dims);
/* Computes output `i` of the kernel. Fails with "indices[1] = 5 is not in [0, 3)" if an index is out of range. */
tare_status tare_gather(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                        const struct tare_tensor *indices, int64_t axis, int64_t batch_dims);
/* The same for index tuples (GatherNd). With `ignore_bad`, out-of-range indices yield zeros. */
tare_status tare_gather_nd(struct tare_kernel *kernel, size_t i, const struct tare_tensor *params,
                           const struct tare_tensor *indices, bool ignore_bad);

#endif
