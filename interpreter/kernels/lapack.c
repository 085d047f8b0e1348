/* OpenBLAS's Fortran interface, loaded at run time. Routines are looked up by name for each precision; their arguments
 * are pointers, and the lengths of character arguments follow at the end (gfortran's convention). Workspace sizes come
 * from the routines themselves (a query with size -1 returns the optimum as the first element of `work`). */
#include "interpreter/kernels/lapack.h"

#include "interpreter/kernels/reflectors.h"
#include "interpreter/kernels/small_schur.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    POTRF,
    GETRF,
    GETRS,
    GTSV,
    TRSM,
    GEMM,
    SYRK,
    AXPY,
    SCAL,
    GEQRF,
    ORGQR,
    GELSY,
    GESDD,
    SYEVD,
    GEEV,
    BDSQR,
    GEBAL,
    LAHQR,
    TREVC,
    GEBAK,
    ROUTINES
};

/* Names without the letter of the precision; the second is that of the complex types. */
static const char *const names[ROUTINES][2] = {
    { "potrf", "potrf" }, { "getrf", "getrf" }, { "getrs", "getrs" }, { "gtsv", "gtsv" },   { "trsm", "trsm" },
    { "gemm", "gemm" },   { "syrk", "syrk" },   { "axpy", "axpy" },   { "scal", "scal" },   { "geqrf", "geqrf" },
    { "orgqr", "ungqr" }, { "gelsy", "gelsy" }, { "gesdd", "gesdd" }, { "syevd", "heevd" }, { "geev", "geev" },
    { "bdsqr", "bdsqr" }, { "gebal", "gebal" }, { "lahqr", "lahqr" }, { "trevc", "trevc" }, { "gebak", "gebak" },
};

static struct {
    pthread_once_t once;
    void *library;
    tare_lapack_routine *routines[ROUTINES][4];
    char error[256]; /* empty: loaded */
} lapack = { .once = PTHREAD_ONCE_INIT };

tare_lapack_routine *tare_lapack_find(const char *stem, enum tare_lapack_type type) {
    tare_lapack_routine *routine;
    char name[32];
    snprintf(name, sizeof name, "%c%s_", "sdcz"[type], stem);
    *(void **)&routine = dlsym(lapack.library, name);
    return routine;
}

static void find_routines(void) {
    for (int r = 0; r < ROUTINES; r++)
        for (int type = 0; type < 4; type++) {
            const char *stem = names[r][type >= TARE_LAPACK_C];
            lapack.routines[r][type] = tare_lapack_find(stem, (enum tare_lapack_type)type);
            if (!lapack.routines[r][type] && !*lapack.error)
                snprintf(lapack.error, sizeof lapack.error, "libopenblas.so.0 does not contain %c%s_", "sdcz"[type],
                         stem);
        }
}

static void load(void) {
    void (*set_threads)(int);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(lapack.error, sizeof lapack.error, "%s", why ? why : "libopenblas.so.0 cannot be loaded");
        return;
    }
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads) set_threads(1);
    lapack.library = library;
    find_routines();
}

tare_status tare_lapack_open(void) {
    pthread_once(&lapack.once, load);
    if (!*lapack.error) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "linear algebra needs OpenBLAS: %s (install the package libopenblas0)",
                     lapack.error);
}

/* Calls a routine through its signature without types: every argument is a pointer, then the string lengths. */
#define CALL(r, type, parameters, ...) ((void(*) parameters)lapack.routines[r][type])(__VA_ARGS__)
typedef const void *in;
typedef void *out;

/* ---- factors and solutions ---- */

int tare_lapack_potrf(enum tare_lapack_type type, bool upper, int n, void *a) {
    int info = 0;
    CALL(POTRF, type, (in, in, out, in, int *, size_t), upper ? "U" : "L", &n, a, &n, &info, 1);
    return info;
}

int tare_lapack_getrf(enum tare_lapack_type type, int m, int n, void *a, int *pivots) {
    const int ld = m ? m : 1;
    int info = 0;
    CALL(GETRF, type, (in, in, out, in, int *, int *), &m, &n, a, &ld, pivots, &info);
    return info;
}

