/* Routines of LAPACK (lapack.h) for matrices of at most 8 x 8 in double, for batches: LAPACK's own spend most of their
 * time in calls of BLAS for vectors of a few elements. The algorithms are those of its unblocked routines. */
#ifndef TARE_INTERPRETER_KERNELS_SMALL_LAPACK_H
#define TARE_INTERPRETER_KERNELS_SMALL_LAPACK_H

#include "interpreter/kernels/lapack.h"

/* The largest number of rows and of columns. */
enum { TARE_SMALL_MOST = 8 };

/* Runs a prepared routine: for small matrices by functions of our own, otherwise tare_lapack_run. Returns info. */
int tare_small_lapack_run(struct tare_lapack_call *call);

/* Eigenvalues of a Hessenberg matrix h [n, n], column-major; what is outside rows and columns low … high - 1 is
 * triangular already: h becomes the Schur form, whose diagonal they are, and q of A = Q·H·Qᴴ that of the Schur form.
 * False: no convergence. */
bool tare_small_schur(int n, int low, int high, double _Complex *h, double _Complex *q);
/* Replaces q of a Schur form h by the eigenvectors, of any length that can be represented. */
void tare_small_schur_vectors(int n, const double _Complex *h, double _Complex *q);

#endif
