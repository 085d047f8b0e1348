/* One pass over a block of floats: extremes, zeros, sums, and the histogram slot of each value. This is the hot loop
 * of calibration; it is independent of tensors. */
#ifndef TARE_CALIB_SCAN_H
#define TARE_CALIB_SCAN_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

enum {
    TARE_SCAN_LANES = 16,
    TARE_SCAN_BLOCK =
        2048,             /* most floats in one call: slots (8 KiB) and values (8 KiB) stay in the first-level cache */
    TARE_SCAN_SHIFT = 14, /* mantissa bits that a slot leaves out */
    TARE_SCAN_SLOTS = 1 << (32 - TARE_SCAN_SHIFT),
};

struct tare_scan {
    float low, high; /* of the finite values, a zero as +0; low > high: none yet */
    int64_t zeros, not_finite;
    /* Of the finite values; value i of the whole scan is added to lane i mod 16, so all variants add in the same order.
     */
    double sums[TARE_SCAN_LANES], squares[TARE_SCAN_LANES];
};

void tare_scan_begin(struct tare_scan *scan);

/* Scans `count` values, at most TARE_SCAN_BLOCK; all blocks of a scan but the last have a multiple of 16. Writes the
 * slot (upper 18 bits) of every finite value that is not zero and returns their number; there is room for `count`. */
typedef int tare_scan_fn(struct tare_scan *scan, uint32_t *slots, const float *values, int count);
tare_scan_fn tare_scan_plain, tare_scan_avx2, tare_scan_avx512;
tare_scan_fn *tare_scan_best(enum tare_cpu_level level);

/* Sums of the lanes, in one fixed order. */
double tare_scan_total(const double lanes[TARE_SCAN_LANES]);

#endif
