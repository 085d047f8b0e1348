/* The weight of a layer: a constant, a variable that nothing assigns, an entry of a stack of them, or float8 constants
 * that the model converts. */
#ifndef TARE_QUANT_LAYERS_WEIGHT_H
#define TARE_QUANT_LAYERS_WEIGHT_H

#include "quant/layer.h"

/* Sets what the layer knows of its weight, or why there is none; of a product of arrays, it may be the first operand.
 * `shapes` NULL: no stacks are looked for. */
tare_status tare_quant_find_weight(struct tare_quant_layer *layer, struct tare_arena *arena,
                                   const struct tare_model_shapes *shapes,
                                   const struct tare_bindings *bindings) TARE_WARN_UNUSED;
/* The variable that an edge reads, when nothing assigns it, and the shape that it has at the edge. Mixed precision
 * casts the value read, and Conv1D adds an axis; the integers are computed from the variable's own values. */
struct tare_variable *tare_quant_constant_variable(struct tare_node **read, struct tare_shape *shape,
                                                   struct tare_edge edge, const struct tare_bindings *bindings);

#endif
