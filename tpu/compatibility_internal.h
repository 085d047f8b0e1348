/* The table behind the compatibility check. */
#ifndef TARE_TPU_COMPATIBILITY_INTERNAL_H
#define TARE_TPU_COMPATIBILITY_INTERNAL_H

#include "tpu/compatibility.h"

struct tare_xla_op {
    const char *name;
    const char *types;     /* "T={DT_FLOAT,DT_HALF};Tseed=DT_INT32", set names like kFloatTypes; NULL: any */
    const char *constants; /* names of inputs that must be compile-time constants, with commas; NULL: none */
};

extern const struct tare_xla_op tare_xla_ops[]; /* sorted by name */
extern const size_t tare_n_xla_ops;

#endif
