/* Estimated time of a model on a TPU before and after quantization, for the warning that quantizing does not pay. */
#ifndef TARE_WORKFLOW_SPEED_ESTIMATE_H
#define TARE_WORKFLOW_SPEED_ESTIMATE_H

#include "graph/model.h"
#include "quant/quantize.h"

/* Estimated seconds per example (batch 1) on the chip that `tare compare` uses by default (tpu/cost/fused.h). Calls are
 * not inlined, so tensors that cross a call count as written and read; the model is not changed. NaN: unknown, because
 * the model has several signatures and no serving_default, or is too large or invalid. TARE_NO_MEMORY and
 * TARE_INTERRUPTED are the only failures. */
tare_status tare_workflow_estimate_speed(double *seconds, const struct tare_graph_model *model) TARE_WARN_UNUSED;

/* Adds a warning to the report of a quantization if the quantized model is estimated slower. NaN: unknown. */
tare_status tare_workflow_warn_of_slower(struct tare_quant_report *report, struct tare_arena *arena, double before,
                                         double after) TARE_WARN_UNUSED;

#endif
