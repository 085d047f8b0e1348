/* Costs of ops whose row in interpreter/ops has no cost function. */
#ifndef TARE_TPU_COST_ROWS_H
#define TARE_TPU_COST_ROWS_H

#include "interpreter/inference/infer.h"

/* Sets macs and, for ops that read only a part of their inputs, bytes; the caller has set bytes to all inputs and
 * outputs. Shapes are fully known. The op's own row comes first, then the table of this module. */
void tare_tpu_op_cost(const struct tare_infer *infer, struct tare_cost *cost);

/* Ops that compilers eliminate, or that do not compute: their cost is 0. */
bool tare_tpu_op_is_free(const char *op);

#endif
