/* The quantization error of deployed parameters on the statistics of a tensor. Several models of one calibration, such
 * as the variants of a comparison, deploy the same parameters: each error is computed once and stored with the
 * statistics. */
#ifndef TARE_CALIB_RANGE_ERROR_H
#define TARE_CALIB_RANGE_ERROR_H

#include "calib/quantization_error.h"

struct tare_range_error {
    struct tare_quantization_error error;
    double count, squares; /* of the finite values: their number and the sum of their squares, at the bins' centres */
};

/* True, with *out, if the error is stored. */
bool tare_range_error_find(struct tare_range_error *out, const struct tare_qparams *params,
                           const struct tare_statistics *statistics);
/* Computes the error with the bins of the statistics, and stores it. Without memory it is not stored. */
struct tare_range_error tare_range_error_of(const struct tare_qparams *params, const struct tare_statistics *statistics,
                                            const struct tare_bins *bins);

#endif
