/* Eight-bit floats. Rule (docs/numerics.md, float8-rtne): to nearest, ties to even, in one rounding from any number;
 * overflow becomes infinity if the format has it, otherwise NaN. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_FLOAT8_H
#define TARE_INTERPRETER_OPS_SUPPORT_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

struct tare_float8;

/* The format of a dtype; NULL if it is not an eight-bit float. */
const struct tare_float8 *tare_float8_format(int dtype);
float tare_float8_decode(const struct tare_float8 *format, uint8_t bits);
uint8_t tare_float8_encode(const struct tare_float8 *format, double value);

#endif
