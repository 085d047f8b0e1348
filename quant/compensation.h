/* Rounds the weights of all layers so that the error of each layer's output over the samples is small. */
#ifndef TARE_QUANT_COMPENSATION_H
#define TARE_QUANT_COMPENSATION_H

#include "quant/layer.h"

struct tare_quant_compensation {
    double damp;    /* least share of the Hessian's mean diagonal that is added to its diagonal */
    bool act_order; /* rows with large inputs first */
};

/* Does nothing for layers without a Hessian. Starts from the integers that a layer has. */
tare_status tare_quant_compensate_layers(struct tare_quant_work *work, const struct tare_quant_compensation *wanted);

#endif
