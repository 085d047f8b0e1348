/* Dense linear algebra by OpenBLAS (LAPACK and BLAS) in four precisions. The library is loaded by the first op that
 * needs it: linked into the program it would add 2 ms to every start. It runs on the calling thread only; calls from
 * several threads are independent.
 *
 * Matrices are in LAPACK's column-major order with the smallest leading dimension. A row-major matrix A is read as Aᵀ,
 * which the callers use to avoid transpositions where the mathematics permits it. Info results are LAPACK's: 0 is
 * success, a positive value a numerical failure of the routine (a zero pivot, no convergence). */
#ifndef TARE_INTERPRETER_KERNELS_LAPACK_H
#define TARE_INTERPRETER_KERNELS_LAPACK_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

typedef _Complex double tare_complex;

/* Elements are float, double, complex64 or complex128: the real dtype of one's precision, and the complex one. */
static inline int tare_lapack_real(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_COMPLEX64 ? TARE_DT_FLOAT : TARE_DT_DOUBLE;
}
static inline int tare_lapack_complex(int dtype) {
    return tare_lapack_real(dtype) == TARE_DT_FLOAT ? TARE_DT_COMPLEX64 : TARE_DT_COMPLEX128;
}
/* Element i of an array. Real ones have and store no imaginary part. */
static inline tare_complex tare_lapack_at(const void *x, int dtype, int64_t i) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        return (double)((const float *)x)[i];
    case TARE_DT_DOUBLE:
        return ((const double *)x)[i];
    case TARE_DT_COMPLEX64:
        return ((const _Complex float *)x)[i];
    default:
        return ((const tare_complex *)x)[i];
    }
}
void tare_lapack_set(void *x, int dtype, int64_t i, tare_complex value);

/* `count` elements for an operand or work array, and zeroed ones after them: OpenBLAS kernels read whole vectors, up to
 * four elements past the last one (zgemv of 0.3.21 with AVX-512). What is read there does not enter the result. NULL:
 * no memory. */
void *tare_lapack_new(struct tare_arena *memory, int dtype, int64_t count);

/* Loads OpenBLAS once per process. TARE_UNSUPPORTED if the library cannot be loaded. Every other function requires a
 * successful call. */
tare_status tare_lapack_open(void);

/* ---- LAPACK ---- */

enum tare_lapack_routine {
    TARE_LAPACK_POTRF, /* the triangle `uplo` of the Hermitian a = UᴴU ('U') or LLᴴ; info > 0: not positive definite */
    TARE_LAPACK_GETRF, /* a = P·L·U; pivots[i], from 1, is the row exchanged with row i */
    TARE_LAPACK_GTSV,  /* b = T⁻¹ b for the tridiagonal T (dl, d, du), which is overwritten */
    TARE_LAPACK_GEQRF, /* a = Q·R: the upper triangle becomes R, what is below it, with tau, describes Q */
    TARE_LAPACK_ORGQR, /* a = the first n columns of Q, from k factors tau (k <= n <= m) */
    TARE_LAPACK_GELSY, /* b = the x of least norm that minimizes |a x - b|; singular values below rcond times the
                          largest count as zero; `order` [n] is 0 before each call */
    TARE_LAPACK_GESDD, /* a = u·diag(s)·v, s descending; job 'N': s only, 'S': min(m, n) vectors, 'A': all */
    TARE_LAPACK_SYEVD, /* the Hermitian a, of which the triangle `uplo` is read, has the eigenvalues s, ascending; job
                          'V': a becomes the eigenvectors in columns */
    TARE_LAPACK_GEEV,  /* eigenvalues w (real types: w + i·wi) and eigenvectors of length one in columns: right ones v
                          for job 'V', left ones vl for `left` 'V'. Real types: columns j, j + 1 are the real and the
                          imaginary part of the vectors of a conjugate pair; W, V and VL are the complex numbers */
    TARE_LAPACK_GEHRD, /* a = Q·H·Qᴴ: a becomes H and, below its first subdiagonal, with tau, describes Q; `low` and
                          `high`, from 1, bound the part that is not triangular */
    TARE_LAPACK_SYTRD, /* the Hermitian a = Q·T·Qᴴ: diagonal s and off-diagonal e of T, Q in a and tau */
    TARE_LAPACK_GEES,  /* a = v·T·vᴴ: a becomes the Schur form T; job 'V': v is computed; eigenvalues as geev's */
    TARE_LAPACK_TRSM,  /* b = the x of op(a) x = b (`side` 'L') or x op(a) = b ('R') for b [rows, k]; a: triangle
                          `uplo`, `op` 'N', 'T' or 'C', diagonal `diag` 'N' or 'U' (ones) */

