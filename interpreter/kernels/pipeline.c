/* Pipelines: the portable variant, the choice of the variant, and simplification. */
#include "interpreter/kernels/pipeline.h"

#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

size_t tare_lane_size(enum tare_lane_type type) {
    switch (type) {
    case TARE_LANE_INT8:
    case TARE_LANE_UINT8:
        return 1;
    case TARE_LANE_INT16:
    case TARE_LANE_BFLOAT16:
        return 2;
    default:
        return 4;
    }
}

bool tare_lane_is_float(enum tare_lane_type type) {
    return type == TARE_LANE_FLOAT || type == TARE_LANE_BFLOAT16;
}

bool tare_stage_is_elementary(enum tare_stage_code code) {
    return code >= TARE_STAGE_EXP && code <= TARE_STAGE_ERFC;
}

/* ---- plain ---- */

union tare_lane tare_lane_load(const void *from, enum tare_lane_type type, int64_t at) {
    switch (type) {
    case TARE_LANE_INT8:
        return (union tare_lane){ .i = ((const int8_t *)from)[at] };
    case TARE_LANE_UINT8:
        return (union tare_lane){ .i = ((const uint8_t *)from)[at] };
    case TARE_LANE_INT16:
        return (union tare_lane){ .i = ((const int16_t *)from)[at] };
    case TARE_LANE_BFLOAT16:
        return (union tare_lane){ .f = tare_float_from_bfloat16(((const uint16_t *)from)[at]) };
    default:
        return ((const union tare_lane *)from)[at];
    }
}

void tare_lane_store(void *to, enum tare_lane_type type, int64_t at, union tare_lane x) {
    switch (type) {
    case TARE_LANE_INT8:
    case TARE_LANE_UINT8:
        ((uint8_t *)to)[at] = (uint8_t)x.i;
        break;
    case TARE_LANE_INT16:
        ((uint16_t *)to)[at] = (uint16_t)x.i;
        break;
    case TARE_LANE_BFLOAT16:
        ((uint16_t *)to)[at] = (uint16_t)(tare_float_bits(x.f) >> 16);
        break;
    default:
        ((union tare_lane *)to)[at] = x;
        break;
    }
}

static int32_t int_stage(enum tare_stage_code code, int32_t x, int32_t y) {
    switch (code) {
    case TARE_STAGE_INT_ADD:
        return (int32_t)((uint32_t)x + (uint32_t)y);
    case TARE_STAGE_INT_SUB:
        return (int32_t)((uint32_t)x - (uint32_t)y);
    case TARE_STAGE_INT_MUL:
        return (int32_t)((uint32_t)x * (uint32_t)y);
    case TARE_STAGE_INT_MAXIMUM:
        return x < y ? y : x;
    case TARE_STAGE_INT_MINIMUM:
        return y < x ? y : x;
    case TARE_STAGE_INT8:
        return (int8_t)x;
    case TARE_STAGE_UINT8:
        return (uint8_t)x;
    default: /* TARE_STAGE_INT16 */
        return (int16_t)x;
    }
}

static float clamp(float x, float low, float high) {
    x = x < low ? low : x;
    return high < x ? high : x;
}

static float quotient_floor(const struct tare_stage *stage, float x) {
    return floorf(x / stage->divisor + stage->add + 0.5f);
}

static float elementary(enum tare_stage_code code, float x) {
    tare_elementary_at(TARE_CPU_PLAIN, (enum tare_elementary)(code - TARE_STAGE_EXP), &x, &x, 1);
    return x;
}

