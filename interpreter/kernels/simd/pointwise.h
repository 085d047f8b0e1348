/* Functions of one value that epilogues compute, such as x * sigmoid(x) or the forms of GELU: a program of a few
 * element-wise steps whose operands are the value, results of earlier steps or constants. Each step computes what the
 * stage of the same code computes (interpreter/kernels/pipeline.h), so that the results have the bits of the separate
 * ops. */
#ifndef TARE_INTERPRETER_KERNELS_SIMD_POINTWISE_H
#define TARE_INTERPRETER_KERNELS_SIMD_POINTWISE_H

#include "interpreter/kernels/pipeline.h"
#include "interpreter/kernels/simd/v8.h"

enum { TARE_POINTWISE_MOST = 12 };

/* Value 0 is that of the function, value i + 1 the result of step i. */
struct tare_pointwise_step {
    enum tare_stage_code code;
    int x, y; /* values; y -1: `constant` */
    float constant;
};
struct tare_pointwise {
    int n_steps; /* at least one; the last has the result */
    struct tare_pointwise_step steps[TARE_POINTWISE_MOST];
};

/* True for a stage that may be a step. */
bool tare_pointwise_has(enum tare_stage_code code);
/* Replaces the values in `c`, rows of ldc floats, by the function of each. */
void tare_pointwise_rows_at(enum tare_cpu_level level, const struct tare_pointwise *program, float *c, int64_t ldc,
                            int64_t rows, int64_t columns);
#if TARE_KERNELS_V8
void tare_pointwise_rows_v8(const struct tare_pointwise *program, float *c, int64_t ldc, int64_t rows, int64_t columns);
#endif

#endif
