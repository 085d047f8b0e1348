/* Magnitudes of bfloat16 values are compared as integers: without the sign bit, the bits have the order of the values,
 * and those of NaNs are larger than those of infinity. */
#include "interpreter/kernels/bfloat16_to_float.h"

#include "base/tensor/number.h"

#include <math.h>

enum { MAGNITUDE = 0x7fff, INFINITE = 0x7f80 };

#define FORM(level, target)                                                                                            \
    static target uint16_t widen_##level(float *to, const uint16_t *from, int64_t count) {                             \
        uint16_t most = 0;                                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const uint16_t magnitude = from[i] & MAGNITUDE;                                                            \
            to[i] = tare_float_from_bfloat16(from[i]);                                                                 \
            most = magnitude > most ? magnitude : most;                                                                \
        }                                                                                                              \
        return most;                                                                                                   \
    }
TARE_EVERY_FORM(FORM)
#undef FORM

float tare_widen_at(enum tare_cpu_level level, float *to, const uint16_t *from, int64_t count, float most) {
    const uint16_t bits = TARE_FORM(level, widen)(to, from, count);
    const float found = bits > INFINITE ? INFINITY : tare_float_from_bfloat16(bits);
    return found > most ? found : most;
}
