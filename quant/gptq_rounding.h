/* Rounding a matrix of weights so that the error of x W over the samples' rows x is small, not that of W: each row's
 * rounding error is made up for by the rows that come after it (GPTQ). Knows grids and Hessians, no layers. */
#ifndef TARE_QUANT_GPTQ_ROUNDING_H
#define TARE_QUANT_GPTQ_ROUNDING_H

#include "base/arena.h"
#include "quant/weights.h"

struct tare_compensation {
    const float *real;     /* rows * columns */
    const double *hessian; /* rows * rows, symmetric: E[x_i x_j] in any unit */
    double damp;           /* share of the mean diagonal that is added to the diagonal */
    bool act_order;        /* rows of large inputs first */
    int64_t first, count;  /* columns that it is about; count 0: all */
    int threads;           /* 0: one a processor; the result does not depend on it */
};

/* What came of it: Σ_columns e' H e of the weight as it was (rounded to nearest, say), and as it is, per row of
 * samples. */
struct tare_compensated {
    double before, after;
};

/* Replaces the integers of `weight`, which are there (with scales), by better ones; a column that would be worse keeps
 * its own. `weight` has one batch. Does nothing where the Hessian is zero. */
tare_status tare_round_compensated(struct tare_compensated *out, struct tare_quantized_weight *weight,
                                   const struct tare_qscheme *scheme, const struct tare_compensation *how);

#endif
