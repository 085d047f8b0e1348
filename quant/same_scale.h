/* Activations as integers across ops that keep their scale: data movement, choices, maxima and Relu on integers give
 * the same codes as on the real numbers before quantization, bit for bit, so that what lies between two static layers
 * need not be float. AvgPool takes the mean of codes that a layer made, in that layer's scale, and rounds once.
 * Residual additions are not exact, and are done on request. */
#ifndef TARE_QUANT_SAME_SCALE_H
#define TARE_QUANT_SAME_SCALE_H

#include "quant/xla.h"

/* True when every use of `edge`, looking through same-scale ops, is the activation of a static layer, all with the same
 * parameters: *params are those. */
bool tare_quant_demanded(const struct tare_qparams **params, const struct tare_quant_work *work, struct tare_edge edge);

/* The int8 form of an activation: one that exists already, a same-scale op on the int8 form of its inputs, or a
 * quantization of the real one. Made once for all users with the same parameters. */
tare_status tare_quant_integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                    struct tare_edge real, const struct tare_qparams *params);

/* Notes that `integer` are the integers of `real`: users find them, and ops that ask for the shape of `real` ask them.
 */
tare_status tare_quant_share_integers(struct tare_quant_work *work, struct tare_edge real, struct tare_edge integer,
                                      const struct tare_qparams *params);

/* quantize_i8 of one number: clamp, then round half to even, in float32 as the graph would. */
float tare_quantize_number(float value, const struct tare_qparams *params);

#endif
