/* How much noise the rounding of its activation adds to the output of a static layer. */
#ifndef TARE_QUANT_LAYERS_OUTPUT_NOISE_H
#define TARE_QUANT_LAYERS_OUTPUT_NOISE_H

#include "quant/layer.h"

/* Sets *db to the ratio of the variance of the layer's output over the samples to the mean square of that noise, in dB;
 * in a loop, of the iteration where it is least. Infinity: it is not known, or the layer has no integer activation with
 * a range from calibration. */
tare_status tare_quant_output_db(double *db, const struct tare_quant_work *work, struct tare_quant_layer *layer);

#endif
