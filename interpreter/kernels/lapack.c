/* OpenBLAS's Fortran interface, loaded at run time. Each routine of LAPACK is described by its list of arguments, and
 * called through it. Workspace sizes come from the routines themselves (a query with size -1 returns the optimum as the
 * first element of `work`). */
#include "interpreter/kernels/lapack.h"

#include <dlfcn.h>
#include <float.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Names without the letter of the precision, and the arguments: members of the call (see `members`). Those with '+' are
 * arguments of complex types only, those with '-' of real types. */
static const struct routine {
    const char *name, *complex_name, *arguments;
} routines[TARE_LAPACK_ROUTINES] = {
    [TARE_LAPACK_POTRF] = { "potrf", "potrf", "uplo n a lda info" },
    [TARE_LAPACK_GETRF] = { "getrf", "getrf", "m n a lda pivots info" },
    [TARE_LAPACK_GETRS] = { "getrs", "getrs", "trans n k a lda pivots b ldb info" },
    [TARE_LAPACK_GTSV] = { "gtsv", "gtsv", "n k dl d du b ldb info" },
    [TARE_LAPACK_GEQRF] = { "geqrf", "geqrf", "m n a lda tau work lwork info" },
    [TARE_LAPACK_ORGQR] = { "orgqr", "ungqr", "m n k a lda tau work lwork info" },
    [TARE_LAPACK_GELSY] = { "gelsy", "gelsy", "m n k a lda b ldb order rcond rank work lwork +rwork info" },
    [TARE_LAPACK_GESDD] = { "gesdd", "gesdd", "job m n a lda s u lda v ldv work lwork +rwork iwork info" },
    [TARE_LAPACK_SYEVD] = { "syevd", "heevd", "job uplo n a lda s work lwork +rwork +lrwork iwork liwork info" },
    [TARE_LAPACK_GEEV] = { "geev", "geev", "left job n a lda w -wi vl lda v lda work lwork +rwork info" },
    [TARE_LAPACK_GEHRD] = { "gehrd", "gehrd", "n low high a lda tau work lwork info" },
    [TARE_LAPACK_SYTRD] = { "sytrd", "hetrd", "uplo n a lda s e tau work lwork info" },
    [TARE_LAPACK_GEES] = { "gees", "gees",
                           "job unsorted select n a lda rank w -wi v lda work lwork +rwork iwork info" },
    [TARE_LAPACK_TRSM] = { "trsm", "trsm", NULL },
    [TARE_LAPACK_GEMM] = { "gemm", "gemm", NULL },
    [TARE_LAPACK_SYRK] = { "syrk", "syrk", NULL },
    [TARE_LAPACK_AXPY] = { "axpy", "axpy", NULL },
    [TARE_LAPACK_SCAL] = { "scal", "scal", NULL },
    [TARE_LAPACK_BDSQR] = { "bdsqr", "bdsqr", NULL },
    [TARE_LAPACK_GEBAL] = { "gebal", "gebal", NULL },
    [TARE_LAPACK_GEBAK] = { "gebak", "gebak", NULL },
};

/* ---- the library ---- */

static struct {
    pthread_once_t once;
    tare_lapack_function *functions[TARE_LAPACK_ROUTINES][4];
    char error[256]; /* empty: loaded */
} lapack = { .once = PTHREAD_ONCE_INIT };

static void find_routines(void *library) {
    for (int r = 0; r < TARE_LAPACK_ROUTINES; r++)
        for (int type = 0; type < 4; type++) {
            char name[32];
            snprintf(name, sizeof name, "%c%s_", "sdcz"[type],
                     type >= TARE_LAPACK_C ? routines[r].complex_name : routines[r].name);
            *(void **)&lapack.functions[r][type] = dlsym(library, name);
            if (!lapack.functions[r][type] && !*lapack.error)
                snprintf(lapack.error, sizeof lapack.error, "libopenblas.so.0 does not contain %s", name);
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
    find_routines(library);
}

tare_status tare_lapack_open(void) {
    pthread_once(&lapack.once, load);
    if (!*lapack.error) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "linear algebra needs OpenBLAS: %s (install the package libopenblas0)",
                     lapack.error);
}

