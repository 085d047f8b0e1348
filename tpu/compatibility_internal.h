/* The table of the compatibility check. */
#ifndef TARE_TPU_COMPATIBILITY_INTERNAL_H
#define TARE_TPU_COMPATIBILITY_INTERNAL_H

#include "tpu/compatibility.h"

extern const struct tare_xla_op tare_xla_ops[]; /* sorted by name */
extern const size_t tare_n_xla_ops;

#endif
