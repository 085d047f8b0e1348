/* Seeded random numbers from several distributions, for tests of statistics. */
#ifndef TARE_TESTS_SUPPORT_DRAW_H
#define TARE_TESTS_SUPPORT_DRAW_H

#include <stddef.h>
#include <stdint.h>

uint64_t draw_bits(uint64_t *seed);
/* A number in (0, 1). */
double draw_unit(uint64_t *seed);

enum draw_kind {
    DRAW_NORMAL,
    DRAW_LAPLACE,
    DRAW_RELU,     /* half zeros, the rest the positive half of a normal */
    DRAW_CONSTANT, /* 0.37 */
    DRAW_TWO,      /* -1 and 3 */
    DRAW_HEAVY,    /* Student's t with two degrees of freedom */
    DRAW_SHIFTED,  /* a normal around 5, all positive for most seeds */
    DRAW_KINDS,
};
const char *draw_name(enum draw_kind kind);
float draw_one(enum draw_kind kind, uint64_t *seed);
void draw_fill(float *values, size_t count, enum draw_kind kind, uint64_t seed);

#endif
