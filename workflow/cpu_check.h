/* What a quantized model leaves for TensorFlow's CPU kernels. */
#ifndef TARE_WORKFLOW_CPU_CHECK_H
#define TARE_WORKFLOW_CPU_CHECK_H

#include "graph/model.h"
#include "quant/quantize.h"

/* TARE_UNSUPPORTED if TensorFlow does not load the model: calls whose results have open shapes. Adds a warning to the
 * report of a quantization if signatures run ops that TensorFlow has no CPU kernel for (calls of LAPACK in a module of
 * JAX, say): the model loads, and its first request fails unless `convert` places them. Also one for a module that has
 * the branches of another platform than the TPU. */
tare_status tare_workflow_warn_of_left(struct tare_quant_report *report, struct tare_arena *arena,
                                       const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
