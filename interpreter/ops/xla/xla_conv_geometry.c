#include "interpreter/ops/xla/xla_conv_geometry.h"
#include "interpreter/kernels/permute.h"
#include "interpreter/kernels/tiling.h"

#include <string.h>

void tare_xla_conv_geometry_reset(struct tare_xla_conv_geometry *geometry) {
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        tare_tensor_reset(&geometry->of_general.parameters[i]);
        tare_tensor_reset(&geometry->of_stage.parameters[i]);
    }
}

static tare_status vector_of(int64_t values[TARE_MOST_SPATIAL], const struct tare_tensor *tensor, int spatial,
                             const char *what) {
    if (tensor->elements != spatial || tensor->shape.rank != 1)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %d)", what, (long long)tensor->elements, spatial);
    for (int i = 0; i < spatial; i++)
        values[i] = tare_tensor_get_i64(tensor, i);
    return TARE_OK;
}

static tare_status conv_windows(struct tare_conv_windows *windows, const struct tare_node *node, int spatial,
                                const struct tare_tensor *const inputs[TARE_XLA_WINDOW_PARAMETERS]) {
    const struct tare_tensor *padding = inputs[1];
    TARE_TRY(vector_of(windows->stride, inputs[0], spatial, "window_strides"));
    TARE_TRY(vector_of(windows->lhs_dilation, inputs[2], spatial, "lhs_dilation"));
    TARE_TRY(vector_of(windows->rhs_dilation, inputs[3], spatial, "rhs_dilation"));
    if (padding->elements != 2 * spatial)
        return TARE_FAIL(TARE_SHAPE, "padding has %lld elements (expected %d)", (long long)padding->elements,
                         2 * spatial);
    for (int i = 0; i < 2 * spatial; i++)
        windows->pad[i / 2][i % 2] = tare_tensor_get_i64(padding, i);
    if (inputs[4]->elements != 1) return TARE_FAIL(TARE_SHAPE, "feature_group_count is not a scalar");
    windows->groups = tare_tensor_get_i64(inputs[4], 0);
    const int64_t batch_groups = tare_node_int(node, "batch_group_count", 1);
    if (batch_groups == 1) return TARE_OK;
    if (windows->groups != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "batch_group_count is %lld and feature_group_count is %lld (expected 1 "
                         "for one of them)",
                         (long long)batch_groups, (long long)windows->groups);
    windows->groups = batch_groups; /* of the operand that regroup returns */
    return TARE_OK;
}

tare_status tare_xla_conv_regroup_shape(struct tare_shape *shape, const struct tare_conv_dims *dims, int64_t groups) {
    int64_t *batch = &shape->dims[dims->input_batch], *channels = &shape->dims[dims->input_feature];
    if (groups < 1 || *batch % groups)
        return TARE_FAIL(TARE_SHAPE, "batch_group_count %lld does not divide the batch of %lld", (long long)groups,
                         (long long)*batch);
    if (*channels > INT32_MAX / groups) return TARE_FAIL(TARE_SHAPE, "%lld batch groups", (long long)groups);
    *batch /= groups;
    *channels *= groups;
    return TARE_OK;
}

static tare_status read_dims(struct tare_conv_dims *dims, const struct tare_node *node, int rank) {
    if (rank < 2 || rank > 5) return TARE_FAIL(TARE_SHAPE, "lhs has rank %d (expected 2 to 5)", rank);
    return tare_conv_dims_read(dims, node, "dimension_numbers", rank, TARE_CONV_XLA);
}

static tare_status set_conv(struct tare_general_conv *general, const struct tare_node *node,
                            const struct tare_conv_dims *dims, const struct tare_shape *lhs,
                            const struct tare_shape *rhs,
                            const struct tare_tensor *const inputs[TARE_XLA_WINDOW_PARAMETERS]) {
    struct tare_conv_windows windows;
    TARE_TRY(conv_windows(&windows, node, dims->spatial, inputs));
    return tare_general_conv_set(general, dims, &windows, lhs, rhs);
}

tare_status tare_xla_conv_geometry_dims(const struct tare_conv_dims **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel) {
    const int rank = kernel->inputs[0].shape.rank;
    *out = &geometry->dims;
    if (geometry->dims_rank != 0 && geometry->dims_rank == rank) return TARE_OK;
    geometry->dims_rank = 0;
    TARE_TRY(read_dims(&geometry->dims, kernel->node, rank));
    geometry->dims_rank = rank;
    return TARE_OK;
}

/* ---- keeping a geometry ---- */

/* Window parameter `i`; the padding is that of the preceding PadV2 if the convolution is asked to include it. */
static const struct tare_tensor *parameter_of(const struct tare_kernel *kernel, int i) {
    const bool joins = i == TARE_XLA_PADDING && kernel->consumer && kernel->consumer->paddings;
    return joins ? kernel->consumer->paddings : &kernel->inputs[i + 2];
}

