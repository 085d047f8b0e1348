/* Quantization error of binned values.
 *
 * Bins carry prefix sums of count, value and value squared, so that the squared error of all bins that round to one
 * code is a difference of three sums. Codes to which no bin rounds are skipped, so that the cost depends on the number
 * of codes or of bins, whichever is smaller. */
#include "calib/quantization_error.h"
#include "base/tensor/float8.h"

#include <float.h>
#include <math.h>

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

static double code_value(const struct tare_qparams *params, double code) {
    return params->scale * (code - params->zero_point);
}

/* The code, from `code` on, that a value rounds to: the first whose upper end is above the value, or the last code. */
static double code_of(const struct tare_qparams *params, double value, double code) {
    const double half = 0.5 * params->scale;
    const double guess = fmin(floor(value / params->scale + 0.5) + params->zero_point, params->qmax);
    if (guess > code) code = guess;
    while (code > params->qmin && value < code_value(params, code - 1) + half)
        code--;
    while (code < params->qmax && !(value < code_value(params, code) + half))
        code++;
    return code;
}

/* The number of bins whose centre is below `end`, at least `from` and at most `last`. */
static size_t bins_until(const struct tare_bins *bins, size_t from, size_t last, double end) {
    enum { NEAR = 4 }; /* bins that are visited before a search in the index */
    const size_t near = last - from < NEAR ? last : from + NEAR;
    size_t at = from;
    while (at < near && bins->centers[at] < end)
        at++;
    if (at < near || at == last) return at;
    at = tare_bins_below(bins, end);
    return at < last ? at : last;
}

/* Sum of the rounding errors of bins first … last-1; stops when the sum and `clipping` exceed the limit. Codes to which
 * no bin rounds are skipped. */
static double error_of_few(const struct tare_qparams *params, const struct tare_bins *bins, size_t first, size_t last,
                           double clipping, double limit) {
    double error = 0, code = params->qmin;
    for (size_t at = first; at < last && !(error + clipping > limit); code++) {
        code = code_of(params, bins->centers[at], code);
        const double value = code_value(params, code);
        const size_t next = code == params->qmax ? last : bins_until(bins, at, last, value + 0.5 * params->scale);
        error += error_between(bins, at, next, value);
        at = next;
    }
    return error;
}

/* The same sum over all codes, where most have bins: the end of a code's bins does not wait for that of the code
 * before, and a code without bins adds 0. */
static double error_of_many(const struct tare_qparams *params, const struct tare_bins *bins, size_t first, size_t last,
                            double clipping, double limit) {
    double error = 0;
    size_t at = first;
    for (double code = params->qmin; code < params->qmax && !(error + clipping > limit); code++) {
        const double value = code_value(params, code);
        size_t next = tare_bins_below(bins, value + 0.5 * params->scale);
        next = next < at ? at : next > last ? last : next;
        error += error_between(bins, at, next, value);
        at = next;
    }
    return error + error_between(bins, at, last, code_value(params, params->qmax));
}

static double rounding_error(const struct tare_qparams *params, const struct tare_bins *bins, size_t first, size_t last,
                             double clipping, double limit) {
    const bool many = (double)(last - first) > params->qmax - params->qmin;
    return (many ? error_of_many : error_of_few)(params, bins, first, last, clipping, limit);
}

/* float8: numbers that are not equally far apart round to the nearest, so that each has the values up to the middle
 * between it and the next. Beyond the largest number, half of its distance to the one before is rounding. */
static struct tare_quantization_error error_of_float8(const struct tare_float8 *format,
                                                      const struct tare_qparams *params, const struct tare_bins *bins) {
    const int most = format->most;
    const double largest = format->largest * params->scale,
                 step = (format->largest - tare_float8_level(format, most - 1)) * params->scale;
    struct tare_quantization_error error = { 0 };
    const size_t first = tare_bins_below(bins, -largest - 0.5 * step);
    const size_t last = tare_bins_below(bins, largest + 0.5 * step);
    size_t at = first;
    for (int i = -most; i <= most && at < last; i++) {
        const double level = tare_float8_level(format, i), above = i < most ? tare_float8_level(format, i + 1) : 0;
        size_t next = i < most ? tare_bins_below(bins, 0.5 * (level + above) * params->scale) : last;
        next = next < at ? at : next > last ? last : next;
        error.rounding += error_between(bins, at, next, level * params->scale);
        at = next;
    }
    error.clipping = error_between(bins, 0, first, -largest) + error_between(bins, last, bins->count, largest);
    error.clipped = bins->counts[first] + (tare_bins_total(bins) - bins->counts[last]);
    return error;
}

static struct tare_quantization_error error_within(const struct tare_qparams *params, const struct tare_bins *bins,
                                                   double limit) {
    enum { FINE = 4096 }; /* from this number of codes on, they are as close as the bins of any useful range */
    const struct tare_float8 *float8 = tare_number_format_float8(params->format);
    struct tare_quantization_error error = { 0 };
    if (float8) return error_of_float8(float8, params, bins);
    const double lowest = code_value(params, params->qmin), highest = code_value(params, params->qmax);
    size_t first = tare_bins_below(bins, lowest - 0.5 * params->scale);
    size_t last = tare_bins_below(bins, highest + 0.5 * params->scale);
    if (last < first) last = first;
    error.clipping = error_between(bins, 0, first, lowest) + error_between(bins, last, bins->count, highest);
    error.clipped = bins->counts[first] + (tare_bins_total(bins) - bins->counts[last]);
    error.rounding = params->qmax - params->qmin >= FINE
                         ? fine_rounding(params, bins, first, last)
                         : rounding_error(params, bins, first, last, error.clipping, limit);
    return error;
}

struct tare_quantization_error tare_quantization_error_of(const struct tare_qparams *params,
                                                          const struct tare_bins *bins) {
    return error_within(params, bins, INFINITY);
}

double tare_quantization_error_within(const struct tare_qparams *params, const struct tare_bins *bins, double limit) {
    const struct tare_quantization_error error = error_within(params, bins, limit);
    return error.rounding + error.clipping;
}
