/* Dividing one convolution or product between the threads of a session (tare_session_options.op_threads).
 *
 * Each thread computes other output lines, columns or matrices, with the kernels that one thread uses. An output
 * element is one chain in one thread (rule dot-fma-chain), so the bits do not depend on the number of threads. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_SPLIT_H
#define TARE_INTERPRETER_OPS_SUPPORT_SPLIT_H

#include "base/thread.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/tiling.h"

/* One product on one thread: `m` rows, as tare_gemm. */
struct tare_split_product {
    float *c;
    int64_t ldc;
    const struct tare_gemm_rows *rows;
    const float *packed;
    int64_t m, n, k;
    const struct tare_gemm_epilogue *epilogue; /* NULL: none */
};

/* Multiply-adds of a part below which another thread costs more than it saves, from the measured cost of a run of the
 * pool. */
double tare_split_least_work(struct tare_pool *pool);
/* The parts worth making of `units` units of equal work, at least 1; `work` is that of all. */
int tare_split_count(struct tare_pool *pool, double work, int64_t units);
/* Part `part` of `parts` of `units` units: [*first, *end). */
void tare_split_part(int64_t *first, int64_t *end, int64_t units, int part, int parts);
/* The longest of so many parts over the mean: 1 is perfect. */
double tare_split_imbalance(int64_t units, int parts);
/* Calls fn for each of `parts` parts, at most one for each thread of the pool, with its units [first, end). NULL: one
 * thread, for one part. */
typedef void tare_split_function(void *arg, int part, int64_t first, int64_t end);
tare_status tare_split_range(struct tare_pool *pool, int parts, int64_t units, tare_split_function *fn,
                             void *arg) TARE_WARN_UNUSED;
/* Runs a dense (packed weights) or depthwise (its filter) convolution. `pool`: NULL: one thread. TARE_NO_MEMORY. */
tare_status tare_split_conv(struct tare_pool *pool, struct tare_arena *scratch, float *output,
                            const struct tare_conv *conv, const float *input, const float *weights,
                            const struct tare_gemm_epilogue *epilogue) TARE_WARN_UNUSED;
/* Runs a product, divided by columns or, if A has more elements than B, by rows in memory. TARE_NO_MEMORY. */
tare_status tare_split_gemm(struct tare_pool *pool, struct tare_arena *scratch,
                            const struct tare_split_product *product) TARE_WARN_UNUSED;
/* Runs a planned tiling, divided by output lines of each image. TARE_NO_MEMORY. */
tare_status tare_split_tiling(struct tare_pool *pool, struct tare_arena *scratch, const struct tare_tiling *tiling,
                              void *output, const void *input) TARE_WARN_UNUSED;

#endif
