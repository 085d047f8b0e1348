/* Removing what a rewrite left behind. */
#ifndef TARE_QUANT_SWEEP_H
#define TARE_QUANT_SWEEP_H

#include "quant/layer.h"

/* Removes the ops of the rewritten layers and what they alone needed. Nodes that waited for one of these ops (control
 * inputs) wait for what it waited for, so that it does not stay in float beside its integer form. */
tare_status tare_quant_sweep(const struct tare_quant_work *work) TARE_WARN_UNUSED;

#endif
