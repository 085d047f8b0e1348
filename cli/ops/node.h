/* A single op given on the command line by its attributes and input shapes. */
#ifndef TARE_CLI_OPS_NODE_H
#define TARE_CLI_OPS_NODE_H

#include "base/option.h"
#include "graph/op.h"

struct tare_ops_node {
    const char *op;
    const struct tare_option_list *shapes; /* of the inputs: "[2,?]", "[]" or "?" */
    const struct tare_option_list
        *attrs; /* NAME=VALUE, with values in the syntax of op registrations (quotes around strings are optional) */
};

/* Prints the inferred name, dtype and shape of each output, one per line. */
tare_status tare_ops_infer(const struct tare_op_registry *registry, const struct tare_ops_node *given);
/* Writes a SavedModel whose signature serving_default runs the op. Inputs and outputs have the names of the op
 * definition; elements of lists are named NAME_0, NAME_1 … */
tare_status tare_ops_save_model(const char *path, const struct tare_op_registry *registry,
                                const struct tare_ops_node *given);

#endif
