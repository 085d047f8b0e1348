/* XlaCallModule nodes of a model as calls of functions of TensorFlow ops. */
#ifndef TARE_CONVERT_STABLEHLO_EXPAND_H
#define TARE_CONVERT_STABLEHLO_EXPAND_H

#include "convert/load_options.h"
#include "graph/model.h"

/* Replaces each XlaCallModule node by a call of its module's main, imported as functions of the model, for `platform`,
 * or for another one that the module was exported for: model->has_other_platforms, and model->module_note if only
 * branches for the other one can be imported. A node whose module cannot be imported stays, and model->module_error
 * names the first reason. TARE_NO_MEMORY is the only failure. */
tare_status tare_shlo_expand(struct tare_graph_model *model, enum tare_module_platform platform) TARE_WARN_UNUSED;

#endif
