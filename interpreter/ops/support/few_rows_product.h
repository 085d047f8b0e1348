/* Int8 weights of products of few rows (interpreter/kernels/integer/gemv.h), packed once in a node's cache. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_GEMV_WEIGHTS_H
#define TARE_INTERPRETER_OPS_SUPPORT_GEMV_WEIGHTS_H

#include "base/thread.h"
#include "interpreter/kernels/integer/gemv.h"
#include "interpreter/ops/support/weights.h"

struct tare_few_rows {
    int64_t m, n, k;
    const int8_t *rhs; /* k rows of n columns; not read, and may be NULL, if the weights are packed already */
    enum tare_gemv_form form;
    const void *packed; /* NULL: the product is for other kernels */
};

/* Packs `rhs`, or finds it packed, and sets `form` and `packed`, if the kernels are for the product. Weights that are
 * packed under `other_key` stay so: their node has had products of more rows. */
tare_status tare_few_rows_pack(struct tare_few_rows *few, struct tare_weights *weights,
                               const struct tare_tensor *source, int64_t other_key, struct tare_arena *scratch);
/* True if tare_few_rows_pack would find the weights packed. */
bool tare_few_rows_is_packed(struct tare_weights *weights, const struct tare_tensor *source, int64_t m, int64_t n,
                             int64_t k);
/* The product with packed weights, its columns divided between threads (NULL: one): int32 sums of int8 rows, or floats
 * of float rows. TARE_NO_MEMORY. */
tare_status tare_few_rows_int(int32_t *c, const int8_t *a, const struct tare_few_rows *few, struct tare_pool *threads,
                              struct tare_arena *scratch) TARE_WARN_UNUSED;
tare_status tare_few_rows_float(float *c, const float *a, const struct tare_few_rows *few,
                                struct tare_pool *threads) TARE_WARN_UNUSED;

#endif
