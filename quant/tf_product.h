/* The products of layers on integers as TensorFlow's own ops, for the op set TF. */
#ifndef TARE_QUANT_TF_PRODUCT_H
#define TARE_QUANT_TF_PRODUCT_H

#include "quant/emit.h"
#include "quant/layer.h"

/* Why TensorFlow's ops cannot compute the layer; NULL if they can. */
const char *tare_tf_refuses(const struct tare_quant_layer *layer);
/* True for convolutions that become a Conv2D or Conv3D of the filter as it is arranged. */
bool tare_tf_takes_arranged(const struct tare_quant_layer *layer);
/* The int32 sums of the layer in its raw order of axes, for an activation and a weight of int32 from which the zero
 * points are subtracted. The weight has the axes of the op's operand, or is arranged (above). */
struct tare_edge tare_tf_product(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge x,
                                 struct tare_edge w);
/* The raw result with the axes of the op's output. */
struct tare_edge tare_tf_result(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge raw);

#endif
