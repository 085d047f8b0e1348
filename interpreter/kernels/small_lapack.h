/* Routines of LAPACK (lapack.h) for matrices of at most 8 x 8 in double, for batches: LAPACK's own spend most of their
 * time in calls of BLAS for vectors of a few elements. */
#ifndef TARE_INTERPRETER_KERNELS_SMALL_LAPACK_H
#define TARE_INTERPRETER_KERNELS_SMALL_LAPACK_H

#include "interpreter/kernels/lapack.h"

/* The largest number of rows and of columns. */
enum { TARE_SMALL_MOST = 8 };

/* Runs a prepared routine if a function of our own computes it: for a small matrix, LU (with the complex pivots of the
 * largest modulus, where LAPACK takes |re| + |im|) and the other factorizations. False: nothing was done. */
bool tare_small_lapack_try(struct tare_lapack_call *call);
/* The same, otherwise by LAPACK. Returns info. */
int tare_small_lapack_run(struct tare_lapack_call *call);
/* tare_lapack_trsm from the right for b [rows, n] and a [n, n] with n as leading dimension: small ones by a function of
 * our own. */
void tare_small_trsm(int dtype, const char *form, int rows, int n, const void *a, void *b);

#endif
