/* The error that a distribution of values suffers from given quantization parameters. */
#ifndef TARE_CALIB_QUANTIZATION_ERROR_H
#define TARE_CALIB_QUANTIZATION_ERROR_H

#include "calib/bins.h"
#include "calib/qparams.h"

/* Sums of squared errors over the values in the bins, with each value taken to be its bin's centre; in units of value
 * squared, not divided by the number of values. */
struct tare_quantization_error {
    double rounding; /* of values between the lowest and the highest code */
    double clipping; /* of values outside them */
    double clipped;  /* the number of values outside them */
};
/* The time is proportional to the smaller of the number of codes and the number of bins. */
struct tare_quantization_error tare_quantization_error_of(const struct tare_qparams *params,
                                                          const struct tare_bins *bins);
/* Rounding and clipping error together. A sum over `limit` may be incomplete: the computation stops as soon as the sum
 * exceeds `limit`. A sum of at most `limit` has the bits of tare_quantization_error_of. */
double tare_quantization_error_within(const struct tare_qparams *params, const struct tare_bins *bins, double limit);

#endif
