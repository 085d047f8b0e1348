/* Tensors quantized per tensor or per channel: iteration over [outer, channels, inner], and integer access for all
 * quantized dtypes. */
#ifndef TARE_INTERPRETER_OPS_QUANTIZED_CHANNELS_H
#define TARE_INTERPRETER_OPS_QUANTIZED_CHANNELS_H

#include "base/tensor/tensor.h"

/* A tensor as [outer, channels, inner]; one channel if the axis is negative. */
struct tare_channels {
    int64_t outer, count, inner;
};
/* TARE_SHAPE if `axis` is not less than the rank. */
tare_status tare_channels_of(struct tare_channels *channels, const struct tare_shape *shape, int64_t axis);
/* The channel of element i. */
static inline int64_t tare_channels_at(const struct tare_channels *channels, int64_t i) {
    return channels->count == 1 ? 0 : i / channels->inner % channels->count;
}

/* Reads integers and quantized integers of up to 32 bits. */
int32_t tare_quantized_get(const struct tare_tensor *tensor, int64_t i);
void tare_quantized_set(struct tare_tensor *tensor, int64_t i, int32_t value);
/* The smallest and largest value of the dtype. */
void tare_quantized_limits(int dtype, int64_t *lowest, int64_t *highest);

#endif
