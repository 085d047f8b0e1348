/* Products of one row with weights larger than the second-level cache: float weights against weights of 8 and 4 bits,
 * with int8 activations (static and dynamic models) and float ones (weight-only models). All alternate in one run, by
 * processor time, best of several. Prints one line a size and level: GB/s of float weights, and the speed of the others
 * relative to float. */
#include "base/alloc.h"
#include "base/clock.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/integer/gemv.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLOAT, INT8, INT4, FLOAT_INT8, FLOAT_INT4, N_KINDS, ROUNDS = 25 };

struct weights {
    int64_t n, k;
    void *packed[2]; /* by form */
    float *real;
};

static void *room(size_t size) {
    void *block = tare_malloc_aligned(size);
    if (!block) exit(1);
    return block;
}

static void begin(struct weights *w) {
    int8_t *bytes = room((size_t)(w->n * w->k));
    w->real = room(tare_gemm_packed_floats(w->k, w->n) * sizeof(float));
    for (int form = TARE_GEMV_BYTES; form <= TARE_GEMV_NIBBLES; form++) {
        for (int64_t i = 0; i < w->n * w->k; i++)
            bytes[i] = (int8_t)((int64_t)(i * 2654435761u >> 7) % (form == TARE_GEMV_NIBBLES ? 8 : 128));
        w->packed[form] = room(tare_gemv_packed_bytes((enum tare_gemv_form)form, w->k, w->n));
        tare_gemv_pack(w->packed[form], (enum tare_gemv_form)form, bytes, w->k, w->n);
    }
    tare_gemm_pack_int8(w->real, bytes, w->k, w->n, w->n, 1);
    tare_free(bytes);
}

static void run(const struct weights *w, enum tare_cpu_level level, int kind, const float *x, const int8_t *a, void *c,
                void *scratch) {
    const struct tare_gemm_rows rows = { .data = x, .stride = w->k };
    const enum tare_gemv_form form = kind == INT4 || kind == FLOAT_INT4 ? TARE_GEMV_NIBBLES : TARE_GEMV_BYTES;
    if (kind == FLOAT)
        tare_gemm_at(level, c, w->n, &rows, w->real, 1, w->n, w->k, NULL, scratch);
    else if (kind == INT8 || kind == INT4)
        tare_gemv_int_at(level, c, a, form, w->packed[form], 1, w->n, w->k, NULL, scratch);
    else
        tare_gemv_float_at(level, c, x, form, w->packed[form], 1, w->n, w->k, NULL);
}

static void measure(enum tare_cpu_level level, int64_t n, int64_t k) {
    struct weights w = { .n = n, .k = k };
    float *x = room((size_t)k * sizeof *x), *c = room((size_t)(n + 16) * sizeof *c);
    void *scratch = room(tare_gemm_scratch_floats() * sizeof(float) + tare_gemv_scratch_bytes(1, k));
    int8_t *a = room((size_t)k);
    double best[N_KINDS];
    begin(&w);
    for (int64_t i = 0; i < k; i++) {
        a[i] = (int8_t)(i * 37);
        x[i] = (float)a[i] * 0.01f;
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < N_KINDS; kind++) {
            run(&w, level, kind, x, a, c, scratch); /* the weights of the previous kind leave the cache */
            const double start = tare_clock_cpu_seconds();
            run(&w, level, kind, x, a, c, scratch);
            const double took = tare_clock_cpu_seconds() - start;
            if (round == 0 || took < best[kind]) best[kind] = took;
        }
    }
    printf("%-7s %5lld x %-5lld float %5.1f GB/s, speed over float: int8 %.2f, int4 %.2f, weight-only int8 %.2f, "
           "int4 %.2f\n",
           tare_cpu_level_name(level), (long long)k, (long long)n, (double)(n * k) * 4e-9 / best[FLOAT],
           best[FLOAT] / best[INT8], best[FLOAT] / best[INT4], best[FLOAT] / best[FLOAT_INT8],
           best[FLOAT] / best[FLOAT_INT4]);
    tare_free(x), tare_free(c), tare_free(scratch), tare_free(a), tare_free(w.real);
    tare_free(w.packed[0]), tare_free(w.packed[1]);
}

int main(void) {
    static const int64_t sizes[][2] = {
        { 2048, 1024 }, { 4096, 1024 }, { 4096, 4096 }, { 1000, 2048 }, { 16384, 4096 }
    };
    for (enum tare_cpu_level level = tare_cpu_level(); level >= TARE_CPU_AVX2; level--) {
        /* AVX-512 without VNNI has the int8 kernels of AVX2 and the float ones of VNNI */
        if (level == TARE_CPU_AVX512 || !tare_cpu_has_level(level)) continue;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure(level, sizes[i][0], sizes[i][1]);
    }
    return 0;
}
