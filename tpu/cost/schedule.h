/* What a group of fused ops costs in the schedule of Google's compiler: a sum of amounts of work, each times its cycles
 * on the chip. The cycles were fitted to what the compiler says of the networks in tests/tpu/compiler/networks.tsv
 * (scripts/judges.sh costs writes it, tests/judges/fit_costs.py fits them); docs/performance.md, "On the TPU", has how
 * far they can be trusted. Chips that the compiler was not asked about have the cycles of the nearest one that it was.
 */
#ifndef TARE_TPU_COST_SCHEDULE_H
#define TARE_TPU_COST_SCHEDULE_H

#include "base/tensor/shape.h"
#include "tpu/chips.h"
#include "tpu/cost/product.h"

#include <stdbool.h>

/* A tile is a register of the vector unit: 8 × 128 elements, whatever their type. */
enum tare_tpu_work {
    TARE_TPU_FIRST_DENSE,   /* a matrix product that reads arguments and weights from the chip's memory */
    TARE_TPU_DENSES,        /* matrix products */
    TARE_TPU_CONVS,         /* convolutions */
    TARE_TPU_OTHERS,        /* groups without a product: means, softmax, sums that no product computes */
    TARE_TPU_READS,         /* groups that read an argument, to convert or quantize it */
    TARE_TPU_READ_TILES,    /* tiles that these read */
    TARE_TPU_WRITTEN_TILES, /* tiles of results */
    TARE_TPU_WEIGHT_BYTES,
    TARE_TPU_SHALLOW, /* tiles of a product's matrix times groups of rows, of matrices with fewer rows than a tile */
    TARE_TPU_DEEP,    /* the same, of all others */
    TARE_TPU_STEM,    /* positions times groups of eight images, of convolutions of at most four channels */
    TARE_TPU_DEPTHWISE_TILES, /* tiles times taps */
    TARE_TPU_CONV_TILES,      /* tiles that convolutions, and sums fused with them, compute */
    TARE_TPU_OTHER_TILES,     /* tiles that groups without a product compute */
    TARE_TPU_WORKS
};

struct tare_tpu_work_amounts {
    float amount[TARE_TPU_WORKS];
    float shallow_256, deep_256; /* on chips with matrix units of 256 × 256 */
    bool integer;                /* of 8 or 4 bit integers */
    bool float8;                 /* products of eight-bit floats */
};

void tare_tpu_add_product(struct tare_tpu_work_amounts *work, const struct tare_tpu_product *product);
/* Registers that a tensor of known shape takes in the layout that takes fewest: 128 channels, columns or images wide.
 */
double tare_tpu_tiles(const struct tare_shape *shape);

/* `bytes` are those that the group reads and writes: too many for the vector unit's memory, they are moved. */
double tare_tpu_work_seconds(const struct tare_tpu_work_amounts *work, int chip, double bytes);

/* Cycles a second of a chip that the compiler knows; NaN: it was not asked about it. */
double tare_tpu_chip_clock(int chip);

#endif
