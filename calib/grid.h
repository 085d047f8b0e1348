/* The integer grid that a range is deployed on, and the error that values suffer there. */
#ifndef TARE_CALIB_GRID_H
#define TARE_CALIB_GRID_H

#include "calib/bins.h"

#include <stdbool.h>

/* How integers will stand for values. */
struct tare_grid_scheme {
    int bits;       /* 2 … 16 */
    bool symmetric; /* zero point 0; the narrow range reaches as far down as up */
    bool narrow;    /* leaves the lowest code out */
};

/* int8 activations as TensorFlow has them: asymmetric, all 256 codes. */
extern const struct tare_grid_scheme tare_grid_activation;

/* value = scale * (q - zero_point), q in [qmin, qmax]. */
struct tare_grid {
    double scale;
    double zero_point; /* a whole number */
    double qmin, qmax;
};

/* The grid of the range [low, high], by the rules that quantization uses (docs/numerics.md): range-contains-zero,
 * range-symmetric, range-symmetric-full, range-degenerate, zero-point-least-error. low <= high, both finite. */
struct tare_grid tare_grid_from_range(double low, double high, const struct tare_grid_scheme *scheme);
/* The value that `value` becomes: rounded half away from zero, clamped. */
double tare_grid_round(const struct tare_grid *grid, double value);

/* Squared error of the values in the bins, each bin taken at its centre; in units of value squared, not divided by the
 * count. */
struct tare_grid_error {
    double rounding; /* of values inside the grid's reach */
    double clipping; /* of values beyond it */
    double clipped;  /* how many of them */
};
/* Takes about 256 binary searches for 8 bits, however many bins there are. */
struct tare_grid_error tare_grid_error_of(const struct tare_grid *grid, const struct tare_bins *bins);

#endif
