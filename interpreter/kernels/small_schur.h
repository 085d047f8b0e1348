/* Eigenvalues and vectors of small complex matrices, for batches: LAPACK's iteration for complex matrices (lahqr) calls
 * a routine per element pair, which takes 1.5 to 2 times as long at 4 x 4. */
#ifndef TARE_INTERPRETER_KERNELS_SMALL_SCHUR_H
#define TARE_INTERPRETER_KERNELS_SMALL_SCHUR_H

#include "interpreter/kernels/small_number.h"

#include <stdbool.h>

/* A Hessenberg matrix h [n, n] of a balanced matrix, column-major; what is outside rows and columns low … high - 1 is
 * triangular already. Elements have magnitudes of at most 1e60. */
struct tare_small_schur {
    int n, low, high;
    double epsilon;        /* relative size below which an element counts as zero */
    struct tare_number *h; /* becomes the Schur form: the eigenvalues are its diagonal */
    struct tare_number
        *q; /* Q of A = Q·H·Qᴴ; becomes that of the Schur form, then the eigenvectors. NULL: not requested */
};

/* False: no convergence. */
bool tare_small_schur(const struct tare_small_schur *problem);
/* Replaces q by the eigenvectors, of any length that double and float can represent. */
void tare_small_schur_vectors(const struct tare_small_schur *problem);

#endif
