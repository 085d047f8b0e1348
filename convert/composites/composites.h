/* Composite functions: a function annotated with experimental_implements (attribute _implements: a name, or a name with
 * attributes) or by Keras (api_implements: "lstm_…", "gru_…") declares what it computes. Its body is replaced by the
 * fused form, with the function's arguments and returns as the interface. Functions that do not match are left
 * unchanged, with a reason; one that breaks the interface that its name promises is a failure. */
#ifndef TARE_CONVERT_COMPOSITES_H
#define TARE_CONVERT_COMPOSITES_H

#include "graph/model.h"

/* Processes every annotated function that signatures, aliases or concretes reach. `out` has those of this call, in
 * memory of the model, whose `composites` have the latest result of each function. The annotation of a fused function
 * is removed, so that neither this function nor a runtime treats it as a composite again. Results of look-ups and Keras
 * layers are bit-identical; a layer normalisation may differ by rounding, and a plugin's op computes what the plugin
 * implements. */
tare_status tare_composites_fuse(struct tare_composites *out, struct tare_graph_model *model);

#endif
