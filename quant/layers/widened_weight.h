/* Weights that a model has in float8 or in integers, converts and multiplies by scales before a product. */
#ifndef TARE_QUANT_LAYERS_WIDENED_WEIGHT_H
#define TARE_QUANT_LAYERS_WIDENED_WEIGHT_H

#include "graph/graph.h"

/* A conversion of float8. */
bool tare_widens_float8(const struct tare_node *node);
/* Sets *out (zeroed) to the values of an edge that constants alone determine, which folding leaves as they are: as
 * floats they would be four times as large. It stays zeroed where the edge is something else, or where even its
 * integers would be larger than the constants. */
tare_status tare_quant_widened_weight(struct tare_tensor *out, struct tare_edge edge) TARE_WARN_UNUSED;
/* Whether an edge that is no such constant is computed from a conversion of float8: an entry of a stack times its
 * scales.
 */
bool tare_quant_widens_at_run_time(struct tare_edge edge);

#endif
