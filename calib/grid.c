#include "calib/grid.h"

#include "base/tensor/number.h"

#include <float.h>
#include <math.h>

const struct tare_grid_scheme tare_grid_activation = { .bits = 8 };

/* zero-point-least-error. */
static double zero_point(double low, double high, double scale, double qmin, double qmax) {
    double from_low = qmin - low / scale, from_high = qmax - high / scale;
    double low_error = fabs(qmin) + fabs(low / scale), high_error = fabs(qmax) + fabs(high / scale);
    double exact = low_error < high_error ? from_low : from_high;
    if (exact < qmin) return qmin;
    if (exact > qmax) return qmax;
    return tare_round_half_away(exact) + 0.0; /* no negative zero */
}

struct tare_grid tare_grid_from_range(double low, double high, const struct tare_grid_scheme *scheme) {
    struct tare_grid grid = { .qmin = -ldexp(1, scheme->bits - 1) + scheme->narrow,
                              .qmax = ldexp(1, scheme->bits - 1) - 1 };
    bool is_narrow = scheme->symmetric && scheme->narrow;
    if (low > 0) low = 0;
    if (high < 0) high = 0;
    if (is_narrow) {
        high = fmax(-low, high);
        low = -high;
    }
    if (high - low <= 1e-6) {
        low = fmin(low, -5e-7);
        high = fmax(high, 5e-7);
    }
    if (scheme->symmetric && !is_narrow) { /* range-symmetric-full */
        grid.scale = fmax(high / grid.qmax, low / grid.qmin);
        return grid;
    }
    grid.scale = (high - low) / (grid.qmax - grid.qmin);
    grid.zero_point = scheme->symmetric ? 0 : zero_point(low, high, grid.scale, grid.qmin, grid.qmax);
    return grid;
}

double tare_grid_round(const struct tare_grid *grid, double value) {
    double q = tare_round_half_away(value / grid->scale) + grid->zero_point;
    q = q < grid->qmin ? grid->qmin : q > grid->qmax ? grid->qmax : q;
    return grid->scale * (q - grid->zero_point);
}

/* Sum of count * (centre - value)^2 over bins from … to-1. */
static double error_between(const struct tare_bins *bins, size_t from, size_t to, double value) {
    double count = bins->counts[to] - bins->counts[from];
    double sum = bins->sums[to] - bins->sums[from], square = bins->squares[to] - bins->squares[from];
    double error = square - 2 * value * sum + value * value * count;
    return error > 0 ? error : 0;
}

/* Squared rounding error of the values in bins from … to-1 on a grid that is as fine as the bins: those of a bin lie
 * anywhere between its steps, but zero, which is one. */
static double fine_rounding(const struct tare_grid *grid, const struct tare_bins *bins, size_t from, size_t to) {
    const size_t zero = tare_bins_below(bins, 0), positive = tare_bins_below(bins, DBL_MIN);
    double count = bins->counts[to] - bins->counts[from];
    if (zero >= from && positive <= to) count -= bins->counts[positive] - bins->counts[zero];
    return count * grid->scale * grid->scale / 12;
}

struct tare_grid_error tare_grid_error_of(const struct tare_grid *grid, const struct tare_bins *bins) {
    enum { FINE = 4096 }; /* codes: more than the bins of any range that is worth it */
    struct tare_grid_error error = { 0 };
    double lowest = grid->scale * (grid->qmin - grid->zero_point);
    double highest = grid->scale * (grid->qmax - grid->zero_point);
    size_t first = tare_bins_below(bins, lowest - 0.5 * grid->scale);
    size_t last = tare_bins_below(bins, highest + 0.5 * grid->scale);
    if (last < first) last = first;
    error.clipping = error_between(bins, 0, first, lowest) + error_between(bins, last, bins->count, highest);
    error.clipped = bins->counts[first] + (tare_bins_total(bins) - bins->counts[last]);
    if (grid->qmax - grid->qmin >= FINE) {
        error.rounding = fine_rounding(grid, bins, first, last);
        return error;
    }
    size_t at = first;
    for (double q = grid->qmin; q <= grid->qmax && at < last; q += 1) {
        double value = grid->scale * (q - grid->zero_point);
        size_t next = q == grid->qmax ? last : tare_bins_below(bins, value + 0.5 * grid->scale);
        if (next > last) next = last;
        if (next > at) error.rounding += error_between(bins, at, next, value);
        at = next > at ? next : at;
    }
    return error;
}
