/* Pipelines of element-wise stages: what follows a quantized product, up to the requantized output, runs over a block
 * of elements in registers instead of as one pass over memory per op.
 *
 * A value is a 32-bit lane, int32 or float; narrower types are widened when they are loaded and rounded or wrapped by a
 * stage of their own. Each stage computes what the op of the same name computes on one element (docs/numerics.md), so
 * that a pipeline has the bits of the separate ops. */
#ifndef TARE_INTERPRETER_KERNELS_PIPELINE_H
#define TARE_INTERPRETER_KERNELS_PIPELINE_H

#include "interpreter/kernels/elementary.h"
#include "interpreter/kernels/value_range.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_lane_type {
    TARE_LANE_NONE,
    TARE_LANE_INT8,
    TARE_LANE_UINT8,
    TARE_LANE_INT16,
    TARE_LANE_INT32,
    TARE_LANE_BFLOAT16,
    TARE_LANE_FLOAT,
};

/* x is the pipeline's value, y the stage's operand. */
enum tare_stage_code {
    /* int32; sums, differences and products wrap */
    TARE_STAGE_INT_ADD,
    TARE_STAGE_INT_SUB,
    TARE_STAGE_INT_MUL,
    TARE_STAGE_INT_MAXIMUM,
    TARE_STAGE_INT_MINIMUM,
    TARE_STAGE_INT8,  /* the low 8 bits, sign-extended */
    TARE_STAGE_UINT8, /* the low 8 bits */
    TARE_STAGE_INT16, /* the low 16 bits, sign-extended */
    TARE_STAGE_TO_FLOAT,
    /* float */
    TARE_STAGE_ADD,
    TARE_STAGE_SUB,      /* x - y */
    TARE_STAGE_SUB_FROM, /* y - x */
    TARE_STAGE_MUL,
    TARE_STAGE_DIV,     /* x / y */
    TARE_STAGE_MAXIMUM, /* x < y ? y : x, where y is not NaN; NaN only in tare_stage_run */
    TARE_STAGE_MINIMUM, /* y < x ? y : x, likewise */
    TARE_STAGE_RELU,
    TARE_STAGE_RELU6,
    TARE_STAGE_ROUND, /* half to even */
    TARE_STAGE_FLOOR,
    TARE_STAGE_NEG,
    TARE_STAGE_EXP, /* elementary.h, in its order */
    TARE_STAGE_TANH,
    TARE_STAGE_SIGMOID,
    TARE_STAGE_ERF,
    TARE_STAGE_ERFC,
    TARE_STAGE_BFLOAT16,        /* rounds to bfloat16 */
    TARE_STAGE_TO_INT,          /* cast-float-to-int */
    TARE_STAGE_QUANTIZE,        /* ADD, MAXIMUM, MINIMUM and ROUND with the operands add, low and high */
    TARE_STAGE_QUANTIZE_TO_INT, /* the same, and TO_INT */
    /* DIV, ADD, ADD of 0.5, FLOOR, MAXIMUM, MINIMUM and TO_INT with the operands divisor, add, low and high, as in
     * dynamic quantization; for operands for which tare_pipeline_simplify uses it */
    TARE_STAGE_QUANTIZE_QUOTIENT,
    /* DIV and QUANTIZE_TO_INT with the operands divisor, add, low and high, as in static quantization; likewise */
    TARE_STAGE_QUANTIZE_RATIO,
};

/* The operand: `count` lanes of the pipeline's current type, or a single one. */
struct tare_stage {
    enum tare_stage_code code;
    bool is_one;
    int tag;             /* the caller's; simplification keeps it */
    const void *operand; /* NULL: none */
    float add, low, high;
    float divisor, reciprocal, least, most; /* see tare_pipeline_join_quotient */
    bool is_bounded;                        /* see tare_pipeline_set_bounds */
};

enum {
    TARE_PIPELINE_MAX_STAGES = 32,
    TARE_PIPELINE_UNIT = 64, /* pipelines run on multiples of this many elements */
};

struct tare_pipeline {
    enum tare_lane_type from, to;
    int n_stages;
    struct tare_stage stages[TARE_PIPELINE_MAX_STAGES];
    struct tare_value_range *range; /* to which float results are added; NULL: none */
};

/* The value of one element: int32 or float. */
union tare_lane {
    int32_t i;
    float f;
};
union tare_lane tare_lane_load(const void *from, enum tare_lane_type type, int64_t at);
void tare_lane_store(void *to, enum tare_lane_type type, int64_t at, union tare_lane x);
/* One stage on one element, with the element y of the operand. */
union tare_lane tare_stage_run(const struct tare_stage *stage, union tare_lane x, union tare_lane y);

/* Computes `count` elements, a multiple of TARE_PIPELINE_UNIT. Every array has that many elements. `to` may be `from`
 * if the types have the same size. */
typedef void tare_pipeline_function(void *to, const void *from, const struct tare_pipeline *pipeline, int64_t count);
tare_pipeline_function tare_pipeline_run;
void tare_pipeline_run_at(enum tare_cpu_level level, void *to, const void *from, const struct tare_pipeline *pipeline,
                          int64_t count);
/* Replaces sequences of stages by one with the same bits, and drops stages without effect. */
void tare_pipeline_simplify(struct tare_pipeline *pipeline);
/* Sets a QUANTIZE_QUOTIENT stage with these operands: its result is `high` for `most` and all larger values, and `low`
 * for `least` and all smaller ones. False if the operands are outside of the bounds for which the vector forms have the
 * bits of the division (pipeline_loop.h). */
bool tare_pipeline_join_quotient(struct tare_stage *stage, float divisor, float add, float low, float high);
/* The same for a QUANTIZE_RATIO stage. */
bool tare_pipeline_join_ratio(struct tare_stage *stage, float divisor, float add, float low, float high);
/* Declares that all values that a QUANTIZE_QUOTIENT stage gets are in [least, most]. If their quotients are small
 * enough, the vector forms do not clamp the values, because packing integers to bytes saturates. */
void tare_pipeline_set_bounds(struct tare_stage *stage, float least, float most);

size_t tare_lane_size(enum tare_lane_type type);
/* True if lanes of this type are float. */
bool tare_lane_is_float(enum tare_lane_type type);
/* True for a stage that computes one of the functions of elementary.h. */
bool tare_stage_is_elementary(enum tare_stage_code code);

/* ---- for the variants only ---- */

tare_pipeline_function tare_pipeline_plain, tare_pipeline_avx2, tare_pipeline_avx512;

#endif
