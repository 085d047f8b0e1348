/* Quantization parameters: from a range of real values to scale and zero point, and from values to integers.
 *
 * The rules are TensorFlow's (compiler/mlir/quantization, FakeQuantSupport and UniformSupport), named in
 * docs/numerics.md and fixed by tests. */
#ifndef TARE_QUANT_PARAMS_H
#define TARE_QUANT_PARAMS_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* How integers stand for reals: real = scale * (q - zero_point), q in [qmin, qmax]. */
struct tare_qparams {
    double scale; /* > 0 */
    int32_t zero_point;
    int32_t qmin, qmax;
};

/* What to make of a range. */
struct tare_qscheme {
    int bits;       /* 4, 8 or 16 */
    bool symmetric; /* range made symmetric around 0: zero point 0 (signed) */
    bool narrow;    /* leaves the lowest code out: [-127, 127] */
};

extern const struct tare_qscheme tare_qscheme_activation; /* int8 asymmetric [-128, 127] */
extern const struct tare_qscheme tare_qscheme_wide;       /* int16 symmetric [-32767, 32767] */
extern const struct tare_qscheme tare_qscheme_weight;     /* int8 symmetric narrow [-127, 127] */

/* Range [low, high] of real values -> parameters. Rules:
 *   range-contains-zero    the range is widened to contain 0;
 *   range-symmetric        max(|low|, |high|) both ways, zero point 0;
 *   range-symmetric-full   without `narrow`: the side that needs more decides, max(high / qmax, low / qmin), zero point
 * 0; range-degenerate       a range of at most 1e-6 is widened to [-5e-7, 5e-7] around what it has;
 *   zero-point-least-error the candidate from the end with the smaller rounding error, the upper end on a tie, clamped
 * to [qmin, qmax] and rounded half away from zero. TARE_INVALID_ARGUMENT for NaN, infinite or reversed ranges. */
tare_status tare_qparams_from_range(struct tare_qparams *out, double low, double high,
                                    const struct tare_qscheme *scheme);

/* constant-round-half-away: clamp(round_half_away(value / scale) + zero_point); NaN gives the zero point. */
int32_t tare_quantize_constant(double value, const struct tare_qparams *params);

#endif
