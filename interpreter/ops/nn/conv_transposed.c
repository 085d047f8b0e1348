/* Transposed convolutions: the gradients of convolutions with respect to the input, which models use as
 * deconvolutions. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/nn/conv_node.h"
#include "interpreter/ops/support/floats.h"

#include <string.h>

static tare_status prepare_transposed(struct tare_kernel *kernel) {
    return tare_conv_node_prepare(kernel, sizeof(struct tare_conv_node));
}

/* The gradient with respect to the input is a convolution of the dilated outputs with the flipped filter, with input
 * and output channels exchanged within each group. */
static tare_status transposed_geometry(struct tare_conv *conv, struct tare_conv *forward,
                                       const struct tare_window *window, const struct tare_conv_kind *kind,
                                       const struct tare_shape *input_shape, const struct tare_shape *filter,
                                       const struct tare_shape *gradient_shape) {
    struct tare_layout output, gradient;
    TARE_TRY(tare_conv_forward_geometry(forward, &output, window, kind, input_shape, filter));
    TARE_TRY(tare_layout_of(&gradient, gradient_shape, window, "out_backprop"));
    bool same = gradient.batch == output.batch && gradient.channels == output.channels;
    for (int i = 0; i < 3; i++)
        same = same && gradient.spatial[i] == output.spatial[i];
    if (!same) {
        char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
        const struct tare_shape wanted_shape = tare_layout_shape(&output, window);
        return TARE_FAIL(TARE_SHAPE, "out_backprop has shape %s (expected %s)", tare_shape_text(got, gradient_shape),
                         tare_shape_text(expected, &wanted_shape));
    }
    *conv = *forward;
    conv->in_channels = forward->out_channels;
    conv->out_channels = forward->in_channels;
    for (int i = 0; i < 3; i++) {
        conv->in[i] = forward->out[i];
        conv->out[i] = forward->in[i];
        conv->stride[i] = 1;
        conv->base_dilation[i] = forward->stride[i];
        conv->pad[i] = (forward->kernel[i] - 1) * forward->dilation[i] - forward->pad[i];
    }
    return tare_conv_check(conv);
}

/* Reverses the taps and transposes [in, out] of each group to [out, in]. */
static void flip_filter(void *to, const void *from, const struct tare_conv *forward, size_t size) {
    const int64_t taps = forward->kernel[0] * forward->kernel[1] * forward->kernel[2], groups = forward->groups;
    const int64_t in = forward->in_channels / groups, out = forward->out_channels / groups;
    const int64_t tap_size = groups * in * out;
    for (int64_t tap = 0; tap < taps; tap++) {
        char *turned = (char *)to + (size_t)(tap * tap_size) * size;
        const char *tap_from = (const char *)from + (size_t)((taps - 1 - tap) * tap_size) * size;
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < groups * in; i++, turned += size)
                memcpy(turned, tap_from + (size_t)((i % in * groups + i / in) * out + o) * size, size);
    }
}

/* Prepares the flipped filter for the kernel: packed for the matrix product, or unpacked for a depthwise
 * convolution. */
static tare_status make_flipped(struct tare_kernel *kernel, float **made, const struct tare_conv *conv,
                                const struct tare_conv *forward, const struct tare_tensor *filter, const void *values) {
    struct tare_weights *weights = &((struct tare_conv_node *)kernel->state)->weights;
    const bool depthwise = tare_conv_is_depthwise(conv);
    *made = tare_weights_find(weights, filter, conv->groups);
    if (*made) return TARE_OK;
    const size_t floats = depthwise ? (size_t)filter->elements : tare_conv_packed_floats(conv);
    *made = tare_weights_make(weights, filter, conv->groups, floats * sizeof(float), kernel->scratch);
    if (!*made) return TARE_NO_MEMORY;
    float *flipped = depthwise ? *made : tare_arena_alloc(kernel->scratch, (size_t)filter->elements * sizeof(float));
    if (!flipped) return TARE_NO_MEMORY;
    flip_filter(flipped, values, forward, sizeof(float));
    if (!depthwise) tare_conv_pack(*made, conv, flipped);
    *made = tare_weights_publish(weights, *made);
    return TARE_OK;
}

/* Computed as XlaConvV2 does (interpreter/ops/xla/xla_conv.c), so that both produce the same bits. */
static tare_status run_transposed_arrays(struct tare_kernel *kernel, const struct tare_conv *conv,
                                         const struct tare_conv *forward, const struct tare_conv_arrays *arrays,
                                         bool plain) {
    const struct tare_tensor *filter = &kernel->inputs[1];
    const bool depthwise = tare_conv_is_depthwise(conv);
    if (plain || !tare_floats_dtype(filter->dtype)) {
        const size_t size = tare_floats_dtype(filter->dtype) ? sizeof(float) : tare_dtype_size(filter->dtype);
        struct tare_conv_arrays flipped = *arrays;
        void *values = tare_arena_alloc(kernel->scratch, (size_t)filter->elements * size);
        if (!values) return TARE_NO_MEMORY;
        flip_filter(values, arrays->filter, forward, size);
        flipped.filter = values;
        tare_conv_run_plain(conv, filter->dtype, &flipped);
        return TARE_OK;
    }
    const size_t floats = depthwise ? tare_conv_depthwise_scratch(conv) : tare_conv_dense_scratch(conv);
    float *flipped, *scratch = tare_arena_alloc(kernel->scratch, floats * sizeof(float));
    if (!scratch) return TARE_NO_MEMORY;
    TARE_TRY(make_flipped(kernel, &flipped, conv, forward, filter, arrays->filter));
    if (depthwise)
        tare_conv_depthwise(arrays->output, conv, arrays->input, flipped, NULL, scratch);
    else
        tare_conv_dense(arrays->output, conv, arrays->input, flipped, NULL, scratch);
    return TARE_OK;
}

