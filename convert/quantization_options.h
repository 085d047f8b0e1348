/* Converts QuantizationOptions from the message in any of its layouts to the pipeline's structs. */
#ifndef TARE_CONVERT_QUANTIZATION_OPTIONS_H
#define TARE_CONVERT_QUANTIZATION_OPTIONS_H

#include "convert/options.h"
#include "proto/tensorflow/quantization_options.pb-c.h"

/* Sets in a copy of the plan (opened; NULL: the defaults) what the message has, and checks with TensorFlow's error
 * texts. Strings are owned by the message or the arena. */
tare_status tare_quantization_read(struct tare_quantization *out, struct tare_arena *arena,
                                   const Tensorflow__Quantization__QuantizationOptions *message,
                                   const struct tare_quant_plan *plan);

#endif
