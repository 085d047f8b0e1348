/* Recognising requantizations among bound expressions (requantize.h). */
#include "interpreter/kernels/integer/requantize_rows.h"

#include "interpreter/kernels/expression.h"

#include <math.h>

enum { LANES = TARE_EXPRESSION_LANES };

/* A pipeline of which the first `at` stages have been recognised. */
struct reader {
    const struct tare_bound_expression *bound;
    const struct tare_pipeline *pipeline;
    int at;
};

static const struct tare_stage *peek(const struct reader *reader) {
    return reader->at < reader->pipeline->n_stages ? &reader->pipeline->stages[reader->at] : NULL;
}

static const struct tare_stage *take(struct reader *reader, enum tare_stage_code code) {
    const struct tare_stage *stage = peek(reader);
    if (!stage || stage->code != code) return NULL;
    reader->at++;
    return stage;
}

static const struct tare_stage *take_scalar(struct reader *reader, enum tare_stage_code code) {
    const struct tare_stage *stage = peek(reader);
    return stage && stage->is_one ? take(reader, code) : NULL;
}

/* The lanes of a stage whose operand is a vector, `columns + LANES` of them, or a scalar. NULL: an array. */
static const void *column_lanes(const struct reader *reader, const struct tare_stage *stage) {
    return stage->is_one ? stage->operand : reader->bound->vectors[stage->tag];
}

/* ---- the parts ---- */

/* Integer additions and subtractions, if there are any, as one vector of addends: their sums wrap. NULL: something
 * else, or no memory. */
static const int32_t *take_offset(int64_t lanes, struct reader *reader, struct tare_arena *arena) {
    struct reader ahead = *reader;
    const struct tare_stage *only = take(&ahead, TARE_STAGE_INT_ADD), *next = peek(&ahead);
    if (only && !only->is_one && column_lanes(reader, only) && next && next->code == TARE_STAGE_TO_FLOAT) {
        *reader = ahead;
        return column_lanes(reader, only);
    }
    int32_t *offset = TARE_NEW_ARRAY(arena, int32_t, (size_t)lanes);
    for (; offset; reader->at++) {
        const struct tare_stage *stage = peek(reader);
        const bool is_sum = stage && stage->code == TARE_STAGE_INT_ADD;
        if (!is_sum && !(stage && stage->code == TARE_STAGE_INT_SUB)) return offset;
        const uint32_t *from = column_lanes(reader, stage);
        if (!from) return NULL;
        for (int64_t i = 0; i < lanes; i++) {
            const uint32_t x = from[stage->is_one ? 0 : i], sum = (uint32_t)offset[i];
            offset[i] = (int32_t)(is_sum ? sum + x : sum - x);
        }
    }
    return NULL;
}

/* The operand of a stage with `code` as one float for each column. NULL: something else, or no memory. */
static const float *take_columns(int64_t lanes, struct reader *reader, enum tare_stage_code code,
                                 struct tare_arena *arena) {
    const struct tare_stage *stage = peek(reader);
    const float *from = !stage || stage->code != code ? NULL : column_lanes(reader, stage);
    float *copies = from && stage->is_one ? tare_arena_alloc(arena, (size_t)lanes * sizeof *copies) : NULL;
    if (!from || (stage->is_one && !copies)) return NULL;
    for (int64_t i = 0; copies && i < lanes; i++)
        copies[i] = *from;
    reader->at++;
    return copies ? copies : from;
}

/* Quantization to values of `type`, which therefore need no wrapping. */
static bool take_quantize(struct tare_quantize_stage *out, struct reader *reader, enum tare_lane_type type) {
    const struct tare_stage *stage = take(reader, TARE_STAGE_QUANTIZE_TO_INT);
    const float least = type == TARE_LANE_INT8 ? -128 : 0, most = type == TARE_LANE_INT8 ? 127 : 255;
    if (!stage || !(stage->low >= least) || !(stage->high <= most) || !(stage->low <= stage->high)) return false;
    *out = (struct tare_quantize_stage){ stage->add, stage->low, stage->high };
    take(reader, type == TARE_LANE_INT8 ? TARE_STAGE_INT8 : TARE_STAGE_UINT8);
    return true;
}

