/* Programs of element-wise steps on rows, one pipeline of a single stage for each step. */
#include "interpreter/kernels/simd/pointwise.h"

#include <string.h>

enum { MOST_LANES = 4 * TARE_PIPELINE_UNIT };

bool tare_pointwise_has(enum tare_stage_code code) {
    return (code >= TARE_STAGE_ADD && code <= TARE_STAGE_RELU6) || code == TARE_STAGE_NEG ||
           tare_stage_is_elementary(code);
}

/* `count` lanes, whole units, in place. */
static void run_lanes(enum tare_cpu_level level, const struct tare_pointwise *program, float *lanes, int64_t count) {
    _Alignas(64) float values[TARE_POINTWISE_MOST][MOST_LANES];
    struct tare_pipeline pipeline = { .from = TARE_LANE_FLOAT, .to = TARE_LANE_FLOAT, .n_stages = 1 };
    for (int i = 0; i < program->n_steps; i++) {
        const struct tare_pointwise_step *step = &program->steps[i];
        const float *y = step->y < 0 ? &step->constant : step->y == 0 ? lanes : values[step->y - 1];
        pipeline.stages[0] = (struct tare_stage){ .code = step->code, .is_one = step->y < 0, .tag = -1, .operand = y };
        tare_pipeline_run_at(level, values[i], step->x == 0 ? lanes : values[step->x - 1], &pipeline, count);
    }
    memcpy(lanes, values[program->n_steps - 1], (size_t)count * sizeof *lanes);
}

void tare_pointwise_rows_at(enum tare_cpu_level level, const struct tare_pointwise *program, float *c, int64_t ldc,
                            int64_t rows, int64_t columns) {
#if TARE_KERNELS_V8
    if (level >= TARE_CPU_V8 && level < TARE_CPU_AVX512) {
        tare_pointwise_rows_v8(program, c, ldc, rows, columns);
        return;
    }
#endif
    _Alignas(64) float lanes[MOST_LANES] = { 0 };
    if (columns == ldc) columns *= rows, rows = 1;
    for (int64_t j = 0; j < columns; j += MOST_LANES) {
        const int64_t width = columns - j < MOST_LANES ? columns - j : MOST_LANES, together = MOST_LANES / width;
        for (int64_t i = 0; i < rows; i += together) {
            const int64_t height = rows - i < together ? rows - i : together;
            const int64_t units = (height * width + TARE_PIPELINE_UNIT - 1) / TARE_PIPELINE_UNIT;
            float *at = c + i * ldc + j;
            for (int64_t k = 0; k < height; k++)
                memcpy(lanes + k * width, at + k * ldc, (size_t)width * sizeof *lanes);
            run_lanes(level, program, lanes, units * TARE_PIPELINE_UNIT);
            for (int64_t k = 0; k < height; k++)
                memcpy(at + k * ldc, lanes + k * width, (size_t)width * sizeof *lanes);
        }
    }
}