tare_lapack_function *tare_lapack_function_of(enum tare_lapack_routine routine, enum tare_lapack_type type) {
    return lapack.functions[routine][type];
}

/* ---- arguments ---- */

/* The members of a call that are arguments: the address of the member, or for arrays what the member points to. */
enum kind { OPTION, VALUE, ARRAY, WORKSPACE };
#define MEMBER(kind, member)                                                                                           \
    { #member, offsetof(struct tare_lapack_call, member), kind }
static const struct member {
    const char *name;
    size_t offset;
    enum kind kind;
} members[] = {
    MEMBER(VALUE, n),         MEMBER(ARRAY, a),          MEMBER(VALUE, lda),       MEMBER(VALUE, info),
    MEMBER(VALUE, m),         MEMBER(VALUE, k),          MEMBER(OPTION, uplo),     MEMBER(OPTION, job),
    MEMBER(OPTION, left),     MEMBER(OPTION, trans),     MEMBER(OPTION, unsorted), MEMBER(ARRAY, b),
    MEMBER(VALUE, ldb),       MEMBER(ARRAY, tau),        MEMBER(ARRAY, s),         MEMBER(ARRAY, e),
    MEMBER(ARRAY, u),         MEMBER(ARRAY, v),          MEMBER(VALUE, ldv),       MEMBER(ARRAY, vl),
    MEMBER(ARRAY, w),         MEMBER(ARRAY, wi),         MEMBER(ARRAY, dl),        MEMBER(ARRAY, d),
    MEMBER(ARRAY, du),        MEMBER(ARRAY, rcond),      MEMBER(ARRAY, pivots),    MEMBER(ARRAY, order),
    MEMBER(VALUE, rank),      MEMBER(VALUE, low),        MEMBER(VALUE, high),      MEMBER(WORKSPACE, work),
    MEMBER(VALUE, lwork),     MEMBER(VALUE, lrwork),     MEMBER(VALUE, liwork),    MEMBER(WORKSPACE, rwork),
    MEMBER(WORKSPACE, iwork), MEMBER(WORKSPACE, select),
};
#undef MEMBER

/* The next argument of the routine at *list that the type has, which is advanced; NULL at its end. */
static const struct member *next_argument(const char **list, enum tare_lapack_type type) {
    for (; **list; *list += strspn(*list, " ")) {
        const bool skipped = **list == (tare_lapack_is_complex(type) ? '-' : '+');
        const char *name = *list + (**list == '+' || **list == '-');
        const size_t length = strcspn(name, " ");
        *list = name + length;
        for (const struct member *member = members; !skipped; member++)
            if (strncmp(member->name, name, length) == 0 && !member->name[length]) {
                *list += strspn(*list, " ");
                return member;
            }
    }
    return NULL;
}

/* Stores the arguments, followed by the lengths of the character arguments. */
static void set_arguments(struct tare_lapack_call *c) {
    const char *list = routines[c->routine].arguments;
    const struct member *member;
    int count = 0, lengths = 0;
    while ((member = next_argument(&list, c->type))) {
        char *at = (char *)c + member->offset;
        c->arguments[count++] = member->kind < ARRAY ? at : *(char **)at;
        lengths += member->kind == OPTION;
        if (at == (char *)&c->dl) /* without its first element, which no row has */
            c->arguments[count - 1] = (char *)c->dl + tare_lapack_size(c->type);
    }
    for (; lengths > 0; lengths--)
        c->arguments[count++] = (const void *)(uintptr_t)1;
}

typedef const void *in;
typedef void *out;

/* More arguments are passed than most routines have. By the calling conventions of Linux, in which the caller removes
 * its arguments, they are ignored. */
static void invoke(struct tare_lapack_call *c) {
    const in *a = c->arguments;
    ((void (*)(in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in,
               in))lapack.functions[c->routine][c->type])(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                                          a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17]);
}