static bool take_dequantize(struct tare_dequantize_stage *out, struct reader *reader) {
    const struct tare_stage *zero_point = take_scalar(reader, TARE_STAGE_INT_SUB);
    if (!take(reader, TARE_STAGE_TO_FLOAT)) return false;
    const struct tare_stage *scale = take_scalar(reader, TARE_STAGE_MUL);
    if (!scale) return false;
    *out = (struct tare_dequantize_stage){ zero_point ? *(const int32_t *)zero_point->operand : 0,
                                           *(const float *)scale->operand };
    return true;
}

/* The branch that dequantizes the addend. */
static bool take_addend(struct tare_requantize *out, const struct tare_bound_expression *bound, int operand) {
    const int b = operand < 0 ? 0 : bound->expression->branch_of[operand];
    struct reader reader = { bound, &bound->pipelines[b], 0 };
    if (b == 0 || !take_dequantize(&out->of_addend, &reader) || peek(&reader)) return false;
    const struct tare_operand *source = &bound->operands[bound->expression->branches[b].source];
    out->addend_is_unsigned = source->type == TARE_LANE_UINT8;
    return source->kind == TARE_OPERAND_ARRAY && (source->type == TARE_LANE_UINT8 || source->type == TARE_LANE_INT8);
}

static bool take_sum(struct tare_requantize *out, struct reader *reader, enum tare_lane_type type) {
    if (!take_dequantize(&out->of_result, reader)) return false;
    const struct tare_stage *sum = take(reader, TARE_STAGE_ADD);
    if (!sum || sum->is_one || !take_addend(out, reader->bound, sum->tag)) return false;
    if (!take_quantize(&out->second, reader, type)) return false;
    const struct tare_stage *least = take_scalar(reader, TARE_STAGE_INT_MAXIMUM);
    out->least = least ? *(const int32_t *)least->operand : INT32_MIN;
    return true;
}

/* ---- float results ---- */

static bool is_float_array(const struct tare_bound_expression *bound, int operand) {
    return operand >= 0 && !bound->expression->branch_of[operand] &&
           bound->operands[operand].kind == TARE_OPERAND_ARRAY && bound->operands[operand].type == TARE_LANE_FLOAT;
}

static bool take_bounds(struct tare_real_stage *out, struct reader *reader) {
    const struct tare_stage *low = take_scalar(reader, TARE_STAGE_MAXIMUM);
    const bool is_relu6 = !low && take(reader, TARE_STAGE_RELU6);
    const bool is_relu = !low && !is_relu6 && take(reader, TARE_STAGE_RELU);
    const struct tare_stage *high = is_relu6 ? NULL : take_scalar(reader, TARE_STAGE_MINIMUM);
    out->low = low ? *(const float *)low->operand : is_relu || is_relu6 ? 0 : -INFINITY;
    out->high = high ? *(const float *)high->operand : is_relu6 ? 6 : INFINITY;
    return !isnan(out->low) && !isnan(out->high);
}

/* The stages after the scale, up to the end. */
static bool take_real(struct tare_real_stage *out, struct reader *reader, int64_t lanes, struct tare_arena *arena) {
    out->bias = take_columns(lanes, reader, TARE_STAGE_ADD, arena);
    const struct tare_stage *sum = peek(reader);
    const bool has_addend =
        sum && !sum->is_one && is_float_array(reader->bound, sum->tag) && take(reader, TARE_STAGE_ADD);
    if (has_addend && !out->bias) {
        out->bias = take_columns(lanes, reader, TARE_STAGE_ADD, arena);
        out->bias_is_last = out->bias != NULL;
    }
    return take_bounds(out, reader) && !peek(reader);
}

/* ---- the whole ---- */

