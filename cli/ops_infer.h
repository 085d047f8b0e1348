/* What an op's shape function makes of given input shapes. */
#ifndef TARE_CLI_OPS_INFER_H
#define TARE_CLI_OPS_INFER_H

#include "base/option.h"
#include "graph/op.h"

/* Prints one line an output: name, dtype, shape. `shapes` are the inputs', "[2,?]" or "?" each; `attrs` are NAME=VALUE
 * with values as registrations write defaults (a string also without quotes). */
tare_status tare_ops_infer(const struct tare_op_registry *registry, const char *op,
                           const struct tare_option_list *shapes, const struct tare_option_list *attrs);

#endif
