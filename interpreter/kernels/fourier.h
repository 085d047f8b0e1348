/* Discrete Fourier transforms of any length, in complex double. */
#ifndef TARE_INTERPRETER_KERNELS_FOURIER_H
#define TARE_INTERPRETER_KERNELS_FOURIER_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Data shared by transforms of one length: roots of unity and work memory. Allocated in the caller's arena. */
struct tare_fourier;

/* n >= 1. NULL: no memory, or n is too large. */
struct tare_fourier *tare_fourier_new(struct tare_arena *arena, int64_t n);
/* x[k] = sum over j of x[j] exp(-2 pi i j k / n) in place; inverse: exp(+…), divided by n. Of no
 * use after a cancellation, which stops it. */
void tare_fourier_run(struct tare_fourier *fourier, _Complex double *x, bool inverse);

#endif
