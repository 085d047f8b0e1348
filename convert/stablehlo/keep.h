/* Converting models whose StableHLO modules stay as they are. */
#ifndef TARE_CONVERT_STABLEHLO_KEEP_H
#define TARE_CONVERT_STABLEHLO_KEEP_H

#include "convert/options.h"
#include "graph/model.h"

/* Before the model is loaded: TARE_INVALID_ARGUMENT if more than placement and batching is requested, which changes the
 * modules. */
tare_status tare_shlo_check_keeping(const struct tare_converter_options *options) TARE_WARN_UNUSED;
/* Whether XLA's TPU compiler takes each module of the model, loaded with keep_modules: otherwise TARE_UNSUPPORTED with
 * the reason, or TARE_NOT_FOUND if it has none. */
tare_status tare_shlo_check_kept(const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif
