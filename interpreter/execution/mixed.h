/* Mixed tilings: an int8 pointwise convolution with float results, a function of these such as swish, a float depthwise
 * convolution, and the quantization of its results, as in models whose depthwise layers stay float. For some lines of
 * the image at a time, they run one after another, so that the floats between them stay in the second-level cache.
 * Zeros that a Pad puts around the floats become padding of the depthwise convolution, which skips them: of finite
 * weights, only the sign of a zero may differ, which a quantization drops, and the addition of a bias unless that is
 * -0. In dynamically quantized models the parameters of the quantization follow from the whole image: there, the result
 * is that of the depthwise convolution, and its range is collected. It is also the result where other steps use it,
 * such as a gate of each channel. Every line is computed once, by the same kernels, so that results do not change. Runs
 * on one thread; otherwise, and where shapes do not fit, the steps run one after another on whole images. */
#ifndef TARE_INTERPRETER_EXECUTION_MIXED_H
#define TARE_INTERPRETER_EXECUTION_MIXED_H

#include "interpreter/execution/step.h"

struct tare_mixed_steps {
    struct tare_step_group *product;
    struct tare_step_group *floats;    /* whose result the depthwise convolution reads: `product` or the next group */
    struct tare_step_group *quantizer; /* NULL: the result is that of the depthwise convolution */
    struct tare_step_range *range;     /* of that result; NULL: none */
    int pad;                           /* the step between the product and the depthwise convolution; -1: none */
    int depthwise;                     /* step */
    bool active;                       /* the present observer requests no value of them except the last */
    bool is_refused;                   /* the shapes do not fit, for an input of `shape` */
    struct tare_shape shape;
};

/* The last of the steps. */
int tare_mixed_last(const struct tare_plan *plan, const struct tare_mixed_steps *mixed);
/* Marks the padding, the depthwise step, its fusion and the sink of the quantizer in frame->computed. The marks are
 * removed in the place of that sink, or without quantizer in that of the last step of the range. With neither, those of
 * the fusion remain, as after the fusion's own run, and tare_mixed_pass removes the others in the place of the
 * depthwise step. */
void tare_mixed_mark(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_mixed_steps *mixed,
                     bool computed);
void tare_mixed_pass(struct tare_exec_frame *frame, const struct tare_mixed_steps *mixed);
/* Runs them in the place of the product's group: *done reports whether; then they are marked. */
tare_status tare_mixed_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           struct tare_mixed_steps *mixed, bool *done);

#endif
