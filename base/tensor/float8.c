/* Eight-bit floats: single numbers, and arrays in loops that the compiler vectorizes. */
#include "base/tensor/float8.h"

#include "base/tensor/dtype.h"

#include <math.h>
#include <string.h>

static const struct tare_float8 formats[] = {
    { TARE_DT_FLOAT8_E5M2, 2, 15, 57344, true, false, 0x7e, 0x7b },
    { TARE_DT_FLOAT8_E4M3FN, 3, 7, 448, false, false, 0x7f, 0x7e },
    { TARE_DT_FLOAT8_E4M3FNUZ, 3, 8, 240, false, true, 0x80, 0x7f },
    { TARE_DT_FLOAT8_E4M3B11FNUZ, 3, 11, 30, false, true, 0x80, 0x7f },
    { TARE_DT_FLOAT8_E5M2FNUZ, 2, 16, 57344, false, true, 0x80, 0x7f },
};

const struct tare_float8 *tare_float8_format(int dtype) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype) return &formats[i];
    return NULL;
}

/* As float of the bits `bits`. */
static inline float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 2^exponent, of a normal float. */
static inline float power(int exponent) {
    return of_bits((uint32_t)(exponent + 127) << 23);
}

float tare_float8_decode(const struct tare_float8 *format, uint8_t bits) {
    const uint32_t size = bits & 0x7f, sign = (uint32_t)(bits & 0x80) << 24;
    const int below = 23 - format->fraction;
    if (format->unsigned_zero ? bits == 0x80 : size > format->most)
        return format->infinite && size == 0x7c ? of_bits(sign | 0x7f800000) : of_bits(sign | 0x7fc00000);
    if (size >> format->fraction) return of_bits(sign | ((size << below) + ((uint32_t)(127 - format->bias) << 23)));
    const float value = (float)size * power(1 - format->bias - format->fraction);
    return sign ? -value : value;
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

uint8_t tare_float8_saturate(const struct tare_float8 *format, double value) {
    return tare_float8_encode(format, value > format->largest    ? format->largest
                                      : value < -format->largest ? -format->largest
                                                                 : value);
}

double tare_float8_level(const struct tare_float8 *format, int i) {
    return i < 0 ? -(double)tare_float8_decode(format, (uint8_t)-i) : (double)tare_float8_decode(format, (uint8_t)i);
}

/* ---- arrays ---- */

/* Both formats of matrix units have a sign for zero and a NaN of either sign. */
static bool is_plain(const struct tare_float8 *format) {
    return !format->unsigned_zero;
}

/* Without branches: a normal number has its bits shifted, a subnormal one is an integer times the least number. */
void tare_float8_decode_all(float *restrict out, const struct tare_float8 *format, const uint8_t *restrict codes,
                            size_t count) {
    const int fraction = format->fraction, below = 23 - fraction;
    const uint32_t rebias = (uint32_t)(127 - format->bias) << 23, most = format->most;
    const float least = power(1 - format->bias - fraction);
    const uint32_t infinity = format->infinite ? 0x7c : 0x80;
    if (!is_plain(format)) {
        for (size_t i = 0; i < count; i++)
            out[i] = tare_float8_decode(format, codes[i]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t size = codes[i] & 0x7fu, sign = (codes[i] & 0x80u) << 24;
        const uint32_t small = bits_of((float)(int32_t)size * least), normal = (size << below) + rebias;
        uint32_t bits = size >> fraction ? normal : small;
        bits = size > most ? 0x7fc00000u : bits;
        bits = size == infinity ? 0x7f800000u : bits;
        out[i] = of_bits(bits | sign);
    }
}

/* A normal number is rounded in its bits; below, an addition of a power of two rounds to a multiple of the least
 * number, as its last bit has that value. */
void tare_float8_encode_all(uint8_t *restrict out, const struct tare_float8 *format, const float *restrict values,
                            size_t count) {
    const int fraction = format->fraction, below = 23 - fraction;
    const uint32_t half = (1u << (below - 1)) - 1, rebias = (uint32_t)(127 - format->bias) << fraction;
    const uint32_t first_normal = bits_of(power(1 - format->bias)), most = format->most, nan = format->nan;
    const uint32_t beyond = format->infinite ? 0x7c : nan;
    const float aligned = power(1 - format->bias - fraction + 23);
    if (!is_plain(format)) {
        for (size_t i = 0; i < count; i++)
            out[i] = tare_float8_encode(format, (double)values[i]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(values[i]), size = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
        const uint32_t normal = ((size + half + (size >> below & 1)) >> below) - rebias;
        const uint32_t small = bits_of(of_bits(size) + aligned) - bits_of(aligned);
        uint32_t code = size >= first_normal ? normal : small;
        code = code > most ? beyond : code;
        code = size > 0x7f800000 ? nan : code;
        out[i] = (uint8_t)(code | sign);
    }
}
