/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3"): random words that are a
 * function of a key and a counter. */
#ifndef TARE_INTERPRETER_OPS_RANDOM_PHILOX_H
#define TARE_INTERPRETER_OPS_RANDOM_PHILOX_H

#include <stdint.h>

struct tare_philox {
    uint32_t key[2];
    uint32_t counter[4]; /* of the next block, lowest word first */
    uint32_t words[4];   /* the current block */
    int used;            /* number of words consumed; 4 at the start */
};

struct tare_philox tare_philox_from(uint64_t key, uint64_t counter_low, uint64_t counter_high);
/* The generator of a stateless op's two seeds, which are scrambled so that any seeds are valid. */
struct tare_philox tare_philox_from_seeds(uint64_t seed, uint64_t seed2);
uint32_t tare_philox_next(struct tare_philox *philox);
/* The low word comes first. */
uint64_t tare_philox_next64(struct tare_philox *philox);

/* Skips `blocks` blocks from the counter on; the rest of the current block is discarded. */
void tare_philox_skip(struct tare_philox *philox, uint64_t blocks);

/* A number in [0, 1) with 23 (52) random mantissa bits. */
float tare_philox_float(struct tare_philox *philox);
double tare_philox_double(struct tare_philox *philox);
/* Two independent standard normal numbers by the Box-Muller transform: from two words in float, from four in double. */
void tare_philox_normals_f32(struct tare_philox *philox, float out[2]);
void tare_philox_normals(struct tare_philox *philox, double out[2]);

#endif
