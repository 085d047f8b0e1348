/* Cycles of each kind of work, by chip: the table of tpu/cost/fitted.c, which tests/judges/fit_costs.py writes. */
#ifndef TARE_TPU_COST_FITTED_H
#define TARE_TPU_COST_FITTED_H

#include "tpu/cost/schedule.h"

struct tare_tpu_fitted {
    const char *chip;
    double clock;  /* cycles a second */
    double vector; /* bytes of the vector unit's memory, in which activations stay */
    double real[TARE_TPU_WORKS], integer[TARE_TPU_WORKS]; /* integer: groups of 8 bit integers */
};

enum { TARE_TPU_FITTED_CHIPS = 4 };
extern const struct tare_tpu_fitted tare_tpu_fitted[TARE_TPU_FITTED_CHIPS];

#endif
