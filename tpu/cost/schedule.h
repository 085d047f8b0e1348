/* What a group of fused ops costs in the schedule of Google's compiler: a sum of amounts of work, each times its cycles
 * on the chip. The cycles were fitted to what the compiler says of the networks in tests/tpu/compiler
 * (scripts/judges.sh costs writes them, tests/judges/fit_costs.py fits them); docs/performance.md, "On the TPU", has
 * how far they can be trusted. Chips that the compiler was not asked about have the cycles of the nearest one that it
 * was.
 */
#ifndef TARE_TPU_COST_SCHEDULE_H
#define TARE_TPU_COST_SCHEDULE_H

#include "base/tensor/shape.h"
#include "tpu/chips.h"
#include "tpu/cost/product.h"

#include <stdbool.h>

/* A tile is a register of the vector unit: 8 × 128 elements, whatever their type. */
enum { TARE_TPU_TILE = 8 * 128, TARE_TPU_MANY_IMAGES = 32 /* that many are moved into the lanes */ };
enum { TARE_TPU_FEW_CHANNELS = 4 }; /* of an image; fewer than five are no rows of the matrix unit */
enum tare_tpu_work {
    TARE_TPU_LOOPS,      /* ops without a product */
    TARE_TPU_DENSES,     /* matrix products */
    TARE_TPU_FIRST,      /* those whose weights are read from the chip's memory, as no time is left to do so before */
    TARE_TPU_CONVS,      /* ops with convolutions, or products of matrices that are parts of larger tensors */
    TARE_TPU_CONV_LOOPS, /* those whose sums are rounded or reduced: not the float32 results of the signature */
    TARE_TPU_BARE,       /* products of bfloat16 whose results others add to, or slice */
    TARE_TPU_READ_TILES, /* tiles of arguments that are converted or quantized */
    TARE_TPU_WRITTEN_TILES, /* tiles of results */
    TARE_TPU_WEIGHT_BYTES,
    TARE_TPU_GROUPS,       /* positions of convolutions times groups of images */
    TARE_TPU_LATCHED,      /* tiles of 128 × 128 of a product's matrix */
    TARE_TPU_STREAMED,     /* these times groups of rows */
    TARE_TPU_LATCHED_WIDE, /* tiles of 256 × 256; the two for chips with matrix units of this size */
    TARE_TPU_STREAMED_WIDE,
    TARE_TPU_TALL,   /* tiles of convolutions whose images are in the lanes */
    TARE_TPU_STEM,   /* positions times groups of eight images, of convolutions of at most four channels */
    TARE_TPU_TURNED, /* positions of images of few channels, an argument, that a convolution moves into the lanes */
    TARE_TPU_DEPTHWISE_TILES, /* tiles times taps */
    TARE_TPU_CONV_TILES,      /* tiles that these, and sums fused with them, round or reduce */
    TARE_TPU_INNER_TILES,     /* tiles of convolutions that are computed inside others */
    TARE_TPU_LOOP_TILES,      /* tiles that elementwise ops without a product compute */
    TARE_TPU_REDUCED_TILES,   /* tiles that are reduced: of means and softmax */
    TARE_TPU_SPREAD_TILES,    /* tiles of concatenations and enlarged images */
    TARE_TPU_CURVE_TILES,     /* tiles times transcendental functions */
    TARE_TPU_WORKS
};

struct tare_tpu_work_amounts {
    float amount[TARE_TPU_WORKS];
    bool integer; /* of 8 or 4 bit integers */
    bool float8;  /* products of eight-bit floats */
};

void tare_tpu_add_product(struct tare_tpu_work_amounts *work, const struct tare_tpu_product *product);
/* Registers that a tensor of known shape takes in the layout that takes fewest: 128 channels or images wide.
 */
double tare_tpu_tiles(const struct tare_shape *shape);

/* `bytes` are those that the group reads and writes: too many for the vector unit's memory, they are moved. */
double tare_tpu_work_seconds(const struct tare_tpu_work_amounts *work, int chip, double bytes);

/* Cycles a second of a chip that the compiler knows; NaN: it was not asked about it. */
double tare_tpu_chip_clock(int chip);

#endif