/* input_sizes may contain only the spatial sizes; batch and channels then come from the other inputs. */
static tare_status sizes_to_shape(struct tare_shape *shape, const struct tare_tensor *sizes,
                                  const struct tare_window *window, const struct tare_shape *filter,
                                  const struct tare_shape *gradient) {
    const int rank = window->spatial + 2;
    if (sizes->shape.rank != 1 || (sizes->elements != rank && sizes->elements != window->spatial))
        return TARE_FAIL(TARE_SHAPE, "input_sizes has %lld elements (expected %d)", (long long)sizes->elements, rank);
    int64_t dims[TARE_MAX_RANK];
    const bool whole = sizes->elements == rank;
    if (!whole) {
        if (filter->rank != rank || gradient->rank != rank) return TARE_FAIL(TARE_SHAPE, "expected rank %d", rank);
        dims[0] = gradient->dims[0];
        dims[window->channels_first ? 1 : rank - 1] = filter->dims[window->spatial];
    }
    for (int i = 0; i < (int)sizes->elements; i++) {
        const int64_t dim = tare_tensor_get_i64(sizes, i);
        if (dim < 0)
            return TARE_FAIL(TARE_SHAPE, "input_sizes contains %lld (expected non-negative sizes)", (long long)dim);
        dims[whole ? i : (window->channels_first ? 2 : 1) + i] = dim;
    }
    return tare_shape_from_dims(shape, rank, dims);
}

static tare_status run_transposed(struct tare_kernel *kernel, bool plain) {
    struct tare_conv_node *state = kernel->state;
    const struct tare_tensor *filter = &kernel->inputs[1], *gradient = &kernel->inputs[2];
    struct tare_conv conv, forward;
    struct tare_layout layout;
    struct tare_shape shape;
    struct tare_conv_arrays arrays;
    TARE_TRY(sizes_to_shape(&shape, &kernel->inputs[0], &state->window, &filter->shape, &gradient->shape));
    TARE_TRY(transposed_geometry(&conv, &forward, &state->window, kernel->op->aux, &shape, &filter->shape,
                                 &gradient->shape));
    TARE_TRY(tare_layout_of(&layout, &gradient->shape, &state->window, "out_backprop"));
    TARE_TRY(tare_kernel_output(kernel, 0, gradient->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(tare_conv_open_arrays(kernel, &arrays, &state->window, gradient, filter, &layout, true));
    TARE_TRY(run_transposed_arrays(kernel, &conv, &forward, &arrays, plain));
    return tare_conv_close_arrays(kernel, &arrays, &state->window, &conv);
}

static tare_status run_fast(struct tare_kernel *kernel) {
    return run_transposed(kernel, false);
}
static tare_status run_reference(struct tare_kernel *kernel) {
    return run_transposed(kernel, true);
}

static tare_status infer_transposed(struct tare_infer *infer) {
    struct tare_window window;
    const struct tare_conv_kind *kind = infer->node->def->row->aux;
    const int spatial = kind->spatial;
    const struct tare_shape *sizes = &infer->inputs[0], *filter = &infer->inputs[1], *gradient = &infer->inputs[2];
    /* sizes with channels permit groups, whose number the filter alone does not determine */
    const bool has_channels = kind->depthwise || (sizes->rank == 1 && sizes->dims[0] == spatial);
    TARE_TRY(tare_conv_parse_window(&window, infer->node, spatial));
    if (infer->input_values[0])
        return sizes_to_shape(&infer->outputs[0], infer->input_values[0], &window, filter, gradient);
    struct tare_layout layout = { -1, -1, { spatial == 3 ? -1 : 1, -1, -1 } };
    if (gradient->rank == spatial + 2) layout.batch = gradient->dims[0];
    if (filter->rank == spatial + 2 && has_channels) layout.channels = filter->dims[spatial];
    infer->outputs[0] = tare_layout_shape(&layout, &window);
    return TARE_OK;
}

static void cost_transposed(const struct tare_infer *infer, struct tare_cost *cost) {
    tare_conv_cost_of_taps(cost, infer, &infer->inputs[2]);
}

const struct tare_op tare_ops_conv_transposed[] = {
    { .name = "Conv2DBackpropInput",
      .infer = infer_transposed,
      .run = run_fast,
      .prepare = prepare_transposed,
      .release = tare_conv_node_release,
      .reference = run_reference,
      .cost = cost_transposed,
      .aux = &tare_conv_2d,
      .flags = TARE_OP_PRODUCT },
    { .name = "Conv3DBackpropInputV2",
      .infer = infer_transposed,
      .run = run_fast,
      .prepare = prepare_transposed,
      .release = tare_conv_node_release,
      .reference = run_reference,
      .cost = cost_transposed,
      .aux = &tare_conv_3d,
      .flags = TARE_OP_PRODUCT },
    { .name = "DepthwiseConv2dNativeBackpropInput",
      .infer = infer_transposed,
      .run = run_fast,
      .prepare = prepare_transposed,
      .release = tare_conv_node_release,
      .reference = run_reference,
      .cost = cost_transposed,
      .aux = &tare_conv_depthwise_2d },
    { 0 },
};
