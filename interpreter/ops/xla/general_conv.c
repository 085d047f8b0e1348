/* Geometry of XLA convolutions (general_conv.h): validates the dimension numbers and windows and permutes the operands.
 */
#include "interpreter/ops/xla/general_conv.h"

#include "base/alloc.h"
#include "interpreter/kernels/permute.h"

static int64_t dilated(int64_t size, int64_t dilation) {
    return size == 0 ? 0 : (size - 1) * dilation + 1;
}

void tare_conv_same_padding(int64_t pad[2], int64_t in, int64_t kernel, int64_t stride, int64_t lhs_dilation,
                            int64_t rhs_dilation) {
    const int64_t most = INT32_MAX;
    pad[0] = pad[1] = 0;
    if (in > most || kernel > most || stride > most || lhs_dilation > most || rhs_dilation > most)
        return; /* reported as an error when the sizes are set */
    const int64_t whole = dilated(in, lhs_dilation), out = (whole + stride - 1) / stride;
    const int64_t total = (out - 1) * stride + dilated(kernel, rhs_dilation) - whole;
    pad[0] = total > 0 ? total / 2 : 0;
    pad[1] = total > 0 ? total - pad[0] : 0;
}

static void set_orders(struct tare_general_conv *general, const struct tare_conv_dims *dims) {
    const int spatial = dims->spatial;
    general->rank = spatial + 2;
    general->lhs_order[0] = dims->input_batch;
    general->lhs_order[spatial + 1] = dims->input_feature;
    general->rhs_order[spatial] = dims->kernel_input;
    general->rhs_order[spatial + 1] = dims->kernel_output;
    general->output_order[dims->output_batch] = 0;
    general->output_order[dims->output_feature] = spatial + 1;
    for (int i = 0; i < spatial; i++) {
        general->lhs_order[i + 1] = dims->input_spatial[i];
        general->rhs_order[i] = dims->kernel_spatial[i];
        general->output_order[dims->output_spatial[i]] = i + 1;
    }
}

/* Sets the sizes along one spatial dimension; rejects excessive numbers before they are multiplied. */
static tare_status set_dimension(struct tare_conv *conv, int axis, const struct tare_conv_windows *windows, int i,
                                 int64_t in, int64_t kernel) {
    const int64_t most = INT32_MAX;
    const int64_t numbers[] = { windows->stride[i], windows->lhs_dilation[i], windows->rhs_dilation[i] };
    for (int j = 0; j < 3; j++) {
        if (numbers[j] < 1 || numbers[j] > most)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "strides and dilations must be positive (got %lld)",
                             (long long)numbers[j]);
    }
    if (in > most || kernel > most || kernel < 1 || windows->pad[i][0] > most || windows->pad[i][0] < -most ||
        windows->pad[i][1] > most || windows->pad[i][1] < -most)
        return TARE_FAIL(TARE_SHAPE, "window of %lld over %lld elements", (long long)kernel, (long long)in);
    const int64_t room = dilated(in, windows->lhs_dilation[i]) + windows->pad[i][0] + windows->pad[i][1] -
                         dilated(kernel, windows->rhs_dilation[i]);
    conv->in[axis] = in;
    conv->kernel[axis] = kernel;
    conv->stride[axis] = windows->stride[i];
    conv->base_dilation[axis] = windows->lhs_dilation[i];
    conv->dilation[axis] = windows->rhs_dilation[i];
    conv->pad[axis] = windows->pad[i][0];
    conv->out[axis] = room < 0 ? 0 : room / windows->stride[i] + 1;
    return TARE_OK;
}

tare_status tare_general_conv_set(struct tare_general_conv *general, const struct tare_conv_dims *dims,
                                  const struct tare_conv_windows *windows, const struct tare_shape *lhs,
                                  const struct tare_shape *rhs) {
    struct tare_conv *conv = &general->conv;
    const int spatial = dims->spatial;
    if (lhs->rank != spatial + 2 || rhs->rank != spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "operands have ranks %d and %d (expected %d)", lhs->rank, rhs->rank, spatial + 2);
    set_orders(general, dims);
    *conv = (struct tare_conv){
        .batch = lhs->dims[dims->input_batch],
        .in = { 1, 1, 1 },
        .in_channels = lhs->dims[dims->input_feature],
        .kernel = { 1, 1, 1 },
        .out = { 1, 1, 1 },
        .out_channels = rhs->dims[dims->kernel_output],
        .stride = { 1, 1, 1 },
        .dilation = { 1, 1, 1 },
        .base_dilation = { 1, 1, 1 },
        .groups = windows->groups,
    };
    for (int i = 0; i < spatial; i++)
        TARE_TRY(set_dimension(conv, 3 - spatial + i, windows, i, lhs->dims[dims->input_spatial[i]],
                               rhs->dims[dims->kernel_spatial[i]]));
    TARE_TRY(tare_conv_check(conv));
    if (rhs->dims[dims->kernel_input] * conv->groups != conv->in_channels)
        return TARE_FAIL(TARE_SHAPE, "the kernel sees %lld channels (expected %lld, %lld in %lld groups)",
                         (long long)rhs->dims[dims->kernel_input], (long long)(conv->in_channels / conv->groups),
                         (long long)conv->in_channels, (long long)conv->groups);
    general->output.rank = general->rank;
    general->output.dims[dims->output_batch] = conv->batch;
    general->output.dims[dims->output_feature] = conv->out_channels;
    for (int i = 0; i < spatial; i++)
        general->output.dims[dims->output_spatial[i]] = conv->out[3 - spatial + i];
    return TARE_OK;
}

const void *tare_in_order(struct tare_arena *scratch, const void *data, size_t element_size,
                          const struct tare_shape *shape, const int *order) {
    if (tare_permute_is_identity(shape->rank, order)) return data;
    size_t bytes = element_size;
    for (int i = 0; i < shape->rank; i++)
        bytes *= (size_t)shape->dims[i];
    void *copy = tare_arena_alloc(scratch, bytes);
    if (copy) tare_permute(copy, data, element_size, shape->rank, shape->dims, order);
    return copy;
}

bool tare_general_conv_is_stored(const struct tare_general_conv *general) {
    return tare_permute_is_identity(general->rank, general->output_order);
}

void tare_general_conv_store(const struct tare_general_conv *general, void *to, const void *from, size_t element_size) {
    int64_t dims[5];
    if (tare_general_conv_is_stored(general)) return;
    for (int i = 0; i < general->rank; i++)
        dims[general->output_order[i]] = general->output.dims[i];
    tare_permute(to, from, element_size, general->rank, dims, general->output_order);
}
