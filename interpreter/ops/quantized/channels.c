/* Per-channel iteration and integer access for quantized dtypes (channels.h). */
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/ops/support/axes.h"

tare_status tare_channels_of(struct tare_channels *channels, const struct tare_shape *shape, int64_t axis) {
    *channels = (struct tare_channels){ 1, 1, 1 };
    if (axis >= shape->rank)
        return TARE_FAIL(TARE_SHAPE, "quantization axis %lld of a tensor of rank %d", (long long)axis, shape->rank);
    if (axis >= 0) {
        const struct tare_axis_split split = tare_axis_split(shape, (int)axis);
        *channels = (struct tare_channels){ split.outer, split.size, split.inner };
    }
    for (int i = 0; axis < 0 && i < shape->rank; i++)
        channels->inner *= shape->dims[i];
    return TARE_OK;
}

int32_t tare_quantized_get(const struct tare_tensor *tensor, int64_t i) {
    switch (tensor->dtype) {
    case TARE_DT_QINT8:
    case TARE_DT_INT8:
        return TARE_CONST_DATA(int8_t, tensor)[i];
    case TARE_DT_QUINT8:
    case TARE_DT_UINT8:
        return TARE_CONST_DATA(uint8_t, tensor)[i];
    case TARE_DT_QINT16:
    case TARE_DT_INT16:
        return TARE_CONST_DATA(int16_t, tensor)[i];
    case TARE_DT_QUINT16:
    case TARE_DT_UINT16:
        return TARE_CONST_DATA(uint16_t, tensor)[i];
    default:
        return TARE_CONST_DATA(int32_t, tensor)[i];
    }
}

void tare_quantized_set(struct tare_tensor *tensor, int64_t i, int32_t value) {
    switch (tare_dtype_size(tensor->dtype)) {
    case 1:
        TARE_DATA(uint8_t, tensor)[i] = (uint8_t)value;
        break;
    case 2:
        TARE_DATA(uint16_t, tensor)[i] = (uint16_t)value;
        break;
    default:
        TARE_DATA(int32_t, tensor)[i] = value;
        break;
    }
}

void tare_quantized_limits(int dtype, int64_t *lowest, int64_t *highest) {
    const bool is_unsigned =
        dtype == TARE_DT_QUINT8 || dtype == TARE_DT_UINT8 || dtype == TARE_DT_QUINT16 || dtype == TARE_DT_UINT16;
    const int bits = (int)tare_dtype_size(dtype) * 8;
    *lowest = is_unsigned ? 0 : -((int64_t)1 << (bits - 1));
    *highest = ((int64_t)1 << (is_unsigned ? bits : bits - 1)) - 1;
}
