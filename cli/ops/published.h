/* Compares an earlier output of `tare ops --json` with the registered ops. */
#ifndef TARE_CLI_OPS_PUBLISHED_H
#define TARE_CLI_OPS_PUBLISHED_H

#include "graph/op.h"

#include <stdbool.h>

/* Prints each incompatible change since the file at `path` was written, as a line "OP: CHANGE" or as JSON, and fails
 * with their number if there are any. New ops are compatible. */
tare_status tare_ops_check_published(const char *path, const struct tare_op_registry *registry, bool json);

#endif
