/* Batches of matrix products over arrays with strides: what MatMul, Einsum and XlaDotV2 come down to. */
#ifndef TARE_INTERPRETER_OPS_LINALG_PRODUCT_H
#define TARE_INTERPRETER_OPS_LINALG_PRODUCT_H

#include "interpreter/kernels/gemm.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/weights.h"

/* C[b] (m×n, dense, one after another) = A[b] (m×k) · B[b] (k×n). Element (i, p) of A[b] lies at
 * a_first[b] + i * a_row + p * a_column elements, B likewise. */
struct tare_product {
    int dtype; /* of all three arrays: float, double, int64 (wraps), complex64, complex128 */
    int64_t batch, m, n, k;
    const void *a, *b;
    void *c;
    const int64_t *a_first, *b_first;
    int64_t a_row, a_column, b_row, b_column;
    bool conjugate_a, conjugate_b;
    const struct tare_gemm_epilogue
        *epilogue; /* of every matrix, without addend; NULL: none. Not of the plain product */
};

/* One chain an element, one element after another. */
void tare_product_plain(const struct tare_product *product);
/* The same bits, fast for float. B is packed once while `source`, the tensor that it was made from, stays the same
 * (`weights` NULL: packed at each call); how B comes from the tensor must be the same at every call. */
tare_status tare_product_run(const struct tare_product *product, struct tare_weights *weights,
                             const struct tare_tensor *source, struct tare_arena *scratch);

/* The dtype that products with an output of `dtype` are computed in: float for the 16-bit ones, int64 for integers. */
int tare_product_dtype(int dtype);
/* The elements as `dtype` (float, double, int64, or the tensor's own): its own memory or a copy in scratch. NULL: no
 * memory. */
const void *tare_product_operand(struct tare_kernel *kernel, const struct tare_tensor *tensor, int dtype);
/* Where to compute output i, which was made, in tare_product_dtype; and its rounding or cutting into the output. */
void *tare_product_room(struct tare_kernel *kernel, size_t i);
void tare_product_store(struct tare_kernel *kernel, size_t i, const void *values);

#endif