/* Whether the geometry for an input of `lhs` is that of the last time; comparing addresses is enough for constants. */
static bool is_same_source(const struct tare_xla_conv_source *kept, const struct tare_kernel *kernel,
                           const struct tare_shape *lhs) {
    if (!kept->made || !tare_shape_equal(&kept->lhs, lhs) || !tare_shape_equal(&kept->rhs, &kernel->inputs[1].shape))
        return false;
    bool same = true;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        const struct tare_tensor *a = &kept->parameters[i], *b = parameter_of(kernel, i);
        same = same && a->data == b->data && a->dtype == b->dtype && a->elements == b->elements;
    }
    return same;
}

static void keep_source(struct tare_xla_conv_source *kept, const struct tare_kernel *kernel,
                        const struct tare_shape *lhs) {
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        if (!tare_edge_constant(kernel->node->inputs[i + 2])) return;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        tare_tensor_reset(&kept->parameters[i]);
        tare_tensor_share(&kept->parameters[i], parameter_of(kernel, i));
    }
    kept->lhs = *lhs;
    kept->rhs = kernel->inputs[1].shape;
    kept->made = true;
}

/* ---- an execution ---- */

static tare_status make_general(struct tare_xla_conv_geometry *geometry, const struct tare_kernel *kernel,
                                const struct tare_tensor *const windows[TARE_XLA_WINDOW_PARAMETERS]) {
    const struct tare_shape *lhs = &kernel->inputs[0].shape, *rhs = &kernel->inputs[1].shape;
    const struct tare_conv_dims *dims;
    geometry->of_general.made = geometry->choice.is_set = false;
    TARE_TRY(tare_xla_conv_geometry_dims(&dims, geometry, kernel));
    TARE_TRY(set_conv(&geometry->general, kernel->node, dims, lhs, rhs, windows));
    keep_source(&geometry->of_general, kernel, lhs);
    return TARE_OK;
}

tare_status tare_xla_conv_geometry_find(const struct tare_general_conv **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel) {
    const struct tare_tensor *windows[TARE_XLA_WINDOW_PARAMETERS];
    *out = &geometry->general;
    geometry->general.conv.pad_value = 0;
    if (is_same_source(&geometry->of_general, kernel, &kernel->inputs[0].shape)) return TARE_OK;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        windows[i] = &kernel->inputs[i + 2];
    return make_general(geometry, kernel, windows);
}

/* The windows of a convolution that includes the padding of the op before it. */
struct joined {
    int64_t amounts[2 * TARE_MOST_SPATIAL], steps[TARE_MOST_SPATIAL];
    struct tare_tensor padding, dilation;
};

/* The padding of the preceding op as the convolution's own. False if batch or channels are padded, or the convolution
 * pads or dilates its input as well. */
static bool join_padding(struct joined *joined, struct tare_xla_conv_geometry *geometry,
                         const struct tare_kernel *kernel) {
    const struct tare_tensor *outer = kernel->consumer->paddings, *own = &kernel->inputs[3];
    const int rank = kernel->inputs[0].shape.rank, spatial = rank - 2;
    const struct tare_conv_dims *dims;
    const int64_t each = outer->elements / rank; /* 2, or 3 with those between elements */
    if (rank < 3 || rank > 5 || own->elements != 2 * spatial || kernel->inputs[4].elements != spatial) return false;
    if (tare_xla_conv_geometry_dims(&dims, geometry, kernel) != TARE_OK) {
        tare_error_clear(); /* the convolution reports it */
        return false;
    }
    int64_t others = 0;
    for (int64_t side = 0; side < each; side++) {
        others |= tare_tensor_get_i64(outer, each * dims->input_batch + side);
        others |= tare_tensor_get_i64(outer, each * dims->input_feature + side);
    }
    for (int i = 0; i < spatial; i++) {
        for (int side = 0; side < 2; side++) {
            joined->amounts[2 * i + side] = tare_tensor_get_i64(outer, each * dims->input_spatial[i] + side);
            others |= tare_tensor_get_i64(own, 2 * i + side);
            if (joined->amounts[2 * i + side] < 0) return false;
        }
        joined->steps[i] = tare_tensor_get_i64(&kernel->inputs[4], i);
        if (each == 3) {
            others |= joined->steps[i] - 1;
            joined->steps[i] = 1 + tare_tensor_get_i64(outer, each * dims->input_spatial[i] + 2);
        }
    }
    joined->padding = (struct tare_tensor){ .dtype = TARE_DT_INT64,
                                            .shape = tare_shape_make(2, (int64_t)spatial, (int64_t)2),
                                            .elements = 2 * spatial,
                                            .data = joined->amounts };
    joined->dilation = (struct tare_tensor){ .dtype = TARE_DT_INT64,
                                             .shape = tare_shape_make(1, (int64_t)spatial),
                                             .elements = spatial,
                                             .data = joined->steps };
    return others == 0;
}

