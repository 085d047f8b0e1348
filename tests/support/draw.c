#include "support/draw.h"

#include <math.h>

uint64_t draw_bits(uint64_t *seed) {
    uint64_t z = (*seed += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

double draw_unit(uint64_t *seed) {
    return ((double)(draw_bits(seed) >> 11) + 0.5) * 0x1p-53;
}

static double draw_normal(uint64_t *seed) {
    double radius = sqrt(-2 * log(draw_unit(seed)));
    return radius * cos(2 * 3.14159265358979323846 * draw_unit(seed));
}

const char *draw_name(enum draw_kind kind) {
    static const char *const names[DRAW_KINDS] = { "normal", "laplace", "relu", "constant", "two", "heavy", "shifted" };
    return names[kind];
}

float draw_one(enum draw_kind kind, uint64_t *seed) {
    double value = 0;
    switch (kind) {
    case DRAW_NORMAL:
        value = draw_normal(seed);
        break;
    case DRAW_LAPLACE: {
        double u = draw_unit(seed) - 0.5;
        value = u < 0 ? log(1 + 2 * u) : -log(1 - 2 * u);
        break;
    }
    case DRAW_RELU:
        value = fmax(0, draw_normal(seed));
        break;
    case DRAW_CONSTANT:
        value = 0.37;
        break;
    case DRAW_TWO:
        value = draw_bits(seed) & 1 ? -1 : 3;
        break;
    case DRAW_HEAVY: {
        double u = 2 * draw_unit(seed) - 1;
        value = u * sqrt(2 / (1 - u * u));
        break;
    }
    case DRAW_SHIFTED:
        value = 5 + draw_normal(seed);
        break;
    default:
        break;
    }
    return (float)value;
}

void draw_fill(float *values, size_t count, enum draw_kind kind, uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        values[i] = draw_one(kind, &seed);
}
