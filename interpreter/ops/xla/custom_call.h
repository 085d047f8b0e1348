/* Custom calls: functions that XLA modules call by name. A family of them is a table of targets. */
#ifndef TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_H
#define TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_H

#include "interpreter/kernel.h"

/* A target that the interpreter computes; `run` creates all outputs. */
struct tare_custom_call {
    const char *target;
    tare_status (*run)(struct tare_kernel *kernel, const void *arg);
    const void *arg;
};

/* Each is terminated by an entry without a target. */
extern const struct tare_custom_call tare_lapack_calls[];

/* NULL if the interpreter does not know the target. */
const struct tare_custom_call *tare_custom_call_find(const char *target);
/* The number of `key` in the backend_config "{uplo = 76 : ui8, low = 1 : i32}", otherwise `fallback`. */
int64_t tare_custom_call_int(const struct tare_kernel *kernel, const char *key, int64_t fallback);

#endif
