/* A sum of doubles without rounding: bit-identical for any order and grouping of the terms.
 *
 * The sum is stored as one wide two's complement integer in units of 2^-1074, the smallest double. 2^64 terms of any
 * size fit. */
#ifndef TARE_BASE_EXACT_SUM_H
#define TARE_BASE_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { TARE_EXACT_SUM_WORDS = 34 }; /* 1074 bits below the point, 1024 above it, 64 for the terms: 2162 of 2176 bits */

/* All zero: the sum 0. words[0] is the least significant. */
struct tare_exact_sum {
    uint64_t words[TARE_EXACT_SUM_WORDS];
};

/* Adds one term; false (and no change) for NaN and infinities. */
bool tare_exact_sum_add(struct tare_exact_sum *sum, double term);
void tare_exact_sum_merge(struct tare_exact_sum *sum, const struct tare_exact_sum *other);
/* The sum, rounded once to the nearest double, ties to even; an infinity beyond the largest double. */
double tare_exact_sum_value(const struct tare_exact_sum *sum);
bool tare_exact_sum_equal(const struct tare_exact_sum *a, const struct tare_exact_sum *b);

#endif
