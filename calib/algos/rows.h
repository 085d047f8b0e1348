/* The rows of calib/algos/, for calib/algorithm.c only. */
#ifndef TARE_CALIB_ALGOS_ROWS_H
#define TARE_CALIB_ALGOS_ROWS_H

#include "calib/algorithm.h"
#include "calib/quantization_error.h"

/* In the order of documentation; the first one is the default. */
#define TARE_ALGORITHMS(X) X(min_max) X(average_min_max) X(percentile) X(entropy) X(mse) X(mse_symmetric)
#define TARE_ALGORITHM_ROW(name) extern const struct tare_algorithm tare_algorithm_##name;
TARE_ALGORITHMS(TARE_ALGORITHM_ROW)
#undef TARE_ALGORITHM_ROW

#endif
