#include "interpreter/ops/support/float8.h"

#include "base/tensor/dtype.h"

#include <math.h>
#include <stddef.h>

struct tare_float8 {
    int dtype;
    int fraction, bias; /* bits of the fraction, exponent bias */
    double largest;
    bool infinite;      /* has infinities */
    bool unsigned_zero; /* 0x80 is the only NaN, and there is no minus zero */
    uint8_t nan;
};

static const struct tare_float8 formats[] = {
    { TARE_DT_FLOAT8_E5M2, 2, 15, 57344, true, false, 0x7e },
    { TARE_DT_FLOAT8_E4M3FN, 3, 7, 448, false, false, 0x7f },
    { TARE_DT_FLOAT8_E4M3FNUZ, 3, 8, 240, false, true, 0x80 },
    { TARE_DT_FLOAT8_E4M3B11FNUZ, 3, 11, 30, false, true, 0x80 },
    { TARE_DT_FLOAT8_E5M2FNUZ, 2, 16, 57344, false, true, 0x80 },
};

const struct tare_float8 *tare_float8_format(int dtype) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype) return &formats[i];
    return NULL;
}

float tare_float8_decode(const struct tare_float8 *format, uint8_t bits) {
    const int exponent = (bits & 0x7f) >> format->fraction, low = bits & ((1 << format->fraction) - 1);
    const int whole = low | (exponent ? 1 << format->fraction : 0);
    const double size = ldexp(whole, (exponent ? exponent : 1) - format->bias - format->fraction);
    if (format->unsigned_zero ? bits == 0x80 : !format->infinite && (bits & 0x7f) == 0x7f) return NAN;
    if (format->infinite && exponent == 0x1f) return low ? NAN : bits & 0x80 ? -INFINITY : INFINITY;
    return (float)(bits & 0x80 ? -size : size);
}

uint8_t tare_float8_encode(const struct tare_float8 *format, double value) {
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const uint8_t too_large = format->infinite ? 0x7c : format->nan;
    double size = fabs(value);
    int exponent = 1 - format->bias; /* of the smallest normal numbers; smaller ones share it */
    long whole;
    if (isnan(value)) return format->unsigned_zero ? format->nan : sign | format->nan;
    if (isinf(value)) return format->unsigned_zero ? too_large : sign | too_large;
    if (size > 0 && ilogb(size) > exponent) exponent = ilogb(size);
    if (exponent > 64) return format->unsigned_zero ? too_large : sign | too_large;
    whole = (long)__builtin_rint(ldexp(size, format->fraction - exponent));
    size = ldexp((double)whole, exponent - format->fraction);
    if (size > format->largest) return format->unsigned_zero ? too_large : sign | too_large;
    if (whole >> (format->fraction + 1)) { /* rounded up to the next power of two */
        whole >>= 1;
        exponent++;
    }
    if (!(whole >> format->fraction)) return format->unsigned_zero && !whole ? 0 : (uint8_t)(sign | whole);
    return (uint8_t)(sign | (exponent + format->bias) << format->fraction | (whole & ((1 << format->fraction) - 1)));
}
