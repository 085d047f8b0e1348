/* Checks attribute values against the op definition. */
#ifndef TARE_GRAPH_DEFINITIONS_ATTR_CHECK_H
#define TARE_GRAPH_DEFINITIONS_ATTR_CHECK_H

#include "graph/op.h"

/* Kind, allowed values, minimum. TARE_INVALID_ARGUMENT; the text names the attribute, not the node. */
tare_status tare_attr_check(const struct tare_attr *value, const struct tare_op_attr *attr);

#endif