/* ---- arrays and workspace ---- */

struct tare_lapack_array tare_lapack_array(struct tare_lapack_call *c, const char *name) {
    const int m = c->m, n = c->n, least = m < n ? m : n, most = m < n ? n : m;
    const bool all = c->job == 'A', reduces = c->routine == TARE_LAPACK_GEHRD || c->routine == TARE_LAPACK_SYTRD;
    const int beside = n ? n - 1 : 0; /* elements next to the diagonal */
    const int factors = reduces ? beside : c->routine == TARE_LAPACK_ORGQR ? c->k : least;
    const struct {
        const char *name;
        struct tare_lapack_array array;
    } arrays[] = {
        { "a", { &c->a, 2, m, n, TARE_LAPACK_OF_TYPE } },
        { "b", { &c->b, 2, most, c->k, TARE_LAPACK_OF_TYPE } },
        { "tau", { &c->tau, 1, factors, 1, TARE_LAPACK_OF_TYPE } },
        { "s", { &c->s, 1, least, 1, TARE_LAPACK_OF_REALS } },
        { "e", { &c->e, 1, beside, 1, TARE_LAPACK_OF_REALS } },
        { "u", { &c->u, 2, m, all ? m : least, TARE_LAPACK_OF_TYPE } },
        { "v", { &c->v, 2, all ? n : least, n, TARE_LAPACK_OF_TYPE } },
        { "vl", { &c->vl, 2, n, n, TARE_LAPACK_OF_TYPE } },
        { "w", { &c->w, 1, n, 1, TARE_LAPACK_OF_TYPE } },
        { "wi", { &c->wi, 1, n, 1, TARE_LAPACK_OF_TYPE } },
        { "dl", { &c->dl, 1, n, 1, TARE_LAPACK_OF_TYPE } },
        { "d", { &c->d, 1, n, 1, TARE_LAPACK_OF_TYPE } },
        { "du", { &c->du, 1, n, 1, TARE_LAPACK_OF_TYPE } },
        { "rcond", { &c->rcond, 1, 1, 1, TARE_LAPACK_OF_REALS } },
        { "pivots", { &c->pivots, 1, least, 1, TARE_LAPACK_OF_INTS } },
        { "order", { &c->order, 1, c->routine == TARE_LAPACK_GELSY ? n : m, 1, TARE_LAPACK_OF_INTS } },
    };
    size_t i = 0;
    while (strcmp(arrays[i].name, name) != 0)
        i++;
    return arrays[i].array;
}

/* The optimum that a query stored in the first element, which may be rounded down in float. */
static int queried(bool narrow, const void *first) {
    const double size = narrow ? (double)*(const float *)first * (1 + FLT_EPSILON) : *(const double *)first;
    return size < 1 ? 1 : size < INT32_MAX ? (int)size : INT32_MAX;
}

/* Real elements that a routine of a complex type needs and does not report. */
static int64_t real_work_size(const struct tare_lapack_call *c) {
    const int64_t least = c->m < c->n ? c->m : c->n, most = c->m < c->n ? c->n : c->m;
    if (c->routine != TARE_LAPACK_GESDD) return 2 * (int64_t)c->n;
    const int64_t vectors = 5 * least * least + 5 * least, tall = 2 * most * least + 2 * least * least + least;
    return c->job == 'N' ? 7 * least : vectors > tall ? vectors : tall;
}

static void *new_array(struct tare_arena *memory, int64_t count, size_t size) {
    return tare_arena_calloc(memory, (size_t)count + TARE_LAPACK_SLACK, size);
}

