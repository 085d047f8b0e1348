/* Options of XlaCustomCallV2 nodes. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_BACKEND_CONFIG_H
#define TARE_INTERPRETER_OPS_SUPPORT_BACKEND_CONFIG_H

#include "interpreter/kernel.h"

/* The number of `key` in the attribute backend_config "{uplo = 76 : ui8, low = 1 : i32}", otherwise `fallback`. */
int64_t tare_backend_config_int(const struct tare_kernel *kernel, const char *key, int64_t fallback);

#endif
