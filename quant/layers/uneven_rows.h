/* Products that sum over more than the inputs of one matrix: over the experts of a stack as well (lax.ragged_dot, an
 * activation that is one-hot or masked). All matrices then share the scale of an output channel. */
#ifndef TARE_QUANT_UNEVEN_ROWS_H
#define TARE_QUANT_UNEVEN_ROWS_H

#include "quant/layer.h"

struct tare_quant_uneven {
    double sqnr;   /* dB, of the rounded weight of the worst matrix; INFINITY: there is one matrix */
    int64_t count; /* matrices along its axis */
    int64_t rows;  /* of a matrix, if they are next to each other in the arranged weight; 0: they are not */
};

/* Rounds the weight to 8 bits with one scale for each output channel. Matrices without weights are not counted. */
tare_status tare_quant_find_uneven(struct tare_quant_uneven *out, struct tare_arena *arena,
                                   struct tare_quant_layer *layer) TARE_WARN_UNUSED;

#endif
