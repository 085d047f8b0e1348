/* Quantization parameters: the scale and zero point of a range of real values, and the integer codes of values.
 *
 * The clipping-range algorithms (calib/algos/) rate candidate ranges with these functions, and the rewrites of quant/
 * write the parameters into models, so that a range is deployed exactly as it was rated. The rules are TensorFlow's
 * (compiler/mlir/quantization, FakeQuantSupport and UniformSupport); docs/numerics.md names them, and each has a test
 * of its name. */
#ifndef TARE_CALIB_QPARAMS_H
#define TARE_CALIB_QPARAMS_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* What codes are: integers of some bits, or eight-bit floats. */
enum tare_number_format { TARE_FORMAT_INT, TARE_FORMAT_E4M3, TARE_FORMAT_E5M2 };
struct tare_float8; /* base/tensor/float8.h */
/* The float8 format; NULL: integers. */
const struct tare_float8 *tare_number_format_float8(enum tare_number_format format);

/* An affine quantization: real = scale * (q - zero_point), q in [qmin, qmax]; of float8 q is a number of the format,
 * the zero point is 0, and qmin and qmax are the largest numbers. */
struct tare_qparams {
    double scale; /* > 0 */
    int32_t zero_point;
    int32_t qmin, qmax;
    enum tare_number_format format;
};

/* The type of codes and the form of their parameters. */
struct tare_qscheme {
    int bits;                       /* 2 to 16; signed */
    bool symmetric;                 /* zero point 0 */
    bool narrow;                    /* the lowest code is not used: [-127, 127] */
    enum tare_number_format format; /* float8: bits, symmetric and narrow are those of tare_qscheme_weight */
    int headroom;                   /* the codes reach 2^headroom times as far as the range */
};

extern const struct tare_qscheme tare_qscheme_activation; /* int8 asymmetric [-128, 127] */
extern const struct tare_qscheme tare_qscheme_wide;       /* int16 symmetric [-32767, 32767] */
extern const struct tare_qscheme tare_qscheme_weight;     /* int8 symmetric narrow [-127, 127] */

/* Parameters of the range [low, high]; both ends finite, low <= high (the caller checks). Rules:
 *   range-contains-zero     the range is widened to contain 0;
 *   range-symmetric         symmetric and narrow: max(|low|, |high|) on both sides, zero point 0;
 *   range-symmetric-full    symmetric, not narrow: scale is max(high / qmax, low / qmin), zero point 0;
 *   range-degenerate        a range no wider than 1e-6 is extended to at least [-5e-7, 5e-7];
 *   range-headroom          the range is then made 2^headroom times as wide;
 *   zero-point-least-error  the zero point computed from the end of the range with the smaller rounding error (the
 * upper end on a tie), clamped to [qmin, qmax] and rounded half away from zero;
 *   float8-scale            float8: max(|low|, |high|) is the largest number of the format. */
struct tare_qparams tare_qparams_of_range(double low, double high, const struct tare_qscheme *scheme);
/* The same for a range that was not checked: TARE_INVALID_ARGUMENT when an end is not finite or low > high. */
tare_status tare_qparams_from_range(struct tare_qparams *out, double low, double high,
                                    const struct tare_qscheme *scheme);

/* constant-round-half-away: clamp(round_half_away(value / scale) + zero_point); the zero point for NaN. Integers only.
 */
int32_t tare_quantize_constant(double value, const struct tare_qparams *params);
/* The real value of the code that `value` is quantized to. */
double tare_qparams_round(const struct tare_qparams *params, double value);

#endif
