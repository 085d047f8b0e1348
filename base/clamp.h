/* A value kept within limits. */
#ifndef TARE_BASE_CLAMP_H
#define TARE_BASE_CLAMP_H

#include <stdint.h>

/* The value of [low, high] that is nearest to x; low <= high. */
static inline int64_t tare_clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

#endif
