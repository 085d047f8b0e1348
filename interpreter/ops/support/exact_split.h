/* Running an int8 convolution with packed weights, divided between the threads of a session. Each thread computes other
 * output lines, positions or output channels with the kernels that one thread uses. Sums are exact and each element of
 * the result is computed from its own sum, so the bits do not depend on the division; the range of a float result is
 * that of the parts' ranges. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_EXACT_SPLIT_H
#define TARE_INTERPRETER_OPS_SUPPORT_EXACT_SPLIT_H

#include "base/arena.h"
#include "base/thread.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/integer/conv_int.h"

enum tare_exact_kernel {
    TARE_EXACT_DENSE,  /* gathered patches: tare_conv_int_dense */
    TARE_EXACT_DIRECT, /* tare_conv_int_direct_at */
    TARE_EXACT_WINOGRAD,
    TARE_EXACT_WINOGRAD_VNNI,
    TARE_EXACT_DEPTHWISE,
    TARE_EXACT_PHASES, /* tare_conv_int_phases_at */
};

/* How a convolution is computed, which follows from its geometry and the operands' dtypes. */
struct tare_exact_choice {
    bool is_set;
    int lhs_dtype, rhs_dtype;
    enum tare_exact_kernel kernel;
    enum tare_igemm_form form;
    int64_t key;  /* of the packed weights, which depends on the kernel's form */
    bool pads;    /* a pad_value other than 0 is supported */
    int64_t sums; /* sums and bytes that the kernel needs for the whole convolution */
    size_t bytes;
};

struct tare_exact_run {
    const struct tare_exact_choice *choice;
    const struct tare_conv *conv;
    const void *input;  /* int16 if the form is halves, or pairs and the kernel is DENSE; otherwise int8 */
    const void *packed; /* in the form of the kernel */
    int32_t *output;    /* the sums; NULL with a consumer */
    struct tare_consumer *consumer;
    int64_t first; /* the consumer's element that is the first of the convolution; 0 without one */
};

/* Sets the sums and bytes of a choice whose kernel and form are set. */
void tare_exact_measure(struct tare_exact_choice *choice, const struct tare_conv *conv);
/* `threads`: NULL: one. The consumer gets elements in any order, but in one call at a time. TARE_NO_MEMORY. */
tare_status tare_exact_split(struct tare_pool *threads, struct tare_arena *scratch,
                             const struct tare_exact_run *run) TARE_WARN_UNUSED;

#endif
