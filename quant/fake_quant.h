/* Models trained with quantization (QAT): FakeQuant ops say the ranges of activations, and no samples are needed. */
#ifndef TARE_QUANT_FAKE_QUANT_H
#define TARE_QUANT_FAKE_QUANT_H

#include "graph/model.h"

/* The range that a FakeQuant of 8 bits gives the activation, which makes it or reads it; false: none does, or its range
 * is no constant. */
bool tare_quant_fake_range(double *low, double *high, struct tare_edge edge);
/* True when the model was trained with quantization: some op's name begins with FakeQuant, as TensorFlow decides it. */
bool tare_quant_is_trained(const struct tare_model *model);

#endif
