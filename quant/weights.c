/* Weights as integers and as eight-bit floats. */
#include "quant/weights.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

uint8_t tare_weight_encode(const struct tare_qparams *codes, double value, double scale) {
    const struct tare_float8 *float8 = tare_number_format_float8(codes->format);
    if (float8) return tare_float8_saturate(float8, value / scale);
    return (uint8_t)(int8_t)fmin(fmax(tare_round_half_away(value / scale), codes->qmin), codes->qmax);
}

/* Extremes of the elements that share a scale. */
struct extremes {
    float low, high;
};

int64_t tare_weight_scale_index(const struct tare_quantized_weight *weight, int64_t batch, int64_t row,
                                int64_t column) {
    const struct tare_weight_layout *layout = &weight->layout;
    if (layout->per_tensor) return 0;
    return (batch * weight->n_blocks + (weight->n_blocks > 1 ? row / layout->block : 0)) * layout->columns + column;
}

static tare_status find_extremes(struct extremes *extremes, const struct tare_quantized_weight *weight,
                                 const struct tare_tensor *real) {
    const struct tare_weight_layout *layout = &weight->layout;
    const float *value = TARE_CONST_DATA(float, real);
    for (int64_t b = 0; b < layout->batches; b++)
        for (int64_t k = 0; k < layout->rows; k++) {
            struct extremes *row = &extremes[tare_weight_scale_index(weight, b, k, 0)];
            for (int64_t n = 0; n < layout->columns; n++, value++) {
                struct extremes *e = layout->per_tensor ? extremes : &row[n];
                if (!isfinite(*value))
                    return TARE_FAIL(
                        TARE_INVALID_ARGUMENT,
                        "the weight contains NaN or infinity (leave the layer in float with a recipe rule)");
                if (*value < e->low) e->low = *value;
                if (*value > e->high) e->high = *value;
            }
        }
    return TARE_OK;
}

static tare_status set_layout(struct tare_quantized_weight *out, const struct tare_weight_layout *layout) {
    out->layout = *layout;
    out->n_blocks = layout->block && !layout->per_tensor ? (layout->rows + layout->block - 1) / layout->block : 1;
    if (out->n_blocks < 1) out->n_blocks = 1;
    out->n_scales = layout->per_tensor ? 1 : layout->batches * out->n_blocks * layout->columns;
    return TARE_OK;
}

/* ---- weights that are on a grid already ---- */

/* Elements that share a scale: `count` values, `step` apart. */
struct group {
    const float *values;
    int64_t count, step;
};

static struct group group_of(const struct tare_quantized_weight *weight, const float *values, int64_t scale) {
    const struct tare_weight_layout *layout = &weight->layout;
    const int64_t columns = layout->columns, rows = layout->rows;
    if (layout->per_tensor) return (struct group){ values, layout->batches * rows * columns, 1 };
    const int64_t column = scale % columns, block = scale / columns % weight->n_blocks,
                  batch = scale / columns / weight->n_blocks;
    const int64_t height = weight->n_blocks > 1 ? layout->block : rows, first = block * height;
    return (struct group){ values + (batch * rows + first) * columns + column,
                           first + height > rows ? rows - first : height, columns };
}

/* Whether a value in steps is a code, but for the rounding of float32 in the value and in the scale. */
static bool is_code(double steps, const struct tare_float8 *float8) {
    const double tolerance = 1.0 / 4096, relative = 0x1p-21;
    if (!float8) return fabs(steps - nearbyint(steps)) <= tolerance;
    const double code = (double)tare_float8_decode(float8, tare_float8_saturate(float8, steps));
    return fabs(steps - code) <= relative * fabs(steps);
}

/* All values are codes times `scale`, and enough of them are not 0 for this not to be chance: a channel of a depthwise
 * filter has 9 values. Four are so by chance once in 10^8 channels (127 scales, 2048 distinguishable positions between
 * two steps, the largest value always fits), and lose nothing then. */
static bool is_on_grid(const struct group *group, double scale, const struct tare_float8 *float8) {
    enum { LEAST_VALUES = 4 };
    int64_t nonzero = 0;
    for (int64_t i = 0; i < group->count; i++) {
        const float value = group->values[i * group->step];
        if (!is_code((double)value / scale, float8)) return false;
        nonzero += value != 0;
    }
    return nonzero >= LEAST_VALUES;
}

