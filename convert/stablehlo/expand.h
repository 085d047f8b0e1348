/* XlaCallModule nodes of a model as calls of functions of TensorFlow ops. */
#ifndef TARE_CONVERT_STABLEHLO_EXPAND_H
#define TARE_CONVERT_STABLEHLO_EXPAND_H

#include "graph/model.h"

/* Replaces each XlaCallModule node by a call of its module's main, imported as functions of the model. A node whose
 * module cannot be imported stays, and model->module_error names the first reason. TARE_NO_MEMORY is the only failure.
 */
tare_status tare_shlo_expand(struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
