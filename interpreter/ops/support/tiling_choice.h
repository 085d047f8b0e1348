/* Which of consecutive convolutions and paddings run together, and in how many parts (interpreter/kernels/tiling.h). */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_TILING_CHOICE_H
#define TARE_INTERPRETER_OPS_SUPPORT_TILING_CHOICE_H

#include "interpreter/kernel.h"
#include "interpreter/kernels/tiling.h"

/* Keeps the first stages of a tiling whose stages and batch are set, as many as should run together on the threads of
 * the pool (NULL: one), and plans it. False: stage 0 should run alone; after a widening, stage 1. The choice is kept
 * with `kernel`, the first that is part of the tiling, for tilings of the same shapes. */
struct tare_pool;
bool tare_tiling_choose(struct tare_tiling *tiling, struct tare_pool *pool, struct tare_kernel *kernel);

#endif
