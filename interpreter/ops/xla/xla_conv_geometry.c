#include "interpreter/ops/xla/xla_conv_geometry.h"
#include "interpreter/kernels/permute.h"
#include "interpreter/kernels/tiling.h"

#include <string.h>

void tare_xla_conv_geometry_reset(struct tare_xla_conv_geometry *geometry) {
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        tare_tensor_reset(&geometry->stage.parameters[i]);
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

/* The key of an execution; false if its parameters are too large for one. */
static bool set_key(struct tare_xla_conv_key *key, const struct tare_kernel *kernel,
                    const struct tare_tensor *const inputs[TARE_XLA_WINDOW_PARAMETERS]) {
    key->lhs = kernel->inputs[0].shape;
    key->rhs = kernel->inputs[1].shape;
    key->size = 0;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        const size_t bytes = tare_tensor_bytes(inputs[i]);
        if (bytes >= TARE_XLA_MOST_PARAMETER_BYTES - key->size || inputs[i]->splat) return false;
        key->parameters[key->size++] = (unsigned char)bytes;
        if (bytes > 0) memcpy(key->parameters + key->size, inputs[i]->data, bytes);
        key->size += bytes;
    }
    return true;
}

static bool same_key(const struct tare_xla_conv_key *a, const struct tare_xla_conv_key *b) {
    return a->size == b->size && memcmp(a->parameters, b->parameters, a->size) == 0 &&
           tare_shape_equal(&a->lhs, &b->lhs) && tare_shape_equal(&a->rhs, &b->rhs);
}

tare_status tare_xla_conv_geometry_find(const struct tare_general_conv **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel,
                                        const struct tare_tensor *const windows[TARE_XLA_WINDOW_PARAMETERS],
                                        int8_t pad_value) {
    const struct tare_conv_dims *dims;
    struct tare_xla_conv_key key;
    const bool has_key = set_key(&key, kernel, windows);
    if (!has_key || !same_key(&key, &geometry->key)) {
        geometry->key.size = 0;
        TARE_TRY(tare_xla_conv_geometry_dims(&dims, geometry, kernel));
        TARE_TRY(set_conv(&geometry->general, kernel->node, dims, &kernel->inputs[0].shape, &kernel->inputs[1].shape,
                          windows));
        if (has_key) geometry->key = key;
    }
    geometry->general.conv.pad_value = pad_value;
    *out = &geometry->general;
    return TARE_OK;
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

/* The geometry of an execution whose input has another shape than input 0. */
static tare_status find_on(const struct tare_general_conv **out, struct tare_xla_conv_geometry *geometry,
                           struct tare_kernel *kernel, const struct tare_shape *shape) {
    const struct tare_tensor *const own = kernel->inputs, *windows[TARE_XLA_WINDOW_PARAMETERS];
    struct tare_tensor operands[] = { { .dtype = TARE_DT_FLOAT, .shape = *shape }, own[1] };
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        windows[i] = &own[i + 2];
    kernel->inputs = operands;
    const tare_status status = tare_xla_conv_geometry_find(out, geometry, kernel, windows, 0);
    kernel->inputs = own;
    return status;
}

/* Whether the geometry is that of the last run; comparing addresses is enough for constants. */
static bool is_kept_stage(const struct tare_xla_conv_stage *kept, const struct tare_kernel *kernel,
                          const struct tare_shape *shape) {
    if (!kept->made || !tare_shape_equal(&kept->lhs, shape) || !tare_shape_equal(&kept->rhs, &kernel->inputs[1].shape))
        return false;
    bool same = true;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        const struct tare_tensor *a = &kept->parameters[i], *b = &kernel->inputs[i + 2];
        same = same && a->data == b->data && a->dtype == b->dtype && a->elements == b->elements;
    }
    return same;
}

static void keep_stage(struct tare_xla_conv_stage *kept, const struct tare_kernel *kernel,
                       const struct tare_shape *shape) {
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++)
        if (!tare_edge_constant(kernel->node->inputs[i + 2])) return;
    for (int i = 0; i < TARE_XLA_WINDOW_PARAMETERS; i++) {
        tare_tensor_reset(&kept->parameters[i]);
        tare_tensor_share(&kept->parameters[i], &kernel->inputs[i + 2]);
    }
    kept->lhs = *shape;
    kept->rhs = kernel->inputs[1].shape;
    kept->made = true;
}

const struct tare_general_conv *tare_xla_conv_geometry_of_stage(struct tare_xla_conv_geometry *geometry,
                                                                struct tare_kernel *kernel,
                                                                const struct tare_shape *shape) {
    struct tare_xla_conv_stage *kept = &geometry->stage;
    const struct tare_general_conv *general;
    if (is_kept_stage(kept, kernel, shape)) return &kept->general;
    kept->made = false;
    if (find_on(&general, geometry, kernel, shape) != TARE_OK || !tare_general_conv_is_stored(general) ||
        !tare_permute_is_identity(general->rank, general->lhs_order))
        return NULL;
    kept->general = *general;
    kept->general.conv.batch = 1;
    if (!tare_tiling_supports(&(struct tare_tiling_stage){ .conv = kept->general.conv })) return NULL;
    keep_stage(kept, kernel, shape);
    return &kept->general;
}
