/* Every stage of a pipeline has the same bits at every level, for every type of elements, also for NaN, infinities and
 * integers that wrap; expressions equal one pipeline per element for any number of elements and columns. */
#include "base/arena.h"
#include "base/tensor/number.h"
#include "interpreter/kernels/expression.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 4 * TARE_PIPELINE_UNIT };

static uint32_t seed = 11;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8 ^ seed << 13;
}

static float next_float(void) {
    static const float special[] = { NAN,    INFINITY, -INFINITY, -0.0f,    0.0f,    0.5f,  -0.5f,  1.5f, 2.5f,
                                     127.5f, -128.5f,  0x1p31f,   -0x1p31f, 0x1p23f, 3e38f, 1e-40f, 6.0f };
    if (next() % 4 == 0) return special[next() % (sizeof special / sizeof *special)];
    return (float)(int32_t)next() * 0x1p-23f;
}

static int32_t next_int(void) {
    static const int32_t special[] = { INT32_MIN, INT32_MAX, -129, -128, 127, 128, 255, 256, 0, -1, 32767, -32769 };
    if (next() % 4 == 0) return special[next() % (sizeof special / sizeof *special)];
    return (int32_t)next();
}

/* Elements of a type: every byte pattern of the narrow ones. */
static void fill(void *to, enum tare_lane_type type, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const float x = next_float();
        const int32_t n = next_int();
        const uint16_t half = type == TARE_LANE_BFLOAT16 ? tare_bfloat16_from_float(x) : (uint16_t)n;
        if (tare_lane_size(type) == 1) memcpy((char *)to + i, &n, 1);
        if (tare_lane_size(type) == 2) memcpy((char *)to + 2 * i, &half, 2);
        if (tare_lane_size(type) == 4) memcpy((char *)to + 4 * i, type == TARE_LANE_FLOAT ? (const void *)&x : &n, 4);
    }
}

static void assert_same(const void *got, const void *expected, enum tare_lane_type type, int64_t count,
                        const char *what, int number) {
    for (int64_t i = 0; i < count; i++) {
        const size_t size = tare_lane_size(type);
        const char *a = (const char *)got + (size_t)i * size, *b = (const char *)expected + (size_t)i * size;
        float x, y;
        if (memcmp(a, b, size) == 0) continue;
        if (type == TARE_LANE_FLOAT) { /* any NaN equals any other */
            memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
            if (isnan(x) && isnan(y)) continue;
        }
        fail_msg("%s %d: element %lld differs", what, number, (long long)i);
    }
}

static void check(const struct tare_pipeline *pipeline, const char *what, int number) {
    _Alignas(64) char from[COUNT * 4], expected[COUNT * 4], got[COUNT * 4 + 64];
    fill(from, pipeline->from, COUNT);
    tare_pipeline_plain(expected, from, pipeline, COUNT);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        const size_t bytes = COUNT * tare_lane_size(pipeline->to);
        memset(got, 0x5a, sizeof got);
        tare_pipeline_run_at(level, got, from, pipeline, COUNT);
        assert_same(got, expected, pipeline->to, COUNT, what, number);
        for (size_t i = 0; i < 64; i++)
            assert_int_equal(got[bytes + i], 0x5a);
    }
}

static bool is_integer_stage(enum tare_stage_code code) {
    return code <= TARE_STAGE_TO_FLOAT;
}

/* What limits is not NaN. */
static void clear_nan(float *limits) {
    for (int64_t i = 0; i < COUNT; i++)
        if (isnan(limits[i])) limits[i] = 1;
}

