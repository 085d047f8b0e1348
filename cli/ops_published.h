/* An earlier list of ops, as `tare ops --json` wrote it, against what is registered now. */
#ifndef TARE_CLI_OPS_PUBLISHED_H
#define TARE_CLI_OPS_PUBLISHED_H

#include "graph/op.h"

#include <stdbool.h>

/* Prints each change that breaks models made with the ops of the file at `path`, one line "Op: what" or JSON, and fails
 * with their number when there are any. Ops that are new are no change. */
tare_status tare_ops_check_published(const char *path, const struct tare_op_registry *registry, bool json);

#endif
