/* Attributes of a node written as text: "T: float; padding: 'SAME'; strides: [1, 2, 2, 1]". A shape may be written
 * [2,?], a function by its name. */
#ifndef TARE_TESTS_ATTRS_TEXT_H
#define TARE_TESTS_ATTRS_TEXT_H

#include "graph/graph.h"
#include "graph/definitions/opspec.h"

/* Sets each on the node, by the kind that the op's definition says; `memory` holds the values until the model has its
 * copies. NULL text: none. */
tare_status attrs_from_text(struct tare_node *node, struct tare_opspec_memory *memory, const char *attrs);

#endif