static void pipeline__stages_have_the_same_bits_at_every_level(void **unused) {
    (void)unused;
    _Alignas(64) char operand[COUNT * 4];
    for (int code = TARE_STAGE_INT_ADD; code <= TARE_STAGE_QUANTIZE_RATIO; code++) {
        for (int is_one = 0; is_one < 2; is_one++) {
            const bool is_integer = is_integer_stage((enum tare_stage_code)code);
            struct tare_pipeline pipeline = { .from = is_integer ? TARE_LANE_INT32 : TARE_LANE_FLOAT,
                                              .to = is_integer ? TARE_LANE_INT32 : TARE_LANE_FLOAT,
                                              .n_stages = 1 };
            if (code == TARE_STAGE_TO_FLOAT) pipeline.to = TARE_LANE_FLOAT;
            if (code == TARE_STAGE_TO_INT || code >= TARE_STAGE_QUANTIZE_TO_INT) pipeline.to = TARE_LANE_INT32;
            fill(operand, pipeline.from, COUNT);
            if (code == TARE_STAGE_MAXIMUM || code == TARE_STAGE_MINIMUM) clear_nan((float *)(void *)operand);
            pipeline.stages[0] = (struct tare_stage){ .code = (enum tare_stage_code)code,
                                                      .is_one = is_one,
                                                      .operand = operand,
                                                      .add = -3,
                                                      .low = -128,
                                                      .high = 127,
                                                      .divisor = 0.3f,
                                                      .reciprocal = 1 / 0.3f,
                                                      .least = -125 * 0.3f,
                                                      .most = 130 * 0.3f };
            check(&pipeline, "stage", code);
        }
    }
}

static void pipeline__loads_and_stores_every_type(void **unused) {
    (void)unused;
    for (int type = TARE_LANE_INT8; type <= TARE_LANE_FLOAT; type++) {
        const bool is_float = tare_lane_is_float((enum tare_lane_type)type);
        struct tare_pipeline load = { .from = (enum tare_lane_type)type,
                                      .to = is_float ? TARE_LANE_FLOAT : TARE_LANE_INT32 };
        struct tare_pipeline store = { .from = load.to, .to = (enum tare_lane_type)type };
        check(&load, "load", type);
        check(&store, "store", type);
    }
}

/* Values around all bfloat16 values and the middles between them, and NaNs among other values. */
static void pipeline__rounds_every_bfloat16_neighborhood(void **unused) {
    (void)unused;
    static const uint32_t low[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
    const struct tare_pipeline pipeline = {
        .from = TARE_LANE_FLOAT, .to = TARE_LANE_BFLOAT16, .n_stages = 1, .stages = { { .code = TARE_STAGE_BFLOAT16 } }
    };
    for (uint32_t at = 0; at < 0x10000 * 6; at += COUNT) {
        _Alignas(64) float from[COUNT];
        _Alignas(64) uint16_t got[COUNT];
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t n = (at + i) % (0x10000 * 6);
            from[i] = i % 67 == 66 ? -NAN : tare_float_from_bits(n / 6 << 16 | low[n % 6]);
        }
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            tare_pipeline_run_at(level, got, from, &pipeline, COUNT);
            for (int i = 0; i < COUNT; i++)
                assert_int_equal(got[i], tare_bfloat16_from_float(from[i]));
        }
    }
}

/* Requantization as the static method writes it; simplified or not, the bits are the same. */
static void pipeline__simplification_keeps_the_bits(void **unused) {
    (void)unused;
    const float factor = 0.0123f, zero_point = -7, low = -100, high = 127;
    const struct tare_stage stages[] = {
        { .code = TARE_STAGE_TO_FLOAT },
        { .code = TARE_STAGE_MUL, .is_one = true, .operand = &factor },
        { .code = TARE_STAGE_ADD, .is_one = true, .operand = &zero_point },
        { .code = TARE_STAGE_MAXIMUM, .is_one = true, .operand = &low },
        { .code = TARE_STAGE_MINIMUM, .is_one = true, .operand = &high },
        { .code = TARE_STAGE_ROUND },
        { .code = TARE_STAGE_TO_INT },
        { .code = TARE_STAGE_INT8 },
    };
    _Alignas(64) char from[COUNT * 4], expected[COUNT], got[COUNT];
    struct tare_pipeline pipeline = { .from = TARE_LANE_INT32, .to = TARE_LANE_INT8, .n_stages = 8 };
    memcpy(pipeline.stages, stages, sizeof stages);
    fill(from, TARE_LANE_INT32, COUNT);
    tare_pipeline_plain(expected, from, &pipeline, COUNT);
    tare_pipeline_simplify(&pipeline);
    assert_int_equal(pipeline.n_stages, 3);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        tare_pipeline_run_at(level, got, from, &pipeline, COUNT);
        assert_memory_equal(got, expected, COUNT);
    }
}