int tare_lapack_getrs(enum tare_lapack_type type, char op, int n, int columns, const void *lu, const int *pivots,
                      void *b) {
    int info = 0;
    CALL(GETRS, type, (in, in, in, in, in, in, out, in, int *, size_t), &op, &n, &columns, lu, &n, pivots, b, &n, &info,
         1);
    return info;
}

int tare_lapack_gtsv(enum tare_lapack_type type, int n, int columns, void *below, void *diagonal, void *above,
                     void *b) {
    const int ld = n ? n : 1;
    int info = 0;
    CALL(GTSV, type, (in, in, out, out, out, out, in, int *), &n, &columns, below, diagonal, above, b, &ld, &info);
    return info;
}

/* ---- BLAS ---- */

/* A real factor as the routines of a type read it. */
struct factor {
    double wide[2];
    float narrow[2];
};
static struct factor factor_of(double value) {
    return (struct factor){ { value }, { (float)value } };
}
static const void *factor_at(const struct factor *factor, enum tare_lapack_type type) {
    return tare_lapack_real_size(type) == 4 ? (const void *)factor->narrow : factor->wide;
}

void tare_lapack_trsm(enum tare_lapack_type type, const char *form, int rows, int columns, const void *a, int lda,
                      void *b, int ldb) {
    const struct factor one = factor_of(1);
    CALL(TRSM, type, (in, in, in, in, in, in, in, in, in, out, in, size_t, size_t, size_t, size_t), form, form + 1,
         form + 2, form + 3, &rows, &columns, factor_at(&one, type), a, &lda, b, &ldb, 1, 1, 1, 1);
}

void tare_lapack_gemm(enum tare_lapack_type type, const char *ops, int m, int n, int k, const void *a, int lda,
                      const void *b, int ldb, double sign, void *c, int ldc) {
    const struct factor alpha = factor_of(sign), beta = factor_of(sign < 0);
    CALL(GEMM, type, (in, in, in, in, in, in, in, in, in, in, in, out, in, size_t, size_t), ops, ops + 1, &m, &n, &k,
         factor_at(&alpha, type), a, &lda, b, &ldb, factor_at(&beta, type), c, &ldc, 1, 1);
}

void tare_lapack_syrk(enum tare_lapack_type type, const char *form, int n, int k, const void *a, int lda, void *c,
                      int ldc) {
    const struct factor one = factor_of(1);
    CALL(SYRK, type, (in, in, in, in, in, in, in, in, out, in, size_t, size_t), form, form + 1, &n, &k,
         factor_at(&one, type), a, &lda, factor_at(&one, type), c, &ldc, 1, 1);
}

void tare_lapack_axpy(enum tare_lapack_type type, int count, double factor, const void *x, void *y) {
    const struct factor alpha = factor_of(factor);
    const int step = 1;
    CALL(AXPY, type, (in, in, in, in, out, in), &count, factor_at(&alpha, type), x, &step, y, &step);
}

void tare_lapack_scal(enum tare_lapack_type type, int count, double factor, void *x) {
    const struct factor alpha = factor_of(factor);
    const int step = 1;
    CALL(SCAL, type, (in, in, out, in), &count, factor_at(&alpha, type), x, &step);
}

/* ---- workspace ---- */

/* The optimum that a query stored in the first element, which may be rounded down in float. */
int tare_lapack_queried(enum tare_lapack_type type, const void *first) {
    const double size =
        tare_lapack_real_size(type) == 4 ? (double)*(const float *)first * (1 + FLT_EPSILON) : *(const double *)first;
    return size < 1 ? 1 : size < INT32_MAX ? (int)size : INT32_MAX;
}