static tare_status add_workspace(struct tare_lapack_call *c, struct tare_arena *memory) {
    const bool narrow = tare_lapack_real_size(c->type) == 4;
    double first[2] = { 0 }, first_real[2] = { 0 };
    int first_int[8] = { 0 };
    c->work = first, c->rwork = first_real, c->iwork = first_int;
    c->lwork = c->lrwork = c->liwork = -1;
    set_arguments(c);
    invoke(c);
    const int64_t reals = real_work_size(c), ints = 8 * (int64_t)c->n;
    if (reals > INT32_MAX || ints > INT32_MAX) return TARE_NO_MEMORY;
    c->lwork = queried(narrow, first);
    c->lrwork = queried(narrow, first_real);
    if (c->lrwork < reals) c->lrwork = (int)reals;
    c->liwork = first_int[0] > ints ? first_int[0] : (int)ints;
    c->work = new_array(memory, c->lwork, tare_lapack_size(c->type));
    c->rwork = new_array(memory, c->lrwork, tare_lapack_real_size(c->type));
    c->iwork = new_array(memory, c->liwork, sizeof(int));
    return c->work && c->rwork && c->iwork ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_lapack_prepare(struct tare_lapack_call *c, struct tare_arena *memory) {
    const char *list = routines[c->routine].arguments;
    const struct member *member;
    const int most = c->m < c->n ? c->n : c->m, v_rows = tare_lapack_array(c, "v").rows;
    c->lda = c->m ? c->m : 1, c->ldb = most ? most : 1, c->ldv = v_rows ? v_rows : 1;
    c->unsorted = 'N';
    while ((member = next_argument(&list, c->type))) {
        if (member->kind != ARRAY) continue;
        const struct tare_lapack_array array = tare_lapack_array(c, member->name);
        if (!*array.data)
            *array.data = new_array(memory, (int64_t)array.rows * array.columns, tare_lapack_size(c->type));
        if (!*array.data) return TARE_NO_MEMORY;
    }
    if (strstr(routines[c->routine].arguments, "lwork")) TARE_TRY(add_workspace(c, memory));
    set_arguments(c);
    return TARE_OK;
}

int tare_lapack_run(struct tare_lapack_call *c) {
    c->info = 0;
    invoke(c);
    return c->info;
}

/* ---- BLAS ---- */

#define CALL(r, type, parameters, ...) ((void(*) parameters)lapack.functions[r][type])(__VA_ARGS__)

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
    CALL(TARE_LAPACK_TRSM, type, (in, in, in, in, in, in, in, in, in, out, in, size_t, size_t, size_t, size_t), form,
         form + 1, form + 2, form + 3, &rows, &columns, factor_at(&one, type), a, &lda, b, &ldb, 1, 1, 1, 1);
}

void tare_lapack_gemm(enum tare_lapack_type type, const char *ops, int m, int n, int k, const void *a, int lda,
                      const void *b, int ldb, double sign, void *c, int ldc) {
    const struct factor alpha = factor_of(sign), beta = factor_of(sign < 0);
    CALL(TARE_LAPACK_GEMM, type, (in, in, in, in, in, in, in, in, in, in, in, out, in, size_t, size_t), ops, ops + 1,
         &m, &n, &k, factor_at(&alpha, type), a, &lda, b, &ldb, factor_at(&beta, type), c, &ldc, 1, 1);
}

void tare_lapack_syrk(enum tare_lapack_type type, const char *form, int n, int k, const void *a, int lda, void *c,
                      int ldc) {
    const struct factor one = factor_of(1);
    CALL(TARE_LAPACK_SYRK, type, (in, in, in, in, in, in, in, in, out, in, size_t, size_t), form, form + 1, &n, &k,
         factor_at(&one, type), a, &lda, factor_at(&one, type), c, &ldc, 1, 1);
}

void tare_lapack_axpy(enum tare_lapack_type type, int count, double factor, const void *x, void *y) {
    const struct factor alpha = factor_of(factor);
    const int step = 1;
    CALL(TARE_LAPACK_AXPY, type, (in, in, in, in, out, in), &count, factor_at(&alpha, type), x, &step, y, &step);
}

void tare_lapack_scal(enum tare_lapack_type type, int count, double factor, void *x) {
    const struct factor alpha = factor_of(factor);
    const int step = 1;
    CALL(TARE_LAPACK_SCAL, type, (in, in, out, in), &count, factor_at(&alpha, type), x, &step);
}
