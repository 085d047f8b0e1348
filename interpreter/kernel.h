/* The interface between the interpreter and op kernels: one execution of one node. */
#ifndef TARE_INTERPRETER_KERNEL_H
#define TARE_INTERPRETER_KERNEL_H

#include "graph/op.h"
#include "interpreter/inference/infer.h"

struct tare_session;
struct tare_kernel;
struct tare_requantize;

/* Operands of a batch normalization, after its input. */
enum tare_norm_operand { TARE_NORM_SCALE, TARE_NORM_OFFSET, TARE_NORM_MEAN, TARE_NORM_VARIANCE, TARE_NORM_OPERANDS };

struct tare_gemm_epilogue;
struct tare_pointwise; /* interpreter/kernels/simd/pointwise.h */

/* The vectors of an epilogue in the kernel's form, kept for later runs because its operands, except for the addend, are
 * constant. */
struct tare_kept_epilogue {
    struct tare_arena *arena;              /* of the vectors; NULL: they are not kept */
    const struct tare_gemm_epilogue *made; /* NULL until the first run */
    int64_t columns;                       /* of the output that it was made for */
    int rank;
    struct tare_kept_bounds *bounds; /* of a convolution that runs in tiles (ops/support/conv_tiling.h); NULL: none */
};

/* Epilogue fused into output 0, element by element: * scale and + bias of the last dimension, batch normalization,
 * + addend, ReLU clamp (x < 0 ? 0 : x, at most limit) or another activation. A kernel applies either all of it in its
 * own pass, bit for bit as the separate ops would, and sets `applied`, or none of it. */
struct tare_epilogue {
    const struct tare_tensor *scale, *bias, *addend;    /* NULL: none; of any dtype and shape: the kernel checks */
    const struct tare_tensor *norm[TARE_NORM_OPERANDS]; /* as `bias`; all or none */
    struct tare_tensor *addend_slot;                    /* the addend, if a kernel may move it out; else NULL */
    float epsilon;                                      /* of the normalization */
    bool relu;
    float limit;                             /* INFINITY: none */
    const struct tare_pointwise *activation; /* instead of the clamp, for float outputs; NULL: none */
    bool applied;
    struct tare_kept_epilogue *kept; /* NULL: the operands may change */
};

/* Takes the elements of output 0 block by block instead of the output tensor. A kernel of a row with
 * TARE_OP_PASSES_ROWS calls `begin` when it knows the shape. If the consumer accepts, the kernel calls `take` for all
 * elements in order and does not create the output. Values are int32 for an int32 output, and float before rounding to
 * the output's dtype for a floating-point one; the consumer may overwrite them. */
struct tare_consumer {
    tare_status (*begin)(struct tare_consumer *consumer, struct tare_kernel *kernel, const struct tare_shape *shape,
                         bool *accepted);
    void (*take)(struct tare_consumer *consumer, void *values, int64_t first, int64_t count);
    /* Takes the floats of a requantization that is passed on. */
    void (*take_floats)(struct tare_consumer *consumer, const float *floats, int64_t first, int64_t count);
    bool accepted;
    /* Set by `begin`: what a kernel may do with int32 sums instead of passing them to `take`; NULL: nothing. Element 0
     * of its result is element 0 of output 0. */
    const struct tare_requantize *requantize;
    /* Of the PadV2 or XlaPad that precedes the product, whose input the kernel gets instead of its output; NULL: none.
     * `paddings` is constant, with rows of those before and behind, and of an XlaPad those between elements, too. A
     * kernel that cannot pad returns TARE_OK without having called `begin` and without output. */
    const struct tare_tensor *paddings, *pad_value;
    /* Input 0 is int16, 256 h + l + 128 of the products of the same weights with int8 h and l, whose sums are 256 times
     * those of h plus those of l. A kernel whose rows the consumer refuses returns TARE_OK without output. */
    bool joins_halves;
};
/* Asks the kernel's consumer, if there is one; kernel->consumer->accepted is its answer. */
tare_status tare_kernel_begin_rows(struct tare_kernel *kernel, const struct tare_shape *shape) TARE_WARN_UNUSED;

/* One execution of one node. Inputs are borrowed; a kernel creates every output (tare_kernel_output …) or fails. Error
 * texts describe the value; the executor prefixes node and op. */
struct tare_kernel {
    const struct tare_node *node;
    const struct tare_op *op;
    size_t n_inputs;
    const struct tare_tensor *inputs; /* dtypes were checked against the definition */
    size_t n_outputs;
    struct tare_tensor *outputs; /* zeroed */
    struct tare_arena *scratch;  /* emptied after the node */
    struct tare_buffer_pool *pool;
    struct tare_session *session;
    void *state;                    /* set by the row's prepare; NULL if it has none */
    bool may_reuse_input0;          /* this is the last use of input 0 and its buffer is exclusive */
    struct tare_epilogue *epilogue; /* for rows with TARE_OP_EPILOGUE; NULL: none to apply */
    struct tare_consumer *consumer; /* for rows with TARE_OP_PASSES_ROWS; NULL: none */
    /* Tilings that begin with this kernel, of earlier runs (ops/support/tiling_choice.h); NULL: none are kept. */
    struct tare_kept_tiling **tilings;
};

/* Creates output i; numeric memory is uninitialised. */
tare_status tare_kernel_output(struct tare_kernel *kernel, size_t i, int dtype,
                               const struct tare_shape *shape) TARE_WARN_UNUSED;
/* Forwards input j to output i without a copy, or its elements with another shape. */
tare_status tare_kernel_forward(struct tare_kernel *kernel, size_t i, size_t j) TARE_WARN_UNUSED;
tare_status tare_kernel_forward_as(struct tare_kernel *kernel, size_t i, size_t j,
                                   const struct tare_shape *shape) TARE_WARN_UNUSED;
/* As tare_kernel_output with the dtype and shape of input 0; reuses its memory where that is allowed. */
tare_status tare_kernel_output_like0(struct tare_kernel *kernel, size_t i) TARE_WARN_UNUSED;

#endif
