/* Checks attribute values against the op definition. */
#ifndef TARE_GRAPH_DEFINITIONS_ATTR_CHECK_H
#define TARE_GRAPH_DEFINITIONS_ATTR_CHECK_H

#include "graph/op.h"

/* Whether the value is of the kind that the definition requires; an empty list is of every kind of list, and a
 * placeholder of every kind. */
bool tare_attr_has_kind(const struct tare_attr *value, const struct tare_op_attr *attr);
/* The same as a status. TARE_INVALID_ARGUMENT; the text names the attribute, not the node. */
tare_status tare_attr_check_kind(const struct tare_attr *value, const struct tare_op_attr *attr) TARE_WARN_UNUSED;
/* Kind, allowed values, minimum. TARE_INVALID_ARGUMENT; the text names the attribute, not the node. */
tare_status tare_attr_check(const struct tare_attr *value, const struct tare_op_attr *attr);

#endif