const struct tare_general_conv *tare_xla_conv_geometry_padded(struct tare_xla_conv_geometry *geometry,
                                                              const struct tare_kernel *kernel) {
    struct joined joined;
    if (!is_same_source(&geometry->of_general, kernel, &kernel->inputs[0].shape)) {
        const struct tare_tensor *const windows[] = { &kernel->inputs[2], &joined.padding, &joined.dilation,
                                                      &kernel->inputs[5], &kernel->inputs[6] };
        if (!join_padding(&joined, geometry, kernel)) return NULL;
        if (make_general(geometry, kernel, windows) != TARE_OK) {
            tare_error_clear(); /* reported when the steps run one by one */
            return NULL;
        }
    }
    geometry->general.conv.pad_value = (int8_t)tare_tensor_get_i64(kernel->consumer->pad_value, 0);
    return &geometry->general;
}

/* Infers batch and channels, which do not depend on the windows. */
static void infer_outer(struct tare_infer *infer, const struct tare_conv_dims *dims) {
    const struct tare_shape *lhs = &infer->inputs[0], *rhs = &infer->inputs[1];
    struct tare_shape *output = &infer->outputs[0];
    output->rank = dims->spatial + 2;
    for (int i = 0; i < output->rank; i++)
        output->dims[i] = TARE_UNKNOWN_DIM;
    const int64_t batch = lhs->dims[dims->input_batch], groups = tare_node_int(infer->node, "batch_group_count", 1);
    output->dims[dims->output_batch] = batch < 0 || groups < 1 ? TARE_UNKNOWN_DIM : batch / groups;
    if (rhs->rank == output->rank) output->dims[dims->output_feature] = rhs->dims[dims->kernel_output];
}

tare_status tare_xla_conv_infer(struct tare_infer *infer) {
    const struct tare_shape *lhs = &infer->inputs[0], *rhs = &infer->inputs[1];
    struct tare_shape known_lhs = *lhs;
    struct tare_general_conv general;
    struct tare_conv_dims dims;
    if (lhs->rank < 2) return TARE_OK;
    TARE_TRY(read_dims(&dims, infer->node, lhs->rank));
    infer_outer(infer, &dims);
    for (int i = 2; i < 7; i++) {
        if (!infer->input_values[i]) return TARE_OK;
    }
    if (!tare_shape_is_known(rhs) || lhs->dims[dims.input_feature] < 0) return TARE_OK;
    const int64_t groups = tare_node_int(infer->node, "batch_group_count", 1);
    for (int i = 0; i < lhs->rank; i++) /* unknown sizes count as 1, a batch as one of each group; the sizes that depend
                                           on them become unknown again */
        if (lhs->dims[i] < 0) known_lhs.dims[i] = i == dims.input_batch ? groups : 1;
    TARE_TRY(tare_xla_conv_regroup_shape(&known_lhs, &dims, groups));
    TARE_TRY(set_conv(&general, infer->node, &dims, &known_lhs, rhs, infer->input_values + 2));
    infer->outputs[0] = general.output;
    if (lhs->dims[dims.input_batch] < 0) infer->outputs[0].dims[dims.output_batch] = -1;
    for (int i = 0; i < dims.spatial; i++) {
        if (lhs->dims[dims.input_spatial[i]] < 0) infer->outputs[0].dims[dims.output_spatial[i]] = -1;
    }
    return TARE_OK;
}

/* ---- a stage ---- */

/* The input has another shape than input 0. */
static tare_status make_stage(struct tare_xla_conv_geometry *geometry, const struct tare_kernel *kernel,
                              const struct tare_shape *shape) {
    const struct tare_tensor *windows[TARE_XLA_WINDOW_PARAMETERS];
    struct tare_conv_dims dims;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        windows[i] = &kernel->inputs[i + 2];
    TARE_TRY(read_dims(&dims, kernel->node, shape->rank));
    TARE_TRY(set_conv(&geometry->stage, kernel->node, &dims, shape, &kernel->inputs[1].shape, windows));
    geometry->stage.conv.batch = 1;
    return TARE_OK;
}

const struct tare_general_conv *tare_xla_conv_geometry_of_stage(struct tare_xla_conv_geometry *geometry,
                                                                struct tare_kernel *kernel,
                                                                const struct tare_shape *shape) {
    const struct tare_general_conv *stage = &geometry->stage;
    if (is_same_source(&geometry->of_stage, kernel, shape)) return stage;
    geometry->of_stage.made = false;
    if (make_stage(geometry, kernel, shape) != TARE_OK || !tare_general_conv_is_stored(stage) ||
        !tare_permute_is_identity(stage->rank, stage->lhs_order) ||
        !tare_tiling_supports(&(struct tare_tiling_stage){ .conv = stage->conv }))
        return NULL;
    keep_source(&geometry->of_stage, kernel, shape);
    return stage;
}