bool tare_requantize_find(struct tare_requantize *out, const struct tare_bound_expression *bound,
                          struct tare_arena *arena) {
    const struct tare_expression *expression = bound->expression;
    struct reader reader = { bound, &bound->pipelines[0], 0 };
    const enum tare_lane_type type = expression->to;
    if (expression->branches[0].source >= 0 || expression->from != TARE_LANE_INT32) return false;
    if (type != TARE_LANE_INT8 && type != TARE_LANE_UINT8 && type != TARE_LANE_FLOAT) return false;
    const int64_t lanes = bound->columns + LANES;
    *out = (struct tare_requantize){ .columns = bound->columns, .offset = take_offset(lanes, &reader, arena) };
    if (!out->offset || !take(&reader, TARE_STAGE_TO_FLOAT)) return false;
    out->scale = take_columns(lanes, &reader, TARE_STAGE_MUL, arena);
    if (!out->scale) return false;
    out->is_real = type == TARE_LANE_FLOAT;
    if (out->is_real) return take_real(&out->real, &reader, lanes, arena);
    if (!take_quantize(&out->first, &reader, type)) return false;
    return !peek(&reader) || (take_sum(out, &reader, type) && !peek(&reader));
}

/* ---- quantized float results ---- */

/* The byte of a bound of the values. */
void tare_requantize_bind(struct tare_requantize *requantize, const struct tare_bound_expression *bound) {
    const struct tare_expression *expression = bound->expression;
    const bool is_real = expression->to == TARE_LANE_FLOAT;
    requantize->to = is_real ? NULL : bound->to;
    requantize->real.floats = is_real ? bound->to : NULL;
    requantize->real.range = is_real ? bound->range : NULL;
    requantize->addend = NULL;
    requantize->real.addend = NULL;
    for (int i = 0; i < expression->n_operands; i++) {
        const int b = expression->branch_of[i];
        if (b > 0) requantize->addend = bound->operands[expression->branches[b].source].data;
        if (is_real && is_float_array(bound, i)) requantize->real.addend = bound->operands[i].data;
    }
}

#if TARE_KERNELS_X86
/* ---- bounds of bytes ---- */

/* Values far from the bounds of int32. */
static bool is_small(float x, float most) {
    return x >= -most && x <= most; /* false for NaN */
}

static TARE_TARGET_AVX2 bool scales_are_small(const float *scale, int64_t n) {
    const __m256 most = _mm256_set1_ps(0.5f);
    int small = 0xff;
    for (int64_t i = 0; i < n; i += 8) { /* the arrays have 16 lanes more */
        const __m256 x = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(scale + i));
        small &= _mm256_movemask_ps(_mm256_cmp_ps(x, most, _CMP_LE_OQ));
    }
    return small == 0xff;
}

/* Rounding is monotonic, so values may be clamped to the rounded bounds after rounding; they fit int32 then, with the
 * limits required here. */
TARE_TARGET_AVX2 struct tare_byte_bounds tare_byte_bounds_of(const struct tare_requantize *r, int64_t column,
                                                             int64_t n) {
    const struct tare_byte_bounds none = { false, 0, 0 };
    if (r->is_real || !is_small(r->first.add, 1 << 20) || !scales_are_small(r->scale + column, n)) return none;
    if (!r->addend)
        return (struct tare_byte_bounds){ true, (int32_t)nearbyintf(r->first.low), (int32_t)nearbyintf(r->first.high) };
    if (r->least > INT8_MAX || !is_small(r->second.add, 1 << 20) || !is_small(r->of_result.scale, 1 << 18) ||
        !is_small(r->of_addend.scale, 1 << 18) || r->of_result.zero_point != (int16_t)r->of_result.zero_point ||
        r->of_addend.zero_point != (int16_t)r->of_addend.zero_point)
        return none;
    const int32_t low = (int32_t)nearbyintf(r->second.low), high = (int32_t)nearbyintf(r->second.high);
    return (struct tare_byte_bounds){ true, low < r->least ? r->least : low, high < r->least ? r->least : high };
}
#endif
