/* Weights that stay variables (--keep-variables, and large models): the integers become the value of the variable,
 * which keeps its name in the checkpoint. */
#ifndef TARE_QUANT_VARIABLES_H
#define TARE_QUANT_VARIABLES_H

#include "quant/layer.h"

/* Sets `refused` of every layer whose variable has a data use other than layers that expect the same integers. */
tare_status tare_quant_check_variables(struct tare_quant_work *work, const struct tare_bindings *bindings);
/* Stores `value` in the layer's variable, unless an earlier layer has, and sets the dtype of the layer's read, which is
 * returned in *out. */
tare_status tare_quant_store(struct tare_edge *out, struct tare_quant_layer *layer, const struct tare_tensor *value);
/* After all rewrites: sets the dtype of every other read of the variables that now hold integers. Such reads have no
 * data use, at most control edges. */
tare_status tare_quant_retype_reads(const struct tare_quant_work *work);

#endif
