/* IEEE binary16 in plain integer arithmetic. */
#include "base/tensor/number.h"

uint16_t tare_half_from_float(float x) {
    uint32_t bits = tare_float_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds to 65536 or more: infinity */
    if (magnitude < 0x38800000u) {                                   /* below 2^-14: subnormal, unit 2^-24 */
        float scaled = tare_float_from_bits(magnitude) * 0x1p24f;    /* exact */
        return (uint16_t)(sign | (uint32_t)tare_round_half_even_f(scaled));
    }
    magnitude -= 0x38000000u; /* rebias 127 to 15 */
    return (uint16_t)(sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

float tare_float_from_half(uint16_t x) {
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = (x >> 10) & 0x1fu, mantissa = x & 0x3ffu;
    if (exponent == 0x1f) return tare_float_from_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
        float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    return tare_float_from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}