/* Quantization-aware training leaves weights that FakeQuant has rounded, and a model may have its weights in float8
 * times scales. Where the largest one of a channel is not at the end of the range, a scale by the extremes would round
 * all of them again: the scale is then that of the grid. `scale` is the one by the extremes, whose code is qmax. The
 * codes of float8 are those of one octave; others are their powers of two. */
static double keep_grid(const struct group *group, double scale, int qmax, const struct tare_float8 *float8) {
    const int most = float8 ? float8->most : qmax, least = float8 ? most - (1 << float8->fraction) : 0;
    if (scale <= 0) return scale;
    for (int largest = most; largest > least; largest--) {
        const double candidate = scale * qmax / (float8 ? tare_float8_level(float8, largest) : largest);
        if (is_on_grid(group, candidate, float8)) return candidate;
    }
    return scale;
}

/* ---- blocks ---- */

static double squared_error(const struct group *group, double scale, const struct tare_qparams *codes) {
    double error = 0;
    for (int64_t i = 0; i < group->count; i++) {
        const double value = (double)group->values[i * group->step];
        const double code = tare_weight_decode(codes->format, tare_weight_encode(codes, value, scale));
        error += (value - scale * code) * (value - scale * code);
    }
    return error;
}

/* The scales of a column whose first scale is `first`, with `width` consecutive blocks sharing the largest of their own
 * scales; returns the squared error of the column. */
static double join_blocks(double *out, const struct tare_quantized_weight *weight, const float *values, int64_t first,
                          int64_t width, const struct tare_qparams *codes) {
    const int64_t columns = weight->layout.columns;
    double error = 0;
    for (int64_t b = 0; b < weight->n_blocks; b++) {
        const int64_t begin = b / width * width, scale = first + b * columns;
        const struct group group = group_of(weight, values, scale);
        out[b] = 0;
        for (int64_t i = begin; i < begin + width && i < weight->n_blocks; i++)
            out[b] = fmax(out[b], weight->scales[first + i * columns]);
        error += squared_error(&group, out[b], codes);
    }
    return error;
}

/* Few values share the scale of a block, so that their error depends on where they happen to be on its grid: a column
 * may lose more with scales of its blocks than with one scale. The blocks of a column therefore share scales with 1, 2,
 * 4 … neighbours, up to the whole column, whatever has the least squared error. The choices of larger blocks are among
 * those of smaller ones, hence smaller blocks never have a larger squared error. */
static tare_status choose_block_scales(struct tare_quantized_weight *weight, struct tare_arena *arena,
                                       const float *values, const struct tare_qscheme *scheme) {
    const struct tare_qparams codes = tare_qparams_of_range(0, 1, scheme); /* for qmin and qmax */
    const int64_t columns = weight->layout.columns, blocks = weight->n_blocks;
    double *best, *other;
    if (blocks < 2) return TARE_OK;
    best = TARE_NEW_ARRAY(arena, double, (size_t)blocks);
    other = TARE_NEW_ARRAY(arena, double, (size_t)blocks);
    if (!best || !other) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < weight->layout.batches * columns; c++) {
        const int64_t first = c / columns * columns * blocks + c % columns;
        double least = join_blocks(best, weight, values, first, 1, &codes);
        for (int64_t width = 2; width < 2 * blocks; width *= 2) {
            const double error = join_blocks(other, weight, values, first, width, &codes);
            if (!(error < least)) continue;
            least = error;
            memcpy(best, other, (size_t)blocks * sizeof *best);
        }
        for (int64_t b = 0; b < blocks; b++)
            weight->scales[first + b * columns] = best[b];
    }
    return TARE_OK;
}

tare_status tare_weight_find_scales(struct tare_quantized_weight *out, struct tare_arena *arena,
                                    const struct tare_tensor *weight, const struct tare_weight_layout *layout,
                                    const struct tare_qscheme *scheme) {
    struct extremes *extremes;
    memset(out, 0, sizeof *out);
    TARE_TRY(set_layout(out, layout));
    extremes = TARE_NEW_ARRAY(arena, struct extremes, (size_t)out->n_scales);
    out->scales = TARE_NEW_ARRAY(arena, double, (size_t)out->n_scales);
    if (!extremes || !out->scales) return TARE_NO_MEMORY;
    TARE_TRY(find_extremes(extremes, out, weight));
    for (int64_t i = 0; i < out->n_scales; i++) {
        struct tare_qparams params;
        TARE_TRY(tare_qparams_from_range(&params, extremes[i].low, extremes[i].high, scheme));
        const struct group group = group_of(out, TARE_CONST_DATA(float, weight), i);
        out->scales[i] = scheme->symmetric && scheme->narrow
                             ? keep_grid(&group, params.scale, params.qmax, tare_number_format_float8(scheme->format))
                             : params.scale;
    }
    return choose_block_scales(out, arena, TARE_CONST_DATA(float, weight), scheme);
}

