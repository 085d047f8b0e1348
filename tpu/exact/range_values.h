/* Values that are computed from the extremes of a tensor: scales and zero points of dynamic range quantization. They
 * must be float32, but the tensor itself may be rounded: its integers follow from the rounded extremes. */
#ifndef TARE_TPU_RANGE_VALUES_H
#define TARE_TPU_RANGE_VALUES_H

#include "graph/graph.h"

/* True for a Max or Min over axes, and for arithmetic on such values and constants. */
bool tare_is_range_value(struct tare_edge edge);
/* True for a Cast of a range value to an integer that quantizes a tensor: the integer, as a float again, is added
 * before a cast to 8 bits or fewer. Needs the lists of uses (tare_graph_index_uses). */
bool tare_is_zero_point(const struct tare_node *node);
/* True if arithmetic on the node's output ends in a cast to 8 bits or fewer. Needs the lists of uses. */
bool tare_ends_narrow(const struct tare_node *node);

#endif