static tare_status allocate(struct tare_lapack_work *work, struct tare_arena *memory) {
    work->work = tare_arena_calloc(memory, (size_t)work->size + TARE_LAPACK_SLACK, tare_lapack_size(work->type));
    work->real_work =
        tare_arena_calloc(memory, (size_t)work->real_size + TARE_LAPACK_SLACK, tare_lapack_real_size(work->type));
    work->int_work = tare_arena_calloc(memory, (size_t)work->int_size + 1, sizeof *work->int_work);
    return work->work && work->real_work && work->int_work ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- QR ---- */

static int run_geqrf(const struct tare_lapack_work *w, void *a, void *tau, void *work, int size) {
    int info = 0;
    CALL(GEQRF, w->type, (in, in, out, in, out, out, in, int *), &w->m, &w->n, a, &w->m, tau, work, &size, &info);
    return info;
}

static int run_orgqr(const struct tare_lapack_work *w, void *q, const void *tau, void *work, int size) {
    const int least = w->m < w->n ? w->m : w->n;
    int info = 0;
    CALL(ORGQR, w->type, (in, in, in, out, in, in, out, in, int *), &w->m, &w->k, &least, q, &w->m, tau, work, &size,
         &info);
    return info;
}

tare_status tare_lapack_qr_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, int columns,
                                struct tare_arena *memory) {
    double first[2] = { 0 };
    *work = (struct tare_lapack_work){ .type = type, .m = m, .n = n, .k = columns };
    run_geqrf(work, first, first, first, -1);
    const int factor = tare_lapack_queried(type, first);
    run_orgqr(work, first, first, first, -1);
    const int form = tare_lapack_queried(type, first);
    work->size = factor > form ? factor : form;
    return allocate(work, memory);
}

int tare_lapack_geqrf(const struct tare_lapack_work *work, void *a, void *tau) {
    if (tare_reflectors_fit(work->type, work->m, work->n, a)) {
        tare_reflectors_qr(work->type, work->m, work->n, a, tau);
        return 0;
    }
    return run_geqrf(work, a, tau, work->work, work->size);
}

int tare_lapack_orgqr(const struct tare_lapack_work *work, void *q, const void *tau) {
    if (tare_reflectors_fit(work->type, work->m, work->k, q)) {
        tare_reflectors_form(work->type, work->m, work->k, work->m < work->n ? work->m : work->n, q, tau);
        return 0;
    }
    return run_orgqr(work, q, tau, work->work, work->size);
}

/* ---- least squares ---- */

static int run_gelsy(const struct tare_lapack_work *w, void *a, void *b, double smallest, void *work, int size) {
    const struct factor limit = factor_of(smallest);
    const int rows = w->m > w->n ? w->m : w->n;
    int info = 0, rank = 0;
    if (tare_lapack_is_complex(w->type))
        CALL(GELSY, w->type, (in, in, in, out, in, out, in, out, in, out, out, in, out, int *), &w->m, &w->n, &w->k, a,
             &w->m, b, &rows, w->int_work, factor_at(&limit, w->type), &rank, work, &size, w->real_work, &info);
    else
        CALL(GELSY, w->type, (in, in, in, out, in, out, in, out, in, out, out, in, int *), &w->m, &w->n, &w->k, a,
             &w->m, b, &rows, w->int_work, factor_at(&limit, w->type), &rank, work, &size, &info);
    return info;
}

tare_status tare_lapack_gelsy_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, int columns,
                                   struct tare_arena *memory) {
    double first[2] = { 0 };
    *work = (struct tare_lapack_work){ .type = type, .m = m, .n = n, .k = columns, .int_size = n };
    if (n > INT32_MAX / 2) return TARE_NO_MEMORY;
    work->real_size = tare_lapack_is_complex(type) ? 2 * n : 0;
    run_gelsy(work, first, first, 0, first, -1);
    work->size = tare_lapack_queried(type, first);
    return allocate(work, memory);
}

int tare_lapack_gelsy(const struct tare_lapack_work *work, void *a, void *b, double smallest) {
    for (int i = 0; i < work->n; i++)
        work->int_work[i] = 0; /* columns may be exchanged */
    return run_gelsy(work, a, b, smallest, work->work, work->size);
}

/* ---- singular values ---- */

static int run_gesdd(const struct tare_lapack_work *w, void *a, void *s, void *u, void *vh, void *work, int size) {
    const int least = w->m < w->n ? w->m : w->n, vh_rows = w->job == 'A' ? w->n : least;
    int info = 0;
    if (tare_lapack_is_complex(w->type))
        CALL(GESDD, w->type, (in, in, in, out, in, out, out, in, out, in, out, in, out, out, int *, size_t), &w->job,
             &w->m, &w->n, a, &w->m, s, u, &w->m, vh, &vh_rows, work, &size, w->real_work, w->int_work, &info, 1);
    else
        CALL(GESDD, w->type, (in, in, in, out, in, out, out, in, out, in, out, in, out, int *, size_t), &w->job, &w->m,
             &w->n, a, &w->m, s, u, &w->m, vh, &vh_rows, work, &size, w->int_work, &info, 1);
    return info;
}

