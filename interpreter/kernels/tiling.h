/* Convolutions in a row, computed in bands of lines: a band of the last one's output, for which each stage makes just
 * the lines that the next one lacks. What lies between stays in the second-level cache and is never whole in memory.
 * Every line is computed once, by the kernels of conv.h, so that each element has the bits that it has when the stages
 * run one after the other. Nothing here knows tensors or ops. */
#ifndef TARE_INTERPRETER_KERNELS_TILING_H
#define TARE_INTERPRETER_KERNELS_TILING_H

#include "interpreter/kernels/conv.h"

enum { TARE_STRIP_MOST = 12 };

/* One stage. Its convolution is two-dimensional (depth 1), float, channels-last, with batch 1. */
struct tare_strip_stage {
    struct tare_conv conv;
    bool is_padding;      /* copies lines and puts zeros around them: conv.pad in front, and behind up to conv.out */
    const float *weights; /* packed; the filter of a depthwise one */
    const struct tare_gemm_finish *finish; /* NULL: none. An addend lies as the stage's whole output does */
};

struct tare_strip {
    struct tare_strip_stage stages[TARE_STRIP_MOST];
    int n_stages;
    int64_t batch;
    /* set by tare_strip_plan */
    int64_t lines;                     /* of the output at a time */
    int64_t images;                    /* at a time; more than 1 only with all lines */
    int64_t room[TARE_STRIP_MOST + 1]; /* lines that the buffer in front of stage i holds; 0 of the first stage */
    int64_t scratch;                   /* floats that the kernels want */
};

/* True for what a stage may be. */
bool tare_strip_takes(const struct tare_strip_stage *stage);
/* Chooses bands whose buffers hold at most `floats` in all, or of one line where even that is more. False where the
 * strip does not pay: nothing lies between, or the weights would be read so often that it costs more than it saves. */
bool tare_strip_plan(struct tare_strip *strip, int64_t floats);
/* Floats of scratch that a planned strip wants; 0 when that overflows. */
size_t tare_strip_scratch(const struct tare_strip *strip);
/* Runs a planned strip; `scratch` should be aligned to 64 bytes. */
void tare_strip_run(const struct tare_strip *strip, float *output, const float *input, float *scratch);
/* As tare_strip_run at a level, for tests and benchmarks. */
void tare_strip_run_at(enum tare_cpu_level level, const struct tare_strip *strip, float *output, const float *input,
                       float *scratch);

#endif
