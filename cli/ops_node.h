/* One op on its own, from the command line: its attributes and the shapes of its inputs. */
#ifndef TARE_CLI_OPS_NODE_H
#define TARE_CLI_OPS_NODE_H

#include "base/option.h"
#include "graph/op.h"

struct tare_ops_node {
    const char *op;
    const struct tare_option_list *shapes; /* of the inputs: "[2,?]", "[]" or "?" each */
    const struct tare_option_list *attrs;  /* NAME=VALUE, values as registrations write defaults (a string also bare) */
};

/* Prints what the op's shape function makes of the shapes, one line an output: name, dtype, shape. */
tare_status tare_ops_infer(const struct tare_op_registry *registry, const struct tare_ops_node *given);
/* Writes a SavedModel whose signature serving_default is the op: inputs and outputs by the names of its definition,
 * those of lists as NAME_0, NAME_1 … */
tare_status tare_ops_save_model(const char *path, const struct tare_op_registry *registry,
                                const struct tare_ops_node *given);

#endif