tare_status tare_lapack_svd_open(struct tare_lapack_work *work, enum tare_lapack_type type, int m, int n, char job,
                                 struct tare_arena *memory) {
    const int64_t least = m < n ? m : n, most = m < n ? n : m;
    const int64_t vectors = 5 * least * least + 5 * least, tall = 2 * most * least + 2 * least * least + least;
    const int64_t reals = !tare_lapack_is_complex(type) ? 0 : job == 'N' ? 7 * least : vectors > tall ? vectors : tall;
    double first[2] = { 0 }, first_real[2] = { 0 };
    int first_int[8] = { 0 };
    *work = (struct tare_lapack_work){ .type = type, .m = m, .n = n, .job = job, .int_size = (int)(8 * least) };
    if (reals > INT32_MAX || least > INT32_MAX / 8) return TARE_NO_MEMORY;
    work->real_size = (int)reals;
    work->real_work = first_real, work->int_work = first_int; /* queries may write to them */
    run_gesdd(work, first, first, first, first, first, -1);
    work->size = tare_lapack_queried(type, first);
    return allocate(work, memory);
}

/* The path of a small matrix, m >= n: reduction to a bidiagonal form, and its singular values by QR iterations. */
static int small_svd(const struct tare_lapack_work *w, void *a, void *s, void *u, void *vh) {
    const int vectors = w->job == 'N' ? 0 : w->n, rows = w->job == 'N' ? 0 : w->m, none = 0, one = 1;
    double off[TARE_REFLECTORS_MOST], tau[2 * TARE_REFLECTORS_MOST], work[4 * TARE_REFLECTORS_MOST], unused[2];
    int info = 0;
    tare_reflectors_bidiagonal(w->type, w->m, w->n, a, s, off, tau, vectors ? vh : NULL);
    if (vectors) {
        memcpy(u, a, (size_t)(w->m * w->n) * tare_lapack_size(w->type));
        tare_reflectors_form(w->type, w->m, w->job == 'A' ? w->m : w->n, w->n, u, tau);
    }
    CALL(BDSQR, w->type, (in, in, in, in, in, out, out, out, in, out, in, out, in, out, int *, size_t), "U", &w->n,
         &vectors, &rows, &none, s, off, vh, &w->n, u, &w->m, unused, &one, work, &info, 1);
    return info;
}

int tare_lapack_gesdd(const struct tare_lapack_work *work, void *a, void *s, void *u, void *vh) {
    if (work->m >= work->n && tare_reflectors_fit(work->type, work->m, work->n, a)) return small_svd(work, a, s, u, vh);
    return run_gesdd(work, a, s, u, vh, work->work, work->size);
}

/* ---- Hermitian eigenvalues ---- */

static int run_syevd(const struct tare_lapack_work *w, bool upper, void *a, void *values, void *work, int size,
                     void *real_work, int real_size, int *int_work, int int_size) {
    const char *triangle = upper ? "U" : "L";
    int info = 0;
    if (tare_lapack_is_complex(w->type))
        CALL(SYEVD, w->type, (in, in, in, out, in, out, out, in, out, in, out, in, int *, size_t, size_t), &w->job,
             triangle, &w->n, a, &w->n, values, work, &size, real_work, &real_size, int_work, &int_size, &info, 1, 1);
    else
        CALL(SYEVD, w->type, (in, in, in, out, in, out, out, in, out, in, int *, size_t, size_t), &w->job, triangle,
             &w->n, a, &w->n, values, work, &size, int_work, &int_size, &info, 1, 1);
    return info;
}

tare_status tare_lapack_eigh_open(struct tare_lapack_work *work, enum tare_lapack_type type, int n, char job,
                                  struct tare_arena *memory) {
    double first[2] = { 0 }, first_real[2] = { 0 };
    int first_int = 0;
    *work = (struct tare_lapack_work){ .type = type, .n = n, .job = job };
    run_syevd(work, false, first, first, first, -1, first_real, -1, &first_int, -1);
    work->size = tare_lapack_queried(type, first);
    work->real_size = tare_lapack_queried(type, first_real);
    work->int_size = first_int;
    return allocate(work, memory);
}

int tare_lapack_syevd(const struct tare_lapack_work *work, bool upper, void *a, void *values) {
    return run_syevd(work, upper, a, values, work->work, work->size, work->real_work, work->real_size, work->int_work,
                     work->int_size);
}

