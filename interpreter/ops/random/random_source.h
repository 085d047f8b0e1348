/* Sources of random words: the session's stream, two seeds, a key with a counter, or a generator stored in a
 * variable. */
#ifndef TARE_INTERPRETER_OPS_RANDOM_RANDOM_SOURCE_H
#define TARE_INTERPRETER_OPS_RANDOM_RANDOM_SOURCE_H

#include "interpreter/kernel.h"
#include "interpreter/ops/random/philox.h"

enum { TARE_RANDOM_PHILOX = 1 };

/* Key, counter and algorithm are inputs `first`, `first` + 1 and `first` + 2. */
tare_status tare_random_from_key(struct tare_philox *out, const struct tare_kernel *kernel, int first);
/* A vector of two seeds. */
tare_status tare_random_from_seeds(struct tare_philox *out, const struct tare_tensor *seeds);
/* The session's stream, selected by the attributes seed and seed2. */
tare_status tare_random_from_session(struct tare_philox *out, const struct tare_kernel *kernel);
/* The generator in the variable of input 0 (int64: counter low, counter high, key); `algorithm` NULL: the algorithm is
 * an additional first element. Advances the variable by `numbers`, as TensorFlow does for an output of that size. */
tare_status tare_random_from_state(struct tare_philox *out, struct tare_kernel *kernel,
                                   const struct tare_tensor *algorithm, uint64_t numbers);
/* Advances that generator by `delta` numbers. `before` (NULL: unused) receives the previous state. */
tare_status tare_random_skip(struct tare_kernel *kernel, const struct tare_tensor *algorithm, uint64_t delta,
                             struct tare_tensor *before);

#endif
