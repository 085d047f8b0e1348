/* Chooses activations of 16 bits for static layers where int8 would add too much noise to the output. */
#ifndef TARE_QUANT_WIDE_INPUTS_H
#define TARE_QUANT_WIDE_INPUTS_H

#include "quant/layer.h"

/* For each planned layer whose setting leaves the bits of the activation open (activation_bits 0): 16 bits where 8
 * would leave the output too little SQNR, if the method has them. Layers without statistics and layers with ranges from
 * training keep 8 bits. Ranges of 16 bits, also of layers whose setting asks for them, get headroom where it costs
 * nothing (range-headroom). */
tare_status tare_quant_widen_inputs(struct tare_quant_work *work);
/* Adds a warning for each static layer whose output the rounding of its input leaves so little SQNR that
 * tare_quant_widen_inputs would change a layer of 8 bits whatever the model predicts. */
tare_status tare_quant_warn_of_noisy_inputs(struct tare_quant_work *work);

#endif
