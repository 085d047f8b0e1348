#include "interpreter/ops/support/conv_tiling.h"

#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/ops/support/tiling_choice.h"
#include "interpreter/session.h"

#include <string.h>

struct stages {
    struct tare_tiling tiling;
    struct tare_gemm_epilogue epilogues[TARE_TILING_MAX_STAGES];
    struct tare_shape shapes[TARE_TILING_MAX_STAGES]; /* of the outputs */
};

bool tare_stage_epilogue(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                         const struct tare_shape *shape) {
    kernel->outputs[0] = (struct tare_tensor){ .dtype = kernel->node->output_dtypes[0], .shape = *shape };
    stage->epilogue = tare_take_epilogue(room, kernel);
    kernel->outputs[0] = (struct tare_tensor){ 0 };
    return !kernel->epilogue || kernel->epilogue->applied;
}

/* Bounds and the weights that they were computed from: the packed form and how often it was replaced. */
struct tare_kept_bounds {
    struct tare_tiling_bounds bounds;
    const float *weights;
    int changes;
};

/* With more weights the tests are a small part of the time. */
enum { MOST_WEIGHTS = 1 << 18 };

void tare_stage_bounds(struct tare_tiling_stage *stage, const struct tare_kernel *kernel,
                       const struct tare_weights *weights) {
    struct tare_kept_epilogue *kept = kernel->epilogue ? kernel->epilogue->kept : NULL;
    const struct tare_conv *conv = &stage->conv;
    if (!kept || !kept->made || !stage->epilogue->is_bounded || stage->weights != weights->packed) return;
    if (tare_conv_patch(conv) * conv->out_channels > MOST_WEIGHTS) return;
    if (!kept->bounds) kept->bounds = TARE_NEW(kept->arena, struct tare_kept_bounds);
    if (!kept->bounds) {
        tare_error_clear(); /* the sums are tested */
        return;
    }
    if (kept->bounds->weights != stage->weights || kept->bounds->changes != weights->changes)
        *kept->bounds =
            (struct tare_kept_bounds){ .bounds = tare_tiling_bounds_of(conv, stage->weights, stage->epilogue),
                                       .weights = stage->weights,
                                       .changes = weights->changes };
    stage->bounds = &kept->bounds->bounds;
}

struct tare_conv tare_stage_copying_conv(const struct tare_shape *shape) {
    return (struct tare_conv){ .batch = 1,
                               .in = { 1, shape->dims[1], shape->dims[2] },
                               .out = { 1, shape->dims[1], shape->dims[2] },
                               .kernel = { 1, 1, 1 },
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .in_channels = shape->dims[3],
                               .out_channels = shape->dims[3],
                               .groups = 1 };
}

/* The first stage of bfloat16 steps: copies lines to float. */
static void add_widening(struct stages *all, const struct tare_shape *shape) {
    struct tare_tiling_stage *stage = &all->tiling.stages[all->tiling.n_stages];
    *stage = (struct tare_tiling_stage){ .is_widening = true, .conv = tare_stage_copying_conv(shape) };
    all->shapes[all->tiling.n_stages++] = *shape;
}

/* Stages of as many executions as go together. */
static void make_stages(struct stages *all, struct tare_kernel *kernels, size_t count) {
    const int dtype = kernels[0].inputs[0].dtype;
    struct tare_shape shape = kernels[0].inputs[0].shape;
    all->tiling = (struct tare_tiling){ .batch = shape.rank == 4 ? shape.dims[0] : 0 };
    if ((dtype != TARE_DT_FLOAT && dtype != TARE_DT_BFLOAT16) || all->tiling.batch < 1) return;
    if (dtype == TARE_DT_BFLOAT16) add_widening(all, &shape);
    for (size_t i = 0; i < count && all->tiling.n_stages < TARE_TILING_MAX_STAGES; i++) {
        const int n = all->tiling.n_stages;
        struct tare_tiling_stage *stage = &all->tiling.stages[n];
        if (kernels[i].node->output_dtypes[0] != dtype ||
            !kernels[i].op->tiling_stage(stage, &all->epilogues[n], &kernels[i], &shape)) {
            tare_error_clear(); /* the op reports the error again when it runs alone */
            return;
        }
        all->shapes[n] = shape;
        all->tiling.n_stages++;
    }
}

/* True for a bfloat16 convolution alone whose lines the parts do not share equally: without tiling, its output channels
 * are divided. */
static bool is_uneven(const struct stages *all) {
    const struct tare_tiling *tiling = &all->tiling;
    const double most = 1.1;
    return tiling->n_stages == 2 && tiling->stages[0].is_widening && tiling->parts > 1 &&
           tare_split_imbalance(tiling->stages[1].conv.out[1], tiling->parts) > most;
}

size_t tare_run_tiled(struct tare_kernel *kernels, size_t count) {
    struct tare_pool *pool = tare_session_op_pool(kernels[0].session);
    struct stages all;
    make_stages(&all, kernels, count);
    if (!tare_tiling_choose(&all.tiling, pool, &kernels[0]) || is_uneven(&all)) return 0;
    const bool widens = all.tiling.stages[0].is_widening;
    const int n = all.tiling.n_stages, count_run = widens ? n - 1 : n;
    struct tare_kernel *last = &kernels[count_run - 1];
    const int dtype = widens ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT;
    if (tare_kernel_output(last, 0, dtype, &all.shapes[n - 1]) != TARE_OK) {
        tare_error_clear();
        return 0;
    }
    if (tare_split_tiling(pool, last->scratch, &all.tiling, last->outputs[0].data, kernels[0].inputs[0].data) !=
        TARE_OK) {
        tare_error_clear();
        tare_tensor_reset(&last->outputs[0]);
        return 0;
    }
    return (size_t)count_run;
}
