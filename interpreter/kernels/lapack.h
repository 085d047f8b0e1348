/* Dense linear algebra by OpenBLAS (LAPACK and level-3 BLAS) in four precisions. The library is loaded by the first op
 * that needs it: linked into the program it would add 2 ms to every start. It runs on the calling thread only; calls
 * from several threads are independent.
 *
 * Matrices are in LAPACK's column-major order with the smallest leading dimension. A row-major matrix A is read as Aᵀ,
 * which the callers use to avoid transpositions where the mathematics permits it. Info results are LAPACK's: 0 is
 * success, a positive value a numerical failure of the routine (a zero pivot, no convergence). */
#ifndef TARE_INTERPRETER_KERNELS_LAPACK_H
#define TARE_INTERPRETER_KERNELS_LAPACK_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Elements to allocate after the end of each operand and work array: OpenBLAS kernels read whole vectors, up to four
 * elements past the last one (zgemv of 0.3.21 with AVX-512). What is read there does not enter the result. */
enum { TARE_LAPACK_SLACK = 8 };

/* Element type of a routine: float, double, float complex, double complex. */
enum tare_lapack_type { TARE_LAPACK_S, TARE_LAPACK_D, TARE_LAPACK_C, TARE_LAPACK_Z };

static inline bool tare_lapack_is_complex(enum tare_lapack_type type) {
    return type >= TARE_LAPACK_C;
}
/* Bytes of an element, and of its real component. */
static inline size_t tare_lapack_size(enum tare_lapack_type type) {
    return (size_t)(type == TARE_LAPACK_S ? 4 : type == TARE_LAPACK_Z ? 16 : 8);
}
static inline size_t tare_lapack_real_size(enum tare_lapack_type type) {
    return type == TARE_LAPACK_S || type == TARE_LAPACK_C ? 4 : 8;
}

/* Loads OpenBLAS once per process. TARE_UNSUPPORTED if the library cannot be loaded. Every other function requires a
 * successful call. */
tare_status tare_lapack_open(void);

/* Workspace of one routine for matrices of one size, allocated from an arena and used for a whole batch. */
struct tare_lapack_work {
    enum tare_lapack_type type;
    int m, n, k;
    char job;
    void *work, *real_work;
    int *int_work, size, real_size, int_size;
};

/* Factors the Hermitian a [n, n], of which one triangle is read: a = UᴴU (upper) or LLᴴ. The other triangle is left as
 * it is. Info > 0: not positive definite. */
int tare_lapack_potrf(enum tare_lapack_type type, bool upper, int n, void *a);
/* Factors a [n, n] = P·L·U in place; pivots[i] (from 1) is the row exchanged with row i. */
int tare_lapack_getrf(enum tare_lapack_type type, int n, void *a, int *pivots);
/* Solves op(a) x = b for b [n, columns] with the factors of getrf; op: 'N' none, 'T' transpose, 'C' adjoint. */
int tare_lapack_getrs(enum tare_lapack_type type, char op, int n, int columns, const void *lu, const int *pivots,
                      void *b);
/* Solves x op(a) = b for b [rows, n] with the triangular a [n, n]; b becomes x. */
void tare_lapack_trsm_right(enum tare_lapack_type type, bool upper, char op, int rows, int n, const void *a, void *b);
/* c [m, n] = a [m, k] · b [k, n]. */
void tare_lapack_gemm(enum tare_lapack_type type, int m, int n, int k, const void *a, const void *b, void *c);

/* a [m, n] = Q·R: the upper triangle of a becomes R, what is below it describes Q; tare_lapack_orgqr then replaces a
 * with the first `columns` columns of Q, [m, columns] (columns <= m). */
tare_status tare_lapack_qr_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, int columns,
                                struct tare_arena *memory);
int tare_lapack_geqrf(const struct tare_lapack_work *work, void *a, void *tau);
int tare_lapack_orgqr(const struct tare_lapack_work *work, void *a, const void *tau);

/* a [m, n] = U·diag(s)·Vᴴ, s descending and real; a is overwritten. job 'N': s only; 'S': u [m, min], vh [min, n];
 * 'A': u [m, m], vh [n, n]. Requires finite elements. */
tare_status tare_lapack_svd_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, char job,
                                 struct tare_arena *memory);
int tare_lapack_gesdd(const struct tare_lapack_work *work, void *a, void *s, void *u, void *vh);

/* Eigenvalues (real, ascending) of the Hermitian a [n, n], of which one triangle is read; job 'V': a becomes the
 * eigenvectors in columns. Requires finite elements. */
tare_status tare_lapack_eigh_open(struct tare_lapack_work *work, enum tare_lapack_type type, int n, char job,
                                  struct tare_arena *memory);
int tare_lapack_syevd(const struct tare_lapack_work *work, bool upper, void *a, void *values);

/* Eigenvalues of the general a [n, n], which is overwritten, and with job 'V' right eigenvectors of length one in the
 * columns of v. Complex types: values are complex and `imaginary` is unused. Real types: real and imaginary parts in
 * two arrays, and columns k, k + 1 of v are the real and imaginary part of the vectors of a conjugate pair. */
tare_status tare_lapack_eig_open(struct tare_lapack_work *work, enum tare_lapack_type type, int n, char job,
                                 struct tare_arena *memory);
int tare_lapack_geev(const struct tare_lapack_work *work, void *a, void *values, void *imaginary, void *v);

#endif