static float float_stage(const struct tare_stage *stage, float x, float y) {
    switch (stage->code) {
    case TARE_STAGE_ADD:
        return x + y;
    case TARE_STAGE_SUB:
        return x - y;
    case TARE_STAGE_SUB_FROM:
        return y - x;
    case TARE_STAGE_MUL:
        return x * y;
    case TARE_STAGE_DIV:
        return x / y;
    case TARE_STAGE_MAXIMUM:
        return x < y || isnan(y) ? y : x;
    case TARE_STAGE_MINIMUM:
        return y < x || isnan(y) ? y : x;
    case TARE_STAGE_RELU:
        return x < 0 ? 0 : x;
    case TARE_STAGE_RELU6:
        return clamp(x, 0, 6);
    case TARE_STAGE_ROUND:
        return tare_round_half_even_f(x);
    case TARE_STAGE_FLOOR:
        return floorf(x);
    case TARE_STAGE_NEG:
        return -x;
    case TARE_STAGE_EXP:
    case TARE_STAGE_TANH:
    case TARE_STAGE_SIGMOID:
    case TARE_STAGE_ERF:
    case TARE_STAGE_ERFC:
        return elementary(stage->code, x);
    case TARE_STAGE_BFLOAT16:
        return tare_float_from_bfloat16(tare_bfloat16_from_float(x));
    case TARE_STAGE_QUANTIZE_QUOTIENT:
        return clamp(quotient_floor(stage, x), stage->low, stage->high);
    case TARE_STAGE_QUANTIZE_RATIO:
        return tare_round_half_even_f(clamp(x / stage->divisor + stage->add, stage->low, stage->high));
    default: /* TARE_STAGE_QUANTIZE and TARE_STAGE_QUANTIZE_TO_INT */
        return tare_round_half_even_f(clamp(x + stage->add, stage->low, stage->high));
    }
}

static int32_t to_int(float x) {
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}

union tare_lane tare_stage_run(const struct tare_stage *stage, union tare_lane x, union tare_lane y) {
    if (stage->code == TARE_STAGE_TO_FLOAT) return (union tare_lane){ .f = (float)x.i };
    if (stage->code == TARE_STAGE_TO_INT) return (union tare_lane){ .i = to_int(x.f) };
    if (stage->code >= TARE_STAGE_QUANTIZE_TO_INT)
        return (union tare_lane){ .i = to_int(float_stage(stage, x.f, y.f)) };
    if (stage->code < TARE_STAGE_TO_FLOAT) return (union tare_lane){ .i = int_stage(stage->code, x.i, y.i) };
    return (union tare_lane){ .f = float_stage(stage, x.f, y.f) };
}

static union tare_lane run_stage_of_one(const struct tare_stage *stage, union tare_lane x, int64_t at) {
    const union tare_lane *operand = stage->operand;
    return tare_stage_run(stage, x, operand ? operand[stage->is_one ? 0 : at] : (union tare_lane){ .i = 0 });
}

void tare_pipeline_plain(void *to, const void *from, const struct tare_pipeline *pipeline, int64_t count) {
    for (int64_t at = 0; at < count; at++) {
        union tare_lane x = tare_lane_load(from, pipeline->from, at);
        for (int s = 0; s < pipeline->n_stages; s++)
            x = run_stage_of_one(&pipeline->stages[s], x, at);
        tare_lane_store(to, pipeline->to, at, x);
    }
    if (pipeline->range) tare_value_range_add_at(TARE_CPU_PLAIN, pipeline->range, to, count);
}

/* ---- variants ---- */

void tare_pipeline_run_at(enum tare_cpu_level level, void *to, const void *from, const struct tare_pipeline *pipeline,
                          int64_t count) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) {
        tare_pipeline_avx512(to, from, pipeline, count);
        return;
    }
    if (level >= TARE_CPU_AVX2) {
        tare_pipeline_avx2(to, from, pipeline, count);
        return;
    }
#endif
    (void)level;
    tare_pipeline_plain(to, from, pipeline, count);
}

void tare_pipeline_run(void *to, const void *from, const struct tare_pipeline *pipeline, int64_t count) {
    tare_pipeline_run_at(tare_cpu_level(), to, from, pipeline, count);
}

/* ---- simplification ---- */

static bool is_scalar_stage(const struct tare_stage *stage, enum tare_stage_code code) {
    return stage->code == code && stage->is_one;
}

/* ADD, MAXIMUM, MINIMUM and ROUND with scalars, as in requantization. */
static bool is_quantize(const struct tare_stage *stage, int left) {
    return left >= 4 && is_scalar_stage(&stage[0], TARE_STAGE_ADD) && is_scalar_stage(&stage[1], TARE_STAGE_MAXIMUM) &&
           is_scalar_stage(&stage[2], TARE_STAGE_MINIMUM) && stage[3].code == TARE_STAGE_ROUND;
}

static float scalar(const struct tare_stage *stage) {
    return *(const float *)stage->operand;
}

