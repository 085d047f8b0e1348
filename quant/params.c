/* Quantization parameters. */
#include "quant/params.h"
#include "base/tensor/number.h"

#include <math.h>

static const double SMALLEST_RANGE = 1e-6; /* narrower ranges give scales whose reciprocal overflows in float */

const struct tare_qscheme tare_qscheme_activation = { .bits = 8 };
const struct tare_qscheme tare_qscheme_wide = { .bits = 16, .symmetric = true, .narrow = true };
const struct tare_qscheme tare_qscheme_weight = { .bits = 8, .symmetric = true, .narrow = true };

/* The real zero point lies between two integers; the end of the range that has the smaller rounding error decides. */
static double zero_point_least_error(double low, double high, double scale, double qmin, double qmax) {
    double from_low = qmin - low / scale, from_high = qmax - high / scale;
    double low_error = fabs(qmin) + fabs(low / scale), high_error = fabs(qmax) + fabs(high / scale);
    return low_error < high_error ? from_low : from_high;
}

static void widen(double *low, double *high, const struct tare_qscheme *scheme) {
    *low = fmin(*low, 0);
    *high = fmax(*high, 0);
    if (scheme->symmetric && scheme->narrow) {
        *high = fmax(-*low, *high);
        *low = -*high;
    }
    if (*high - *low <= SMALLEST_RANGE) {
        *low = fmin(*low, -SMALLEST_RANGE / 2);
        *high = fmax(*high, SMALLEST_RANGE / 2);
    }
}

tare_status tare_qparams_from_range(struct tare_qparams *out, double low, double high,
                                    const struct tare_qscheme *scheme) {
    int32_t half = 1 << (scheme->bits - 1);
    double zero;
    if (!isfinite(low) || !isfinite(high) || low > high)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "[%g, %g] is no range to quantize", low, high);
    widen(&low, &high, scheme);
    out->qmin = -half + (scheme->narrow ? 1 : 0);
    out->qmax = half - 1;
    if (scheme->symmetric && !scheme->narrow) {
        out->scale = fmax(high / out->qmax, low / out->qmin);
        out->zero_point = 0;
        return TARE_OK;
    }
    out->scale = (high - low) / ((double)out->qmax - out->qmin);
    zero = zero_point_least_error(low, high, out->scale, out->qmin, out->qmax);
    zero = fmin(fmax(zero, out->qmin), out->qmax);
    out->zero_point = scheme->symmetric ? 0 : (int32_t)tare_round_half_away(zero);
    return TARE_OK;
}

int32_t tare_quantize_constant(double value, const struct tare_qparams *params) {
    double q = tare_round_half_away(value / params->scale) + params->zero_point;
    if (isnan(q)) return params->zero_point;
    return (int32_t)fmin(fmax(q, params->qmin), params->qmax);
}
