/* Tiled execution of consecutive convolutions: for one tile (some lines) of the last stage's output, each stage
 * computes only the lines that the next stage still needs. The intermediate arrays stay in the second-level cache and
 * are never materialised as a whole. Every line is computed exactly once, by the kernels of conv.h, so the result has
 * the same bits as running the stages one after another. This file does not depend on tensors or ops. */
#ifndef TARE_INTERPRETER_KERNELS_TILING_H
#define TARE_INTERPRETER_KERNELS_TILING_H

#include "interpreter/kernels/conv.h"

enum { TARE_TILING_MAX_STAGES = 12 };

/* Bounds of a convolution with a bounded epilogue: if its inputs are at most x in magnitude, the sums are at most
 * x * sum, and the results without the addend at most x * gain + offset. */
struct tare_tiling_bounds {
    float sum, gain, offset;
};

/* One stage. Its convolution is two-dimensional (depth 1), float, channels-last, with batch 1. */
struct tare_tiling_stage {
    struct tare_conv conv;
    bool is_padding;      /* copies lines and pads with zeros: conv.pad before, and after up to conv.out */
    bool is_widening;     /* only the first: converts lines from bfloat16 */
    const float *weights; /* packed; the filter of a depthwise one */
    const struct tare_gemm_epilogue *epilogue; /* NULL: none. The addend has the layout of the stage's whole output */
    const struct tare_tiling_bounds *bounds;   /* NULL: not known */
};

struct tare_tiling {
    struct tare_tiling_stage stages[TARE_TILING_MAX_STAGES];
    int n_stages;
    int64_t batch;
    /* If stage 0 is a widening, input and output are bfloat16, and the last stage is a convolution with an epilogue
     * that rounds (its `to` is set here). Otherwise both are float. */
    /* set by tare_tiling_plan */
    int64_t lines;  /* of the output at a time */
    int64_t images; /* at a time; more than 1 only with all lines */
    /* capacity, in lines, of the input buffer of stage i; 0 for the first stage */
    int64_t room[TARE_TILING_MAX_STAGES + 1];
    int64_t scratch; /* floats of scratch for the kernels */
    /* Output lines of each image are divided into so many parts, which different threads can run. At the boundary of
     * two parts, both compute the intermediate lines that both need. Set before planning; 0: 1. */
    int parts;
};

/* True when the stage is a convolution. */
static inline bool tare_tiling_computes(const struct tare_tiling_stage *stage) {
    return !stage->is_padding && !stage->is_widening;
}
/* True when the stage can be part of a tiling. */
bool tare_tiling_supports(const struct tare_tiling_stage *stage);
/* The bounds of a convolution of one group or a depthwise one, from its weights and the vectors of its epilogue. */
struct tare_tiling_bounds tare_tiling_bounds_of(const struct tare_conv *conv, const float *weights,
                                                const struct tare_gemm_epilogue *epilogue);
/* Chooses the largest tile whose buffers fit in `floats`, at least one line. False when tiling is not faster: there is
 * no intermediate array, or reading the weights repeatedly would cost more than tiling saves. */
bool tare_tiling_plan(struct tare_tiling *tiling, int64_t floats);
/* Lines [*first, *end) of a stage's input that its output lines [from, to) depend on. */
void tare_tiling_needed(const struct tare_conv *conv, int64_t from, int64_t to, int64_t *first, int64_t *end);
/* Floats of scratch that a planned tiling needs; 0 on overflow. */
size_t tare_tiling_scratch(const struct tare_tiling *tiling);
/* Runs one part of a planned tiling, with scratch of its own. */
void tare_tiling_run_part(const struct tare_tiling *tiling, void *output, const void *input, float *scratch, int part);
/* Runs all parts at a level, for tests and benchmarks; `scratch` should be aligned to 64 bytes. */
void tare_tiling_run_at(enum tare_cpu_level level, const struct tare_tiling *tiling, void *output, const void *input,
                        float *scratch);

#endif