/* Drops roundings to bfloat16 of values that are rounded already: Relu and Relu6 keep them so, NaN included. */
static void drop_roundings(struct tare_pipeline *pipeline) {
    bool is_rounded = false;
    int n = 0;
    for (int s = 0; s < pipeline->n_stages; s++) {
        const enum tare_stage_code code = pipeline->stages[s].code;
        if (code == TARE_STAGE_BFLOAT16 && is_rounded) continue;
        is_rounded =
            code == TARE_STAGE_BFLOAT16 || (is_rounded && (code == TARE_STAGE_RELU || code == TARE_STAGE_RELU6));
        pipeline->stages[n++] = pipeline->stages[s];
    }
    pipeline->n_stages = n;
}

static bool is_within(float x, float low, float high) {
    return x >= low && x <= high;
}

static struct tare_stage division_stage(enum tare_stage_code code, float divisor, float add, float low, float high) {
    return (struct tare_stage){ .code = code,
                                .tag = -1,
                                .divisor = divisor,
                                .reciprocal = 1 / divisor,
                                .add = add,
                                .low = low,
                                .high = high,
                                .least = (low - add) * divisor,
                                .most = (high - add) * divisor };
}

/* Whether quotients are within the bounds of the vector forms, and low and high are integers. */
static bool has_bounds(const struct tare_stage *stage) {
    const float limit = 0x1p20f;
    return is_within(stage->divisor, 0x1p-60f, 0x1p60f) && is_within(stage->add, -limit, limit) &&
           floorf(stage->add) == stage->add && is_within(stage->low, -limit, limit) &&
           is_within(stage->high, stage->low, limit);
}

/* Division, additions and rounding are monotonic, so the results at both ends are those beyond them. */
bool tare_pipeline_join_quotient(struct tare_stage *stage, float divisor, float add, float low, float high) {
    *stage = division_stage(TARE_STAGE_QUANTIZE_QUOTIENT, divisor, add, low, high);
    return has_bounds(stage) && quotient_floor(stage, stage->least) == low &&
           quotient_floor(stage, stage->most) == high;
}

static float ratio_round(const struct tare_stage *stage, float x) {
    return tare_round_half_even_f(x / stage->divisor + stage->add);
}

bool tare_pipeline_join_ratio(struct tare_stage *stage, float divisor, float add, float low, float high) {
    *stage = division_stage(TARE_STAGE_QUANTIZE_RATIO, divisor, add, low, high);
    return has_bounds(stage) && ratio_round(stage, stage->least) == low && ratio_round(stage, stage->most) == high;
}

void tare_pipeline_set_bounds(struct tare_stage *stage, float least, float most) {
    const float limit = 0x1p20f * stage->divisor;
    stage->is_bounded = stage->low == INT8_MIN && stage->high == INT8_MAX && stage->add != -1 &&
                        is_within(least, -limit, limit) && is_within(most, -limit, limit);
}

/* DIV, ADD, ADD, FLOOR, MAXIMUM, MINIMUM and TO_INT with scalars, as in dynamic quantization. */
static bool is_quantize_quotient(struct tare_stage *joined, const struct tare_stage *stage, int left) {
    static const enum tare_stage_code codes[] = { TARE_STAGE_DIV,   TARE_STAGE_ADD,     TARE_STAGE_ADD,
                                                  TARE_STAGE_FLOOR, TARE_STAGE_MAXIMUM, TARE_STAGE_MINIMUM,
                                                  TARE_STAGE_TO_INT };
    enum { COUNT = sizeof codes / sizeof *codes };
    if (left < COUNT) return false;
    for (int i = 0; i < COUNT; i++) {
        const bool has_operand = codes[i] != TARE_STAGE_FLOOR && codes[i] != TARE_STAGE_TO_INT;
        if (stage[i].code != codes[i] || (has_operand && !stage[i].is_one)) return false;
    }
    return scalar(&stage[2]) == 0.5f && tare_pipeline_join_quotient(joined, scalar(&stage[0]), scalar(&stage[1]),
                                                                    scalar(&stage[4]), scalar(&stage[5]));
}

/* Replaces the stages of a dynamic quantization by one. */
static void join_quotients(struct tare_pipeline *pipeline) {
    enum { REPLACED = 7 };
    const int count = pipeline->n_stages;
    struct tare_stage *stages = pipeline->stages;
    int n = 0;
    for (int s = 0; s < count; s++) {
        struct tare_stage joined;
        const bool is_quotient = is_quantize_quotient(&joined, &stages[s], count - s);
        stages[n++] = is_quotient ? joined : stages[s];
        if (is_quotient) s += REPLACED - 1;
    }
    pipeline->n_stages = n;
}

