/* Which changes of an op's definition break graphs that were made before it: TensorFlow's rules for published ops. */
#ifndef TARE_GRAPH_DEFINITIONS_OP_COMPAT_H
#define TARE_GRAPH_DEFINITIONS_OP_COMPAT_H

#include "graph/op.h"

/* What breaks, one text each ("Attr 'a' added without default"), in the order of attributes, inputs, outputs. */
struct tare_op_changes {
    struct tare_arena arena;
    const char **items;
    size_t count;
};
void tare_op_changes_free(struct tare_op_changes *changes);

/* Adds what in `now` breaks nodes that were made with `before`. A zeroed list to start. The status is TARE_OK or
 * TARE_NO_MEMORY: a break is no failure. What is allowed: new attributes with a default, wider sets of values, lower
 * minima, a default where there was none, inputs of other names, Ref(…) dropped from an input or put on an output, and
 * other inputs and outputs as long as the defaults of new attributes make the old ones of them. */
tare_status tare_op_compare(struct tare_op_changes *changes, const struct tare_op_def *before,
                            const struct tare_op_def *now);

#endif
