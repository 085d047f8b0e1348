/* Arrays that are quantized per tensor or along one axis: walks over [outer, channels, inner], and integer storage of
 * any quantized dtype. */
#ifndef TARE_INTERPRETER_OPS_QUANTIZED_CHANNELS_H
#define TARE_INTERPRETER_OPS_QUANTIZED_CHANNELS_H

#include "base/tensor/tensor.h"

/* A tensor as [outer, channels, inner]; one channel when the axis is negative. */
struct tare_channels {
    int64_t outer, count, inner;
};
/* TARE_SHAPE when `axis` is not below the rank. */
tare_status tare_channels_of(struct tare_channels *channels, const struct tare_shape *shape, int64_t axis);
/* The channel of element i. */
static inline int64_t tare_channels_at(const struct tare_channels *channels, int64_t i) {
    return channels->count == 1 ? 0 : i / channels->inner % channels->count;
}

/* Integers and quantized integers up to 32 bits. */
int32_t tare_quantized_get(const struct tare_tensor *tensor, int64_t i);
void tare_quantized_set(struct tare_tensor *tensor, int64_t i, int32_t value);
/* Smallest and largest value of the dtype. */
void tare_quantized_limits(int dtype, int64_t *lowest, int64_t *highest);

#endif
