/* The search for the range with the least squared error, shared by mse and mse_symmetric. */
#ifndef TARE_CALIB_ALGOS_SEARCH_H
#define TARE_CALIB_ALGOS_SEARCH_H

#include "calib/algos/rows.h"

/* Over both ends; one-sided data keeps 0 as its other end. */
struct tare_range tare_search_range(const struct tare_bins *bins, const struct tare_qscheme *scheme);
/* Over -t … t. */
struct tare_range tare_search_symmetric(const struct tare_bins *bins, const struct tare_qscheme *scheme);

#endif
