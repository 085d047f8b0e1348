/* Integer products and convolutions with exact int32 sums that wrap, for operands of any integer type: int8 weights are
 * packed once, wider operands use the fast kernels if their values are small, otherwise scalar loops. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_EXACT_H
#define TARE_INTERPRETER_OPS_SUPPORT_EXACT_H

#include "base/arena.h"
#include "base/thread.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/conv.h"
#include "interpreter/ops/support/exact_split.h"
#include "interpreter/ops/support/weights.h"

/* True for the dtypes that an operand may have: integers and quantized integers of at most 32 bits. */
bool tare_exact_dtype(int dtype);

/* In place of the dtype of the left operand: int16 numbers x = 256 h + l + 128, whose sums are those of the product of
 * h times 256 plus those of the product of l. The weights are int8. */
enum { TARE_EXACT_HALVES = -1 };

struct tare_exact {
    int lhs_dtype, rhs_dtype;
    const void *lhs, *rhs;            /* rhs may be NULL when its packed form is kept (tare_weights_find) */
    struct tare_weights *weights;     /* NULL: rhs is packed at each call */
    const struct tare_tensor *source; /* the tensor that rhs came from */
    struct tare_arena *scratch;
    struct tare_pool *threads;              /* among which the computation is divided; NULL: one thread */
    bool plain;                             /* the plain loops, for reference kernels */
    struct tare_consumer *consumer;         /* takes the sums instead of an output array; NULL: none */
    const struct tare_exact_choice *choice; /* for the same operation and dtypes; NULL: chosen at each call */
};

/* With a consumer, `output` is NULL.
 * output [batch][m][n] = lhs [batch][m][k] · rhs [batch][k][n] */
tare_status tare_exact_product(int32_t *output, const struct tare_exact *operands, int64_t batch, int64_t m, int64_t n,
                               int64_t k);
/* Sets `choice` unless it is set for these dtypes. Callers keep it as long as the convolution is the same, except for
 * its pad_value: choosing takes as long as a small layer's kernel. */
void tare_exact_choose(struct tare_exact_choice *choice, const struct tare_conv *conv, int lhs_dtype, int rhs_dtype);
/* The same for a product of at least one row, column and term. */
void tare_exact_choose_product(struct tare_exact_choice *choice, int64_t m, int64_t n, int64_t k, int lhs_dtype,
                               int rhs_dtype);
tare_status tare_exact_conv(int32_t *output, const struct tare_exact *operands, const struct tare_conv *conv);
/* The key under which the packed weights of a convolution are stored, which depends on the kernel's form, and that of
 * a product. */
int64_t tare_exact_key(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype);
int64_t tare_exact_product_key(int lhs_dtype, int rhs_dtype);

#endif
