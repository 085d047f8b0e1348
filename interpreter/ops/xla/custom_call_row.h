/* Rows of the tables of custom calls: functions that XLA modules call by name. A family of targets is one table. */
#ifndef TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_ROW_H
#define TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_ROW_H

#include "interpreter/kernel.h"

/* A target that the interpreter computes; `run` creates all outputs. */
struct tare_custom_call {
    const char *target; /* '?': any of s, d, c, z */
    tare_status (*run)(struct tare_kernel *kernel, const void *arg);
    const void *arg;
};

/* Each is terminated by an entry without a target. */
extern const struct tare_custom_call tare_lapack_calls[];

#endif