/* ---- general eigenvalues ---- */

static int run_geev(const struct tare_lapack_work *w, void *a, void *values, void *imaginary, void *vl, void *vr,
                    void *work, int size) {
    const int ld = w->n ? w->n : 1;
    int info = 0;
    if (tare_lapack_is_complex(w->type))
        CALL(GEEV, w->type, (in, in, in, out, in, out, out, in, out, in, out, in, out, int *, size_t, size_t), &w->left,
             &w->job, &w->n, a, &ld, values, vl, &ld, vr, &ld, work, &size, w->real_work, &info, 1, 1);
    else
        CALL(GEEV, w->type, (in, in, in, out, in, out, out, out, in, out, in, out, in, int *, size_t, size_t), &w->left,
             &w->job, &w->n, a, &ld, values, imaginary, vl, &ld, vr, &ld, work, &size, &info, 1, 1);
    return info;
}

tare_status tare_lapack_eig_open(struct tare_lapack_work *work, enum tare_lapack_type type, int n, char left, char job,
                                 struct tare_arena *memory) {
    double first[2] = { 0 }, first_real[2] = { 0 };
    *work = (struct tare_lapack_work){ .type = type, .n = n, .left = left, .job = job };
    if (n > INT32_MAX / 2) return TARE_NO_MEMORY;
    work->real_size = 2 * n;
    work->real_work = first_real; /* the query writes to it */
    run_geev(work, first, first, first, first, first, first, -1);
    work->size = tare_lapack_queried(type, first);
    return allocate(work, memory);
}