tare_status tare_quantize_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                 const struct tare_tensor *weight, const struct tare_weight_layout *layout,
                                 const struct tare_qscheme *scheme) {
    TARE_TRY(tare_weight_find_scales(out, arena, weight, layout, scheme));
    return tare_quantize_weight_by_scales(out, weight, scheme);
}

/* round_half_away(value / scale), clamped to low … high; 0 for NaN (tare_quantize_constant without zero point, inlined
 * for the millions of elements of a weight). */
static inline int8_t code_of(float value, double scale, double low, double high) {
    const double x = value / scale;
    if (isnan(x)) return 0;
    if (x <= low) return (int8_t)low;
    if (x >= high) return (int8_t)high;
    const int whole = (int)x;
    const double fraction = x - whole;
    return (int8_t)(whole + (fraction >= 0.5) - (fraction <= -0.5));
}

tare_status tare_quantize_weight_by_scales(struct tare_quantized_weight *out, const struct tare_tensor *weight,
                                           const struct tare_qscheme *scheme) {
    const struct tare_float8 *float8 = tare_number_format_float8(scheme->format);
    const struct tare_weight_layout *layout = &out->layout;
    const float *value = TARE_CONST_DATA(float, weight);
    struct tare_qparams params;
    uint8_t *q;
    TARE_TRY(tare_qparams_from_range(&params, 0, 1, scheme)); /* for qmin and qmax */
    out->bits = scheme->bits;
    out->format = scheme->format;
    TARE_TRY(tare_tensor_new(&out->values, float8 ? float8->dtype : TARE_DT_INT8, &weight->shape));
    q = TARE_DATA(uint8_t, &out->values);
    for (int64_t b = 0; b < layout->batches; b++)
        for (int64_t k = 0; k < layout->rows; k++) {
            const double *scales = &out->scales[tare_weight_scale_index(out, b, k, 0)];
            for (int64_t n = 0; n < layout->columns; n++, value++) {
                const double scale = scales[layout->per_tensor ? 0 : n];
                *q++ = float8 ? tare_float8_saturate(float8, *value / scale)
                              : (uint8_t)code_of(*value, scale, params.qmin, params.qmax);
            }
        }
    return TARE_OK;
}

double tare_weight_sqnr_db(const struct tare_quantized_weight *weight, const struct tare_tensor *real) {
    const struct tare_weight_layout *layout = &weight->layout;
    const float *value = TARE_CONST_DATA(float, real);
    double signal = 0, noise = 0;
    int64_t i = 0;
    for (int64_t b = 0; b < layout->batches; b++)
        for (int64_t k = 0; k < layout->rows; k++) {
            const double *scales = &weight->scales[tare_weight_scale_index(weight, b, k, 0)];
            for (int64_t n = 0; n < layout->columns; n++, value++, i++) {
                double error = *value - tare_weight_code(weight, i) * scales[layout->per_tensor ? 0 : n];
                signal += (double)*value * *value;
                noise += error * error;
            }
        }
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

tare_status tare_weight_pack_nibbles(struct tare_tensor *out, const struct tare_quantized_weight *weight) {
    const struct tare_weight_layout *layout = &weight->layout;
    const int64_t half = (layout->rows + 1) / 2, columns = layout->columns;
    const int8_t *q = TARE_CONST_DATA(int8_t, &weight->values);
    struct tare_shape shape = { .rank = layout->batches == 1 ? 2 : 3 };
    uint8_t *packed;
    shape.dims[0] = layout->batches;
    shape.dims[shape.rank - 2] = half;
    shape.dims[shape.rank - 1] = columns;
    TARE_TRY(tare_tensor_new(out, TARE_DT_INT8, &shape));
    packed = TARE_DATA(uint8_t, out);
    for (int64_t b = 0; b < layout->batches; b++, q += layout->rows * columns)
        for (int64_t k = 0; k < half; k++)
            for (int64_t n = 0; n < columns; n++) {
                const unsigned low = (uint8_t)q[k * columns + n] & 15;
                const unsigned high = k + half < layout->rows ? (uint8_t)q[(k + half) * columns + n] & 15 : 0;
                *packed++ = (uint8_t)(low | high << 4);
            }
    return TARE_OK;
}
