/* Quantization parameters: from a range of real values to scale and zero point, and from values to integers.
 *
 * The rules are TensorFlow's (compiler/mlir/quantization, FakeQuantSupport and UniformSupport), named in docs/numerics.md
 * and fixed by tests. */
#ifndef TARE_QUANT_PARAMS_H
#define TARE_QUANT_PARAMS_H

#include "base/status.h"
#include "tensor/tensor.h"

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
extern const struct tare_qscheme tare_qscheme_weight;     /* int8 symmetric narrow [-127, 127] */

/* Range [low, high] of real values -> parameters. Rules:
 *   range-contains-zero    the range is widened to contain 0;
 *   range-symmetric        max(|low|, |high|) both ways;
 *   range-degenerate       a range of at most 1e-6 is widened to [-5e-7, 5e-7] around what it has;
 *   zero-point-least-error the candidate from the end with the smaller rounding error, the upper end on a tie, clamped to
 *                          [qmin, qmax] and rounded half away from zero.
 * TARE_INVALID_ARGUMENT for NaN, infinite or reversed ranges. */
tare_status tare_qparams_from_range(struct tare_qparams *out, double low, double high, const struct tare_qscheme *scheme);

/* constant-round-half-away: clamp(round_half_away(value / scale) + zero_point); NaN gives the zero point. */
int32_t tare_quantize_constant(double value, const struct tare_qparams *params);

/* A quantized constant: int8 values (int4 and int16 too, one element a value) and one scale a channel or one in all. */
struct tare_quantized_weight {
    struct tare_tensor values; /* int8, shape of the weight */
    double *scales;            /* arena memory */
    int64_t channels;          /* 1: per tensor */
    int64_t inner;             /* element i belongs to channel (i / inner) % channels */
};

/* Quantizes a float32 weight; axis < 0: per tensor, else one scale an index of that axis. `values` is the caller's to
 * reset. */
struct tare_arena;
tare_status tare_quantize_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                 const struct tare_tensor *weight, int axis, const struct tare_qscheme *scheme);
/* The same where channels are given by (inner, channels) instead of one axis: depthwise filters [H, W, C, M] have C * M. */
tare_status tare_quantize_weight_channels(struct tare_quantized_weight *out, struct tare_arena *arena,
                                          const struct tare_tensor *weight, int64_t channels, int64_t inner,
                                          const struct tare_qscheme *scheme);

#endif