/* Real numbers of one of the two precisions, `step` apart. */
static double real_at(bool narrow, const void *x, int64_t i) {
    return narrow ? (double)((const float *)x)[i] : ((const double *)x)[i];
}
static void set_real(bool narrow, void *x, int64_t i, double value) {
    if (narrow)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

/* Scales a vector to length one; a complex one is also rotated so that its largest element is real, as geev does. Parts
 * are `step` apart; `im` NULL: real. */
static void normalize(bool narrow, int n, void *re, void *im, int step) {
    double largest = 0, sum = 0, most = 0, c = 1, s = 0;
    int pivot = 0;
    for (int k = 0; k < n * step; k += step) {
        largest = fmax(largest, fabs(real_at(narrow, re, k)));
        if (im) largest = fmax(largest, fabs(real_at(narrow, im, k)));
    }
    const double scale = 1 / largest; /* squares neither overflow nor underflow */
    for (int k = 0; k < n * step; k += step) {
        const double x = real_at(narrow, re, k) * scale, y = im ? real_at(narrow, im, k) * scale : 0;
        const double square = x * x + y * y;
        sum += square;
        if (im && square > most) most = square, c = x, s = y, pivot = k;
    }
    const double length = sqrt(im ? sum * most : sum); /* c and s are those of the largest element, times its length */
    for (int k = 0; k < n * step; k += step) {
        const double x = real_at(narrow, re, k) * scale, y = im ? real_at(narrow, im, k) * scale : 0;
        set_real(narrow, re, k, (x * c + y * s) / length);
        if (im) set_real(narrow, im, k, k == pivot ? 0 : (y * c - x * s) / length);
    }
}

static void normalize_columns(const struct tare_lapack_work *w, const void *imaginary, char *v) {
    const bool is_complex = tare_lapack_is_complex(w->type), narrow = tare_lapack_real_size(w->type) == 4;
    const size_t column = (size_t)w->n * tare_lapack_size(w->type);
    for (int j = 0; j < w->n; j++, v += column) {
        if (is_complex) {
            normalize(narrow, w->n, v, v + tare_lapack_real_size(w->type), 2);
        } else if (real_at(narrow, imaginary, j) == 0) {
            normalize(narrow, w->n, v, NULL, 1);
        } else { /* a conjugate pair */
            normalize(narrow, w->n, v, v + column, 1);
            j++, v += column;
        }
    }
}

/* Eigenvalues and, in v, vectors of a balanced matrix. Info > 0: no convergence. */
static int real_eig(const struct tare_lapack_work *w, int low, int high, void *a, void *values, void *imaginary,
                    void *v) {
    const int vectors = w->job == 'V', one = 1;
    const size_t size = tare_lapack_size(w->type);
    int info = 0, found;
    tare_reflectors_hessenberg(w->type, w->n, low - 1, high, a, vectors ? v : NULL);
    memset(imaginary, 0, (size_t)w->n * size);
    for (int i = 0; i < w->n; i++) /* those outside low … high are final */
        memcpy((char *)values + (size_t)i * size, (char *)a + (size_t)(i * w->n + i) * size, size);
    CALL(LAHQR, w->type, (in, in, in, in, in, out, in, out, out, in, in, out, in, int *), &vectors, &vectors, &w->n,
         &low, &high, a, &w->n, values, imaginary, &one, &w->n, v, &w->n, &info);
    if (vectors && !info)
        CALL(TREVC, w->type, (in, in, in, in, out, in, out, in, out, in, in, int *, out, int *, size_t, size_t), "R",
             "B", NULL, &w->n, a, &w->n, NULL, &one, v, &w->n, &w->n, &found, w->work, &info, 1, 1);
    return info;
}

/* The same of a complex matrix, computed in double. */
static int complex_eig(const struct tare_lapack_work *w, int low, int high, const void *a, void *values, void *v) {
    struct tare_number h[TARE_REFLECTORS_MOST * TARE_REFLECTORS_MOST], q[TARE_REFLECTORS_MOST * TARE_REFLECTORS_MOST];
    const bool narrow = tare_lapack_real_size(w->type) == 4, vectors = w->job == 'V';
    const int n = w->n;
    const struct tare_small_schur schur = { n, low - 1,           high, narrow ? (double)FLT_EPSILON / 16 : DBL_EPSILON,
                                            h, vectors ? q : NULL };
    for (int i = 0; i < n * n; i++)
        h[i] = (struct tare_number){ real_at(narrow, a, 2 * i), real_at(narrow, a, 2 * i + 1) };
    tare_reflectors_hessenberg(TARE_LAPACK_Z, n, low - 1, high, h, schur.q);
    if (!tare_small_schur(&schur)) return 1;
    for (int i = 0; i < n; i++) {
        set_real(narrow, values, 2 * i, h[i * n + i].re);
        set_real(narrow, values, 2 * i + 1, h[i * n + i].im);
    }
    if (vectors) tare_small_schur_vectors(&schur);
    for (int i = 0; vectors && i < n * n; i++) {
        set_real(narrow, v, 2 * i, q[i].re);
        set_real(narrow, v, 2 * i + 1, q[i].im);
    }
    return 0;
}

/* The path of a small matrix. Info other than 0: to be computed by geev. */
static int small_eig(const struct tare_lapack_work *w, void *a, void *values, void *imaginary, void *v) {
    double scale[TARE_REFLECTORS_MOST];
    int low, high, info = 0;
    CALL(GEBAL, w->type, (in, in, out, in, int *, int *, out, int *, size_t), "B", &w->n, a, &w->n, &low, &high, scale,
         &info, 1);
    if (!tare_reflectors_fit(w->type, w->n, w->n, a)) return 1; /* the balanced matrix */
    info = tare_lapack_is_complex(w->type) ? complex_eig(w, low, high, a, values, v)
                                           : real_eig(w, low, high, a, values, imaginary, v);
    if (info || w->job != 'V') return info;
    CALL(GEBAK, w->type, (in, in, in, in, in, in, in, out, in, int *, size_t, size_t), "B", "R", &w->n, &low, &high,
         scale, &w->n, v, &w->n, &info, 1, 1);
    normalize_columns(w, imaginary, v);
    return info;
}

int tare_lapack_geev(const struct tare_lapack_work *work, void *a, void *values, void *imaginary, void *vl, void *vr) {
    if (work->left != 'V' && tare_reflectors_fit(work->type, work->n, work->n, a)) {
        double copy[2 * TARE_REFLECTORS_MOST * TARE_REFLECTORS_MOST]; /* geev has further means to converge */
        const size_t bytes = (size_t)(work->n * work->n) * tare_lapack_size(work->type);
        memcpy(copy, a, bytes);
        if (small_eig(work, a, values, imaginary, vr) == 0) return 0;
        memcpy(a, copy, bytes);
    }
    return run_geev(work, a, values, imaginary, vl, vr, work->work, work->size);
}
