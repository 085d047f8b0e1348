/* Quantization parameters. */
#include "quant/params.h"
#include "base/arena.h"
#include "tensor/number.h"

#include <math.h>
#include <string.h>

static const double SMALLEST_RANGE = 1e-6; /* narrower ranges give scales whose reciprocal overflows in float */

const struct tare_qscheme tare_qscheme_activation = { .bits = 8 };
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
    if (scheme->symmetric) {
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
    out->scale = (high - low) / ((double)out->qmax - out->qmin);
    zero = zero_point_least_error(low, high, out->scale, out->qmin, out->qmax);
    zero = fmin(fmax(zero, out->qmin), out->qmax);
    out->zero_point = scheme->symmetric && scheme->narrow ? 0 : (int32_t)tare_round_half_away(zero);
    return TARE_OK;
}

int32_t tare_quantize_constant(double value, const struct tare_qparams *params) {
    double q = tare_round_half_away(value / params->scale) + params->zero_point;
    if (isnan(q)) return params->zero_point;
    return (int32_t)fmin(fmax(q, params->qmin), params->qmax);
}

static double value_at(const struct tare_tensor *weight, int64_t i) {
    return TARE_CONST_DATA(float, weight)[weight->splat ? 0 : i];
}

static tare_status ranges(double *low, double *high, const struct tare_tensor *weight, int64_t channels, int64_t inner) {
    for (int64_t i = 0; i < weight->elements; i++) {
        double value = value_at(weight, i);
        int64_t c = (i / inner) % channels;
        if (!isfinite(value)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the weight holds NaN or infinity");
        low[c] = fmin(low[c], value);
        high[c] = fmax(high[c], value);
    }
    return TARE_OK;
}

tare_status tare_quantize_weight_channels(struct tare_quantized_weight *out, struct tare_arena *arena,
                                          const struct tare_tensor *weight, int64_t channels, int64_t inner,
                                          const struct tare_qscheme *scheme) {
    double *low = TARE_NEW_ARRAY(arena, double, (size_t)channels), *high = TARE_NEW_ARRAY(arena, double, (size_t)channels);
    struct tare_qparams *params = TARE_NEW_ARRAY(arena, struct tare_qparams, (size_t)channels);
    memset(out, 0, sizeof *out);
    out->scales = TARE_NEW_ARRAY(arena, double, (size_t)channels);
    if (!low || !high || !params || !out->scales) return TARE_NO_MEMORY;
    TARE_TRY(ranges(low, high, weight, channels, inner));
    for (int64_t c = 0; c < channels; c++) {
        TARE_TRY(tare_qparams_from_range(&params[c], low[c], high[c], scheme));
        out->scales[c] = params[c].scale;
    }
    TARE_TRY(tare_tensor_new(&out->values, scheme->bits > 8 ? TARE_DT_INT16 : TARE_DT_INT8, &weight->shape));
    for (int64_t i = 0; i < weight->elements; i++) {
        int32_t q = tare_quantize_constant(value_at(weight, i), &params[(i / inner) % channels]);
        if (scheme->bits > 8)
            TARE_DATA(int16_t, &out->values)[i] = (int16_t)q;
        else
            TARE_DATA(int8_t, &out->values)[i] = (int8_t)q;
    }
    out->channels = channels;
    out->inner = inner;
    return TARE_OK;
}

tare_status tare_quantize_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                 const struct tare_tensor *weight, int axis, const struct tare_qscheme *scheme) {
    int64_t inner = 1;
    if (axis < 0 || weight->elements == 0) return tare_quantize_weight_channels(out, arena, weight, 1, 1, scheme);
    for (int i = axis + 1; i < weight->shape.rank; i++) inner *= weight->shape.dims[i];
    return tare_quantize_weight_channels(out, arena, weight, weight->shape.dims[axis], inner, scheme);
}
