/* How a tensor's range grows with the number of records: the extremes over the first 1, 2, 4, 8 … of them. */
#ifndef TARE_CALIB_CONVERGENCE_H
#define TARE_CALIB_CONVERGENCE_H

#include "calib/statistics.h"

struct tare_convergence_point {
    int64_t records;  /* the first 2^k records of the data set */
    double low, high; /* least and greatest finite value in them */
    double share;     /* of the whole range, each with zero in it: 0 … 1 */
};

/* Fills at most TARE_STATISTICS_BUCKETS points, from the first record that had a finite value on; the last one is the
 * whole range. Gives their count. */
size_t tare_convergence(struct tare_convergence_point *points, const struct tare_statistics *statistics);
/* The records of the first point from which on `share` of the whole range was seen; 0 when there are no points. */
int64_t tare_convergence_records(const struct tare_convergence_point *points, size_t count, double share);

/* The width that a range has once zero is in it, as quantized ranges must have it. */
double tare_width_with_zero(double low, double high);

#endif
