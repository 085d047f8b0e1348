/* Integers of 4 and 2 bits; see the header. */
#include "base/tensor/narrow.h"

bool tare_dtype_is_narrow(int dtype) {
    return dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 || dtype == TARE_DT_INT2 || dtype == TARE_DT_UINT2;
}

int tare_dtype_bits(int dtype) {
    if (!tare_dtype_is_narrow(dtype)) return 8 * (int)tare_dtype_size(dtype);
    return dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 ? 4 : 2;
}

void tare_tensor_narrow(struct tare_tensor *t) {
    const bool has_sign = t->dtype == TARE_DT_INT4 || t->dtype == TARE_DT_INT2;
    uint8_t *data = t->data;
    if (!tare_dtype_is_narrow(t->dtype)) return;
    const int bits = tare_dtype_bits(t->dtype), sign = 1 << (bits - 1);
    for (int64_t i = 0; i < (t->splat ? 1 : t->elements); i++) {
        const int low = data[i] & ((1 << bits) - 1);
        data[i] = (uint8_t)(has_sign ? (low ^ sign) - sign : low);
    }
}
