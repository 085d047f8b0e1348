/* The rows of calib/algos/, for calib/algorithm.c only. */
#ifndef TARE_CALIB_ALGOS_ROWS_H
#define TARE_CALIB_ALGOS_ROWS_H

#include "calib/algorithm.h"
#include "calib/quantization_error.h"

extern const struct tare_algorithm tare_algorithm_min_max, tare_algorithm_average_min_max, tare_algorithm_percentile,
    tare_algorithm_entropy, tare_algorithm_mse, tare_algorithm_mse_symmetric;

#endif
