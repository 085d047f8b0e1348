/* Weights as integers or eight-bit floats: a stack of matrices with scales per column, per block of rows of a column,
 * or per tensor. */
#ifndef TARE_QUANT_WEIGHTS_H
#define TARE_QUANT_WEIGHTS_H

#include "base/arena.h"
#include "base/tensor/float8.h"
#include "calib/qparams.h"
#include "base/tensor/tensor.h"

/* Which elements of [batches, rows, columns] share a scale. */
struct tare_weight_layout {
    int64_t batches, rows, columns;
    int64_t block;   /* rows that share one; 0: all */
    bool per_tensor; /* one for the whole weight */
};

struct tare_quantized_weight {
    struct tare_tensor values; /* int8, also for 4 bits, or float8; the weight's shape */
    double *scales;            /* arena memory; see tare_weight_scale_index */
    int64_t n_scales;
    int64_t n_blocks; /* of rows: 1 unless there are several */
    struct tare_weight_layout layout;
    int bits;
    enum tare_number_format format;
};

/* The code of value / scale: constant-round-half-away, or float8-saturate. */
uint8_t tare_weight_encode(const struct tare_qparams *codes, double value, double scale);
/* What the scale is multiplied by for a code. */
static inline double tare_weight_decode(enum tare_number_format format, uint8_t code) {
    return format == TARE_FORMAT_INT ? (double)(int8_t)code
                                     : (double)tare_float8_decode(tare_number_format_float8(format), code);
}
/* The same at element i of `values`. */
static inline double tare_weight_code(const struct tare_quantized_weight *weight, int64_t i) {
    return tare_weight_decode(weight->format, TARE_CONST_DATA(uint8_t, &weight->values)[i]);
}

/* Index of the scale of the element (batch, row, column). */
int64_t tare_weight_scale_index(const struct tare_quantized_weight *weight, int64_t batch, int64_t row, int64_t column);

/* Parameters for each scale from the extremes of its elements (rules of tare_qparams_from_range), or those of the grid
 * that at least 4 elements are on already (weights after FakeQuant), which loses nothing; blocks of a column share the
 * largest of their scales with neighbours where that has the smaller squared error; integers by
 * constant-round-half-away. `weight` is float32 with batches * rows * columns elements, no splat. `out->values` is the
 * caller's to reset, also on failure. TARE_INVALID_ARGUMENT when it holds NaN or infinity. */
tare_status tare_quantize_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                 const struct tare_tensor *weight, const struct tare_weight_layout *layout,
                                 const struct tare_qscheme *scheme);
/* Its two steps: first the scales and everything in *out except the integers; then the integers, from the scales in
 * *out, which the caller may have changed. */
tare_status tare_weight_find_scales(struct tare_quantized_weight *out, struct tare_arena *arena,
                                    const struct tare_tensor *weight, const struct tare_weight_layout *layout,
                                    const struct tare_qscheme *scheme);
tare_status tare_quantize_weight_by_scales(struct tare_quantized_weight *out, const struct tare_tensor *weight,
                                           const struct tare_qscheme *scheme);

/* static-factor: input scale times weight scale (over the output's scale), each step in float32, as TensorFlow's
 * functions compute it in the graph. */
static inline double tare_quant_factor(const struct tare_qparams *input, double weight_scale) {
    return (double)((float)input->scale * (float)weight_scale);
}

/* Signal to noise of the dequantized weight in dB; infinity when nothing is lost. */
double tare_weight_sqnr_db(const struct tare_quantized_weight *weight, const struct tare_tensor *real);

/* nibble-packing: two rows a byte, row r of the first half in the low four bits, row r of the second half in the high
 * ones; an odd number of rows gets a row of zeros. Shape [batches, ceil(rows / 2), columns], without the first axis
 * when batches is 1. */
tare_status tare_weight_pack_nibbles(struct tare_tensor *out, const struct tare_quantized_weight *weight);

#endif
