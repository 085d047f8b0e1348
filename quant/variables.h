/* Weights of large models stay in variables: the integers become the variable's value, under its old name in the
 * checkpoint. */
#ifndef TARE_QUANT_VARIABLES_H
#define TARE_QUANT_VARIABLES_H

#include "quant/layer.h"

/* Refuses layers whose variable is not read by equally quantized layers alone: there is one value for all readers. */
tare_status tare_quant_check_variables(struct tare_quant_work *work, const struct tare_bindings *bindings);
/* Puts `value` into the layer's variable, unless an earlier layer has, and makes the layer's read one of it. The result
 * is that read. */
tare_status tare_quant_store(struct tare_edge *out, struct tare_quant_layer *layer, const struct tare_tensor *value);

#endif
