/* OpenBLAS's Fortran interface, loaded at run time. Workspace sizes come from the routines themselves (a query with
 * size -1 returns the optimum as the first element of `work`). */
#include "interpreter/kernels/lapack.h"
#include "base/format.h"

#include <complex.h>
#include <dlfcn.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Names without the letter of the precision, the arrays of a call (tare_lapack_next_name), and the name for complex
 * types where it is another one. */
static const struct routine {
    const char *name, *arrays;
    bool workspace; /* and the routine takes one */
    const char *complex_name;
} routines[TARE_LAPACK_ROUTINES] = {
    [TARE_LAPACK_POTRF] = { "potrf", "a", false, NULL },
    [TARE_LAPACK_GETRF] = { "getrf", "a pivots", false, NULL },
    [TARE_LAPACK_GTSV] = { "gtsv", "dl d du b", false, NULL },
    [TARE_LAPACK_GEQRF] = { "geqrf", "a tau", true, NULL },
    [TARE_LAPACK_ORGQR] = { "orgqr", "a tau", true, "ungqr" },
    [TARE_LAPACK_GELSY] = { "gelsy", "a b order rcond", true, NULL },
    [TARE_LAPACK_GESDD] = { "gesdd", "a s u v", true, NULL },
    [TARE_LAPACK_SYEVD] = { "syevd", "a s", true, "heevd" },
    [TARE_LAPACK_GEEV] = { "geev", "a w -wi vl v", true, NULL },
    [TARE_LAPACK_GEHRD] = { "gehrd", "a tau", true, NULL },
    [TARE_LAPACK_SYTRD] = { "sytrd", "a s e tau", true, "hetrd" },
    [TARE_LAPACK_GEES] = { "gees", "a w -wi v", true, NULL },
    [TARE_LAPACK_TRSM] = { "trsm", "a b", false, NULL },
    [TARE_LAPACK_GEMM] = { .name = "gemm" },
    [TARE_LAPACK_SYRK] = { .name = "syrk" },
    [TARE_LAPACK_SWAP] = { .name = "swap" },
};

/* ---- the library ---- */

static struct {
    pthread_once_t once;
    void (*functions[TARE_LAPACK_ROUTINES][TARE_DT_COMPLEX128 + 1])(void); /* by dtype */
    char error[256];                                                       /* empty: loaded */
    bool no_memory, one_by_one;                                            /* one_by_one: calls wait for each other */
    pthread_mutex_t turn;
} lapack = { .once = PTHREAD_ONCE_INIT, .turn = PTHREAD_MUTEX_INITIALIZER };

/* The library next to the program or module in a wheel, whose functions have a prefix, or the system's. */
static const struct {
    const char *file, *prefix;
} libraries[] = { { "libscipy_openblas.so", "scipy_" }, { "libopenblas.so.0", "" } };

static void find_routines(void *library, const char *prefix) {
    static const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_DOUBLE, TARE_DT_COMPLEX64, TARE_DT_COMPLEX128 };
    for (int r = 0; r < TARE_LAPACK_ROUTINES; r++)
        for (int i = 0; i < 4; i++) {
            const char *complex_name = i < 2 ? NULL : routines[r].complex_name;
            char name[32];
            snprintf(name, sizeof name, "%s%c%s_", prefix, "sdcz"[i], complex_name ? complex_name : routines[r].name);
            *(void **)&lapack.functions[r][dtypes[i]] = dlsym(library, name);
            if (!lapack.functions[r][dtypes[i]] && !*lapack.error)
                snprintf(lapack.error, sizeof lapack.error, "OpenBLAS does not contain %s", name);
        }
}

/* OpenBLAS asks forever for a buffer that it cannot get. It has one for each call that runs at the same time: under a
 * limit, calls run one after another, and two buffers must fit. */
enum { ROOM = 2 << 27 };

static bool is_limited(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static bool has_room(void) {
    void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, ROOM) == 0;
}

/* OpenBLAS starts a thread per further core that the loading thread may use, which waits actively for about 30 ms: it
 * may use one. */