/* Runs `pipeline` of division by `divisor` and quantization to int8, with quotients near the boundaries between
 * integers, of all sizes, as it is and simplified to one stage. */
static void check_division(struct tare_pipeline *pipeline, float divisor, int round) {
    _Alignas(64) float from[COUNT];
    _Alignas(64) char expected[COUNT], got[COUNT];
    const int n_stages = pipeline->n_stages;
    fill(from, TARE_LANE_FLOAT, COUNT);
    for (int i = 0; i < COUNT; i++) { /* without special values in most rounds */
        const float near = ((float)(int)(next() % 300) - 150 + (next() % 2 ? 0.5f : 0)) * divisor;
        if (round % 8 || i % 2) from[i] = nextafterf(near, next() % 2 ? INFINITY : -INFINITY);
        if (round % 8 > 5) from[i] = near;
    }
    tare_pipeline_plain(expected, from, pipeline, COUNT);
    tare_pipeline_simplify(pipeline);
    if (divisor >= 0x1p-60f && divisor <= 0x1p60f)
        assert_int_equal(pipeline->n_stages, 1);
    else
        assert_true(pipeline->n_stages > 1 && pipeline->n_stages <= n_stages);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        tare_pipeline_run_at(level, got, from, pipeline, COUNT);
        assert_memory_equal(got, expected, COUNT);
    }
}

static void pipeline__quotients_are_those_of_the_division(void **unused) {
    (void)unused;
    const float half = 0.5f, low = -128, high = 127;
    for (int round = 0; round < 3000; round++) {
        const float divisor = ldexpf(1 + (float)(next() & 0x7fffff) * 0x1p-23f, round % 131 - 65);
        const float zero_point = (float)(int)(next() % 256) - 128;
        const struct tare_stage dynamic[] = {
            { .code = TARE_STAGE_DIV, .is_one = true, .operand = &divisor },
            { .code = TARE_STAGE_ADD, .is_one = true, .operand = &zero_point },
            { .code = TARE_STAGE_ADD, .is_one = true, .operand = &half },
            { .code = TARE_STAGE_FLOOR },
            { .code = TARE_STAGE_MAXIMUM, .is_one = true, .operand = &low },
            { .code = TARE_STAGE_MINIMUM, .is_one = true, .operand = &high },
            { .code = TARE_STAGE_TO_INT },
        };
        const struct tare_stage fixed[] = {
            { .code = TARE_STAGE_DIV, .is_one = true, .operand = &divisor },
            { .code = TARE_STAGE_ADD, .is_one = true, .operand = &zero_point },
            { .code = TARE_STAGE_MAXIMUM, .is_one = true, .operand = &low },
            { .code = TARE_STAGE_MINIMUM, .is_one = true, .operand = &high },
            { .code = TARE_STAGE_ROUND },
            { .code = TARE_STAGE_TO_INT },
            { .code = TARE_STAGE_INT8 },
        };
        struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 7 };
        memcpy(pipeline.stages, dynamic, sizeof dynamic);
        check_division(&pipeline, divisor, round);
        pipeline = (struct tare_pipeline){ .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 7 };
        memcpy(pipeline.stages, fixed, sizeof fixed);
        check_division(&pipeline, divisor, round);
    }
}

