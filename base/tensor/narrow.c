/* Integers of 4 and 2 bits; see the header. */
#include "base/tensor/narrow.h"

bool tare_dtype_is_narrow(int dtype) {
    return dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 || dtype == TARE_DT_INT2 || dtype == TARE_DT_UINT2;
}

int tare_dtype_bits(int dtype) {
    if (!tare_dtype_is_narrow(dtype)) return 8 * (int)tare_dtype_size(dtype);
    return dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT4 ? 4 : 2;
}

static bool is_signed(int dtype) {
    return dtype == TARE_DT_INT4 || dtype == TARE_DT_INT2;
}

int tare_dtype_stored(int dtype) {
    if (!tare_dtype_is_narrow(dtype)) return dtype;
    return is_signed(dtype) ? TARE_DT_INT8 : TARE_DT_UINT8;
}

bool tare_dtype_fits_bytes(int dtype, int value) {
    return tare_dtype_is_narrow(dtype) && (value == TARE_DT_INT8 || value == TARE_DT_UINT8);
}

tare_status tare_tensor_share_narrow(struct tare_tensor *out, const struct tare_tensor *bytes, int dtype) {
    const int bits = tare_dtype_bits(dtype);
    const int64_t least = is_signed(dtype) ? -(1 << (bits - 1)) : 0, most = least + (1 << bits) - 1;
    for (int64_t i = 0; i < (bytes->splat ? 1 : bytes->elements); i++) {
        const int64_t x = tare_tensor_get_i64(bytes, i);
        if (x < least || x > most)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %lld is %lld (expected %lld to %lld, those of %s)",
                             (long long)i, (long long)x, (long long)least, (long long)most, tare_dtype_name(dtype));
    }
    tare_tensor_share(out, bytes);
    out->dtype = dtype; /* a byte each, with the same bits */
    return TARE_OK;
}

void tare_tensor_narrow(struct tare_tensor *t) {
    const bool has_sign = is_signed(t->dtype);
    uint8_t *data = t->data;
    if (!tare_dtype_is_narrow(t->dtype)) return;
    const int bits = tare_dtype_bits(t->dtype), sign = 1 << (bits - 1);
    for (int64_t i = 0; i < (t->splat ? 1 : t->elements); i++) {
        const int low = data[i] & ((1 << bits) - 1);
        data[i] = (uint8_t)(has_sign ? (low ^ sign) - sign : low);
    }
}
