/* The error of each layer as node data of Model Explorer (ai-edge-model-explorer): a JSON file that its page loads
 * beside the SavedModel and colours the nodes by. */
#ifndef TARE_EVAL_REPORT_NODE_DATA_H
#define TARE_EVAL_REPORT_NODE_DATA_H

#include "eval/comparison.h"

/* Notes where the model's file has its ops with weights, by which Model Explorer's "TF adapter (direct)" names nodes.
 * The model is as loaded. */
tare_status tare_node_places_find(struct tare_comparison *comparison,
                                  const struct tare_graph_model *model) TARE_WARN_UNUSED;
/* {"FUNCTION": {"results": {"NODE": {"value": dB}}, "gradient": […]}}: the quantized layers of the first method, by the
 * measured sensitivity or else by the calibration. TARE_INVALID_ARGUMENT if the comparison explains no layer of the
 * file. */
tare_status tare_comparison_node_data(struct tare_strbuf *out,
                                      const struct tare_comparison *comparison) TARE_WARN_UNUSED;

#endif
