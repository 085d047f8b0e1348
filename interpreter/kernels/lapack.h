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
#include "interpreter/kernels/lapack_type.h"

#include <stdint.h>

/* Elements to allocate after the end of each operand and work array: OpenBLAS kernels read whole vectors, up to four
 * elements past the last one (zgemv of 0.3.21 with AVX-512). What is read there does not enter the result. */
enum { TARE_LAPACK_SLACK = 8 };

/* Loads OpenBLAS once per process. TARE_UNSUPPORTED if the library cannot be loaded. Every other function requires a
 * successful call. */
tare_status tare_lapack_open(void);

/* A routine of Fortran's interface without the letter of its precision: "gees". NULL if the library does not contain
 * it. For routines that are called rarely (lapack_reductions.c). */
typedef void tare_lapack_routine(void);
tare_lapack_routine *tare_lapack_find(const char *stem, enum tare_lapack_type type);
/* The optimal size of `work` that a workspace query stored in its first element. */
int tare_lapack_queried(enum tare_lapack_type type, const void *first);

/* Workspace of one routine for matrices of one size, allocated from an arena and used for a whole batch. */
struct tare_lapack_work {
    enum tare_lapack_type type;
    int m, n, k;
    char job, left;
    void *work, *real_work;
    int *int_work, size, real_size, int_size;
};

/* Factors the Hermitian a [n, n], of which one triangle is read: a = UᴴU (upper) or LLᴴ. The other triangle is left as
 * it is. Info > 0: not positive definite. */
int tare_lapack_potrf(enum tare_lapack_type type, bool upper, int n, void *a);
/* Factors a [m, n] = P·L·U in place; pivots[i] (from 1, min(m, n) of them) is the row exchanged with row i. */
int tare_lapack_getrf(enum tare_lapack_type type, int m, int n, void *a, int *pivots);
/* Solves op(a) x = b for b [n, columns] with the factors of getrf; op: 'N' none, 'T' transpose, 'C' adjoint. */
int tare_lapack_getrs(enum tare_lapack_type type, char op, int n, int columns, const void *lu, const int *pivots,
                      void *b);
/* Solves A x = b for b [n, columns] with the tridiagonal A: `below` and `above` have n - 1 elements. All four are
 * overwritten; b becomes x. */
int tare_lapack_gtsv(enum tare_lapack_type type, int n, int columns, void *below, void *diagonal, void *above, void *b);

/* Solves op(a) x = b or x op(a) = b for b [rows, columns] with a triangular a; b becomes x. `form` has the four
 * characters of BLAS: side of a ('L', 'R'), triangle ('U', 'L'), op ('N', 'T', 'C'), diagonal ('N', or 'U': ones). */
void tare_lapack_trsm(enum tare_lapack_type type, const char *form, int rows, int columns, const void *a, int lda,
                      void *b, int ldb);
/* c [m, n] = op(a) · op(b) for sign 1, c -= op(a) · op(b) for sign -1, with k terms; `ops` are the two ops. */
void tare_lapack_gemm(enum tare_lapack_type type, const char *ops, int m, int n, int k, const void *a, int lda,
                      const void *b, int ldb, double sign, void *c, int ldc);
/* c [n, n] += op(a) · op(a)ᵀ with k terms, one triangle of c; `form`: triangle ('U', 'L'), op ('N', 'T'). */
void tare_lapack_syrk(enum tare_lapack_type type, const char *form, int n, int k, const void *a, int lda, void *c,
                      int ldc);
/* y += factor · x, and x *= factor. */
void tare_lapack_axpy(enum tare_lapack_type type, int count, double factor, const void *x, void *y);
void tare_lapack_scal(enum tare_lapack_type type, int count, double factor, void *x);

/* a [m, n] = Q·R: the upper triangle of a becomes R, what is below it describes Q; tare_lapack_orgqr then replaces a
 * with the first `columns` columns of Q, [m, columns] (columns <= m). */
tare_status tare_lapack_qr_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, int columns,
                                struct tare_arena *memory);
int tare_lapack_geqrf(const struct tare_lapack_work *work, void *a, void *tau);
int tare_lapack_orgqr(const struct tare_lapack_work *work, void *a, const void *tau);

/* The x [n, columns] of least norm that minimizes |a x - b|, for a [m, n] of any rank: singular values below `smallest`
 * times the largest count as zero. b has max(m, n) rows and becomes x; a is overwritten. */
tare_status tare_lapack_gelsy_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, int columns,
                                   struct tare_arena *memory);
int tare_lapack_gelsy(const struct tare_lapack_work *work, void *a, void *b, double smallest);

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

/* Eigenvalues of the general a [n, n], which is overwritten, and eigenvectors of length one in columns: with `left` 'V'
 * the left ones in vl, with `job` 'V' the right ones in vr; 'N': the array is not used. Complex types: values are
 * complex and `imaginary` is unused. Real types: real and imaginary parts in two arrays, and columns k, k + 1 of vl and
 * vr are the real and imaginary part of the vectors of a conjugate pair. */
tare_status tare_lapack_eig_open(struct tare_lapack_work *work, enum tare_lapack_type type, int n, char left, char job,
                                 struct tare_arena *memory);
int tare_lapack_geev(const struct tare_lapack_work *work, void *a, void *values, void *imaginary, void *vl, void *vr);

#endif
