/* The registry of all built-in ops. */
#ifndef TARE_INTERPRETER_OPS_BUILTIN_H
#define TARE_INTERPRETER_OPS_BUILTIN_H

#include "graph/op.h"

/* The built-in registry: the rows of every op family (interpreter/ops/families.h) and the catalogue of definitions
 * without a kernel. Created on first use; thread-safe; never freed. */
const struct tare_op_registry *tare_ops_builtin(void);

#endif
