/* Applying an op definition to a node: the flat lists of its tensors' dtypes, and checks of its attributes. */
#ifndef TARE_GRAPH_DEFINITIONS_OPDEF_H
#define TARE_GRAPH_DEFINITIONS_OPDEF_H

#include "graph/op.h"

/* Flat list of the node's output (input) dtypes from its definition and attributes; reference outputs + 100. Arena
 * memory. TARE_INVALID_ARGUMENT when an attribute is missing, of the wrong kind, or a count is negative or absurd. */
tare_status tare_opdef_output_dtypes(struct tare_arena *arena, const struct tare_node *node, int **dtypes,
                                     size_t *count);
tare_status tare_opdef_input_dtypes(struct tare_arena *arena, const struct tare_node *node, int **dtypes,
                                    size_t *count);
/* Number and base dtypes of the inputs; each must be an output of a live node of the same graph. */
tare_status tare_opdef_check_inputs(const struct tare_node *node);
/* Sets the attributes that inputs of these dtypes determine and that the node does not have: types, lists of types, and
 * lengths (of one list; several lists of unknown length are left to the caller). */
tare_status tare_opdef_set_attrs_for(struct tare_node *node, const int *dtypes, size_t count);
/* The same for the node's own inputs. */
tare_status tare_opdef_set_input_attrs(struct tare_node *node);
/* Required attributes, kinds, allowed values, minima. */
tare_status tare_opdef_check_attrs(const struct tare_node *node);
/* The kinds alone, of the attributes that the node has; the text does not name the node. For models that are opened:
 * functions that read attributes rely on it. */
tare_status tare_opdef_check_attr_kinds(const struct tare_node *node) TARE_WARN_UNUSED;

#endif