/* A static quantization to int8 between `low` and 127, and a maximum and a minimum of its integers in either order. */
static struct tare_pipeline bounded_pipeline(const int32_t bounds[2], bool minimum_first) {
    struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 6 };
    struct tare_stage *stages = pipeline.stages;
    assert_true(tare_pipeline_join_ratio(&stages[0], 0.0471f, (float)(int)(next() % 256) - 128, -128, 127));
    stages[1].code = stages[3].code = stages[5].code = TARE_STAGE_INT8;
    stages[2] = (struct tare_stage){ .code = TARE_STAGE_INT_MAXIMUM, .is_one = true, .operand = &bounds[0] };
    stages[4] = (struct tare_stage){ .code = TARE_STAGE_INT_MINIMUM, .is_one = true, .operand = &bounds[1] };
    if (minimum_first) {
        const struct tare_stage minimum = stages[4];
        stages[4] = stages[2], stages[2] = minimum;
    }
    return pipeline;
}

/* As the Relu6 of int8 models; bounds outside of int8 wrap, and NaN is 0 before the bounds apply. */
static void pipeline__bounds_of_integers_become_part_of_the_quantization(void **unused) {
    (void)unused;
    int joined = 0, kept = 0;
    for (int round = 0; round < 3000; round++) {
        const int32_t bounds[2] = { (int32_t)(next() % 400) - 260, (int32_t)(next() % 400) - 140 };
        struct tare_pipeline pipeline = bounded_pipeline(bounds, round % 2);
        _Alignas(64) float from[COUNT];
        _Alignas(64) char expected[COUNT], got[COUNT];
        for (int i = 0; i < COUNT; i++)
            from[i] = i % 7 ? ((float)(int)(next() % 1024) - 512) * 0.5f * 0.0471f : next_float();
        tare_pipeline_plain(expected, from, &pipeline, COUNT);
        tare_pipeline_simplify(&pipeline);
        joined += pipeline.n_stages == 1;
        kept += pipeline.n_stages > 1;
        if (bounds[0] > 0 && bounds[0] < 128 && bounds[1] > bounds[0]) assert_true(pipeline.n_stages > 1);
        if (bounds[0] <= 0 && bounds[0] >= -128 && bounds[1] >= 0 && bounds[1] < 128)
            assert_int_equal(pipeline.n_stages, 1);
        for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
             level = tare_cpu_next_level(level)) {
            tare_pipeline_run_at(level, got, from, &pipeline, COUNT);
            assert_memory_equal(got, expected, COUNT);
        }
    }
    assert_true(joined > 500 && kept > 500);
}

/* Every zero point of 8 bits, with all multiples of half a step and their neighbours. */
static void pipeline__ratios_are_rounded_to_even(void **unused) {
    (void)unused;
    for (int zero_point = -128; zero_point <= 127; zero_point++) {
        struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 1 };
        assert_true(tare_pipeline_join_ratio(&pipeline.stages[0], 0.25f, (float)zero_point, -128, 127));
        for (int n = -640; n <= 640; n += 16) {
            _Alignas(64) float from[64];
            _Alignas(64) char expected[64], got[64];
            for (int i = 0; i < 64; i++) {
                const float middle = 0.125f * (float)(n + i / 4);
                from[i] = i % 4 == 0   ? nextafterf(middle, -INFINITY)
                          : i % 4 == 1 ? nextafterf(middle, INFINITY)
                          : i % 4 == 2 ? middle
                                       : NAN;
            }
            tare_pipeline_plain(expected, from, &pipeline, 64);
            for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
                 level = tare_cpu_next_level(level)) {
                tare_pipeline_run_at(level, got, from, &pipeline, 64);
                assert_memory_equal(got, expected, 64);
            }
        }
    }
}

/* Quotients next to the boundaries between integers, for each zero point; the scale is 1, so that all of them occur. */
static void pipeline__bounded_quotients_have_the_same_integers(void **unused) {
    (void)unused;
    for (int zero_point = -130; zero_point <= 130; zero_point++) {
        struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 1 };
        assert_true(tare_pipeline_join_quotient(&pipeline.stages[0], 1, (float)zero_point, -128, 127));
        struct tare_pipeline bounded = pipeline;
        tare_pipeline_set_bounds(&bounded.stages[0], -1000, 1000);
        assert_int_equal(bounded.stages[0].is_bounded, zero_point != -1);
        for (int n = -140; n <= 140; n++) {
            _Alignas(64) float from[64];
            _Alignas(64) char expected[64], got[64];
            from[0] = (float)n - 0.5f - (float)zero_point;
            for (int i = 1; i < 64; i++)
                from[i] = i == 32 ? nextafterf(from[0], -INFINITY) : nextafterf(from[i - 1], i < 32 ? 1e9f : -1e9f);
            tare_pipeline_plain(expected, from, &pipeline, 64);
            for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level++) {
                tare_pipeline_run_at(level, got, from, &bounded, 64);
                assert_memory_equal(got, expected, 64);
            }
        }
    }
}

