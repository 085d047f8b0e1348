/* The table of the compatibility check. */
#ifndef TARE_TPU_COMPATIBILITY_INTERNAL_H
#define TARE_TPU_COMPATIBILITY_INTERNAL_H

#include "tpu/compatibility.h"

/* The remedy where a module calls a routine of CPUs: LAPACK's, where JAX does not export for a TPU. */
#define TARE_TPU_OTHER_PLATFORM "export the model with platforms=(\"tpu\",)"

extern const struct tare_xla_op tare_xla_ops[]; /* sorted by name */
extern const size_t tare_n_xla_ops;

#endif
