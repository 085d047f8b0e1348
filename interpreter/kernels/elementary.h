/* exp, expm1, log, log1p, tanh, the logistic function, erf and erfc of many floats at a time. They differ from the
 * exactly rounded result by at most 3 ulp (tests/unit/interpreter/kernels/elementary_test.c measures it); every
 * instruction set computes the same bits, because the steps are single roundings in one order. `to` may be `from`. */
#ifndef TARE_INTERPRETER_KERNELS_ELEMENTARY_H
#define TARE_INTERPRETER_KERNELS_ELEMENTARY_H

#include "interpreter/kernels/cpu.h"

#include <stdint.h>

void tare_exp_floats(float *to, const float *from, int64_t count);
void tare_expm1_floats(float *to, const float *from, int64_t count);
void tare_log_floats(float *to, const float *from, int64_t count);
void tare_log1p_floats(float *to, const float *from, int64_t count);
void tare_tanh_floats(float *to, const float *from, int64_t count);
void tare_sigmoid_floats(float *to, const float *from, int64_t count);
void tare_erf_floats(float *to, const float *from, int64_t count);
void tare_erfc_floats(float *to, const float *from, int64_t count);

enum tare_elementary {
    TARE_ELEMENTARY_EXP, /* up to ERFC in the order of the stages of pipelines (pipeline.h) */
    TARE_ELEMENTARY_TANH,
    TARE_ELEMENTARY_SIGMOID,
    TARE_ELEMENTARY_ERF,
    TARE_ELEMENTARY_ERFC,
    TARE_ELEMENTARY_EXPM1,
    TARE_ELEMENTARY_LOG,
    TARE_ELEMENTARY_LOG1P,
    TARE_ELEMENTARY_COUNT,
};
/* The same with a chosen instruction set. */
void tare_elementary_at(enum tare_cpu_level level, enum tare_elementary function, float *to, const float *from,
                        int64_t count);

#endif
