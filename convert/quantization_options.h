/* QuantizationOptions, from the message in any of its layouts to what the pipeline takes. */
#ifndef TARE_CONVERT_QUANTIZATION_OPTIONS_H
#define TARE_CONVERT_QUANTIZATION_OPTIONS_H

#include "convert/options.h"
#include "proto/tensorflow/quantization_options.pb-c.h"

/* Fills in TensorFlow's defaults and checks with TensorFlow's words. Texts are the message's or the arena's. */
tare_status tare_quantization_read(struct tare_quantization *out, struct tare_arena *arena,
                                   const Tensorflow__Quantization__QuantizationOptions *message);

#endif
