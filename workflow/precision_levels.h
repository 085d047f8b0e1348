/* The precisions among which the mixed-precision search chooses for each layer, from the cheapest to the most exact:
 * the variant's own settings, 8-bit weights, 16-bit activations, float. */
#ifndef TARE_WORKFLOW_PRECISION_LEVELS_H
#define TARE_WORKFLOW_PRECISION_LEVELS_H

#include "eval/sensitivity.h"

/* Builds the steps of a target search (eval/target.h) from the sensitivity of the variant: one entry for each layer and
 * each precision above its first, with the error of the precision below. Precisions between the first and float are
 * measured one layer at a time as `task` says; one that reduces a layer's error by less than 3 dB is left out. `steps`
 * is freed with tare_sensitivity_free, before `base`, whose texts it borrows. */
tare_status tare_workflow_precision_steps(struct tare_sensitivity *steps, const struct tare_sensitivity *base,
                                          const struct tare_sensitivity_task *task) TARE_WARN_UNUSED;

#endif
