/* Converting models whose StableHLO modules stay as they are. */
#ifndef TARE_CONVERT_STABLEHLO_KEEP_H
#define TARE_CONVERT_STABLEHLO_KEEP_H

#include "convert/options.h"
#include "graph/model.h"

/* Whether the model, loaded with keep_modules, can be converted with its XlaCallModule nodes unchanged: only placement
 * and batching are requested, and XLA's TPU compiler takes each module. TARE_UNSUPPORTED or TARE_INVALID_ARGUMENT with
 * the reason. */
tare_status tare_shlo_check_kept(const struct tare_graph_model *model,
                                 const struct tare_converter_options *options) TARE_WARN_UNUSED;

#endif
