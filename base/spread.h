/* The sum of squared distances of numbers from their mean, in one pass (Welford, Technometrics 4, 1962, page 419). */
#ifndef TARE_BASE_SPREAD_H
#define TARE_BASE_SPREAD_H

#include <stdint.h>

/* Zero at first. */
struct tare_spread {
    int64_t count;
    double level;   /* the first number; numbers far from zero keep the digits in which they differ */
    double mean;    /* less the level */
    double squares; /* of the distances from the mean */
};

/* Adds a finite number. */
static inline void tare_spread_add(struct tare_spread *s, double number) {
    if (s->count == 0) s->level = number;
    const double own = number - s->level, distance = own - s->mean;
    s->mean += distance / (double)++s->count;
    s->squares += distance * (own - s->mean);
}

#endif
