/* Reductions of matrices by LAPACK that only custom calls of JAX use: to Hessenberg, tridiagonal and Schur form.
 * Matrices are column-major and square, with room for TARE_LAPACK_SLACK more elements. Each requires tare_lapack_open;
 * *info is LAPACK's; the status is TARE_UNSUPPORTED if the library lacks the routine.
 */
#ifndef TARE_INTERPRETER_KERNELS_LAPACK_REDUCTIONS_H
#define TARE_INTERPRETER_KERNELS_LAPACK_REDUCTIONS_H

#include "interpreter/kernels/lapack.h"

/* A square problem of size n; the workspace is allocated from the arena. */
struct tare_lapack_problem {
    enum tare_lapack_type type;
    int n;
    struct tare_arena *memory;
};

/* a = Q·H·Qᴴ: a becomes H, and below its first subdiagonal the reflectors of Q with factors tau [n - 1]. `low` and
 * `high` (from 1) bound the part that is not triangular yet. */
tare_status tare_lapack_gehrd(const struct tare_lapack_problem *p, int low, int high, void *a, void *tau, int *info);
/* The Hermitian a = Q·T·Qᴴ: diagonal [n] and off-diagonal [n - 1] of T are real; a contains them and the reflectors of
 * Q with factors tau [n - 1]. One triangle of a is used. */
tare_status tare_lapack_sytrd(const struct tare_lapack_problem *p, bool upper, void *a, void *diagonal, void *off,
                              void *tau, int *info);
/* a = Z·T·Zᴴ: a becomes the Schur form T, and with `vectors` `z` becomes Z. Eigenvalues as tare_lapack_geev's. */
tare_status tare_lapack_gees(const struct tare_lapack_problem *p, bool vectors, void *a, void *values, void *imaginary,
                             void *z, int *info);

#endif
