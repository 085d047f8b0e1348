/* Each routine is called twice: with size -1 it stores the optimal size of its workspace, then it runs. */
#include "interpreter/kernels/lapack_reductions.h"

typedef const void *in;
typedef void *out;
#define CALL(routine, parameters, ...) ((void(*) parameters)(routine))(__VA_ARGS__)

/* One of the two calls. */
struct pass {
    void *work;
    int size;
    void *reals; /* of complex types */
    int *ints;
};

static tare_status find(tare_lapack_routine **found, const char *stem, enum tare_lapack_type type) {
    *found = tare_lapack_find(stem, type);
    return *found ? TARE_OK : TARE_FAIL(TARE_UNSUPPORTED, "OpenBLAS does not contain the routine %s", stem);
}

/* The second pass from the first. */
static tare_status allocate(struct pass *pass, const struct tare_lapack_problem *p, const void *first) {
    const size_t real_count = 8 * (size_t)p->n + TARE_LAPACK_SLACK;
    pass->size = tare_lapack_queried(p->type, first);
    pass->work = tare_arena_calloc(p->memory, (size_t)pass->size + TARE_LAPACK_SLACK, tare_lapack_size(p->type));
    pass->reals = tare_arena_calloc(p->memory, real_count, sizeof(double));
    pass->ints = tare_arena_calloc(p->memory, (size_t)p->n + 1, sizeof *pass->ints);
    return pass->work && pass->reals && pass->ints ? TARE_OK : TARE_NO_MEMORY;
}

static int at_least_one(int n) {
    return n ? n : 1;
}

tare_status tare_lapack_gehrd(const struct tare_lapack_problem *p, int low, int high, void *a, void *tau, int *info) {
    double first[2] = { 0 };
    struct pass pass = { first, -1, NULL, NULL };
    tare_lapack_routine *routine;
    const int ld = at_least_one(p->n);
    TARE_TRY(find(&routine, "gehrd", p->type));
    for (int i = 0; i < 2; i++) {
        CALL(routine, (in, in, in, out, in, out, out, in, int *), &p->n, &low, &high, a, &ld, tau, pass.work,
             &pass.size, info);
        if (i == 0) TARE_TRY(allocate(&pass, p, first));
    }
    return TARE_OK;
}

tare_status tare_lapack_sytrd(const struct tare_lapack_problem *p, bool upper, void *a, void *diagonal, void *off,
                              void *tau, int *info) {
    double first[2] = { 0 };
    struct pass pass = { first, -1, NULL, NULL };
    tare_lapack_routine *routine;
    const int ld = at_least_one(p->n);
    TARE_TRY(find(&routine, tare_lapack_is_complex(p->type) ? "hetrd" : "sytrd", p->type));
    for (int i = 0; i < 2; i++) {
        CALL(routine, (in, in, out, in, out, out, out, out, in, int *, size_t), upper ? "U" : "L", &p->n, a, &ld,
             diagonal, off, tau, pass.work, &pass.size, info, 1);
        if (i == 0) TARE_TRY(allocate(&pass, p, first));
    }
    return TARE_OK;
}

tare_status tare_lapack_gees(const struct tare_lapack_problem *p, bool vectors, void *a, void *values, void *imaginary,
                             void *z, int *info) {
    double first[2] = { 0 }, first_real[2] = { 0 };
    int first_int = 0, selected = 0;
    struct pass pass = { first, -1, first_real, &first_int };
    tare_lapack_routine *routine;
    const int ld = at_least_one(p->n);
    const char *job = vectors ? "V" : "N";
    TARE_TRY(find(&routine, "gees", p->type));
    for (int i = 0; i < 2; i++) {
        if (tare_lapack_is_complex(p->type))
            CALL(routine, (in, in, in, in, out, in, out, out, out, in, out, in, out, out, int *, size_t, size_t), job,
                 "N", NULL, &p->n, a, &ld, &selected, values, z, &ld, pass.work, &pass.size, pass.reals, pass.ints,
                 info, 1, 1);
        else
            CALL(routine, (in, in, in, in, out, in, out, out, out, out, in, out, in, out, int *, size_t, size_t), job,
                 "N", NULL, &p->n, a, &ld, &selected, values, imaginary, z, &ld, pass.work, &pass.size, pass.ints, info,
                 1, 1);
        if (i == 0) TARE_TRY(allocate(&pass, p, first));
    }
    return TARE_OK;
}
