#include "interpreter/ops/support/axes.h"

#include <string.h>

tare_status tare_axes_read(bool reduced[TARE_MAX_RANK], const struct tare_tensor *axes, int rank) {
    memset(reduced, 0, TARE_MAX_RANK * sizeof *reduced);
    if (axes->shape.rank > 1)
        return TARE_FAIL(TARE_SHAPE, "reduction_indices has rank %d (expected 0 or 1)", axes->shape.rank);
    for (int64_t i = 0; i < axes->elements; i++) {
        const int64_t axis = tare_tensor_get_i64(axes, i);
        if (axis < -rank || axis >= rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid reduction dimension (%lld for input with %d dimension(s)",
                             (long long)axis, rank);
        const int d = (int)(axis < 0 ? axis + rank : axis);
        if (reduced[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Invalid reduction arguments: Axes contains duplicate dimension: %d", d);
        reduced[d] = true;
    }
    return TARE_OK;
}

void tare_axes_shape(struct tare_shape *out, const struct tare_shape *in, const bool *reduced, bool keep_dims) {
    *out = tare_shape_scalar();
    for (int d = 0; d < in->rank; d++) {
        if (!reduced[d])
            out->dims[out->rank++] = in->dims[d];
        else if (keep_dims)
            out->dims[out->rank++] = 1;
    }
}

tare_status tare_axes_infer(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0], *axes = &infer->inputs[1];
    const bool keep_dims = tare_node_bool(infer->node, "keep_dims", false);
    bool reduced[TARE_MAX_RANK];
    if (input->rank < 0) return TARE_OK;
    if (infer->input_values[1]) {
        TARE_TRY(tare_axes_read(reduced, infer->input_values[1], input->rank));
        tare_axes_shape(&infer->outputs[0], input, reduced, keep_dims);
    } else if (keep_dims) {
        infer->outputs[0].rank = input->rank;
        for (int d = 0; d < input->rank; d++)
            infer->outputs[0].dims[d] = TARE_UNKNOWN_DIM;
    } else if (axes->rank == 0 || (axes->rank == 1 && axes->dims[0] >= 0)) {
        const int64_t count = axes->rank == 0 ? 1 : axes->dims[0];
        if (count > input->rank)
            return TARE_FAIL(TARE_SHAPE, "%lld axes of a tensor of rank %d", (long long)count, input->rank);
        infer->outputs[0].rank = input->rank - (int)count;
        for (int d = 0; d < infer->outputs[0].rank; d++)
            infer->outputs[0].dims[d] = TARE_UNKNOWN_DIM;
    }
    return TARE_OK;
}

void tare_axes_plan(struct tare_axes_plan *plan, const struct tare_shape *shape, const bool *reduced) {
    memset(plan, 0, sizeof *plan);
    for (int d = shape->rank; d-- > 0;) {
        if (shape->dims[d] == 1) continue;
        if (plan->runs > 0 && plan->reduced[plan->runs - 1] == reduced[d]) {
            plan->sizes[plan->runs - 1] *= shape->dims[d];
        } else {
            plan->sizes[plan->runs] = shape->dims[d];
            plan->reduced[plan->runs++] = reduced[d];
        }
    }
    if (plan->runs == 0) plan->sizes[plan->runs++] = 1;
    plan->inner = plan->sizes[0];
    plan->rows = 1;
    for (int r = 1; r < plan->runs; r++)
        plan->rows *= plan->sizes[r];
}

void tare_axes_next(struct tare_axes_walk *walk, const struct tare_axes_plan *plan) {
    int64_t step = plan->reduced[0] ? 1 : plan->inner;
    for (int r = 1; r < plan->runs; r++) {
        const int64_t own = plan->reduced[r] ? 0 : step;
        if (++walk->at[r] < plan->sizes[r]) {
            walk->output += own;
            return;
        }
        walk->at[r] = 0;
        walk->output -= own * (plan->sizes[r] - 1);
        if (!plan->reduced[r]) step *= plan->sizes[r];
    }
}

tare_status tare_axis_resolve(int *out, int64_t axis, int rank) {
    if (axis < -rank || axis >= rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected dimension in the range [%d, %d), but got %lld", -rank, rank,
                         (long long)axis);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TARE_OK;
}

struct tare_axis_split tare_axis_split(const struct tare_shape *shape, int axis) {
    struct tare_axis_split split = { 1, shape->dims[axis], 1 };
    for (int d = 0; d < shape->rank; d++) { /* nothing to visit, however large the other dimensions are */
        if (d < axis && shape->dims[d] == 0) return (struct tare_axis_split){ 0, split.size, 1 };
        if (d > axis && shape->dims[d] == 0) return (struct tare_axis_split){ 1, split.size, 0 };
    }
    for (int d = 0; d < axis; d++)
        split.outer *= shape->dims[d];
    for (int d = axis + 1; d < shape->rank; d++)
        split.inner *= shape->dims[d];
    return split;
}
