#include "interpreter/ops/support/conv_tiling.h"

#include <string.h>

/* A band must stay in the second-level cache, beside the weights. */
enum { FLOATS_OF_BAND = 128 * 1024 };

struct stages {
    struct tare_strip strip;
    struct tare_gemm_finish finishes[TARE_STRIP_MOST];
    struct tare_shape shapes[TARE_STRIP_MOST]; /* of the outputs */
};

/* Stages of as many executions as go together. */
static void make_stages(struct stages *all, struct tare_kernel *kernels, size_t count) {
    struct tare_shape shape = kernels[0].inputs[0].shape;
    all->strip = (struct tare_strip){ .batch = shape.rank == 4 ? shape.dims[0] : 0 };
    if (kernels[0].inputs[0].dtype != TARE_DT_FLOAT || all->strip.batch < 1) return;
    for (size_t i = 0; i < count && i < TARE_STRIP_MOST; i++) {
        struct tare_strip_stage *stage = &all->strip.stages[i];
        const bool is_conv = (kernels[i].op->flags & TARE_OP_FINISHES) != 0;
        if (!(is_conv ? tare_conv_stage(stage, &all->finishes[i], &kernels[i], &shape)
                      : tare_pad_stage(stage, &kernels[i], &shape)) ||
            !tare_strip_takes(stage)) {
            tare_error_clear(); /* run alone it says so again */
            return;
        }
        all->shapes[i] = shape;
        all->strip.n_stages++;
    }
}

static int64_t size_of(const struct tare_shape *shape) {
    return shape->dims[1] * shape->dims[2] * shape->dims[3];
}

/* A strip ends at a narrow place, so that nothing large has to go through memory. */
static bool may_end(const struct stages *all, int n, int most) {
    if (n == most) return true;
    const int64_t here = size_of(&all->shapes[n - 1]);
    return here <= size_of(&all->shapes[n - 2]) && here <= size_of(&all->shapes[n]);
}

static bool choose_end(struct stages *all) {
    const int most = all->strip.n_stages;
    for (int n = most; n >= 2; n--) {
        all->strip.n_stages = n;
        if (may_end(all, n, most) && tare_strip_plan(&all->strip, FLOATS_OF_BAND)) return true;
    }
    return false;
}

size_t tare_run_strip(struct tare_kernel *kernels, size_t count) {
    struct stages all;
    make_stages(&all, kernels, count);
    if (!choose_end(&all)) return 0;
    const int n = all.strip.n_stages;
    struct tare_kernel *last = &kernels[n - 1];
    const size_t floats = tare_strip_scratch(&all.strip);
    char *scratch = floats ? tare_arena_alloc(last->scratch, (floats + 16) * sizeof(float)) : NULL;
    if (scratch == NULL) return 0;
    scratch += (64 - (uintptr_t)scratch % 64) % 64;
    if (tare_kernel_output(last, 0, TARE_DT_FLOAT, &all.shapes[n - 1]) != TARE_OK) {
        tare_error_clear();
        return 0;
    }
    tare_strip_run(&all.strip, last->outputs[0].data, kernels[0].inputs[0].data, (float *)(void *)scratch);
    return (size_t)n;
}
