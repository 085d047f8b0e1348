/* Rounding a matrix of weights so that the error of x W over the samples' rows x is small, not that of W: later
 * rows compensate for each row's rounding error (GPTQ). Depends on grids and Hessians, not on layers. */
#ifndef TARE_QUANT_GPTQ_ROUNDING_H
#define TARE_QUANT_GPTQ_ROUNDING_H

#include "base/arena.h"
#include "quant/weights.h"

struct tare_compensation {
    const float *real;     /* rows * columns */
    const double *hessian; /* rows * rows, symmetric: E[x_i x_j] in any unit */
    double damp;           /* share of the mean diagonal that is added to the diagonal */
    bool act_order;        /* rows with large inputs first */
    int64_t first, count;  /* columns to round; count 0: all */
    int threads;           /* 0: one per processor; the result does not depend on it */
};

/* Result: Σ_columns e' H e per row of samples, of the original integers (for example rounded to nearest) and of the new
 * ones. */
struct tare_compensated {
    double before, after;
};

/* Replaces the integers of `weight`, which must exist (with scales), by better ones; a column whose error would
 * increase keeps its integers, and scales. `weight` has one batch. Does nothing if the Hessian is zero. */
tare_status tare_round_compensated(struct tare_compensated *out, struct tare_quantized_weight *weight,
                                   const struct tare_qscheme *scheme, const struct tare_compensation *how);

#endif
