#include "interpreter/ops/support/conv_tiling.h"

#include "interpreter/ops/support/split.h"
#include "interpreter/session.h"

#include <string.h>

/* A tile must fit in the second-level cache together with the weights. */
enum { FLOATS_OF_TILE = 128 * 1024 };

struct stages {
    struct tare_tiling tiling;
    struct tare_gemm_epilogue epilogues[TARE_TILING_MAX_STAGES];
    struct tare_shape shapes[TARE_TILING_MAX_STAGES]; /* of the outputs */
};

/* Stages of as many executions as go together. */
static void make_stages(struct stages *all, struct tare_kernel *kernels, size_t count) {
    struct tare_shape shape = kernels[0].inputs[0].shape;
    all->tiling = (struct tare_tiling){ .batch = shape.rank == 4 ? shape.dims[0] : 0 };
    if (kernels[0].inputs[0].dtype != TARE_DT_FLOAT || all->tiling.batch < 1) return;
    for (size_t i = 0; i < count && i < TARE_TILING_MAX_STAGES; i++) {
        struct tare_tiling_stage *stage = &all->tiling.stages[i];
        const bool is_conv = (kernels[i].op->flags & TARE_OP_EPILOGUE) != 0;
        if (!(is_conv ? tare_conv_stage(stage, &all->epilogues[i], &kernels[i], &shape)
                      : tare_pad_stage(stage, &kernels[i], &shape)) ||
            !tare_tiling_supports(stage)) {
            tare_error_clear(); /* the op reports the error again when it runs alone */
            return;
        }
        all->shapes[i] = shape;
        all->tiling.n_stages++;
    }
}

static double work_of(const struct tare_tiling *tiling) {
    double work = 0;
    for (int i = 0; i < tiling->n_stages; i++) {
        const struct tare_conv *conv = &tiling->stages[i].conv;
        if (!tiling->stages[i].is_padding)
            work += (double)tare_conv_rows(conv) * (double)conv->out_channels * (double)tare_conv_patch(conv);
    }
    return work * (double)tiling->batch;
}

static int64_t size_of(const struct tare_shape *shape) {
    return shape->dims[1] * shape->dims[2] * shape->dims[3];
}

/* A tiling ends at a small tensor, so that the output written to memory is not large. */
static bool may_end(const struct stages *all, int n, int most) {
    if (n == most) return true;
    const int64_t here = size_of(&all->shapes[n - 1]);
    return here <= size_of(&all->shapes[n - 2]) && here <= size_of(&all->shapes[n]);
}

static bool choose_end(struct stages *all) {
    const int most = all->tiling.n_stages;
    for (int n = most; n >= 2; n--) {
        all->tiling.n_stages = n;
        if (may_end(all, n, most) && tare_tiling_plan(&all->tiling, FLOATS_OF_TILE)) return true;
    }
    return false;
}

size_t tare_run_tiled(struct tare_kernel *kernels, size_t count) {
    struct tare_pool *pool = tare_session_op_pool(kernels[0].session);
    struct stages all;
    make_stages(&all, kernels, count);
    all.tiling.parts = tare_split_parts(pool, work_of(&all.tiling));
    if (!choose_end(&all)) return 0;
    const int n = all.tiling.n_stages;
    struct tare_kernel *last = &kernels[n - 1];
    if (tare_kernel_output(last, 0, TARE_DT_FLOAT, &all.shapes[n - 1]) != TARE_OK) {
        tare_error_clear();
        return 0;
    }
    if (tare_split_tiling(pool, last->scratch, &all.tiling, last->outputs[0].data, kernels[0].inputs[0].data) !=
        TARE_OK) {
        tare_error_clear();
        tare_tensor_reset(&last->outputs[0]);
        return 0;
    }
    return (size_t)n;
}