/* Quotients at `units` of 2^-16 from the boundaries between the integers -254 to 255. */
static void pipeline__small_quotients_have_the_same_integers(void **unused) {
    (void)unused;
    for (int round = 0; round < 400; round++) {
        const float divisor = ldexpf(1 + (float)(next() % (1 << 23)) * 0x1p-23f, (int)(next() % 40) - 20);
        const int zero_point = (int)(next() % 513) - 256;
        struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_INT8, .n_stages = 1 };
        if (!tare_pipeline_join_quotient(&pipeline.stages[0], divisor, (float)zero_point, -128, 127)) continue;
        for (int units = -32; units <= 32; units++) {
            _Alignas(64) float from[COUNT];
            _Alignas(64) char expected[COUNT], got[COUNT];
            for (int i = 0; i < COUNT; i++) {
                const int n = i == COUNT - 1 ? 255 : 2 * i - 254;
                from[i] = (float)((n - 0.5 + units * 0x1p-16 - zero_point) * divisor);
            }
            struct tare_pipeline bounded = pipeline;
            tare_pipeline_set_bounds(&bounded.stages[0], from[0], from[COUNT - 1]);
            assert_int_equal(bounded.stages[0].is_bounded, zero_point != -1);
            tare_pipeline_plain(expected, from, &pipeline, COUNT);
            for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level++) {
                tare_pipeline_run_at(level, got, from, &bounded, COUNT);
                assert_memory_equal(got, expected, COUNT);
            }
        }
    }
}

static void pipeline__bounds_that_are_too_large_are_ignored(void **unused) {
    (void)unused;
    struct tare_stage stage;
    assert_true(tare_pipeline_join_quotient(&stage, 0.5f, 3, -128, 127));
    tare_pipeline_set_bounds(&stage, 0, 0x1p19f);
    assert_true(stage.is_bounded);
    tare_pipeline_set_bounds(&stage, 0, 0x1.000002p19f);
    assert_false(stage.is_bounded);
    tare_pipeline_set_bounds(&stage, -INFINITY, 1);
    assert_false(stage.is_bounded);
    assert_true(tare_pipeline_join_quotient(&stage, 0.5f, 3, -127, 127));
    tare_pipeline_set_bounds(&stage, 0, 1);
    assert_false(stage.is_bounded);
}

/* ---- expressions ---- */

/* (x + vector - scalar) * vector + branch(bytes), as int8; the branch is (byte - scalar) * scalar. */
static const struct tare_expression residual = {
    .from = TARE_LANE_INT32,
    .to = TARE_LANE_INT8,
    .n_branches = 2,
    .n_operands = 8,
    .branches = { { .source = -1,
                    .n_stages = 8,
                    .stages = { { TARE_STAGE_INT_ADD, 0 },
                                { TARE_STAGE_INT_SUB, 1 },
                                { TARE_STAGE_TO_FLOAT, -1 },
                                { TARE_STAGE_MUL, 2 },
                                { TARE_STAGE_ADD, 3 },
                                { TARE_STAGE_ROUND, -1 },
                                { TARE_STAGE_TO_INT, -1 },
                                { TARE_STAGE_INT8, -1 } } },
                  { .source = 4,
                    .n_stages = 3,
                    .stages = { { TARE_STAGE_INT_SUB, 5 }, { TARE_STAGE_TO_FLOAT, -1 }, { TARE_STAGE_MUL, 6 } } } },
    .branch_of = { 0, 0, 0, 1 },
};

