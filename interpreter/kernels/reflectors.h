/* Householder reductions of small matrices. Those of LAPACK (geqr2, org2r, gebd2, gehd2) spend most of their time in
 * calls of BLAS for vectors of a few elements. The algorithms and formats are the same; sums are in double for all
 * types.
 *
 * Matrices are column-major; the leading dimension is the number of rows. A reflector is H = 1 - tau·v·vᴴ with v[0] =
 * 1; the other elements of v are stored in place of those that H eliminates. */
#ifndef TARE_INTERPRETER_KERNELS_REFLECTORS_H
#define TARE_INTERPRETER_KERNELS_REFLECTORS_H

#include "interpreter/kernels/lapack_type.h"

/* The largest number of rows and of columns of a small matrix. */
enum { TARE_REFLECTORS_MOST = 8 };

/* Whether these functions are faster than LAPACK's for [m, n], and the squares of the elements, which are finite,
 * cannot overflow; nor does LAPACK have to scale such a matrix before iterations. */
bool tare_reflectors_fit(enum tare_lapack_type type, int m, int n, const void *a);

/* a [m, n] = Q·R: the upper triangle becomes R, what is below it the reflectors of Q = H(0)·H(1)…, with min(m, n)
 * factors tau. */
void tare_reflectors_qr(enum tare_lapack_type type, int m, int n, void *a, void *tau);
/* Replaces the `count` reflectors in a [m, columns] by the first columns of Q; count <= columns <= m. */
void tare_reflectors_form(enum tare_lapack_type type, int m, int columns, int count, void *a, const void *tau);

/* a [m, n] = Q·B·Pᴴ for m >= n: `diagonal` [n] and `off` [n - 1] of the upper bidiagonal B are real. a becomes the
 * reflectors of Q, for tare_reflectors_form with the n factors tau. vh [n, n] becomes Pᴴ; NULL: not requested. */
void tare_reflectors_bidiagonal(enum tare_lapack_type type, int m, int n, void *a, void *diagonal, void *off, void *tau,
                                void *vh);

/* a [n, n] = Q·H·Qᴴ with H of Hessenberg form in a, zeros included. Rows and columns outside low … high - 1 are
 * triangular already. q [n, n] becomes Q; NULL: not requested. */
void tare_reflectors_hessenberg(enum tare_lapack_type type, int n, int low, int high, void *a, void *q);

#endif
