/* Layers that stay in float, and why. */
#ifndef TARE_QUANT_FLOAT_LAYERS_H
#define TARE_QUANT_FLOAT_LAYERS_H

#include "quant/layer.h"

/* *reason: why a layer with its settings stays in float, as the report prints it (static, or memory of work->arena);
 * NULL: it is quantized. `by_rule`: a rule of the recipe named this layer, which also selects ops that are not
 * quantized by default. */
tare_status tare_quant_float_reason(const char **reason, const struct tare_quant_work *work,
                                    struct tare_quant_layer *layer, bool by_rule) TARE_WARN_UNUSED;

#endif
