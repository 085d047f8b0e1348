/* Eight-bit floats. Rule (docs/numerics.md, float8-rtne): to nearest, ties to even, in one rounding from any number;
 * overflow becomes infinity if the format has it, otherwise NaN. */
#ifndef TARE_BASE_TENSOR_FLOAT8_H
#define TARE_BASE_TENSOR_FLOAT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_float8 {
    int dtype;
    int fraction, bias; /* bits of the fraction, exponent bias */
    double largest;
    bool infinite;      /* has infinities */
    bool unsigned_zero; /* 0x80 is the only NaN, and there is no minus zero */
    uint8_t nan;
    uint8_t most; /* the code of the largest number; the codes of smaller positive ones are the smaller integers */
};

/* The format of a dtype; NULL if it is not an eight-bit float. */
const struct tare_float8 *tare_float8_format(int dtype);
float tare_float8_decode(const struct tare_float8 *format, uint8_t bits);
uint8_t tare_float8_encode(const struct tare_float8 *format, double value);
/* The same for arrays of float. */
void tare_float8_decode_all(float *restrict out, const struct tare_float8 *format, const uint8_t *restrict codes,
                            size_t count);
void tare_float8_encode_all(uint8_t *restrict out, const struct tare_float8 *format, const float *restrict values,
                            size_t count);
/* float8-saturate: as encode, but a number beyond the largest becomes the largest of its sign. */
uint8_t tare_float8_saturate(const struct tare_float8 *format, double value);
/* The finite number i places from zero in the order of size, i in [-format->most, format->most]. */
double tare_float8_level(const struct tare_float8 *format, int i);

#endif
