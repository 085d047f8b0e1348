/* Integer activations across ops that preserve the scale: data movement, selection, maxima and Relu on integers yield
 * the same codes as on the real values before quantization, bit for bit, so the ops between two static layers need not
 * be float. AvgPool computes the mean of a layer's output codes, in that layer's scale, and rounds once. Residual
 * additions are not exact, and are enabled by an option. */
#ifndef TARE_QUANT_SAME_SCALE_H
#define TARE_QUANT_SAME_SCALE_H

#include "quant/xla.h"

/* The parameters of all uses of `edge` if each of them, looking through same-scale ops, is the activation of a static
 * layer, all with the same parameters; otherwise NULL. */
tare_status tare_quant_demanded(const struct tare_qparams **params, const struct tare_quant_work *work,
                                struct tare_edge edge) TARE_WARN_UNUSED;

/* The int8 form of an activation: one that exists already, a same-scale op on the int8 form of its inputs, or a
 * quantization of the real one. Made once for all users with the same parameters. */
tare_status tare_quant_integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                    struct tare_edge real, const struct tare_qparams *params);

/* Records that `integer` are the integers of `real`: other uses find them, and ops that read the shape of `real` read
 * theirs. */
tare_status tare_quant_share_integers(struct tare_quant_work *work, struct tare_edge real, struct tare_edge integer,
                                      const struct tare_qparams *params);

/* quantize_i8 of one number: clamp, then round half to even, in float32 as the graph would. */
float tare_quantize_number(float value, const struct tare_qparams *params);

#endif