static void check_expression(enum tare_cpu_level level, int64_t rows, int64_t columns, int64_t piece) {
    const int64_t count = rows * columns;
    int32_t *x = malloc((size_t)count * 4), *add = malloc((size_t)columns * 4), minus = 1 << 30, zero_point = 5;
    float *factor = malloc((size_t)columns * 4), scale = 0.37f;
    int8_t *bytes = malloc((size_t)count), *got = malloc((size_t)count + 64);
    struct tare_arena arena = { 0 };
    fill(x, TARE_LANE_INT32, count), fill(add, TARE_LANE_INT32, columns), fill(bytes, TARE_LANE_INT8, count);
    for (int64_t i = 0; i < columns; i++)
        factor[i] = ldexpf((float)(next() & 0xffff) + 1, -40);
    memset(got, 0x5a, (size_t)count + 64);
    struct tare_bound_expression bound = {
        .expression = &residual, .level = level, .elements = count, .columns = columns, .to = got
    };
    bound.operands[0] = (struct tare_operand){ TARE_OPERAND_VECTOR, TARE_LANE_INT32, add, 0 };
    bound.operands[1] = (struct tare_operand){ TARE_OPERAND_ONE, TARE_LANE_INT32, &minus, 0 };
    bound.operands[2] = (struct tare_operand){ TARE_OPERAND_VECTOR, TARE_LANE_FLOAT, factor, 0 };
    bound.operands[3] = (struct tare_operand){ TARE_OPERAND_ARRAY, TARE_LANE_FLOAT, NULL, 0 };
    bound.operands[4] = (struct tare_operand){ TARE_OPERAND_ARRAY, TARE_LANE_INT8, bytes, 0 };
    bound.operands[5] = (struct tare_operand){ TARE_OPERAND_ONE, TARE_LANE_INT32, &zero_point, 0 };
    bound.operands[6] = (struct tare_operand){ TARE_OPERAND_ONE, TARE_LANE_FLOAT, &scale, 0 };
    assert_int_equal(tare_expression_bind(&bound, &arena), TARE_OK);
    for (int64_t first = 0; first < count; first += piece)
        tare_expression_run(&bound, x + first, first, count - first < piece ? count - first : piece);
    for (int64_t i = 0; i < count; i++) {
        const int32_t sum = (int32_t)((uint32_t)x[i] + (uint32_t)add[i % columns] - (uint32_t)minus);
        const float scaled = (float)sum * factor[i % columns], other = (float)(bytes[i] - zero_point) * scale;
        const int8_t expected = (int8_t)(int32_t)rintf(scaled + other);
        if (got[i] != expected)
            fail_msg("level %s, %lld x %lld: element %lld is %d (expected %d)", tare_cpu_level_name(level),
                     (long long)rows, (long long)columns, (long long)i, got[i], expected);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(got[count + i], 0x5a);
    tare_arena_free(&arena);
    free(x), free(add), free(factor), free(bytes), free(got);
}

static void expression__any_number_of_elements_and_columns(void **unused) {
    (void)unused;
    static const int64_t columns[] = { 1, 3, 16, 63, 64, 65, 1000, 3000 };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            check_expression(level, 1, columns[i], columns[i]);
            check_expression(level, 37, columns[i], 5 * columns[i]);
        }
    }
}

/* float(x - vector * row) * (row * vector), as a product of rows with scales and zero points of their own. */
static const struct tare_expression of_rows = {
    .from = TARE_LANE_INT32,
    .to = TARE_LANE_FLOAT,
    .n_branches = 3,
    .n_operands = 6,
    .branches = { { .source = -1,
                    .n_stages = 3,
                    .stages = { { TARE_STAGE_INT_SUB, 0 }, { TARE_STAGE_TO_FLOAT, -1 }, { TARE_STAGE_MUL, 3 } } },
                  { .source = 1, .n_stages = 1, .stages = { { TARE_STAGE_INT_MUL, 2 } } },
                  { .source = 4, .n_stages = 1, .stages = { { TARE_STAGE_MUL, 5 } } } },
    .branch_of = { 1, 0, 0, 2 },
};

