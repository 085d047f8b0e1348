/* Quantization parameters of ranges, and quantization of single values. */
#include "calib/qparams.h"
#include "base/tensor/dtype.h"
#include "base/tensor/float8.h"
#include "base/tensor/number.h"

#include <math.h>

/* As in TensorFlow's quantizer, which avoids very large integers in that way: a value outside the range, or an int32
 * bias, is divided by the scale. */
static const double SMALLEST_RANGE = 1e-6;

const struct tare_qscheme tare_qscheme_activation = { .bits = 8 };
const struct tare_qscheme tare_qscheme_wide = { .bits = 16, .symmetric = true, .narrow = true };
const struct tare_qscheme tare_qscheme_weight = { .bits = 8, .symmetric = true, .narrow = true };

const struct tare_float8 *tare_number_format_float8(enum tare_number_format format) {
    if (format == TARE_FORMAT_INT) return NULL;
    return tare_float8_format(format == TARE_FORMAT_E4M3 ? TARE_DT_FLOAT8_E4M3FN : TARE_DT_FLOAT8_E5M2);
}

/* The exact zero point is a fraction. Computed from either end of the range it differs by rounding; use the end with
 * the smaller error. */
static int32_t zero_point_least_error(double low, double high, const struct tare_qparams *p) {
    const double from_low = p->qmin - low / p->scale, from_high = p->qmax - high / p->scale;
    const double low_error = fabs((double)p->qmin) + fabs(low / p->scale);
    const double high_error = fabs((double)p->qmax) + fabs(high / p->scale);
    const double exact = low_error < high_error ? from_low : from_high;
    return (int32_t)tare_round_half_away(fmin(fmax(exact, p->qmin), p->qmax));
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

struct tare_qparams tare_qparams_of_range(double low, double high, const struct tare_qscheme *scheme) {
    const int32_t half = 1 << (scheme->bits - 1);
    const struct tare_float8 *float8 = tare_number_format_float8(scheme->format);
    struct tare_qparams p = { .qmin = -half + (scheme->narrow ? 1 : 0), .qmax = half - 1, .format = scheme->format };
    widen(&low, &high, scheme);
    if (float8) {
        p.qmax = (int32_t)float8->largest;
        p.qmin = -p.qmax;
        p.scale = high / p.qmax;
        return p;
    }
    if (scheme->symmetric && !scheme->narrow) {
        p.scale = fmax(high / p.qmax, low / p.qmin);
        return p;
    }
    low = ldexp(low, scheme->headroom);
    high = ldexp(high, scheme->headroom);
    p.scale = (high - low) / ((double)p.qmax - p.qmin);
    if (!scheme->symmetric) p.zero_point = zero_point_least_error(low, high, &p);
    return p;
}

tare_status tare_qparams_from_range(struct tare_qparams *out, double low, double high,
                                    const struct tare_qscheme *scheme) {
    if (!isfinite(low) || !isfinite(high) || low > high)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "[%g, %g] is not a range (expected finite ends, low <= high)", low,
                         high);
    *out = tare_qparams_of_range(low, high, scheme);
    return TARE_OK;
}

int32_t tare_quantize_constant(double value, const struct tare_qparams *params) {
    double q = tare_round_half_away(value / params->scale) + params->zero_point;
    if (isnan(q)) return params->zero_point;
    return (int32_t)fmin(fmax(q, params->qmin), params->qmax);
}

double tare_qparams_round(const struct tare_qparams *params, double value) {
    const struct tare_float8 *float8 = tare_number_format_float8(params->format);
    if (float8)
        return params->scale * (double)tare_float8_decode(float8, tare_float8_saturate(float8, value / params->scale));
    return params->scale * (tare_quantize_constant(value, params) - params->zero_point);
}
