/* Attributes of a node as text: "T: float; padding: 'SAME'; strides: [1, 2, 2, 1]". Shapes may be written [2,?],
 * functions by name. */
#ifndef TARE_TESTS_ATTRS_TEXT_H
#define TARE_TESTS_ATTRS_TEXT_H

#include "graph/graph.h"
#include "graph/definitions/opspec.h"

/* Sets each attribute on the node, typed by the op's definition; `memory` holds the values until the model has
 * copied them. NULL text: no attributes. */
tare_status attrs_from_text(struct tare_node *node, struct tare_opspec_memory *memory, const char *attrs);

#endif