static void check_rows(enum tare_cpu_level level, int64_t rows, int64_t run, int64_t columns, int64_t piece) {
    const int64_t count = rows * run;
    int32_t *x = malloc((size_t)count * 4), *sums = malloc((size_t)columns * 4);
    int8_t *zero_points = malloc((size_t)rows);
    float *scales = malloc((size_t)rows * 4), *factors = malloc((size_t)columns * 4), *got = malloc((size_t)count * 4);
    struct tare_arena arena = { 0 };
    fill(x, TARE_LANE_INT32, count), fill(sums, TARE_LANE_INT32, columns), fill(zero_points, TARE_LANE_INT8, rows);
    for (int64_t i = 0; i < rows; i++)
        scales[i] = ldexpf((float)(next() & 0xffff) + 1, -20);
    for (int64_t i = 0; i < columns; i++)
        factors[i] = ldexpf((float)(next() & 0xffff) + 1, -20);
    struct tare_bound_expression bound = {
        .expression = &of_rows, .level = level, .elements = count, .columns = columns, .to = got
    };
    bound.operands[0] = (struct tare_operand){ TARE_OPERAND_ARRAY, TARE_LANE_INT32, NULL, 0 };
    bound.operands[1] = (struct tare_operand){ TARE_OPERAND_VECTOR, TARE_LANE_INT32, sums, 0 };
    bound.operands[2] = (struct tare_operand){ TARE_OPERAND_ROW, TARE_LANE_INT8, zero_points, run };
    bound.operands[3] = (struct tare_operand){ TARE_OPERAND_ARRAY, TARE_LANE_FLOAT, NULL, 0 };
    bound.operands[4] = (struct tare_operand){ TARE_OPERAND_ROW, TARE_LANE_FLOAT, scales, run };
    bound.operands[5] = (struct tare_operand){ TARE_OPERAND_VECTOR, TARE_LANE_FLOAT, factors, 0 };
    assert_int_equal(tare_expression_bind(&bound, &arena), TARE_OK);
    for (int64_t first = 0; first < count; first += piece)
        tare_expression_run(&bound, x + first, first, count - first < piece ? count - first : piece);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t offset = (uint32_t)sums[i % columns] * (uint32_t)zero_points[i / run];
        const float expected = (float)(int32_t)((uint32_t)x[i] - offset) * (scales[i / run] * factors[i % columns]);
        if (memcmp(&got[i], &expected, sizeof expected) != 0)
            fail_msg("level %s, %lld rows of %lld: element %lld is %g (expected %g)", tare_cpu_level_name(level),
                     (long long)rows, (long long)run, (long long)i, (double)got[i], (double)expected);
    }
    tare_arena_free(&arena);
    free(x), free(sums), free(zero_points), free(scales), free(factors), free(got);
}

static void expression__rows_have_values_of_their_own(void **unused) {
    (void)unused;
    static const int64_t columns[] = { 1, 3, 64, 65, 1000, 3000 };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            check_rows(level, 37, columns[i], columns[i], 5 * columns[i]);
            check_rows(level, 3, 7 * columns[i], columns[i], 2 * columns[i]); /* images */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline__stages_have_the_same_bits_at_every_level),
        cmocka_unit_test(pipeline__loads_and_stores_every_type),
        cmocka_unit_test(pipeline__rounds_every_bfloat16_neighborhood),
        cmocka_unit_test(pipeline__simplification_keeps_the_bits),
        cmocka_unit_test(pipeline__quotients_are_those_of_the_division),
        cmocka_unit_test(pipeline__bounds_of_integers_become_part_of_the_quantization),
        cmocka_unit_test(pipeline__ratios_are_rounded_to_even),
        cmocka_unit_test(pipeline__bounded_quotients_have_the_same_integers),
        cmocka_unit_test(pipeline__small_quotients_have_the_same_integers),
        cmocka_unit_test(pipeline__bounds_that_are_too_large_are_ignored),
        cmocka_unit_test(expression__any_number_of_elements_and_columns),
        cmocka_unit_test(expression__rows_have_values_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