static void *load_on_one_core(const char *file) {
    cpu_set_t all, one;
    void *library;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    const bool limited = pthread_getaffinity_np(pthread_self(), sizeof all, &all) == 0 &&
                         pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (limited) (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    return library;
}

/* Threads are ended, too, unless the host program has loaded the library before. */
static void load(void) {
    void *library = NULL, *loaded = NULL;
    void (*set_threads)(int);
    int (*end_threads)(void);
    const char *prefix = NULL;
    char name[48];
    lapack.one_by_one = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
    if (!has_room()) {
        lapack.no_memory = true;
        snprintf(lapack.error, sizeof lapack.error, "%d bytes of address space", ROOM);
        return;
    }
    for (size_t i = 0; !library && i < sizeof libraries / sizeof *libraries; i++) {
        loaded = dlopen(libraries[i].file, RTLD_NOW | RTLD_NOLOAD);
        library = load_on_one_core(libraries[i].file);
        prefix = libraries[i].prefix;
    }
    if (!library) {
        const char *why = tare_loader_error();
        snprintf(lapack.error, sizeof lapack.error, "%s", why ? why : "libopenblas.so.0 cannot be loaded");
        return;
    }
    snprintf(name, sizeof name, "%sopenblas_set_num_threads", prefix);
    *(void **)&set_threads = dlsym(library, name);
    *(void **)&end_threads = dlsym(library, "blas_thread_shutdown_");
    if (set_threads) set_threads(1);
    if (end_threads && !loaded) end_threads();
    find_routines(library, prefix);
}

tare_status tare_lapack_open(void) {
    pthread_once(&lapack.once, load);
    if (!*lapack.error) return TARE_OK;
    if (lapack.no_memory)
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory: linear algebra needs %s (ulimit -v)", lapack.error);
    return TARE_FAIL(TARE_UNSUPPORTED, "linear algebra needs OpenBLAS: %s (install the package libopenblas0)",
                     lapack.error);
}

/* ---- calls ---- */

static void begin_call(void) {
    if (lapack.one_by_one) pthread_mutex_lock(&lapack.turn);
}

static void end_call(void) {
    if (lapack.one_by_one) pthread_mutex_unlock(&lapack.turn);
}

/* A factor -1, 0 or 1 as the routines of a dtype read it. */
static const void *factor_of(int dtype, int value) {
    static const double wide[3][2] = { { -1 }, { 0 }, { 1 } };
    static const float narrow[3][2] = { { -1 }, { 0 }, { 1 } };
    return tare_lapack_real(dtype) == TARE_DT_FLOAT ? (const void *)narrow[value + 1] : wide[value + 1];
}

typedef const void *in; /* every parameter but the lengths of characters, which follow the others */
enum { MOST_ARGUMENTS = 17 };
typedef in arguments[MOST_ARGUMENTS];

static const char omitted; /* an argument that the routine of this dtype does not have */

/* Calls the routine with the arguments up to NULL; the lengths of the characters, 1, follow. Callers reserve and
 * release the room for arguments, so a function ignores those after its last one. */
static void invoke(const struct tare_lapack_call *c, const arguments list) {
    typedef void function(in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in);
    arguments a;
    size_t count = 0;
    for (size_t i = 0; i < MOST_ARGUMENTS && list[i]; i++)
        if (list[i] != &omitted) a[count++] = list[i];
    while (count < MOST_ARGUMENTS)
        a[count++] = (const void *)(uintptr_t)1;
    begin_call();
    ((function *)lapack.functions[c->routine][c->dtype])(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                                         a[10], a[11], a[12], a[13], a[14], a[15], a[16]);
    end_call();
}

/* The complex vectors whose parts geev stores in two columns for real types; `to` NULL: not requested. */
static void join_vectors(const struct tare_lapack_call *c, void *to, const void *parts) {
    const int64_t n = c->n;
    for (int64_t i = 0; to && i < n * n; i++) {
        const double sign = creal(tare_lapack_at(c->wi, c->dtype, i / n));
        const int64_t first = sign < 0 ? i - n : i;
        const double x = creal(tare_lapack_at(parts, c->dtype, first));
        const double y = sign == 0 ? 0 : creal(tare_lapack_at(parts, c->dtype, first + n));
        tare_lapack_set(to, tare_lapack_complex(c->dtype), i, __builtin_complex(x, sign < 0 ? -y : y));
    }
}

/* Computes W, V and VL, those that are not NULL, from the results of geev for a real dtype. */
static void join(const struct tare_lapack_call *c) {
    for (int64_t i = 0; c->joined_w && i < c->n; i++) {
        const double x = creal(tare_lapack_at(c->w, c->dtype, i)), y = creal(tare_lapack_at(c->wi, c->dtype, i));
        tare_lapack_set(c->joined_w, tare_lapack_complex(c->dtype), i, __builtin_complex(x, y));
    }
    join_vectors(c, c->joined_v, c->v);
    join_vectors(c, c->joined_vl, c->vl);
}

#define CASE(routine, ...)                                                                                             \
    case TARE_LAPACK_##routine:                                                                                        \
        invoke(c, (const arguments){ __VA_ARGS__ });                                                                   \
        break;

int tare_lapack_run(struct tare_lapack_call *c) {
    const bool is_complex = tare_dtype_is_complex(c->dtype);
    const void *rwork = is_complex ? c->rwork : &omitted, *lrwork = is_complex ? (const void *)&c->lrwork : &omitted;
    const void *wi = is_complex ? &omitted : c->wi;
    switch (c->routine) {
        CASE(POTRF, &c->uplo, &c->n, c->a, &c->lda, c->info)
        CASE(GETRF, &c->m, &c->n, c->a, &c->lda, c->pivots, c->info)
        /* dl without its first element, which no row has */
        CASE(GTSV, &c->n, &c->k, (char *)c->dl + tare_dtype_size(c->dtype), c->d, c->du, c->b, &c->ldb, c->info)
        CASE(GEQRF, &c->m, &c->n, c->a, &c->lda, c->tau, c->work, &c->lwork, c->info)
        CASE(ORGQR, &c->m, &c->n, &c->k, c->a, &c->lda, c->tau, c->work, &c->lwork, c->info)
        CASE(GEHRD, &c->n, &c->low, &c->high, c->a, &c->lda, c->tau, c->work, &c->lwork, c->info)
        CASE(SYTRD, &c->uplo, &c->n, c->a, &c->lda, c->s, c->e, c->tau, c->work, &c->lwork, c->info)
        CASE(GELSY, &c->m, &c->n, &c->k, c->a, &c->lda, c->b, &c->ldb, c->order, c->rcond, c->rank, c->work, &c->lwork,
             rwork, c->info)
        CASE(GESDD, &c->job, &c->m, &c->n, c->a, &c->lda, c->s, c->u, &c->lda, c->v, &c->ldv, c->work, &c->lwork, rwork,
             c->iwork, c->info)
        CASE(SYEVD, &c->job, &c->uplo, &c->n, c->a, &c->lda, c->s, c->work, &c->lwork, rwork, lrwork, c->iwork,
             &c->liwork, c->info)
        CASE(GEEV, &c->left, &c->job, &c->n, c->a, &c->lda, c->w, wi, c->vl, &c->lda, c->v, &c->lda, c->work, &c->lwork,
             rwork, c->info)
        /* all eigenvalues are selected */
        CASE(GEES, &c->job, "N", "", &c->n, c->a, &c->lda, c->rank, c->w, wi, c->v, &c->lda, c->work, &c->lwork, rwork,
             c->iwork, c->info)
        CASE(TRSM, &c->side, &c->uplo, &c->op, &c->diag, &c->rows, &c->k, factor_of(c->dtype, 1), c->a, &c->lda, c->b,
             &c->ldb)
    default:
        break;
    }
    if (c->routine == TARE_LAPACK_GEEV && !is_complex && c->lwork > 0) join(c);
    return *(const int *)c->info;
}

/* ---- arrays and workspace ---- */

struct tare_lapack_array tare_lapack_array(struct tare_lapack_call *c, const char *name) {
    const int m = c->m, n = c->n, least = m < n ? m : n;
    const bool all = c->job == 'A', reduces = c->routine == TARE_LAPACK_GEHRD || c->routine == TARE_LAPACK_SYTRD;
    const int own = c->dtype, real = tare_lapack_real(own), pair = tare_lapack_complex(own);
    const int beside = n ? n - 1 : 0; /* elements next to the diagonal */
    const int factors = reduces ? beside : c->routine == TARE_LAPACK_ORGQR ? c->k : least;
    const struct {
        const char *name;
        struct tare_lapack_array array;
    } arrays[] = {
        { "a", { &c->a, 2, m, n, own } },
        { "b", { &c->b, 2, c->rows, c->k, own } },
        { "tau", { &c->tau, 1, factors, 1, own } },
        { "s", { &c->s, 1, least, 1, real } },
        { "e", { &c->e, 1, beside, 1, real } },
        { "u", { &c->u, 2, m, all ? m : least, own } },
        { "v", { &c->v, 2, all ? n : least, n, own } },
        { "vl", { &c->vl, 2, n, n, own } },
        { "w", { &c->w, 1, n, 1, own } },
        { "wi", { &c->wi, 1, n, 1, own } },
        { "W", { &c->joined_w, 1, n, 1, pair } },
        { "V", { &c->joined_v, 2, n, n, pair } },
        { "VL", { &c->joined_vl, 2, n, n, pair } },
        { "dl", { &c->dl, 1, n, 1, own } },
        { "d", { &c->d, 1, n, 1, own } },
        { "du", { &c->du, 1, n, 1, own } },
        { "rcond", { &c->rcond, 1, 1, 1, real } },
        { "pivots", { &c->pivots, 1, least, 1, TARE_DT_INT32 } },
        { "info", { &c->info, 0, 1, 1, TARE_DT_INT32 } },
        { "rank", { &c->rank, 0, 1, 1, TARE_DT_INT32 } },
        { "order", { &c->order, 1, c->routine == TARE_LAPACK_GELSY ? n : m, 1, TARE_DT_INT32 } },
    };
    size_t i = 0;
    while (strcmp(arrays[i].name, name) != 0)
        i++;
    return arrays[i].array;
}

/* The optimum that a query stored in the first element, which may be rounded down in float. */
static int queried(const void *first, int dtype) {
    const double size = creal(tare_lapack_at(first, dtype, 0)) * (1 + FLT_EPSILON);
    return size < 1 ? 1 : size < INT32_MAX ? (int)size : INT32_MAX;
}

/* Real elements that a routine of a complex dtype needs and does not report. */
static int64_t real_work_size(const struct tare_lapack_call *c) {
    const int64_t least = c->m < c->n ? c->m : c->n, most = c->m < c->n ? c->n : c->m;
    if (c->routine != TARE_LAPACK_GESDD) return 2 * (int64_t)c->n;
    const int64_t vectors = 5 * least * least + 5 * least, tall = 2 * most * least + 2 * least * least + least;
    return c->job == 'N' ? 7 * least : vectors > tall ? vectors : tall;
}

void tare_lapack_set(void *x, int dtype, int64_t i, tare_complex value) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        ((float *)x)[i] = (float)creal(value);
        break;
    case TARE_DT_DOUBLE:
        ((double *)x)[i] = creal(value);
        break;
    case TARE_DT_COMPLEX64:
        ((_Complex float *)x)[i] = (_Complex float)value;
        break;
    default:
        ((tare_complex *)x)[i] = value;
        break;
    }
}

