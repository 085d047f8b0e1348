/* Batches of matrix products over strided arrays: the common core of MatMul, Einsum and XlaDotV2. */
#ifndef TARE_INTERPRETER_OPS_LINALG_PRODUCT_H
#define TARE_INTERPRETER_OPS_LINALG_PRODUCT_H

#include "interpreter/kernels/gemm.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/support/weights.h"

/* C[b] (m×n, dense, contiguous) = A[b] (m×k) · B[b] (k×n). Element (i, p) of A[b] is at a_first[b] + i * a_row + p *
 * a_column elements; B likewise, and its matrices are adjacent: b_first[b] is a multiple of k * n. The rows of A are
 * contiguous, or its columns, without gaps. */
struct tare_product {
    int dtype; /* of all three arrays: float, double, int64 (wraps), complex64, complex128 */
    int64_t batch, m, n, k;
    const void *a, *b;
    void *c;
    int64_t *a_first, *b_first;
    int64_t a_row, a_column, b_row, b_column;
    bool conjugate_a, conjugate_b;
    struct tare_pool *pool; /* of float products; NULL: one thread */
    const struct tare_gemm_epilogue
        *epilogue; /* applied to every matrix, without addend; NULL: none. Ignored by the reference product */
};

/* The first element of the input's matrix for each of the `batch` matrices of the output, whose leading dimensions the
 * input's are broadcast to. NULL: no memory. */
int64_t *tare_product_offsets(struct tare_arena *memory, int64_t batch, const struct tare_shape *output,
                              const struct tare_shape *input);
/* Sets offsets and steps for operands that are contiguous: A [batch, m, k] and B [batch, k, n]. */
tare_status tare_product_set_dense(struct tare_product *product, struct tare_arena *memory);
/* Reference product: one accumulation chain per element, element by element. */
void tare_product_plain(const struct tare_product *product);
/* Computes the same bits, with fast kernels for float. B is packed once and the packing is cached while `source`,
 * the tensor that B comes from, is unchanged (`weights` NULL: packed in each call); B must be derived from the
 * tensor in the same way in every call. */
tare_status tare_product_run(const struct tare_product *product, struct tare_weights *weights,
                             const struct tare_tensor *source, struct tare_arena *scratch);

/* The packed form of B that tare_product_run has cached, which then does not read `b`; NULL: none. */
const void *tare_product_packed(const struct tare_product *product, struct tare_weights *weights,
                                const struct tare_tensor *source);

/* A row's `prepare` and `release`: the state of its kernels is a struct tare_weights, owned by the node. */
tare_status tare_product_prepare(struct tare_kernel *kernel);
void tare_product_release(void *state);

/* The dtype in which products with an output of `dtype` are computed: float for the 16-bit dtypes, int64 for
 * integers. */
int tare_product_dtype(int dtype);
/* Returns the elements as `dtype` (float, double, int64, or the tensor's own): its own memory or a copy in scratch.
 * NULL: no memory. */
const void *tare_product_operand(struct tare_kernel *kernel, const struct tare_tensor *tensor, int dtype);
/* Returns the buffer in which to compute output i (already allocated) in tare_product_dtype, and the conversion that
 * stores it in the output. */
void *tare_product_room(struct tare_kernel *kernel, size_t i);
void tare_product_store(struct tare_kernel *kernel, size_t i, const void *values);

#endif
