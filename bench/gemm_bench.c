/* Measures the matrix product against OpenBLAS sgemm with one thread, in the same run and alternating, best of several.
 * Prints one line a size: GFLOP/s of both and the ratio. */
#include "base/alloc.h"
#include "base/clock.h"
#include "interpreter/kernels/gemm.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void openblas_set_num_threads(int threads);

static void fill(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * 2654435761u) % 1000) / 500.0f - 1.0f;
}

static void measure(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k) {
    float *a = tare_malloc_aligned((size_t)(m * k) * 4), *b = tare_malloc_aligned((size_t)(k * n) * 4);
    float *c = tare_malloc_aligned((size_t)(m * n) * 4), *c2 = tare_malloc_aligned((size_t)(m * n) * 4);
    float *packed = tare_malloc_aligned(tare_gemm_packed_floats(k, n) * 4);
    float *scratch = tare_malloc_aligned(tare_gemm_scratch_floats() * 4);
    if (!a || !b || !c || !c2 || !packed || !scratch) exit(1);
    fill(a, m * k);
    fill(b, k * n);
    tare_gemm_pack(packed, b, k, n, n, 1);
    const struct tare_gemm_rows rows = { .data = a, .stride = k };
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    const int repeats = (int)(4e8 / flops) + 1;
    double best = 1e9, best_blas = 1e9;
    for (int round = 0; round < 20; round++) {
        double start = tare_clock_seconds();
        for (int r = 0; r < repeats; r++)
            tare_gemm_at(level, c, n, &rows, packed, m, n, k, NULL, scratch);
        const double own = (tare_clock_seconds() - start) / repeats;
        start = tare_clock_seconds();
        for (int r = 0; r < repeats; r++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)n, 0,
                        c2, (int)n);
        const double blas = (tare_clock_seconds() - start) / repeats;
        if (own < best) best = own;
        if (blas < best_blas) best_blas = blas;
    }
    float worst = 0;
    for (int64_t i = 0; i < m * n; i++)
        worst = fmaxf(worst, fabsf(c[i] - c2[i]));
    printf("%-7s m=%-5lld n=%-5lld k=%-5lld own %7.1f GFLOP/s  openblas %7.1f  ratio %.2f  (max difference %g)\n",
           tare_cpu_level_name(level), (long long)m, (long long)n, (long long)k, flops / best * 1e-9,
           flops / best_blas * 1e-9, best_blas / best, (double)worst);
    tare_free(a), tare_free(b), tare_free(c), tare_free(c2), tare_free(packed), tare_free(scratch);
}

int main(void) {
    static const int64_t sizes[][3] = {
        { 196, 256, 1152 }, { 3136, 64, 64 },   { 1, 1000, 2048 },    { 49, 512, 4608 },  { 3136, 64, 576 },
        { 784, 512, 128 },  { 784, 128, 1152 }, { 49, 2048, 512 },    { 32, 1000, 2048 }, { 12544, 64, 147 },
        { 1, 128, 784 },    { 7, 100, 300 },    { 1024, 1024, 1024 },
    };
    openblas_set_num_threads(1);
    for (enum tare_cpu_level level = tare_cpu_level(); level >= TARE_CPU_AVX2; level--) {
        if (level == TARE_CPU_AVX_VNNI || !tare_cpu_has_level(level)) continue; /* the kernel of AVX2 */
        if (level == TARE_CPU_AVX512 && tare_cpu_level() > level) continue;     /* the same kernel as VNNI's */
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure(level, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
    return 0;
}