    /* Without a call: by functions of their own (below), or directly. */
    TARE_LAPACK_GEMM,
    TARE_LAPACK_SYRK,
    TARE_LAPACK_SWAP,
    TARE_LAPACK_ROUTINES
};

/* One routine, prepared for matrices of one size and run for each matrix of a batch. Members that are not arguments of
 * the routine are ignored. */
struct tare_lapack_call {
    enum tare_lapack_routine routine;
    int dtype;
    int m, n, k; /* rows and columns of a (the same for square ones); columns of b, or factors tau of orgqr */
    int rows;    /* of b: n, or for gelsy the larger one of m and n, which has m and then n rows in use */
    int low, high;
    char uplo, job, left, side, op, diag;
    /* Arrays; see tare_lapack_array. Those that are NULL are allocated. */
    void *a, *b, *tau, *s, *e, *u, *v, *vl, *w, *wi, *dl, *d, *du, *rcond, *pivots, *order;
    void *info, *rank; /* one int each */
    void *joined_w, *joined_v,
        *joined_vl;    /* W, V and VL: w, v and vl of complex types; NULL for real types: not requested */
    int lda, ldb, ldv; /* internal: leading dimensions and workspace */
    void *work, *rwork, *iwork;
    int lwork, lrwork, liwork;
};

/* An array of a call: where its pointer is, its size, and the dtype of its elements. Vectors (rank 1) have one column.
 */
struct tare_lapack_array {
    void **data;
    int rank, rows, columns, dtype;
};
/* The array with the name of its member in the call; W, V and VL are the complex ones of geev. Requires routine, dtype,
 * and for its size m, n, k, rows and job. */
struct tare_lapack_array tare_lapack_array(struct tare_lapack_call *call, const char *name);
/* The next name of a list such as "w -wi info"; *list advances. Names with '-' are skipped for complex
 * elements. False: none is left. */
bool tare_lapack_next_name(char name[8], const char **list, int dtype);
/* Allocates those of a list of arrays that are NULL; ints are 0. */
tare_status tare_lapack_allocate(struct tare_lapack_call *call, const char *names, struct tare_arena *memory);

/* Allocates the arrays of the routine and its workspace. */
tare_status tare_lapack_prepare(struct tare_lapack_call *call, struct tare_arena *memory);
/* Runs the routine on what the arrays contain. Returns info. */
int tare_lapack_run(struct tare_lapack_call *call);

/* ---- BLAS ---- */

/* Solves op(a) x = b or x op(a) = b for b [rows, columns] with a triangular a; b becomes x. `form` has the four
 * characters of BLAS: side of a ('L', 'R'), triangle ('U', 'L'), op ('N', 'T', 'C'), diagonal ('N', or 'U': ones). */
void tare_lapack_trsm(int dtype, const char *form, int rows, int columns, const void *a, int lda, void *b, int ldb);
/* c [m, n] = op(a) · op(b) for sign 1, c -= op(a) · op(b) for sign -1, with k terms; `ops` are the two ops. */
void tare_lapack_gemm(int dtype, const char *ops, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                      int sign, void *c, int ldc);
/* c [n, n] += op(a) · op(a)ᵀ with k terms, one triangle of c; `form`: triangle ('U', 'L'), op ('N', 'T'). */
void tare_lapack_syrk(int dtype, const char *form, int n, int k, const void *a, int lda, void *c, int ldc);
/* Exchanges x and y, whose `count` elements are `step` elements apart. */
void tare_lapack_swap(int dtype, int count, void *x, void *y, int step);

#endif