/* DIV and QUANTIZE_TO_INT, the last two of n stages, become one. Returns the number of stages. */
static int join_ratio(struct tare_stage *stages, int n) {
    struct tare_stage joined;
    const struct tare_stage *quantize = &stages[n - 1];
    if (n < 2 || !is_scalar_stage(&stages[n - 2], TARE_STAGE_DIV) || quantize->code != TARE_STAGE_QUANTIZE_TO_INT)
        return n;
    if (!tare_pipeline_join_ratio(&joined, scalar(&stages[n - 2]), quantize->add, quantize->low, quantize->high))
        return n;
    stages[n - 2] = joined;
    return n - 1;
}

/* ---- integer bounds after a quantization ---- */

static int bounded_int(const struct tare_stage *stages, int count, int x) {
    for (int s = 0; s < count; s++)
        x = int_stage(stages[s].code, x, stages[s].operand ? *(const int32_t *)stages[s].operand : 0);
    return x;
}

/* A clamp of int8 values after a static quantization to int8, such as a Relu6 of integers, becomes part of the
 * quantization: a clamp of clamped values is a clamp. `ratio` is followed by INT8, as which NaN is 0, and by `left` - 2
 * other stages. Returns the number of stages that are replaced by *joined and INT8, 0: none. */
static int join_bounds(struct tare_stage *joined, const struct tare_stage *ratio, int left) {
    int count = 1;
    if (left < 3 || ratio->code != TARE_STAGE_QUANTIZE_RATIO || ratio[1].code != TARE_STAGE_INT8) return 0;
    if (!is_within(ratio->low, INT8_MIN, INT8_MAX) || !is_within(ratio->high, INT8_MIN, INT8_MAX)) return 0;
    while (count < left &&
           (ratio[count].code == TARE_STAGE_INT8 || is_scalar_stage(&ratio[count], TARE_STAGE_INT_MAXIMUM) ||
            is_scalar_stage(&ratio[count], TARE_STAGE_INT_MINIMUM)))
        count++;
    const int low = bounded_int(ratio + 1, count - 1, (int)ratio->low);
    const int high = bounded_int(ratio + 1, count - 1, (int)ratio->high);
    const bool fits = count > 2 && is_within((float)low, INT8_MIN, INT8_MAX) && is_within((float)high, low, INT8_MAX) &&
                      bounded_int(ratio + 1, count - 1, 0) == 0;
    return fits && tare_pipeline_join_ratio(joined, ratio->divisor, ratio->add, (float)low, (float)high) ? count : 0;
}

static void join_int_bounds(struct tare_pipeline *pipeline) {
    const int count = pipeline->n_stages;
    struct tare_stage *stages = pipeline->stages;
    int n = 0;
    for (int s = 0; s < count; s++) {
        struct tare_stage joined;
        const int replaced = join_bounds(&joined, &stages[s], count - s);
        stages[n++] = replaced ? joined : stages[s];
        if (!replaced) continue;
        stages[n++] = (struct tare_stage){ .code = TARE_STAGE_INT8, .tag = -1 };
        s += replaced - 1;
    }
    pipeline->n_stages = n;
}

void tare_pipeline_simplify(struct tare_pipeline *pipeline) {
    drop_roundings(pipeline);
    join_quotients(pipeline);
    const int count = pipeline->n_stages;
    struct tare_stage *stages = pipeline->stages;
    int n = 0;
    for (int s = 0; s < count; s++) {
        if (!is_quantize(&stages[s], count - s)) {
            stages[n++] = stages[s];
            continue;
        }
        stages[n++] = (struct tare_stage){ .code = TARE_STAGE_QUANTIZE,
                                           .tag = -1,
                                           .add = scalar(&stages[s]),
                                           .low = scalar(&stages[s + 1]),
                                           .high = scalar(&stages[s + 2]) };
        s += 3;
        if (s + 1 < count && stages[s + 1].code == TARE_STAGE_TO_INT) {
            stages[n - 1].code = TARE_STAGE_QUANTIZE_TO_INT;
            s++;
            n = join_ratio(stages, n);
        }
    }
    pipeline->n_stages = n;
    join_int_bounds(pipeline);
    n = pipeline->n_stages;
    /* a byte is stored without the bits that the last stage would clear */
    if (n > 0 && tare_lane_size(pipeline->to) == 1 &&
        (stages[n - 1].code == TARE_STAGE_INT8 || stages[n - 1].code == TARE_STAGE_UINT8))
        n--;
    pipeline->n_stages = n;
}
