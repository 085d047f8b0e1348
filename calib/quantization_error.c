/* Quantization error of binned values.
 *
 * Bins carry prefix sums of count, value and value squared, so that the squared error of all bins that round to one
 * code is a difference of three sums: the cost depends on the number of codes, not of bins. */
#include "calib/quantization_error.h"

#include <float.h>

/* Sum of count * (centre - value)^2 over bins from … to-1. */
static double error_between(const struct tare_bins *bins, size_t from, size_t to, double value) {
    double count = bins->counts[to] - bins->counts[from];
    double sum = bins->sums[to] - bins->sums[from], square = bins->squares[to] - bins->squares[from];
    double error = square - 2 * value * sum + value * value * count;
    return error > 0 ? error : 0;
}

/* Squared rounding error of the values in bins from … to-1 where the codes are as close as the bins: the values of a
 * bin are taken to be uniform between two codes, scale^2 / 12 each. Zeros are exact. */
static double fine_rounding(const struct tare_qparams *params, const struct tare_bins *bins, size_t from, size_t to) {
    const size_t zero = tare_bins_below(bins, 0), positive = tare_bins_below(bins, DBL_MIN);
    double count = bins->counts[to] - bins->counts[from];
    if (zero >= from && positive <= to) count -= bins->counts[positive] - bins->counts[zero];
    return count * params->scale * params->scale / 12;
}

struct tare_quantization_error tare_quantization_error_of(const struct tare_qparams *params,
                                                          const struct tare_bins *bins) {
    enum { FINE = 4096 }; /* from this number of codes on, they are as close as the bins of any useful range */
    struct tare_quantization_error error = { 0 };
    double lowest = params->scale * (params->qmin - params->zero_point);
    double highest = params->scale * (params->qmax - params->zero_point);
    size_t first = tare_bins_below(bins, lowest - 0.5 * params->scale);
    size_t last = tare_bins_below(bins, highest + 0.5 * params->scale);
    if (last < first) last = first;
    error.clipping = error_between(bins, 0, first, lowest) + error_between(bins, last, bins->count, highest);
    error.clipped = bins->counts[first] + (tare_bins_total(bins) - bins->counts[last]);
    if (params->qmax - params->qmin >= FINE) {
        error.rounding = fine_rounding(params, bins, first, last);
        return error;
    }
    size_t at = first;
    for (double q = params->qmin; q <= params->qmax && at < last; q += 1) {
        double value = params->scale * (q - params->zero_point);
        size_t next = q == params->qmax ? last : tare_bins_below(bins, value + 0.5 * params->scale);
        if (next > last) next = last;
        if (next > at) error.rounding += error_between(bins, at, next, value);
        at = next > at ? next : at;
    }
    return error;
}
