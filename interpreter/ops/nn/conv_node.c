#include "interpreter/ops/nn/conv_node.h"
#include "interpreter/ops/support/floats.h"

#include "base/alloc.h"

const struct tare_conv_kind tare_conv_2d = { 2, false }, tare_conv_3d = { 3, false };
const struct tare_conv_kind tare_conv_depthwise_2d = { 2, true };

tare_status tare_conv_parse_window(struct tare_window *window, const struct tare_node *node, int spatial) {
    TARE_TRY(tare_window_parse(window, node, spatial));
    if (window->stride_of_batch != 1 || window->stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "strides along batch or channels");
    return TARE_OK;
}

tare_status tare_conv_node_prepare(struct tare_kernel *kernel, size_t state_size) {
    struct tare_conv_node *state = tare_calloc(1, state_size);
    if (!state) return TARE_NO_MEMORY;
    const tare_status status =
        tare_conv_parse_window(&state->window, kernel->node, ((const struct tare_conv_kind *)kernel->op->aux)->spatial);
    if (status != TARE_OK) {
        tare_free(state);
        return status;
    }
    state->weights.owner = kernel->node;
    kernel->state = state;
    return TARE_OK;
}

void tare_conv_node_release(void *pointer) {
    struct tare_conv_node *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->weights);
    tare_free(state);
}

tare_status tare_conv_filter_dims(struct tare_conv *conv, int64_t *in, int64_t *out, const struct tare_shape *filter,
                                  const struct tare_conv_kind *kind) {
    const int spatial = kind->spatial;
    if (filter->rank != spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "filter has rank %d (expected %d)", filter->rank, spatial + 2);
    conv->kernel[0] = 1;
    for (int i = 0; i < spatial; i++)
        conv->kernel[3 - spatial + i] = filter->dims[i];
    *in = filter->dims[spatial];
    *out = filter->dims[spatial + 1];
    if (kind->depthwise) {
        if (*in < 0 || *out < 0)
            *out = -1;
        else if (!tare_mul_i64(out, *in, *out))
            return TARE_FAIL(TARE_SHAPE, "filter too large");
        *in = 1;
    }
    return TARE_OK;
}

tare_status tare_conv_forward_geometry(struct tare_conv *conv, struct tare_layout *output,
                                       const struct tare_window *window, const struct tare_conv_kind *kind,
                                       const struct tare_shape *input_shape, const struct tare_shape *filter_shape) {
    struct tare_layout input;
    int64_t filter_in;
    *conv = (struct tare_conv){ .base_dilation = { 1, 1, 1 }, .groups = 1 };
    TARE_TRY(tare_layout_of(&input, input_shape, window, "input"));
    TARE_TRY(tare_conv_filter_dims(conv, &filter_in, &conv->out_channels, filter_shape, kind));
    if (kind->depthwise && filter_shape->dims[2] != input.channels)
        return TARE_FAIL(TARE_SHAPE, "filter has %lld channels (expected the input's %lld)",
                         (long long)filter_shape->dims[2], (long long)input.channels);
    conv->batch = input.batch;
    conv->in_channels = input.channels;
    if (input.channels > 0) {
        if (filter_in < 1 || input.channels % filter_in != 0)
            return TARE_FAIL(TARE_SHAPE, "input has %lld channels (expected a multiple of the filter's %lld)",
                             (long long)input.channels, (long long)filter_in);
        conv->groups = input.channels / filter_in;
    }
    for (int i = 0; i < 3; i++) {
        conv->in[i] = input.spatial[i];
        conv->stride[i] = window->stride[i];
        conv->dilation[i] = window->dilation[i];
        TARE_TRY(tare_window_output(&conv->out[i], &conv->pad[i], window, i, conv->in[i], conv->kernel[i]));
        output->spatial[i] = conv->out[i];
    }
    output->batch = conv->batch;
    output->channels = conv->out_channels;
    return tare_conv_check(conv);
}

void tare_conv_cost_of_taps(struct tare_cost *cost, const struct tare_infer *infer, const struct tare_shape *shape) {
    int64_t elements, weights;
    const struct tare_shape *filter = &infer->inputs[1];
    if (tare_shape_elements(&elements, shape) != TARE_OK || tare_shape_elements(&weights, filter) != TARE_OK ||
        filter->rank < 1) {
        tare_error_clear();
        return;
    }
    const struct tare_conv_kind *kind = infer->node->def->row->aux;
    int64_t channels = filter->dims[filter->rank - 1];
    if (kind->depthwise) channels *= filter->dims[filter->rank - 2];
    if (channels > 0) cost->macs = (double)elements * (double)(weights / channels);
}

void tare_conv_run_plain(const struct tare_conv *conv, int dtype, const struct tare_conv_arrays *arrays) {
    if (dtype == TARE_DT_DOUBLE)
        tare_conv_plain_f64(arrays->output, conv, arrays->input, arrays->filter);
    else if (dtype == TARE_DT_INT32)
        tare_conv_plain_i32(arrays->output, conv, arrays->input, arrays->filter);
    else
        tare_conv_plain_f32(arrays->output, conv, arrays->input, arrays->filter);
}

tare_status tare_conv_open_arrays(struct tare_kernel *kernel, struct tare_conv_arrays *arrays,
                                  const struct tare_window *window, const struct tare_tensor *input,
                                  const struct tare_tensor *filter, const struct tare_layout *layout, bool plain) {
    const bool as_floats = tare_floats_dtype(input->dtype);
    const size_t size = as_floats ? sizeof(float) : tare_dtype_size(input->dtype);
    arrays->input = as_floats ? tare_floats_in(kernel, input) : input->data;
    arrays->filter = as_floats && plain ? tare_floats_in(kernel, filter) : filter->data;
    if (!arrays->input || !arrays->filter) return TARE_NO_MEMORY;
    arrays->input = tare_window_input(kernel, window, layout, arrays->input, size);
    arrays->output = as_floats ? tare_floats_out(kernel, 0) : kernel->outputs[0].data;
    if (window->channels_first)
        arrays->output = tare_arena_alloc(kernel->scratch, (size_t)kernel->outputs[0].elements * size);
    return !arrays->input || !arrays->output ? TARE_NO_MEMORY : TARE_OK;
}

tare_status tare_conv_close_arrays(struct tare_kernel *kernel, const struct tare_conv_arrays *arrays,
                                   const struct tare_window *window, const struct tare_conv *conv) {
    struct tare_tensor *output = &kernel->outputs[0];
    const bool as_floats = tare_floats_dtype(output->dtype);
    float *result = arrays->output;
    if (window->channels_first) {
        void *target = as_floats ? tare_floats_out(kernel, 0) : output->data;
        if (!target) return TARE_NO_MEMORY;
        tare_layout_to_first(target, arrays->output, conv->batch, conv->out_channels,
                             conv->out[0] * conv->out[1] * conv->out[2],
                             as_floats ? sizeof(float) : tare_dtype_size(output->dtype));
        result = target;
    }
    if (as_floats) tare_floats_round(kernel, 0, result);
    return TARE_OK;
}
