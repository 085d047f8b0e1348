/* Advice about the choice of functions, derived from a finished conversion. */
#ifndef TARE_CONVERT_ADVICE_H
#define TARE_CONVERT_ADVICE_H

#include "convert/pipeline.h"

/* Adds lines to conversion->advice: several TPU calls for one request of a signature, functions that do not fit into
 * the memory of a chip, cores between which no input is split, batches that integer convolutions round up, a conversion
 * that places nothing on the TPU. Arena memory. */
tare_status tare_conversion_advise(struct tare_conversion *conversion, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_converter_options *options);

#endif
