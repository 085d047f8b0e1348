/* Block reconstruction: the integers and scales of all layers of a block that together make the error of the block's
 * outputs small (docs/algorithms.md). */
#ifndef TARE_QUANT_RECONSTRUCTION_RECONSTRUCT_H
#define TARE_QUANT_RECONSTRUCTION_RECONSTRUCT_H

#include "quant/compensation.h"

struct tare_reconstruction {
    struct tare_quant_compensation layers; /* of the layer form */
    int64_t iterations;                    /* of each block's training; 0: only the layer form */
    int64_t seed;                          /* of the order of the samples and of activation drop */
};

/* Rounds every layer by itself, then the layers of each block together. Each block keeps what has the least error on
 * held-out samples; the outcomes are added to the report. */
tare_status tare_quant_reconstruct(struct tare_quant_work *work,
                                   const struct tare_reconstruction *how) TARE_WARN_UNUSED;

#endif