void *tare_lapack_new(struct tare_arena *memory, int dtype, int64_t count) {
    const size_t size = tare_dtype_size(dtype), slack = 8 * size;
    if ((size_t)count > (SIZE_MAX - slack) / size) return NULL;
    char *array = tare_arena_alloc(memory, (size_t)count * size + slack);
    if (array) memset(array + (size_t)count * size, 0, slack);
    return array;
}

bool tare_lapack_next_name(char name[8], const char **list, int dtype) {
    bool skipped;
    do {
        *list += strspn(*list, " ");
        skipped = **list == '-' && tare_dtype_is_complex(dtype);
        *list += **list == '-';
        const size_t length = strcspn(*list, " ");
        memcpy(name, *list, length);
        name[length] = 0;
        *list += length;
    } while (skipped);
    return *name;
}

static tare_status add_workspace(struct tare_lapack_call *c, struct tare_arena *memory) {
    const int real = tare_lapack_real(c->dtype);
    double first[2] = { 0 }, first_real[2] = { 0 };
    int first_int[8] = { 0 };
    c->work = first, c->rwork = first_real, c->iwork = first_int;
    c->lwork = c->lrwork = c->liwork = -1;
    tare_lapack_run(c);
    const int64_t reals = real_work_size(c), ints = 8 * (int64_t)c->n;
    if (reals > INT32_MAX || ints > INT32_MAX) return TARE_NO_MEMORY;
    c->lwork = queried(first, c->dtype);
    c->lrwork = queried(first_real, real);
    if (c->lrwork < reals) c->lrwork = (int)reals;
    c->liwork = first_int[0] > ints ? first_int[0] : (int)ints;
    c->work = tare_lapack_new(memory, c->dtype, c->lwork);
    c->rwork = tare_lapack_new(memory, real, c->lrwork);
    c->iwork = tare_lapack_new(memory, TARE_DT_INT32, c->liwork);
    return c->work && c->rwork && c->iwork ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_lapack_allocate(struct tare_lapack_call *c, const char *names, struct tare_arena *memory) {
    char name[8];
    while (tare_lapack_next_name(name, &names, c->dtype)) {
        const struct tare_lapack_array array = tare_lapack_array(c, name);
        if (*array.data) continue;
        /* gtsv of real types writes to the first column of b, even if there is none */
        const int64_t columns = array.columns ? array.columns : 1;
        *array.data = tare_lapack_new(memory, array.dtype, array.rows * columns);
        if (!*array.data) return TARE_NO_MEMORY;
        if (array.dtype == TARE_DT_INT32) memset(*array.data, 0, (size_t)array.rows * sizeof(int));
    }
    return TARE_OK;
}

tare_status tare_lapack_prepare(struct tare_lapack_call *c, struct tare_arena *memory) {
    const int v_rows = tare_lapack_array(c, "v").rows;
    c->lda = c->m ? c->m : 1, c->ldb = c->rows ? c->rows : 1, c->ldv = v_rows ? v_rows : 1;
    TARE_TRY(tare_lapack_allocate(c, routines[c->routine].arrays, memory));
    TARE_TRY(tare_lapack_allocate(c, "info rank", memory));
    if (tare_dtype_is_complex(c->dtype)) c->joined_w = c->w, c->joined_v = c->v, c->joined_vl = c->vl;
    return routines[c->routine].workspace ? add_workspace(c, memory) : TARE_OK;
}

/* ---- BLAS ---- */

#define IN5 in, in, in, in, in
#define CALL(r, dtype, parameters, ...)                                                                                \
    do {                                                                                                               \
        begin_call();                                                                                                  \
        ((void(*) parameters)lapack.functions[r][dtype])(__VA_ARGS__);                                                 \
        end_call();                                                                                                    \
    } while (0)

void tare_lapack_trsm(int dtype, const char *form, int rows, int columns, const void *a, int lda, void *b, int ldb) {
    CALL(TARE_LAPACK_TRSM, dtype, (IN5, IN5, in, size_t, size_t, size_t, size_t), form, form + 1, form + 2, form + 3,
         &rows, &columns, factor_of(dtype, 1), a, &lda, b, &ldb, 1, 1, 1, 1);
}

void tare_lapack_gemm(int dtype, const char *ops, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                      int sign, void *c, int ldc) {
    CALL(TARE_LAPACK_GEMM, dtype, (IN5, IN5, in, in, in, size_t, size_t), ops, ops + 1, &m, &n, &k,
         factor_of(dtype, sign), a, &lda, b, &ldb, factor_of(dtype, sign < 0), c, &ldc, 1, 1);
}

void tare_lapack_syrk(int dtype, const char *form, int n, int k, const void *a, int lda, void *c, int ldc) {
    CALL(TARE_LAPACK_SYRK, dtype, (IN5, IN5, size_t, size_t), form, form + 1, &n, &k, factor_of(dtype, 1), a, &lda,
         factor_of(dtype, 1), c, &ldc, 1, 1);
}

void tare_lapack_swap(int dtype, int count, void *x, void *y, int step) {
    CALL(TARE_LAPACK_SWAP, dtype, (IN5), &count, x, &step, y, &step);
}
